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


def category_columns(estimator: Any, candidates: Sequence[str], empty: Sequence[str] = ()) -> list[str]:
    """Return the columns that a booster was fitted on as categories; none for other estimators.

    ``candidates`` are columns of text in order, and ``empty`` those in which all values are missing. LightGBM knows
    only how many columns of categories there are.
    """
    known = _known_to_lightgbm(estimator)
    if known is not None:
        fits = len(known) == len(candidates) + len(empty)
        return [*candidates, *empty] if fits else []
    names = getattr(estimator, "feature_names_in_", None)
    is_categorical = getattr(estimator, "is_categorical_", None)
    if names is not None and is_categorical is not None:
        return [str(name) for name, is_category in zip(names, is_categorical, strict=True) if is_category]
    booster = _xgboost_booster(estimator)
    if booster is None or booster.feature_names is None:
        return []
    types = zip(booster.feature_names, booster.feature_types, strict=True)
    return [name for name, kind in types if kind == "c"]


def fitted_on_categories(estimator: Any) -> bool:
    """Return whether a booster says that it was fitted to a DataFrame with columns of categories."""
    return bool(_known_to_lightgbm(estimator)) or _xgboost_booster(estimator) is not None


def _known_to_lightgbm(estimator: Any) -> list[Any] | None:
    """Return the categories of each column of categories of a LightGBM model; None for other estimators."""
    booster = getattr(estimator, "_Booster", estimator)  # booster_ of a model that is not fitted raises an error
    known = getattr(booster, "pandas_categorical", None)
    return known if isinstance(known, list) else None


def _xgboost_booster(estimator: Any) -> Any:
    """Return the booster of an XGBoost model that was fitted on categories; None for other estimators."""
    booster = estimator
    if hasattr(estimator, "get_booster") and estimator.__sklearn_is_fitted__():
        booster = estimator.get_booster()
    if not hasattr(booster, "get_categories") or "c" not in (booster.feature_types or ()):
        return None
    return booster


def _of_lightgbm(estimator: Any, candidates: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Read the categories of a LightGBM model, which knows them by their order among the columns of categories."""
    known = _known_to_lightgbm(estimator)
    if known is None or len(known) != len(candidates):
        return {}
    return {column: tuple(categories) for column, categories in zip(candidates, known, strict=True)}


def _of_xgboost(estimator: Any) -> dict[str, tuple[Any, ...]]:
    """Read the categories of an XGBoost model, which needs pyarrow to return them."""
    booster = _xgboost_booster(estimator)
    if booster is None or find_spec("pyarrow") is None:
        return {}
    known = booster.get_categories(export_to_arrow=True).to_arrow()
    return {str(column): tuple(values.to_pylist()) for column, values in known if values is not None}
