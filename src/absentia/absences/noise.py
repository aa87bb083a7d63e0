"""White noise as an absence: what has no pattern at all."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from absentia.absences.protocol import Fill, Samples, StandIns, check_draws, check_shape
from absentia.data import DataRange, Table, check_rows, least_and_most, mean_and_deviation, seeded, white_noise
from absentia.errors import wrong

Kind: TypeAlias = Literal["uniform", "normal"]


@dataclass(frozen=True, eq=False)
class Noise:
    """White noise on the scale of the data, the same for every sample and every coalition.

    Parameters
    ----------
    data : array of shape (rows, …), optional
        The rows whose scale the noise has: that of each entry, or of each channel of images (rows, …, height, width).
    kind : {"uniform", "normal"}, default "uniform"
        Uniform noise lies between the least and the greatest value of the data. Normal noise has their mean and
        standard deviation, or 0 and 1 without data. Tokens take uniform noise, of whole numbers.
    low, high : float, optional
        The ends of uniform noise. Those of the data by default, or 0 and 1 without data.
    draws : int, default 10
        The number of noise inputs.
    seed : int, default 0
        The seed of the noise.

    Examples
    --------
    >>> Noise(draws=2, high=5.0)
    Noise(uniform from 0 to 5, 2 draws, seed 0)
    >>> Noise(torch.tensor([[0.0, 7.0], [2.0, 7.0]])).bind(torch.ones(1, 2)).values[0, 0]
    tensor([1.9401, 7.0000])
    """

    data: Table | None = None
    _: KW_ONLY
    kind: Kind = "uniform"
    low: float | None = None
    high: float | None = None
    draws: int = 10
    seed: int = 0
    scale: tuple[Tensor, Tensor] = field(init=False)  # least and greatest value, or mean and standard deviation

    def __post_init__(self) -> None:
        if self.kind not in ("uniform", "normal"):
            raise wrong("kind", "be 'uniform' or 'normal'", repr(self.kind))
        uniform = self.kind == "uniform"
        if not uniform and (self.low is not None or self.high is not None):
            raise wrong("low and high", "be left out for normal noise", f"{self.low} and {self.high}")
        check_draws(self.draws)
        first, second = torch.tensor([0.0, 1.0], dtype=torch.float64)
        data = None if self.data is None else check_rows(self.data).cpu()
        if data is not None:
            first, second = least_and_most(data) if uniform else mean_and_deviation(data)
        first = first if self.low is None else torch.full_like(first, self.low)
        second = second if self.high is None else torch.full_like(second, self.high)
        if uniform and not bool(((first <= second) & torch.isfinite(second - first)).all()):
            got = f"{first.max().item():g} and {second.min().item():g}"
            raise wrong("low", "be finite and not above high", got)
        vars(self).update(data=data, scale=(first, second))

    def __repr__(self) -> str:
        low, high = self.scale
        ends = f" from {low.min().item():g} to {high.max().item():g}" if self.kind == "uniform" else ""
        return f"Noise({self.kind}{ends}, {self.draws} draws, seed {self.seed})"

    def bind(self, x: Samples) -> Fill:
        """Draw the noise."""
        if self.data is not None:
            check_shape("data", self.data.shape[1:], x)
        like, generator = x.new_empty(self.draws, *x.shape[1:]), seeded(self.seed)
        if self.kind == "uniform":
            return StandIns(x, white_noise(DataRange(*self.scale), like, generator)[None])
        if not x.is_floating_point():
            raise wrong("kind", "be 'uniform' for integer inputs", "'normal'")
        mean, deviation = self.scale
        unit = torch.randn(like.shape, generator=generator, dtype=torch.float64)
        return StandIns(x, (mean + deviation * unit).to(x)[None])
