"""Sums of absolute interactions, Σ|U(S)|, straight from the leaves.

The effects of all leaves are joined by their sets in a hash table, as in `joined_terms`, but the members of the sets
are not written down. The sum is kept up to date while trees are added or taken out. So it can be followed while the
sample or the stand-in runs through levels, of which each changes only a few trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes, Nodes, goes_left
from absentia.trees.levels import Levels, PlayedTrees
from absentia.trees.paths import ABSENT, PRESENT, UNDECIDED, Pair, Walk, forget, go_back, new_walk, walk_down

# The key of a place that no set has taken. It is also the key of the empty set, which is not counted.
_FREE = 0
_FIRST_PLACES = 1024
# A leaf that needs more absent players than this has too many sets. Its share of the sum is bounded from above then.
MOST_ABSENT = 16


class EffectTable(NamedTuple):
    """The effects of sets, by the keys of the sets."""

    keys: np.ndarray  # by hash; _FREE for free places
    effects: np.ndarray
    length: np.ndarray  # how many sets there are, as an array of one
    strength: np.ndarray  # the sum of absolute effects, as an array of one


class _Change(NamedTuple):
    """A pair of rows, another pair that it differs from, and marks of a walk."""

    pair: Pair
    other: Pair
    marks: np.ndarray  # for each open split of the walk: whether the way to it parts the two pairs


@compiled
def _new_table(places: int) -> EffectTable:
    """Return a table without sets; the number of places is a power of two."""
    return EffectTable(np.zeros(places, np.int64), np.zeros(places), np.zeros(1, np.int64), np.zeros(1))


@compiled
def _place_of(keys: np.ndarray, key: int) -> int:
    """Return the place of a key: where it is, or the free place where it belongs."""
    mask = len(keys) - 1
    place = key & mask
    while keys[place] != _FREE and keys[place] != key:
        place = (place + 1) & mask
    return place


@compiled
def _with_room(table: EffectTable, sets: int) -> EffectTable:
    """Return the table, or a larger one, so that at most half of it is full after so many more sets."""
    places = len(table.keys)
    if 2 * (table.length[0] + sets) <= places:
        return table
    while 2 * (table.length[0] + sets) > places:
        places *= 2
    larger = _new_table(places)
    for place in range(len(table.keys)):
        if table.keys[place] != _FREE:
            where = _place_of(larger.keys, table.keys[place])
            larger.keys[where] = table.keys[place]
            larger.effects[where] = table.effects[place]
    larger.length[0] = table.length[0]
    larger.strength[0] = table.strength[0]
    return larger


@compiled
def _add_effect(table: EffectTable, key: int, change: float) -> None:
    """Change the effect of a set."""
    if key == _FREE:
        return
    place = _place_of(table.keys, key)
    if table.keys[place] == _FREE:
        table.keys[place] = key
        table.length[0] += 1
    before = table.effects[place]
    after = before + change
    table.effects[place] = after
    table.strength[0] += abs(after) - abs(before)


@compiled
def _add_leaf(
    table: EffectTable, walk: Walk, leaf_weight: float, sign: float, keys: np.ndarray, absent_keys: np.ndarray
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
        table.strength[0] += sign * abs(leaf_weight) * 2.0**absent
        return table
    weight = sign * leaf_weight
    subsets = 1 << absent
    table = _with_room(table, subsets)
    _add_effect(table, int(key), weight)
    for number in range(1, subsets):
        # The subsets in the order of a Gray code: one player changes at a time, and with it the sign.
        changed = 0
        while not (number >> changed) & 1:
            changed += 1
        key ^= absent_keys[changed]
        weight = -weight
        _add_effect(table, key, weight)
    return table


@compiled
def _add_tree(
    table: EffectTable,
    trees: PlayedTrees,
    tree: int,
    pair: Pair,
    leaf_weights: np.ndarray,
    sign: float,
    walk: Walk,
    absent_keys: np.ndarray,
) -> EffectTable:
    """Add the effects of a tree's leaves, or take them out if the sign is −1."""
    leaf = walk_down(trees.nodes, trees.roots[tree], pair, walk)
    while True:
        weight = leaf_weights[trees.nodes.leaf[leaf]]
        table = _add_leaf(table, walk, weight, sign, trees.keys, absent_keys)
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
def strengths(
    trees: PlayedTrees, samples: Codes, stand_ins: Codes, weights: np.ndarray, kinds: np.ndarray
) -> np.ndarray:
    """Return Σ|U(S)| over all S ≠ ∅ for each sample and its stand-in; ``kinds`` chooses the weights of each."""
    walk = new_walk(len(trees.keys))
    absent_keys = np.empty(len(trees.keys) + 1, np.int64)
    sums = np.empty(len(samples))
    for row in range(len(samples)):
        pair = Pair(samples[row], stand_ins[row], trees.player)
        table = _new_table(_FIRST_PLACES)
        for tree in range(len(trees.roots)):
            table = _add_tree(table, trees, tree, pair, weights[kinds[row]], 1.0, walk, absent_keys)
        sums[row] = table.strength[0]
    return sums


