"""Shapley values by a weighted regression over drawn coalitions.

Shapley values are the solution of a weighted regression over all coalitions. Here it is solved over a sample of them
[musco2025leverage], so the estimate is exact if all coalitions are drawn. A pair of a coalition and its complement
enters only by its difference, because the even part of a game has Shapley values of 0. Errors come from a
delete-a-group jackknife.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.errors import wrong
from absentia.solvers.paired_draws import PairedValues, Stratum

JACKKNIFE_GROUPS = 10
# Eigenvalues below this share of the largest count as 0. One of them is 0 up to rounding errors.
_ZERO_EIGENVALUE = 1e-9
# From this many pairs on, their products are computed once for all replicates.
_MANY_PAIRS = 32
# If a pivot is below this share of the mean diagonal, eigenvalues decide what counts as 0.
_NEARLY_SINGULAR = 1e-6


class Replicates(NamedTuple):
    """Shapley values by the whole regression, and with one group of pairs left out in turn."""

    values: Float[Tensor, "samples players"]
    without_group: Float[Tensor, "groups samples players"]

    @property
    def errors(self) -> Float[Tensor, "samples players"]:
        """The standard errors by the jackknife."""
        return (self.without_group.var(0, correction=0) * (JACKKNIFE_GROUPS - 1)).sqrt()


def leverage_shapley(values: PairedValues, generator: torch.Generator) -> Replicates:
    """Estimate Shapley values by regression on drawn pairs."""
    coalitions = values.coalitions
    players = coalitions.shape[1]
    ends = (values.full - values.empty)[:, None]
    odd = (values.drawn - values.complements) / 2
    sizes = coalitions.sum(1).double()
    targets = odd - ends * (sizes / players - 0.5)
    rows = coalitions.double() - sizes[:, None] / players
    sums = _jackknife_sums(values.strata, rows, targets, generator)
    replicates = _solve(sums) + ends / players
    estimate = replicates[-1]  # the last replicate uses all groups
    regression = Replicates(estimate, replicates[:-1])
    if not bool(torch.isfinite(regression.errors).all()):
        largest = max(float(values.drawn.abs().max()), float(values.complements.abs().max()))
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{largest:.3g}")
    return regression


def _jackknife_sums(
    strata: tuple[Stratum, ...],
    rows: Float[Tensor, "pairs players"],
    targets: Float[Tensor, "samples pairs"],
    generator: torch.Generator,
) -> Float[Tensor, "replicates players columns"]:
    """Return the weighted products of rows with rows and targets, with one group left out in turn, and last with all.

    With n players, a size s has the kernel (number of its pairs) / (C(n, s) s (n − s)), which its drawn pairs share
    equally: w = kernel / m for m pairs. A replicate that leaves g of them out has the weights wᵣ = kernel / (m − g),
    and 0 for these g. Drawing m of M pairs without replacement has 1 − m/M of the variance of drawing with
    replacement, so each replicate is moved towards all pairs: w + √(1 − m/M) (wᵣ − w).
    """
    columns = torch.cat([rows, targets.T], dim=1)
    sums = rows.new_zeros(JACKKNIFE_GROUPS + 1, rows.shape[1], columns.shape[1])
    weights = rows.new_zeros(JACKKNIFE_GROUPS + 1, len(rows))  # beside those of whole strata
    dealt = 0  # pairs that already have a group; used to keep the groups equally large over all strata
    first = 0
    for stratum in strata:
        count = len(stratum.drawn)
        own = slice(first, first + count)
        first += count
        group_of_pair = _group_of_pair(stratum, dealt, generator)
        if not stratum.is_enumerated:
            dealt += count
        kept, left_out = _jackknife_weights(stratum, group_of_pair)
        is_left_out = group_of_pair == torch.arange(JACKKNIFE_GROUPS + 1)[:, None]
        is_left_out[-1] = False
        own_weights = torch.where(is_left_out, left_out, kept[:, None])
        if count >= _MANY_PAIRS:  # one product for all replicates is quicker
            sums += kept[:, None, None] * (rows[own].T @ columns[own])
            own_weights -= kept[:, None]
        weights[:, own] = own_weights
    for number, of_replicate in enumerate(weights):
        pairs = of_replicate.nonzero().flatten()
        sums[number] += (rows[pairs] * of_replicate[pairs, None]).T @ columns[pairs]
    return sums


def _jackknife_weights(
    stratum: Stratum, group_of_pair: Int[Tensor, " pairs"]
) -> tuple[Float[Tensor, " replicates"], float]:
    """Return the weight of a pair of a stratum in each replicate that uses it, and in the one that leaves it out."""
    count = len(stratum.drawn)
    missing = torch.bincount(group_of_pair, minlength=JACKKNIFE_GROUPS + 1).double()
    missing[-1] = 0  # the last replicate uses all pairs, and none leaves enumerated ones out
    of_all = stratum.kernel / count
    finite_population = math.sqrt(1 - count / stratum.total)
    of_others = stratum.kernel / (count - missing).clamp_min(1)
    return of_all + finite_population * (of_others - of_all), of_all * (1 - finite_population)


def _group_of_pair(stratum: Stratum, dealt: int, generator: torch.Generator) -> Int[Tensor, " pairs"]:
    """Return the group of each pair; enumerated strata have no error, so they are in a last group that stays."""
    count = len(stratum.drawn)
    if stratum.is_enumerated:
        return torch.full((count,), JACKKNIFE_GROUPS)
    return (torch.randperm(count, generator=generator) + dealt) % JACKKNIFE_GROUPS


def _solve(sums: Float[Tensor, "replicates players columns"]) -> Float[Tensor, "replicates samples players"]:
    """Solve the weighted least squares; rows of the design sum to 0, so the solution of least norm does too."""
    players = sums.shape[1]
    grams = sums[..., :players]
    products = sums[..., players:]
    # Adding a constant in the direction that the rows leave out makes the sums invertible, and changes nothing.
    level = grams.diagonal(dim1=1, dim2=2).mean(1)
    factors, failed = torch.linalg.cholesky_ex(grams + (level / players)[:, None, None])
    least = factors.diagonal(dim1=1, dim2=2).square().amin(1)
    if bool(failed.any()) or bool((least <= _NEARLY_SINGULAR * level).any()):
        inverses = torch.linalg.pinv(grams, rtol=_ZERO_EIGENVALUE, hermitian=True)
        return (inverses @ products).transpose(1, 2)
    return torch.cholesky_solve(products, factors).transpose(1, 2)
