"""Ensembles of trees as arrays, whichever library fitted them.

A row is first turned into codes, one for each column: the number of the interval between thresholds in which the
value lies, or the number of its category. Codes are made in the precision in which the library compares. All later
decisions compare whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from absentia.errors import AbsentiaError
from absentia.trees.compiled import compiled

Codes: TypeAlias = np.ndarray  # whole numbers, rows × columns

# The code of a missing value.
MISSING = -1
# The code of a number that cannot be a category, such as a negative one.
NO_CATEGORY = -2
# The column of a node without a split: a leaf.
LEAF = -1
# The output number of a tree whose leaves hold a number for every output.
EVERY_OUTPUT = -1


class UnreadableTreesError(AbsentiaError):
    """An ensemble that cannot be read as trees; it can still be explained as a black box."""


@dataclass(frozen=True)
class CategorySplit:
    """A split by categories: those listed go one way, all others the other way."""

    categories: tuple[int, ...]
    listed_go_left: bool


@dataclass(frozen=True)
class Tree:
    """A tree as a library stores it, with one entry for each node; the first is the root."""

    columns: np.ndarray  # the column of each split, LEAF for a leaf
    thresholds: np.ndarray  # the threshold of each split by a number
    left: np.ndarray  # the children of each split
    right: np.ndarray
    missing_left: np.ndarray  # whether a missing value goes left
    values: np.ndarray  # nodes × numbers; only the values of leaves count
    output: int = EVERY_OUTPUT  # the output to which the tree adds, or all of them
    category_splits: Mapping[int, CategorySplit] = field(default_factory=dict)  # by node


@dataclass(frozen=True)
class Comparison:
    """How a library compares a value with a threshold."""

    goes_left: Literal["<", "<="]
    precision: type[np.floating]  # values are first rounded to this precision


class Nodes(NamedTuple):
    """The nodes of all trees of an ensemble."""

    column: np.ndarray  # LEAF for a leaf
    cut: np.ndarray  # codes below it go left
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    first_category: np.ndarray  # where the node's categories begin; −1 for a split by a number
    category_count: np.ndarray
    listed_left: np.ndarray  # whether the listed categories go left
    leaf: np.ndarray  # the number of the leaf, or −1
    categories: np.ndarray  # whether a category is listed, for all nodes one after another


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A sum of trees: each output is a base value plus the values of the leaves that a row reaches.

    Use `assemble` to make one.
    """

    nodes: Nodes
    roots: np.ndarray  # the first node of each tree
    tree_outputs: np.ndarray  # the output of each tree
    leaf_values: np.ndarray  # leaves × numbers
    leaf_trees: np.ndarray  # the tree of each leaf
    base: np.ndarray  # the base value of each output
    comparison: Comparison
    thresholds: tuple[np.ndarray, ...]  # the thresholds of each column, ascending
    categorical: np.ndarray  # whether a column is split by categories

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.thresholds)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return len(self.base)

    def codes(self, rows: np.ndarray) -> Codes:
        """Return the codes of rows of numbers."""
        if rows.ndim != 2 or rows.shape[1] != self.columns:
            raise UnreadableTreesError(
                f"x must have the {self.columns} columns of the trees. Got shape {rows.shape}."
            )
        codes = np.empty(rows.shape, np.int32)
        side: Literal["left", "right"] = "left" if self.comparison.goes_left == "<=" else "right"
        with np.errstate(over="ignore"):  # numbers too large for the precision become infinite, as in the library
            rounded = rows.astype(self.comparison.precision).astype(np.float64)
        for column, thresholds in enumerate(self.thresholds):
            values = rounded[:, column]
            if self.categorical[column]:
                codes[:, column] = _category_codes(values)
            else:
                codes[:, column] = np.searchsorted(thresholds, values, side=side)
                codes[np.isnan(values), column] = MISSING
        return codes

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the outputs of rows of numbers."""
        return self.outputs_of(self.codes(rows))

    def outputs_of(self, codes: Codes) -> np.ndarray:
        """Return the outputs of codes, rows × outputs."""
        return self.base + self._sum_leaves(find_leaves(self.nodes, self.roots, codes))

    def _sum_leaves(self, leaves: np.ndarray) -> np.ndarray:
        """Return the sums of leaf values, rows × outputs, given the leaf that each row reaches in each tree."""
        if self.leaf_values.shape[1] > 1 or self.outputs == 1:
            sums: np.ndarray = self.leaf_values[leaves].sum(1)
            return sums
        by_tree = self.leaf_values[leaves, 0]
        return np.stack([by_tree[:, self.tree_outputs == output].sum(1) for output in range(self.outputs)], axis=1)

    def leaf_weights(self, output_weights: np.ndarray) -> np.ndarray:
        """Return what each leaf adds to a weighted sum of the outputs."""
        if self.leaf_values.shape[1] > 1 or self.outputs == 1:
            weights: np.ndarray = self.leaf_values @ output_weights
            return weights
        output_of_leaf = self.tree_outputs[self.leaf_trees]
        return self.leaf_values[:, 0] * output_weights[output_of_leaf]

    @cached_property
    def weights_by_output(self) -> np.ndarray:
        """What each leaf adds to each output, leaves × outputs."""
        return np.stack([self.leaf_weights(weights) for weights in np.eye(self.outputs)], axis=1)

    @cached_property
    def depth(self) -> int:
        """The largest number of splits above a leaf."""
        return int(node_depths(self.nodes).max())

    def strength(self, leaf_weights: np.ndarray) -> float:
        """Return a bound on the sum of absolute weights that a row reaches: the scale of rounding errors."""
        largest = np.zeros(len(self.roots))
        np.maximum.at(largest, self.leaf_trees, np.abs(leaf_weights))
        return float(largest.sum())

    def largest_sums(self) -> np.ndarray:
        """Return a bound on each output's sum of absolute leaf values: the scale of its rounding errors."""
        strength = np.abs(self.leaf_values)
        largest = np.zeros((len(self.roots), strength.shape[1]))
        np.maximum.at(largest, self.leaf_trees, strength)
        return np.abs(self.base) + largest.sum(0)


