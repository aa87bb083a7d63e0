"""The terms of all leaves, with those of equal sets added up.

A set is looked up by its key, the exclusive or of its players' keys, in a hash table with open addressing. The keys
of players are random numbers of 63 bits. So sets spread evenly over the table, and the probability that any two of a
million sets share a key is 6·10⁻⁸.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes
from absentia.trees.levels import PlayedTrees
from absentia.trees.paths import PRESENT, Pair, Paths, doubled, find_paths

# The seed of the random keys.
_SEED = 20260101
# The table grows when more than this share of its slots is taken.
_FULLEST = 0.5
_FIRST_PLACES = 1024
# The initial length of the lists of one leaf's sets.
_FIRST_SETS = 64


class TermTable(NamedTuple):
    """Sets in the order of their first occurrence, and a hash table of their numbers."""

    places: np.ndarray  # by hash: the number of a set, or −1
    keys: np.ndarray  # the key of each set
    sizes: np.ndarray
    members: np.ndarray  # sets × the largest order
    effects: np.ndarray
    length: np.ndarray  # the number of sets, as an array of one


class LeafSets(NamedTuple):
    """Sets of players of one leaf while they are built: each is an earlier set plus one player."""

    keys: np.ndarray
    sizes: np.ndarray
    absent: np.ndarray  # how many of the players must be absent at the leaf
    earlier: np.ndarray  # the number of the set without the last player; −1 for the first set
    added: np.ndarray  # the last player


def player_keys(player_count: int) -> np.ndarray:
    """Return a key for each player."""
    random = np.random.default_rng(_SEED)
    return random.integers(1, 2**63, player_count, dtype=np.int64)


def new_table(max_order: int) -> TermTable:
    """Return an empty table."""
    capacity = int(_FIRST_PLACES * _FULLEST)
    return TermTable(
        np.full(_FIRST_PLACES, -1, np.int32),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int16),
        np.empty((capacity, max(1, max_order)), np.int32),
        np.empty(capacity, np.float64),
        np.zeros(1, np.int64),
    )


@compiled
def place_of_set(places: np.ndarray, keys: np.ndarray, key: np.int64) -> int:
    """Return the slot of a key in the table: the one that holds it, or the free one where it belongs."""
    mask = len(places) - 1
    place = int(key & mask)
    while places[place] >= 0 and keys[places[place]] != key:
        place = (place + 1) & mask
    return place


@compiled
def enlarged(table: TermTable) -> TermTable:
    """Return the table with twice the capacity."""
    members = np.empty((2 * len(table.members), table.members.shape[1]), np.int32)
    members[: len(table.members)] = table.members
    keys = doubled(table.keys)
    places = np.full(2 * len(table.places), -1, np.int32)
    for number in range(table.length[0]):
        places[place_of_set(places, keys, keys[number])] = number
    return TermTable(places, keys, doubled(table.sizes), members, doubled(table.effects), table.length)


@compiled
def new_sets() -> LeafSets:
    """Return empty lists for the sets of a leaf."""
    return LeafSets(
        np.empty(_FIRST_SETS, np.int64),
        np.empty(_FIRST_SETS, np.int32),
        np.empty(_FIRST_SETS, np.int32),
        np.empty(_FIRST_SETS, np.int32),
        np.empty(_FIRST_SETS, np.int32),
    )


@compiled
def add_terms(
    table: TermTable, paths: Paths, leaf_weights: np.ndarray, keys: np.ndarray, max_order: int
) -> TermTable:
    """Add the terms of all leaves up to an order; return the table, which may have grown."""
    sets = new_sets()
    start = 0
    for place in range(len(paths.leaves)):
        end = paths.ends[place]
        weight = leaf_weights[paths.leaves[place]]
        sets, built = build_sets(sets, paths, start, end, keys, max_order, True)
        for number in range(built):
            sign = 1 - 2 * (sets.absent[number] & 1)
            if table.length[0] == len(table.keys):
                table = enlarged(table)
            where = place_of_set(table.places, table.keys, sets.keys[number])
            if table.places[where] < 0:
                write_set(table, where, sets, number, paths, start, end)
            table.effects[table.places[where]] += sign * weight
        start = end
    return table


@compiled
def expand_sample(
    table: TermTable,
    trees: PlayedTrees,
    sample: Codes,
    stand_ins: Codes,
    leaf_weights: np.ndarray,
    max_order: int,
    most_sets: float,
) -> tuple[TermTable, bool]:
    """Add the terms of a sample with all of its stand-ins; stop and return False if there are too many sets."""
    for draw in range(len(stand_ins)):
        pair = Pair(sample, stand_ins[draw], trees.player)
        paths = find_paths(trees.nodes, trees.roots, pair, len(trees.keys))
        table = add_terms(table, paths, leaf_weights, trees.keys, max_order)
        if table.length[0] > most_sets:
            return table, False
    return table, True


@compiled
def build_sets(
    sets: LeafSets, paths: Paths, start: int, end: int, keys: np.ndarray, max_order: int, with_present: bool
) -> tuple[LeafSets, int]:
    """Build sets of a leaf's players up to an order; return their lists, which may have grown, and their number.

    ``with_present`` builds the sets A ∪ T with all players that must be present. Otherwise all subsets are built.
    """
    key = np.int64(0)
    size = 0
    if with_present:
        for place in range(start, end):
            if paths.states[place] == PRESENT:
                key ^= keys[paths.players[place]]
                size += 1
    if size > max_order:
        return sets, 0
    sets.keys[0] = key
    sets.sizes[0] = size
    sets.absent[0] = 0
    sets.earlier[0] = -1
    built = 1
    for place in range(start, end):
        is_present = paths.states[place] == PRESENT
        if is_present and with_present:
            continue
        player = paths.players[place]
        while 2 * built > len(sets.keys):
            sets = LeafSets(
                doubled(sets.keys),
                doubled(sets.sizes),
                doubled(sets.absent),
                doubled(sets.earlier),
                doubled(sets.added),
            )
        for number in range(built):
            if sets.sizes[number] < max_order:
                sets.keys[built] = sets.keys[number] ^ keys[player]
                sets.sizes[built] = sets.sizes[number] + 1
                sets.absent[built] = sets.absent[number] + (0 if is_present else 1)
                sets.earlier[built] = number
                sets.added[built] = player
                built += 1
    return sets, built


@compiled
def write_set(table: TermTable, where: int, sets: LeafSets, number: int, paths: Paths, start: int, end: int) -> None:
    """Add a new set to the table, with an effect of 0.

    The players that all sets of the leaf have are those that must be present between ``start`` and ``end``.
    """
    term = table.length[0]
    table.length[0] += 1
    table.places[where] = term
    table.keys[term] = sets.keys[number]
    table.sizes[term] = sets.sizes[number]
    table.effects[term] = 0.0
    written = 0
    while sets.earlier[number] >= 0:
        table.members[term, written] = sets.added[number]
        written += 1
        number = sets.earlier[number]
    for place in range(start, end):
        if paths.states[place] == PRESENT:
            table.members[term, written] = paths.players[place]
            written += 1
