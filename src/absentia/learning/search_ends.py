"""How a search for a baseline ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from absentia.runtime.stops import Stop, StopReason


class EndKind(str, Enum):
    """Where a search ended."""

    CONVERGED = "converged"
    STEPS_DONE = "steps done"
    NOT_POLISHED = "not polished"
    STEPS_WITHOUT_SWEEP = "steps without sweep"
    NO_STEPS = "no steps"
    NO_GRADIENT = "no gradient"
    SWEEPS_DONE = "sweeps done"
    CUT_BEFORE_START = "cut before start"
    CUT_IN_STEPS = "cut in steps"
    CUT_IN_VALUES = "cut in values"
    CUT_WITHOUT_GRADIENT = "cut without gradient"
    CUT_IN_SEARCH = "cut in search"
    CUT_IN_COMPARISON = "cut in comparison"
    WORDED = "worded"  # all that files before 0.2 tell are the words


# The words for each end, with the numbers of `SearchEnd`.
_TEMPLATES = {
    EndKind.CONVERGED: "no other value of a single coordinate lowers the loss by 0.1 %",
    EndKind.STEPS_DONE: "{steps} steps of {rows:,} rows are done",
    EndKind.NOT_POLISHED: "the steps are done; they were not polished",
    EndKind.STEPS_WITHOUT_SWEEP: "the steps are done; {coordinates:,} values are too many to sweep",
    EndKind.NO_STEPS: "no steps were taken, and {coordinates:,} values are too many to sweep",
    EndKind.NO_GRADIENT: (
        "no steps were taken, because the model has no gradient, and {coordinates:,} values are too many to sweep"
    ),
    EndKind.SWEEPS_DONE: "{sweeps} sweeps are done, and the last still lowered the loss",
    EndKind.CUT_BEFORE_START: "{why} before any baseline was compared; these are the values of the start",
    EndKind.CUT_IN_STEPS: "{why} after {steps} of {planned} steps; these are the best values so far",
    EndKind.CUT_IN_VALUES: (
        "{why} while values were searched one by one, without steps along the gradient; "
        "these are the best values so far"
    ),
    EndKind.CUT_WITHOUT_GRADIENT: (
        "{why} while values were searched one by one, because the model has no gradient; "
        "these are the best values so far"
    ),
    EndKind.CUT_IN_SEARCH: "{why}; these are the best values so far",
    EndKind.CUT_IN_COMPARISON: "{why} before candidates were compared on all samples kept aside",
    EndKind.WORDED: "{words}",
}


@dataclass(frozen=True)
class SearchEnd:
    """Why and where a search ended; ``str(end)`` puts it into words."""

    kind: EndKind
    stop: Stop | None = None  # who or what cut the search short, if anything
    steps: int = 0  # done
    planned: int = 0  # steps
    rows: int = 0  # of a step
    coordinates: int = 0  # that are too many to sweep
    sweeps: int = 0  # done
    words: str = ""  # of files before 0.2

    @property
    def is_interruption(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return self.stop is not None and self.stop.reason is StopReason.INTERRUPTED

    def __str__(self) -> str:
        return _TEMPLATES[self.kind].format(
            why=_why(self.stop),
            steps=self.steps,
            planned=self.planned,
            rows=self.rows,
            coordinates=self.coordinates,
            sweeps=self.sweeps,
            words=self.words,
        )


def _why(stop: Stop | None) -> str:
    """Say who or what cut a search short."""
    if stop is None:
        return ""
    if stop.reason is StopReason.INTERRUPTED:
        return "interrupted"
    if stop.reason is StopReason.CALLBACK:
        return "the callback returned True"
    return f"the limit of {stop.seconds:g} s is reached"


CONVERGED = SearchEnd(EndKind.CONVERGED)
NOT_POLISHED = SearchEnd(EndKind.NOT_POLISHED)
