"""The trees of CatBoost, read from its saved models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from absentia.trees.ensemble import Comparison, Tree, TreeEnsemble, UnreadableTreesError, assemble
from absentia.trees.node_list import ROOT, NodeList, Place, Sides
from absentia.trees.tree_reading import Link, TreeReading

_COMPARISON = Comparison("<=", np.float32)

# Losses of classifiers whose raw outputs are log-odds or logits, or scores of classes.
_LOGITS = ("Logloss", "CrossEntropy", "MultiClass")
_SCORES = ("MultiClassOneVsAll",)
# Losses of regressors that do not predict the raw output itself but, for example, its exponential.
_TRANSFORMED = ("Poisson", "Tweedie", "LogLinQuantile", "RMSEWithUncertainty")


def read_classifier(classifier: Any) -> TreeReading | None:
    """Read a CatBoostClassifier."""
    if not classifier.is_fitted():
        return None
    loss = _loss(classifier)
    link = Link.OTHER
    if loss in _LOGITS:
        link = Link.LOG_ODDS_OR_LOGITS
    elif loss in _SCORES:
        link = Link.SCORES
    return _read(classifier, link)


def read_regressor(regressor: Any) -> TreeReading | None:
    """Read a CatBoostRegressor."""
    if not regressor.is_fitted():
        return None
    link = Link.OTHER if _loss(regressor) in _TRANSFORMED else Link.IDENTITY
    return _read(regressor, link)


def read_raw_model(model: Any) -> TreeReading | None:
    """Read a CatBoostRanker or a plain CatBoost model, which predict their raw outputs: of classes, their margins."""
    if not model.is_fitted():
        return None
    link = Link.IDENTITY
    if _loss(model) in _LOGITS:
        link = Link.LOG_ODDS_OR_LOGITS
    elif np.size(model.classes_) > 0:
        link = Link.SCORES
    return _read(model, link)


def _loss(model: Any) -> str:
    """Return the name of the training loss without parameters: Quantile for Quantile:alpha=0.5."""
    return str(model.get_all_params().get("loss_function", "")).partition(":")[0]


def _read(model: Any, link: Link) -> TreeReading:
    """Read a fitted model."""
    names = tuple(str(name) for name in model.feature_names_)
    given_by_catboost = tuple(str(number) for number in range(len(names)))
    columns = () if names == given_by_catboost else names
    ask = partial(model.predict, prediction_type="RawFormulaVal")
    return TreeReading(_ensemble(_saved(model), len(names)), columns, link, ask)


def _saved(model: Any) -> dict[str, Any]:
    """Return the model as CatBoost saves it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        saved: dict[str, Any] = json.loads(path.read_text())
    return saved


def _ensemble(saved: Mapping[str, Any], columns: int) -> TreeEnsemble:
    """Return the trees of a saved model."""
    scale, bias = saved["scale_and_bias"]
    base = np.atleast_1d(np.array(bias, np.float64))
    reader = _TreeReader(saved["features_info"].get("float_features", ()), len(base), float(scale))
    if "oblivious_trees" in saved:
        trees = [reader.symmetric_tree(tree["splits"], tree["leaf_values"]) for tree in saved["oblivious_trees"]]
    else:
        trees = [reader.nested_tree(tree) for tree in saved["trees"]]
    return assemble(trees, base, columns, _COMPARISON)


class _TreeReader:
    """What the trees of a model share: numeric columns, and the scaling of leaf values."""

    def __init__(self, features: Sequence[Mapping[str, Any]], outputs: int, scale: float) -> None:
        self.columns = {feature["feature_index"]: int(feature["flat_feature_index"]) for feature in features}
        # The others go left, as the smallest numbers do.
        self.missing_right = {
            feature["feature_index"] for feature in features if feature["nan_value_treatment"] == "AsTrue"
        }
        self.outputs = outputs
        self.scale = scale

    def symmetric_tree(self, splits: Sequence[Mapping[str, Any]], leaf_values: Sequence[float]) -> Tree:
        """Return a tree with one split for each level; the first split sets the lowest bit of the leaf's number."""
        values = self.scale * np.array(leaf_values, np.float64).reshape(2 ** len(splits), self.outputs)
        nodes = NodeList(self.outputs)
        waiting: list[tuple[int, int, tuple[Place, ...]]] = [(0, 0, ROOT)]
        while waiting:
            level, leaf, places = waiting.pop()
            if level == len(splits):
                nodes.add_leaf(places, values[leaf].tolist())
                continue
            sides = self._add_split(nodes, splits[level], places)
            waiting.append((level + 1, leaf + 2**level, sides.right))
            waiting.append((level + 1, leaf, sides.left))
        return nodes.tree()

    def nested_tree(self, root: Mapping[str, Any]) -> Tree:
        """Return a tree whose nodes have splits of their own, grown by leaves or by depth."""
        nodes = NodeList(self.outputs)
        waiting: list[tuple[Mapping[str, Any], tuple[Place, ...]]] = [(root, ROOT)]
        while waiting:
            node, places = waiting.pop()
            if "split" not in node:
                nodes.add_leaf(places, (self.scale * np.atleast_1d(node["value"])).tolist())
                continue
            sides = self._add_split(nodes, node["split"], places)
            waiting.append((node["right"], sides.right))
            waiting.append((node["left"], sides.left))
        return nodes.tree()

    def _add_split(self, nodes: NodeList, split: Mapping[str, Any], places: tuple[Place, ...]) -> Sides:
        """Add a split by a number; splits by categories raise an error, because CatBoost saves only their hashes."""
        if split["split_type"] != "FloatFeature":
            raise UnreadableTreesError("CatBoost's splits by categories cannot be read: it saves hashes of them.")
        feature = split["float_feature_index"]
        border = float(np.float32(split["border"]))
        return nodes.add_split(places, self.columns[feature], border, feature not in self.missing_right)
