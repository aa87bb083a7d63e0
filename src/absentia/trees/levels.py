"""Levels: rows that differ in few columns, one after the other, and the trees that tell each from the one before.

A search for better values of one column tries them in ascending order. From one value to the next, only the trees
that have a threshold between them change, and everything that is a sum over trees is updated by these alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes, Nodes, goes_left


class PlayedTrees(NamedTuple):
    """An ensemble, and the players of its columns."""

    nodes: Nodes
    roots: np.ndarray
    player: np.ndarray  # of each column; −1 for columns that are always present
    keys: np.ndarray  # of each player: random numbers, by which sets are told apart


class Levels(NamedTuple):
    """The levels of each owner."""

    codes: Codes  # owners × levels × columns
    changed: np.ndarray  # owners × levels × trees: whether a tree may give another value than at the level before


@compiled
def find_changes(nodes: Nodes, roots: np.ndarray, codes: Codes) -> np.ndarray:
    """Return which trees may change from one level to the next; at the first level none does."""
    owner_count, level_count, _ = codes.shape
    changed = np.zeros((owner_count, level_count, len(roots)), np.bool_)
    for owner in range(owner_count):
        for level in range(1, level_count):
            before = codes[owner, level - 1]
            after = codes[owner, level]
            differs = before != after
            for tree in range(len(roots)):
                end = roots[tree + 1] if tree + 1 < len(roots) else len(nodes.column)
                changed[owner, level, tree] = _tells_apart(nodes, roots[tree], end, before, after, differs)
    return changed


@compiled
def _tells_apart(nodes: Nodes, root: int, end: int, before: Codes, after: Codes, differs: np.ndarray) -> bool:
    """Return whether a split of a tree parts two rows."""
    for node in range(root, end):
        column = nodes.column[node]
        if (
            column >= 0
            and differs[column]
            and goes_left(nodes, node, before[column]) != goes_left(nodes, node, after[column])
        ):
            return True
    return False
