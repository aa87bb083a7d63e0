"""Recognising models that are ensembles of trees, and reading them.

No library is imported for this: a model is recognised by the names of its class and its package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from absentia.trees import catboost_trees, histogram_trees, lightgbm_trees, sklearn_trees, xgboost_trees
from absentia.trees.ensemble import UnreadableTreesError
from absentia.trees.tree_reading import Link, TreeReading, verify

__all__ = ["Link", "TreeReading", "read_trees", "verify"]

# Errors raised when trees are stored in an unknown form: a part is missing or has another type.
_UNKNOWN_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError)


# Methods that predict, whose own version in a subclass may give something else than the trees do.
_PREDICTIONS = ("predict", "predict_proba", "decision_function", "score_samples")


def read_trees(estimator: Any) -> TreeReading | None:
    """Return the trees of a fitted model, or None if it is not an ensemble of trees of a known library.

    Raises UnreadableTreesError with the reason if the ensemble cannot be read.
    """
    own_methods: list[str] = []
    for class_or_parent in type(estimator).__mro__:
        package = class_or_parent.__module__.partition(".")[0]
        read = _READERS.get((package, class_or_parent.__name__))
        if read is not None:
            if own_methods:
                name = type(estimator).__name__
                raise UnreadableTreesError(f"{name} has its own {own_methods[0]}, which may differ from its trees.")
            return _read(read, estimator)
        if package not in _PACKAGES:
            own_methods += [method for method in _PREDICTIONS if method in vars(class_or_parent)]
    return None


def holds_trees(estimator: Any) -> bool:
    """Return whether one of the estimators that a model is made of is an ensemble of trees of a known library."""
    members: list[Any] = []
    for name in _MEMBERS:
        member = getattr(estimator, name, None)
        members += np.ravel(np.array(member, dtype=object)).tolist() if isinstance(member, _LISTS) else [member]
    return any(_is_known(member) or holds_trees(member) for member in members if member is not None)


def _is_known(estimator: Any) -> bool:
    """Return whether there is a function that reads an estimator."""
    parents = type(estimator).__mro__
    return any((parent.__module__.partition(".")[0], parent.__name__) in _READERS for parent in parents)


def _read(read: Callable[[Any], TreeReading | None], estimator: Any) -> TreeReading | None:
    """Read an estimator; raise an error if its trees have an unknown form, such as that of another version."""
    try:
        return read(estimator)
    except UnreadableTreesError:
        raise
    except _UNKNOWN_FORM as error:
        name = type(estimator).__name__
        cause = f"{type(error).__name__}: {error}"
        raise UnreadableTreesError(f"The trees of this {name} are stored in an unknown form ({cause}).") from error


# Attributes in which scikit-learn's estimators keep those that they are made of.
_MEMBERS = ("estimator", "estimators_", "calibrated_classifiers_", "final_estimator_")
_LISTS = (list, tuple, np.ndarray)

# Functions that read a model, by the package and name of its class or of a parent class.
_READERS: dict[tuple[str, str], Callable[[Any], TreeReading | None]] = {
    ("xgboost", "Booster"): xgboost_trees.read_booster,
    ("xgboost", "XGBClassifier"): xgboost_trees.read_classifier,
    ("xgboost", "XGBModel"): xgboost_trees.read_regressor,
    ("lightgbm", "Booster"): lightgbm_trees.read_booster,
    ("lightgbm", "LGBMClassifier"): lightgbm_trees.read_classifier,
    ("lightgbm", "LGBMModel"): lightgbm_trees.read_regressor,
    ("catboost", "CatBoostClassifier"): catboost_trees.read_classifier,
    ("catboost", "CatBoostRegressor"): catboost_trees.read_regressor,
    ("catboost", "CatBoost"): catboost_trees.read_raw_model,
    ("sklearn", "DecisionTreeClassifier"): sklearn_trees.read_tree,
    ("sklearn", "DecisionTreeRegressor"): sklearn_trees.read_tree,
    ("sklearn", "ForestClassifier"): sklearn_trees.read_forest,
    ("sklearn", "ForestRegressor"): sklearn_trees.read_forest,
    ("sklearn", "BaggingClassifier"): sklearn_trees.read_bagging,
    ("sklearn", "BaggingRegressor"): sklearn_trees.read_bagging,
    ("sklearn", "GradientBoostingClassifier"): sklearn_trees.read_gradient_boosting,
    ("sklearn", "GradientBoostingRegressor"): sklearn_trees.read_gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): histogram_trees.read_histogram_boosting,
    ("sklearn", "HistGradientBoostingRegressor"): histogram_trees.read_histogram_boosting,
    ("sklearn", "IsolationForest"): sklearn_trees.read_isolation_forest,
}

# The packages whose models are read; their own subclasses are read like the parents that are listed.
_PACKAGES = frozenset(package for package, _ in _READERS)
