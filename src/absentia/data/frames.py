"""What DataFrames hold, found out without importing pandas."""

from __future__ import annotations

import numbers
from typing import Any

from absentia.data.tensors import Table


def is_frame(table: Table) -> bool:
    """Return whether a table is a DataFrame of pandas."""
    return hasattr(table, "select_dtypes") and hasattr(table, "columns")


def has_categories(frame: Any) -> bool:
    """Return whether a frame has a column that is not of numbers."""
    return not all(is_numeric(frame.iloc[:, number]) for number in range(frame.shape[1]))


def is_numeric(column: Any) -> bool:
    """Return whether a column holds numbers, also as objects; booleans and times are none."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        return True
    if kind in "mM":
        return False
    if column.dtype != object:
        return False
    return all(isinstance(value, numbers.Number) and not isinstance(value, bool) for value in column.dropna())
