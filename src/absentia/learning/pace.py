"""The progress of a search: its steps are counted, shown and reported, and the time is checked."""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from absentia.learning.processes import decided_by_first, is_first
from absentia.runtime.limits import TimeLimit
from absentia.runtime.progress import progress
from absentia.runtime.stops import BY_CALLBACK, INTERRUPTED, Stop

_LOG = logging.getLogger("absentia")


class LearningStep(NamedTuple):
    """What a callback receives after each step of learning."""

    step: int
    steps: int  # planned in all
    loss: float
    seconds: float  # since the beginning
    seconds_left: float  # until the planned steps are done


class StopLearning(Exception):  # noqa: N818 - no error
    """Raised if time is up or the user ends the search, whose best values so far are then the result."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop)
        self.stop = stop


class Pace:
    """The planned and finished steps of a search, and the time they take.

    ``ended`` means that the user ended learning before this search began.
    """

    def __init__(
        self,
        limit: TimeLimit,
        device: torch.device,
        rows_per_step: int = 0,
        callback: Callable[[LearningStep], Any] | None = None,
        *,
        ended: bool = False,
    ) -> None:
        self.limit = limit
        self.device = device
        self.rows_per_step = rows_per_step  # 0 if not known in advance
        self.callback = callback
        self.ended = ended
        self.planned = 0
        self.done = 0
        self.seconds_of_first = 0.0  # until the first step was done, with all preparations
        self.bar = progress(0, "learning the baseline", "step", show=is_first())

    def plan(self, steps: int) -> None:
        """Set the number of planned steps."""
        self.planned = steps
        self.bar.total = steps

    def count_sweep(self) -> None:
        """Show that a sweep is done."""
        self.bar.update()

    def show_loss(self, loss: float) -> None:
        """Show a loss beside the progress bar."""
        self.bar.set_postfix(loss=f"{loss:.4g}", refresh=False)

    def count_step(self, loss: float) -> None:
        """Show that a step is done, and call the callback."""
        self.done += 1
        self.bar.update()
        spent = self.limit.spent
        if self.done == 1:
            self.seconds_of_first = spent
        seconds_left = self._seconds_left(spent)
        if self.done == 2 and self.rows_per_step:
            self._announce(spent + seconds_left)
        step = LearningStep(self.done, self.planned, loss, spent, seconds_left)
        if self.callback is not None and decided_by_first(self.callback(step) is True, self.device):
            raise StopLearning(BY_CALLBACK)

    def _seconds_left(self, spent: float) -> float:
        """Estimate the remaining time; the first step, which takes longer, counts only if there is no other."""
        if self.done > 1:
            seconds_per_step = (spent - self.seconds_of_first) / (self.done - 1)
        else:
            seconds_per_step = spent
        return max(0.0, seconds_per_step * (self.planned - self.done))

    def _announce(self, seconds: float) -> None:
        """Say about how long the search will take."""
        title = f"about {seconds:.0f} s: {self.planned} steps of {self.rows_per_step:,} rows"
        _LOG.info("learning the baseline, %s", title)
        self.bar.set_description(f"learning the baseline, {title}")

    def check_time(self) -> None:
        """End the search if the time limit is reached, or if the user ended learning before it began."""
        if self.ended:
            raise StopLearning(INTERRUPTED)
        if self.limit.is_set and decided_by_first(self.limit.is_reached, self.device):
            raise StopLearning(self.limit.stop)
