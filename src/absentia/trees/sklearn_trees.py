"""The trees, forests and gradient boosting of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from absentia.errors import require
from absentia.trees.ensemble import (
    EVERY_OUTPUT,
    LEAF,
    Comparison,
    Tree,
    TreeEnsemble,
    UnreadableTreesError,
    assemble,
)
from absentia.trees.tree_reading import Link, TreeReading

_COMPARISON = Comparison("<=", np.float32)
# What scikit-learn stores as the child of a leaf.
_NO_NODE = -1
# Strategies of dummy estimators whose prediction is the same for every row and every call.
_CONSTANT_STRATEGIES = ("prior", "uniform", "most_frequent", "mean", "median", "quantile", "constant")


def names_of_columns(estimator: Any) -> tuple[str, ...]:
    """Return the column names on which an estimator was fitted; none for plain arrays."""
    return tuple(str(name) for name in getattr(estimator, "feature_names_in_", ()))


def with_names(estimator: Any, method: Callable[[Any], Any], data: Any) -> Any:
    """Call a method, with named columns if the estimator was fitted on named columns."""
    names = names_of_columns(estimator)
    if names and isinstance(data, np.ndarray):
        data = require("pandas", "sklearn").DataFrame(data, columns=list(names))
    return method(data)


def read_tree(tree: Any) -> TreeReading | None:
    """Read a decision tree classifier or regressor."""
    if not hasattr(tree, "tree_"):
        return None
    return _read_mean(tree, [tree])


def read_forest(forest: Any) -> TreeReading | None:
    """Read a random forest or extremely randomised trees."""
    if not hasattr(forest, "estimators_"):
        return None
    return _read_mean(forest, forest.estimators_)


def _read_mean(estimator: Any, fitted_trees: Sequence[Any]) -> TreeReading:
    """Read an estimator that predicts the mean of its trees."""
    if hasattr(estimator, "classes_") and estimator.n_outputs_ > 1:
        raise UnreadableTreesError(
            f"Trees of classes must have one target. Got {estimator.n_outputs_}: explain one model for each."
        )
    trees = [_tree(fitted.tree_, _leaf_outputs(fitted.tree_) / len(fitted_trees)) for fitted in fitted_trees]
    return _read_shares_or_numbers(estimator, trees)


def read_bagging(bagging: Any) -> TreeReading | None:
    """Read a bagging ensemble of decision trees."""
    fitted_trees = getattr(bagging, "estimators_", [])
    if not fitted_trees or not all(hasattr(fitted, "tree_") for fitted in fitted_trees):
        return None
    if any(hasattr(fitted, "classes_") != hasattr(bagging, "classes_") for fitted in fitted_trees):
        return None  # regression trees vote for classes
    trees = []
    for fitted, features in zip(fitted_trees, bagging.estimators_features_, strict=True):
        values = _leaf_outputs(fitted.tree_)
        if hasattr(bagging, "classes_"):
            # A tree that was fitted on only some of the classes stores their numbers.
            by_class = np.zeros((len(values), len(bagging.classes_)))
            by_class[:, fitted.classes_.astype(int)] = values
            values = by_class
        trees.append(_tree(fitted.tree_, values / len(fitted_trees), features=features))
    return _read_shares_or_numbers(bagging, trees)


def _read_shares_or_numbers(estimator: Any, trees: Sequence[Tree]) -> TreeReading:
    """Read an ensemble that predicts probabilities if it is a classifier, and numbers otherwise."""
    link = Link.IDENTITY
    method = estimator.predict
    if hasattr(estimator, "classes_"):
        link = Link.PROBABILITIES
        method = estimator.predict_proba
    ensemble = _assemble(trees, np.zeros(trees[0].values.shape[1]), estimator)
    return TreeReading(ensemble, names_of_columns(estimator), link, partial(with_names, estimator, method))


def read_gradient_boosting(booster: Any) -> TreeReading | None:
    """Read gradient boosting, which adds its trees to a constant."""
    if not hasattr(booster, "estimators_"):
        return None
    base = _initial_outputs(booster)
    trees = [
        _tree(fitted.tree_, booster.learning_rate * _leaf_outputs(fitted.tree_), output)
        for stage in booster.estimators_
        for output, fitted in enumerate(stage)
    ]
    link = Link.IDENTITY
    method = booster.predict
    if hasattr(booster, "classes_"):
        link = Link.LOG_ODDS_OR_LOGITS
        method = booster.decision_function
    ensemble = _assemble(trees, base, booster)
    return TreeReading(ensemble, names_of_columns(booster), link, partial(with_names, booster, method))


def _initial_outputs(booster: Any) -> np.ndarray:
    """Return the raw outputs from which gradient boosting starts, which must be the same for all rows."""
    strategy = getattr(booster.init_, "strategy", None)
    is_zero = isinstance(booster.init_, str) and booster.init_ == "zero"
    if not is_zero and strategy not in _CONSTANT_STRATEGIES:
        name = type(booster.init_).__name__
        raise UnreadableTreesError(f"Gradient boosting must start from a constant. Got {name} as its init.")
    row = np.zeros((1, booster.n_features_in_), np.float32)
    raw = np.asarray(booster._raw_predict_init(row), np.float64)
    outputs: np.ndarray = raw.reshape(-1)
    return outputs


def read_isolation_forest(forest: Any) -> TreeReading | None:
    """Read an isolation forest as the mean depth at which its trees isolate a row."""
    if not hasattr(forest, "estimators_"):
        return None
    trees = []
    for fitted, features in zip(forest.estimators_, forest.estimators_features_, strict=True):
        depths = _depths(fitted.tree_) + average_path_length(fitted.tree_.n_node_samples)
        # If trees use all columns, they are fitted on them in the original order, whatever order is recorded.
        has_all_columns = fitted.n_features_in_ == forest.n_features_in_
        trees.append(
            _tree(
                fitted.tree_,
                depths[:, None] / len(forest.estimators_),
                features=None if has_all_columns else features,
            )
        )
    ensemble = _assemble(trees, np.zeros(1), forest)
    ask = partial(_mean_depth, forest)
    return TreeReading(ensemble, names_of_columns(forest), Link.MEAN_DEPTH, ask)


def average_path_length(samples: np.ndarray) -> np.ndarray:
    """Return the average depth at which a random tree isolates one of this many samples."""
    count = np.maximum(samples, 2).astype(np.float64)
    with np.errstate(divide="ignore"):
        length = 2 * (np.log(count - 1) + np.euler_gamma) - 2 * (count - 1) / count
    return np.select([samples <= 1, samples == 2], [0.0, 1.0], length)


def _mean_depth(forest: Any, data: Any) -> np.ndarray:
    """Return the mean depth from which an isolation forest computes its scores −2^(−depth / usual depth)."""
    scores = with_names(forest, forest.score_samples, data)
    usual_depth = average_path_length(np.array([forest.max_samples_]))
    depths: np.ndarray = -np.log2(-scores) * usual_depth
    return depths


def _depths(fitted: Any) -> np.ndarray:
    """Return the number of splits above each node."""
    depths = np.zeros(fitted.node_count)
    for node in range(fitted.node_count):  # parents come before their children
        for child in (fitted.children_left[node], fitted.children_right[node]):
            if child != _NO_NODE:
                depths[child] = depths[node] + 1
    return depths


def _leaf_outputs(fitted: Any) -> np.ndarray:
    """Return the values of the nodes: one for each class, or one for each target."""
    values: np.ndarray = fitted.value
    return values.reshape(len(values), -1)


def _tree(fitted: Any, values: np.ndarray, output: int = EVERY_OUTPUT, features: np.ndarray | None = None) -> Tree:
    """Return a fitted tree with these values; ``features`` holds the columns on which it was fitted, if not all."""
    is_leaf = fitted.children_left == _NO_NODE
    columns = np.where(is_leaf, 0, fitted.feature)
    if features is not None:
        columns = features[columns]
    return Tree(
        columns=np.where(is_leaf, LEAF, columns),
        thresholds=fitted.threshold,
        left=fitted.children_left,
        right=fitted.children_right,
        missing_left=fitted.missing_go_to_left.astype(bool),
        values=values,
        output=output,
    )


def _assemble(trees: Sequence[Tree], base: np.ndarray, estimator: Any) -> TreeEnsemble:
    """Join trees into an ensemble with the columns of an estimator."""
    return assemble(trees, base, int(estimator.n_features_in_), _COMPARISON)
