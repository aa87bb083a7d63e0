"""White noise in the range of data: the state that holds no signal, and the reference that favours no method."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from absentia.absence.scales import least_and_most

# Every stream of draws has a generator of its own, so that none depends on how much another has drawn.
_STREAMS = ("reference", "replacement", "draws")
_MOST_DRAWS = 2**20


@dataclass(frozen=True, eq=False)
class DataRange:
    """The least and the largest value that each entry may have."""

    low: Float[Tensor, " *entries"]
    high: Float[Tensor, " *entries"]

    def holds(self, values: Shaped[Tensor, "*rows"]) -> Bool[Tensor, "*rows"]:
        """Tell which values lie within the range, or so little outside that it is no matter: 1 % of it."""
        slack = 0.01 * (self.high - self.low)
        return (values >= self.low - slack) & (values <= self.high + slack)


def data_range(data: Shaped[Tensor, "rows *entries"]) -> DataRange:
    """Find the range of each entry of a table, or of each channel of images.

    >>> data_range(torch.tensor([[0.0, 5.0], [1.0, 7.0]])).high
    tensor([1., 7.], dtype=torch.float64)
    """
    low, high = least_and_most(data)
    return DataRange(low.expand(data.shape[1:]), high.expand(data.shape[1:]))


def white_noise(
    within: DataRange, like: Shaped[Tensor, "samples *entries"], generator: torch.Generator
) -> Shaped[Tensor, "samples *entries"]:
    """Draw every entry of every sample uniformly within the range; whole numbers for integer samples.

    >>> within = data_range(torch.tensor([[0.0, 5.0]]))
    >>> white_noise(within, torch.zeros(1, 2), torch.Generator().manual_seed(0))
    tensor([[0., 5.]])
    """
    share = torch.rand(like.shape, generator=generator, dtype=torch.float64).to(like.device)
    low, high = within.low, within.high
    if like.is_floating_point():
        return (low + (high - low) * share).to(like.dtype)
    return (low + ((high - low + 1) * share).floor()).to(like.dtype)


def stream(seed: int, name: str, draw: int = 0) -> torch.Generator:
    """Make the generator of one draw of one stream: "reference", "replacement" or "draws"."""
    number = (seed * len(_STREAMS) + _STREAMS.index(name)) * _MOST_DRAWS + draw
    return torch.Generator().manual_seed(number % 2**63)
