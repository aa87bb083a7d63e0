"""Interaction indices from leaves.

An index of S is Σ_{T⊇S} w(|S|, |T|)·U(T), with U the Harsanyi effects. A leaf of weight 1 that needs the players of A
present and those of B absent has the effects (−1)^|T| on A ∪ T for T ⊆ B. So it gives a set S of its players, s of
them, of which c belong to B,

    (−1)^c · Σ_j C(|B| − c, j)·(−1)^j · w(s, |A| + c + j),

which is (−1)^c times a repeated difference of the weights w(s, ·).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes
from absentia.trees.joined_terms import TermTable, build_sets, enlarged, new_sets, place_of_set, write_set
from absentia.trees.levels import PlayedTrees
from absentia.trees.paths import PRESENT, Pair, find_paths


def repeated_differences(weight: Callable[[int, int, int], Fraction | float], order: int, longest: int) -> np.ndarray:
    """Return Σ_j C(m, j)·(−1)^j·w(s, t + j), by s, m and t, for leaves that depend on at most ``longest`` players."""
    differences = np.zeros((order + 1, longest + 1, longest + 1))
    for subset_size in range(order + 1):
        sizes = range(subset_size, longest + 1)
        row = [Fraction(weight(subset_size, size, order)) for size in sizes]
        for repetition in range(len(row)):
            first = subset_size
            differences[subset_size, repetition, first : first + len(row)] = [float(number) for number in row]
            row = [earlier - later for earlier, later in pairwise(row)]
    return differences


@compiled
def add_indices(
    table: TermTable,
    trees: PlayedTrees,
    sample: Codes,
    stand_ins: Codes,
    leaf_weights: np.ndarray,
    differences: np.ndarray,
) -> TermTable:
    """Add the indices of a sample with all of its stand-ins; return the table, which may have grown."""
    order = len(differences) - 1
    sets = new_sets()
    for draw in range(len(stand_ins)):
        pair = Pair(sample, stand_ins[draw], trees.player)
        paths = find_paths(trees.nodes, trees.roots, pair, len(trees.keys))
        start = 0
        for place in range(len(paths.leaves)):
            end = paths.ends[place]
            present = 0
            for number in range(start, end):
                present += paths.states[number] == PRESENT
            absent = end - start - present
            leaf_weight = leaf_weights[paths.leaves[place]]
            sets, built = build_sets(sets, paths, start, end, trees.keys, order, False)
            for number in range(built):
                chosen_absent = sets.absent[number]
                share = differences[sets.sizes[number], absent - chosen_absent, present + chosen_absent]
                sign = 1 - 2 * (chosen_absent & 1)
                if table.length[0] == len(table.keys):
                    table = enlarged(table)
                where = place_of_set(table.places, table.keys, sets.keys[number])
                if table.places[where] < 0:
                    write_set(table, where, sets, number, paths, start, start)  # no player is in all of these sets
                table.effects[table.places[where]] += sign * share * leaf_weight
            start = end
    return table
