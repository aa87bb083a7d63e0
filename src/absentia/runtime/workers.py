"""Distribution of work over the workers of joblib."""

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
from absentia.runtime.row_count import RowCount

# The number of attempts for items whose worker dies.
_ATTEMPTS = 3

# The work that was last sent to this worker, by its digest.
_SENT: dict[str, Any] = {}


def worker_count() -> int:
    """Return how many workers there are: those of an active ``joblib.parallel_config``, or this process alone."""
    joblib = sys.modules.get("joblib")
    if joblib is None:
        return 1
    backend, jobs = joblib.parallel.get_active_backend()
    return 1 if backend is None else int(backend.effective_n_jobs(jobs))


def spread(
    work: Callable[[Any, RowCount], Any], items: Sequence[Any], title: str, row_count: RowCount
) -> Iterator[Any]:
    """Apply work to items and yield the results in order, in this process or in the workers of `worker_count`.

    The work gets an item and the count to add the rows of its models to. Workers have counts of their own, which are
    added up in ``row_count``. The work and what it holds, such as a model, is packed once. The items of a worker that
    dies are repeated.
    """
    if worker_count() == 1 or len(items) < 2:
        for item in items:
            yield work(item, row_count)
        return
    joblib = require("joblib", "scale")
    pickled = require("cloudpickle", "scale").dumps(work)
    packed = np.frombuffer(pickled, dtype=np.uint8)  # an array, because joblib shares arrays or sends them once
    digest = hashlib.blake2b(pickled, digest_size=16).hexdigest()
    backend, _jobs = joblib.parallel.get_active_backend()
    # Ray and multiprocessing return results only all at once.
    return_as = "generator" if backend.supports_return_generator else "list"
    done = 0
    with progress(len(items), title, "part") as bar:
        for attempt in range(_ATTEMPTS):
            calls = (joblib.delayed(_work_here)(packed, digest, item) for item in items[done:])
            try:
                for result, rows in joblib.Parallel(return_as=return_as, batch_size=1)(calls):
                    done += 1
                    row_count.add(rows)
                    bar.update()
                    yield result
                return
            except (BrokenProcessPool, CancelledError):
                if attempt == _ATTEMPTS - 1:
                    raise


def _work_here(packed: np.ndarray, digest: str, item: Any) -> tuple[Any, int]:
    """Apply packed work to an item in a worker; return the result, and the rows that models saw for it.

    The work is unpacked only if it is not the work that was sent last.
    """
    work = _SENT.get(digest)  # a reference of its own, because another thread's call may clear the dict
    if work is None:
        work = pickle.loads(packed.tobytes())
        _SENT.clear()
        _SENT[digest] = work
    THIS_THREAD.is_worker = True
    try:
        with require("joblib").parallel_config("sequential"):  # workers have no workers
            own_count = RowCount()
            result = work(item, own_count)
            return result, own_count.rows
    finally:
        THIS_THREAD.is_worker = False
