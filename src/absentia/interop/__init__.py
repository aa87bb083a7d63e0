"""To and from shap, captum, shapiq and scikit-learn: absences, games and results in the form that each of them takes.

The packages are imported on use only, and none of these names needs more than the one package that it speaks to.

>>> import torch
>>> import absentia as ab
>>> players = ab.Players.groups({"size": [0, 1], "mass": [2]}, features=3)
>>> ab.interop.captum_feature_mask(players)
tensor([[0, 0, 1]])
"""

from absentia.interop.encoded_table import EncodedTable
from absentia.interop.estimators import from_estimator
from absentia.interop.shap_masker import ShapMasker, shap_masker
from absentia.interop.shapiq_game import shapiq_game
from absentia.interop.shapiq_imputer import shapiq_imputer
from absentia.interop.to_captum import captum_baselines, captum_feature_mask, from_captum
from absentia.interop.to_shap import to_shap
from absentia.interop.to_shapiq import from_shapiq, to_shapiq

__all__ = [
    "EncodedTable",
    "ShapMasker",
    "captum_baselines",
    "captum_feature_mask",
    "from_captum",
    "from_estimator",
    "from_shapiq",
    "shap_masker",
    "shapiq_game",
    "shapiq_imputer",
    "to_shap",
    "to_shapiq",
]
