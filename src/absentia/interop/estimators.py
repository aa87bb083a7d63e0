"""Estimators and pipelines of scikit-learn as models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from absentia.errors import wrong
from absentia.inference import NumpyModel
from absentia.interop.encoded_table import EncodedTable
from absentia.optional import require


def from_estimator(estimator: Any, table: EncodedTable | None = None, *, probabilities: bool = True) -> NumpyModel:
    """Let a fitted estimator or pipeline be the model: its log-probabilities, its scores, or its prediction.

    A classifier gives the logarithms of ``predict_proba``, which are the logits that readouts expect, or, with
    ``probabilities=False``, the probabilities themselves, to be read by `Output`: for those that give a class the
    probability 0. One without probabilities gives its ``decision_function``, a regressor its ``predict``.

    Rows have the columns of the fit, in that order; an estimator that was fitted with names gets them again. With
    ``table`` rows are the table's numbers, and the estimator gets the raw DataFrame, categories and all, with its
    columns in the order of the fit.

    >>> import torch
    >>> from sklearn.linear_model import LogisticRegression
    >>> estimator = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model = from_estimator(estimator)
    >>> torch.allclose(model(torch.tensor([[1.5]])).exp(), torch.tensor([[0.5, 0.5]]).double(), atol=1e-4)
    True
    """
    predict, gives_probabilities = _method(estimator)
    rows = _Rows(predict, table, _fitted_names(estimator), getattr(estimator, "n_features_in_", None))
    if table is not None and rows.names is not None:
        missing = [name for name in rows.names if name not in table.columns]
        if missing:
            must = f"have the columns of the fit, {', '.join(rows.names)}"
            raise wrong("table", must, f"none named {missing[0]!r}")
    return NumpyModel(rows, probabilities=gives_probabilities and probabilities)


def _method(estimator: Any) -> tuple[Callable[[Any], Any], bool]:
    """Choose the method that says most, and tell whether it gives probabilities."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba, True
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function, False
    if hasattr(estimator, "predict") and not hasattr(estimator, "classes_"):
        return estimator.predict, False
    got = "one that only predicts classes" if hasattr(estimator, "predict") else type(estimator).__name__
    raise wrong("estimator", "have predict_proba, decision_function, or be a regressor with predict", got)


def _fitted_names(estimator: Any) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


@dataclass(frozen=True)
class _Rows:
    """Hands rows of numbers to an estimator in the form that it was fitted with."""

    predict: Callable[[Any], Any]
    table: EncodedTable | None
    names: tuple[str, ...] | None
    features: int | None

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        answer = self.predict(self._frame(rows))
        if isinstance(answer, list):
            raise wrong("estimator", "have one output", f"{len(answer)} outputs", "Explain one estimator for each.")
        return np.asarray(answer)

    def _frame(self, rows: np.ndarray) -> Any:
        if self.table is not None:
            frame = self.table.decode(rows)
            return frame if self.names is None else frame[list(self.names)]
        if self.features is not None and rows.shape[1:] != (self.features,):
            raise wrong("x", f"have the {self.features} columns of the fit", f"shape {rows.shape[1:]}")
        if self.names is None:
            return rows
        return require("pandas", "sklearn").DataFrame(rows, columns=list(self.names))
