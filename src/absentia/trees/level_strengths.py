"""Σ|U(S)| while samples or stand-ins run through levels.

The effects at the first level are kept. From there, only the leaves that some levels reach and others do not matter:
they are found in one walk through each tree, and added and taken out where levels begin and cease to reach them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.effect_sums import (
    FIRST_PLACES,
    FREE,
    MOST_ABSENT,
    EffectTable,
    add_effect,
    place_of,
    table_of_pair,
    with_room,
)
from absentia.trees.ensemble import Codes, Nodes, goes_left
from absentia.trees.levels import Levels, PlayedTrees
from absentia.trees.paths import ABSENT, PRESENT, UNDECIDED, Pair, Walk, doubled, forget, new_walk


class KeptEffects(NamedTuple):
    """The effects of many pairs, each as a table with open addressing, one after another."""

    keys: np.ndarray
    effects: np.ndarray
    ends: np.ndarray  # where the places of each pair end; they begin at the previous end
    lengths: np.ndarray  # the number of sets of each pair
    strengths: np.ndarray  # Σ|U(S)| of each pair


class _Waiting(NamedTuple):
    """Nodes that are still to be visited."""

    nodes: np.ndarray
    levels: np.ndarray  # the levels that reach each node, as bits
    depths: np.ndarray  # how many players were decided before
    players: np.ndarray  # the player that is decided on the way to the node, or −1
    states: np.ndarray  # how it is decided


class _LevelLeaves(NamedTuple):
    """Leaves that some levels reach and others do not, and their terms."""

    levels: np.ndarray  # the levels that reach each leaf, as bits
    bounds: np.ndarray  # a bound on the strength of leaves with too many terms; 0 for all others
    ends: np.ndarray  # where the terms of each leaf end; they begin at the previous end
    keys: np.ndarray  # the set of each term
    effects: np.ndarray
    length: np.ndarray  # how many leaves there are, as an array of one


class _Workspace(NamedTuple):
    """Arrays that are used again for every pair."""

    walk: Walk
    waiting: _Waiting
    absent_keys: np.ndarray


@compiled
def _new_workspace(trees: PlayedTrees) -> _Workspace:
    """Return arrays that are large enough for every pair."""
    node_count = len(trees.nodes.column) + 1
    waiting = _Waiting(
        np.empty(node_count, np.int32),
        np.empty(node_count, np.int64),
        np.empty(node_count, np.int32),
        np.empty(node_count, np.int32),
        np.empty(node_count, np.uint8),
    )
    return _Workspace(new_walk(len(trees.keys)), waiting, np.empty(len(trees.keys) + 1, np.int64))


@compiled
def _new_leaves() -> _LevelLeaves:
    """Return a list without leaves."""
    return _LevelLeaves(
        np.empty(FIRST_PLACES, np.int64),
        np.empty(FIRST_PLACES),
        np.empty(FIRST_PLACES, np.int64),
        np.empty(FIRST_PLACES, np.int64),
        np.empty(FIRST_PLACES),
        np.zeros(1, np.int64),
    )


@compiled
def _add_leaf(
    leaves: _LevelLeaves, walk: Walk, levels: int, leaf_weight: float, keys: np.ndarray, absent_keys: np.ndarray
) -> _LevelLeaves:
    """Append a leaf and its terms, (−1)^|T|·w on A ∪ T for every T ⊆ B; the lists may become longer ones."""
    key = np.int64(0)
    absent = 0
    for place in range(walk.depth[0]):
        player = walk.trail[place]
        if walk.state[player] == PRESENT:
            key ^= keys[player]
        else:
            absent_keys[absent] = keys[player]
            absent += 1
    number = leaves.length[0]
    end = leaves.ends[number - 1] if number > 0 else 0
    term_count = 1 << absent if absent <= MOST_ABSENT else 0
    if number == len(leaves.levels) or end + term_count > len(leaves.keys):
        leaves = _with_space(leaves, end + term_count)
    leaves.levels[number] = levels
    leaves.bounds[number] = 0.0 if term_count > 0 else abs(leaf_weight) * 2.0**absent
    weight = leaf_weight
    for term in range(term_count):
        if term > 0:
            # The subsets in the order of a Gray code: one player changes at a time, and with it the sign.
            changed = 0
            while not (term >> changed) & 1:
                changed += 1
            key ^= absent_keys[changed]
            weight = -weight
        if key != FREE:
            leaves.keys[end] = key
            leaves.effects[end] = weight
            end += 1
    leaves.ends[number] = end
    leaves.length[0] = number + 1
    return leaves


@compiled
def _with_space(leaves: _LevelLeaves, terms: int) -> _LevelLeaves:
    """Return longer lists, with space for one more leaf and so many terms."""
    keys = leaves.keys
    effects = leaves.effects
    while terms > len(keys):
        keys = doubled(keys)
        effects = doubled(effects)
    return _LevelLeaves(
        doubled(leaves.levels), doubled(leaves.bounds), doubled(leaves.ends), keys, effects, leaves.length
    )


@compiled
def _decide(walk: Walk, player: int, state: int) -> None:
    """Write down what the path requires of a player."""
    walk.state[player] = state
    walk.trail[walk.depth[0]] = player
    walk.depth[0] += 1


@compiled
def _wait(waiting: _Waiting, length: int, node: int, levels: int, depth: int, player: int, state: int) -> int:
    """Remember a node; return how many are waiting now."""
    waiting.nodes[length] = node
    waiting.levels[length] = levels
    waiting.depths[length] = depth
    waiting.players[length] = player
    waiting.states[length] = state
    return length + 1


class _OtherRow(NamedTuple):
    """The row that the levels stand in for, or that stands in for them."""

    codes: Codes
    state: int  # where a player is in this state, the other row decides which way to go
    state_of_levels: int  # where it is in this one, the levels do


@compiled
def _other_row(codes: Codes, levels_are_samples: bool) -> _OtherRow:
    """Return the other row, which is decisive for absent players if the levels are samples, else for present ones."""
    if levels_are_samples:
        return _OtherRow(codes, ABSENT, PRESENT)
    return _OtherRow(codes, PRESENT, ABSENT)


@compiled
def _find_leaves(
    trees: PlayedTrees,
    other: _OtherRow,
    levels: Levels,
    owner: int,
    leaf_weights: np.ndarray,
    work: _Workspace,
) -> _LevelLeaves:
    """Return the leaves that some levels reach and others do not, with one half of a pair from another row."""
    walk = work.walk
    waiting = work.waiting
    every_level = (np.int64(1) << levels.codes.shape[1]) - 1
    leaves = _new_leaves()
    for tree in range(len(trees.roots)):
        if not levels.told_apart[owner, tree]:
            continue
        length = _wait(waiting, 0, trees.roots[tree], every_level, 0, -1, UNDECIDED)
        while length > 0:
            length -= 1
            node = waiting.nodes[length]
            here = waiting.levels[length]
            forget(walk, waiting.depths[length])
            if waiting.players[length] >= 0:
                _decide(walk, waiting.players[length], waiting.states[length])
            while trees.nodes.column[node] >= 0:
                going_left = here & levels.left[owner, node]
                node, here, length = _step(trees, node, other, here, going_left, work, length)
            if here != every_level:
                weight = leaf_weights[trees.nodes.leaf[node]]
                leaves = _add_leaf(leaves, walk, here, weight, trees.keys, work.absent_keys)
        forget(walk, 0)
    return leaves


class _Ways(NamedTuple):
    """The two ways on from a split, and the levels that go there."""

    of_other: int  # the node to which the other row goes
    apart: int  # the other node
    levels_with_other: int
    levels_apart: int


@compiled
def _ways_on(nodes: Nodes, node: int, code: int, here: int, going_left: int) -> _Ways:
    """Return the ways on from a split, given the other row's code of its column."""
    if goes_left(nodes, node, code):
        return _Ways(nodes.left[node], nodes.right[node], going_left, here & ~going_left)
    return _Ways(nodes.right[node], nodes.left[node], here & ~going_left, going_left)


