"""Tensors in the form that the page uses: numbers to draw, and texts to show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from absentia.text import written

_LARGEST_WHOLE = 1e15  # below this, whole floats are exact as integers


def numbers(values: Shaped[Tensor, " *shape"], digits: int = 6) -> Any:
    """Convert a tensor to nested lists of rounded numbers to draw; NaN and infinity become None."""

    def rounded(value: float) -> float | None:
        value = float(f"{value:.{digits}g}")
        if not math.isfinite(value):
            return None
        if value.is_integer() and abs(value) < _LARGEST_WHOLE:
            return int(value)  # shorter in JSON
        return value

    return np.vectorize(rounded, otypes=[object])(values.detach().cpu()).tolist()


def texts(values: Shaped[Tensor, " *shape"], digits: int = 4, *, plus: bool = False) -> Any:
    """Convert a tensor to nested lists of formatted numbers."""
    write = np.vectorize(lambda value: written(value, digits, plus=plus), otypes=[object])
    return write(values.detach().cpu()).tolist()
