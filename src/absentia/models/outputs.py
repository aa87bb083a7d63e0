"""Finding the tensor in a model's output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from absentia.errors import wrong
from absentia.models.model import Outputs

# The sum of probabilities may differ from 1 by this much.
_TOLERANCE = 1e-4


def read_output(output: Any) -> tuple[Any, str | int | None]:
    """Find the tensor in a model's output: the output itself, its logits, or the first item of a tuple.

    The second value is the key of the tensor in the output, or None if the output is the tensor itself.
    """
    if isinstance(output, Tensor):
        return output, None
    if isinstance(output, Mapping):
        tensors = {key: value for key, value in output.items() if isinstance(value, Tensor)}
        if "logits" not in tensors and len(tensors) != 1:
            then = "Pass lambda rows: model(rows)[key] for the one to explain."
            raise wrong("model", "return one tensor, or a dict with one or with 'logits'", f"{list(output)}", then)
        key = "logits" if "logits" in tensors else next(iter(tensors))
        return tensors[key], key
    if isinstance(getattr(output, "logits", None), Tensor):
        return output.logits, "logits"
    if isinstance(output, tuple | list) and len(output) and isinstance(output[0], Tensor):
        return output[0], 0
    return output, None


def check_output(output: object, rows: int) -> None:
    """Raise an error for an output that is not a floating-point tensor with one row for each input row."""
    if not isinstance(output, Tensor):
        then = "Wrap a numpy model with from_numpy(…), or return a tensor."
        raise wrong("model", "return a tensor", type(output).__name__, then)
    if output.ndim == 0 or len(output) != rows:
        raise wrong("model", f"return one row for each of the {rows} input rows", f"shape {tuple(output.shape)}")
    if not output.is_floating_point():
        then = "Return scores or logits rather than the predicted class."
        raise wrong("model", "return floating-point numbers", f"{output.dtype}", then)


def are_probabilities(output: Outputs) -> bool:
    """Return whether outputs are rows of probabilities that add up to 1."""
    has_several_columns = output.ndim == 2 and output.shape[1] > 1
    if not has_several_columns or not bool((output >= 0).all()):
        return False
    return torch.allclose(output.sum(1), torch.ones_like(output[:, 0]), atol=_TOLERANCE)
