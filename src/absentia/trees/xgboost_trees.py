"""The trees of XGBoost, read from its saved models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from absentia.trees.ensemble import (
    EVERY_OUTPUT,
    CategorySplit,
    Comparison,
    Tree,
    TreeEnsemble,
    UnreadableTreesError,
    assemble,
)
from absentia.trees.node_list import ROOT, Interval, NodeList, Place, Sides
from absentia.trees.table_numbers import category_columns, table_numbers
from absentia.trees.tree_reading import Link, TreeReading

_COMPARISON = Comparison("<", np.float32)
# The types of splits.
_BY_CATEGORY = 1
# The child of a leaf.
_NO_NODE = -1


def _same(score: np.ndarray) -> np.ndarray:
    """Return a base score that is already a raw output."""
    return score


def _log_odds(score: np.ndarray) -> np.ndarray:
    """Return the log-odds of a base score that is a probability."""
    odds: np.ndarray = -np.log(1 / score - 1)
    return odds


def _log(score: np.ndarray) -> np.ndarray:
    """Return the logarithm of a base score."""
    logarithm: np.ndarray = np.log(score)
    return logarithm


@dataclass(frozen=True)
class _Objective:
    """What a training loss means for outputs."""

    to_raw: Callable[[np.ndarray], np.ndarray]  # turns the base score into raw outputs
    margins: Link  # of boosters and classifiers
    predictions: Link  # of regressors


_REGRESSION = _Objective(_same, Link.IDENTITY, Link.IDENTITY)
_LOG_LINK = _Objective(_log, Link.LOG, Link.LOG)
_CLASSES = _Objective(_same, Link.LOG_ODDS_OR_LOGITS, Link.OTHER)

_OBJECTIVES = {
    "reg:squarederror": _REGRESSION,
    "reg:squaredlogerror": _REGRESSION,
    "reg:absoluteerror": _REGRESSION,
    "reg:pseudohubererror": _REGRESSION,
    "reg:quantileerror": _REGRESSION,
    "reg:expectileerror": _REGRESSION,
    "rank:pairwise": _REGRESSION,
    "rank:ndcg": _REGRESSION,
    "rank:map": _REGRESSION,
    "reg:logistic": _Objective(_log_odds, Link.OTHER, Link.OTHER),
    "reg:gamma": _LOG_LINK,
    "reg:tweedie": _LOG_LINK,
    "count:poisson": _LOG_LINK,
    "survival:cox": _LOG_LINK,
    "survival:aft": _LOG_LINK,
    "binary:logistic": _Objective(_log_odds, Link.LOG_ODDS_OR_LOGITS, Link.OTHER),
    "binary:logitraw": _Objective(_same, Link.LOG_ODDS_OR_LOGITS, Link.IDENTITY),
    "binary:hinge": _Objective(_same, Link.SCORES, Link.OTHER),
    "multi:softmax": _CLASSES,
    "multi:softprob": _CLASSES,
}


@dataclass(frozen=True)
class _Saved:
    """A model as XGBoost saves it."""

    learner: Mapping[str, Any]

    @classmethod
    def of(cls, booster: Any) -> _Saved:
        """Save a booster."""
        return cls(json.loads(bytes(booster.save_raw(raw_format="json")))["learner"])

    @property
    def has_trees(self) -> bool:
        """Whether the model has trees rather than linear functions."""
        return bool(self.learner["gradient_booster"]["name"] != "gblinear")

    @property
    def trees(self) -> Mapping[str, Any]:
        """The trees and their shared settings."""
        model: Mapping[str, Any] = self._boosted["model"]
        return model

    @property
    def tree_weights(self) -> list[float]:
        """The factors of the trees: those of DART, otherwise ones."""
        weights: list[float] = self.learner["gradient_booster"].get("weight_drop", [])
        return weights or [1.0] * len(self.trees["trees"])

    @property
    def _boosted(self) -> Mapping[str, Any]:
        """The part that holds the trees, which DART stores one level deeper."""
        boosted: Mapping[str, Any] = self.learner["gradient_booster"]
        return boosted.get("gbtree", boosted)

    def size(self, name: str) -> int:
        """Return a size of the model, such as the number of columns."""
        return int(self.learner["learner_model_param"].get(name, 0))

    @property
    def outputs(self) -> int:
        """The number of raw outputs."""
        return max(self.size("num_class"), self.size("num_target"), 1)

    @property
    def objective(self) -> _Objective:
        """What the training loss means for outputs."""
        name = self.learner["objective"]["name"]
        if name not in _OBJECTIVES:
            raise UnreadableTreesError(f"The base score of XGBoost's loss {name} is not known.")
        return _OBJECTIVES[name]

    @property
    def base(self) -> np.ndarray:
        """The base value of each raw output."""
        # A number in older versions, a list in newer ones.
        score = np.atleast_1d(np.array(json.loads(self.learner["learner_model_param"]["base_score"]), np.float32))
        with np.errstate(divide="ignore"):
            raw = self.objective.to_raw(score)
        return np.broadcast_to(raw, self.outputs).astype(np.float64)


def read_booster(booster: Any) -> TreeReading | None:
    """Read an XGBoost Booster, which predicts with all its trees."""
    saved = _Saved.of(booster)
    if not saved.has_trees:
        return None
    link = saved.objective.margins
    ask = partial(booster.inplace_predict, predict_type="margin", validate_features=False)
    return _read(saved, _only_classes(saved, link), ask)


def read_classifier(classifier: Any) -> TreeReading | None:
    """Read an XGBClassifier."""
    link = Link.OTHER
    if not classifier.__sklearn_is_fitted__():
        return None
    saved = _Saved.of(classifier.get_booster())
    if not saved.has_trees:
        return None
    if callable(classifier.objective):
        link = Link.SCORES
    elif saved.objective.margins in (Link.LOG_ODDS_OR_LOGITS, Link.SCORES):
        link = saved.objective.margins
    return _read_estimator(classifier, saved, _only_classes(saved, link))


def read_regressor(regressor: Any) -> TreeReading | None:
    """Read an XGBRegressor, an XGBRanker, or another XGBoost estimator that predicts numbers."""
    if not regressor.__sklearn_is_fitted__():
        return None
    saved = _Saved.of(regressor.get_booster())
    if not saved.has_trees:
        return None
    return _read_estimator(regressor, saved, saved.objective.predictions)


def _only_classes(saved: _Saved, link: Link) -> Link:
    """Return the link of margins, which do not belong to classes if there are several targets."""
    if saved.size("num_target") > 1 and link is not Link.IDENTITY:
        return Link.OTHER
    return link


def _read_estimator(estimator: Any, saved: _Saved, link: Link) -> TreeReading:
    """Read an estimator, which predicts with the trees up to the best iteration."""
    best = saved.learner["attributes"].get("best_iteration")
    iterations = None if best is None else int(best) + 1
    ask = partial(estimator.predict, output_margin=True)
    return _read(saved, link, ask, iterations, float(estimator.missing))


def _read(
    saved: _Saved, link: Link, ask: Callable[[Any], Any], iterations: int | None = None, missing: float = math.nan
) -> TreeReading:
    """Read the first iterations of a model, or all of them."""
    names = tuple(saved.learner.get("feature_names", ()))
    return TreeReading(_ensemble(saved, iterations, missing), names, link, ask, _rows_of)


def _rows_of(data: Any) -> np.ndarray:
    """Return rows as numbers; pandas categories become their own codes, as in XGBoost."""
    labels = {column: list(data.iloc[:, column].cat.categories) for column in category_columns(data)}
    return table_numbers(data, labels)


def _ensemble(saved: _Saved, iterations: int | None, missing: float) -> TreeEnsemble:
    """Return the trees of the first iterations."""
    model = saved.trees
    count = len(model["trees"])
    if iterations is not None:
        count = model["iteration_indptr"][iterations]
    trees = [
        _TreeReader(nodes, weight, missing).tree(output)
        for nodes, weight, output in zip(
            model["trees"][:count], saved.tree_weights[:count], model["tree_info"][:count], strict=True
        )
    ]
    return assemble(trees, saved.base, saved.size("num_feature"), _COMPARISON)


class _TreeReader:
    """One tree as XGBoost saves it."""

    def __init__(self, saved: Mapping[str, Any], weight: float, missing: float) -> None:
        self.left: Sequence[int] = saved["left_children"]
        self.right: Sequence[int] = saved["right_children"]
        self.columns: Sequence[int] = saved["split_indices"]
        # Numbers are saved with only as many digits as single precision needs.
        self.conditions: list[float] = np.array(saved["split_conditions"], np.float32).tolist()
        self.default_left: Sequence[int] = saved["default_left"]
        self.categories = _categories(saved)
        self.size = int(saved["tree_param"].get("size_leaf_vector", 1) or 1)
        self.vectors = _leaf_vectors(saved, self.size)
        self.weight = weight
        self.missing = missing

    def tree(self, output: int) -> Tree:
        """Return the tree. Nodes that were deleted by pruning cannot be reached and are left out."""
        nodes = NodeList(max(self.size, 1))
        waiting: list[tuple[int, tuple[Place, ...]]] = [(0, ROOT)]
        while waiting:
            node, places = waiting.pop()
            if len(nodes.columns) > 3 * len(self.left):
                raise UnreadableTreesError("A tree of XGBoost has a node that leads back to itself.")
            if self.left[node] == _NO_NODE:
                nodes.add_leaf(places, self._leaf_values(node))
            else:
                sides = self._add_split(nodes, node, places)
                waiting.append((self.right[node], sides.right))
                waiting.append((self.left[node], sides.left))
        return nodes.tree(output if self.size <= 1 else EVERY_OUTPUT)

    def _leaf_values(self, node: int) -> list[float]:
        """Return what a leaf adds to the outputs."""
        if self.vectors is None:
            return [self.weight * self.conditions[node]]
        values: list[float] = (self.weight * self.vectors[node]).tolist()
        return values

    def _add_split(self, nodes: NodeList, node: int, places: tuple[Place, ...]) -> Sides:
        """Add a split to the nodes."""
        missing_left = bool(self.default_left[node])
        column = self.columns[node]
        if node in self.categories:
            if not math.isnan(self.missing):
                raise UnreadableTreesError(
                    f"Splits by categories cannot be read if {self.missing:g} stands for missing values."
                )
            split = CategorySplit(self.categories[node], listed_go_left=False)
            return nodes.add_category_split(places, column, split, missing_left)
        threshold = self.conditions[node]
        if math.isnan(self.missing):
            return nodes.add_split(places, column, threshold, missing_left)
        missing = np.float32(self.missing)
        interval = Interval(float(missing), float(np.nextafter(missing, np.float32(np.inf))))
        return nodes.add_split_beside(places, column, threshold, missing_left, interval)


def _categories(saved: Mapping[str, Any]) -> dict[int, tuple[int, ...]]:
    """Return the categories that go right at each split by categories."""
    listed = saved.get("categories", ())
    return {
        node: tuple(listed[start : start + size])
        for node, start, size in zip(
            saved.get("categories_nodes", ()),
            saved.get("categories_segments", ()),
            saved.get("categories_sizes", ()),
            strict=True,
        )
    }


def _leaf_vectors(saved: Mapping[str, Any], size: int) -> np.ndarray | None:
    """Return the numbers of each node of a tree whose leaves hold several, or None for other trees."""
    if size <= 1:
        return None
    if "leaf_weights" not in saved:  # older versions store them for all nodes
        return np.array(saved["base_weights"], np.float64).reshape(-1, size)
    by_leaf = np.array(saved["leaf_weights"], np.float64).reshape(-1, size)
    # The right child of a leaf is its number among the leaves.
    is_leaf = np.array(saved["left_children"]) == _NO_NODE
    leaf_numbers = np.where(is_leaf, saved["right_children"], 0)
    vectors: np.ndarray = by_leaf[leaf_numbers]
    return vectors
