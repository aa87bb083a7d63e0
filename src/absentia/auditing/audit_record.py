"""The record of an audit: its settings, notes and cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from absentia.readout_notes import ReadoutNote
from absentia.runtime.stops import Stop, StopReason
from absentia.version import __version__


@dataclass(frozen=True)
class Cost:
    """The rows that were evaluated for a measurement, and the time that it took."""

    evaluations: int = 0  # one for each coalition and draw of the absence
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.evaluations + other.evaluations, self.seconds + other.seconds)


@dataclass(frozen=True)
class AuditRecord:
    """The settings of an audit or a cross audit, and its cost."""

    readout_note: ReadoutNote  # what was read from the model's output
    samples: int
    draws: int
    exact: bool  # whether all coalitions of the region were evaluated, rather than games of some of its players
    region: tuple[str, ...]
    seed: int
    costs: dict[str, Cost]  # of each method
    shared_cost: Cost  # of the samples themselves and of noise, which all methods share
    notes: tuple[str, ...]
    reference: str = ""
    game_players: int = 0  # the number of players of each game in which R was measured
    threshold: str = ""  # above which size an effect is salient, in words
    absences: dict[str, str] = field(default_factory=dict)  # a description of each method
    given: int = 0  # the number of samples that were passed, of which `samples` were audited
    surrogates: tuple[str, ...] = ()  # the methods that explain another model
    stop: Stop | None = None  # why the audit ended early, if it did
    torch_version: str = str(torch.__version__)
    version: str = __version__
    rows_seen: int | None = None  # rows that models saw, those of trials and checks included; None in older files

    @property
    def readout(self) -> str:
        """What was read from the model's output, in words."""
        return str(self.readout_note)

    @property
    def stopped(self) -> str:
        """Why the audit ended early, in words; "" if it did not."""
        if self.stop is None:
            return ""
        if self.stop.reason is StopReason.TIME_LIMIT:
            return f"time limit of {self.stop.seconds:g} s"
        return "interrupted"

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended the audit early."""
        return self.stop is not None and self.stop.reason is StopReason.INTERRUPTED

    @property
    def evaluations(self) -> int:
        """The total number of rows that were evaluated for values: one for each coalition and draw."""
        return sum(self.costs.values(), self.shared_cost).evaluations

    @property
    def seconds(self) -> float:
        """The time that the evaluations took."""
        return sum(self.costs.values(), self.shared_cost).seconds
