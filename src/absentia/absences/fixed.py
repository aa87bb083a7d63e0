"""Absences whose stand-ins do not depend on which players are present: fixed values, a blur, rows of data, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.absences.protocol import Fill, Samples, StandIns, check_shape, check_whole
from absentia.arguments import checked
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
    has_categories,
    is_frame,
    known_mean,
    known_median,
    known_mode,
    least_and_most,
    mean_and_deviation,
    most_frequent,
    read_rows,
    seeded,
    white_noise,
)
from absentia.errors import wrong


@checked
@dataclass(frozen=True, eq=False)
class Baseline:
    """An absence with fixed values: one for all entries, one for each channel of an image, or one for each entry.

    Parameters
    ----------
    values : float, sequence or array
        A number, one number for each channel, or an array with the shape of one sample.

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
        if not tensor.requires_grad:
            tensor = tensor.clone()  # the caller may change an array later
        infinite = torch.isinf(tensor)
        if bool(infinite.any()):
            raise wrong("values", "be finite, or NaN for missing values", f"{int(infinite.sum())} that are not")
        # A frozen dataclass does not let its own attributes be assigned.
        object.__setattr__(self, "values", tensor)

    def __repr__(self) -> str:
        values = self.values
        known = values[~values.isnan()]
        if len(known) == 0:
            return "Baseline(missing)"
        if values.ndim == 0:
            return f"Baseline({values.item():g})"
        described = f"of shape {tuple(values.shape)}, from {known.min():g} to {known.max():g}"
        missing = values.numel() - len(known)
        if missing:
            described = f"{described}, {missing} missing"
        return f"Baseline({described})"

    @classmethod
    def mean(cls, data: Table, categorical: Categorical = ()) -> Baseline:
        """Use the mean of the data's rows, and the mode of categorical columns.

        >>> Baseline.mean(torch.tensor([[0.0, 2.0], [1.0, 4.0]])).values
        tensor([0.5000, 3.0000])
        """
        rows = read_rows(data)
        dtype = rows.dtype if rows.is_floating_point() else torch.float64
        return cls(_with_categories(known_mean(rows, dtype), rows, categorical))

    @classmethod
    def median(cls, data: Table, categorical: Categorical = ()) -> Baseline:
        """Use the median of the data's rows (the lower of the middle two), and the mode of categorical columns.

        Columns that encode one category together, such as one-hot columns, form a list in ``categorical``.

        >>> Baseline.median(torch.tensor([[0.0, 7.0], [1.0, 9.0], [5.0, 9.0]]), categorical=[1]).values
        tensor([1., 9.])
        """
        rows = read_rows(data)
        return cls(_with_categories(known_median(rows), rows, categorical))

    @classmethod
    def mode(cls, data: Table, categorical: Categorical = ()) -> Baseline:
        """Use the most frequent value of each entry (the smallest in case of a tie).

        Columns that encode one category together, such as one-hot columns, form a list in ``categorical``. They take
        the values that occur together most often.

        >>> one_hot = torch.tensor([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
        >>> Baseline.mode(one_hot).values, Baseline.mode(one_hot, categorical=[[0, 1, 2]]).values
        (tensor([0, 0, 0]), tensor([0, 1, 0]))
        """
        rows = read_rows(data)
        return cls(_with_categories(known_mode(rows), rows, categorical))

    def bind(self, x: Samples) -> Fill:
        """Spread the values over the entries of one sample."""
        shape = x.shape[1:]
        values = self.values
        one_per_channel = values.ndim == 1 and len(shape) == 3 and len(values) == shape[0]
        if one_per_channel:
            values = values[:, None, None]
        elif values.ndim != 0 and values.shape != shape:
            expected = f"be one number or have the shape of one sample, {tuple(shape)}"
            raise wrong("baseline", expected, f"shape {tuple(values.shape)}")
        check_whole("baseline", values, x)
        return StandIns(x, values.to(x).expand(1, 1, *shape))


def _with_categories(values: Tensor, data: Rows, categorical: Categorical) -> Tensor:
    """Replace the values of categorical columns by the most frequent ones."""
    flat_values = values.flatten().clone()
    flat_rows = data.flatten(1)
    for columns in column_groups(categorical, flat_rows.shape[1]):
        flat_values[columns] = most_frequent(flat_rows[:, columns]).to(flat_values)
    return flat_values.reshape(values.shape)


@checked
@dataclass(frozen=True, eq=False)
class OwnBaselines:
    """An absence with fixed values for each sample.

    Parameters
    ----------
    values : Tensor
        Row k stands in for the absent entries of sample k. Gradients flow through it.

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


@checked
@dataclass(frozen=True)
class Blur:
    """The image itself, blurred by a Gaussian that reflects it at the border.

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
        height, width = x.shape[-2:]
        along_rows = _blur_matrix(width, self.sigma).to(x)
        along_columns = _blur_matrix(height, self.sigma).to(x)
        blurred = along_columns @ x @ along_rows.T
        return StandIns(x, blurred[:, None])


