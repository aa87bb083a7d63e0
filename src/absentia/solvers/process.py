"""Shapley values by a Gaussian process that is fitted to drawn coalitions.

Shapley values depend on the odd part of a game alone, so half of the values are fitted: one for each pair of a
coalition and its complement. Each sample has a process of its own, in which every player has a weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.cube.diagonals import shapley_functional
from absentia.cube.kernels import CubeKernel, Part, Signs, part_of, signs_of
from absentia.cube.likelihood import fit_kernel
from absentia.cube.posterior import Posterior, scale_of
from absentia.data import seeded
from absentia.errors import wrong
from absentia.runtime.progress import progress
from absentia.solvers.paired_draws import PairedValues
from absentia.solvers.regression import leverage_shapley

# If a linear fit leaves less than this share of the odd part, regression is exact, and a process has nothing to add.
_LINEAR_SHARE = 1e-9
# Fitted kernels depend on the coalitions that they see, which are drawn by this.
FIT_DRAW = "coalitions of the fit"


class ShapleyEstimate(NamedTuple):
    """Estimated Shapley values with standard errors, and the values by groups of draws of a random absence."""

    values: Float[Tensor, "samples players"]
    errors: Float[Tensor, "samples players"]
    by_group: Float[Tensor, "groups samples players"] | None = None


def process_shapley(values: PairedValues, seed: int, kernels: Sequence[CubeKernel] | None = None) -> ShapleyEstimate:
    """Estimate Shapley values by the odd part of a Gaussian process; they add up to v(N) − v(∅).

    ``kernels`` are those of each sample, if they are fitted already.
    """
    signs = signs_with_full(values)
    odd = part_with_full(Part.ODD, values)
    estimates = []
    with progress(values.samples, "fitting the process", "sample") as bar:
        for sample in range(values.samples):
            kernel = None if kernels is None else kernels[sample]
            estimates.append(_shapley_of_sample(values, sample, signs, odd[sample], seed, kernel))
            bar.update()
    by_group = None
    if values.has_groups:
        by_group = torch.stack([estimate.by_group for estimate in estimates if estimate.by_group is not None], dim=1)
    return ShapleyEstimate(
        torch.stack([estimate.values for estimate in estimates]),
        torch.stack([estimate.errors for estimate in estimates]),
        by_group,
    )


def _shapley_of_sample(
    values: PairedValues,
    sample: int,
    signs: Signs,
    odd: Float[Tensor, "groups coalitions"],
    seed: int,
    kernel: CubeKernel | None,
) -> ShapleyEstimate:
    """Estimate the Shapley values of one sample; the groups of draws come with it."""
    mean = values.shares @ odd
    check_small(mean)
    if is_linear(signs, mean):
        return _of_sample_by_regression(values, sample, seed)
    if kernel is None:
        kernel = fit_kernel(Part.ODD, signs, mean / scale_of(mean), seeded(seed, FIT_DRAW))
    posterior = Posterior.of(kernel, signs, mean)
    functional = shapley_functional(kernel, signs)
    estimate = posterior.estimate(functional)
    by_group = None
    if values.has_groups:
        weights = posterior.weights_of(functional)  # (coalitions, players)
        by_group = with_efficiency(odd @ weights, 2 * odd[:, 0])
    shapley_values = with_efficiency(estimate.values[None], 2 * mean[:1])[0]
    return ShapleyEstimate(shapley_values, estimate.errors * values.undrawn_share**0.5, by_group)


def _of_sample_by_regression(values: PairedValues, sample: int, seed: int) -> ShapleyEstimate:
    """Return the values of one sample by regression, which has no error if the odd part is linear."""
    sample_values = values.of_samples([sample])
    replicates = leverage_shapley(sample_values, seeded(seed))
    by_group = None
    if values.has_groups:
        groups = range(len(values.shares))
        estimates = [leverage_shapley(sample_values.of_group(group), seeded(seed)) for group in groups]
        by_group = torch.stack([estimate.values[0] for estimate in estimates])
    return ShapleyEstimate(replicates.values[0], replicates.errors[0], by_group)


def with_efficiency(
    found: Float[Tensor, "rows players"], differences: Float[Tensor, " rows"]
) -> Float[Tensor, "rows players"]:
    """Spread what rounding leaves of v(N) − v(∅) over the players."""
    return found + (differences - found.sum(1))[:, None] / found.shape[1]


def signs_with_full(values: PairedValues) -> Signs:
    """Return the signs of all players together, and of the drawn coalition of each pair."""
    coalitions = values.coalitions
    everyone = torch.ones(1, coalitions.shape[1], dtype=torch.bool)
    return signs_of(torch.cat([everyone, coalitions]))


def part_with_full(part: Part, values: PairedValues) -> Float[Tensor, "samples groups coalitions"]:
    """Return one part of the values of the same coalitions, by sample and group of draws."""
    empty = values.ends_by_group[:, :, :1]
    full = values.ends_by_group[:, :, 1:]
    first = torch.cat([full, values.drawn_by_group], dim=2)
    second = torch.cat([empty, values.complements_by_group], dim=2)
    return part_of(part, first, second)


def check_small(values: Float[Tensor, " coalitions"]) -> None:
    """Raise an error for values that are too large to be squared."""
    if not math.isfinite(float(values.square().sum())):
        largest = float(values.abs().max())
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{largest:.3g}")


def is_linear(signs: Signs, values: Float[Tensor, " coalitions"]) -> bool:
    """Return whether a linear function of the signs gives all values; never for as few coalitions as players."""
    if len(signs) <= signs.shape[1]:
        return bool((values == 0).all())
    slopes = torch.linalg.lstsq(signs, values[:, None], driver="gelsd").solution
    residual = values - (signs @ slopes)[:, 0]
    return float(residual.abs().max()) <= _LINEAR_SHARE * float(values.abs().max())