def _category_codes(values: np.ndarray) -> np.ndarray:
    """Return categories as whole numbers; fractions are truncated, as in the libraries."""
    missing = np.isnan(values)
    is_category = (values > -1) & (values < np.iinfo(np.int32).max)
    codes = np.where(is_category, values, 0).astype(np.int32)
    codes[~is_category] = NO_CATEGORY
    codes[missing] = MISSING
    return codes


@compiled
def goes_left(nodes: Nodes, node: int, code: int) -> bool:
    """Return whether a code goes left at a node."""
    if code == MISSING:
        return bool(nodes.missing_left[node])
    if nodes.first_category[node] < 0:
        return bool(code < nodes.cut[node])
    listed = False
    if 0 <= code < nodes.category_count[node]:
        listed = bool(nodes.categories[nodes.first_category[node] + code])
    return listed == bool(nodes.listed_left[node])


@compiled
def find_leaves(nodes: Nodes, roots: np.ndarray, codes: Codes) -> np.ndarray:
    """Return the leaf of each tree that each row reaches."""
    leaves = np.empty((len(codes), len(roots)), np.int32)
    for row in range(len(codes)):
        for tree in range(len(roots)):
            node = roots[tree]
            while nodes.column[node] >= 0:
                if goes_left(nodes, node, codes[row, nodes.column[node]]):
                    node = nodes.left[node]
                else:
                    node = nodes.right[node]
            leaves[row, tree] = nodes.leaf[node]
    return leaves


@compiled
def node_depths(nodes: Nodes) -> np.ndarray:
    """Return the number of splits above each node; children come after their parents."""
    depth = np.zeros(len(nodes.column), np.int32)
    for node in range(len(nodes.column)):
        if nodes.column[node] >= 0:
            depth[nodes.left[node]] = depth[node] + 1
            depth[nodes.right[node]] = depth[node] + 1
    return depth


def assemble(trees: Sequence[Tree], base: np.ndarray, columns: int, comparison: Comparison) -> TreeEnsemble:
    """Join trees into an ensemble; raise an error if they do not fit together."""
    if not trees:
        raise UnreadableTreesError("The model must have at least one tree.")
    if not np.isfinite(base).all():
        raise UnreadableTreesError("The base score of the model must be finite.")
    joined = _join(trees)
    _check_columns(joined.column, columns)
    _check_children(joined)
    listing = _list_categories(trees, joined.roots, len(joined.column))
    thresholds, cut = _cuts(joined.column, joined.threshold, listing.first, columns)
    is_leaf = joined.column == LEAF
    nodes = Nodes(
        column=joined.column,
        cut=cut,
        left=joined.left.astype(np.int32),
        right=joined.right.astype(np.int32),
        missing_left=joined.missing_left,
        first_category=listing.first,
        category_count=listing.length,
        listed_left=listing.listed_left,
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        categories=listing.listed,
    )
    return TreeEnsemble(
        nodes=nodes,
        roots=joined.roots,
        tree_outputs=np.array([tree.output for tree in trees], np.int32),
        leaf_values=np.concatenate([tree.values[tree.columns == LEAF] for tree in trees]).astype(np.float64),
        leaf_trees=joined.tree[is_leaf],
        base=np.asarray(base, np.float64),
        comparison=comparison,
        thresholds=thresholds,
        categorical=_categorical_columns(joined.column, listing.first, columns),
    )


