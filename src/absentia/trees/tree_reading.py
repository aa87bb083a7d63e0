"""An ensemble of trees as read from a fitted model, and the check that both predict the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from absentia.trees.ensemble import TreeEnsemble
from absentia.trees.table_numbers import table_numbers

# Sums over leaves may differ from the library's by this many units of single precision, in which XGBoost sums.
_MOST_UNITS = 32


class Link(Enum):
    """What the outputs of a model are as a function of the raw outputs of its trees."""

    # The raw outputs are the predictions of a regressor, or the scores of a ranking.
    IDENTITY = "identity"
    # The raw outputs are the margins of a classifier, before a factor that depends on the loss: a single one for two
    # classes, otherwise one for each class.
    LOG_ODDS_OR_LOGITS = "log-odds or logits"
    # The raw outputs are margins of classes that are neither log-odds nor logits.
    SCORES = "scores"
    # The raw outputs are the probabilities of the classes.
    PROBABILITIES = "probabilities"
    # The raw output is the mean depth in an isolation forest; its scores are a decreasing function of the depth.
    MEAN_DEPTH = "mean depth"
    # The raw outputs are logarithms of the predictions of a regressor, such as counts.
    LOG = "logarithm"
    # The outputs are another function of the raw outputs.
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class TreeReading:
    """The trees of a fitted model."""

    ensemble: TreeEnsemble
    columns: tuple[str, ...]  # the names of the columns; empty if the model has none
    link: Link
    ask_library: Callable[[Any], Any]  # rows in the form the model takes → the library's own raw outputs
    rows_of: Callable[[Any], np.ndarray] = table_numbers  # rows in the form the model takes → numbers for the trees

    def raw_prediction(self, data: Any) -> np.ndarray:
        """Return the library's own raw outputs, rows × outputs, of rows in the form that the model takes."""
        raw = np.asarray(self.ask_library(data), np.float64)
        return raw.reshape(len(raw), -1)


def verify(reading: TreeReading, rows: np.ndarray, data: Any = None) -> str | None:
    """Describe how the predictions of the trees differ from the library's; None if they agree up to rounding.

    ``data`` holds the same rows in the form that the model takes, if that is not an array of numbers.
    """
    own = reading.ensemble.predict(rows)
    library = reading.raw_prediction(rows if data is None else data)
    if own.shape != library.shape:
        return f"The trees give outputs of shape {own.shape}, and the model {library.shape}."
    tolerance = _MOST_UNITS * np.finfo(np.float32).eps * reading.ensemble.largest_sums()
    differs = ~(np.abs(own - library) <= tolerance)
    if not differs.any():
        return None
    row, output = np.argwhere(differs)[0]
    return (
        f"The trees and the model disagree on {differs.any(1).sum()} of {len(rows)} rows: "
        f"{own[row, output]:.8g} instead of {library[row, output]:.8g} for row {row}."
    )
