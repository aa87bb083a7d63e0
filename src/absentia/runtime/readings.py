"""How outputs are read: as probabilities, logits or margins."""

from __future__ import annotations

from contextlib import suppress
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

# The last operations of models that return probabilities, by the names of their gradients; and operations after them
# that may leave them probabilities, such as the mean of an ensemble.
_PROBABILITY_ENDS = {"Sigmoid", "Softmax", "SafeSoftmax", "LogSigmoid", "LogSoftmax"}

_ENDS_AFTER_THEM = {
    "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Select", "Slice", "Clamp", "Alias", "Clone", "T",
    "ToCopy", "Index", "Gather", "Stack", "Cat", "Mean", "Add", "Sub", "Rsub", "Mul", "Div", "Sum", "Max", "Amax",
    "Min", "Amin", "Exp",
}  # fmt: skip

# Margins of boosters are compared with probabilities on this many rows. Beyond these bounds probabilities in single
# precision say little of the log-odds; within them they tell log-odds by this much or better.
_ROWS_COMPARED = 256

_LEAST_COMPARED = 1e-3

_MOST_LOG_ODDS_APART = 1e-3

_MARGINS_DIFFER = "margins differ from predict_proba: probabilities are read"


def returns_probabilities(model: Model, x: Rows, output: Tensor, limit: TimeLimit | None = None) -> bool:
    """Return whether outputs are probabilities: by the last operations of the model, or, of one column, by values."""
    known = isinstance(model, NumpyModel) and (model.probabilities is not None or model.regression)
    if known or not bool(((output >= 0) & (output <= 1)).all()):
        return False
    rows, steps, ends = x[[0, -1]].clone(), list[Any](), set[str]()
    if limit is not None:
        limit.check()
    with suppress(RuntimeError), evaluation_mode(model, gradient=True), torch.enable_grad():  # some refuse a gradient
        steps = [read_output(model(rows.requires_grad_() if rows.is_floating_point() else rows))[0].grad_fn]
    for step in filter(None, steps):  # which grow
        name = step.name().partition("Backward")[0]
        if name in _ENDS_AFTER_THEM:
            steps += [before for before, _ in step.next_functions if before not in steps]
        else:
            ends.add(name)
    if ends and "CompiledFunction" not in ends:
        return ends <= _PROBABILITY_ENDS
    if output.ndim > 1 and output.shape[1] > 1:
        return False
    return bool(((run_rows(model, x, limit) - 0.5).abs() <= 0.5).all())


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
