"""Columns of a table that hold categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.errors import wrong

# Categorical columns by number, or groups of columns that encode one category together.
Categorical: TypeAlias = Sequence[int | Sequence[int]]


def column_groups(categorical: Iterable[Any], entries: int) -> list[list[int]]:
    """Return groups of column numbers, one for each category, or raise an error for invalid columns."""
    groups = [list(item) if isinstance(item, Iterable) else [item] for item in categorical]
    seen: list[Any] = []
    for group in groups:
        for column in group:
            if column not in range(entries):
                raise wrong("categorical", f"name columns from 0 to {entries - 1}", column)
            if column in seen:
                raise wrong("categorical", "name each column once", f"column {column} twice")
            seen.append(column)
    return [[int(column) for column in group] for group in groups]


def most_frequent(rows: Shaped[Tensor, "rows entries"]) -> Shaped[Tensor, " entries"]:
    """Return the row that occurs most often; rows with missing values count only if there are no others."""
    if rows.is_floating_point():
        known = rows[~rows.isnan().any(1)]
        rows = known if len(known) else rows
    distinct_rows, counts = torch.unique(rows, dim=0, return_counts=True)
    return distinct_rows[counts.argmax()]
