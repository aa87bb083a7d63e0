"""Absences whose stand-ins do not depend on which players are present: fixed values, a blur, rows of data, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.absences.protocol import Fill, Samples, StandIns, check_shape, check_whole
from absentia.data import (
    Array,
    Categorical,
    DataRange,
    Rows,
    Table,
    as_tensor,
    check_number,
    check_rows,
    column_groups,
    least_and_most,
    mean_and_deviation,
    most_frequent,
    seeded,
    white_noise,
)
from absentia.errors import wrong


@dataclass(frozen=True, eq=False)
class Baseline:
    """Fixed values as an absence: one for all entries, one for each channel of an image, or one for each entry.

    Parameters
    ----------
    values : float, sequence or array
        A number, one number for each channel, or an array of the shape of one sample.

    Examples
    --------
    >>> Baseline(0.0)
    Baseline(0)
    >>> Baseline([1.0, 2.0, 3.0])
    Baseline(of shape (3,), from 1 to 3)
    """

    values: Tensor

    def __init__(self, values: float | Sequence[float] | Array) -> None:
        tensor = as_tensor("values", values)
        tensor = tensor if tensor.requires_grad else tensor.clone()  # an array may be changed later
        if not bool(torch.isfinite(tensor).all()):
            raise wrong("values", "be finite", f"{int((~torch.isfinite(tensor)).sum())} that are not")
        vars(self).update(values=tensor)  # a frozen class does not let attributes be set

    def __repr__(self) -> str:
        values = self.values
        if values.ndim == 0:
            return f"Baseline({values.item():g})"
        return f"Baseline(of shape {tuple(values.shape)}, from {values.min():g} to {values.max():g})"

    @classmethod
    def mean(cls, data: Table) -> Baseline:
        """Use the mean of the data's rows.

        >>> Baseline.mean(torch.tensor([[0.0, 2.0], [1.0, 4.0]])).values
        tensor([0.5000, 3.0000])
        """
        data = check_rows(data)
        return cls(data.mean(0, dtype=torch.float64 if not data.is_floating_point() else None))

    @classmethod
    def median(cls, data: Table, categorical: Categorical = ()) -> Baseline:
        """Use the median of the data's rows (the lower of the middle two), and the mode of categorical columns.

        Columns that are one category together, such as one-hot ones, are a list in ``categorical``.

        >>> Baseline.median(torch.tensor([[0.0, 7.0], [1.0, 9.0], [5.0, 9.0]]), categorical=[1]).values
        tensor([1., 9.])
        """
        data = check_rows(data)
        return cls(_with_categories(data.median(0).values, data, categorical))

    @classmethod
    def mode(cls, data: Table, categorical: Categorical = ()) -> Baseline:
        """Use the most frequent value of each entry (the smallest of those that tie).

        Columns that are one category together, such as one-hot ones, are a list in ``categorical``: they take the
        values that most often occur together.

        >>> one_hot = torch.tensor([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
        >>> Baseline.mode(one_hot).values, Baseline.mode(one_hot, categorical=[[0, 1, 2]]).values
        (tensor([0, 0, 0]), tensor([0, 1, 0]))
        """
        data = check_rows(data)
        return cls(_with_categories(data.mode(0).values, data, categorical))

    def bind(self, x: Samples) -> Fill:
        """Spread the values over the entries of one sample."""
        entries, values = x.shape[1:], self.values
        if values.ndim == 1 and len(entries) == 3 and len(values) == entries[0]:
            values = values[:, None, None]  # one value for each channel
        elif values.ndim != 0 and values.shape != entries:
            expected = f"be one number or have the shape of one sample, {tuple(entries)}"
            raise wrong("baseline", expected, f"shape {tuple(values.shape)}")
        check_whole("baseline", values, x)
        return StandIns(x, values.to(x).expand(1, 1, *entries))


def _with_categories(values: Tensor, data: Rows, categorical: Categorical) -> Tensor:
    """Replace the values of each category, or of the columns that code one, by those that are most frequent."""
    flat = values.flatten().clone()
    rows = data.flatten(1)
    for columns in column_groups(categorical, rows.shape[1]):
        flat[columns] = most_frequent(rows[:, columns])
    return flat.reshape(values.shape)


@dataclass(frozen=True, eq=False)
class OwnBaselines:
    """Fixed values for each of the samples as an absence.

    Parameters
    ----------
    values : Tensor
        Row k stands in for absent entries of sample k. Gradients flow through it.

    Examples
    --------
    >>> OwnBaselines(torch.zeros(3, 4))
    OwnBaselines(of 3 samples, entries of shape (4,))
    """

    values: Shaped[Tensor, "samples *entries"]

    def __repr__(self) -> str:
        return f"OwnBaselines(of {len(self.values)} samples, entries of shape {tuple(self.values.shape[1:])})"

    def bind(self, x: Samples) -> Fill:
        """Pair the rows with the samples."""
        if self.values.shape != x.shape:
            must = f"hold one row for each sample, of shape {tuple(x.shape)}"
            raise wrong("baselines", must, f"shape {tuple(self.values.shape)}")
        check_whole("baselines", self.values, x)
        return StandIns(x, self.values.to(x)[:, None])


@dataclass(frozen=True)
class Blur:
    """The image itself, blurred by a Gaussian that is mirrored at the border.

    It takes inputs of shape (…, height, width) and blurs each channel on its own.

    Parameters
    ----------
    sigma : float
        The standard deviation of the Gaussian, in pixels.

    Examples
    --------
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

    def bind(self, x: Samples) -> Fill:
        """Blur the samples."""
        if x.ndim < 3 or not x.is_floating_point():
            expected = "be images of shape (samples, …, height, width) in floating point for Blur"
            raise wrong("x", expected, f"{x.dtype} of shape {tuple(x.shape)}")
        rows, columns = (_blur_matrix(length, self.sigma).to(x) for length in x.shape[-2:])
        return StandIns(x, (rows @ x @ columns.T)[:, None])


def _blur_matrix(length: int, sigma: float) -> Tensor:
    """Return the blur along one axis as a matrix: row j holds the weights of all pixels in the blurred pixel j."""
    radius = math.ceil(4 * sigma)
    weights = torch.exp(-0.5 * (torch.arange(-radius, radius + 1) / sigma).double() ** 2)
    weights /= weights.sum()
    mirrored = torch.from_numpy(np.pad(np.arange(length), radius, mode="reflect"))  # the edge pixel is not repeated
    pixels = mirrored.unfold(0, len(weights), 1)
    return torch.zeros(length, length, dtype=torch.float64).scatter_add(1, pixels, weights.expand(length, -1))


@dataclass(frozen=True, eq=False)
class Marginal:
    """Rows of a background, the same for every sample and every coalition: a game averages over them.

    Parameters
    ----------
    background : array of shape (rows, …)
        Rows such as those that the model was trained on.
    draws : int, optional
        The number of rows to draw without replacement. All rows by default.
    seed : int, default 0

    Examples
    --------
    >>> Marginal(torch.zeros(500, 4), draws=50)
    Marginal(50 of 500 rows)
    """

    background: Table
    draws: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        rows = check_rows(self.background).clone()
        check_number("draws", self.draws, 1, len(rows))
        vars(self).update(background=rows)

    def __repr__(self) -> str:
        rows = len(self.background)
        return f"Marginal({rows if self.draws is None else self.draws} of {rows} rows)"

    def bind(self, x: Samples) -> Fill:
        """Draw the rows."""
        rows = self.background
        check_shape("background", rows.shape[1:], x)
        check_whole("background", rows, x)
        if self.draws is not None:
            rows = rows[torch.randperm(len(rows), generator=seeded(self.seed))[: self.draws].to(rows.device)]
        return StandIns(x, rows.to(x)[None])


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
    seed : int, default 0

    Examples
    --------
    >>> Noise(draws=2, high=5.0)
    Noise(uniform from 0 to 5, 2 draws, seed 0)
    >>> Noise(torch.tensor([[0.0, 7.0], [2.0, 7.0]])).bind(torch.ones(1, 2)).values[0, 0]
    tensor([1.9401, 7.0000])
    """

    data: Table | None = None
    _: KW_ONLY
    kind: Literal["uniform", "normal"] = "uniform"
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
        check_number("draws", self.draws, 1)
        first, second = torch.tensor([0.0, 1.0], dtype=torch.float64)
        data = None if self.data is None else check_rows(self.data).cpu()
        if data is not None:
            first, second = least_and_most(data) if uniform else mean_and_deviation(data)
        first = first if self.low is None else torch.full_like(first, self.low)
        second = second if self.high is None else torch.full_like(second, self.high)
        if uniform and not bool(((first <= second) & torch.isfinite(second - first)).all()):
            raise wrong("low", "be finite and not above high", f"{first.max():g} and {second.min():g}")
        vars(self).update(data=data, scale=(first, second))

    def __repr__(self) -> str:
        low, high = self.scale
        ends = f" from {low.min():g} to {high.max():g}" if self.kind == "uniform" else ""
        return f"Noise({self.kind}{ends}, {self.draws} draws, seed {self.seed})"

    def bind(self, x: Samples) -> Fill:
        """Draw the noise."""
        if self.data is not None:
            check_shape("data", self.data.shape[1:], x)
        like, generator = x.new_empty(self.draws, *x.shape[1:]), seeded(self.seed)
        if self.kind == "uniform":
            check_whole("low and high", torch.stack(self.scale), x)
            return StandIns(x, white_noise(DataRange(*self.scale), like, generator)[None])
        if not x.is_floating_point():
            raise wrong("kind", "be 'uniform' for integer inputs", "'normal'")
        unit = torch.randn(like.shape, generator=generator, dtype=torch.float64)
        return StandIns(x, (self.scale[0] + self.scale[1] * unit).to(x)[None])
