"""The posterior of one part of a game: a Gaussian process, given the values of drawn coalitions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.cube.kernels import LEAST_NOISE, CubeKernel, Signs
from absentia.errors import wrong

# The rows of a block in the factorisation of covariances.
_FACTOR_BLOCK = 1024
# If covariances cannot be factorised, the noise is scaled by this factor, at most this often.
_MORE_NOISE = 10.0
_TRIES = 6
# The kernel is judged by the deviations of at most this many coalitions from what the others predict.
_MOST_JUDGED = 2048
# The weights of players are estimates themselves. So variances are enlarged by this many times the number of players
# for each coalition.
_SHARE_OF_WEIGHTS = 2.0


class Functional(NamedTuple):
    """Numbers that are linear in a game, such as its Shapley values, by how they vary with it a priori."""

    covariances: Float[Tensor, "coalitions numbers"]  # with the values of the drawn coalitions
    variances: Float[Tensor, " numbers"]  # of the numbers themselves


class Estimate(NamedTuple):
    """Estimated numbers with their standard errors."""

    values: Float[Tensor, " numbers"]
    errors: Float[Tensor, " numbers"]


@dataclass(frozen=True, eq=False)
class Posterior:
    """One part of a game, given its values for some coalitions.

    The first coalition's value is known without noise: it is that of all players together.
    """

    kernel: CubeKernel
    signs: Signs
    values: Float[Tensor, " coalitions"]
    scale: float  # values are in units of this

    @classmethod
    def of(cls, kernel: CubeKernel, signs: Signs, values: Float[Tensor, " coalitions"]) -> Posterior:
        """Return the posterior of values in any unit."""
        unit = scale_of(values)
        # A part that is 0 everywhere is known to be 0, in any unit.
        scale = unit if bool(values.any()) else 0.0
        return cls(kernel, signs, values / unit, scale)

    @cached_property
    def factor(self) -> Float[Tensor, "coalitions coalitions"]:
        """The Cholesky factor of the covariances of the values, in the lower triangle."""
        noise = self.kernel.noise
        for _ in range(_TRIES):
            covariances = self.kernel(self.signs, self.signs)
            covariances.diagonal().add_(noise)
            covariances[0, 0] -= noise - LEAST_NOISE
            if factorise_(covariances):
                return covariances
            noise *= _MORE_NOISE
        raise wrong("values of the game", "vary smoothly enough to fit a Gaussian process", "values that do not")

    @cached_property
    def solved(self) -> Float[Tensor, " coalitions"]:
        """The inverse covariances times the values: the weights of coalitions in every prediction."""
        return self._solve(self.values[:, None])[:, 0]

    def _solve(self, columns: Float[Tensor, "coalitions columns"]) -> Float[Tensor, "coalitions columns"]:
        """Return the inverse covariances times some columns."""
        return solve_upper(self.factor, solve_lower(self.factor, columns))

    def predict(self, signs: Float[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Return the expected values of this part for other coalitions."""
        return self.scale * (self.kernel(signs, self.signs) @ self.solved)

    def estimate(self, functional: Functional) -> Estimate:
        """Return the expected numbers with their standard errors."""
        values = functional.covariances.T @ self.solved
        explained = solve_lower(self.factor, functional.covariances)
        variances = (functional.variances - explained.square().sum(0)).clamp_min(0)
        return Estimate(self.scale * values, self._error_unit * variances.sqrt())

    @property
    def _error_unit(self) -> float:
        """What errors are multiplied with: the unit of the values, and how far the kernel suits them."""
        coalitions, players = self.signs.shape
        of_weights = math.sqrt(1 + _SHARE_OF_WEIGHTS * players / coalitions)
        return self.scale * max(1.0, self.surprise) * of_weights

    def mean(self, functional: Functional) -> Float[Tensor, " numbers"]:
        """Return the expected numbers."""
        return self.scale * (functional.covariances.T @ self.solved)

    def means_of(
        self, values: Float[Tensor, "others coalitions"], covariances: Float[Tensor, "coalitions numbers"]
    ) -> Float[Tensor, "others numbers"]:
        """Return the numbers that other values of the same coalitions would give."""
        return self._solve(values.T).T @ covariances

    def weights_of(self, functional: Functional) -> Float[Tensor, "coalitions numbers"]:
        """Return the weights of the coalitions' values in the expected numbers, which are linear in them."""
        return self._solve(functional.covariances)

    @cached_property
    def surprise(self) -> float:
        """How far values lie from what the others predict, in units of the predicted deviations: about 1.

        It is above 1 where the kernel, which some of the coalitions chose, does not suit the others.
        """
        if len(self.signs) < 2:
            return 1.0
        # The factor of the first coalitions alone is the first block of the whole factor.
        judged = slice(0, _MOST_JUDGED)
        factor = self.factor[judged, judged]
        solved = torch.cholesky_solve(self.values[judged, None], factor)[:, 0]
        squares = solved.square() / _diagonal_of_inverse(factor)
        return float(squares[1:].mean().sqrt())


