"""Why work ended before all of it was done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class StopReason(str, Enum):
    """Who or what ended the work."""

    INTERRUPTED = "interrupted"  # by Ctrl-C
    CALLBACK = "callback"  # the user's callback returned True
    TIME_LIMIT = "time limit"


@dataclass(frozen=True)
class Stop:
    """An early end of work, which records keep and views put into words."""

    reason: StopReason
    seconds: float | None = None  # of the time limit

    @property
    def by_user(self) -> bool:
        """Whether the user ended the work."""
        return self.reason is not StopReason.TIME_LIMIT


INTERRUPTED = Stop(StopReason.INTERRUPTED)
BY_CALLBACK = Stop(StopReason.CALLBACK)