class _JoinedTrees(NamedTuple):
    """The nodes of all trees one after another, with one entry for each node except for the roots."""

    column: np.ndarray
    threshold: np.ndarray
    left: np.ndarray  # numbers among the nodes of all trees, not yet checked
    right: np.ndarray
    missing_left: np.ndarray
    tree: np.ndarray  # the number of the node's tree
    end: np.ndarray  # the number after the last node of the tree
    roots: np.ndarray  # the first node of each tree


def _join(trees: Sequence[Tree]) -> _JoinedTrees:
    """Write the nodes of all trees one after another."""
    sizes = np.array([len(tree.columns) for tree in trees])
    ends = np.cumsum(sizes)
    roots = (ends - sizes).astype(np.int32)
    root_of_node = np.repeat(roots, sizes)
    return _JoinedTrees(
        column=np.concatenate([tree.columns for tree in trees]).astype(np.int32),
        threshold=np.concatenate([tree.thresholds for tree in trees]),
        left=np.concatenate([tree.left for tree in trees]).astype(np.int64) + root_of_node,
        right=np.concatenate([tree.right for tree in trees]).astype(np.int64) + root_of_node,
        missing_left=np.concatenate([tree.missing_left for tree in trees]).astype(np.uint8),
        tree=np.repeat(np.arange(len(trees), dtype=np.int32), sizes),
        end=np.repeat(ends, sizes),
        roots=roots,
    )


def _check_columns(column: np.ndarray, columns: int) -> None:
    """Raise an error for a split by a column that the model does not have."""
    if column.max() >= columns:
        raise UnreadableTreesError(f"Trees must split one of {columns} columns. Got column {column.max()}.")


def _check_children(joined: _JoinedTrees) -> None:
    """Raise an error unless the children of each split come after it in the same tree, so that every walk ends."""
    splits = np.flatnonzero(joined.column != LEAF)
    for children in (joined.left[splits], joined.right[splits]):
        if (children <= splits).any() or (children >= joined.end[splits]).any():
            raise UnreadableTreesError("The children of a node must come after it, in the same tree.")


def _categorical_columns(column: np.ndarray, first_category: np.ndarray, columns: int) -> np.ndarray:
    """Return which columns are split by categories; raise an error for one that is split by numbers, too."""
    by_categories = first_category >= 0
    by_number = (column != LEAF) & ~by_categories
    categorical = np.zeros(columns, bool)
    categorical[column[by_categories]] = True
    if categorical[column[by_number]].any():
        raise UnreadableTreesError(
            "A column must be split by numbers or by categories. Got one that is split by both."
        )
    return categorical


class _Listing(NamedTuple):
    """The categories of all splits."""

    first: np.ndarray  # where the categories of each node begin
    length: np.ndarray
    listed_left: np.ndarray
    listed: np.ndarray  # whether a category is listed, for all nodes one after another


def _list_categories(trees: Sequence[Tree], roots: np.ndarray, node_count: int) -> _Listing:
    """Write the categories of all splits one after another."""
    first = np.full(node_count, -1, np.int32)
    lengths = np.zeros(node_count, np.int32)
    listed_left = np.zeros(node_count, np.uint8)
    parts: list[np.ndarray] = []
    total = 0
    for root, tree in zip(roots.tolist(), trees, strict=True):
        for node, split in tree.category_splits.items():
            listed = np.zeros(max(split.categories, default=0) + 1, np.uint8)
            listed[list(split.categories)] = 1
            first[root + node] = total
            lengths[root + node] = len(listed)
            listed_left[root + node] = split.listed_go_left
            parts.append(listed)
            total += len(listed)
    return _Listing(first, lengths, listed_left, np.concatenate([*parts, np.zeros(1, np.uint8)]))


def _cuts(
    column: np.ndarray, threshold: np.ndarray, first_category: np.ndarray, columns: int
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return the thresholds of each column in ascending order, and the first code that goes right at each split."""
    cut = np.zeros(len(column), np.int32)
    thresholds = []
    for number in range(columns):
        splits = np.flatnonzero((column == number) & (first_category < 0))
        values, places = np.unique(threshold[splits].astype(np.float64), return_inverse=True)
        thresholds.append(values)
        cut[splits] = places + 1
    return tuple(thresholds), cut
