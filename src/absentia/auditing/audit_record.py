"""The record of an audit: its settings, notes and cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from absentia.version import __version__


@dataclass(frozen=True)
class Cost:
    """The rows and the time that a measurement took."""

    evaluations: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.evaluations + other.evaluations, self.seconds + other.seconds)


@dataclass(frozen=True)
class AuditRecord:
    """The settings of an audit or a cross audit, and what it cost."""

    readout: str
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
    stopped: str = ""  # why the audit ended early, if it did
    torch_version: str = str(torch.__version__)
    version: str = __version__

    @property
    def evaluations(self) -> int:
        """The total number of rows that the model evaluated."""
        return sum(self.costs.values(), self.shared_cost).evaluations

    @property
    def seconds(self) -> float:
        """The time that the evaluations took."""
        return sum(self.costs.values(), self.shared_cost).seconds
