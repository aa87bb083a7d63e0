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

# Items whose worker dies are tried this many times.
_ATTEMPTS = 3

# The work that this worker was sent last, by its digest.
_SENT: dict[str, Any] = {}


def worker_count() -> int:
    """Return how many workers there are: those of an active ``joblib.parallel_config``, or this process alone."""
    joblib = sys.modules.get("joblib")
    if joblib is None:
        return 1
    backend, jobs = joblib.parallel.get_active_backend()
    return 1 if backend is None else int(backend.effective_n_jobs(jobs))


def spread(work: Callable[[Any], Any], items: Sequence[Any], title: str) -> Iterator[Any]:
    """Do work on items and yield the results in their order: here, or by the workers of `worker_count`.

    The work and what it holds, such as a model, is packed once. Items of a worker that dies are repeated.
    """
    if worker_count() == 1 or len(items) < 2:
        yield from map(work, items)
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
                for result in joblib.Parallel(return_as=return_as, batch_size=1)(calls):
                    done += 1
                    bar.update()
                    yield result
                return
            except (BrokenProcessPool, CancelledError):
                if attempt == _ATTEMPTS - 1:
                    raise


def _work_here(packed: np.ndarray, digest: str, item: Any) -> Any:
    """Do packed work on an item in a worker; unpack it only if it is not the work that was sent last."""
    work = _SENT.get(digest)  # a reference of its own, because another thread's call may clear the dict
    if work is None:
        work = pickle.loads(packed.tobytes())
        _SENT.clear()
        _SENT[digest] = work
    THIS_THREAD.is_worker = True
    try:
        with require("joblib").parallel_config("sequential"):  # workers have no workers
            return work(item)
    finally:
        THIS_THREAD.is_worker = False
