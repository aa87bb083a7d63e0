"""Drawn coalitions of all sizes, each with its complement, and their values.

All sizes are drawn equally often, which are the leverage scores of the regression that Shapley values solve
[musco2025leverage]. Coalitions are drawn without replacement and stratified by size, and sizes that the budget can
cover are enumerated. Draws can be extended: coalitions that are there already are not drawn again.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.coalitions import Coalitions, draw_coalitions

# Estimates need at least this many coalitions for each player.
MIN_COALITIONS_PER_PLAYER = 4
# Numbers that differ by less than this are the same up to rounding errors.
_ROUNDING = 1e-9
# Sums over values that are below this share of the largest one are rounding errors.
_ROUNDING_OF_SUMS = 1e-12


class Stratum(NamedTuple):
    """Drawn coalitions of one size, which with their complements represent all such pairs."""

    drawn: Coalitions
    total: int

    @property
    def is_enumerated(self) -> bool:
        """Whether all pairs are drawn."""
        return len(self.drawn) == self.total

    @property
    def size(self) -> int:
        """The number of players in each coalition."""
        return int(self.drawn[0].sum())

    @property
    def kernel(self) -> float:
        """The weight of all pairs together in the regression: their number / (C(n, s) s (n − s))."""
        players = self.drawn.shape[1]
        return self.total / (math.comb(players, self.size) * self.size * (players - self.size))


def draw_strata(
    players: int, pairs: int, generator: torch.Generator, earlier: tuple[Stratum, ...] = ()
) -> tuple[Stratum, ...]:
    """Distribute pairs over the sizes 1 … n/2, and draw them without replacement, in addition to earlier ones.

    ``pairs`` counts the earlier ones.
    """
    earlier_draws = {stratum.size: stratum.drawn for stratum in earlier}
    nothing = torch.zeros(0, players, dtype=torch.bool)
    drawn_by_size = [earlier_draws.get(size, nothing) for size in range(1, players // 2 + 1)]
    counts = _pairs_by_size(players, pairs, generator, [len(drawn) for drawn in drawn_by_size])
    strata = []
    for size, (drawn, (count, total)) in enumerate(zip(drawn_by_size, counts, strict=True), start=1):
        if count:
            strata.append(Stratum(_draw_more(drawn, size, count, total, generator), total))
    return tuple(strata)


def _pairs_by_size(players: int, pairs: int, generator: torch.Generator, earlier: list[int]) -> list[tuple[int, int]]:
    """Return how many pairs to draw of each size 1 … n/2, no fewer than the earlier ones, and how many there are."""
    totals = []
    leverages = []
    for size in range(1, players // 2 + 1):
        in_the_middle = 2 * size == players
        # Sizes s and n − s share a stratum, so the middle size of an even n has half the leverage of the others.
        totals.append(math.comb(players, size) // (2 if in_the_middle else 1))
        leverages.append(0.5 if in_the_middle else 1.0)
    most = torch.tensor([min(total, pairs) for total in totals]).double()
    least = torch.tensor(earlier).double()
    count = max(min(pairs, sum(totals)), sum(earlier))
    shares = _share_out_above(count, torch.tensor(leverages).double(), least, most.maximum(least))
    # Systematic rounding: whole numbers that add up, each within one of its share.
    reached = shares.cumsum(0) + torch.rand(1, generator=generator)
    counts = torch.cat([torch.zeros(1), (reached + _ROUNDING).floor()]).diff().long().tolist()
    return list(zip(counts, totals, strict=True))


def _share_out_above(
    count: int,
    weights: Float[Tensor, " parts"],
    least: Float[Tensor, " parts"],
    most: Float[Tensor, " parts"],
) -> Float[Tensor, " parts"]:
    """Distribute a number in proportion to weights, so that each part gets its least at any rate."""
    has_least = torch.zeros(len(weights), dtype=torch.bool)
    while True:
        shares = least.clone()
        shares[~has_least] = share_out(count - int(least[has_least].sum()), weights[~has_least], most[~has_least])
        is_below = shares < least - _ROUNDING
        if not bool(is_below.any()):
            return shares
        has_least |= is_below


def share_out(count: int, weights: Float[Tensor, " parts"], most: Float[Tensor, " parts"]) -> Float[Tensor, " parts"]:
    """Distribute a number in proportion to weights; what exceeds a part's maximum goes to the others."""
    shares = torch.minimum(weights * count / weights.sum(), most)
    for _ in range(50):
        free = shares < most
        lacking = count - float(shares.sum())
        if lacking < _ROUNDING or not bool(free.any()):
            break
        shares[free] = torch.minimum(shares[free] * (1 + lacking / float(shares[free].sum())), most[free])
    return shares


