"""Shapley values from a sample of coalitions, with standard errors.

The Shapley values are the solution of a weighted regression over all coalitions. Here it is solved over some of
them: sizes equally often (the leverage scores of the regression [musco2025leverage]), each set with its complement,
without replacement. The sample is stratified by size, and a size that the budget can cover is enumerated, so that
the estimate becomes exact when the budget reaches 2ⁿ. Errors come from a delete-a-group jackknife.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import coalition_numbers, draw_coalitions
from absentia.game import Game

MIN_EVALUATIONS_PER_PLAYER = 4
JACKKNIFE_GROUPS = 10


@dataclass(frozen=True)
class Stratum:
    """Drawn coalitions of one size, standing with their complements for all pairs of that size."""

    coalitions: Bool[Tensor, "pairs players"]
    total: int  # how many pairs of this size there are


def sample_shapley(
    game: Game, evaluations: int, seed: int
) -> tuple[Float[Tensor, "samples players"], Float[Tensor, "samples players"], int]:
    """Estimate the Shapley values and their standard errors; also tell the evaluations spent."""
    players = len(game.names)
    generator = torch.Generator().manual_seed(seed)
    strata = draw_strata(players, (evaluations - 2) // 2, generator)
    coalitions = torch.cat([stratum.coalitions for stratum in strata])
    ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
    values = game(torch.cat([ends, coalitions, ~coalitions])).double().cpu()
    empty, full = values[:, :1], values[:, 1:2]
    # A pair enters the regression through its difference alone: the even part of a game has no Shapley values.
    odd = (values[:, 2 : 2 + len(coalitions)] - values[:, 2 + len(coalitions) :]) / 2
    sizes = coalitions.sum(1).double()
    targets = odd - (full - empty) * (sizes / players - 0.5)
    rows = coalitions.double() - sizes[:, None] / players
    share = (full - empty) / players
    groups = _jackknife_groups(strata, generator)
    estimate = _solve(rows, targets, _weights(strata, groups, left_out=None)) + share
    replicates = torch.stack(
        [_solve(rows, targets, _weights(strata, groups, left_out=g)) + share for g in range(JACKKNIFE_GROUPS)]
    )
    spread = ((replicates - replicates.mean(0)) ** 2).sum(0) * (JACKKNIFE_GROUPS - 1) / JACKKNIFE_GROUPS
    spent = game.samples * (2 + 2 * len(coalitions)) * getattr(game, "draws", 1)
    return estimate, spread.sqrt(), spent


def draw_strata(players: int, pairs: int, generator: torch.Generator) -> list[Stratum]:
    """Share the pairs out among the sizes 1 … n/2, and draw them without replacement."""
    totals = [_pairs_of_size(players, size) for size in range(1, players // 2 + 1)]
    # Sizes s and n − s share a stratum, so the middle size of an even n has half the leverage of the others.
    leverage = [1.0 if 2 * size < players else 0.5 for size in range(1, players // 2 + 1)]
    drawn = _allocate(pairs, totals, leverage, generator)
    return [
        Stratum(_draw_pairs(players, size, count, total, generator), total)
        for size, (count, total) in enumerate(zip(drawn, totals, strict=True), start=1)
        if count
    ]


def _pairs_of_size(players: int, size: int) -> int:
    return math.comb(players, size) // (2 if 2 * size == players else 1)


def _allocate(pairs: int, totals: list[int], leverage: list[float], generator: torch.Generator) -> list[int]:
    """Share out in proportion to leverage, no more than there are; what a size cannot take goes to the others."""
    shares = [0.0] * len(totals)
    open_strata = set(range(len(totals)))
    left = float(min(pairs, sum(totals)))
    while left > 1e-9 and open_strata:
        unit = left / sum(leverage[i] for i in open_strata)
        for i in sorted(open_strata):
            take = min(unit * leverage[i], totals[i] - shares[i])
            shares[i] += take
            left -= take
            if shares[i] >= totals[i] - 1e-9:
                open_strata.discard(i)
    # Systematic rounding: whole numbers that add up, each within one of its share.
    offset = float(torch.rand(1, generator=generator))
    bounds = [math.floor(total + offset) for total in itertools.accumulate(shares, initial=0.0)]
    return [min(b - a, totals[i]) for i, (a, b) in enumerate(itertools.pairwise(bounds))]


def _draw_pairs(
    players: int, size: int, count: int, total: int, generator: torch.Generator
) -> Bool[Tensor, "pairs players"]:
    """Draw distinct coalitions of one size; of the middle size, those with player 0 stand for their complements."""
    if total <= 4 * count:
        members = torch.tensor(list(itertools.islice(itertools.combinations(range(players), size), total)))
        every = torch.zeros(total, players, dtype=torch.bool).scatter(1, members, True)
        return every[torch.randperm(total, generator=generator)[:count]]
    drawn = torch.zeros(0, players, dtype=torch.bool)
    while len(drawn) < count:
        more = draw_coalitions(players, torch.full((count,), size), generator)
        if 2 * size == players:
            more = more ^ ~more[:, :1]
        drawn = _distinct(torch.cat([drawn, more]))
    return drawn[:count]


def _distinct(coalitions: Tensor) -> Tensor:
    """Drop repeated rows, keeping the order of first appearance (a sorted order would bias a cut)."""
    if coalitions.shape[1] < 63:
        _, inverse = torch.unique(coalition_numbers(coalitions), return_inverse=True)
    else:
        _, inverse = torch.unique(coalitions, dim=0, return_inverse=True)
    first = torch.full((int(inverse.max()) + 1,), len(inverse)).scatter_reduce(
        0, inverse, torch.arange(len(inverse)), "amin"
    )
    return coalitions[first.sort().values]


def _jackknife_groups(strata: list[Stratum], generator: torch.Generator) -> list[Int[Tensor, " pairs"]]:
    """Deal each stratum's pairs out to the groups; an enumerated stratum has no error and is never left out."""
    groups = []
    dealt = 0
    for stratum in strata:
        count = len(stratum.coalitions)
        if count == stratum.total:
            groups.append(torch.full((count,), -1))
        else:
            groups.append((torch.randperm(count, generator=generator) + dealt) % JACKKNIFE_GROUPS)
            dealt += count
    return groups


def _weights(strata: list[Stratum], groups: list[Tensor], left_out: int | None) -> Float[Tensor, " pairs"]:
    """Weigh each pair by the regression's kernel times the number of pairs that it stands for."""
    weights = []
    for stratum, group in zip(strata, groups, strict=True):
        size, players = int(stratum.coalitions[0].sum()), stratum.coalitions.shape[1]
        kernel = 1 / (math.comb(players, size) * size * (players - size))
        kept = (group != left_out) if left_out is not None else torch.ones_like(group, dtype=torch.bool)
        weights.append(kept.double() * (kernel * stratum.total / max(1, int(kept.sum()))))
    return torch.cat(weights)


def _solve(
    rows: Float[Tensor, "pairs players"],
    targets: Float[Tensor, "samples pairs"],
    weights: Float[Tensor, " pairs"],
) -> Float[Tensor, "samples players"]:
    """Solve the weighted least squares; the rows add up to 0, so the solution of least norm does too."""
    weighted = rows * weights[:, None]
    # The threshold tells the one zero eigenvalue, which carries rounding errors, from the true ones.
    return targets @ weighted @ torch.linalg.pinv(weighted.T @ rows, rtol=1e-9, hermitian=True)
