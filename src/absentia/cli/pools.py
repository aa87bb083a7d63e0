"""Processes that samples are spread over."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from absentia.cli.file_checks import reading
from absentia.errors import require

_SECONDS_TO_CONNECT = 10


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[None]:
    """Spread samples over processes of this machine, or over the Dask cluster of a scheduler."""
    with ExitStack() as stack:
        if scheduler is not None:
            dask = require("distributed", "dask")
            with reading("dask", "be the address of a scheduler, as in tcp://host:8786", scheduler):
                stack.enter_context(dask.Client(scheduler, timeout=_SECONDS_TO_CONNECT))
            stack.enter_context(require("joblib", "scale").parallel_config("dask"))
        elif jobs > 1:
            # No file of the working directory may hide a package in the processes.
            os.environ.setdefault("PYTHONSAFEPATH", "1")
            stack.enter_context(require("joblib", "scale").parallel_config("loky", n_jobs=jobs))
        yield
