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
    waiting = _new_waiting(trees)
    level_count = levels.codes.shape[1]
    count = first_values.shape[1]
    values = np.empty((len(samples), level_count, count))
    for row in range(len(samples)):
        owner = owners[row]
        own_bits = bits[row % len(bits)]
        leaf_weights = weights[kinds[row]]
        first_pair = Pair(samples[row], levels.codes[owner, 0], trees.player)
        for block in range(bits.shape[1]):
            first = block * _TOGETHER
            here = values[row, :, first : first + _TOGETHER]
            here[0] = first_values[row, first : first + _TOGETHER]
            # What each tree adds, for trees that have changed.
            of_trees = np.zeros((len(trees.roots), here.shape[1], 1))
            has_changed = np.zeros(len(trees.roots), np.bool_)
            for level in range(1, level_count):
                here[level] = here[level - 1]
                pair = Pair(samples[row], levels.codes[owner, level], trees.player)
                for tree in range(len(trees.roots)):
                    if not levels.changed[owner, level, tree]:
                        continue
                    own = of_trees[tree]
                    if not has_changed[tree]:
                        _add_tree(trees, tree, first_pair, own_bits[block], len(own), leaf_weights, waiting, own)
                        has_changed[tree] = True
                    here[level] -= own[:, 0]
                    own[:] = 0.0
                    _add_tree(trees, tree, pair, own_bits[block], len(own), leaf_weights, waiting, own)
                    here[level] += own[:, 0]
    return values
