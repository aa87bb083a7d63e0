"""Tables as rows of numbers for trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from absentia.errors import require
from absentia.trees.ensemble import UnreadableTreesError

# The code of a value that is missing or belongs to no category.
_NO_LABEL = -1


def table_numbers(data: Any, labels: Mapping[int, Sequence[Any]] | None = None) -> np.ndarray:
    """Return an array, a sparse matrix or a DataFrame as rows of numbers.

    ``labels`` lists the categories of columns of a DataFrame. Each value becomes its position in the list; missing
    and unknown values become NaN.
    """
    if hasattr(data, "toarray"):
        data = data.toarray()
    if not is_frame(data):
        return np.asarray(data, np.float64)
    by_column = []
    for number in range(data.shape[1]):
        values = data.iloc[:, number]
        if labels is not None and number in labels:
            by_column.append(_places(values, labels[number]))
        else:
            by_column.append(_numbers(values))
    return np.stack(by_column, axis=1)


def is_frame(data: Any) -> bool:
    """Return whether data is a pandas DataFrame."""
    return hasattr(data, "iloc") and hasattr(data, "dtypes")


def category_columns(data: Any) -> list[int]:
    """Return the numbers of the columns with pandas categories; none unless data is a DataFrame."""
    if not is_frame(data):
        return []
    return [number for number, dtype in enumerate(data.dtypes) if str(dtype) == "category"]


def _places(values: Any, labels: Sequence[Any]) -> np.ndarray:
    """Return the position of each value in a list."""
    index = require("pandas", "sklearn").Index(list(labels), dtype=object)
    places = index.get_indexer(values.astype(object))
    numbers = places.astype(np.float64)
    numbers[(places == _NO_LABEL) | values.isna().to_numpy()] = np.nan
    return numbers


def _numbers(values: Any) -> np.ndarray:
    """Return a column of numbers; raise an error if it holds anything else."""
    try:
        numbers: np.ndarray = values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise UnreadableTreesError(f"Column {values.name!r} does not hold numbers: {error}.") from error
    return numbers
