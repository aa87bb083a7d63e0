"""The time that values take for each row, as timed before they are computed."""

from __future__ import annotations

from functools import partial

import torch

from absentia.absences.protocol import Fill, StandIns
from absentia.coalitions import draw_coalitions
from absentia.data import seeded
from absentia.evaluation.evaluator import Evaluator
from absentia.runtime.timing import RowTime, rows_to_time, time_rows

# Work that by the model's first run takes no longer than this, in seconds, is not timed.
SHORT_WORK = 5.0


def time_values(
    evaluator: Evaluator, fill: Fill, rows: int, *, as_table: bool, short_work: float = SHORT_WORK
) -> RowTime:
    """Return the time that each row takes, including masking and the readout.

    Short work is not timed: the model's first run shows that it is short. ``as_table`` times the values of all
    coalitions, which take less time than those of drawn ones.
    """
    seconds_of_first_run = evaluator.task.probe.seconds_per_row
    if rows * seconds_of_first_run <= short_work:
        return RowTime.of_run(1, seconds_of_first_run)
    run = partial(_try_drawn, evaluator, fill)
    if as_table and isinstance(fill, StandIns):
        run = partial(evaluator.try_block, fill)
    return time_rows(run, rows_to_time(rows, evaluator.batch_size))


def _try_drawn(evaluator: Evaluator, fill: Fill, rows: int) -> int:
    """Evaluate random coalitions, always the same ones, that take about this many rows."""
    players = len(evaluator.players)
    count = max(1, rows // fill.draws)
    sizes = torch.arange(count) % (players + 1)
    return evaluator.try_coalitions(fill, draw_coalitions(players, sizes, seeded(0, "timing")))
