"""The number of operations that a model takes for a row."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from absentia.data import Rows
from absentia.models.arrays import NumpyModel
from absentia.models.layers import layers_of, run_watched
from absentia.models.model import Model
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.row_count import RowCount

# The fixed cost of a row in addition to the operations of the layers, in the same unit.
_PER_ROW = 4_000.0

# The additional cost of each entry of a row.
_PER_ENTRY = 50.0

# The assumed operations of a row where they cannot be counted: about those of 100 trees.
_UNKNOWN = 100_000.0


def operations_per_row(model: Model, rows: Rows, row_count: RowCount) -> float:
    """Count the floating-point operations of one row: the same on every machine, unlike a time."""
    entries = rows[0].numel()
    if isinstance(model, NumpyModel):
        return _UNKNOWN + _PER_ENTRY * entries
    layers = layers_of(model)
    row_count.add(len(rows))
    with evaluation_mode(model):
        total = _operations_of_layers(model, rows, layers) if layers else _operations_of_calls(model, rows)
    return total / len(rows) + _PER_ROW + _PER_ENTRY * entries


def _operations_of_layers(model: Model, rows: Rows, layers: list[nn.Module]) -> float:
    """Count the operations of a model by the weights and outputs of its layers."""
    counts: list[float] = []
    run_watched(model, rows.clone(), layers, lambda *call: counts.append(_operations_of_layer(*call)))
    return sum(counts)


def _operations_of_layer(layer: nn.Module, _inputs: object, output: Any) -> float:
    """Count two operations for each weight of a layer and each position of its output."""
    if isinstance(output, tuple):
        output = output[0]
    if isinstance(layer, nn.Embedding) or not isinstance(output, Tensor):
        return 0.0
    operations = 0.0
    for weight in layer.parameters(recurse=False):
        if weight.ndim > 1:
            is_convolution = weight.ndim > 2
            channels = output.shape[1] if is_convolution else output.shape[-1]
            operations += 2 * weight.numel() * output.numel() / channels
    return operations


def _operations_of_calls(model: Model, rows: Rows) -> float:
    """Count the operations of the torch functions that a model without visible layers calls."""
    from torch.utils.flop_counter import FlopCounterMode  # imported here, because that takes some seconds

    with FlopCounterMode(display=False) as counter:
        model(rows.clone())
    return float(counter.get_total_flops())


def affordable_rows(model: Model, x: Rows, operations: float, row_count: RowCount) -> int:
    """Return how many rows the model can evaluate with this many operations, rounded to a stable power of two."""
    rows = max(1.0, operations / operations_per_row(model, x[:1], row_count))
    return int(2 ** math.floor(math.log2(rows)))
