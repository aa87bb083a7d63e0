"""Limits on the time that work takes."""

from __future__ import annotations

import math
import time
from typing import Any

from absentia.errors import AbsentiaError, wrong
from absentia.runtime.stops import Stop, StopReason

# Under a time limit the first batch has this many rows.
_FIRST_ROWS = 16

# The next batch has this many times as many rows, as long as batches are short.
_GROWTH_OF_BATCHES = 4

# A batch is short if it takes less than this share of the time limit.
_SHARE_OF_A_BATCH = 0.03

# An error about a limit that is too short suggests one at least this many times as long.
_LONGER = 1.5


class OutOfTime(Exception):  # noqa: N818 - the caller did nothing wrong
    """Raised between two batches of the model when the time limit is reached."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"the limit of {self.seconds:g} s is reached"

    @property
    def stop(self) -> Stop:
        """Why the work ended, for records."""
        return Stop(StopReason.TIME_LIMIT, self.seconds)


class TimeLimit:
    """A limit on the time from now on, or None for no limit.

    Batches of the model are timed. They are small at first, and grow as long as each takes a small share of the time,
    so that work ends soon after the limit. A copy sent to another process has the same deadline.
    """

    def __init__(self, seconds: object = None) -> None:
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise wrong("seconds", "be a positive number, or None for no limit", seconds)
        self.seconds = math.inf if seconds is None else float(seconds)
        self.began = time.perf_counter()
        # Whether work ends between any two batches. Processes that exchange values end together, between steps.
        self.strict = True
        self.reserve = 0.0  # seconds kept for the work that follows
        self.seconds_per_row = math.inf  # of the quickest batch
        self._rows_at_once = _FIRST_ROWS

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the deadline in wall-clock time, because each process has its own counter."""
        return vars(self) | {"deadline": time.time() + self.left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the deadline; the time left is at most the limit, because the clocks of two machines may differ."""
        deadline = state["deadline"]
        self.seconds = state["seconds"]
        self.began = state["began"]
        self.strict = state["strict"]
        self.reserve = state["reserve"]
        self.seconds_per_row = state["seconds_per_row"]
        self._rows_at_once = state["_rows_at_once"]
        if self.is_set:
            left = min(self.seconds, deadline - time.time())
            self.began = time.perf_counter() - (self.seconds - left)

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return self.seconds < math.inf

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        """Seconds until the limit; at most 0 once it is reached."""
        return self.seconds - self.spent

    @property
    def stop(self) -> Stop:
        """Why work ends at this limit, for records."""
        return Stop(StopReason.TIME_LIMIT, self.seconds)

    @property
    def is_reached(self) -> bool:
        """Whether no time is left beyond what is kept for later."""
        return self.left <= self.reserve

    def check(self) -> None:
        """Raise `OutOfTime` if the limit is reached."""
        if self.strict and self.is_reached:
            raise OutOfTime(self.seconds)

    def too_short(self, rows: int, then: str) -> AbsentiaError:
        """Return the error for a limit that is reached before the model has evaluated as many rows as it must."""
        needed = _LONGER * self.seconds
        if self.seconds_per_row < math.inf:
            needed = max(needed, self.spent + rows * self.seconds_per_row)
        if needed > 1:
            needed = math.ceil(needed)
        return wrong("seconds", f"be about {needed:.4g} or more for this model", f"{self.seconds:g}", then)

    def rows_of_a_batch(self, most: int) -> int:
        """Return how many rows to run at once, up to ``most``."""
        if not self.is_set:
            return most
        return min(most, self._rows_at_once)

    def note_batch(self, rows: int, seconds: float) -> None:
        """Note how long a batch took, and make the next one larger if it was short."""
        self.seconds_per_row = min(self.seconds_per_row, seconds / rows)
        if rows >= self._rows_at_once and seconds < _SHARE_OF_A_BATCH * self.seconds:
            self._rows_at_once = _GROWTH_OF_BATCHES * rows
