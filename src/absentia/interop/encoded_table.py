"""Tables with categories as rows of numbers, one column for each raw column, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.errors import wrong
from absentia.optional import require
from absentia.players import Players

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """The rows of a DataFrame as numbers: categories by their place in a list, all else as it is.

    Players are raw columns, so that a category is one player whatever the model's pipeline makes of it. Columns of
    text, booleans and pandas' categories are coded; a missing category is a category too.

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
    categories: dict[str, tuple[Any, ...]]  # of the coded columns
    dtypes: dict[str, Any]  # which these columns have in a frame

    def __repr__(self) -> str:
        coded = ", ".join(f"{column} ({len(values)})" for column, values in self.categories.items())
        return f"EncodedTable({len(self.rows)} rows, {len(self.columns)} columns; categories: {coded or 'none'})"

    @classmethod
    def of(cls, frame: DataFrame) -> EncodedTable:
        """Code a frame: give the one with all categories that will ever be asked for, such as the training data."""
        pandas = require("pandas", "sklearn")
        if not isinstance(frame, pandas.DataFrame) or frame.empty:
            raise wrong("frame", "be a DataFrame with at least one row and column", type(frame).__name__)
        if not frame.columns.is_unique or not all(isinstance(column, str) for column in frame.columns):
            raise wrong("frame", "have columns with names, each once", list(frame.columns))
        coded = [column for column in frame.columns if _is_category(frame[column])]
        categories = {column: _categories(frame[column]) for column in coded}
        dtypes = {column: frame[column].dtype for column in coded}
        rows = _encode(frame, tuple(frame.columns), categories)
        return cls(rows, tuple(frame.columns), categories, dtypes)

    @property
    def players(self) -> Players:
        """Every raw column as a player."""
        return Players.features(self.columns)

    @property
    def categorical(self) -> list[int]:
        """The numbers of the coded columns, as `Baseline.median` and `learn_baseline` take them."""
        return [number for number, column in enumerate(self.columns) if column in self.categories]

    def encode(self, frame: DataFrame) -> Float[Tensor, "rows columns"]:
        """Code the rows of another frame in the same way; its columns may come in any order."""
        missing = [column for column in self.columns if column not in frame.columns]
        if missing:
            raise wrong("frame", f"have the columns {', '.join(self.columns)}", f"none named {missing[0]!r}")
        return _encode(frame, self.columns, self.categories)

    def decode(self, rows: Float[Tensor, "rows columns"] | np.ndarray) -> DataFrame:
        """Make a frame of coded rows; refuse values that are the code of no category."""
        pandas = require("pandas", "sklearn")
        array = torch.as_tensor(rows).detach().cpu().double().numpy()
        columns = {}
        for number, column in enumerate(self.columns):
            if column in self.categories:
                values = _decode(array[:, number], column, self.categories[column])
                columns[column] = pandas.Series(values, dtype=self.dtypes[column])
            else:
                columns[column] = pandas.Series(array[:, number])
        return pandas.DataFrame(columns)


def _is_category(column: Any) -> bool:
    types = require("pandas", "sklearn").api.types
    if types.is_bool_dtype(column) or not types.is_numeric_dtype(column):
        if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
            raise wrong("frame", "hold numbers, text, booleans or categories", f"times in {column.name!r}")
        return True
    return False


def _categories(column: Any) -> tuple[Any, ...]:
    pandas = require("pandas", "sklearn")
    # Those of pandas' own categorical columns keep their order, and those that no row has.
    known = column.cat.categories if hasattr(column, "cat") else pandas.Categorical(column).categories
    return (*known.tolist(), *([np.nan] if column.isna().any() else []))


def _encode(frame: Any, columns: tuple[str, ...], categories: dict[str, tuple[Any, ...]]) -> Tensor:
    pandas = require("pandas", "sklearn")
    coded = []
    for column in columns:
        if column not in categories:
            coded.append(torch.from_numpy(frame[column].to_numpy(dtype=np.float64, na_value=np.nan).copy()))
            continue
        known = categories[column]
        codes = pandas.Index(known, dtype=object).get_indexer(
            frame[column].astype(object).where(frame[column].notna(), np.nan)
        )
        if (codes < 0).any():
            unknown = frame[column].iloc[int((codes < 0).argmax())]
            raise wrong(f"column {column!r}", "hold known categories", repr(unknown), f"Known are {_shorten(known)}.")
        coded.append(torch.from_numpy(codes.astype(np.float64)))
    return torch.stack(coded, dim=1)


def _decode(codes: np.ndarray, column: str, categories: tuple[Any, ...]) -> np.ndarray:
    bad = (codes != np.round(codes)) | (codes < 0) | (codes >= len(categories))
    if bad.any():
        then = (
            "Use an absence that keeps to categories, such as Marginal(table.rows) or "
            "Baseline.median(table.rows, categorical=table.categorical)."
        )
        must = f"hold the numbers 0 … {len(categories) - 1} of its categories"
        raise wrong(f"column {column!r}", must, f"{codes[bad][0]:g}", then)
    values = np.empty(len(categories), dtype=object)
    values[:] = categories
    decoded: np.ndarray = values[codes.astype(np.int64)]
    return decoded


def _shorten(known: tuple[Any, ...], most: int = 6) -> str:
    return ", ".join(map(str, known[:most])) + (", …" if len(known) > most else "")
