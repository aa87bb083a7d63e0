"""What users hand in as data, made a tensor once, at the public edge."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from absentia.errors import wrong

Array: TypeAlias = Tensor | np.ndarray
# Samples as users hold them: an array, a DataFrame, nested lists. `as_tensor` says what is wrong with anything else.
Table: TypeAlias = Any


def as_tensor(name: str, value: Any) -> Tensor:
    """Take a tensor, a numpy array, a DataFrame or nested lists of numbers as a tensor.

    >>> as_tensor("x", [[1.0, 2.0]])
    tensor([[1., 2.]], dtype=torch.float64)
    >>> as_tensor("x", "abc")
    Traceback (most recent call last):
    ...
    absentia.errors.AbsentiaError: x must be a tensor, an array or a table of numbers. Got str instead.
    """
    if isinstance(value, Tensor):
        return value
    try:
        # A DataFrame becomes an array by a method of its own; torch can't read it.
        array = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
        return torch.as_tensor(np.require(array, requirements="W"))  # a copy of what may not be written to
    except (TypeError, ValueError) as error:
        then = "Code text and categories as numbers first." if hasattr(value, "to_numpy") else ""
        raise wrong(name, "be a tensor, an array or a table of numbers", type(value).__name__, then) from error
