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
from jaxtyping import Float
from torch import Tensor

from absentia.errors import wrong
from absentia.solvers.paired_draws import PairedValues, Stratum

JACKKNIFE_GROUPS = 10
# Eigenvalues below this share of the largest count as 0. One of them is 0 up to rounding errors.
_ZERO_EIGENVALUE = 1e-9


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
    share = ends / players
    replicates = [_solve(rows, targets, weights) + share for weights in _jackknife_weights(values.strata, generator)]
    estimate = replicates.pop()  # the last replicate uses all groups
    regression = Replicates(estimate, torch.stack(replicates))
    if not bool(torch.isfinite(regression.errors).all()):
        largest = max(float(values.drawn.abs().max()), float(values.complements.abs().max()))
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{largest:.3g}")
    return regression


def _jackknife_weights(strata: tuple[Stratum, ...], generator: torch.Generator) -> Float[Tensor, "replicates pairs"]:
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
