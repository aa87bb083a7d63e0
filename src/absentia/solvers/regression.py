"""Shapley values by a weighted regression over drawn coalitions.

Shapley values are the solution of a weighted regression over all coalitions. Here it is solved over a sample of them
[musco2025leverage], so the estimate is exact if all coalitions are drawn. A pair of a coalition and its complement
enters only by its difference, because the even part of a game has Shapley values of 0. Errors come from a jackknife
that leaves out one pair after the other, which has a closed form: without a pair of residual e and leverage h, the
values move by its influence times e / (1 − h) [mackinnon1985heteroskedasticity].
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.errors import wrong
from absentia.solvers.paired_draws import PairedValues, Stratum

# Eigenvalues below this share of the largest count as 0. One of them is 0 up to rounding errors.
_ZERO_EIGENVALUE = 1e-9
# If a pivot is below this share of the mean diagonal, eigenvalues decide what counts as 0.
_NEARLY_SINGULAR = 1e-6
# If other pairs decide less than this share of what is fitted to a pair, it alone determines some value.
_LEAST_SHARE_OF_OTHERS = 1e-6


class Regression(NamedTuple):
    """Shapley values with standard errors."""

    values: Float[Tensor, "samples players"]
    errors: Float[Tensor, "samples players"]


class PairWeights(NamedTuple):
    """The weight of each pair in the regression, and the share of the pairs of its size that were not drawn."""

    weights: Float[Tensor, " pairs"]
    undrawn: Float[Tensor, " pairs"]


def leverage_shapley(values: PairedValues) -> Regression:
    """Estimate Shapley values by regression on drawn pairs."""
    coalitions = values.coalitions
    players = coalitions.shape[1]
    ends = (values.full - values.empty)[:, None]
    odd = (values.drawn - values.complements) / 2
    sizes = coalitions.sum(1).double()
    targets = odd - ends * (sizes / players - 0.5)
    rows = coalitions.double() - sizes[:, None] / players
    weights, undrawn = pair_weights(values.strata)
    influences = _influences(rows, weights)
    deviations = targets @ influences
    estimates = deviations + ends / players
    residuals = targets - deviations @ rows.T
    leverages = (influences * rows).sum(1)
    shares_of_others = 1 - leverages
    residuals_without = residuals / shares_of_others.clamp_min(_LEAST_SHARE_OF_OTHERS)
    # What a pair alone determines could be anything without it: errors are as large as its own value.
    residuals_without = torch.where(shares_of_others < _LEAST_SHARE_OF_OTHERS, targets, residuals_without)
    # Draws without replacement from few pairs vary less.
    errors = ((undrawn * residuals_without.square()) @ influences.square()).sqrt()
    if not bool(torch.isfinite(errors).all()):
        largest = max(float(values.drawn.abs().max()), float(values.complements.abs().max()))
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{largest:.3g}")
    return Regression(estimates, errors)


def pair_weights(strata: tuple[Stratum, ...]) -> PairWeights:
    """Return the weights of pairs; all pairs of size s together have (their number) / (C(n, s) s (n − s))."""
    weights = []
    undrawn = []
    for stratum in strata:
        count = len(stratum.drawn)
        weights.append(torch.full((count,), stratum.kernel / count, dtype=torch.float64))
        undrawn.append(torch.full((count,), 1 - count / stratum.total, dtype=torch.float64))
    return PairWeights(torch.cat(weights), torch.cat(undrawn))


def _influences(
    rows: Float[Tensor, "pairs players"], weights: Float[Tensor, " pairs"]
) -> Float[Tensor, "pairs players"]:
    """Return how much each target moves the solution of the weighted least squares, which is linear in them.

    Rows of the design sum to 0, so the solution of least norm does too.
    """
    players = rows.shape[1]
    weighted = rows * weights[:, None]
    gram = weighted.T @ rows
    # Adding a constant in the direction that the rows leave out makes the sums invertible, and changes nothing.
    level = float(gram.diagonal().mean())
    factor, failed = torch.linalg.cholesky_ex(gram + level / players)
    least = float(factor.diagonal().square().min())
    if int(failed) or least <= _NEARLY_SINGULAR * level:
        return weighted @ torch.linalg.pinv(gram, rtol=_ZERO_EIGENVALUE, hermitian=True)
    return torch.cholesky_solve(weighted.T, factor).T
