"""Progress of long work: a bar on a terminal or in a notebook, and elsewhere a line now and then on stderr."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from absentia.text import count_of, duration, percent

# Its attribute ``is_worker`` says whether this thread is a worker's, which shows no progress itself.
THIS_THREAD = threading.local()
# Lines begin after this many seconds of work, ...
_SECONDS_BEFORE_LINES = 10.0
# ... and are at least this many seconds apart.
_SECONDS_BETWEEN_LINES = 30.0
# The lines of work in progress. Work within it shows no progress itself.
_LINES: set[ProgressLines] = set()
# The bars that work within their work moves on, and by how much all of it does; the innermost is last.
_MOVED: list[tuple[Any, float]] = []


def progress(total: int, title: str, unit: str = "it", show: bool = True) -> Any:
    """Return what shows the progress of long work.

    It is a bar after two seconds on a terminal or in a notebook, or else lines on stderr after ten seconds.
    """
    from tqdm import tqdm  # imported here, because most work ends before a bar would be shown

    if show and _MOVED and not getattr(THIS_THREAD, "is_worker", False):
        return PartOfWork(*_MOVED[-1], total)
    if not show or _is_within_other_work(tqdm):
        return _hidden_bar(tqdm)
    if not _is_watched():
        return ProgressLines(total, title, unit)
    # Terminals that report no size would hide the bar.
    width, height = shutil.get_terminal_size((100, 24))
    return tqdm(total=total, desc=title, unit=unit, delay=2, miniters=1, leave=False, ncols=width, nrows=height)


@contextmanager
def moves_on(bar: Any, amount: float) -> Iterator[None]:
    """Have the next work within the work of a bar move it on by this amount, with each of its steps."""
    _MOVED.append((bar, amount))
    try:
        yield
    finally:
        _MOVED.pop()


def announce(sentence: str) -> None:
    """Write what long work is about to take to stderr, unless it is a part of other work that shows its progress."""
    from tqdm import tqdm

    if not _is_within_other_work(tqdm):
        write_line(sentence)


def write_line(sentence: str) -> None:
    """Write a line to stderr."""
    if sys.stderr is None:  # as in programs without a console
        return
    with suppress(OSError):  # a stream that cannot be written to must not end the work
        print(f"absentia: {sentence}", file=sys.stderr, flush=True)


def _is_watched() -> bool:
    """Return whether somebody watches a terminal or a notebook, where a bar can be redrawn."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return is_terminal or "ipykernel" in sys.modules


def _is_within_other_work(tqdm: Any) -> bool:
    """Return whether this thread is a worker's, or a bar or lines already show the progress of other work."""
    is_worker = getattr(THIS_THREAD, "is_worker", False)
    has_outer_bar = bool(getattr(tqdm, "_instances", ()))
    return is_worker or has_outer_bar or bool(_LINES)


@cache
def _hidden_bar(tqdm: Any) -> Any:
    """Return a bar that is never shown; it is made once, because making it is slow."""
    return tqdm(disable=True)


class PartOfWork:
    """The progress of work that moves on the bar of the work around it."""

    disable = False

    def __init__(self, bar: Any, amount: float, total: int) -> None:
        self.bar = bar
        self.per_step = amount / max(1, total)
        self.steps = 0

    @property
    def n(self) -> int:
        """What is done, by the name that it has in tqdm."""
        return self.steps

    def __enter__(self) -> PartOfWork:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bar to the work around."""

    def set_description(self, title: str) -> None:
        """Leave the title to the work around."""

    def set_postfix(self, *, refresh: bool = True, **shown: object) -> None:
        """Leave what is shown to the work around."""

    def update(self, done: int = 1) -> None:
        """Move the bar on, by whole steps of its own."""
        before = int(self.steps * self.per_step)
        self.steps += done
        self.bar.update(int(self.steps * self.per_step) - before)


class ProgressLines:
    """The progress of work in lines on stderr, with those methods of a bar of tqdm that are used here."""

    disable = False

    def __init__(self, total: int, title: str, unit: str) -> None:
        self.total = total
        self.title = title
        self.unit = unit
        self.n = 0  # what is done, by the name that it has in tqdm
        self.beside = ""
        self.began = time.perf_counter()
        self.next_line = self.began + _SECONDS_BEFORE_LINES

    def __enter__(self) -> ProgressLines:
        _LINES.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _LINES.discard(self)

    def set_description(self, title: str) -> None:
        """Leave the title as it is: each line says how much time is left."""

    def set_postfix(self, *, refresh: bool = True, **shown: object) -> None:
        """Show some values beside the progress."""
        self.beside = "".join(f", {name} {value}" for name, value in shown.items())

    def update(self, done: int = 1) -> None:
        """Count work that is done, and write a line if it is time for one."""
        self.n += done
        now = time.perf_counter()
        is_finished = self.total > 0 and self.n >= self.total
        if now < self.next_line or is_finished:
            return
        self.next_line = now + _SECONDS_BETWEEN_LINES
        write_line(f"{self.title}: {self._status(now - self.began)}{self.beside}")

    def _status(self, spent: float) -> str:
        """Say how much is done, and about how long the rest takes."""
        if self.total <= 0:
            return f"{count_of(self.n, self.unit)} in {duration(spent)}"
        left = spent * (self.total - self.n) / max(1, self.n)
        return f"{percent(self.n / self.total)}, about {duration(left)} left"
