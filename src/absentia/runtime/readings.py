"""How outputs are read: as probabilities, logits or margins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from absentia.data import Rows
from absentia.models.arrays import NumpyModel
from absentia.models.model import Model, Outputs
from absentia.models.outputs import read_output
from absentia.runtime.batches import BatchRunner, try_rows
from absentia.runtime.limits import TimeLimit
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.row_count import RowCount

# The last operations of models that return probabilities, by the names of their gradients.
_PROBABILITY_ENDS = {"Sigmoid", "Softmax", "SafeSoftmax", "LogSigmoid", "LogSoftmax"}

# Operations after them that may leave them probabilities, such as the mean of an ensemble.
_ENDS_AFTER_THEM = {
    "View",
    "UnsafeView",
    "ReshapeAlias",
    "Squeeze",
    "Unsqueeze",
    "Select",
    "Slice",
    "Clamp",
    "Alias",
    "Clone",
    "T",
    "ToCopy",
    "Index",
    "Gather",
    "Stack",
    "Cat",
    "Mean",
    "Add",
    "Sub",
    "Rsub",
    "Mul",
    "Div",
    "Sum",
    "Max",
    "Amax",
    "Min",
    "Amin",
    "Exp",
}

# The samples that every output to be judged includes: the first and the last.
_ROWS_OF_FIRST_OUTPUT = 2

# Margins of boosters are compared with probabilities on this many rows.
_ROWS_COMPARED = 256

# Log-odds are compared between this probability and 1 minus it. Beyond that, single precision is too coarse.
_LEAST_COMPARED = 1e-3

# Log-odds from margins and from probabilities agree if they differ by no more than this.
_MOST_LOG_ODDS_APART = 1e-3

# The note for the record of a booster that is read by probabilities.
_MARGINS_DIFFER = "margins differ from predict_proba: probabilities are read"


def returns_probabilities(runner: BatchRunner, x: Rows, output: Tensor) -> bool:
    """Return whether outputs are probabilities, judging by the last operations or the values of one column.

    ``output`` is that of the first and the last sample at least. The runner runs the model on samples.
    """
    model = runner.model
    is_known = isinstance(model, NumpyModel) and (model.probabilities is not None or model.regression)
    if is_known or not bool(((output >= 0) & (output <= 1)).all()):
        return False
    runner.limit.check()
    operations: set[str] = set()
    if not isinstance(model, NumpyModel):  # which has no gradient
        operations = _last_operations(_gradient_of_output(model, x[[0, -1]].clone(), runner.row_count))
    if operations and "CompiledFunction" not in operations:
        return operations <= _PROBABILITY_ENDS
    has_several_columns = output.ndim > 1 and output.shape[1] > 1
    if has_several_columns:
        return False
    if len(x) <= _ROWS_OF_FIRST_OUTPUT:
        return True
    with evaluation_mode(model):
        distances = (runner(x.clone()) - 0.5).abs()
    return bool((distances <= 0.5).all())


def _gradient_of_output(model: Model, rows: Rows, row_count: RowCount) -> Any:
    """Return torch's record of the operation that made the output; None for a model without gradients."""
    if rows.is_floating_point():
        rows.requires_grad_()
    row_count.add(len(rows))
    try:
        with evaluation_mode(model, gradient=True), torch.enable_grad():
            output, _key = read_output(model(rows))
            return output.grad_fn
    except RuntimeError:  # such as numpy's refusal of a tensor that needs a gradient: the values decide then
        return None


def _last_operations(gradient: Any) -> set[str]:
    """Return the names of the last operations, ignoring those that may leave probabilities unchanged."""
    names: set[str] = set()
    waiting = [] if gradient is None else [gradient]
    seen = set(waiting)
    while waiting:
        step = waiting.pop()
        name = step.name().partition("Backward")[0]
        if name not in _ENDS_AFTER_THEM:
            names.add(name)
            continue
        for previous, _ in step.next_functions:
            if previous is not None and previous not in seen:
                seen.add(previous)
                waiting.append(previous)
    return names


def confirm_margins(model: Model, x: Rows, row_count: RowCount, limit: TimeLimit | None = None) -> Model:
    """Return the model if its margins agree with its probabilities on the first rows, or else use its probabilities.

    Margins disagree if a subclass predicts something other than its booster, or if the factor of its loss is unknown.
    """
    if not isinstance(model, NumpyModel) or model.fallback is None:
        return model
    limit = limit or TimeLimit()
    by_margins = try_rows(model, x[:_ROWS_COMPARED].clone(), row_count)[0]
    limit.check()
    by_probabilities = try_rows(model.fallback, x[:_ROWS_COMPARED].clone(), row_count)[0]
    limit.check()
    if by_margins.shape == by_probabilities.shape:
        apart = (_compared_log_odds(by_margins) - _compared_log_odds(by_probabilities)).abs()
        if bool((apart <= _MOST_LOG_ODDS_APART).all()):
            return model
    return replace(model.fallback, note=_MARGINS_DIFFER)


def _compared_log_odds(output: Outputs) -> Tensor:
    """Return the log-odds of all classes, clipped to where probabilities in single precision are precise enough."""
    logits = output.double()
    several = logits.ndim == 2 and logits.shape[1] > 1
    probabilities = logits.softmax(1) if several else logits.sigmoid()
    return probabilities.clamp(_LEAST_COMPARED, 1 - _LEAST_COMPARED).logit()
