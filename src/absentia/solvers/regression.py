"""Sampled Shapley values: a weighted regression over drawn coalitions.

Shapley values are the solution of a weighted regression over all coalitions; here it is solved over some of them.
Sizes are drawn equally often (by the leverage scores of the regression [musco2025leverage]), each set with its
complement, without replacement. The sample is stratified by size, and a size that the budget can cover is enumerated,
so that the estimate is exact when the budget reaches 2ⁿ. Errors come from a delete-a-group jackknife.
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
from absentia.games import Game, MaskedModel, ask, draws_of, readout_of

MIN_COALITIONS_PER_PLAYER = 4
JACKKNIFE_GROUPS = 10
# Eigenvalues below this share of the largest count as 0: one is, up to rounding errors.
_ZERO_EIGENVALUE = 1e-9
# Numbers that differ by less than this are the same up to rounding errors.
_ROUNDING = 1e-9


class Stratum(NamedTuple):
    """Drawn coalitions of one size, which represent all pairs of that size with a complement."""

    drawn: Coalitions
    total: int


class SampledShapley(NamedTuple):
    """Sampled Shapley values, and the values of the samples with all players absent and present."""

    attribution: Attribution
    empty: Float[Tensor, " samples"]
    full: Float[Tensor, " samples"]


def sample_shapley(game: Game, evaluations: int, seed: int) -> SampledShapley:
    """Estimate Shapley values from this many rows for each sample."""
    players = len(game.names)
    draws = draws_of(game)
    least = (MIN_COALITIONS_PER_PLAYER * players + 2) * draws
    if evaluations < least:
        raise wrong("evaluations", f"be at least {least} for {players} players", evaluations)
    generator = seeded(seed)
    strata = draw_strata(players, (evaluations // draws - 2) // 2, generator)
    coalitions = torch.cat([stratum.drawn for stratum in strata])
    values = _ask_in_pairs(game, coalitions)
    empty = values[:, :1]
    full = values[:, 1:2]
    # A pair enters the regression through its difference alone: the even part of a game has no Shapley values.
    odd = (values[:, 2 : 2 + len(coalitions)] - values[:, 2 + len(coalitions) :]) / 2
    sizes = coalitions.sum(1).double()
    targets = odd - (full - empty) * (sizes / players - 0.5)
    rows = coalitions.double() - sizes[:, None] / players
    share = (full - empty) / players
    replicates = [_solve(rows, targets, weights) + share for weights in _jackknife_weights(strata, generator)]
    estimate = replicates.pop()  # with all groups
    variance = torch.stack(replicates).var(0, correction=0) * (JACKKNIFE_GROUPS - 1)
    if not bool(torch.isfinite(variance).all()):
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{values.abs().max():.3g}")
    spent = game.samples * (2 + 2 * len(coalitions)) * draws
    kind = "sampled Shapley values"
    attribution = Attribution(estimate, variance.sqrt(), spent, game.names, kind, readout_of(game))
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
    """Distribute a number in proportion to weights; what exceeds the most that a part takes goes to the others."""
    shares = torch.minimum(weights * count / weights.sum(), most)
    for _ in range(50):
        free = shares < most
        lacking = count - float(shares.sum())
        if lacking < _ROUNDING or not bool(free.any()):
            break
        shares[free] = torch.minimum(shares[free] * (1 + lacking / float(shares[free].sum())), most[free])
    return shares


def _draw_pairs(players: int, size: int, count: int, total: int, generator: torch.Generator) -> Coalitions:
    """Draw distinct coalitions of one size; of the middle size, those with player 0."""
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
        # Repeated rows are dropped. The others keep their order, because a sorted one would bias the cut.
        _, first = np.unique(np.packbits(drawn.numpy(), axis=1), axis=0, return_index=True)
        drawn = drawn[np.sort(first)]
    return drawn[:count]


def _jackknife_weights(strata: list[Stratum], generator: torch.Generator) -> Float[Tensor, "replicates pairs"]:
    """Weight pairs by the regression's kernel and what they represent; every row but the last leaves a group out."""
    weights = []
    dealt = 0
    left_out = torch.arange(JACKKNIFE_GROUPS + 1)[:, None]
    for stratum in strata:
        count, players = stratum.drawn.shape
        size = int(stratum.drawn[0].sum())
        group = torch.full((count,), -1)
        if count < stratum.total:  # an enumerated stratum has no error and is never left out
            group = (torch.randperm(count, generator=generator) + dealt) % JACKKNIFE_GROUPS
            dealt += count
        kernel = stratum.total / (math.comb(players, size) * size * (players - size))
        used = (group != left_out).double()
        weighted = used * (kernel / used.sum(1, keepdim=True).clamp_min(1))
        # What is drawn of few pairs has smaller errors than of many: the correction for finite populations.
        correction = math.sqrt(1 - count / stratum.total)
        weights.append(weighted[-1] + correction * (weighted - weighted[-1]))
    return torch.cat(weights, dim=1)


def _solve(rows: Tensor, targets: Tensor, weights: Float[Tensor, " pairs"]) -> Float[Tensor, "samples players"]:
    """Solve the weighted least squares; the rows add up to 0, so the solution of least norm does too."""
    weighted = rows * weights[:, None]
    return targets @ weighted @ torch.linalg.pinv(weighted.T @ rows, rtol=_ZERO_EIGENVALUE, hermitian=True)