def _blur_matrix(length: int, sigma: float) -> Tensor:
    """Return the blur along one axis as a matrix: row j holds the weights of all pixels in the blurred pixel j."""
    radius = math.ceil(4 * sigma)
    distances = (torch.arange(-radius, radius + 1) / sigma).double()
    weights = torch.exp(-0.5 * distances**2)
    weights /= weights.sum()
    mirrored = torch.from_numpy(np.pad(np.arange(length), radius, mode="reflect"))  # the edge pixel is not repeated
    pixels = mirrored.unfold(0, len(weights), 1)
    return torch.zeros(length, length, dtype=torch.float64).scatter_add(1, pixels, weights.expand(length, -1))


@checked
@dataclass(frozen=True, eq=False)
class Marginal:
    """Rows of a background, the same for every sample and every coalition. A game averages over them.

    Parameters
    ----------
    background : array of shape (rows, …) or DataFrame
        Rows such as the training data. Text and categories of a DataFrame are encoded as those of the samples, which
        must be a DataFrame as well, for a fitted estimator.
    draws : int, optional
        The number of rows to draw without replacement. The default is all rows.
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
        background = self.background
        if is_frame(background) and has_categories(background):
            rows = background.copy()  # only a game knows how its model codes categories
        else:
            rows = read_rows(background).clone()
        check_number("draws", self.draws, 1, len(rows))
        object.__setattr__(self, "background", rows)

    def __repr__(self) -> str:
        rows = len(self.background)
        draws = rows if self.draws is None else self.draws
        return f"Marginal({draws} of {rows} rows)"

    @property
    def frame(self) -> Any:
        """The background as a DataFrame, if it has categories that are not encoded yet; otherwise None."""
        if isinstance(self.background, Tensor):
            return None
        return self.background

    def of_numbers(self, rows: Rows) -> Marginal:
        """Return the absence with the encoded rows of its DataFrame."""
        return replace(self, background=rows)

    def bind(self, x: Samples) -> Fill:
        """Draw the rows."""
        rows = self.background
        if self.frame is not None:  # not encoded: an error, except for booleans
            rows = check_rows(self.frame, name="background", missing=True)
        check_shape("background", rows.shape[1:], x)
        check_whole("background", rows, x)
        if self.draws is not None:
            order = torch.randperm(len(rows), generator=seeded(self.seed))
            rows = rows[order[: self.draws].to(rows.device)]
        return StandIns(x, rows.to(x)[None])


@checked
@dataclass(frozen=True, eq=False)
class Noise:
    """White noise on the scale of the data, the same for every sample and every coalition.

    Parameters
    ----------
    data : array of shape (rows, …), optional
        Rows that set the scale of the noise, for each entry or for each channel of images (rows, …, height, width).
    kind : {"uniform", "normal"}, default "uniform"
        Uniform noise lies between the smallest and the largest value of the data. Normal noise has the mean and
        standard deviation of the data, or 0 and 1 without data. For tokens, use uniform noise, which draws integers.
    low, high : float, optional
        The bounds of uniform noise. The default is those of the data, or 0 and 1 without data.
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
        bounded = self.low is not None or self.high is not None
        if self.kind == "normal" and bounded:
            raise wrong("low and high", "be left out for normal noise", f"{self.low} and {self.high}")
        check_number("draws", self.draws, 1)
        data = None if self.data is None else read_rows(self.data).cpu()
        scale = self._range(data) if self.kind == "uniform" else _moments(data)
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "scale", scale)

    def _range(self, data: Rows | None) -> tuple[Tensor, Tensor]:
        """Return the bounds of uniform noise."""
        if data is None:
            low, high = torch.tensor([0.0, 1.0], dtype=torch.float64)
        else:
            low, high = least_and_most(data)
        if self.low is not None:
            low = torch.full_like(low, self.low)
        if self.high is not None:
            high = torch.full_like(high, self.high)
        valid = (low <= high) & torch.isfinite(high - low)
        if not bool(valid.all()):
            raise wrong("low", "be finite and not above high", f"{low.max():g} and {high.min():g}")
        return low, high

    def __repr__(self) -> str:
        ends = ""
        if self.kind == "uniform":
            low, high = self.scale
            ends = f" from {low.min():g} to {high.max():g}"
        return f"Noise({self.kind}{ends}, {self.draws} draws, seed {self.seed})"

    def bind(self, x: Samples) -> Fill:
        """Draw the noise."""
        if self.data is not None:
            check_shape("data", self.data.shape[1:], x)
        generator = seeded(self.seed)
        if self.kind == "uniform":
            low, high = self.scale
            check_whole("low and high", torch.stack([low, high]), x)
            like = x.new_empty(self.draws, *x.shape[1:])
            noise = white_noise(DataRange(low, high), like, generator)
        else:
            if not x.is_floating_point():
                raise wrong("kind", "be 'uniform' for integer inputs", "'normal'")
            mean, deviation = self.scale
            unit = torch.randn(self.draws, *x.shape[1:], generator=generator, dtype=torch.float64)
            noise = (mean + deviation * unit).to(x)
        return StandIns(x, noise[None])


def _moments(data: Rows | None) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of normal noise."""
    if data is None:
        mean, deviation = torch.tensor([0.0, 1.0], dtype=torch.float64)
        return mean, deviation
    return mean_and_deviation(data)
