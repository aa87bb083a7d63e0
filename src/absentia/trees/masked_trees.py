"""Samples with some of their players absent, as an ensemble of trees sees them.

Everything is a sum over pairs of a sample and a stand-in, and over the leaves that their mixtures can reach. No row
is predicted, so the cost depends on the leaves and not on the number of coalitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from absentia.trees.ensemble import Codes, TreeEnsemble, find_leaves
from absentia.trees.index_sums import add_indices, repeated_differences
from absentia.trees.joined_terms import TermTable, expand_sample, new_table, player_keys
from absentia.trees.levels import PlayedTrees
from absentia.trees.packed_walk import attribute_samples, pack
from absentia.trees.paths import (
    Pair,
    Paths,
    count_terms,
    find_paths,
    sums_by_condition,
    values_of_coalitions,
)


class LeafWeights(NamedTuple):
    """What each leaf adds to the explained value, if the value is a sum over leaves."""

    weights: np.ndarray  # kinds × leaves
    base: np.ndarray  # kinds; the value without any leaf
    kinds: np.ndarray  # the kind of each sample: samples of different classes may need different weights

    def of_sample(self, sample: int) -> np.ndarray:
        """Return the weights of the leaves for a sample."""
        weights: np.ndarray = self.weights[self.kinds[sample]]
        return weights

    def base_of(self, sample: int) -> float:
        """Return the value without any leaf for a sample."""
        return float(self.base[self.kinds[sample]])


class SampleTerms(NamedTuple):
    """The sets of one sample and their effects."""

    members: np.ndarray  # sets × players
    effects: np.ndarray
    rounding: float  # the size of the rounding errors in a value

    def up_to(self, order: int) -> SampleTerms:
        """Return the sets of at most this many players."""
        small = self.members.sum(1) <= order
        return self._replace(members=self.members[small], effects=self.effects[small])


@dataclass(frozen=True, eq=False)
class MaskedTrees:
    """An ensemble on samples and stand-ins."""

    ensemble: TreeEnsemble
    samples: Codes  # samples × columns
    stand_ins: Codes  # samples × draws × columns, or one row of draws for all samples
    player: np.ndarray  # the player of each column; −1 for columns that are always present
    player_count: int

    @property
    def draws(self) -> int:
        """The number of stand-ins for each sample."""
        return int(self.stand_ins.shape[1])

    @property
    def most_on_a_path(self) -> int:
        """A bound on the number of players on which a leaf depends."""
        return min(self.player_count, self.ensemble.depth)

    @property
    def most_terms(self) -> float:
        """A bound on the number of terms of a sample, before equal sets are joined."""
        return float(len(self.ensemble.leaf_trees)) * self.draws * 2.0**self.most_on_a_path

    @cached_property
    def played(self) -> PlayedTrees:
        """The trees and the players of their columns, as compiled loops take them."""
        keys = player_keys(self.player_count)
        return PlayedTrees(self.ensemble.nodes, self.ensemble.roots, self.player, keys)

    @cached_property
    def packed(self) -> np.ndarray:
        """The numbers of the nodes, next to each other in memory."""
        return pack(self.ensemble.nodes, self.player)

    def paths(self, sample: int, draws: Sequence[int] | None = None) -> Iterator[Paths]:
        """Yield the paths of a sample with each of its stand-ins."""
        stand_ins = self._stand_ins_of(sample)
        for stand_in in stand_ins if draws is None else stand_ins[list(draws)]:
            pair = Pair(self.samples[sample], stand_in, self.player)
            yield find_paths(self.ensemble.nodes, self.ensemble.roots, pair, self.player_count)

    def outputs(self, sample: int, coalitions: np.ndarray, draws: Sequence[int] | None = None) -> np.ndarray:
        """Return the ensemble's outputs for coalitions of a sample: draws × coalitions × outputs."""
        count = self.draws if draws is None else len(draws)
        outputs = np.empty((count, len(coalitions), self.ensemble.outputs))
        outputs[:] = self.ensemble.base
        weights = self.ensemble.weights_by_output
        for draw, paths in enumerate(self.paths(sample, draws)):
            values_of_coalitions(paths, weights, coalitions, outputs[draw])
        return outputs

    def masked_codes(self, sample: int) -> Codes:
        """Return the codes of a sample with all players absent, draws × columns."""
        return np.where(self.player < 0, self.samples[sample], self._stand_ins_of(sample))

    def ends(self, leaves: LeafWeights) -> tuple[np.ndarray, np.ndarray]:
        """Return v(∅) and v(N) of each sample."""
        nodes = self.ensemble.nodes
        roots = self.ensemble.roots
        full = np.empty(len(self.samples))
        empty = np.empty(len(self.samples))
        for sample, codes in enumerate(self.samples):
            weights = leaves.of_sample(sample)
            base = leaves.base[leaves.kinds[sample]]
            full[sample] = base + weights[find_leaves(nodes, roots, codes[None])].sum()
            empty[sample] = base + weights[find_leaves(nodes, roots, self.masked_codes(sample))].sum(1).mean()
        return empty, full

    def attributions(self, leaves: LeafWeights, shares: LeafShares) -> np.ndarray:
        """Return the sums of the leaves' contributions to their players, samples × players."""
        values: np.ndarray = attribute_samples(
            self.packed,
            self.played,
            self.samples,
            self.stand_ins,
            leaves.weights,
            leaves.kinds,
            shares.gains,
            shares.losses,
        )
        return values / self.draws

    def shapley(self, leaves: LeafWeights) -> np.ndarray:
        """Return Shapley values, samples × players."""
        return self.attributions(leaves, shapley_shares(self.most_on_a_path))

    def banzhaf(self, leaves: LeafWeights) -> np.ndarray:
        """Return Banzhaf values, samples × players."""
        return self.attributions(leaves, banzhaf_shares(self.most_on_a_path))

    def order_shapley(self, leaves: LeafWeights) -> np.ndarray:
        """Return order-wise Shapley values, samples × orders × players."""
        longest = self.most_on_a_path
        shares = _shares_of_orders(longest, self.player_count)
        values = np.empty((len(self.samples), self.player_count, self.player_count))
        for sample in range(len(self.samples)):
            weights = leaves.of_sample(sample) / self.draws
            sums = sums_by_condition(self.played, self.samples[sample], self._stand_ins_of(sample), weights, longest)
            values[sample] = (sums.reshape(self.player_count, -1) @ shares).T
        return values

    def indices(
        self, leaves: LeafWeights, sample: int, weight: Callable[[int, int, int], Fraction | float], order: int
    ) -> SampleTerms:
        """Return an interaction index of all sets of up to ``order`` players that share a leaf, and of ∅."""
        table = add_indices(
            new_table(order),
            self.played,
            self.samples[sample],
            self._stand_ins_of(sample),
            leaves.of_sample(sample) / self.draws,
            repeated_differences(weight, order, max(order, self.most_on_a_path)),
        )
        base = leaves.base_of(sample) * float(weight(0, 0, order))
        return self._read(leaves, sample, table, base)

    def count_terms(self, sample: int) -> np.ndarray:
        """Return the number of terms of each order, before equal sets are joined."""
        binomials = _binomials(self.most_on_a_path)
        counts: np.ndarray = count_terms(self.played, self.samples[sample], self._stand_ins_of(sample), binomials)
        return counts

    def terms(self, leaves: LeafWeights, sample: int) -> SampleTerms:
        """Return the sets of a sample and their effects."""
        table, _ = self._expand(leaves, sample, self.most_on_a_path, math.inf)
        return self._read(leaves, sample, table, leaves.base_of(sample))

    def terms_within(self, leaves: LeafWeights, sample: int, order: int, most_sets: float) -> SampleTerms | None:
        """Return the sets of up to so many players and their effects; None if there are too many sets."""
        table, complete = self._expand(leaves, sample, order, most_sets)
        if not complete:
            return None
        return self._read(leaves, sample, table, leaves.base_of(sample))

    def _expand(self, leaves: LeafWeights, sample: int, order: int, most_sets: float) -> tuple[TermTable, bool]:
        """Expand the leaves of a sample up to an order; return the table, and False if it was given up."""
        return expand_sample(
            new_table(order),
            self.played,
            self.samples[sample],
            self._stand_ins_of(sample),
            leaves.of_sample(sample) / self.draws,
            order,
            float(most_sets),
        )

    def _stand_ins_of(self, sample: int) -> Codes:
        """Return the stand-ins of a sample, draws × columns."""
        return self.stand_ins[sample % len(self.stand_ins)]

    def _read(self, leaves: LeafWeights, sample: int, table: TermTable, base: float) -> SampleTerms:
        """Return the sets of a table; the base value belongs to ∅."""
        rounding = float(np.finfo(np.float64).eps) * self.ensemble.strength(leaves.of_sample(sample))
        return SampleTerms(*_read_table(table, self.player_count, base, rounding), rounding)


