"""The steps of an audit: what each one evaluates for a few samples, and what it returns.

Steps do not depend on each other. Everything they need is in the setup, so little has to be sent to a worker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.absences import Fill, StandIns
from absentia.auditing.audit_leaves import AuditLeaves, coalitions_with_others
from absentia.auditing.audit_record import Cost
from absentia.auditing.audit_setup import Setup
from absentia.auditing.jackknife import Drawn, draw_groups, join_methods
from absentia.auditing.own_games import drawn_game_figures, listed_game_figures
from absentia.auditing.plan import Games, Plan
from absentia.auditing.recalibration import Scale
from absentia.auditing.split import ByClass, ByValue, Split
from absentia.auditing.subject import Method
from absentia.coalitions import draw_coalitions, enumerate_coalitions, moebius_
from absentia.data import blocks, seeded
from absentia.evaluation import Evaluator, Tabulated
from absentia.players import Players

# The name under which costs shared by all methods are recorded.
SHARED = ""
# The log-odds of a class without its own baseline, if other classes have one.
RULED_OUT = -1e6
# Tables hold at most this many values at a time.
_VALUES_AT_A_TIME = 2**21
# The rounding error of an effect of order m is 2^(m/2) times that of a value. The sum over all effects grows by this
# factor with each player.
_GROWTH = 1 + 2**0.5


@dataclass
class Ledger:
    """The cost of a step for each method; each entry gets the time that passed since the previous entry."""

    entries: list[tuple[str, Cost]] = field(default_factory=list)
    last: float = field(default_factory=lambda: time.perf_counter())

    def book(self, name: str, rows: int) -> None:
        """Record the rows of a method, and the time they took."""
        now = time.perf_counter()
        self.entries.append((name, Cost(rows, now - self.last)))
        self.last = now


@dataclass(frozen=True, eq=False)
class SharedValues:
    """The value of ∅ for each method whose stand-ins are the same for all samples."""

    by_method: dict[str, Drawn]


@dataclass(frozen=True)
class SharedStep:
    """Evaluate ∅ once for each method whose stand-ins are the same for all samples."""

    def measure(self, setup: Setup, ledger: Ledger) -> SharedValues:
        """Evaluate ∅ of the first sample."""
        first = slice(0, 1)
        by_method = {}
        for name, method in setup.methods.items():
            if setup.subject.has_one_empty_value(method):
                by_method[name] = _drawn_values(setup, method, first, _nobody(setup), method.fill.draws)
                ledger.book(name, setup.rows_run(method, method.fill.draws * method.fills))
        return SharedValues(by_method)


@dataclass(frozen=True, eq=False)
class EmptyValues:
    """The values of whole samples, and the values of ∅ for each method whose stand-ins differ between samples."""

    whole: Float[Tensor, "samples numbers"]
    by_method: dict[str, Drawn]


@dataclass(frozen=True)
class EmptyStep:
    """Evaluate whole samples, and ∅ for each method whose stand-ins differ between samples."""

    samples: slice

    @staticmethod
    def rows(plan: Plan) -> int:
        """Return the rows of one sample, including its part of the shared ones."""
        return plan.empty_rows // plan.empty_samples

    def measure(self, setup: Setup, ledger: Ledger) -> EmptyValues:
        """Evaluate the samples, whole and fully masked."""
        whole = _whole_values(setup, self.samples)
        ledger.book(SHARED, setup.rows_run(None, len(whole)))
        by_method = {}
        for name, method in setup.methods.items():
            if not setup.subject.has_one_empty_value(method):
                by_method[name] = _drawn_values(setup, method, self.samples, _nobody(setup), method.fill.draws)
                ledger.book(name, setup.rows_run(method, len(whole) * method.fill.draws * method.fills))
        return EmptyValues(whole, by_method)


@dataclass(frozen=True, eq=False)
class MethodCurve:
    """The masking curve of one method: ∅, a random coalition of each size, and all players."""

    values: Float[Tensor, "samples sizes numbers"]
    scores: Float[Tensor, "samples sizes"]
    without: Float[Tensor, "samples groups"]  # the mean score with each group of draws left out


@dataclass(frozen=True, eq=False)
class CurveValues:
    """The masking curve of a few samples for each method, in order."""

    methods: list[MethodCurve]


@dataclass(frozen=True)
class CurveStep:
    """Evaluate a coalition of each size with each method."""

    samples: slice

    @staticmethod
    def rows(plan: Plan) -> int:
        """Return the rows of one sample."""
        return plan.curve_rows

    def measure(self, setup: Setup, ledger: Ledger) -> CurveValues:
        """Evaluate the same coalitions with all methods, and score them."""
        numbers = setup.numbers[self.samples]
        coalitions = self._coalitions(setup)
        whole = _whole_values(setup, self.samples)
        ledger.book(SHARED, setup.rows_run(None, len(numbers)))
        split = self._split(setup, whole)
        curves = []
        for name, method in setup.methods.items():
            drawn = _drawn_values(setup, method, self.samples, coalitions, setup.plan.curve_draws)
            all_present = whole
            if method.is_surrogate:
                all_present = _values(setup, method, [0], self.samples, _everybody(setup))[:, 0]
            curves.append(_scored_curve(split, drawn, all_present))
            rows = drawn.mean[..., 0].numel() * drawn.draws * method.fills
            ledger.book(name, setup.rows_run(method, rows))
        return CurveValues(curves)

    def _coalitions(self, setup: Setup) -> Bool[Tensor, "samples sizes players"]:
        """Draw a coalition of each size but the largest for each sample."""
        players = len(setup.subject.evaluator.players)
        coalitions = []
        for number in setup.numbers[self.samples].tolist():
            stream = seeded(setup.subject.seed, "curve", number)
            coalitions.append(draw_coalitions(players, setup.sizes[:-1], stream))
        return torch.stack(coalitions)

    def _split(self, setup: Setup, whole: Float[Tensor, "samples numbers"]) -> Split:
        """Return the score of these samples; squared differences are later divided by the variance of all samples."""
        subject = setup.subject
        if subject.in_nats:
            occurring = subject.classes[setup.numbers].unique()
            own_classes = subject.classes[setup.numbers[self.samples]]
            return ByClass(own_classes, subject.seed, Scale(math.inf), occurring)
        return ByValue(whole, subject.seed, variance=1.0)


def _scored_curve(split: Split, drawn: Drawn, all_present: Float[Tensor, "samples numbers"]) -> MethodCurve:
    """Score the values of coalitions, with all draws and with each group of draws left out."""
    values = torch.cat([drawn.mean, all_present[:, None]], dim=1)
    scores = split.scores(values.transpose(0, 1)).T
    left_out = [split.scores(part.transpose(0, 1)).sum(0) + scores[:, -1] for part in drawn.without]
    without = scores.new_zeros(len(scores), 0)
    if left_out:
        without = torch.stack(left_out, dim=1)
    return MethodCurve(values, scores, without / scores.shape[1])


@dataclass(frozen=True, eq=False)
class GameFigures:
    """The figures of a few samples' own games, of shape (methods, samples, groups, …)."""

    figures: dict[str, Tensor]


