"""Sums of absolute interactions, Σ|U(S)|, straight from the leaves.

The effects of all leaves are joined by their sets in a hash table, as in `joined_terms`, but the members of the sets
are not written down. The sum is kept up to date while leaves are added or taken out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes
from absentia.trees.levels import PlayedTrees
from absentia.trees.paths import ABSENT, PRESENT, Pair, Walk, forget, go_back, new_walk, walk_down

# The key of a place that no set has taken. It is also the key of the empty set, which is not counted.
FREE = 0
# The places of a table before it grows.
FIRST_PLACES = 1024
# A leaf that needs more absent players than this has too many sets. Its share of the sum is bounded from above then.
MOST_ABSENT = 16


class EffectTable(NamedTuple):
    """The effects of sets, by the keys of the sets; the number of places is a power of two."""

    keys: np.ndarray  # by hash; FREE for free places
    effects: np.ndarray
    length: np.ndarray  # how many sets there are, as an array of one
    strength: np.ndarray  # the sum of absolute effects, as an array of one


@compiled
def _new_table(places: int) -> EffectTable:
    """Return a table without sets."""
    return EffectTable(np.zeros(places, np.int64), np.zeros(places), np.zeros(1, np.int64), np.zeros(1))


@compiled
def place_of(keys: np.ndarray, key: int) -> int:
    """Return the place of a key: where it is, or the free place where it belongs."""
    mask = len(keys) - 1
    place = key & mask
    while keys[place] != FREE and keys[place] != key:
        place = (place + 1) & mask
    return place


@compiled
def with_room(table: EffectTable, sets: int) -> EffectTable:
    """Return the table, or a larger one, so that at most half of it is full after so many more sets."""
    places = len(table.keys)
    if 2 * (table.length[0] + sets) <= places:
        return table
    while 2 * (table.length[0] + sets) > places:
        places *= 2
    larger = _new_table(places)
    for place in range(len(table.keys)):
        if table.keys[place] != FREE:
            where = place_of(larger.keys, table.keys[place])
            larger.keys[where] = table.keys[place]
            larger.effects[where] = table.effects[place]
    larger.length[0] = table.length[0]
    larger.strength[0] = table.strength[0]
    return larger


@compiled
def add_effect(table: EffectTable, key: int, change: float) -> None:
    """Change the effect of a set."""
    if key == FREE:
        return
    place = place_of(table.keys, key)
    if table.keys[place] == FREE:
        table.keys[place] = key
        table.length[0] += 1
    before = table.effects[place]
    after = before + change
    table.effects[place] = after
    table.strength[0] += abs(after) - abs(before)


@compiled
def _add_leaf(
    table: EffectTable, walk: Walk, leaf_weight: float, keys: np.ndarray, absent_keys: np.ndarray
) -> EffectTable:
    """Add the effects of a leaf, (−1)^|T|·w on A ∪ T for every T ⊆ B; the table may become a larger one."""
    key = np.int64(0)
    absent = 0
    for place in range(walk.depth[0]):
        player = walk.trail[place]
        if walk.state[player] == PRESENT:
            key ^= keys[player]
        elif walk.state[player] == ABSENT:
            absent_keys[absent] = keys[player]
            absent += 1
    if absent > MOST_ABSENT:
        table.strength[0] += abs(leaf_weight) * 2.0**absent
        return table
    weight = leaf_weight
    subsets = 1 << absent
    table = with_room(table, subsets)
    add_effect(table, int(key), weight)
    for number in range(1, subsets):
        # The subsets in the order of a Gray code: one player changes at a time, and with it the sign.
        changed = 0
        while not (number >> changed) & 1:
            changed += 1
        key ^= absent_keys[changed]
        weight = -weight
        add_effect(table, key, weight)
    return table


@compiled
def _add_tree(
    table: EffectTable,
    trees: PlayedTrees,
    tree: int,
    pair: Pair,
    leaf_weights: np.ndarray,
    walk: Walk,
    absent_keys: np.ndarray,
) -> EffectTable:
    """Add the effects of a tree's leaves."""
    leaf = walk_down(trees.nodes, trees.roots[tree], pair, walk)
    while True:
        weight = leaf_weights[trees.nodes.leaf[leaf]]
        table = _add_leaf(table, walk, weight, trees.keys, absent_keys)
        if walk.open_count[0] == 0:
            break
        leaf = walk_down(trees.nodes, go_back(walk), pair, walk)
    forget(walk, 0)
    return table


@compiled
def count_sets(trees: PlayedTrees, samples: Codes, stand_ins: Codes) -> np.ndarray:
    """Return how many sets the leaves of each sample and its stand-in have, before equal ones are joined."""
    walk = new_walk(len(trees.keys))
    counts = np.zeros(len(samples))
    for row in range(len(samples)):
        pair = Pair(samples[row], stand_ins[row], trees.player)
        for root in trees.roots:
            walk_down(trees.nodes, root, pair, walk)
            while True:
                absent = 0
                for place in range(walk.depth[0]):
                    absent += walk.state[walk.trail[place]] == ABSENT
                counts[row] += 2.0**absent
                if walk.open_count[0] == 0:
                    break
                walk_down(trees.nodes, go_back(walk), pair, walk)
            forget(walk, 0)
    return counts


@compiled
def table_of_pair(
    trees: PlayedTrees, pair: Pair, leaf_weights: np.ndarray, walk: Walk, absent_keys: np.ndarray
) -> EffectTable:
    """Return the effects of a sample and its stand-in."""
    table = _new_table(FIRST_PLACES)
    for tree in range(len(trees.roots)):
        table = _add_tree(table, trees, tree, pair, leaf_weights, walk, absent_keys)
    return table


@compiled
def strengths(
    trees: PlayedTrees, samples: Codes, stand_ins: Codes, weights: np.ndarray, kinds: np.ndarray
) -> np.ndarray:
    """Return Σ|U(S)| over all S ≠ ∅ for each sample and its stand-in; ``kinds`` chooses the weights of each."""
    walk = new_walk(len(trees.keys))
    absent_keys = np.empty(len(trees.keys) + 1, np.int64)
    sums = np.empty(len(samples))
    for row in range(len(samples)):
        pair = Pair(samples[row], stand_ins[row], trees.player)
        sums[row] = table_of_pair(trees, pair, weights[kinds[row]], walk, absent_keys).strength[0]
    return sums
