"""The trees of LightGBM, read from its dump."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from absentia.trees.ensemble import CategorySplit, Comparison, Tree, TreeEnsemble, UnreadableTreesError, assemble
from absentia.trees.node_list import ROOT, Interval, NodeList, Place, Sides
from absentia.trees.table_numbers import category_columns, table_numbers
from absentia.trees.tree_reading import Link, TreeReading

_COMPARISON = Comparison("<=", np.float64)
# LightGBM treats numbers up to this size as zero.
_LARGEST_ZERO = float(np.float32(1e-35))
_ZERO = Interval(low=math.nextafter(-_LARGEST_ZERO, -math.inf), high=_LARGEST_ZERO)

# Dumps hold this number, or its negative, instead of infinity.
_DUMPED_INFINITY = 1e300

# Losses whose raw outputs are predictions, log-odds or logits of classes, or other scores of classes.
_REGRESSION = (
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "quantile",
    "mape",
    "lambdarank",
    "rank_xendcg",
)
# Losses that predict the exponential of the raw output.
_LOGARITHMS = ("poisson", "gamma", "tweedie")
_LOGITS = ("binary", "cross_entropy", "multiclass")
_SCORES = ("multiclassova",)
# With this setting a loss predicts the squares of the raw outputs.
_OF_ROOTS = "sqrt"


def read_booster(booster: Any) -> TreeReading:
    """Read a LightGBM Booster, which predicts with the trees up to the best iteration."""
    dump = _dump(booster)
    link = _margins(dump)
    if link is Link.OTHER:
        link = _predictions(dump)
    return _read(booster, dump, link)


def read_classifier(classifier: Any) -> TreeReading | None:
    """Read an LGBMClassifier."""
    if not classifier.__sklearn_is_fitted__():
        return None
    dump = _dump(classifier.booster_)
    return _read(classifier.booster_, dump, _margins(dump))


def read_regressor(regressor: Any) -> TreeReading | None:
    """Read an LGBMRegressor or an LGBMRanker."""
    if not regressor.__sklearn_is_fitted__():
        return None
    dump = _dump(regressor.booster_)
    return _read(regressor.booster_, dump, _predictions(dump))


def _dump(booster: Any) -> dict[str, Any]:
    """Dump the trees with which the booster predicts."""
    try:
        dump: dict[str, Any] = booster.dump_model()
    except RecursionError as error:
        raise UnreadableTreesError("The trees of LightGBM are too deep to be read from its dump.") from error
    return dump


def _objective(dump: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the name and the settings of the training loss; a custom loss has no name."""
    words = str(dump.get("objective", "")).split()
    if not words:
        return "", []
    return words[0], words[1:]


def _margins(dump: Mapping[str, Any]) -> Link:
    """Return the link of a classifier."""
    name, _ = _objective(dump)
    if name in _LOGITS:
        return Link.LOG_ODDS_OR_LOGITS
    if not name or name in _SCORES:
        return Link.SCORES
    return Link.OTHER


def _predictions(dump: Mapping[str, Any]) -> Link:
    """Return the link of a regressor."""
    name, settings = _objective(dump)
    if not name or (name in _REGRESSION and _OF_ROOTS not in settings):
        return Link.IDENTITY
    if name in _LOGARITHMS:
        return Link.LOG
    return Link.OTHER


def _read(booster: Any, dump: Mapping[str, Any], link: Link) -> TreeReading:
    """Read a booster from its dump."""
    names = tuple(dump["feature_names"])
    given_by_lightgbm = tuple(f"Column_{number}" for number in range(len(names)))
    columns = () if names == given_by_lightgbm else names
    factor = _tree_factor(dump)
    ask = partial(_raw_outputs, booster, factor)
    rows_of = partial(_rows_of, dump.get("pandas_categorical") or [])
    return TreeReading(_ensemble(dump, factor), columns, link, ask, rows_of)