@dataclass(frozen=True)
class GamesStep:
    """Evaluate each method's own games."""

    samples: slice

    @staticmethod
    def rows(plan: Plan) -> int:
        """Return the rows of one sample."""
        return plan.own_game_rows

    def measure(self, setup: Setup, ledger: Ledger) -> GameFigures:
        """Evaluate all coalitions of each method's games, or list their interactions."""
        players = setup.subject.evaluator.players
        figures = []
        for name, method in setup.methods.items():
            groups = _groups(setup, method, setup.plan.game_draws)
            leaves = setup.subject.leaves_of(method)
            if leaves is not None and setup.plan.own_from_leaves:
                figures.append(self._of_leaves(setup, method, leaves, groups))
                ledger.book(name, 0)
                continue
            tables = []
            for group in groups:
                fill = method.fill.select(draws=group)
                tables.append(_tabulate(setup, method.evaluator, fill, players, setup.plan.own, self.samples))
            drawn = Drawn.of([table.values.cpu() for table in tables], groups)
            noise = torch.stack([table.noise.cpu() for table in tables]).amax(0)
            figures.append(drawn_game_figures(drawn, noise, setup.tau, method.shares_stand_ins))
            ledger.book(name, setup.rows_run(method, sum(table.evaluations for table in tables)))
        return GameFigures({name: join_methods([figure[name] for figure in figures]) for name in figures[0]})

    def _of_leaves(
        self, setup: Setup, method: Method, leaves: AuditLeaves, groups: tuple[tuple[int, ...], ...]
    ) -> dict[str, Tensor]:
        """Return the figures of the games of all players, from the interactions that the leaves have."""
        terms = []
        for place in range(self.samples.start, self.samples.stop):
            fill = method.fill.select(slice(place, place + 1))
            if isinstance(fill, StandIns):  # as it is, or there would be no leaves
                terms.append(leaves.terms(fill, groups, int(setup.numbers[place])))
        return listed_game_figures(terms, setup.tau, method.shares_stand_ins)


