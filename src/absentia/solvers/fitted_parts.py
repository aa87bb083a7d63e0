"""The Gaussian processes of both parts of a game, fitted to drawn coalitions, and numbers for sets that they give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.coalitions import Coalitions
from absentia.cube.diagonals import shapley_functional
from absentia.cube.kernels import CubeKernel, Part, signs_of
from absentia.cube.posterior import Posterior
from absentia.cube.set_functionals import Sets, SetWeights, most_added_players, set_functional, set_means
from absentia.data import blocks
from absentia.solvers.fitted_kernels import (
    check_small,
    free_kernel,
    is_free,
    kernels_of_parts,
    part_with_full,
    signs_with_full,
)
from absentia.solvers.grouped_draws import error_of_draws
from absentia.solvers.paired_draws import PairedValues
from absentia.solvers.process import with_efficiency

# Errors are computed for this many numbers at once, each of which has a covariance with each coalition.
_NUMBERS_AT_ONCE = 1024

# From the largest number of players that Walsh terms add to a set, to the weights of the numbers of a set.
WeightsOf = Callable[[int], SetWeights]


class SetEstimates(NamedTuple):
    """Numbers of sets with their standard errors; the numbers of one kind come after those of another."""

    values: Float[Tensor, "numbers sets"]
    errors: Float[Tensor, "numbers sets"]


@dataclass(frozen=True, eq=False)
class FittedPart:
    """The process of one part of a sample's game, and the part's values by groups of draws."""

    posterior: Posterior
    by_group: Float[Tensor, "groups coalitions"]
    is_exact: bool = False  # whether the part is linear or constant, so that the process has no error


@dataclass(frozen=True, eq=False)
class FittedGame:
    """The processes of both parts of a sample's game."""

    parts: tuple[FittedPart, ...]
    shares: Float[Tensor, " groups"]

    @classmethod
    def of_sample(
        cls,
        values: PairedValues,
        sample: int,
        seed: int,
        pairs: Int[Tensor, " pairs"] | None = None,
        kernels: tuple[CubeKernel, ...] | None = None,
    ) -> FittedGame:
        """Fit both parts to the values of one sample.

        ``pairs`` are the numbers of the pairs that the fit sees: all of them by default. ``kernels`` are those of
        both parts, if they are fitted already.
        """
        own = values.of_samples([sample])
        places = slice(None) if pairs is None else torch.cat([torch.zeros(1, dtype=torch.long), 1 + pairs])
        signs = signs_with_full(own)[places]
        by_group = {part: part_with_full(part, own)[0][:, places] for part in Part}
        means = {part: own.shares @ by_group[part] for part in Part}
        for part in Part:
            check_small(means[part])
        free = [part for part in Part if is_free(part, signs, means[part])]
        if kernels is None:
            of_parts = kernels_of_parts(signs, means, free, seed)
        else:
            of_parts = {kernel.part: kernel for kernel in kernels}
        parts = []
        for part in Part:
            is_exact = part in free
            kernel = free_kernel(part, signs) if is_exact else of_parts[part]
            parts.append(FittedPart(Posterior.of(kernel, signs, means[part]), by_group[part], is_exact))
        return cls(tuple(parts), own.shares)

    @property
    def players(self) -> int:
        """The number of players."""
        return self.parts[0].posterior.kernel.players

    @property
    def kernels(self) -> tuple[CubeKernel, ...]:
        """The kernels of the odd and the even part."""
        return tuple(part.posterior.kernel for part in self.parts)

    def predict(self, coalitions: Coalitions) -> Float[Tensor, " coalitions"]:
        """Return the expected values of coalitions."""
        signs = signs_of(coalitions)
        return torch.stack([part.posterior.predict(signs) for part in self.parts]).sum(0)

    @property
    def most_added(self) -> int:
        """The largest number of players that Walsh terms add to a set, if their variance is not negligible."""
        return max(most_added_players(part.posterior.kernel) for part in self.parts)

    @property
    def shapley(self) -> Float[Tensor, " players"]:
        """The expected Shapley values, which add up to v(N) − v(∅)."""
        odd, _ = self.parts
        posterior = odd.posterior
        values = posterior.mean(shapley_functional(posterior.kernel, posterior.signs))
        difference = 2 * (self.shares @ odd.by_group)[:1]
        return with_efficiency(values[None], difference)[0]

    def means(self, sets: Sets, weights_of: WeightsOf) -> Float[Tensor, "numbers sets"]:
        """Return the expected numbers of sets of one size."""
        weights = weights_of(self.most_added)
        total = torch.zeros(len(weights.of_terms) * len(sets), dtype=torch.float64)
        for part in self.parts:
            posterior = part.posterior
            total += posterior.scale * set_means(posterior.kernel, posterior.signs, posterior.solved, sets, weights)
        return total.view(-1, len(sets))

    def estimates(self, sets: Sets, weights_of: WeightsOf) -> SetEstimates:
        """Return the expected numbers of sets of one size, with standard errors, some sets at a time."""
        weights = weights_of(self.most_added)
        at_once = max(1, _NUMBERS_AT_ONCE // len(weights.of_terms))
        if len(sets) == 0:
            return self._estimates_at_once(sets, weights)
        found = [self._estimates_at_once(sets[block], weights) for block in blocks(len(sets), at_once)]
        values = torch.cat([estimates.values for estimates in found], dim=1)
        errors = torch.cat([estimates.errors for estimates in found], dim=1)
        return SetEstimates(values, errors)

    def _estimates_at_once(self, sets: Sets, weights: SetWeights) -> SetEstimates:
        """Return the expected numbers of some sets, with standard errors."""
        shape = (len(weights.of_terms), len(sets))
        numbers = math.prod(shape)
        values = torch.zeros(numbers, dtype=torch.float64)
        variances = torch.zeros(numbers, dtype=torch.float64)
        by_group = torch.zeros(len(self.shares), numbers, dtype=torch.float64)
        for part in self.parts:
            posterior = part.posterior
            functional = set_functional(posterior.kernel, posterior.signs, sets, weights)
            estimate = posterior.estimate(functional)
            values += estimate.values
            if not part.is_exact:
                variances += estimate.errors.square()
            if len(self.shares) > 1:
                by_group += posterior.means_of(part.by_group, functional.covariances)
        if len(self.shares) > 1:
            variances += error_of_draws(by_group, self.shares).square()
        return SetEstimates(values.view(shape), variances.sqrt().view(shape))
