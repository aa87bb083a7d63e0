"""What a user brought as a model, made one: estimators wrapped, callables tried, probabilities made logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from absentia.errors import AbsentiaError, wrong
from absentia.inference import Model, evaluation_mode, from_numpy, placement
from absentia.interop import EncodedTable, from_estimator
from absentia.loading.models import LoadedModel
from absentia.loading.onnx_files import OnnxModel
from absentia.loading.python_objects import describe


class LogProbabilities(nn.Module):
    """A network that returns probabilities, as one that returns their logarithms, which are logits.

    >>> LogProbabilities(nn.Softmax(1))(torch.tensor([[0.0, 0.0]]))
    tensor([[-0.6931, -0.6931]])
    """

    def __init__(self, network: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.network = network

    def forward(self, rows: Tensor) -> Tensor:
        """Run the network; a single probability speaks for class 1."""
        output = self.network(rows)
        return torch.logit(output) if output.ndim == 1 or output.shape[1] == 1 else output.log()


@dataclass(frozen=True, eq=False)
class NearestCategories:
    """Takes numbers that are the code of no category for the nearest one's: white noise becomes categories.

    >>> import pandas as pd
    >>> table = EncodedTable.of(pd.DataFrame({"city": ["Bern", "Oslo"], "age": [30.0, 41.0]}))
    >>> NearestCategories(lambda rows: rows, table)(np.array([[0.8, 35.5], [7.0, 35.5]]))
    array([[ 1. , 35.5],
           [ 1. , 35.5]])
    """

    predict: Callable[[np.ndarray], np.ndarray]
    table: EncodedTable

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Round the codes, and predict."""
        rows = rows.copy()
        for number in self.table.categorical:
            last = len(self.table.categories[self.table.columns[number]]) - 1
            rows[:, number] = rows[:, number].round().clip(0, last)
        return self.predict(rows)


def as_model(
    loaded: LoadedModel,
    x: Tensor,
    table: EncodedTable | None = None,
    *,
    probabilities: bool = False,
    nearest: bool = False,
) -> Model:
    """Make a model of what was loaded, and try it on two rows of the samples.

    ``table`` is the coding of tables with categories, for estimators. ``probabilities`` says that the model returns
    these rather than logits, which an estimator's method tells by its name. ``nearest`` takes a number that is the
    code of no category for the nearest, where it would be refused.

    >>> import numpy as np
    >>> model = as_model(LoadedModel(lambda rows: np.exp(rows[:, 0])), torch.zeros(4, 2))
    >>> model(torch.zeros(4, 2))
    tensor([1., 1., 1., 1.], dtype=torch.float64)
    """
    thing = loaded.thing
    model: Model
    if loaded.is_estimator:
        estimator = from_estimator(thing, table)
        model = estimator
        if nearest and table is not None:
            model = replace(estimator, predict=NearestCategories(estimator.predict, table))
    elif isinstance(thing, OnnxModel) or (not isinstance(thing, nn.Module) and not _takes_tensors(thing, x)):
        model = from_numpy(thing, probabilities=probabilities)
    else:
        model = LogProbabilities(thing) if probabilities else thing
    output = _try(model, x)
    if not loaded.is_estimator and not probabilities:
        _check_logits(output)
    return model


def takes_tokens(model: Model, x: Tensor) -> bool:
    """Find out whether a model takes whole numbers only, which then are numbers of tokens.

    >>> takes_tokens(nn.Embedding(5, 2), torch.tensor([[0, 4]])), takes_tokens(nn.Flatten(), torch.tensor([[0, 4]]))
    (True, False)
    """
    if x.is_floating_point():
        return False
    try:
        with evaluation_mode(model):
            model(x[[0, -1]].to(*placement(model, x)))
    except Exception:  # it has run on these rows before, as whole numbers
        return True
    return False


def _takes_tensors(thing: Callable[[Any], Any], x: Tensor) -> bool:
    """Find out whether a callable is of torch: numpy refuses a tensor that a gradient is asked of."""
    rows = x[[0, -1]]
    if rows.is_floating_point():
        rows = rows.clone().requires_grad_().clone()  # no leaf, which may not be changed in place
    try:
        return isinstance(thing(rows), Tensor)
    except Exception:  # whatever it is: the callable is tried with arrays next, and what that says is told
        return False


def _try(model: Model, x: Tensor) -> Tensor:
    """Run two rows, so that a model that does not fit the samples is found out now, and in one sentence."""
    device, dtype = placement(model, x)
    integers = not x.is_floating_point()
    # Three rows too: an exported program may take no other number than it was exported with.
    for rows in (x[[0, -1]], x[[0, -1, 0]]):
        rows = rows.to(device, dtype)
        try:
            output = _run(model, rows, integers)
        except AbsentiaError:
            raise
        except Exception as error:
            got = describe(error)
            raise wrong("model", f"run on rows of the data, of shape {tuple(rows.shape)}", got, _hint(got)) from error
    return output


def _run(model: Model, rows: Tensor, integers: bool) -> Tensor:
    with evaluation_mode(model):
        try:
            return model(rows)
        except Exception:
            if not integers:
                raise
            return model(rows.long())  # numbers of tokens


def _hint(message: str) -> str:
    if "Guard failed" in message:
        return "Export the program with dynamic_shapes that leave the number of rows open."
    if "shapes cannot be multiplied" in message:
        return "If columns are no inputs of the model, name them by --target and --drop."
    return ""


def _check_logits(output: object) -> None:
    """Refuse rows of probabilities that the user did not speak of."""
    if not isinstance(output, Tensor | np.ndarray) or output.ndim != 2 or output.shape[1] < 2:
        return
    values = torch.as_tensor(output).double()
    if bool((values >= 0).all()) and torch.allclose(values.sum(1), torch.ones(()).to(values), atol=1e-4):
        then = "Say --probabilities, and they are taken as such."
        raise wrong("model", "return logits", "rows of probabilities that add up to 1", then)
