"""The number of threads with which a model is fastest."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from absentia.runtime.limits import TimeLimit

# Work that takes longer than this, in seconds, is timed only once for each number of threads.
_LONG_WORK = 0.25

# The maximum number of calls for timing: up to three for each number of threads.
_CALLS = 6

# The number of calls for timing long work.
_CALLS_OF_LONG_WORK = 2

# Threads are not timed if that would take more than this share of the remaining time.
_SHARE_FOR_THREADS = 0.1

# The number of torch's threads before it was changed, once for each call in progress.
_THREADS: list[int] = []

# Held while the list above is read or changed.
_LOCK = threading.Lock()


@contextmanager
def quickest_threads(
    work: Callable[[], object], device: torch.device, limit: TimeLimit | None = None
) -> Iterator[int]:
    """Use one thread if that is faster than all of torch's threads, as for small models; restore them at the end.

    The number stays the same if timing would take too much of the remaining time.
    """
    left = math.inf if limit is None else limit.left
    with _LOCK:
        usual = _THREADS[0] if _THREADS else torch.get_num_threads()
        _THREADS.append(usual)
    try:
        if usual > 1 and device.type == "cpu":
            _use_quickest(work, usual, left)
        yield torch.get_num_threads()
    finally:
        with _LOCK:
            _THREADS.pop()
            if not _THREADS:  # the last of several calls in progress
                torch.set_num_threads(usual)


def _use_quickest(work: Callable[[], object], usual: int, left: float) -> None:
    """Time the work with one thread and with the usual number, and use the faster one, if time allows."""
    began = time.perf_counter()
    work()  # the first call is slower than others
    first_seconds = time.perf_counter() - began
    calls = _CALLS_OF_LONG_WORK if first_seconds > _LONG_WORK else _CALLS
    if calls * first_seconds > _SHARE_FOR_THREADS * left:
        return
    seconds_alone = _time(work, 1)
    seconds_together = _time(work, usual)
    torch.set_num_threads(1 if seconds_alone <= seconds_together else usual)


def _time(work: Callable[[], object], threads: int) -> float:
    """Time the work with this many threads: the mean of up to three runs, because delays are irregular."""
    torch.set_num_threads(threads)
    began = time.perf_counter()
    for count in (1, 2, 3):
        work()
        mean = (time.perf_counter() - began) / count
        if mean > _LONG_WORK:
            break
    return mean
