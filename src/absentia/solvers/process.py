"""Shapley values by a Gaussian process that is fitted to drawn coalitions.

Shapley values depend on the odd part of a game alone, which has one value for each pair of a coalition and its
complement. The even part helps to tell how much each player matters. Each sample has a process of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.cube.diagonals import shapley_functional
from absentia.cube.kernels import CubeKernel, Part, Signs
from absentia.cube.likelihood import STAGES, Stage
from absentia.cube.posterior import Posterior
from absentia.runtime.progress import progress
from absentia.solvers.fitted_kernels import (
    check_small,
    is_free,
    kernel_of_odd_part,
    part_with_full,
    signs_with_full,
)
from absentia.solvers.paired_draws import PairedValues
from absentia.solvers.regression import leverage_shapley


class ShapleyEstimate(NamedTuple):
    """Estimated Shapley values with standard errors, and the values by groups of draws of a random absence."""

    values: Float[Tensor, "samples players"]
    errors: Float[Tensor, "samples players"]
    by_group: Float[Tensor, "groups samples players"] | None = None


def process_shapley(
    values: PairedValues,
    seed: int,
    kernels: Sequence[CubeKernel] | None = None,
    stages: tuple[Stage, ...] = STAGES,
) -> ShapleyEstimate:
    """Estimate Shapley values by the odd part of a Gaussian process; they add up to v(N) − v(∅).

    ``kernels`` are those of each sample, if they are fitted already; ``stages`` are those of the fit.
    """
    signs = signs_with_full(values)
    estimates = []
    with progress(values.samples, "fitting the process", "sample") as bar:
        for sample in range(values.samples):
            kernel = None if kernels is None else kernels[sample]
            estimates.append(_shapley_of_sample(values.of_samples([sample]), signs, seed, kernel, stages))
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
    own: PairedValues, signs: Signs, seed: int, kernel: CubeKernel | None, stages: tuple[Stage, ...]
) -> ShapleyEstimate:
    """Estimate the Shapley values of one sample; the groups of draws come with it."""
    odd = part_with_full(Part.ODD, own)[0]
    mean = own.shares @ odd
    check_small(mean)
    if is_free(Part.ODD, signs, mean):  # then a regression is exact, and a process has nothing to add
        return _of_sample_by_regression(own)
    if kernel is None:
        even = own.shares @ part_with_full(Part.EVEN, own)[0]
        kernel = kernel_of_odd_part(signs, mean, even, seed, stages)
    posterior = Posterior.of(kernel, signs, mean)
    functional = shapley_functional(kernel, signs)
    estimate = posterior.estimate(functional)
    by_group = None
    if own.has_groups:
        weights = posterior.weights_of(functional)  # (coalitions, players)
        by_group = with_efficiency(odd @ weights, 2 * odd[:, 0])
    shapley_values = with_efficiency(estimate.values[None], 2 * mean[:1])[0]
    return ShapleyEstimate(shapley_values, estimate.errors, by_group)


def _of_sample_by_regression(own: PairedValues) -> ShapleyEstimate:
    """Return the values of one sample by regression, which has no error if the odd part is linear."""
    regression = leverage_shapley(own)
    by_group = None
    if own.has_groups:
        estimates = [leverage_shapley(own.of_group(group)) for group in range(len(own.shares))]
        by_group = torch.stack([estimate.values[0] for estimate in estimates])
    return ShapleyEstimate(regression.values[0], regression.errors[0], by_group)


def with_efficiency(
    found: Float[Tensor, "rows players"], differences: Float[Tensor, " rows"]
) -> Float[Tensor, "rows players"]:
    """Spread what rounding leaves of v(N) − v(∅) over the players."""
    return found + (differences - found.sum(1))[:, None] / found.shape[1]
