"""The trees of scikit-learn's histogram gradient boosting."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from absentia.trees.ensemble import LEAF, CategorySplit, Comparison, Tree, UnreadableTreesError, assemble
from absentia.trees.sklearn_trees import names_of_columns, with_names
from absentia.trees.table_numbers import table_numbers
from absentia.trees.tree_reading import Link, TreeReading

_COMPARISON = Comparison("<=", np.float64)
# Losses of regressors that predict the raw output, and its exponential.
_IDENTITY_LOSSES = ("squared_error", "absolute_error", "quantile")
_LOG_LOSSES = ("poisson", "gamma")
# The bits in a word of a set of categories.
_WORD = 32
# Larger categories raise an error, because the lists of categories would be too long.
_LARGEST_CATEGORY = 1_000_000


class _Columns(NamedTuple):
    """How the columns of the trees are made from those of the rows."""

    numbers: np.ndarray  # for each column of the trees, the column of the rows
    categories: dict[int, np.ndarray]  # for each column of the trees, the number of each category in the rows
    labels: dict[int, list[Any]]  # for each column of the rows, the categories that are not numbers


def read_histogram_boosting(booster: Any) -> TreeReading | None:
    """Read a histogram gradient boosting classifier or regressor."""
    if not hasattr(booster, "_predictors"):
        return None
    columns = _columns(booster)
    trees = [
        _tree(predictor, output, columns) for stage in booster._predictors for output, predictor in enumerate(stage)
    ]
    base = np.asarray(booster._baseline_prediction, np.float64).reshape(-1)
    ensemble = assemble(trees, base, int(booster.n_features_in_), _COMPARISON)
    link, ask = _link(booster)
    rows_of = partial(table_numbers, labels=columns.labels)
    return TreeReading(ensemble, names_of_columns(booster), link, ask, rows_of)


def _link(booster: Any) -> tuple[Link, partial[Any]]:
    """Return the link, and the function that computes the raw outputs."""
    if hasattr(booster, "classes_"):
        return Link.LOG_ODDS_OR_LOGITS, partial(with_names, booster, booster.decision_function)
    if booster.loss in _IDENTITY_LOSSES:
        return Link.IDENTITY, partial(with_names, booster, booster.predict)
    if booster.loss in _LOG_LOSSES:
        return Link.LOG, partial(_log_prediction, booster)
    raise UnreadableTreesError(f"The loss {booster.loss!r} of histogram gradient boosting is not known.")


def _log_prediction(booster: Any, data: Any) -> np.ndarray:
    """Return the logarithm of the predictions."""
    logarithm: np.ndarray = np.log(with_names(booster, booster.predict, data))
    return logarithm


def _columns(booster: Any) -> _Columns:
    """Return how rows become the columns of the trees: categories are encoded and come first."""
    if booster.is_categorical_ is None:
        return _Columns(np.arange(booster.n_features_in_), {}, {})
    categorical = np.flatnonzero(booster.is_categorical_)
    numeric = np.flatnonzero(~booster.is_categorical_)
    encoder = booster._preprocessor.named_transformers_["encoder"]
    categories = {column: _category_numbers(labels) for column, labels in enumerate(encoder.categories_)}
    labels = {
        int(number): [label for label in fitted if label == label]  # without NaN, which comes last
        for number, fitted in zip(categorical, encoder.categories_, strict=True)
        if not _are_numbers(fitted)
    }
    return _Columns(np.concatenate([categorical, numeric]), categories, labels)


def _are_numbers(labels: np.ndarray) -> bool:
    """Return whether categories are numbers or booleans."""
    return labels.dtype.kind in "biuf"


def _category_numbers(labels: np.ndarray) -> np.ndarray:
    """Return the numbers that stand for categories in rows: the categories themselves, or positions in their list."""
    if not _are_numbers(labels):
        return np.arange(len(labels))
    numbers = labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels
    is_category = (numbers >= 0) & (numbers <= _LARGEST_CATEGORY) & (numbers == np.floor(numbers))
    if not is_category.all():
        raise UnreadableTreesError(
            f"Categories must be whole numbers from 0 to {_LARGEST_CATEGORY}. Got {numbers[~is_category][0]:g}."
        )
    return numbers.astype(int)


def _tree(predictor: Any, output: int, columns: _Columns) -> Tree:
    """Return the tree of a predictor."""
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    column = np.where(is_leaf, 0, nodes["feature_idx"])
    category_splits = {
        int(node): _category_split(predictor, nodes[node], columns)
        for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf)
    }
    return Tree(
        columns=np.where(is_leaf, LEAF, columns.numbers[column]),
        thresholds=nodes["num_threshold"],
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        values=nodes["value"][:, None],
        output=output,
        category_splits=category_splits,
    )


def _category_split(predictor: Any, node: Any, columns: _Columns) -> CategorySplit:
    """Return a split by categories. Unknown ones go with missing values, so the categories that do not are listed."""
    words = predictor.raw_left_cat_bitsets[node["bitset_idx"]]
    numbers = columns.categories[int(node["feature_idx"])]
    codes = np.arange(len(numbers))
    goes_left = (words[codes // _WORD] >> (codes % _WORD).astype(np.uint32)) & 1 == 1
    listed_go_left = not node["missing_go_to_left"]
    listed = numbers[goes_left == listed_go_left]
    return CategorySplit(tuple(listed.tolist()), listed_go_left)
