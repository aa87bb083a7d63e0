"""The operations that a row costs."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from absentia.data import Rows
from absentia.models.arrays import NumpyModel
from absentia.models.layers import layers_of, run_watched
from absentia.models.model import Model
from absentia.runtime.modes import evaluation_mode

# What a row costs beside the operations of its layers, in the same unit: fixed, and for each entry.
_PER_ROW, _PER_ENTRY = 4_000.0, 50.0

# The assumed operations of a row where they cannot be counted: about those of 100 trees.
_UNKNOWN = 100_000.0


def operations_per_row(model: Model, rows: Rows) -> float:
    """Count the floating-point operations of one row: the same on every machine, unlike a time."""
    entries, layers, total = rows[0].numel(), layers_of(model), 0.0
    if isinstance(model, NumpyModel):
        return _UNKNOWN + _PER_ENTRY * entries

    def count(part: nn.Module, _inputs: object, output: Any) -> None:
        """Count two operations for each weight of a layer and each place of its output."""
        nonlocal total
        out = output[0] if isinstance(output, tuple) else output
        for weight in part.parameters(recurse=False):
            if weight.ndim > 1 and not isinstance(part, nn.Embedding) and isinstance(out, Tensor):
                total += 2 * weight.numel() * out.numel() / out.shape[1 if weight.ndim > 2 else -1]

    with evaluation_mode(model):
        if layers:
            run_watched(model, rows.clone(), layers, count)
        else:
            from torch.utils.flop_counter import FlopCounterMode  # imported here, because that takes some seconds

            with FlopCounterMode(display=False) as counter:
                model(rows.clone())
            total = counter.get_total_flops()
    return total / len(rows) + _PER_ROW + _PER_ENTRY * entries


def affordable_rows(model: Model, x: Rows, operations: float) -> int:
    """Return how many rows the model can evaluate with this many operations: a power of two, so that it is stable."""
    return int(2 ** math.floor(math.log2(max(1.0, operations / operations_per_row(model, x[:1])))))
