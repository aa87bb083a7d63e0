"""Models on numpy arrays, as models on torch rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from absentia.data import Rows
from absentia.errors import wrong
from absentia.models.model import Outputs

_ROUNDED = 1e-4  # by which a probability may lie beyond 0 and 1


@dataclass(frozen=True)
class NumpyModel:
    """A numpy callable as a torch one; made by `from_numpy` or `wrap_estimator`."""

    predict: Callable[[np.ndarray], np.ndarray]
    probabilities: bool | None = None
    labels: tuple[Any, ...] = ()  # the classes in the order of the outputs, where the model knows them
    regression: bool = False  # whether outputs are numbers that are no logits
    least: float = 0.0  # below the least positive probability that the model can return, where it is known
    columns: tuple[str, ...] = ()  # of the fit, in their order
    scores: bool = False  # whether outputs are scores of classes that are no log-odds, as those of an SVM
    margins: bool = False  # whether outputs are log-odds or logits that a booster computes before its probabilities
    fallback: NumpyModel | None = None  # the same model by its probabilities, to compare margins with
    note: str = ""  # on how the model is read, for the record
    categorical: tuple[int, ...] = ()  # columns of categories, where the model decodes the rows of a table

    def __call__(self, rows: Rows, moved: bool = False) -> Outputs:
        """Predict, ``moved`` by rounding errors if wanted; convert probabilities to their logarithms: logits."""
        given = self.predict(rows.detach().cpu().numpy())
        answer = np.asarray(given)
        if np.ma.is_masked(given) or answer.dtype.kind == "c":
            got = "a masked array" if np.ma.is_masked(given) else "complex numbers"
            raise wrong("model", "return real numbers, none of them missing", got)
        if answer.ndim == 0 or len(answer) != len(rows):
            raise wrong("model", f"return one row for each of the {len(rows)} input rows", f"shape {answer.shape}")
        answer = answer if answer.dtype in (np.float32, np.float16) else answer.astype(np.float64)
        kind, units = np.finfo(answer.dtype), 4 if moved else 1  # probabilities of 0 and 1 move by more than one
        answer = np.nextafter(answer, answer.dtype.type(0.5)) if moved else answer
        output = torch.from_numpy(np.ascontiguousarray(answer)).to(rows.device)
        if not self.probabilities:
            return output
        if bool((output < -_ROUNDED).any()) or bool((output > 1 + _ROUNDED).any()):
            got = f"numbers from {float(output.min()):g} to {float(output.max()):g}"
            raise wrong("model", "return probabilities from 0 to 1, as probabilities=True says", got)
        # Without a bound of its own, a model's probabilities are bounded by what their type can tell from 0 and 1.
        least, above = (self.least, self.least) if self.least else (float(kind.tiny), float(kind.epsneg))
        return log_probabilities(output.double().clamp(units * least, 1 - units * above)).to(output.dtype)


def from_numpy(predict: Callable[[np.ndarray], np.ndarray], *, probabilities: bool | None = None) -> NumpyModel:
    """Make a model of any numpy callable: a service, a rule, ``predict_proba`` of an estimator.

    Parameters
    ----------
    predict : callable
        Takes an array of shape (rows, …) and returns one of shape (rows,) or (rows, outputs).
    probabilities : bool, optional
        Whether ``predict`` returns probabilities, of shape (rows, classes), or (rows,) for class 1. Their logarithms
        are then the logits that the readouts expect. A probability of exactly 0 has no logarithm: it is replaced by
        the least number of its type, 2e-308 for double. Use ``probabilities=False`` and the readout `Output` to
        explain the probabilities themselves.

    Examples
    --------
    >>> model = from_numpy(lambda rows: rows.sum(1))
    >>> model(torch.ones(2, 3))
    tensor([3., 3.])
    """
    if not callable(predict):
        raise wrong("predict", "be a callable such as estimator.predict_proba", type(predict).__name__)
    return NumpyModel(predict, probabilities)


def log_probabilities(output: Outputs) -> Outputs:
    """Return the logarithms of several probabilities, or the log-odds of a single one, that of class 1."""
    return torch.logit(output) if output.ndim == 1 or output.shape[1] == 1 else output.log()
