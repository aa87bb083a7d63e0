"""How long work takes: rows that are affordable, time limits, and the number of threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from absentia.data import Rows
from absentia.errors import wrong
from absentia.models import Model, NumpyModel, evaluation_mode, layers_of, run_watched

# What a row costs beside the operations of its layers, in the same unit: fixed, and for each entry.
_PER_ROW, _PER_ENTRY = 4_000.0, 50.0
# The assumed operations of a row where they cannot be counted: about those of 100 trees.
_UNKNOWN = 100_000.0
_LONG_WORK = 0.25  # seconds, after which work is timed only once with each number of threads


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


class TimeLimit:
    """A limit on the time that work takes from now on; None for no limit."""

    def __init__(self, seconds: object = None) -> None:
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise wrong("seconds", "be a positive number, or None for no limit", seconds)
        self.seconds, self.began = math.inf if seconds is None else float(seconds), time.perf_counter()

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        """Seconds until the limit; at most 0 once it is reached."""
        return self.seconds - self.spent


@contextmanager
def quickest_threads(work: Callable[[], object], device: torch.device) -> Iterator[int]:
    """Use one thread if work is quicker so than with all of torch's, as with small models; restore their number."""
    usual = torch.get_num_threads()
    try:
        if usual > 1 and device.type == "cpu":
            work()  # the first call is slower than others
            torch.set_num_threads(1 if _time(work, 1) <= _time(work, usual) else usual)
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(usual)


def _time(work: Callable[[], object], threads: int) -> float:
    """Time the work with this many threads: the mean of up to three times, because threads may wait only at times."""
    torch.set_num_threads(threads)
    began = time.perf_counter()
    for count in (1, 2, 3):
        work()
        mean = (time.perf_counter() - began) / count
        if mean > _LONG_WORK:
            break
    return mean