@lru_cache(maxsize=32)
def _binomials(largest: int) -> np.ndarray:
    """Return C(n, k) for all n and k up to a number."""
    return np.array([[float(math.comb(n, k)) for k in range(largest + 1)] for n in range(largest + 1)])


def _read_table(table: TermTable, player_count: int, base: float, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the sets whose effects differ from 0 by more than rounding, and the effects; ∅ comes first."""
    length = int(table.length[0])
    effects = table.effects[:length]
    sizes = table.sizes[:length]
    counted = np.flatnonzero((np.abs(effects) > rounding) & (sizes > 0))
    members = np.zeros((1 + len(counted), player_count), bool)
    is_member = np.arange(table.members.shape[1]) < sizes[counted, None]
    members[1 + np.nonzero(is_member)[0], table.members[counted][is_member]] = True
    of_nobody = base + float(effects[sizes == 0].sum())
    return members, np.concatenate([[of_nobody], effects[counted]])


class LeafShares(NamedTuple):
    """What a leaf contributes to one of its players as a share of its weight, by |A| and |B|."""

    gains: np.ndarray  # for players of A, those that must be present
    losses: np.ndarray  # for players of B, those that must be absent; subtracted

    @classmethod
    def of(cls, longest: int, gain: Callable[[int, int], float], loss: Callable[[int, int], float]) -> LeafShares:
        """Tabulate shares for leaves that depend on a limited number of players."""
        gains = np.zeros((longest + 1, longest + 1))
        losses = np.zeros((longest + 1, longest + 1))
        for present in range(longest + 1):
            for absent in range(longest + 1 - present):
                if present:
                    gains[present, absent] = gain(present, absent)
                if absent:
                    losses[present, absent] = loss(present, absent)
        return cls(gains, losses)


def shapley_shares(longest: int) -> LeafShares:
    """Return the shares of Shapley values: (a − 1)!·b!/(a + b)! and a!·(b − 1)!/(a + b)!."""
    return LeafShares.of(
        longest,
        gain=lambda present, absent: 1 / (present * math.comb(present + absent, present)),
        loss=lambda present, absent: 1 / (absent * math.comb(present + absent, present)),
    )


def banzhaf_shares(longest: int) -> LeafShares:
    """Return the shares of Banzhaf values: 2^(1−a−b), how likely the leaf's other players are as it requires."""

    def share(present: int, absent: int) -> float:
        return 0.5 ** (present + absent - 1)

    return LeafShares.of(longest, share, share)


@lru_cache(maxsize=8)
def _shares_of_orders(longest: int, player_count: int) -> np.ndarray:
    """Return the shares of Shapley values of all orders: (present or absent, |A|, |B|) × orders.

    A player of A changes the value if the others of A are present and B is absent. This holds for
    C(n − a − b, m − a + 1) of the C(n − 1, m) coalitions of size m. A player of B changes the value if A is present
    and the others of B are absent, which is subtracted.
    """
    shares = np.zeros((2, longest + 1, longest + 1, player_count))
    contexts = _binomial_row(player_count - 1)
    for decided in range(1, longest + 1):
        free = _binomial_row(player_count - decided)
        for present in range(decided + 1):
            absent = decided - present
            for chosen, count in enumerate(free):
                if present > 0:
                    order = chosen + present - 1
                    shares[0, present, absent, order] = count / contexts[order]
                if absent > 0:
                    order = chosen + present
                    shares[1, present, absent, order] = -count / contexts[order]
    return shares.reshape(-1, player_count)


def _binomial_row(total: int) -> list[int]:
    """Return C(total, k) for k = 0 … total."""
    row = [1]
    for chosen in range(total):
        row.append(row[-1] * (total - chosen) // (chosen + 1))
    return row
