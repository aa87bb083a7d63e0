"""The scale of each entry of a table, or of each channel of images."""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data.gaps import has_gaps, known_least, known_most
from absentia.data.tensors import Rows

Scales: TypeAlias = tuple[Float[Tensor, " *scales"], Float[Tensor, " *scales"]]

# The number of rows converted to double precision at a time. A copy of all of them might not fit into memory.
_ROWS_AT_A_TIME = 4096

# A standard deviation below this share of the mean is a rounding error of equal numbers.
_ROUNDING = 1e-12


def mean_and_deviation(rows: Rows) -> Scales:
    """Return means and standard deviations of each entry, or of each channel of images, in double precision."""
    axes = _axes(rows)
    parts = rows.split(_ROWS_AT_A_TIME)
    if has_gaps(rows):
        mean = rows.nanmean(axes, keepdim=True, dtype=torch.float64)
        squares = sum((part.double() - mean).square_().nansum(axes, keepdim=True) for part in parts)
        known = (~rows.isnan()).sum(axes, keepdim=True)
        deviation = (squares / known.clamp_min(1)).sqrt()
    else:
        mean = rows.mean(axes, keepdim=True, dtype=torch.float64)
        squares = sum((part.double() - mean).square_().sum(axes, keepdim=True) for part in parts)
        share_of_a_number = mean.numel() / rows.numel()
        deviation = (squares * share_of_a_number).sqrt()
    deviation[deviation <= _ROUNDING * (1 + mean.abs())] = 0
    return mean[0], deviation[0]


def least_and_most(rows: Rows) -> Scales:
    """Return the smallest and the largest value of each entry, or of each channel of images."""
    axes = _axes(rows)
    least = known_least(rows, tuple(axes))[0]
    most = known_most(rows, tuple(axes))[0]
    return least.double(), most.double()


def _axes(rows: Tensor) -> list[int]:
    """Return the axes over which statistics are computed: rows, and for images also height and width."""
    if rows.ndim == 2:
        return [0]
    return [0, -2, -1]
