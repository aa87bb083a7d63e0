"""The number of threads that a model is quickest with."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from absentia.runtime.limits import TimeLimit

_LONG_WORK = 0.25  # seconds, after which work is timed only once with each number of threads

# The share of the time that is left, beyond which the quicker number of threads is not found out.
_SHARE_FOR_THREADS = 0.1

# The number of torch's threads before the first call that changes it, once for each such call.
_THREADS: list[int] = []

_LOCK = threading.Lock()


@contextmanager
def quickest_threads(
    work: Callable[[], object], device: torch.device, limit: TimeLimit | None = None
) -> Iterator[int]:
    """Use one thread if work is quicker so than with all of torch's, as with small models; restore their number.

    Their number stays the same if timing them would take too much of the time that is left.
    """
    left = math.inf if limit is None else limit.left
    with _LOCK:
        usual = _THREADS[0] if _THREADS else torch.get_num_threads()
        _THREADS.append(usual)
    try:
        if usual > 1 and device.type == "cpu":
            began = time.perf_counter()
            work()  # the first call is slower than others
            first = time.perf_counter() - began
            calls = 2 if first > _LONG_WORK else 6
            if calls * first <= _SHARE_FOR_THREADS * left:
                alone = _time(work, 1)
                together = _time(work, usual)
                torch.set_num_threads(1 if alone <= together else usual)
        yield torch.get_num_threads()
    finally:
        with _LOCK:
            _THREADS.pop()
            if not _THREADS:  # the last of several calls at a time
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
