"""The categories that a booster was fitted on, in the order of its own codes.

Nothing is imported here: a booster is recognised by what it offers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any


def fitted_categories(estimator: Any, candidates: Sequence[str]) -> Mapping[str, tuple[Any, ...]]:
    """Return the categories of each column, for boosters that tell; ``candidates`` are columns of text in order."""
    return _of_lightgbm(estimator, candidates) or _of_xgboost(estimator)


def category_columns(estimator: Any) -> list[str]:
    """Return the columns that scikit-learn's histogram boosters take as categories; none for other estimators."""
    names = getattr(estimator, "feature_names_in_", None)
    is_categorical = getattr(estimator, "is_categorical_", None)
    if names is None or is_categorical is None:
        return []
    return [str(name) for name, is_category in zip(names, is_categorical, strict=True) if is_category]


def _of_lightgbm(estimator: Any, candidates: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Read the categories of a LightGBM model, which knows them by their order among the columns of categories."""
    booster = getattr(estimator, "_Booster", estimator)  # booster_ of a model that is not fitted raises an error
    known = getattr(booster, "pandas_categorical", None)
    if not isinstance(known, list) or len(known) != len(candidates):
        return {}
    return {column: tuple(categories) for column, categories in zip(candidates, known, strict=True)}


def _of_xgboost(estimator: Any) -> dict[str, tuple[Any, ...]]:
    """Read the categories of an XGBoost model, which needs pyarrow to tell them."""
    booster = estimator
    if hasattr(estimator, "get_booster") and estimator.__sklearn_is_fitted__():
        booster = estimator.get_booster()
    if not hasattr(booster, "get_categories") or "c" not in (booster.feature_types or ()):
        return {}
    if find_spec("pyarrow") is None:
        return {}
    known = booster.get_categories(export_to_arrow=True).to_arrow()
    return {str(column): tuple(values.to_pylist()) for column, values in known if values is not None}
