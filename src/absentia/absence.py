"""Absences: what stands in for the players that are absent from a coalition.

An absence is bound to samples once (a blur is computed, background rows are drawn), which gives a fill: a function
from presence to masked inputs. New masking methods implement these two protocols and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from absentia.arrays import Array, Table, as_tensor
from absentia.errors import wrong


@runtime_checkable
class Fill(Protocol):
    """An absence bound to samples: presence → masked inputs."""

    @property
    def draws(self) -> int:
        """How many masked inputs stand for one coalition; the game averages over them."""

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Mask these samples: present entries keep the sample's values, absent ones get stand-ins."""


@runtime_checkable
class Absence(Protocol):
    """A masking method: anything that can be bound to samples.

    >>> class Negative:
    ...     def bind(self, x):
    ...         return StandIns(x, -x[:, None])
    >>> isinstance(Negative(), Absence)
    True
    """

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Prepare for these samples; refuse with a sentence those that the method does not fit."""


@dataclass(frozen=True, eq=False)
class StandIns:
    """The fill of every absence whose stand-ins do not depend on which players are present."""

    x: Shaped[Tensor, "samples *entries"]
    values: Shaped[Tensor, "#samples draws *entries"]

    @property
    def draws(self) -> int:
        """How many stand-ins there are for each sample."""
        return int(self.values.shape[1])

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Choose between sample and stand-in, entry by entry."""
        present = self.x[samples, None, None]
        absent = self.values if len(self.values) == 1 else self.values[samples]
        return torch.where(presence.unsqueeze(2), present, absent.unsqueeze(1))


@dataclass(frozen=True, eq=False)
class Baseline:
    """Fixed values: one for all entries, one for each channel of an image, or one for each entry.

    >>> Baseline(0.0)
    Baseline(0)
    >>> Baseline([1.0, 2.0, 3.0])
    Baseline(of shape (3,), from 1 to 3)
    """

    values: Tensor

    def __init__(self, values: float | Sequence[float] | Array) -> None:
        tensor = as_tensor("values", values)
        if not bool(torch.isfinite(tensor).all()):
            raise wrong("values", "be finite", f"{int((~torch.isfinite(tensor)).sum())} that are not")
        object.__setattr__(self, "values", tensor)

    def __repr__(self) -> str:
        if self.values.ndim == 0:
            return f"Baseline({self.values.item():g})"
        low, high = self.values.min().item(), self.values.max().item()
        return f"Baseline(of shape {tuple(self.values.shape)}, from {low:g} to {high:g})"

    @classmethod
    def zeros(cls) -> Baseline:
        """Take zero everywhere: black pixels, or the mean of standardised data."""
        return cls(0.0)

    @classmethod
    def mean(cls, data: Table) -> Baseline:
        """Take the mean of the data's rows.

        >>> Baseline.mean(torch.tensor([[0.0, 2.0], [1.0, 4.0]])).values
        tensor([0.5000, 3.0000])
        """
        data = _rows(data)
        return cls(data.mean(0, dtype=torch.float64 if not data.is_floating_point() else None))

    @classmethod
    def median(cls, data: Table, categorical: Sequence[int] = ()) -> Baseline:
        """Take the median of the data's rows (the lower of the middle two), and the mode of categorical columns.

        >>> Baseline.median(torch.tensor([[0.0, 7.0], [1.0, 9.0], [5.0, 9.0]]), categorical=[1]).values
        tensor([1., 9.])
        """
        data = _rows(data)
        values = data.median(0).values
        for column in categorical:
            values[column] = data[:, column].mode(0).values
        return cls(values)

    @classmethod
    def mode(cls, data: Table) -> Baseline:
        """Take the most frequent value of each entry (the smallest of those that tie)."""
        return cls(_rows(data).mode(0).values)

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Spread the values over the entries of one sample."""
        entries = x.shape[1:]
        values = self.values
        if values.ndim == 1 and len(entries) == 3 and len(values) == entries[0]:
            values = values[:, None, None]  # one value for each channel
        elif values.ndim != 0 and values.shape != entries:
            expected = f"be one number or have the shape of one sample, {tuple(entries)}"
            raise wrong("baseline", expected, f"shape {tuple(values.shape)}")
        if not x.is_floating_point() and not torch.equal(values.double(), values.double().round()):
            raise wrong("baseline", "hold whole numbers for integer inputs", values.tolist())
        return StandIns(x, values.to(x).expand(1, 1, *entries))


@dataclass(frozen=True, eq=False)
class OwnBaselines:
    """Fixed values for each of the samples: row k of ``values`` stands in for absent entries of sample k.

    >>> OwnBaselines(torch.zeros(3, 4))
    OwnBaselines(of 3 samples, entries of shape (4,))
    """

    values: Shaped[Tensor, "samples *entries"]

    def __repr__(self) -> str:
        return f"OwnBaselines(of {len(self.values)} samples, entries of shape {tuple(self.values.shape[1:])})"

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Pair the rows with the samples."""
        if self.values.shape != x.shape:
            expected = f"hold one row for each sample, of shape {tuple(x.shape)}"
            raise wrong("baselines", expected, f"shape {tuple(self.values.shape)}")
        return StandIns(x, self.values.to(x)[:, None])


