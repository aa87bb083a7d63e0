"""The scale of data: of each column of a table, and of each channel of images, whose pixels share theirs."""

from __future__ import annotations

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

_ROWS_AT_A_TIME = 4096


def mean_and_deviation(
    rows: Shaped[Tensor, "rows *entries"],
) -> tuple[Float[Tensor, " *scales"], Float[Tensor, " *scales"]]:
    """Give means and standard deviations in double precision, of a shape that broadcasts over one row's entries.

    >>> mean, deviation = mean_and_deviation(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
    >>> mean.tolist(), deviation.tolist()
    ([1.0, 5.0], [1.0, 0.0])
    >>> mean_and_deviation(torch.zeros(10, 3, 8, 8))[0].shape
    torch.Size([3, 1, 1])
    """
    mean = rows.mean(_axes(rows), keepdim=True, dtype=torch.float64)
    parts = rows.split(_ROWS_AT_A_TIME)  # in double precision, all at once might not fit into memory
    total = sum((part.double() - mean).square_().sum(_axes(rows), keepdim=True) for part in parts)
    deviation = (total * (mean.numel() / rows.numel())).sqrt()
    # Equal numbers may differ from their mean by a rounding error.
    deviation[deviation <= 1e-12 * (1 + mean.abs())] = 0
    return mean[0], deviation[0]


def least_and_most(
    rows: Shaped[Tensor, "rows *entries"],
) -> tuple[Float[Tensor, " *scales"], Float[Tensor, " *scales"]]:
    """Give the least and the greatest values, likewise.

    >>> least, most = least_and_most(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
    >>> least.tolist(), most.tolist()
    ([0.0, 5.0], [2.0, 5.0])
    """
    return rows.amin(_axes(rows), keepdim=True)[0].double(), rows.amax(_axes(rows), keepdim=True)[0].double()


def _axes(rows: Tensor) -> list[int]:
    """Tell over which axes to take statistics: rows, and height and width of images."""
    return [0] if rows.ndim == 2 else [0, -2, -1]
