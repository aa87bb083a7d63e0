"""Rows run in batches that fit into memory and time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from absentia.data import Rows
from absentia.errors import AbsentiaError, lacks_memory
from absentia.models.arrays import NumpyModel
from absentia.models.layers import layers_of, run_watched
from absentia.models.model import Model, Outputs
from absentia.models.outputs import check_output, read_output
from absentia.runtime.limits import TimeLimit
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.row_count import RowCount

# On a CPU the fastest batch is one whose activations stay in cache, far below what memory would hold.
CPU_MEMORY = 4 * 2**20

# A call of a numpy model has a fixed cost that only larger batches make up for.
NUMPY_MEMORY = 64 * 2**20

# On a GPU the largest layer may take the free memory divided by this.
_PARTS_OF_GPU_MEMORY = 8

# The assumed size of the activations, as a multiple of the input, where the layers of a model cannot be seen.
_ASSUMED_EXPANSION = 16


def try_rows(model: Model, rows: Rows, row_count: RowCount) -> tuple[Outputs, int, str | int | None]:
    """Run a few rows; return the output, the bytes per row of the largest layer, and where the output was found."""
    leaves = [part for part in layers_of(model) if not list(part.children())]
    sizes = [rows.nbytes if leaves else rows.nbytes * _ASSUMED_EXPANSION]

    def watch(_part: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        tensors = [value for value in (*inputs, output) if isinstance(value, Tensor)]
        sizes.append(sum(tensor.nbytes for tensor in tensors))

    row_count.add(len(rows))
    try:
        output, key = read_output(run_watched(model, rows, leaves, watch))
    except AbsentiaError:
        raise
    except Exception as error:
        got = f"{rows.dtype} samples of shape {tuple(rows.shape[1:])}"
        raise AbsentiaError(f"The model fails on {got}: {type(error).__name__}: {error}") from error
    check_output(output, len(rows))
    return output, math.ceil(max(sizes) / len(rows)), key


def rows_per_batch(model: Model, bytes_per_row: int, device: torch.device, memory: int | None) -> int:
    """Choose a batch size: a power of two that keeps the largest layer's input and output within ``memory`` bytes."""
    if memory is None:
        memory = _usual_memory(model, device)
    most_rows = max(1, memory // bytes_per_row)
    power = most_rows.bit_length() - 1
    return 2**power


def _usual_memory(model: Model, device: torch.device) -> int:
    """Return how many bytes the largest layer of a batch may take by default."""
    if device.type == "cuda":
        free_bytes, _total_bytes = torch.cuda.mem_get_info(device)
        return int(free_bytes) // _PARTS_OF_GPU_MEMORY
    if isinstance(model, NumpyModel):
        return NUMPY_MEMORY
    return CPU_MEMORY


@dataclass
class BatchRunner:
    """Run a model on rows in batches; halve the batch size for good whenever memory runs out.

    Before each batch the time limit is checked, which raises `OutOfTime` once it is reached.
    """

    model: Model
    batch: int
    limit: TimeLimit = field(default_factory=TimeLimit)
    adapt: bool = True  # whether the limit may make batches smaller
    row_count: RowCount = field(default_factory=RowCount)

    def __call__(self, rows: Rows) -> Outputs:
        """Run the model on all rows."""
        outputs: list[Tensor] = []
        done = 0
        while done < len(rows):
            size = self.limit.rows_of_a_batch(self.batch) if self.adapt else self.batch
            batch = rows[done : done + size]
            try:
                output = self._run(batch)
                is_one_of_several = len(rows) > size
                if is_one_of_several and isinstance(output, Tensor) and not output.requires_grad:
                    output = output.clone()  # a model may write the next batch's output to the same memory
            except (MemoryError, RuntimeError) as error:
                if not lacks_memory(error):
                    raise
                self._halve(size, error)
                continue
            check_output(output, len(batch))
            outputs.append(output)
            done += size
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _halve(self, size: int, error: Exception) -> None:
        """Halve the size of batches after one that ran out of memory; raise an error if it had a single row."""
        if size == 1:
            message = "The model runs out of memory with a single row. Use a smaller model or input."
            raise AbsentiaError(message) from error
        self.batch = min(size, self.batch) // 2

    def _run(self, rows: Rows) -> Any:
        """Run one batch within the time limit, count its rows, and time it."""
        if not self.limit.is_set:
            self.row_count.add(len(rows))
            return read_output(self.model(rows))[0]
        self.limit.check()
        self.row_count.add(len(rows))
        began = time.perf_counter()
        output = read_output(self.model(rows))[0]
        if isinstance(output, Tensor) and output.is_cuda:
            torch.cuda.synchronize(output.device)  # a GPU still computes when the call returns
        self.limit.note_batch(len(rows), time.perf_counter() - began)
        return output


def run_rows(model: Model, x: Rows, row_count: RowCount) -> Outputs:
    """Run a model on all rows, in evaluation mode and in batches; on copies, because it may work in place."""
    with evaluation_mode(model):
        _output, bytes_per_row, _key = try_rows(model, x[[0, -1]], row_count)
        batch = rows_per_batch(model, bytes_per_row, x.device, memory=None)
        return BatchRunner(lambda rows: model(rows.clone()), batch, row_count=row_count)(x)