def _draw_more(
    drawn: Bool[Tensor, "known players"], size: int, count: int, total: int, generator: torch.Generator
) -> Coalitions:
    """Draw coalitions of one size until there are ``count``; for the middle size, only those that contain player 0.

    Coalitions that are drawn already come first.
    """
    players = drawn.shape[1]
    if len(drawn) >= count:
        return drawn
    if total <= 4 * count:
        members = torch.tensor(list(itertools.islice(itertools.combinations(range(players), size), total)))
        every = torch.zeros(total, players, dtype=torch.bool).scatter(1, members, True)
        shuffled = every[torch.randperm(total, generator=generator)]
        return _distinct(torch.cat([drawn, shuffled]))[:count]
    while len(drawn) < count:
        more = draw_coalitions(players, torch.full((count - len(drawn) + 1,), size), generator)
        if 2 * size == players:
            more = more ^ ~more[:, :1]
        drawn = _distinct(torch.cat([drawn, more]))
    return drawn[:count]


def _distinct(coalitions: Coalitions) -> Bool[Tensor, "distinct players"]:
    """Drop repeated rows. The others keep their order, because sorting them would bias the cut."""
    _, first = np.unique(np.packbits(coalitions.numpy(), axis=1), axis=0, return_index=True)
    return coalitions[np.sort(first)]


@dataclass(frozen=True, eq=False)
class PairedValues:
    """The values of ∅, of all players together, of drawn coalitions, and of their complements.

    With a random absence, the second axis holds values by groups of its draws.
    """

    strata: tuple[Stratum, ...]
    shares: Float[Tensor, " groups"]  # of the draws in each group; they add up to 1
    ends_by_group: Float[Tensor, "samples groups 2"]
    drawn_by_group: Float[Tensor, "samples groups pairs"]
    complements_by_group: Float[Tensor, "samples groups pairs"]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.ends_by_group)

    @property
    def pairs(self) -> int:
        """The number of drawn pairs."""
        return self.drawn_by_group.shape[2]

    @property
    def coalitions_per_sample(self) -> int:
        """How many coalitions were evaluated for each sample."""
        return 2 + 2 * self.pairs

    @property
    def undrawn_share(self) -> float:
        """The share of all pairs that were not drawn."""
        all_pairs = 2 ** (self.coalitions.shape[1] - 1) - 1  # without ∅ and all players together
        return 1 - self.pairs / all_pairs

    @property
    def is_complete(self) -> bool:
        """Whether all coalitions are there."""
        return self.undrawn_share == 0

    @cached_property
    def coalitions(self) -> Coalitions:
        """One coalition of each pair."""
        return torch.cat([stratum.drawn for stratum in self.strata])

    @property
    def empty(self) -> Float[Tensor, " samples"]:
        """The values of ∅."""
        return self._mean(self.ends_by_group)[:, 0]

    @property
    def full(self) -> Float[Tensor, " samples"]:
        """The values of all players together."""
        return self._mean(self.ends_by_group)[:, 1]

    @property
    def drawn(self) -> Float[Tensor, "samples pairs"]:
        """The values of the drawn coalitions."""
        return self._mean(self.drawn_by_group)

    @property
    def complements(self) -> Float[Tensor, "samples pairs"]:
        """The values of their complements."""
        return self._mean(self.complements_by_group)

    @property
    def has_groups(self) -> bool:
        """Whether values are known for several groups of draws."""
        return len(self.shares) > 1

    @property
    def rounding(self) -> Float[Tensor, " samples"]:
        """The size of sums over the values of each sample that are no more than rounding errors."""
        largest = torch.stack([self.ends_by_group.abs().amax((1, 2)), self.drawn.abs().amax(1)]).amax(0)
        return _ROUNDING_OF_SUMS * largest.maximum(self.complements.abs().amax(1))

    def of_samples(self, samples: list[int]) -> PairedValues:
        """Return the values of some samples."""
        return PairedValues(
            self.strata,
            self.shares,
            self.ends_by_group[samples],
            self.drawn_by_group[samples],
            self.complements_by_group[samples],
        )

    def of_group(self, group: int) -> PairedValues:
        """Return the values of one group of draws."""
        own = slice(group, group + 1)
        return PairedValues(
            self.strata,
            torch.ones(1, dtype=torch.float64),
            self.ends_by_group[:, own],
            self.drawn_by_group[:, own],
            self.complements_by_group[:, own],
        )

    def _mean(self, by_group: Float[Tensor, "samples groups values"]) -> Float[Tensor, "samples values"]:
        """Average over all draws."""
        if not self.has_groups:
            return by_group[:, 0]
        return torch.einsum("sgv,g->sv", by_group, self.shares)
