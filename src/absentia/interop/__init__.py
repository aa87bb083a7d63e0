"""Absences, games and results converted to and from shap, captum, shapiq, scikit-learn and transformers.

Each package is imported when it is first used. No function needs more than the one package that it is about.
"""

from absentia.interop.captum import captum_baselines, captum_feature_mask, from_captum
from absentia.interop.encoded_tables import EncodedTable
from absentia.interop.shap import ShapMasker, shap_masker, to_shap
from absentia.interop.shapiq import from_shapiq, shapiq_game, shapiq_imputer, to_shapiq
from absentia.interop.sklearn import from_estimator
from absentia.interop.transformers import from_transformers

__all__ = [
    "EncodedTable",
    "ShapMasker",
    "captum_baselines",
    "captum_feature_mask",
    "from_captum",
    "from_estimator",
    "from_shapiq",
    "from_transformers",
    "shap_masker",
    "shapiq_game",
    "shapiq_imputer",
    "to_shap",
    "to_shapiq",
]
