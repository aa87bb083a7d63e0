"""Missing values in rows, NaN, and statistics of the values that are known.

A column without any known value has NaN for all of them.
"""

from __future__ import annotations

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.data.tensors import Rows


def has_gaps(rows: Tensor) -> bool:
    """Return whether some values are missing."""
    return rows.is_floating_point() and bool(rows.isnan().any())


def known_mean(rows: Rows, dtype: torch.dtype | None = None) -> Shaped[Tensor, " *entries"]:
    """Return the mean of each entry's known values."""
    if has_gaps(rows):
        return rows.nanmean(0, dtype=dtype)
    return rows.mean(0, dtype=dtype)


def known_deviation(rows: Rows) -> Shaped[Tensor, " *entries"]:
    """Return the standard deviation of each entry's known values, in double precision."""
    if not has_gaps(rows):
        return rows.double().std(0, correction=0)
    numbers = rows.double()
    return (numbers - numbers.nanmean(0)).square().nanmean(0).sqrt()


def known_median(rows: Rows) -> Shaped[Tensor, " *entries"]:
    """Return the median of each entry's known values, the lower of the middle two."""
    if has_gaps(rows):
        return rows.nanmedian(0).values
    return rows.median(0).values


def known_mode(rows: Rows) -> Shaped[Tensor, " *entries"]:
    """Return the most frequent of each entry's known values, the smallest in case of a tie."""
    if not has_gaps(rows):
        return rows.mode(0).values
    modes = rows[0].flatten().clone()
    for entry, values in enumerate(rows.flatten(1).T):
        known = values[~values.isnan()]
        modes[entry] = known.mode().values if len(known) else torch.nan
    return modes.unflatten(0, rows.shape[1:])


def known_least(rows: Rows, axes: tuple[int, ...] = (0,)) -> Tensor:
    """Return the least known value along axes, which are kept with the length 1."""
    if not has_gaps(rows):
        return rows.amin(axes, keepdim=True)
    missing = rows.isnan()
    least = torch.where(missing, torch.inf, rows).amin(axes, keepdim=True)
    return torch.where(missing.byte().amin(axes, keepdim=True) == 1, torch.nan, least)


def known_most(rows: Rows, axes: tuple[int, ...] = (0,)) -> Tensor:
    """Return the greatest known value along axes, which are kept with the length 1."""
    if not has_gaps(rows):
        return rows.amax(axes, keepdim=True)
    return -known_least(-rows, axes)


def known_quantiles(rows: Shaped[Tensor, "rows *entries"], levels: Tensor) -> Tensor:
    """Return the quantiles of each entry's known values."""
    if has_gaps(rows):
        return torch.nanquantile(rows, levels, dim=0)
    return torch.quantile(rows, levels, dim=0)
