"""Work spread over the workers of joblib."""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from absentia.errors import require
from absentia.runtime.progress import THIS_THREAD, progress

_ATTEMPTS = 3  # at items whose workers die


def worker_count() -> int:
    """Return how many workers there are: those of an active ``joblib.parallel_config``, or this process alone."""
    joblib = sys.modules.get("joblib")
    backend, jobs = joblib.parallel.get_active_backend() if joblib else (None, 1)
    return 1 if backend is None else int(backend.effective_n_jobs(jobs))


def spread(work: Callable[[Any], Any], items: Sequence[Any], title: str) -> Iterator[Any]:
    """Do work on items and yield the results in their order: here, or by the workers of `worker_count`.

    What the work holds, such as a model, is packed once. Items of a worker that dies are done again.
    """
    if worker_count() == 1 or len(items) < 2:
        yield from map(work, items)
        return
    joblib, written = require("joblib", "scale"), require("cloudpickle", "scale").dumps(work)
    packed = np.frombuffer(written, dtype=np.uint8)  # an array, because these are shared, or sent once
    name, done = hashlib.blake2b(written, digest_size=16).hexdigest(), 0
    one_by_one = joblib.parallel.get_active_backend()[0].supports_return_generator  # Ray and multiprocessing do not
    with progress(len(items), title, "part") as bar:
        for attempt in range(_ATTEMPTS):
            calls = (joblib.delayed(_work_here)(packed, name, item) for item in items[done:])
            try:
                for found in joblib.Parallel(return_as="generator" if one_by_one else "list", batch_size=1)(calls):
                    done += 1
                    bar.update()
                    yield found
                return
            except (BrokenProcessPool, CancelledError):
                if attempt == _ATTEMPTS - 1:
                    raise


# What a worker was sent last.
_SENT: dict[str, Any] = {}


def _work_here(packed: np.ndarray, name: str, item: Any) -> Any:
    """Do packed work on an item, at a worker; unpack it only if it is not the last one."""
    work = _SENT.get(name)  # kept here, because another thread's call may clear it
    if work is None:
        work = pickle.loads(packed.tobytes())
        _SENT.clear()
        _SENT[name] = work
    THIS_THREAD.is_worker = True
    try:
        with require("joblib").parallel_config("sequential"):  # workers have no workers
            return work(item)
    finally:
        THIS_THREAD.is_worker = False
