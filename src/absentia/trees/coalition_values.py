"""Values of drawn coalitions: many coalitions of a sample walk through a tree together.

At a split where the sample and its stand-in part, the coalitions with the split's player go one way and the others
the other way. A set of coalitions is a whole number with a bit for each, so each node is visited once at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes, goes_left
from absentia.trees.levels import Levels, PlayedTrees
from absentia.trees.paths import Pair

# The coalitions that walk together: one for each bit of a whole number, without its sign.
_TOGETHER = 62


class _Waiting(NamedTuple):
    """Nodes that are still to be visited, with the coalitions that reach them."""

    nodes: np.ndarray
    coalitions: np.ndarray


def bits_of(coalitions: np.ndarray) -> np.ndarray:
    """Return the coalitions that each player is in, as bits: … × blocks × players.

    ``coalitions`` are … × coalitions × players.
    """
    count = coalitions.shape[-2]
    blocks = []
    for first in range(0, count, _TOGETHER):
        block = coalitions[..., first : first + _TOGETHER, :]
        places = 2 ** np.arange(block.shape[-2], dtype=np.int64)
        blocks.append((block * places[:, None]).sum(-2, dtype=np.int64))
    return np.stack(blocks, axis=-2)


@compiled
def _add_tree(
    trees: PlayedTrees,
    tree: int,
    pair: Pair,
    bits: np.ndarray,
    count: int,
    leaf_weights: np.ndarray,
    waiting: _Waiting,
    values: np.ndarray,
) -> None:
    """Add the leaves of a tree that each of a block of coalitions reaches, for each column of weights."""
    nodes = trees.nodes
    waiting.nodes[0] = trees.roots[tree]
    waiting.coalitions[0] = (np.int64(1) << count) - 1
    length = 1
    while length > 0:
        length -= 1
        node = waiting.nodes[length]
        here = waiting.coalitions[length]
        while nodes.column[node] >= 0:
            column = nodes.column[node]
            player = trees.player[column]
            left = goes_left(nodes, node, pair.sample[column])
            if player >= 0 and left != goes_left(nodes, node, pair.stand_in[column]):
                without = here & ~bits[player]
                here = here & bits[player]
                if here == 0:
                    left = not left
                    here = without
                elif without != 0:
                    waiting.nodes[length] = nodes.right[node] if left else nodes.left[node]
                    waiting.coalitions[length] = without
                    length += 1
            node = nodes.left[node] if left else nodes.right[node]
        leaf = nodes.leaf[node]
        for coalition in range(count):
            if (here >> coalition) & 1:
                for output in range(leaf_weights.shape[1]):
                    values[coalition, output] += leaf_weights[leaf, output]


@compiled
def _new_waiting(trees: PlayedTrees) -> _Waiting:
    """Return an empty list of nodes, as long as the longest that a walk can need."""
    longest = min(len(trees.nodes.column), _TOGETHER) + 1
    return _Waiting(np.empty(longest, np.int32), np.empty(longest, np.int64))


@compiled
def values_of_pairs(
    trees: PlayedTrees,
    samples: Codes,
    stand_ins: Codes,
    bits: np.ndarray,
    count: int,
    weights: np.ndarray,
    kinds: np.ndarray,
) -> np.ndarray:
    """Return the sums of weights that coalitions reach: pairs × coalitions × outputs.

    ``bits`` are shared or each pair's own, (pairs or 1) × blocks × players. ``weights`` are kinds × leaves × outputs.
    """
    waiting = _new_waiting(trees)
    values = np.zeros((len(samples), count, weights.shape[2]))
    for row in range(len(samples)):
        pair = Pair(samples[row], stand_ins[row], trees.player)
        own_bits = bits[row % len(bits)]
        for block in range(bits.shape[1]):
            first = block * _TOGETHER
            here = values[row, first : first + _TOGETHER]
            for tree in range(len(trees.roots)):
                _add_tree(trees, tree, pair, own_bits[block], len(here), weights[kinds[row]], waiting, here)
    return values


class _WaitingLevels(NamedTuple):
    """Nodes that are still to be visited, with the coalitions and levels that reach them."""

    nodes: np.ndarray
    coalitions: np.ndarray
    levels: np.ndarray


@compiled
def _wait(waiting: _WaitingLevels, length: int, node: int, coalitions: np.int64, levels: np.int64) -> int:
    """Remember a node; return how many are waiting now."""
    waiting.nodes[length] = node
    waiting.coalitions[length] = coalitions
    waiting.levels[length] = levels
    return length + 1


@compiled
def _add_changes(
    trees: PlayedTrees,
    tree: int,
    sample: Codes,
    left_levels: np.ndarray,
    bits: np.ndarray,
    leaf_weights: np.ndarray,
    waiting: _WaitingLevels,
    changes: np.ndarray,
) -> None:
    """Add what changes from each level to the next to the values of a block of coalitions: levels × coalitions."""
    level_count, count = changes.shape
    every_level = (np.int64(1) << level_count) - 1
    length = _wait(waiting, 0, trees.roots[tree], (np.int64(1) << count) - 1, every_level)
    while length > 0:
        length -= 1
        node = waiting.nodes[length]
        here = waiting.coalitions[length]
        levels = waiting.levels[length]
        while trees.nodes.column[node] >= 0:
            going_left = levels & left_levels[node]
            node, here, levels, length = _step(trees, node, sample, here, levels, going_left, bits, waiting, length)
        if levels != every_level:
            _add_leaf(leaf_weights[trees.nodes.leaf[node], 0], here, levels, changes)


@compiled
def _step(
    trees: PlayedTrees,
    node: int,
    sample: Codes,
    here: np.int64,
    levels: np.int64,
    going_left: np.int64,
    bits: np.ndarray,
    waiting: _WaitingLevels,
    length: int,
) -> tuple[int, np.int64, np.int64, int]:
    """Pass a split: return the next node, the coalitions and levels that go there, and how many nodes wait now."""
    nodes = trees.nodes
    column = nodes.column[node]
    player = trees.player[column]
    left = goes_left(nodes, node, sample[column])
    way_of_sample = nodes.left[node] if left else nodes.right[node]
    way_apart = nodes.right[node] if left else nodes.left[node]
    with_sample = going_left if left else levels & ~going_left
    apart = levels & ~with_sample
    without = here & ~bits[player] if player >= 0 else np.int64(0)
    if apart == 0 or without == 0:
        return way_of_sample, here, levels, length
    with_player = here & ~without
    if with_player == 0:
        if with_sample == 0:
            return way_apart, here, levels, length
        return way_of_sample, here, with_sample, _wait(waiting, length, way_apart, without, apart)
    length = _wait(waiting, length, way_apart, without, apart)
    if with_sample != 0:
        length = _wait(waiting, length, way_of_sample, without, with_sample)
    return way_of_sample, with_player, levels, length


@compiled
def _add_leaf(weight: float, coalitions: np.int64, levels: np.int64, changes: np.ndarray) -> None:
    """Add a leaf where levels begin to reach it, and take it out where they cease to."""
    level_count, count = changes.shape
    for level in range(1, level_count):
        sign = ((levels >> level) & 1) - ((levels >> (level - 1)) & 1)
        if sign == 0:
            continue
        for coalition in range(count):
            if (coalitions >> coalition) & 1:
                changes[level, coalition] += sign * weight


@compiled
def scan_values(
    trees: PlayedTrees,
    samples: Codes,
    levels: Levels,
    owners: np.ndarray,
    bits: np.ndarray,
    first_values: np.ndarray,
    weights: np.ndarray,
    kinds: np.ndarray,
) -> np.ndarray:
    """Return sums of weights while the levels of each pair's owner stand in: pairs × levels × coalitions.

    ``first_values`` are those at the first level, pairs × coalitions. ``weights`` are kinds × leaves × 1.
    """
    node_count = len(trees.nodes.column) + 1
    waiting = _WaitingLevels(
        np.empty(node_count, np.int32), np.empty(node_count, np.int64), np.empty(node_count, np.int64)
    )
    level_count = levels.codes.shape[1]
    values = np.zeros((len(samples), level_count, first_values.shape[1]))
    for row in range(len(samples)):
        owner = owners[row]
        leaf_weights = weights[kinds[row]]
        for block in range(bits.shape[1]):
            own_bits = bits[row % len(bits), block]
            first = block * _TOGETHER
            changes = values[row, :, first : first + _TOGETHER]
            for tree in range(len(trees.roots)):
                if levels.told_apart[owner, tree]:
                    _add_changes(
                        trees, tree, samples[row], levels.left[owner], own_bits, leaf_weights, waiting, changes
                    )
        values[row, 0] = first_values[row]
        for level in range(1, level_count):
            values[row, level] += values[row, level - 1]
    return values
