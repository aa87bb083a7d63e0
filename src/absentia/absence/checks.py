"""What absences ask of the data that they are made from, and of the samples that they are bound to."""

from __future__ import annotations

import torch
from torch import Tensor

from absentia.arrays import Table, as_tensor
from absentia.errors import wrong


def check_rows(data: Table, least: int = 1) -> Tensor:
    """Take data that an absence is made from as a tensor: enough rows, and finite."""
    data = as_tensor("data", data)
    if data.ndim < 2 or len(data) < least or data.numel() == 0:
        must = f"have at least {'one row' if least == 1 else f'{least} rows'}, of shape (rows, …)"
        raise wrong("data", must, f"shape {tuple(data.shape)}")
    finite = torch.isfinite(data).flatten(1).all(1)
    if not bool(finite.all()):
        raise wrong("data", "be finite", f"NaN or infinity in row {int((~finite).nonzero()[0])}")
    return data


def check_shape(name: str, shape: torch.Size | tuple[int, ...], x: Tensor) -> None:
    """Refuse samples whose shape is not that of the rows that an absence was made from."""
    if tuple(shape) != tuple(x.shape[1:]):
        must = f"have rows of the shape of one sample, {tuple(x.shape[1:])}"
        raise wrong(name, must, f"rows of shape {tuple(shape)}")


def check_whole(name: str, values: Tensor, x: Tensor) -> None:
    """Refuse stand-ins that integer samples, such as tokens, cannot hold."""
    if x.is_floating_point() or not values.is_floating_point():
        return
    broken = values[values != values.round()]
    if len(broken):
        raise wrong(name, "hold whole numbers for integer inputs", f"{broken[0].item():g}")


def check_floating(method: str, x: Tensor, then: str = "") -> None:
    """Refuse integer samples, such as tokens, for a method that calculates with their values."""
    if not x.is_floating_point():
        raise wrong("x", f"be in floating point for {method}", f"{x.dtype}", then)


def check_draws(draws: int) -> None:
    """Refuse a number of draws below one."""
    if draws < 1:
        raise wrong("draws", "be at least 1", draws)
