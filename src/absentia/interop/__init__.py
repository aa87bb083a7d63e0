"""Conversion of absences, games and results to and from shap, captum, shapiq, scikit-learn and transformers.

Each package is imported when it is first used, and each function needs only the package that it converts to or from.
"""

from absentia.interop.captum import captum_baselines, captum_feature_mask, from_captum
from absentia.interop.shap import ShapMasker, shap_masker, to_shap
from absentia.interop.shapiq import from_shapiq, shapiq_game, shapiq_imputer, to_shapiq
from absentia.interop.sklearn import from_estimator
from absentia.interop.transformers import from_transformers
from absentia.tables import EncodedTable

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
