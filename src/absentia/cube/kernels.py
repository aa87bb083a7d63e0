"""Covariances of the values of coalitions, with a weight for each player.

Coalitions are rows s of signs: +1 for a present player, −1 for an absent one. The agreement of two coalitions is
u = Σ_l ρ_l s_l t_l, with a weight ρ_l > 0 for each player, and its largest value is U = Σ_l ρ_l. The covariance of
values is proportional to e^u, a product over the players. It is the sum of two parts: that of
the odd part of a game, (v(S) − v(complement)) / 2, is sinh(u)/sinh(U), and that of the even part is cosh(u)/cosh(U).
The terms of lowest order, which often are by far the largest, have a variance of their own: u/U is the covariance of
a sum over the players in the odd part, and 1 that of a constant in the even part.

In terms of r_l = tanh(ρ_l), e^u is proportional to Π_l (1 + r_l s_l t_l). So the product of the signs of a set T has
the prior variance Π_{l∈T} r_l, up to a factor.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.coalitions import Coalitions
from absentia.data import blocks

# A variance of the terms of lowest order, in units of the values' variance, with which the data alone decide.
WIDE_VARIANCE = 300.0
# Added to the variance of the noise, so that covariances can be inverted.
LEAST_NOISE = 1e-8
# Covariances are computed for this many pairs of coalitions at once.
_PAIRS_AT_ONCE = 2**22
# Up to this U, e^(−2U) is far above the smallest number, and can be divided by e^(u − U).
_LARGEST_DIVIDED = 300.0

Signs = Float[Tensor, "coalitions players"]


class Part(enum.Enum):
    """A part of a game: every game is the sum of an odd and an even part."""

    ODD = "odd"  # changes its sign if all players are swapped: v(S) − v(complement), halved
    EVEN = "even"  # stays as it is: v(S) + v(complement), halved


def signs_of(coalitions: Coalitions) -> Signs:
    """Return +1 for present and −1 for absent players.

    Examples
    --------
    >>> signs_of(torch.tensor([[True, False]]))
    tensor([[ 1., -1.]], dtype=torch.float64)
    """
    return coalitions.double() * 2 - 1


@dataclass(frozen=True, eq=False)
class CubeKernel:
    """The covariance of one part of a game, in units of its variance."""

    part: Part
    weights: Float[Tensor, " players"]  # ρ, all above 0
    amplitude: float  # the variance of a value through terms of all orders
    noise: float  # the variance of what the kernel cannot describe
    lowest: float = WIDE_VARIANCE  # more variance of a value through the terms of lowest order

    @property
    def players(self) -> int:
        """The number of players."""
        return len(self.weights)

    @property
    def largest_agreement(self) -> float:
        """U, the agreement of a coalition with itself."""
        return float(self.weights.sum())

    @property
    def relevances(self) -> Float[Tensor, " players"]:
        """How much a player matters in sets of players: r = tanh(ρ), between 0 and 1."""
        return torch.tanh(self.weights)

    @property
    def slope_variances(self) -> Float[Tensor, " players"]:
        """The additional variance of each player's slope in the odd part, in proportion to the weights."""
        return self.lowest * self.weights / self.weights.sum()

    @property
    def log_factor(self) -> float:
        """The logarithm of what Π_l (1 + r_l s_l t_l) is multiplied with: Π_l cosh ρ_l over sinh U or cosh U."""
        largest = self.largest_agreement
        log_cosh = self.weights + torch.log1p(torch.exp(-2 * self.weights)) - math.log(2)
        sign = -1.0 if self.part is Part.ODD else 1.0
        log_normaliser = largest + math.log1p(sign * math.exp(-2 * largest)) - math.log(2)
        return float(log_cosh.sum()) - log_normaliser

    def __call__(
        self, left: Float[Tensor, "left players"], right: Float[Tensor, "right players"]
    ) -> Float[Tensor, "left right"]:
        """Return the covariances of the values of coalitions, without noise."""
        covariances = left.new_empty(len(left), len(right))
        for block in blocks(len(left), max(1, _PAIRS_AT_ONCE // len(right))):
            covariances[block] = self._block(left[block], right)
        return covariances

    def _block(
        self, left: Float[Tensor, "left players"], right: Float[Tensor, "right players"]
    ) -> Float[Tensor, "left right"]:
        """Return the covariances of some coalitions with all others."""
        agreement = (left * self.weights) @ right.T
        largest = self.largest_agreement
        covariances = shape_of(self.part, agreement, largest).mul_(self.amplitude)
        if self.part is Part.ODD:
            return covariances.add_(agreement, alpha=self.lowest / largest)
        return covariances.add_(self.lowest)


class ShapeAndSlope(NamedTuple):
    """The shape of covariances, and its derivative by the agreement."""

    shape: Float[Tensor, "left right"]
    slope: Float[Tensor, "left right"]


def shape_of(part: Part, agreement: Float[Tensor, "left right"], largest: float) -> Float[Tensor, "left right"]:
    """Return sinh(u)/sinh(U) for the odd part, cosh(u)/cosh(U) for the even part, without large numbers."""
    rising, falling = _exponentials(agreement, largest)
    if part is Part.ODD:
        return rising.sub_(falling).div_(-math.expm1(-2 * largest))
    return rising.add_(falling).div_(1 + math.exp(-2 * largest))


def shape_and_slope_of(part: Part, agreement: Float[Tensor, "left right"], largest: float) -> ShapeAndSlope:
    """Return the shape with its derivative: cosh(u)/sinh(U) for the odd part, sinh(u)/cosh(U) for the even part."""
    rising, falling = _exponentials(agreement, largest)
    total = rising + falling
    difference = rising.sub_(falling)
    if part is Part.ODD:
        unit = -math.expm1(-2 * largest)
        return ShapeAndSlope(difference.div_(unit), total.div_(unit))
    unit = 1 + math.exp(-2 * largest)
    return ShapeAndSlope(total.div_(unit), difference.div_(unit))


def _exponentials(
    agreement: Float[Tensor, "left right"], largest: float
) -> tuple[Float[Tensor, "left right"], Float[Tensor, "left right"]]:
    """Return e^(u − U) and e^(−u − U)."""
    rising = (agreement - largest).exp_()
    if largest > _LARGEST_DIVIDED:
        return rising, (-agreement - largest).exp_()
    # A division is quicker than another exponential.
    return rising, math.exp(-2 * largest) / rising


def part_of(
    part: Part, values: Float[Tensor, "*samples pairs"], complements: Float[Tensor, "*samples pairs"]
) -> Float[Tensor, "*samples pairs"]:
    """Return one part of a game from the values of coalitions and of their complements.

    Examples
    --------
    >>> part_of(Part.ODD, torch.tensor([5.0]), torch.tensor([1.0]))
    tensor([2.])
    """
    if part is Part.ODD:
        return (values - complements) / 2
    return (values + complements) / 2
