"""Levels: rows that differ in few columns, which a search tries for one half of a pair.

All levels walk through a tree together, and part only at splits that tell them apart. A set of levels is a whole
number with a bit for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes, Nodes, goes_left

# The maximum number of levels that walk together: one for each bit of a whole number, without its sign.
MOST_LEVELS = 62


class PlayedTrees(NamedTuple):
    """An ensemble, and the players of its columns."""

    nodes: Nodes
    roots: np.ndarray
    player: np.ndarray  # of each column; −1 for columns that are always present
    keys: np.ndarray  # of each player: random numbers, by which sets are told apart


class Levels(NamedTuple):
    """The levels of each owner."""

    codes: Codes  # owners × levels × columns
    left: np.ndarray  # owners × nodes: the levels that go left at each split, as bits
    told_apart: np.ndarray  # owners × trees: whether a split of the tree parts levels


@compiled
def find_levels(nodes: Nodes, roots: np.ndarray, codes: Codes) -> Levels:
    """Return where levels go left, and which trees tell them apart; ``codes`` are owners × levels × columns."""
    owner_count = len(codes)
    left = np.zeros((owner_count, len(nodes.column)), np.int64)
    told_apart = np.zeros((owner_count, len(roots)), np.bool_)
    every_level = (np.int64(1) << codes.shape[1]) - 1
    for owner in range(owner_count):
        differs = _columns_that_differ(codes[owner])
        for tree in range(len(roots)):
            end = roots[tree + 1] if tree + 1 < len(roots) else len(nodes.column)
            for node in range(roots[tree], end):
                column = nodes.column[node]
                if column >= 0:
                    left[owner, node] = _levels_going_left(nodes, node, codes[owner, :, column], differs[column])
                    told_apart[owner, tree] |= 0 < left[owner, node] < every_level
    return Levels(codes, left, told_apart)


@compiled
def _columns_that_differ(codes: Codes) -> np.ndarray:
    """Return in which columns some levels differ from the first."""
    differs = np.zeros(codes.shape[1], np.bool_)
    for level in range(1, len(codes)):
        differs |= codes[level] != codes[0]
    return differs


@compiled
def _levels_going_left(nodes: Nodes, node: int, codes: Codes, differ: bool) -> np.int64:
    """Return the levels that go left at a split as bits, given their codes of its column and whether these differ."""
    if not differ:
        every_level = (np.int64(1) << len(codes)) - 1
        return every_level if goes_left(nodes, node, codes[0]) else np.int64(0)
    going_left = np.int64(0)
    for level in range(len(codes)):
        if goes_left(nodes, node, codes[level]):
            going_left |= np.int64(1) << level
    return going_left
