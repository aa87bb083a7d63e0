"""Trees that are written node by node, parents before children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from absentia.trees.ensemble import EVERY_OUTPUT, LEAF, CategorySplit, Tree


class Place(NamedTuple):
    """A side of a split that still needs a node."""

    node: int
    is_left: bool


class Sides(NamedTuple):
    """The places of the nodes on both sides of a split."""

    left: tuple[Place, ...]
    right: tuple[Place, ...]


class Interval(NamedTuple):
    """Values that go the way of missing ones: those between the lower and the upper threshold."""

    low: float
    high: float


# The places of a root.
ROOT: tuple[Place, ...] = ()


@dataclass
class NodeList:
    """The nodes of a tree while it is written.

    A node may have several places, which then all belong to splits of the same column.
    """

    outputs: int  # how many numbers a leaf holds
    columns: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    values: list[Sequence[float]] = field(default_factory=list)
    category_splits: dict[int, CategorySplit] = field(default_factory=dict)

    def add_leaf(self, places: Sequence[Place], values: Sequence[float]) -> None:
        """Add a leaf."""
        self._add(places, LEAF, 0.0, False, values)

    def add_split(self, places: Sequence[Place], column: int, threshold: float, missing_left: bool) -> Sides:
        """Add a split by a number."""
        node = self._add(places, column, threshold, missing_left, [0.0] * self.outputs)
        return Sides((Place(node, True),), (Place(node, False),))

    def add_category_split(
        self, places: Sequence[Place], column: int, split: CategorySplit, missing_left: bool
    ) -> Sides:
        """Add a split by categories."""
        sides = self.add_split(places, column, 0.0, missing_left)
        self.category_splits[sides.left[0].node] = split
        return sides

    def add_split_beside(
        self, places: Sequence[Place], column: int, threshold: float, missing_left: bool, interval: Interval
    ) -> Sides:
        """Add a split by a number in which an interval of values goes the way of missing values."""
        low, high = interval
        if missing_left and threshold < low:
            return self._add_alternating(places, column, (threshold, low, high), missing_left)
        if not missing_left and threshold > high:
            return self._add_alternating(places, column, (low, high, threshold), missing_left)
        # If the interval overlaps the side of missing values, it is enough to move the threshold to its end.
        if missing_left:
            moved = max(threshold, high)
        else:
            moved = min(threshold, low)
        return self.add_split(places, column, moved, missing_left)

    def tree(self, output: int = EVERY_OUTPUT) -> Tree:
        """Return the tree."""
        return Tree(
            columns=np.array(self.columns, np.int32),
            thresholds=np.array(self.thresholds, np.float64),
            left=np.array(self.left, np.int32),
            right=np.array(self.right, np.int32),
            missing_left=np.array(self.missing_left, bool),
            values=np.array(self.values, np.float64).reshape(len(self.columns), self.outputs),
            output=output,
            category_splits=dict(self.category_splits),
        )

    def _add(
        self, places: Sequence[Place], column: int, threshold: float, missing_left: bool, values: Sequence[float]
    ) -> int:
        """Add a node at its places."""
        node = len(self.columns)
        for place in places:
            children = self.left if place.is_left else self.right
            children[place.node] = node
        self.columns.append(column)
        self.thresholds.append(threshold)
        self.left.append(-1)
        self.right.append(-1)
        self.missing_left.append(missing_left)
        self.values.append(values)
        return node

    def _add_alternating(
        self, places: Sequence[Place], column: int, thresholds: tuple[float, float, float], missing_left: bool
    ) -> Sides:
        """Add three splits: values go left up to the first threshold, then right, left, and right again."""
        first = self.add_split(places, column, thresholds[0], missing_left)
        # Missing values reach the second split only if they go right at the first; they then end up on the right.
        second = self.add_split(first.right, column, thresholds[1], True)
        third = self.add_split(second.right, column, thresholds[2], missing_left)
        return Sides(left=first.left + third.left, right=second.left + third.right)
