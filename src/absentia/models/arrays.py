"""Models on numpy arrays, as models on torch rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from absentia.arguments import checked
from absentia.data import Rows
from absentia.errors import wrong
from absentia.models.model import Outputs
from absentia.models.tree_source import TreeSource
from absentia.tables import EncodedTable

# How far rounding may push a probability below 0 or above 1.
_PROBABILITY_TOLERANCE = 1e-4


@dataclass(frozen=True)
class NumpyModel:
    """A callable on numpy arrays as a callable on torch rows, made by `from_numpy` or `wrap_estimator`."""

    predict: Callable[[np.ndarray], np.ndarray]
    probabilities: bool | None = None  # whether ``predict`` returns probabilities; None if not specified
    labels: tuple[Any, ...] = ()  # the classes in the order of the outputs, if the model knows them
    regression: bool = False  # whether outputs are plain numbers rather than logits
    least: float = 0.0  # a bound below the smallest positive probability the model can return; 0 if unknown
    columns: tuple[str, ...] = ()  # the column names of the fit, in order
    scores: bool = False  # whether outputs are class scores that are not log-odds, such as those of an SVM
    margins: bool = False  # whether outputs are the log-odds or logits of a booster, before its probabilities
    fallback: NumpyModel | None = None  # the same model read by its probabilities, to check the margins against
    note: str = ""  # how the model is read, for the record
    table: EncodedTable | None = field(default=None, compare=False)  # decodes rows, if they hold categories
    trees: TreeSource | None = field(default=None, compare=False)  # where the trees of an estimator can be read

    def __call__(self, rows: Rows, moved: bool = False) -> Outputs:
        """Predict and convert probabilities to logits; ``moved`` shifts every prediction by one rounding error."""
        answer = _as_floats(self.predict(rows.detach().cpu().numpy()), len(rows))
        return self.outputs(answer, moved).to(rows.device)

    def outputs(self, answer: np.ndarray, moved: bool = False) -> Outputs:
        """Return what the model returns where ``predict`` gives this answer."""
        if moved:
            answer = np.nextafter(answer, answer.dtype.type(0.5))
        output = torch.from_numpy(np.ascontiguousarray(answer))
        if not self.probabilities:
            return output
        _check_probabilities(output)
        # Near 0 and 1 a single step of nextafter would leave the log-odds almost unchanged.
        units = 4 if moved else 1
        from_zero, from_one = self._smallest_distances(answer.dtype)
        bounded = output.double().clamp(units * from_zero, 1 - units * from_one)
        return log_probabilities(bounded).to(output.dtype)

    def _smallest_distances(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """Return how close probabilities may come to 0 and to 1: the model's bound, or the limits of the dtype."""
        if self.least:
            return self.least, self.least
        limits = np.finfo(dtype)
        return float(limits.tiny), float(limits.epsneg)


def _as_floats(prediction: Any, rows: int) -> np.ndarray:
    """Return a prediction as a floating-point array with one entry for each row."""
    try:
        answer = np.asarray(prediction)
    except ValueError as error:
        if not isinstance(prediction, list):
            raise
        then = "Explain one output at a time, such as predict_proba(rows)[0]."
        got = f"a list of {len(prediction)} outputs of different shapes"
        raise wrong("model", "return one array", got, then) from error
    must = "return real numbers, none of them missing"
    if np.ma.is_masked(prediction):
        raise wrong("model", must, "a masked array")
    if answer.dtype.kind == "c":
        raise wrong("model", must, "complex numbers")
    if answer.ndim == 0 or len(answer) != rows:
        raise wrong("model", f"return one row for each of the {rows} input rows", f"shape {answer.shape}")
    if answer.dtype in (np.float32, np.float16):
        return answer
    return answer.astype(np.float64)


def _check_probabilities(output: Outputs) -> None:
    """Raise an error for numbers that lie clearly outside of [0, 1]."""
    too_low = output < -_PROBABILITY_TOLERANCE
    too_high = output > 1 + _PROBABILITY_TOLERANCE
    if bool((too_low | too_high).any()):
        got = f"numbers from {float(output.min()):g} to {float(output.max()):g}"
        raise wrong("model", "return probabilities from 0 to 1, as probabilities=True says", got)


@checked
def from_numpy(predict: Callable[[np.ndarray], np.ndarray], *, probabilities: bool | None = None) -> NumpyModel:
    """Make a model from any numpy callable, such as a service, a rule, or the ``predict_proba`` of an estimator.

    Parameters
    ----------
    predict : callable
        A function that takes an array of shape (rows, …) and returns one of shape (rows,) or (rows, outputs).
    probabilities : bool, optional
        Whether ``predict`` returns probabilities of shape (rows, classes), or (rows,) for class 1. Their logarithms
        are then the logits that the readouts expect. A probability of exactly 0 has no logarithm, so it is replaced
        by the smallest positive number of its dtype, 2e-308 for double. To explain the probabilities themselves, use
        ``probabilities=False`` and the readout `Output`.

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
    """Return the logarithms of class probabilities; for a single column, that of class 1, the log-odds."""
    if output.ndim == 1 or output.shape[1] == 1:
        return torch.logit(output)
    return output.log()
