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
from absentia.runtime.batches import run_rows, try_rows
from absentia.runtime.limits import TimeLimit
from absentia.runtime.modes import evaluation_mode

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

# Margins of boosters are compared with probabilities on this many rows.
_ROWS_COMPARED = 256

# Log-odds are compared between this probability and 1 less it: beyond, single precision is too coarse.
_LEAST_COMPARED = 1e-3

# Log-odds by margins and by probabilities agree if they differ by no more than this.
_MOST_LOG_ODDS_APART = 1e-3

# The note for the record of a booster that is read by probabilities.
_MARGINS_DIFFER = "margins differ from predict_proba: probabilities are read"


def returns_probabilities(model: Model, x: Rows, output: Tensor, limit: TimeLimit | None = None) -> bool:
    """Return whether outputs are probabilities: by the last operations of the model, or, of one column, by values."""
    is_known = isinstance(model, NumpyModel) and (model.probabilities is not None or model.regression)
    if is_known or not bool(((output >= 0) & (output <= 1)).all()):
        return False
    if limit is not None:
        limit.check()
    operations = _last_operations(_gradient_of_output(model, x[[0, -1]].clone()))
    if operations and "CompiledFunction" not in operations:
        return operations <= _PROBABILITY_ENDS
    has_several_columns = output.ndim > 1 and output.shape[1] > 1
    if has_several_columns:
        return False
    distances = (run_rows(model, x, limit) - 0.5).abs()
    return bool((distances <= 0.5).all())


def _gradient_of_output(model: Model, rows: Rows) -> Any:
    """Return torch's record of the operation that made the output; None for a model without gradients."""
    if rows.is_floating_point():
        rows.requires_grad_()
    try:
        with evaluation_mode(model, gradient=True), torch.enable_grad():
            output, _key = read_output(model(rows))
            return output.grad_fn
    except RuntimeError:  # such as numpy's refusal of a tensor that needs a gradient: the values decide then
        return None


def _last_operations(gradient: Any) -> set[str]:
    """Return the names of the last operations, before those that may leave probabilities as they are."""
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


def confirm_margins(model: Model, x: Rows, limit: TimeLimit | None = None) -> Model:
    """Return a model whose margins agree with its probabilities on the first rows; else read it by probabilities.

    Margins disagree if a subclass predicts something else than its booster, or if the factor of its loss is unknown.
    """
    if not isinstance(model, NumpyModel) or model.fallback is None:
        return model
    limit = limit or TimeLimit()
    by_margins = try_rows(model, x[:_ROWS_COMPARED].clone())[0]
    limit.check()
    by_probabilities = try_rows(model.fallback, x[:_ROWS_COMPARED].clone())[0]
    limit.check()
    if by_margins.shape == by_probabilities.shape:
        apart = (_compared_log_odds(by_margins) - _compared_log_odds(by_probabilities)).abs()
        if bool((apart <= _MOST_LOG_ODDS_APART).all()):
            return model
    return replace(model.fallback, note=_MARGINS_DIFFER)


def _compared_log_odds(output: Outputs) -> Tensor:
    """Return the log-odds of all classes, bounded to where probabilities in single precision tell them."""
    logits = output.double()
    several = logits.ndim == 2 and logits.shape[1] > 1
    probabilities = logits.softmax(1) if several else logits.sigmoid()
    return probabilities.clamp(_LEAST_COMPARED, 1 - _LEAST_COMPARED).logit()
