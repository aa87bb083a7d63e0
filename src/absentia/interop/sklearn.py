"""scikit-learn: estimators and pipelines as models, and tables with categories as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data import as_tensor
from absentia.errors import DataFrame, require, wrong
from absentia.models.arrays import NumpyModel
from absentia.models.estimators import wrap_estimator
from absentia.players import Players


def from_estimator(estimator: Any, table: EncodedTable | None = None, *, probabilities: bool = True) -> NumpyModel:
    """Make a model of a fitted estimator or pipeline.

    Its outputs are the logarithms of ``predict_proba``, or else ``decision_function``, or a regressor's ``predict``.
    Boosters of XGBoost, LightGBM, CatBoost and scikit-learn give logits instead, their margins, which do not saturate
    as probabilities do: for two classes −z/2 and z/2, where z is the log-odds of the second one.
    `explain`, `audit` and `MaskedModel` take estimators as they are; use this function for its options.

    Parameters
    ----------
    estimator : object
        A fitted estimator. Rows must have the columns of its fit, in that order.
    table : EncodedTable, optional
        The table that rows are numbers of; the estimator then gets the raw DataFrame, with categories.
    probabilities : bool, default True
        Whether to take logarithms, or the margins of a booster; if not, outputs are the probabilities themselves.
        Shares of votes are bounded first: 0 of N votes is read as 1 of N + 2.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> estimator = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model = from_estimator(estimator)
    >>> torch.allclose(model(torch.tensor([[1.5]])).exp(), torch.tensor([[0.5, 0.5]]).double(), atol=1e-4)
    True
    """
    if table is None:
        return wrap_estimator(estimator, probabilities=probabilities)
    fitted = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    missing = [name for name in fitted if name not in table.columns]
    if missing:
        raise wrong("table", f"have the columns of the fit, {', '.join(fitted)}", f"none named {missing[0]!r}")
    model = wrap_estimator(estimator, table.decode, probabilities=probabilities)
    return replace(model, categorical=tuple(table.categorical))


def listed(names: Iterable[Any], most: int = 12) -> str:
    """List the first of some names."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """The rows of a DataFrame as numbers: categories by their place in a list, numbers as they are.

    Made by `of`. Players are the raw columns, so a category is one player whatever a pipeline makes of it. Columns of
    text, booleans and pandas' categories are encoded. A missing category is a category too.

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
        """Encode a frame that holds all categories that will be needed, such as the training data."""
        if not isinstance(frame, require("pandas", "sklearn").DataFrame) or frame.empty:
            raise wrong("frame", "be a DataFrame with at least one row and column", type(frame).__name__)
        if not frame.columns.is_unique or not all(isinstance(column, str) for column in frame.columns):
            raise wrong("frame", "have columns with names, each once", list(frame.columns))
        times = frame.select_dtypes(["datetime", "datetimetz", "timedelta"]).columns
        if len(times):
            raise wrong("frame", "hold numbers, text, booleans or categories", f"times in {times[0]!r}")
        dtypes = frame.select_dtypes(exclude="number").dtypes.to_dict()
        categories: dict[str, tuple[Any, ...]] = {}
        for column in dtypes:  # pandas' own categories keep their order, and include those that no row has
            known = frame[column].astype("category").cat.categories.tolist()
            categories[column] = (*known, *([np.nan] if frame[column].isna().any() else []))
        empty = cls(torch.empty(0, frame.shape[1]), tuple(frame.columns), categories, dtypes)
        return replace(empty, rows=empty.encode(frame))

    @property
    def players(self) -> Players:
        """Each raw column as a player, who knows its categories."""
        return Players.features(self.columns, self.categories)

    @property
    def categorical(self) -> list[int]:
        """The numbers of the encoded columns, as `Baseline.median` and `learn_baseline` take them."""
        return [number for number, column in enumerate(self.columns) if column in self.categories]

    def numbers(self, frame: DataFrame) -> DataFrame:
        """Encode another frame, and keep the names of its rows and columns, which explanations then have too.

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
        missing = [one for one in self.columns if not hasattr(frame, "itertuples") or one not in frame.columns]
        if missing:
            raise wrong("frame", f"have the columns {', '.join(self.columns)}", f"none named {missing[0]!r}")
        rows = np.empty((len(frame), len(self.columns)))
        plain = [number for number, name in enumerate(self.columns) if name not in self.categories]
        rows[:, plain] = frame[[self.columns[one] for one in plain]].to_numpy(dtype=np.float64, na_value=np.nan)
        for name, known in self.categories.items():
            column, index = frame[name], require("pandas", "sklearn").Index(known, dtype=object)
            codes = index.get_indexer(column.astype(object).where(column.notna(), np.nan))
            if (codes < 0).any():
                row = int((codes < 0).argmax())
                then = f"Known are {listed(known, 6)}."
                raise wrong(f"column {name!r}", "hold known categories", f"{column.iloc[row]!r} in row {row}", then)
            rows[:, self.columns.index(name)] = codes
        return torch.from_numpy(rows)

    def decode(self, rows: Float[Tensor, "rows columns"] | np.ndarray) -> DataFrame:
        """Convert rows of numbers to a frame; raise an error for a number that is no category's."""
        pandas = require("pandas", "sklearn")
        array = as_tensor("rows", rows).detach().cpu().double().numpy()
        if array.shape[1:] != (len(self.columns),):
            raise wrong("rows", f"have {len(self.columns)} columns", f"shape {array.shape}")
        columns = {}
        for column, values in zip(self.columns, array.T, strict=True):
            if known := self.categories.get(column):
                bad = (values != np.round(values)) | (values < 0) | (values >= len(known))
                if bad.any():
                    then = "Use Marginal(table.rows) or Baseline.median(table.rows, categorical=table.categorical)."
                    must = f"hold the numbers 0 … {len(known) - 1} of its categories"
                    raise wrong(f"column {column!r}", must, f"{values[bad][0]:g}", then)
                values = pandas.Index(known, dtype=object).take(values.astype(np.int64))
            columns[column] = pandas.Series(values, dtype=self.dtypes.get(column))
        return pandas.DataFrame(columns)
