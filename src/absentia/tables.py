"""Tables with categories, encoded as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.arguments import checked
from absentia.data import as_in_lightgbm, as_tensor
from absentia.errors import DataFrame, require, wrong
from absentia.players import Players, category_name

_TIME_DTYPES = ["datetime", "datetimetz", "timedelta"]  # as pandas names them


def listed(names: Iterable[Any], most: int = 12) -> str:
    """Join names by commas, at most the first ``most`` of them."""
    texts = [str(name) for name in names]
    if len(texts) > most:
        return ", ".join(texts[:most]) + ", …"
    return ", ".join(texts)


def as_in_table(names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return names of columns as a table has them: LightGBM writes underscores for the spaces in names."""
    columns = list(columns)
    own_names = dict(zip(as_in_lightgbm(columns), columns, strict=True))
    names = list(names)
    pairs = zip(names, as_in_lightgbm(names), strict=True)
    return [own_names.get(plain_name, name) for name, plain_name in pairs]


@checked
@dataclass(frozen=True, eq=False)
class EncodedTable:
    """The rows of a DataFrame as numbers: categories by their position in a list, numbers unchanged.

    Create one with `of`. The players are the raw columns, so a category is one player however a pipeline encodes it.
    Columns of text, booleans and pandas categories are encoded. A missing value is a separate category.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"city": ["Oslo", "Bern", "Oslo"], "age": [30, 41, 52]})
    >>> table = EncodedTable.of(frame)
    >>> table.rows
    tensor([[ 1., 30.],
            [ 0., 41.],
            [ 1., 52.]], dtype=torch.float64)
    >>> table.categories["city"], table.categorical, table.players
    (('Bern', 'Oslo'), [0], Players(2 of shape (2,): city, age))
    >>> table.decode(table.rows).equals(frame.astype({"age": float}))
    True
    """

    rows: Float[Tensor, "rows columns"]
    columns: tuple[str, ...]
    categories: dict[str, tuple[Any, ...]]  # of the encoded columns
    dtypes: dict[str, Any]  # of the encoded columns in a frame

    def __repr__(self) -> str:
        coded = ", ".join(f"{column} ({len(values)})" for column, values in self.categories.items())
        return f"EncodedTable({len(self.rows)} rows, {len(self.columns)} columns; categories: {coded or 'none'})"

    @classmethod
    def of(cls, frame: DataFrame) -> EncodedTable:
        """Encode a frame that contains all the categories that will be needed, such as the training data."""
        check_frame(frame)
        dtypes = frame.select_dtypes(exclude="number").dtypes.to_dict()
        categories = {column: _categories_of(frame[column]) for column in dtypes}
        empty = cls(torch.empty(0, frame.shape[1]), tuple(frame.columns), categories, dtypes)
        return replace(empty, rows=empty.encode(frame))

    @property
    def players(self) -> Players:
        """Each raw column as a player that knows its categories."""
        return Players.features(self.columns, self.categories)

    @property
    def categorical(self) -> list[int]:
        """The numbers of the encoded columns, as `Baseline.median` and `learn_baseline` take them."""
        return [number for number, column in enumerate(self.columns) if column in self.categories]

    @property
    def category_names(self) -> dict[int, tuple[str, ...]]:
        """The names of the categories of each encoded column, by its number."""
        return {
            self.columns.index(column): tuple(category_name(value) for value in values)
            for column, values in self.categories.items()
        }

    def numbers(self, frame: DataFrame) -> DataFrame:
        """Encode another frame, and keep the names of its rows and columns so that explanations show them.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"city": ["Oslo", "Bern"], "age": [30, 41]}, index=["Ada", "Bo"])
        >>> EncodedTable.of(frame).numbers(frame)
             city   age
        Ada   1.0  30.0
        Bo    0.0  41.0
        """
        return require("pandas", "sklearn").DataFrame(self.encode(frame), frame.index, list(self.columns))

    def encode(self, frame: DataFrame) -> Float[Tensor, "rows columns"]:
        """Encode another frame with the same categories; its columns may be in any order."""
        present = frame.columns if hasattr(frame, "itertuples") else ()
        missing = [column for column in self.columns if column not in present]
        if missing:
            raise wrong("frame", f"have the columns {', '.join(self.columns)}", f"none named {missing[0]!r}")
        rows = np.empty((len(frame), len(self.columns)))
        numeric = [number for number, column in enumerate(self.columns) if column not in self.categories]
        numeric_columns = [self.columns[number] for number in numeric]
        rows[:, numeric] = frame[numeric_columns].to_numpy(dtype=np.float64, na_value=np.nan)
        for column, categories in self.categories.items():
            rows[:, self.columns.index(column)] = _codes(frame[column], column, categories)
        return torch.from_numpy(rows)

    def decode(self, rows: Float[Tensor, "rows columns"] | np.ndarray) -> DataFrame:
        """Convert rows of numbers to a frame, or raise an error for a number that stands for no category."""
        pandas = require("pandas", "sklearn")
        array = as_tensor("rows", rows).detach().cpu().double().numpy()
        if array.shape[1:] != (len(self.columns),):
            raise wrong("rows", f"have {len(self.columns)} columns", f"shape {array.shape}")
        frame = {}
        for column, numbers in zip(self.columns, array.T, strict=True):
            if column in self.categories:
                frame[column] = self._decoded_column(column, numbers)
            else:
                frame[column] = pandas.Series(numbers)
        return pandas.DataFrame(frame)

    def _decoded_column(self, column: str, numbers: np.ndarray) -> Any:
        """Return the categories that the numbers of a column stand for, in its dtype."""
        values = _decoded(numbers, column, self.categories[column])
        dtype = self.dtypes[column]
        if dtype == np.dtype(bool) and values.isna().any():
            dtype = np.float64  # booleans cannot be missing, but 0, 1 and NaN can
        return require("pandas", "sklearn").Series(values, dtype=dtype)