@compiled
def _step(
    trees: PlayedTrees, node: int, other: _OtherRow, here: int, going_left: int, work: _Workspace, length: int
) -> tuple[int, int, int]:
    """Pass a split: return the next node, the levels that go there, and how many nodes are waiting now."""
    column = trees.nodes.column[node]
    player = trees.player[column]
    state = PRESENT if player < 0 else work.walk.state[player]
    ways = _ways_on(trees.nodes, node, other.codes[column], here, going_left)
    if state == other.state or ways.levels_apart == 0:
        return ways.of_other, here, length
    if state == other.state_of_levels:
        return _part(ways, work, length)
    return _decide_and_part(ways, player, other.state, work, length)


@compiled
def _part(ways: _Ways, work: _Workspace, length: int) -> tuple[int, int, int]:
    """Go on where the levels decide for the player of a split."""
    if ways.levels_with_other == 0:
        return ways.apart, ways.levels_apart, length
    length = _wait(work.waiting, length, ways.apart, ways.levels_apart, work.walk.depth[0], -1, UNDECIDED)
    return ways.of_other, ways.levels_with_other, length


@compiled
def _decide_and_part(
    ways: _Ways, player: int, state_of_other: int, work: _Workspace, length: int
) -> tuple[int, int, int]:
    """Go on where the player of a split is undecided, and some levels go another way than the other row."""
    state_of_levels = ABSENT if state_of_other == PRESENT else PRESENT
    depth = work.walk.depth[0]
    length = _wait(work.waiting, length, ways.apart, ways.levels_apart, depth, player, state_of_levels)
    if ways.levels_with_other == 0:
        _decide(work.walk, player, state_of_other)
        return ways.of_other, ways.levels_apart, length
    # Where levels and the other row go the same way, the player need not be decided.
    length = _wait(work.waiting, length, ways.of_other, ways.levels_apart, depth, player, state_of_other)
    return ways.of_other, ways.levels_with_other, length


