"""Fixed values as an absence: the same for all samples, or each sample's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.absences.protocol import Fill, Samples, StandIns, check_whole
from absentia.data import Array, Table, as_tensor, check_rows
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
        """Use zero everywhere: black pixels, or the mean of standardised data."""
        return cls(0.0)

    @classmethod
    def mean(cls, data: Table) -> Baseline:
        """Use the mean of the data's rows.

        >>> Baseline.mean(torch.tensor([[0.0, 2.0], [1.0, 4.0]])).values
        tensor([0.5000, 3.0000])
        """
        data = check_rows(data)
        return cls(data.mean(0, dtype=torch.float64 if not data.is_floating_point() else None))

    @classmethod
    def median(cls, data: Table, categorical: Sequence[int] = ()) -> Baseline:
        """Use the median of the data's rows (the lower of the middle two), and the mode of categorical columns.

        >>> Baseline.median(torch.tensor([[0.0, 7.0], [1.0, 9.0], [5.0, 9.0]]), categorical=[1]).values
        tensor([1., 9.])
        """
        data = check_rows(data)
        values = data.median(0).values
        for column in categorical:
            values[column] = data[:, column].mode(0).values
        return cls(values)

    @classmethod
    def mode(cls, data: Table) -> Baseline:
        """Use the most frequent value of each entry (the smallest of those that tie)."""
        return cls(check_rows(data).mode(0).values)

    def bind(self, x: Samples) -> Fill:
        """Spread the values over the entries of one sample."""
        entries = x.shape[1:]
        values = self.values
        if values.ndim == 1 and len(entries) == 3 and len(values) == entries[0]:
            values = values[:, None, None]  # one value for each channel
        elif values.ndim != 0 and values.shape != entries:
            expected = f"be one number or have the shape of one sample, {tuple(entries)}"
            raise wrong("baseline", expected, f"shape {tuple(values.shape)}")
        check_whole("baseline", values, x)
        return StandIns(x, values.to(x).expand(1, 1, *entries))


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
            expected = f"hold one row for each sample, of shape {tuple(x.shape)}"
            raise wrong("baselines", expected, f"shape {tuple(self.values.shape)}")
        check_whole("baselines", self.values, x)
        return StandIns(x, self.values.to(x)[:, None])
