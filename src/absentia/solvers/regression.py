"""Sampled Shapley values: a weighted regression over drawn coalitions.

Shapley values are the solution of a weighted regression over all coalitions. Here it is solved over a sample of them.
All sizes are drawn equally often, according to the leverage scores of the regression [musco2025leverage]. Coalitions
are drawn without replacement, each with its complement. The sample is stratified by size, and sizes that the budget
can cover are enumerated, so the estimate is exact if the budget reaches 2ⁿ. Errors come from a delete-a-group
jackknife.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.attributions import Attribution
from absentia.coalitions import Coalitions, draw_coalitions
from absentia.data import seeded
from absentia.errors import wrong
from absentia.evaluation import check_finite
from absentia.games import Game, MaskedModel, RowMeter, ask, draws_of, readout_of

MIN_COALITIONS_PER_PLAYER = 4
JACKKNIFE_GROUPS = 10
# Eigenvalues below this share of the largest count as 0. One of them is 0 up to rounding errors.
_ZERO_EIGENVALUE = 1e-9
# Numbers that differ by less than this are the same up to rounding errors.
_ROUNDING = 1e-9


class Stratum(NamedTuple):
    """Drawn coalitions of one size, which with their complements represent all such pairs."""

    drawn: Coalitions
    total: int

    @property
    def is_enumerated(self) -> bool:
        """Whether all pairs are drawn."""
        return len(self.drawn) == self.total

    @property
    def kernel(self) -> float:
        """The weight of all pairs together in the regression: their number / (C(n, s) s (n − s))."""
        players = self.drawn.shape[1]
        size = int(self.drawn[0].sum())
        return self.total / (math.comb(players, size) * size * (players - size))


class SampledShapley(NamedTuple):
    """Sampled Shapley values, and the values of the samples with all players absent and with all present."""

    attribution: Attribution
    empty: Float[Tensor, " samples"]
    full: Float[Tensor, " samples"]


def sample_shapley(game: Game, evaluations: int, seed: int) -> SampledShapley:
    """Estimate Shapley values from a budget of rows for each sample."""
    players = len(game.names)
    draws = draws_of(game)
    least = (MIN_COALITIONS_PER_PLAYER * players + 2) * draws
    if evaluations < least:
        raise wrong("evaluations", f"be at least {least} for {players} players", evaluations)
    generator = seeded(seed)
    strata = draw_strata(players, (evaluations // draws - 2) // 2, generator)
    coalitions = torch.cat([stratum.drawn for stratum in strata])
    meter = RowMeter.start(game)
    values = _ask_in_pairs(game, coalitions)
    empty = values[:, :1]
    full = values[:, 1:2]
    # A pair enters the regression only by its difference, because the even part of a game has Shapley values of 0.
    odd = (values[:, 2 : 2 + len(coalitions)] - values[:, 2 + len(coalitions) :]) / 2
    sizes = coalitions.sum(1).double()
    targets = odd - (full - empty) * (sizes / players - 0.5)
    rows = coalitions.double() - sizes[:, None] / players
    share = (full - empty) / players
    replicates = [_solve(rows, targets, weights) + share for weights in _jackknife_weights(strata, generator)]
    estimate = replicates.pop()  # the last replicate uses all groups
    variance = torch.stack(replicates).var(0, correction=0) * (JACKKNIFE_GROUPS - 1)
    if not bool(torch.isfinite(variance).all()):
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{values.abs().max():.3g}")
    spent = game.samples * (2 + 2 * len(coalitions)) * draws
    kind = "sampled Shapley values"
    attribution = Attribution(
        estimate, variance.sqrt(), spent, game.names, kind, readout_of(game), rows_seen=meter.rows_seen
    )
    return SampledShapley(attribution, empty[:, 0], full[:, 0])


def _ask_in_pairs(game: Game, coalitions: Coalitions) -> Float[Tensor, "samples asked"]:
    """Return the values of ∅, of N, of coalitions, and of their complements, in this order."""
    players = coalitions.shape[1]
    ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
    asked = torch.cat([ends, coalitions, ~coalitions])
    values = ask(game, asked).double().cpu()
    check_finite(values, torch.arange(len(values)), asked.expand(len(values), -1, -1), "values of the game")
    if isinstance(game, MaskedModel):
        game.evaluator.check_full(values[-1, 1], values)
        game.evaluator.check_still_same()
    return values


def draw_strata(players: int, pairs: int, generator: torch.Generator) -> list[Stratum]:
    """Distribute the pairs over the sizes 1 … n/2, and draw them without replacement."""
    sizes = range(1, players // 2 + 1)
    totals = []
    leverages = []
    for size in sizes:
        in_the_middle = 2 * size == players
        # Sizes s and n − s share a stratum, so the middle size of an even n has half the leverage of the others.
        totals.append(math.comb(players, size) // (2 if in_the_middle else 1))
        leverages.append(0.5 if in_the_middle else 1.0)
    most = torch.tensor([min(total, pairs) for total in totals]).double()
    shares = share_out(min(pairs, sum(totals)), torch.tensor(leverages).double(), most)
    # Systematic rounding: whole numbers that add up, each within one of its share.
    reached = shares.cumsum(0) + torch.rand(1, generator=generator)
    counts = torch.cat([torch.zeros(1), (reached + _ROUNDING).floor()]).diff().long().tolist()
    return [
        Stratum(_draw_pairs(players, size, count, total, generator), total)
        for size, count, total in zip(sizes, counts, totals, strict=True)
        if count
    ]


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


def _draw_pairs(players: int, size: int, count: int, total: int, generator: torch.Generator) -> Coalitions:
    """Draw distinct coalitions of one size; for the middle size, only those that contain player 0."""
    if total <= 4 * count:
        members = torch.tensor(list(itertools.islice(itertools.combinations(range(players), size), total)))
        every = torch.zeros(total, players, dtype=torch.bool).scatter(1, members, True)
        return every[torch.randperm(total, generator=generator)[:count]]
    drawn = torch.zeros(0, players, dtype=torch.bool)
    while len(drawn) < count:
        more = draw_coalitions(players, torch.full((count,), size), generator)
        if 2 * size == players:
            more = more ^ ~more[:, :1]
        drawn = torch.cat([drawn, more])
        # Repeated rows are dropped. The others keep their order, because sorting them would bias the cut.
        _, first = np.unique(np.packbits(drawn.numpy(), axis=1), axis=0, return_index=True)
        drawn = drawn[np.sort(first)]
    return drawn[:count]


def _jackknife_weights(strata: list[Stratum], generator: torch.Generator) -> Float[Tensor, "replicates pairs"]:
    """Return the weights of all drawn pairs in each regression: with one group left out in turn, and last with all.

    With n players, a size s has the kernel (number of its pairs) / (C(n, s) s (n − s)), which its drawn pairs share
    equally: w = kernel / m for m pairs. A replicate that leaves g of them out has the weights wᵣ = kernel / (m − g),
    and 0 for these g. Drawing m of M pairs without replacement has 1 − m/M of the variance of drawing with
    replacement, so each replicate is moved towards all pairs: w + √(1 − m/M) (wᵣ − w).
    """
    weights = []
    dealt = 0  # pairs that already have a group; used to keep the groups equally large over all strata
    for stratum in strata:
        used = _used_by_replicates(stratum, dealt, generator)  # (replicates, pairs)
        if not stratum.is_enumerated:
            dealt += len(stratum.drawn)
        shared_kernel = stratum.kernel / used.sum(1, keepdim=True).clamp_min(1)  # (replicates, 1)
        of_replicates = used * shared_kernel  # (replicates, pairs)
        of_all = of_replicates[-1]  # (pairs,)
        finite_population = math.sqrt(1 - len(stratum.drawn) / stratum.total)
        weights.append(of_all + finite_population * (of_replicates - of_all))
    return torch.cat(weights, dim=1)


def _used_by_replicates(
    stratum: Stratum, dealt: int, generator: torch.Generator
) -> Float[Tensor, "replicates pairs"]:
    """Return 1 for the pairs that a replicate uses and 0 for its group; the last replicate uses all pairs."""
    count = len(stratum.drawn)
    if stratum.is_enumerated:  # enumerated strata have no error, so they are never left out
        return torch.ones(JACKKNIFE_GROUPS + 1, count).double()
    group_of_pair = (torch.randperm(count, generator=generator) + dealt) % JACKKNIFE_GROUPS
    group_left_out = torch.arange(JACKKNIFE_GROUPS + 1)[:, None]  # no pair is in the last group
    return (group_of_pair != group_left_out).double()


def _solve(rows: Tensor, targets: Tensor, weights: Float[Tensor, " pairs"]) -> Float[Tensor, "samples players"]:
    """Solve the weighted least squares; rows of the design sum to 0, so the solution of least norm does too."""
    weighted = rows * weights[:, None]
    return targets @ weighted @ torch.linalg.pinv(weighted.T @ rows, rtol=_ZERO_EIGENVALUE, hermitian=True)
