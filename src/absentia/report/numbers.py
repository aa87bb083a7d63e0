"""Numbers for the page: as few digits as a reader needs, and none that JSON does not know."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

DIGITS = 4


def plain(values: Shaped[Tensor, " *shape"], digits: int = DIGITS) -> Any:
    """Make a tensor nested lists of short numbers; None stands for NaN and infinity.

    >>> import torch
    >>> plain(torch.tensor([[1 / 3, 2.0], [float("nan"), 12345.6]], dtype=torch.float64))
    [[0.3333, 2], [None, 12350]]
    """
    if not values.is_floating_point():
        return values.detach().cpu().tolist()
    # All at once, for a page can hold a million of them.
    short = [float(f"{value:.{digits}g}") for value in values.detach().cpu().flatten().tolist()]
    found = np.empty(len(short), dtype=object)
    found[:] = [
        (int(value) if value.is_integer() and abs(value) < 1e15 else value) if math.isfinite(value) else None
        for value in short
    ]
    return found.reshape(tuple(values.shape)).tolist()


def written(value: float, digits: int = DIGITS) -> str:
    """Write a number for a table, with a true minus sign; a dash where there is none.

    >>> written(-0.25), written(1234567.0), written(math.nan)
    ('−0.25', '1.235e+06', '–')
    """
    return f"{value:.{digits}g}".replace("-", "−") if math.isfinite(value) else "–"
