"""A clock that tests set by hand, so that no test waits or depends on how busy the machine is."""

from __future__ import annotations

# Time passes a little with each reading: a loop that only looks at the clock ends, too.
SECONDS_PER_READING = 1e-6


class FakeClock:
    """A clock that stands still unless a test, or a model of a test, lets time pass."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __reduce__(self) -> str:
        """Pickle as the name of the only instance, so that all threads that work is sent to share one clock."""
        return "CLOCK"

    def read(self) -> float:
        """Return the time in seconds, as `time.perf_counter` and `time.time` do."""
        self.now += SECONDS_PER_READING
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass, in the place of `time.sleep`."""
        self.now += seconds


CLOCK = FakeClock()