@compiled
def _pair_at(trees: PlayedTrees, other: Codes, level: Codes, levels_are_samples: bool) -> Pair:
    """Return a level that stands in for another row, or the other row for the level."""
    if levels_are_samples:
        return Pair(level, other, trees.player)
    return Pair(other, level, trees.player)


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
    sums = np.empty((len(others), levels.codes.shape[1]))
    for row in range(len(others)):
        leaf_weights = weights[kinds[row]]
        other = _other_row(others[row], levels_are_samples)
        leaves = _find_leaves(trees, other, levels, owners[row], leaf_weights, work)
        _follow(leaves, _kept_table(kept, row), sums[row])
    return sums


@compiled
def _kept_table(kept: KeptEffects, row: int) -> EffectTable:
    """Return the effects of a pair; their keys and effects are those that are kept, not a copy."""
    start = kept.ends[row - 1] if row > 0 else 0
    end = kept.ends[row]
    return EffectTable(
        kept.keys[start:end],
        kept.effects[start:end],
        np.full(1, kept.lengths[row]),
        np.full(1, kept.strengths[row]),
    )


@compiled
def _change_at(leaves: _LevelLeaves, leaf: int, level: int) -> int:
    """Return 1 if a leaf is reached from this level on, −1 if up to the level before it, and 0 otherwise."""
    reached = leaves.levels[leaf]
    return ((reached >> level) & 1) - ((reached >> (level - 1)) & 1)


@compiled
def _follow(leaves: _LevelLeaves, first: EffectTable, sums: np.ndarray) -> None:
    """Write Σ|U(S)| at every level, given the effects at the first."""
    strength = first.strength[0]
    sums[0] = strength
    leaf_count = leaves.length[0]
    if leaf_count == 0:
        sums[:] = strength
        return
    numbers, effects = _number_sets(leaves.keys[: leaves.ends[leaf_count - 1]], first.keys, first.effects)
    for level in range(1, len(sums)):
        start = 0
        for leaf in range(leaf_count):
            end = leaves.ends[leaf]
            sign = _change_at(leaves, leaf, level)
            if sign != 0:
                strength += sign * leaves.bounds[leaf]
                for term in range(start, end):
                    number = numbers[term]
                    before = effects[number]
                    after = before + sign * leaves.effects[term]
                    effects[number] = after
                    strength += abs(after) - abs(before)
            start = end
        sums[level] = strength


@compiled
def _number_sets(keys: np.ndarray, kept_keys: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each term's set, and the kept effect of each set."""
    places = 1
    while places < 2 * len(keys):
        places *= 2
    taken = np.zeros(places, np.int64)
    number_at = np.empty(places, np.int32)
    numbers = np.empty(len(keys), np.int32)
    effects = np.empty(len(keys))
    count = 0
    for term in range(len(keys)):
        place = place_of(taken, keys[term])
        if taken[place] == FREE:
            taken[place] = keys[term]
            number_at[place] = count
            effects[count] = kept[place_of(kept_keys, keys[term])]
            count += 1
        numbers[term] = number_at[place]
    return numbers, effects


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
    """Return the effects at the second of two levels, given those at the first."""
    work = _new_workspace(trees)
    moved = _keep_nothing(len(others))
    for row in range(len(others)):
        leaf_weights = weights[kinds[row]]
        other = _other_row(others[row], levels_are_samples)
        leaves = _find_leaves(trees, other, levels, owners[row], leaf_weights, work)
        moved = _append(moved, row, _move(leaves, _kept_table(kept, row)))
    return moved


@compiled
def _move(leaves: _LevelLeaves, first: EffectTable) -> EffectTable:
    """Return the effects at the second of two levels, given those at the first."""
    table = EffectTable(first.keys.copy(), first.effects.copy(), first.length, first.strength)
    start = 0
    for leaf in range(leaves.length[0]):
        end = leaves.ends[leaf]
        sign = _change_at(leaves, leaf, 1)
        table = with_room(table, end - start)
        table.strength[0] += sign * leaves.bounds[leaf]
        for term in range(start, end):
            add_effect(table, leaves.keys[term], sign * leaves.effects[term])
        start = end
    return table
