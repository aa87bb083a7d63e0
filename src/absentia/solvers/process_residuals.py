"""Shapley values of very many pairs: a process of some of them, and a regression of what it leaves of the others.

The covariances of all pairs would need too much memory. Shapley values are linear in the game, so those of the
process's predictions, which have a closed form, and those of what they leave add up. What is left is estimated by
regression on pairs that the process has not seen, and on sizes of which all coalitions were drawn. So the errors of
the regression, by a jackknife, are those of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from absentia.cube.diagonals import shapley_functional
from absentia.cube.kernels import CubeKernel, Part, signs_of
from absentia.cube.likelihood import STAGES, Stage
from absentia.cube.posterior import Posterior
from absentia.data import seeded
from absentia.runtime.progress import progress
from absentia.solvers.fitted_kernels import check_small, kernel_of_odd_part, part_with_full, signs_with_full
from absentia.solvers.paired_draws import PairedValues, Stratum
from absentia.solvers.process import ShapleyEstimate, process_shapley
from absentia.solvers.regression import leverage_shapley

# With more pairs, the covariances of a process take more than 2 GB of memory.
MOST_PAIRS_OF_PROCESS = 16_000
# Beyond that, so many pairs are fitted.
FITTED_PAIRS = 4000


def process_shapley_of_any(
    values: PairedValues,
    seed: int,
    kernels: Sequence[CubeKernel] | None = None,
    stages: tuple[Stage, ...] = STAGES,
) -> ShapleyEstimate:
    """Estimate Shapley values by a process that sees all pairs, or some of them if they are too many.

    ``kernels`` are those of the odd part of each sample, if they are fitted already; ``stages`` are those of the fit.
    """
    if values.pairs <= MOST_PAIRS_OF_PROCESS:
        return process_shapley(values, seed, kernels, stages)
    order = torch.randperm(values.pairs, generator=seeded(seed, "pairs of the process"))
    fitted = order[:FITTED_PAIRS].sort().values
    others = _unseen_pairs(values, fitted)
    estimates = []
    with progress(values.samples, "fitting the process", "sample") as bar:
        for sample in range(values.samples):
            kernel = None if kernels is None else kernels[sample]
            estimates.append(_of_sample(values.of_samples([sample]), fitted, others, seed, kernel, stages))
            bar.update()
    by_group = None
    if values.has_groups:
        by_group = torch.cat([estimate.by_group for estimate in estimates if estimate.by_group is not None], dim=1)
    return ShapleyEstimate(
        torch.cat([estimate.values for estimate in estimates]),
        torch.cat([estimate.errors for estimate in estimates]),
        by_group,
    )


def _unseen_pairs(values: PairedValues, fitted: Int[Tensor, " fitted"]) -> Int[Tensor, " others"]:
    """Return the pairs that were not fitted, and all of enumerated sizes: whole populations are not biased."""
    is_other = torch.ones(values.pairs, dtype=torch.bool)
    is_other[fitted] = False
    first = 0
    for stratum in values.strata:
        if stratum.is_enumerated:
            is_other[first : first + len(stratum.drawn)] = True
        first += len(stratum.drawn)
    return is_other.nonzero()[:, 0]


def _of_sample(
    own: PairedValues,
    fitted: Int[Tensor, " fitted"],
    others: Int[Tensor, " others"],
    seed: int,
    kernel: CubeKernel | None,
    stages: tuple[Stage, ...],
) -> ShapleyEstimate:
    """Estimate the Shapley values of one sample."""
    places = torch.cat([torch.zeros(1, dtype=torch.long), 1 + fitted])
    signs = signs_with_full(own)[places]
    odd = own.shares @ part_with_full(Part.ODD, own)[0][:, places]
    check_small(odd)
    if kernel is None:
        even = own.shares @ part_with_full(Part.EVEN, own)[0][:, places]
        kernel = kernel_of_odd_part(signs, odd, even, seed, stages)
    posterior = Posterior.of(kernel, signs, odd)
    # Predictions of other coalitions have no noise, so neither have the Shapley values of what is predicted.
    without_noise = shapley_functional(replace(kernel, noise=0.0), posterior.signs)
    of_process = posterior.mean(without_noise)
    left = _left_by(own, posterior, others)
    regression = leverage_shapley(left)
    by_group = None
    if own.has_groups:
        groups = [left.of_group(group) for group in range(len(left.shares))]
        by_group = torch.stack([of_process + leverage_shapley(group).values for group in groups])
    return ShapleyEstimate(of_process + regression.values, regression.errors, by_group)


def _left_by(own: PairedValues, posterior: Posterior, others: Int[Tensor, " others"]) -> PairedValues:
    """Return what a process of the odd part leaves of the values of pairs that it has not seen."""
    predicted = posterior.predict(signs_of(own.coalitions[others]))
    everyone = posterior.predict(posterior.signs[:1])
    is_other = torch.zeros(own.pairs, dtype=torch.bool)
    is_other[others] = True
    strata = []
    first = 0
    for stratum in own.strata:
        kept = stratum.drawn[is_other[first : first + len(stratum.drawn)]]
        first += len(stratum.drawn)
        if len(kept):
            strata.append(Stratum(kept, stratum.total))
    return PairedValues(
        tuple(strata),
        own.shares,
        own.ends_by_group - torch.cat([-everyone, everyone]),
        own.drawn_by_group[:, :, others] - predicted,
        own.complements_by_group[:, :, others] + predicted,
    )