def _rows_of(fitted_categories: Sequence[Sequence[Any]], data: Any) -> np.ndarray:
    """Return rows as numbers; pandas categories become their codes in the training data."""
    columns = category_columns(data)
    if columns and len(columns) != len(fitted_categories):
        raise UnreadableTreesError(
            f"The table must have {len(fitted_categories)} columns of categories, as in the fit. Got {len(columns)}."
        )
    return table_numbers(data, dict(zip(columns, fitted_categories, strict=False)))


def _tree_factor(dump: Mapping[str, Any]) -> float:
    """Return the factor of each tree; random forests predict the mean of their trees rather than the sum."""
    if dump.get("average_output"):
        return int(dump["num_tree_per_iteration"]) / len(dump["tree_info"])
    return 1.0


def _raw_outputs(booster: Any, factor: float, data: Any) -> np.ndarray:
    """Return a booster's own raw outputs. For random forests these are sums, but predictions are means."""
    sums: np.ndarray = booster.predict(data, raw_score=True)
    return factor * sums


def _ensemble(dump: Mapping[str, Any], factor: float) -> TreeEnsemble:
    """Return the trees of a dump. Their values include the base value."""
    outputs = int(dump["num_tree_per_iteration"])
    trees = [
        _tree(dumped["tree_structure"], number % outputs, factor) for number, dumped in enumerate(dump["tree_info"])
    ]
    return assemble(trees, np.zeros(outputs), int(dump["max_feature_idx"]) + 1, _COMPARISON)


def _tree(root: Mapping[str, Any], output: int, factor: float) -> Tree:
    """Return a tree of the dump."""
    nodes = NodeList(outputs=1)
    waiting: list[tuple[Mapping[str, Any], tuple[Place, ...]]] = [(root, ROOT)]
    while waiting:
        node, places = waiting.pop()
        if "split_feature" not in node:
            nodes.add_leaf(places, [factor * _leaf_value(node)])
            continue
        sides = _add_split(nodes, node, places)
        waiting.append((node["right_child"], sides.right))
        waiting.append((node["left_child"], sides.left))
    return nodes.tree(output)


def _leaf_value(leaf: Mapping[str, Any]) -> float:
    """Return the value of a leaf; raise an error if the leaf is a linear function."""
    if "leaf_coeff" in leaf:
        raise UnreadableTreesError("The leaves of LightGBM's linear trees are functions, not numbers.")
    return float(leaf["leaf_value"])


def _add_split(nodes: NodeList, node: Mapping[str, Any], places: tuple[Place, ...]) -> Sides:
    """Add a split to the nodes."""
    column = int(node["split_feature"])
    decision = node["decision_type"]
    if decision == "==":
        categories = tuple(int(category) for category in str(node["threshold"]).split("||"))
        # Missing values are in no category.
        return nodes.add_category_split(places, column, CategorySplit(categories, True), False)
    if decision != "<=":
        raise UnreadableTreesError(f"LightGBM's splits by {decision!r} are not known.")
    threshold = _threshold(node)
    missing = node["missing_type"]
    if missing == "Zero":
        return nodes.add_split_beside(places, column, threshold, bool(node["default_left"]), _ZERO)
    if missing == "None":  # missing values count as zeros
        return nodes.add_split(places, column, _beside_zero(threshold), threshold >= 0)
    if missing != "NaN":
        raise UnreadableTreesError(f"LightGBM's missing values of the type {missing!r} are not known.")
    return nodes.add_split(places, column, _beside_zero(threshold), bool(node["default_left"]))


def _threshold(node: Mapping[str, Any]) -> float:
    """Return the threshold of a split by a number."""
    threshold = float(node["threshold"])
    if abs(threshold) >= _DUMPED_INFINITY:
        return math.copysign(math.inf, threshold)
    return threshold


def _beside_zero(threshold: float) -> float:
    """Return a threshold that splits exact numbers as LightGBM does after rounding small ones to zero."""
    if 0 <= threshold < _ZERO.high:
        return _ZERO.high
    if _ZERO.low < threshold < 0:
        return _ZERO.low
    return threshold