@dataclass(frozen=True, eq=False)
class Strengths:
    """The strengths that R is made of, for a few samples and one draw."""

    samples: slice
    draw: int
    by_state: Float[Tensor, "states samples"]  # the sample itself, noise, and masked by each method
    rounding: Float[Tensor, " samples"]  # of the samples themselves, as a part of the mean over draws


@dataclass(frozen=True)
class RemovalStep:
    """Measure the strengths that R is made of, for one draw."""

    samples: slice
    draw: int

    @staticmethod
    def rows(plan: Plan) -> int:
        """Return the rows of one sample."""
        return plan.removal_rows

    def measure(self, setup: Setup, ledger: Ledger) -> Strengths:
        """Evaluate the games of the samples, of noise and of masked samples against the reference."""
        games = setup.plan.removal
        x = setup.x[: games.samples]
        original = self._strengths(setup, x)
        ledger.book(SHARED, original.rows)
        rounding = original.rounding / games.draws
        noise_inputs = torch.where(setup.presence, x, setup.noise.draw("replacement", self.draw))
        noise = self._strengths(setup, noise_inputs)
        ledger.book(SHARED, noise.rows)
        strengths = [original.strengths, noise.strengths]
        for name, inputs in setup.masked.items():
            masked = self._strengths(setup, inputs[:, self.draw % inputs.shape[1]])
            ledger.book(name, masked.rows)
            strengths.append(masked.strengths)
        return Strengths(self.samples, self.draw, torch.stack(strengths), rounding)

    def _strengths(self, setup: Setup, inputs: Tensor) -> _StrengthsOfInputs:
        """Return Σ|U(S)| over S ≠ ∅ of the games of some inputs."""
        fill = setup.reference.fill(self.draw, inputs)
        subject = setup.subject
        games = setup.plan.removal
        if setup.plan.removal_from_leaves and isinstance(subject.leaves, AuditLeaves) and isinstance(fill, StandIns):
            numbers = setup.numbers[self.samples]
            strengths = subject.leaves.strengths(fill.select(self.samples), numbers)
            growth = _GROWTH**subject.leaves.most_on_a_path
            return _StrengthsOfInputs(strengths, subject.leaves.rounding(numbers) * growth, 0)
        table = _tabulate(setup, subject.evaluator, fill, subject.region, games, self.samples, self.draw)
        return _StrengthsOfInputs(_strengths(table), table.noise.cpu() * _GROWTH**games.players, table.evaluations)


@dataclass(frozen=True, eq=False)
class _StrengthsOfInputs:
    """The strengths of the games of some inputs, their rounding errors, and the rows that they took."""

    strengths: Float[Tensor, " samples"]
    rounding: Float[Tensor, " samples"]
    rows: int


def _strengths(table: Tabulated) -> Float[Tensor, " samples"]:
    """Return Σ|U(S)| over S ≠ ∅; the table becomes that of the effects."""
    return moebius_(table.values)[:, 1:].abs().sum(1).cpu()


Step: TypeAlias = SharedStep | EmptyStep | CurveStep | GamesStep | RemovalStep
Outcome: TypeAlias = SharedValues | EmptyValues | CurveValues | GameFigures | Strengths


def all_steps(plan: Plan, rows_per_step: int) -> list[Step]:
    """Return the steps of an audit, in order."""
    own = plan.own
    games = _blocks(own.samples, GamesStep.rows(plan), rows_per_step, own.players)
    return [
        SharedStep(),
        *(EmptyStep(block) for block in _blocks(plan.empty_samples, EmptyStep.rows(plan), rows_per_step)),
        *(CurveStep(block) for block in _blocks(plan.samples, CurveStep.rows(plan), rows_per_step)),
        *(GamesStep(block) for block in games),
        *removal_steps(plan, rows_per_step),
    ]


def removal_steps(plan: Plan, rows_per_step: int) -> list[Step]:
    """Return the steps that measure R, one draw after another."""
    games = plan.removal
    samples = _blocks(games.samples, RemovalStep.rows(plan), rows_per_step, games.players)
    return [RemovalStep(block, draw) for draw in range(games.draws) for block in samples]


