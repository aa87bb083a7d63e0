"""How long a model takes for rows, as timed runs of a few of them show."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

# Runs are timed with more and more rows until one takes this long, in seconds: shorter ones are imprecise.
_LONG_RUN = 0.1
# The first timed run has as many rows as the first run of a model, because some models cannot run a single row.
_FIRST_ROWS = 2
# The next timed run has this many times as many rows.
_GROWTH = 4
# A timed run has at most one row for this many rows of the work.
_ONE_IN = 32
# A run that takes less than this many times as long as one of a quarter of its rows has a large fixed cost.
_MOST_OF_FIXED_COST = 2.0


@dataclass(frozen=True)
class RowTime:
    """The time that a model takes: a fixed part for each batch, and a part for each row."""

    per_batch: float
    per_row: float

    def seconds_per_row(self, batch: int) -> float:
        """Return the seconds that a row takes in batches of this size."""
        return self.per_batch / batch + self.per_row

    def rows_within(self, seconds: float, most: int) -> int:
        """Return how many rows take no longer than this beyond the fixed part: a power of two, up to ``most``."""
        if most <= _FIRST_ROWS or self.per_row * most <= seconds:
            return most
        fitting = max(_FIRST_ROWS, int(seconds / self.per_row))
        return 2 ** (fitting.bit_length() - 1)

    @classmethod
    def of_run(cls, rows: int, seconds: float) -> RowTime:
        """Return the time by a single run, as if it had no fixed part."""
        return cls(0.0, seconds / rows)

    @classmethod
    def of_two_runs(cls, few: Run, many: Run) -> RowTime:
        """Return the time on the line through two runs; neither part is negative."""
        per_row = (many.seconds - few.seconds) / (many.rows - few.rows)
        per_row = min(max(per_row, 0.0), many.seconds / many.rows)
        return cls(many.seconds - per_row * many.rows, per_row)


@dataclass(frozen=True)
class Run:
    """A timed run of a model."""

    rows: int
    seconds: float


def time_rows(run: Callable[[int], int], most: int) -> RowTime:
    """Time runs of 2, 8, 32, … rows, up to ``most``, until a run is long enough to tell how the time grows.

    ``run`` gets a number of rows, and returns how many it ran: at least one.
    """
    rows = _FIRST_ROWS
    last = _timed(run, rows)
    row_time = RowTime.of_run(last.rows, last.seconds)
    while rows < most:
        rows = min(most, _GROWTH * rows)
        longer = _timed(run, rows)
        if longer.rows <= last.rows:  # it runs whole blocks
            break
        row_time = RowTime.of_two_runs(last, longer)
        has_fixed_cost = longer.seconds < _MOST_OF_FIXED_COST * last.seconds
        last = longer
        if longer.seconds >= _LONG_RUN and not has_fixed_cost:
            break
    return row_time


def _timed(run: Callable[[int], int], rows: int) -> Run:
    """Run rows once, and note how long that took."""
    began = time.perf_counter()
    ran = run(rows)
    return Run(ran, time.perf_counter() - began)


def rows_to_time(rows: int, batch: int) -> int:
    """Return the maximum number of rows of a timed run: those of a batch, or a small share of the work."""
    return max(_FIRST_ROWS, min(batch, rows // _ONE_IN))
