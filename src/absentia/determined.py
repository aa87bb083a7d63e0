"""Which estimates are determined: those whose standard error does not exceed them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# The mark beside an estimate, what it means, and what a style in a picture means.
NOT_DETERMINED = "not determined"
WHY_NOT_DETERMINED = f"{NOT_DETERMINED}: its standard error exceeds it"
MEANING_OF_STYLE = f"{NOT_DETERMINED}, as its standard error exceeds it"


def are_determined(values: Float[Tensor, "*shape"], errors: Float[Tensor, "*shape"] | None) -> Bool[Tensor, "*shape"]:
    """Mark the values that are not exceeded by their standard errors; an unknown error, NaN, exceeds nothing.

    Examples
    --------
    >>> are_determined(torch.tensor([2.0, -2.0, 2.0]), torch.tensor([1.0, 3.0, torch.nan])).tolist()
    [True, False, True]
    """
    if errors is None:
        return torch.ones_like(values, dtype=torch.bool)
    return ~(errors > values.detach().abs())


def with_marks(rows: Sequence[Sequence[str]], determined: Sequence[bool]) -> list[tuple[str, ...]]:
    """Add a column to rows of a table that marks what is not determined; none if everything is.

    Examples
    --------
    >>> with_marks([("age", "+2"), ("tenure", "+0.1")], [True, False])
    [('age', '+2', ''), ('tenure', '+0.1', 'not determined')]
    """
    if all(determined):
        return [tuple(row) for row in rows]
    marks = ["" if is_determined else NOT_DETERMINED for is_determined in determined]
    return [(*row, mark) for row, mark in zip(rows, marks, strict=True)]
