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
from absentia.cube.kernels import LEAST_NOISE, CubeKernel, Part, Signs, signs_of
from absentia.cube.likelihood import fit_kernel, weights_by_slope
from absentia.cube.posterior import Posterior, scale_of
from absentia.cube.set_functionals import Sets, SetWeights, most_added_players, set_functional, set_means
from absentia.data import blocks, seeded
from absentia.solvers.paired_draws import PairedValues, error_of_draws
from absentia.solvers.process import (
    FIT_DRAW,
    check_small,
    is_linear,
    part_with_full,
    signs_with_full,
    with_efficiency,
)

# Errors are computed for this many numbers at once, each of which has a covariance with each coalition.
_NUMBERS_AT_ONCE = 1024
# An even part whose values differ by no more than this share of the largest is constant.
_CONSTANT_SHARE = 1e-9
# The weight of each player in a part that is linear or constant, where it does not matter.
_FREE_WEIGHT = 0.02

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
        """Fit the odd part first, whose weights of players are where the fit of the even part starts.

        ``pairs`` are the numbers of the pairs that the fit sees: all of them by default. ``kernels`` are those of
        both parts, if they are fitted already.
        """
        sample_values = values.of_samples([sample])
        places = slice(None) if pairs is None else torch.cat([torch.zeros(1, dtype=torch.long), 1 + pairs])
        signs = signs_with_full(sample_values)[places]
        parts = []
        start = None
        for number, part in enumerate(Part):
            by_group = part_with_full(part, sample_values)[0][:, places]
            mean = sample_values.shares @ by_group
            check_small(mean)
            if is_free(part, signs, mean):
                parts.append(
                    FittedPart(Posterior.of(_free_kernel(part, signs), signs, mean), by_group, is_exact=True)
                )
                start = weights_by_slope(signs, mean)
                continue
            if kernels is None:
                posterior = _fitted(part, signs, mean, seed, start)
            else:
                posterior = Posterior.of(kernels[number], signs, mean)
            start = _start_of_other_part(posterior)
            parts.append(FittedPart(posterior, by_group))
        return cls(tuple(parts), sample_values.shares)

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


def is_free(part: Part, signs: Signs, values: Float[Tensor, " coalitions"]) -> bool:
    """Return whether a part is what a process leaves free: linear if it is odd, constant if it is even."""
    if part is Part.ODD:
        return is_linear(signs, values)
    return float((values - values[0]).abs().max()) <= _CONSTANT_SHARE * float(values.abs().max())


def _free_kernel(part: Part, signs: Signs) -> CubeKernel:
    """Return the kernel of a part that is linear or constant: hardly anything varies beside."""
    weights = torch.full((signs.shape[1],), _FREE_WEIGHT).to(signs)
    return CubeKernel(part, weights, amplitude=LEAST_NOISE, noise=LEAST_NOISE)


def _start_of_other_part(posterior: Posterior) -> Float[Tensor, " players"]:
    """Return first weights of players for the other part: those of this one, unless it is almost linear.

    Then its weights tell nothing, and players with steep slopes are likely to matter in the other part, too.
    """
    weights = posterior.kernel.weights
    by_slope = weights_by_slope(posterior.signs, posterior.values)
    return weights if float(weights.max()) > float(by_slope.mean()) else by_slope


def _fitted(
    part: Part, signs: Signs, values: Float[Tensor, " coalitions"], seed: int, start: Float[Tensor, " players"] | None
) -> Posterior:
    """Fit the process of a part; that of the odd part is the one that Shapley values are estimated from."""
    draw = FIT_DRAW if part is Part.ODD else part.value
    kernel = fit_kernel(part, signs, values / scale_of(values), seeded(seed, draw), start=start)
    return Posterior.of(kernel, signs, values)