def scale_of(values: Float[Tensor, " coalitions"]) -> float:
    """Return the root mean square of values, or 1 if they are all 0."""
    scale = float(values.square().mean().sqrt())
    return scale if scale > 0 else 1.0


def factorise_(matrix: Float[Tensor, "rows rows"]) -> bool:
    """Replace the lower triangle of a matrix by its Cholesky factor, in place, because it may be large.

    What is above the diagonal keeps no meaning. Return whether it worked.
    """
    rows = len(matrix)
    for start in range(0, rows, _FACTOR_BLOCK):
        stop = min(start + _FACTOR_BLOCK, rows)
        corner, failed = torch.linalg.cholesky_ex(matrix[start:stop, start:stop])
        if int(failed):
            return False
        matrix[start:stop, start:stop] = corner
        below = matrix[stop:, start:stop]
        if len(below) == 0:
            break
        below.copy_(torch.linalg.solve_triangular(corner.T, below, upper=True, left=False))
        # The rest, block by block, so that only its lower triangle is computed.
        for first in range(stop, rows, _FACTOR_BLOCK):
            last = min(first + _FACTOR_BLOCK, rows)
            block = matrix[first:, first:last]
            block.addmm_(below[first - stop :], below[first - stop : last - stop].T, alpha=-1)
    return True


def solve_lower(
    factor: Float[Tensor, "rows rows"], columns: Float[Tensor, "rows columns"]
) -> Float[Tensor, "rows columns"]:
    """Return L⁻¹ times columns for a lower factor L, block by block, because a copy of it would take much memory."""
    solved = columns.clone()
    for start in range(0, len(factor), _FACTOR_BLOCK):
        stop = min(start + _FACTOR_BLOCK, len(factor))
        block = solved[start:stop]
        block.addmm_(factor[start:stop, :start], solved[:start], alpha=-1)
        block.copy_(torch.linalg.solve_triangular(factor[start:stop, start:stop], block, upper=False))
    return solved


def solve_upper(
    factor: Float[Tensor, "rows rows"], columns: Float[Tensor, "rows columns"]
) -> Float[Tensor, "rows columns"]:
    """Return L⁻ᵀ times columns for a lower factor L, block by block."""
    solved = columns.clone()
    for start in reversed(range(0, len(factor), _FACTOR_BLOCK)):
        stop = min(start + _FACTOR_BLOCK, len(factor))
        block = solved[start:stop]
        block.addmm_(factor[stop:, start:stop].T, solved[stop:], alpha=-1)
        block.copy_(torch.linalg.solve_triangular(factor[start:stop, start:stop].T, block, upper=True))
    return solved


def _diagonal_of_inverse(factor: Float[Tensor, "rows rows"]) -> Float[Tensor, " rows"]:
    """Return the diagonal of the inverse of the factorised matrix: the squared columns of the inverse factor, summed.

    The inverse factor is computed some columns at a time.
    """
    rows = len(factor)
    diagonal = factor.new_empty(rows)
    for start in range(0, rows, _FACTOR_BLOCK):
        stop = min(start + _FACTOR_BLOCK, rows)
        # Rows before the first column of the block are 0.
        columns = factor.new_zeros(rows - start, stop - start)
        columns.diagonal().fill_(1.0)
        inverse = torch.linalg.solve_triangular(factor[start:, start:], columns, upper=False)
        diagonal[start:stop] = inverse.square().sum(0)
    return diagonal