def _blocks(samples: int, rows: int, rows_per_step: int, players: int = 0) -> list[slice]:
    """Split the samples into blocks, one for each step, given the rows of a sample."""
    at_once = max(1, min(rows_per_step // max(1, rows), _VALUES_AT_A_TIME >> players))
    return list(blocks(samples, at_once))


def _nobody(setup: Setup) -> Bool[Tensor, "one players"]:
    return torch.zeros(1, len(setup.subject.evaluator.players), dtype=torch.bool)


def _everybody(setup: Setup) -> Bool[Tensor, "one players"]:
    return torch.ones(1, len(setup.subject.evaluator.players), dtype=torch.bool)


def _whole_values(setup: Setup, samples: slice) -> Float[Tensor, "samples numbers"]:
    """Return the values of whole samples."""
    subject = setup.subject
    numbers = setup.numbers[samples]
    fill = StandIns(setup.x[samples], setup.x[samples, None])
    if isinstance(subject.leaves, AuditLeaves):
        values = subject.leaves.values(fill, _everybody(setup), numbers, subject.measured_readout)
    else:
        values = subject.evaluator.values(fill, _everybody(setup), samples=numbers, readout=subject.every_class)
    return values.double().cpu().reshape(len(numbers), -1)


def _groups(setup: Setup, method: Method, most: int) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of at most ``most`` of a method's draws, in groups."""
    draws = method.fill.draws
    seed = setup.subject.seed
    if draws <= most:
        return draw_groups(draws, seed)
    chosen = torch.randperm(draws, generator=seeded(seed, "draws"))[:most].tolist()
    return tuple(tuple(chosen[number] for number in group) for group in draw_groups(most, seed))


def _drawn_values(setup: Setup, method: Method, samples: slice, coalitions: Tensor, most: int) -> Drawn:
    """Return the values of coalitions by groups of draws."""
    groups = _groups(setup, method, most)
    return Drawn.of([_values(setup, method, group, samples, coalitions) for group in groups], groups)


def _values(
    setup: Setup,
    method: Method,
    draws: Sequence[int],
    samples: slice,
    coalitions: Bool[Tensor, "*own coalitions players"],
) -> Float[Tensor, "samples coalitions numbers"]:
    """Return the values of coalitions, averaged over draws: the log-odds of every class, or the readout."""
    every_class = setup.subject.every_class
    leaves = setup.subject.leaves_of(method)
    numbers = setup.numbers[samples]

    def values_of(fill: Fill) -> Tensor:
        selected = fill.select(samples, draws)
        if leaves is not None and isinstance(selected, StandIns):
            values = leaves.values(selected, coalitions, numbers, setup.subject.measured_readout)
            return values.reshape(*values.shape[:2], -1)
        values = method.evaluator.values(selected, coalitions, samples=numbers, readout=every_class)
        return values.double().cpu().reshape(*values.shape[:2], -1)

    if not method.of_class:
        return values_of(method.fill)
    # If each class has a baseline, the value of a class is computed with that class's baseline. Using the label's
    # baseline for all classes would reveal the label. Classes without a baseline are ruled out.
    by_class = {number: values_of(fill) for number, fill in method.of_class.items()}
    unknown = RULED_OUT if setup.subject.in_nats else 0.0
    values = torch.full_like(next(iter(by_class.values())), unknown)
    for number, class_values in by_class.items():
        values[..., number] = class_values[..., number]
    return values


def _tabulate(
    setup: Setup, evaluator: Evaluator, fill: Fill, players: Players, games: Games, samples: slice, draw: int = 0
) -> Tabulated:
    """Evaluate all coalitions of a few samples, or of games of a few players drawn for each sample."""
    if games.players == len(players):
        return _tabulate_players(setup, evaluator, fill.select(samples), players, setup.numbers[samples])
    tables = []
    for place in range(samples.start, samples.stop):
        sample = slice(place, place + 1)
        stream = seeded(setup.subject.seed, "game", draw, int(setup.numbers[place]))
        drawn = torch.randperm(len(players), generator=stream)[: games.players].sort().values.tolist()
        own_players = players.only(drawn)
        numbers = setup.numbers[sample]
        tables.append(_tabulate_players(setup, evaluator, fill.select(sample), own_players, numbers))
    return Tabulated.join(tables)


def _tabulate_players(setup: Setup, evaluator: Evaluator, fill: Fill, players: Players, numbers: Tensor) -> Tabulated:
    """Evaluate all coalitions of some players, while all other players are present."""
    leaves = setup.subject.leaves
    is_own_model = evaluator.model is setup.subject.evaluator.model
    if not isinstance(leaves, AuditLeaves) or not isinstance(fill, StandIns) or not is_own_model:
        return evaluator.table(fill, samples=numbers, players=players)
    coalitions = coalitions_with_others(enumerate_coalitions(len(players)), players, evaluator.players)
    values = leaves.values(fill, coalitions, numbers, evaluator.readout)
    noise = torch.finfo(torch.float64).eps * leaves.source.leaves.rounding_scale * torch.ones(len(values))
    return Tabulated(values, noise.double(), 0, ())
