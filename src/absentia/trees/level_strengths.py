"""Σ|U(S)| while samples or stand-ins run through levels.

From one level to the next, only some leaves of a few trees change. So the effects at the present level are kept, and
each level costs as much as its changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.effect_sums import (
    FIRST_PLACES,
    Effects,
    EffectTable,
    add_leaf,
    new_table,
    no_effects,
    table_of_pair,
)
from absentia.trees.ensemble import Codes, Nodes, goes_left
from absentia.trees.levels import Levels, PlayedTrees
from absentia.trees.paths import ABSENT, PRESENT, UNDECIDED, Pair, Walk, doubled, forget, go_back, new_walk


class KeptEffects(NamedTuple):
    """The effects of many pairs, one after another."""

    keys: np.ndarray
    effects: np.ndarray
    ends: np.ndarray  # where the places of each pair end; they begin at the previous end
    lengths: np.ndarray  # the number of sets of each pair
    strengths: np.ndarray  # Σ|U(S)| of each pair


class Workspace(NamedTuple):
    """Arrays that are used again for every pair."""

    walk: Walk
    absent_keys: np.ndarray
    waiting: np.ndarray
    marks: np.ndarray


class _Change(NamedTuple):
    """A pair of rows, another pair that it differs from, and marks of a walk."""

    pair: Pair
    other: Pair
    marks: np.ndarray  # for each open split of the walk: whether the way to it parts the two pairs


@compiled
def _new_workspace(trees: PlayedTrees) -> Workspace:
    """Return arrays that are large enough for every pair."""
    most = len(trees.keys) + 1
    return Workspace(
        new_walk(len(trees.keys)),
        np.empty(most, np.int64),
        np.empty(len(trees.nodes.column), np.int32),
        np.empty(most, np.bool_),
    )


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
    work: Workspace,
) -> EffectTable:
    """Add the effects of those leaves of a tree that the other pair reaches in another way, or take them out."""
    walk = work.walk
    leaf, marked = _walk_down_marked(trees.nodes, trees.roots[tree], change, walk, False)
    while True:
        if marked:
            weight = leaf_weights[trees.nodes.leaf[leaf]]
            table = add_leaf(table, walk, weight, sign, trees.keys, work.absent_keys)
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
def _pair_at(trees: PlayedTrees, other: Codes, level: Codes, levels_are_samples: bool) -> Pair:
    """Return a level that stands in for another row, or the other row for the level."""
    if levels_are_samples:
        return Pair(level, other, trees.player)
    return Pair(other, level, trees.player)


@compiled
def _follow(
    table: EffectTable,
    trees: PlayedTrees,
    changed: np.ndarray,
    before: Pair,
    after: Pair,
    leaf_weights: np.ndarray,
    work: Workspace,
) -> EffectTable:
    """Follow the effects from one pair to another, given which trees may have changed."""
    for tree in range(len(trees.roots)):
        if changed[tree] and _meets_change(trees, tree, before, after, work.waiting):
            taken_out = _Change(before, after, work.marks)
            table = _add_changed(table, trees, tree, taken_out, leaf_weights, -1.0, work)
            added = _Change(after, before, work.marks)
            table = _add_changed(table, trees, tree, added, leaf_weights, 1.0, work)
    return table


@compiled
def _append(kept: KeptEffects, row: int, table: EffectTable) -> KeptEffects:
    """Write the effects of a pair behind those of the pairs before it."""
    keys = kept.keys
    effects = kept.effects
    start = kept.ends[row - 1] if row > 0 else 0
    end = start + len(table.keys)
    while end > len(keys):
        keys = doubled(keys)
        effects = doubled(effects)
    keys[start:end] = table.keys
    effects[start:end] = table.effects
    kept.ends[row] = end
    kept.lengths[row] = table.length[0]
    kept.strengths[row] = table.strength[0]
    return KeptEffects(keys, effects, kept.ends, kept.lengths, kept.strengths)


@compiled
def _keep_nothing(rows: int) -> KeptEffects:
    """Return a record for so many pairs."""
    return KeptEffects(
        np.empty(FIRST_PLACES, np.int64),
        np.empty(FIRST_PLACES),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows),
    )


@compiled
def _kept_of(kept: KeptEffects, row: int) -> Effects:
    """Return the effects of a pair."""
    start = kept.ends[row - 1] if row > 0 else 0
    end = kept.ends[row]
    return Effects(kept.keys[start:end], kept.effects[start:end])


@compiled
def keep_effects(
    trees: PlayedTrees,
    others: Codes,
    levels: Codes,
    owners: np.ndarray,
    levels_are_samples: bool,
    weights: np.ndarray,
    kinds: np.ndarray,
) -> KeptEffects:
    """Return the effects of each pair, given one level for each of the ``owners``."""
    work = _new_workspace(trees)
    kept = _keep_nothing(len(others))
    for row in range(len(others)):
        pair = _pair_at(trees, others[row], levels[owners[row]], levels_are_samples)
        kept = _append(kept, row, table_of_pair(trees, pair, weights[kinds[row]], work.walk, work.absent_keys))
    return kept


@compiled
def scan_strengths(
    kept: KeptEffects,
    trees: PlayedTrees,
    others: Codes,
    levels: Levels,
    owners: np.ndarray,
    levels_are_samples: bool,
    weights: np.ndarray,
    kinds: np.ndarray,
) -> np.ndarray:
    """Return Σ|U(S)| of each pair at every level, pairs × levels; the effects at the first level are kept.

    The levels are those of the ``owners`` of the pairs. They stand in for the ``others``, or the others for them.
    """
    work = _new_workspace(trees)
    level_count = levels.codes.shape[1]
    sums = np.empty((len(others), level_count))
    for row in range(len(others)):
        owner = owners[row]
        table = new_table(FIRST_PLACES, _kept_of(kept, row), kept.strengths[row])
        before = _pair_at(trees, others[row], levels.codes[owner, 0], levels_are_samples)
        sums[row, 0] = kept.strengths[row]
        for level in range(1, level_count):
            after = _pair_at(trees, others[row], levels.codes[owner, level], levels_are_samples)
            changed = levels.changed[owner, level]
            table = _follow(table, trees, changed, before, after, weights[kinds[row]], work)
            sums[row, level] = table.strength[0]
            before = after
    return sums


@compiled
def move_effects(
    kept: KeptEffects,
    trees: PlayedTrees,
    others: Codes,
    levels: Levels,
    owners: np.ndarray,
    levels_are_samples: bool,
    weights: np.ndarray,
    kinds: np.ndarray,
) -> KeptEffects:
    """Return the effects at the second level, given those at the first."""
    work = _new_workspace(trees)
    moved = _keep_nothing(len(others))
    for row in range(len(others)):
        owner = owners[row]
        own = _kept_of(kept, row)
        table = EffectTable(
            own.keys.copy(),
            own.effects.copy(),
            np.full(1, kept.lengths[row]),
            np.full(1, kept.strengths[row]),
            no_effects(),
        )
        before = _pair_at(trees, others[row], levels.codes[owner, 0], levels_are_samples)
        after = _pair_at(trees, others[row], levels.codes[owner, 1], levels_are_samples)
        table = _follow(table, trees, levels.changed[owner, 1], before, after, weights[kinds[row]], work)
        moved = _append(moved, row, table)
    return moved
