"""How few of the strongest effects rebuild the values of all coalitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import zeta_
from absentia.listed_sets import mean_squares
from absentia.walsh import walsh_mean_squares


class RebuildingErrors(NamedTuple):
    """How well the strongest sets of a sample rebuild the values of all its coalitions."""

    errors: Float[Tensor, " counts"]  # root mean squares, with v(∅) and the 0, 1, 2 … strongest other sets
    deviation: float  # the standard deviation of the values


def errors_of_effects(sets: Bool[Tensor, "sets players"], effects: Float[Tensor, " sets"]) -> RebuildingErrors:
    """Return the errors of rebuilding values from the Harsanyi effects of sets other than ∅."""
    ranked = effects.abs().argsort(descending=True, stable=True)
    squares = mean_squares(sets[ranked], effects[ranked])
    mean = (effects * 2.0 ** -sets.sum(1)).sum().double()
    deviation = (squares[0] - mean.square()).clamp_min(0).sqrt()
    return RebuildingErrors(squares.sqrt(), float(deviation))


def errors_of_walsh_terms(sets: Bool[Tensor, "sets players"], effects: Float[Tensor, " sets"]) -> RebuildingErrors:
    """Return the errors of rebuilding values from the Walsh terms of sets other than ∅."""
    ranked = effects.abs().argsort(descending=True, stable=True)
    squares = walsh_mean_squares(sets[ranked], effects[ranked])
    return RebuildingErrors(squares.sqrt(), float(squares[0].sqrt()))


def lengths_of_table(
    effects: Float[Tensor, "samples sets"], noise: Float[Tensor, " samples"], error: float
) -> Int[Tensor, " samples"]:
    """Return how many of the strongest effects of a full table are enough, searched for all samples at once."""
    strength = effects.abs()
    strength[:, 0] = torch.inf  # v(∅) is always used: rank 0
    order = strength.argsort(1, descending=True)
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    rank = torch.empty_like(order).scatter_(1, order, places)
    values = zeta_(effects.clone())
    # Rounding errors must not increase the number of effects.
    tolerance = torch.maximum(error * values.std(1, correction=0), noise)

    def suffices(k: Tensor) -> Tensor:
        rebuilt = zeta_(effects * (rank <= k[:, None]))
        return (rebuilt - values).square_().mean(1).sqrt() <= tolerance

    low = torch.full_like(rank[:, 0], -1)
    high = torch.zeros_like(low)
    while True:
        enough = suffices(high)
        if bool(enough.all()):
            break
        low = torch.where(enough, low, high)
        high = torch.where(enough, high, (2 * high + 1).clamp(max=rank.shape[1] - 1))
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        enough = suffices(middle)
        low = torch.where(enough, low, middle)
        high = torch.where(enough, middle, high)
    return high


def length_of_listed(rebuilding: RebuildingErrors, noise: float, error: float) -> int:
    """Return how many of the strongest listed sets of a sample are enough."""
    tolerance = max(error * rebuilding.deviation, noise)
    enough: Sequence[bool] = (rebuilding.errors <= tolerance).tolist()
    low = -1
    high = 0
    while not enough[high]:  # all sets are always enough
        low = high
        high = min(2 * high + 1, len(enough) - 1)
    while high - low > 1:
        middle = (low + high) // 2
        if enough[middle]:
            high = middle
        else:
            low = middle
    return high