@dataclass(frozen=True)
class Blur:
    """The image itself, blurred by a Gaussian of ``sigma`` pixels (mirrored at the border).

    Takes inputs of shape (…, height, width), each channel on its own.

    >>> dot = torch.zeros(1, 1, 3, 3)
    >>> dot[..., 1, 1] = 1.0
    >>> all_absent = torch.zeros(1, 1, 1, 3, 3, dtype=torch.bool)
    >>> Blur(0.5).bind(dot)(slice(None), all_absent).round(decimals=2).squeeze()
    tensor([[0.0500, 0.1700, 0.0500],
            [0.1700, 0.6200, 0.1700],
            [0.0500, 0.1700, 0.0500]])
    """

    sigma: float

    def __post_init__(self) -> None:
        if not self.sigma > 0 or math.isinf(self.sigma):
            raise wrong("sigma", "be a positive number of pixels", self.sigma)

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Blur the samples, once."""
        if x.ndim < 3 or not x.is_floating_point():
            expected = "be images of shape (samples, …, height, width) in floating point for Blur"
            raise wrong("x", expected, f"{x.dtype} of shape {tuple(x.shape)}")
        rows = _blur_matrix(x.shape[-2], self.sigma).to(x)
        columns = _blur_matrix(x.shape[-1], self.sigma).to(x)
        return StandIns(x, (rows @ x @ columns.T)[:, None])


@dataclass(frozen=True, eq=False)
class Marginal:
    """Rows of a background: the game's value is the average over all of them, or over ``draws`` of them.

    With ``draws`` the same rows, drawn without replacement by ``seed``, serve every sample and every coalition.

    >>> Marginal(torch.zeros(500, 4), draws=50)
    Marginal(50 of 500 rows)
    """

    background: Tensor
    draws: int | None
    seed: int

    def __init__(self, background: Table, draws: int | None = None, seed: int = 0) -> None:
        rows = _rows(background)
        if draws is not None and not 1 <= draws <= len(rows):
            raise wrong("draws", f"lie between 1 and the background's {len(rows)} rows", draws)
        object.__setattr__(self, "background", rows)
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "seed", seed)

    def __repr__(self) -> str:
        rows = len(self.background)
        return f"Marginal({rows if self.draws is None else self.draws} of {rows} rows)"

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Draw the rows."""
        if self.background.shape[1:] != x.shape[1:]:
            expected = f"have rows of the shape of one sample, {tuple(x.shape[1:])}"
            raise wrong("background", expected, f"rows of shape {tuple(self.background.shape[1:])}")
        rows = self.background
        if self.draws is not None:
            generator = torch.Generator().manual_seed(self.seed)
            rows = rows[torch.randperm(len(rows), generator=generator)[: self.draws].to(rows.device)]
        return StandIns(x, rows.to(x)[None])


def _rows(data: Table) -> Tensor:
    """Check data that an absence is made from: a tensor with at least one row, finite."""
    data = as_tensor("data", data)
    if data.ndim < 2 or len(data) == 0:
        raise wrong("data", "have at least one row, of shape (rows, …)", f"shape {tuple(data.shape)}")
    if not bool(torch.isfinite(data).all()):
        row = int((~torch.isfinite(data)).flatten(1).any(1).nonzero()[0])
        raise wrong("data", "be finite", f"NaN or infinity in row {row}")
    return data


def _blur_matrix(length: int, sigma: float) -> Tensor:
    """Write the blur along one axis as a matrix: row j holds the weights of all pixels in the blurred pixel j."""
    radius = math.ceil(4 * sigma)
    offsets = torch.arange(-radius, radius + 1)
    weights = torch.exp(-0.5 * (offsets / sigma).double() ** 2)
    weights /= weights.sum()
    # Mirror at the border without repeating the edge pixel: indices fold with period 2(length − 1).
    period = max(1, 2 * (length - 1))
    folded = (torch.arange(length)[:, None] + offsets) % period
    folded = torch.where(folded < length, folded, period - folded)
    return torch.zeros(length, length, dtype=torch.float64).scatter_add(1, folded, weights.expand(length, -1))