def check_frame(frame: Any) -> None:
    """Raise an error unless this is a frame of numbers, text, booleans or categories with named columns."""
    if not isinstance(frame, require("pandas", "sklearn").DataFrame) or frame.empty:
        raise wrong("frame", "be a DataFrame with at least one row and column", type(frame).__name__)
    if not frame.columns.is_unique or not all(isinstance(column, str) for column in frame.columns):
        raise wrong("frame", "have columns with names, each once", list(frame.columns))
    times = frame.select_dtypes(_TIME_DTYPES).columns
    if len(times):
        raise wrong("frame", "hold numbers, text, booleans or categories", f"times in {times[0]!r}")


def _categories_of(column: Any) -> tuple[Any, ...]:
    """Return the categories of a column: pandas' own in their order, including those that no row has."""
    categories = column.astype("category").cat.categories.tolist()
    if column.isna().any():
        categories.append(np.nan)
    return tuple(categories)


def _codes(column: Any, name: str, categories: Sequence[Any]) -> np.ndarray:
    """Return the place of each value of a column in the list of categories."""
    index = require("pandas", "sklearn").Index(categories, dtype=object)
    codes: np.ndarray = index.get_indexer(column.astype(object).where(column.notna(), np.nan))
    is_unknown = codes < 0
    if is_unknown.any():
        row = int(is_unknown.argmax())
        then = f"Known categories are {listed(categories, 6)}."
        raise wrong(f"column {name!r}", "hold known categories", f"{column.iloc[row]!r} in row {row}", then)
    return codes


def _decoded(numbers: np.ndarray, column: str, categories: Sequence[Any]) -> Any:
    """Return the category that each number stands for."""
    is_missing = np.isnan(numbers)
    is_category = (numbers == np.round(numbers)) & (numbers >= 0) & (numbers < len(categories)) | is_missing
    if not is_category.all():
        must = f"hold the numbers 0 … {len(categories) - 1} of its categories"
        then = "Use an absence that keeps to categories, such as median or marginal."
        raise wrong(f"column {column!r}", must, f"{numbers[~is_category][0]:g}", then)
    known = require("pandas", "sklearn").Index([*categories, np.nan], dtype=object)
    return known.take(np.where(is_missing, len(categories), numbers).astype(np.int64))
