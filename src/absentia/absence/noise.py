"""White noise as an absence: what has no pattern at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.absence.checks import check_draws, check_rows, check_shape
from absentia.absence.protocols import Fill
from absentia.absence.scales import least_and_most, mean_and_deviation
from absentia.absence.stand_ins import StandIns
from absentia.arrays import Table
from absentia.errors import wrong

Kind: TypeAlias = Literal["uniform", "normal"]


@dataclass(frozen=True, eq=False, init=False)
class Noise:
    """White noise in the data's range: ``draws`` noise inputs, the same for every sample and every coalition.

    "uniform" noise lies between the data's least and greatest value of each entry, or of each channel of images
    (rows, …, height, width); ``low`` and ``high`` take their place, and are 0 and 1 where there are no data. "normal"
    noise has the data's mean and standard deviation, or 0 and 1. Tokens get whole numbers from low to high.

    >>> Noise(draws=2, high=5.0)
    Noise(uniform from 0 to 5, 2 draws, seed 0)
    >>> Noise(torch.tensor([[0.0, 7.0], [2.0, 7.0]])).bind(torch.ones(1, 2)).values[0, 0]
    tensor([1.9401, 7.0000])
    """

    kind: Kind
    offset: Tensor  # noise is offset + scale · e, with e uniform on [0, 1) or standard normal
    scale: Tensor
    shape: tuple[int, ...] | None  # of one row of the data
    draws: int
    seed: int

    def __init__(
        self,
        data: Table | None = None,
        *,
        kind: Kind = "uniform",
        low: float | None = None,
        high: float | None = None,
        draws: int = 10,
        seed: int = 0,
    ) -> None:
        if kind not in ("uniform", "normal"):
            raise wrong("kind", "be 'uniform' or 'normal'", repr(kind))
        if kind == "normal" and (low is not None or high is not None):
            raise wrong("low and high", "be left out for normal noise", f"{low} and {high}")
        check_draws(draws)
        rows = None if data is None else check_rows(data)
        if kind == "uniform":
            offset, scale = _uniform(rows, low, high)
        elif rows is None:
            offset, scale = torch.tensor(0.0).double(), torch.tensor(1.0).double()
        else:
            offset, scale = mean_and_deviation(rows.cpu())
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "shape", None if rows is None else tuple(rows.shape[1:]))
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "seed", seed)

    def __repr__(self) -> str:
        ends = (self.offset.min().item(), (self.offset + self.scale).max().item())
        range_ = f" from {ends[0]:g} to {ends[1]:g}" if self.kind == "uniform" else ""
        return f"Noise({self.kind}{range_}, {self.draws} draws, seed {self.seed})"

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Draw the noise."""
        if self.shape is not None:
            check_shape("data", self.shape, x)
        generator = torch.Generator().manual_seed(self.seed)
        size = (self.draws, *x.shape[1:])
        if self.kind == "normal":
            if not x.is_floating_point():
                raise wrong("kind", "be 'uniform' for integer inputs", "'normal'")
            unit = torch.randn(size, generator=generator, dtype=torch.float64)
            return StandIns(x, (self.offset + self.scale * unit).to(x)[None])
        unit = torch.rand(size, generator=generator, dtype=torch.float64)
        if x.is_floating_point():
            return StandIns(x, (self.offset + self.scale * unit).to(x)[None])
        # Each whole number from low to high is as likely as any other.
        return StandIns(x, (self.offset + (self.scale + 1) * unit).floor().to(x)[None])


def _uniform(rows: Tensor | None, low: float | None, high: float | None) -> tuple[Tensor, Tensor]:
    """Give the least value and the width of the range."""
    least, most = torch.tensor(0.0).double(), torch.tensor(1.0).double()
    if rows is not None:
        least, most = least_and_most(rows.cpu())
    least = least if low is None else torch.full_like(least, low)
    most = most if high is None else torch.full_like(most, high)
    if not bool((least <= most).all()) or not bool(torch.isfinite(most - least).all()):
        raise wrong("low", "be finite and not above high", f"{least.max().item():g} and {most.min().item():g}")
    return least, most - least