@compiled
def _parts(nodes: Nodes, node: int, code: int, other_code: int) -> bool:
    """Return whether a split parts two codes of its column."""
    return code != other_code and goes_left(nodes, node, code) != goes_left(nodes, node, other_code)


@compiled
def _walk_down_marked(nodes: Nodes, node: int, change: _Change, walk: Walk, marked: bool) -> tuple[int, bool]:
    """Go down to a leaf as `walk_down` does; return whether a split on the way parts the pair from the other one."""
    pair = change.pair
    other = change.other
    while nodes.column[node] >= 0:
        column = nodes.column[node]
        player = pair.player[column]
        known = PRESENT if player < 0 else walk.state[player]
        if known == ABSENT:
            left = goes_left(nodes, node, pair.stand_in[column])
        else:
            left = goes_left(nodes, node, pair.sample[column])
            marked = marked or _parts(nodes, node, pair.sample[column], other.sample[column])
        if known != PRESENT:
            marked = marked or _parts(nodes, node, pair.stand_in[column], other.stand_in[column])
        if known == UNDECIDED and left != goes_left(nodes, node, pair.stand_in[column]):
            number = walk.open_count[0]
            walk.open_nodes[number] = nodes.right[node] if left else nodes.left[node]
            walk.open_depths[number] = walk.depth[0]
            change.marks[number] = marked
            walk.open_count[0] += 1
            walk.state[player] = PRESENT
            walk.trail[walk.depth[0]] = player
            walk.depth[0] += 1
        node = nodes.left[node] if left else nodes.right[node]
    return node, marked


@compiled
def _add_changed(
    table: EffectTable,
    trees: PlayedTrees,
    tree: int,
    change: _Change,
    leaf_weights: np.ndarray,
    sign: float,
    walk: Walk,
    absent_keys: np.ndarray,
) -> EffectTable:
    """Add the effects of those leaves of a tree that the other pair reaches in another way, or take them out."""
    leaf, marked = _walk_down_marked(trees.nodes, trees.roots[tree], change, walk, False)
    while True:
        if marked:
            weight = leaf_weights[trees.nodes.leaf[leaf]]
            table = _add_leaf(table, walk, weight, sign, trees.keys, absent_keys)
        if walk.open_count[0] == 0:
            break
        marked = change.marks[walk.open_count[0] - 1]
        leaf, marked = _walk_down_marked(trees.nodes, go_back(walk), change, walk, marked)
    forget(walk, 0)
    return table


@compiled
def _meets_change(trees: PlayedTrees, tree: int, before: Pair, after: Pair, waiting: np.ndarray) -> bool:
    """Return whether mixtures of a pair reach a split that parts the pair's rows from those of another pair."""
    nodes = trees.nodes
    waiting[0] = trees.roots[tree]
    length = 1
    while length > 0:
        length -= 1
        node = waiting[length]
        column = nodes.column[node]
        if column < 0:
            continue
        sample_left = goes_left(nodes, node, before.sample[column])
        stand_in_left = goes_left(nodes, node, before.stand_in[column])
        if sample_left != goes_left(nodes, node, after.sample[column]):
            return True
        if stand_in_left != goes_left(nodes, node, after.stand_in[column]):
            return True
        if sample_left or stand_in_left:
            waiting[length] = nodes.left[node]
            length += 1
        if not (sample_left and stand_in_left):
            waiting[length] = nodes.right[node]
            length += 1
    return False


@compiled
def scan_strengths(
    trees: PlayedTrees,
    others: Codes,
    levels: Levels,
    owners: np.ndarray,
    levels_are_samples: bool,
    weights: np.ndarray,
    kinds: np.ndarray,
) -> np.ndarray:
    """Return Σ|U(S)| of each pair at every level, pairs × levels.

    The levels are those of the ``owners`` of the pairs. They stand in for the ``others``, or the others for them.
    """
    walk = new_walk(len(trees.keys))
    absent_keys = np.empty(len(trees.keys) + 1, np.int64)
    waiting = np.empty(len(trees.nodes.column), np.int32)
    marks = np.empty(len(trees.keys) + 1, np.bool_)
    level_count = levels.codes.shape[1]
    sums = np.empty((len(others), level_count))
    for row in range(len(others)):
        owner = owners[row]
        leaf_weights = weights[kinds[row]]
        table = _new_table(_FIRST_PLACES)
        before = Pair(others[row], others[row], trees.player)
        for level in range(level_count):
            codes = levels.codes[owner, level]
            if levels_are_samples:
                pair = Pair(codes, others[row], trees.player)
            else:
                pair = Pair(others[row], codes, trees.player)
            for tree in range(len(trees.roots)):
                if not levels.changed[owner, level, tree]:
                    continue
                if level > 0:
                    if not _meets_change(trees, tree, before, pair, waiting):
                        continue
                    change = _Change(before, pair, marks)
                    table = _add_changed(table, trees, tree, change, leaf_weights, -1.0, walk, absent_keys)
                    change = _Change(pair, before, marks)
                    table = _add_changed(table, trees, tree, change, leaf_weights, 1.0, walk, absent_keys)
                else:
                    table = _add_tree(table, trees, tree, pair, leaf_weights, 1.0, walk, absent_keys)
            sums[row, level] = table.strength[0]
            before = pair
    return sums
