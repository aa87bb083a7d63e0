"""The setup of an audit: its plan, its samples, and what replaces absent players in R."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from absentia.absences import Absence, BringsModel, Fill, StandIns
from absentia.auditing.audit_leaves import AuditLeaves
from absentia.auditing.plan import MethodRows, Plan
from absentia.auditing.subject import Method, Subject, errors_about
from absentia.auditing.verdict_text import describe_games
from absentia.budgets import MINUTE
from absentia.data import DataRange, Rows, blocks, check_number, seeded, white_noise
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator
from absentia.evaluation.row_times import time_values
from absentia.games import MAX_PLAYERS
from absentia.learning import LearnedBaseline
from absentia.models.arrays import NumpyModel
from absentia.players import ALWAYS_PRESENT
from absentia.runtime.cost import affordable_rows
from absentia.runtime.row_count import RowCount
from absentia.runtime.workers import worker_count

# The number of operations that an audit may take by default: up to a minute on two cores.
_OPERATIONS = 3e11
# The number of rows that an audit may evaluate however many operations they take.
_FEW_ROWS = 2**15
# If they take longer than this, in seconds, the rows of a minute are evaluated instead.
_SEVERAL_MINUTES = 240.0
# Masked samples are made for at most this many entries at a time.
_ENTRIES_AT_A_TIME = 2**24


@dataclass(frozen=True, eq=False)
class WhiteNoise:
    """White noise in the range of the data, drawn separately for every sample on which R is measured."""

    data_range: DataRange
    x: Rows
    seed: int

    def draw(self, stream: str, number: int) -> Shaped[Tensor, "samples *entries"]:
        """Draw noise from a stream of random numbers."""
        return white_noise(self.data_range, self.x, seeded(self.seed, stream, number))

    def fill(self, draw: int, present: Rows) -> Fill:
        """Return the noise of a draw as stand-ins."""
        return StandIns(present, self.draw("reference", draw)[:, None])


@dataclass(frozen=True, eq=False)
class FixedReference:
    """The stand-ins of the original samples, one draw after another. They do not depend on the coalition.

    A sample, its masked states and its noise are therefore all measured against the same point.
    """

    stand_ins: StandIns

    def fill(self, draw: int, present: Rows) -> Fill:
        """Return the stand-ins of a draw."""
        return StandIns(present, self.stand_ins.values[:, draw % self.stand_ins.draws, None])


@dataclass(frozen=True, eq=False)
class BoundReference:
    """An absence whose stand-ins depend on the coalition, bound to the inputs that are compared."""

    absence: Absence
    draws: int
    seed: int

    def fill(self, draw: int, present: Rows) -> Fill:
        """Bind the absence to the inputs, and return one of its draws."""
        fill = few_draws(self.absence.bind(present), self.draws, self.seed)
        return fill.select(draws=[draw % fill.draws])


# What replaces absent players in the games of R.
Reference: TypeAlias = WhiteNoise | FixedReference | BoundReference


def few_draws(fill: Fill, most: int, seed: int) -> Fill:
    """Return the fill restricted to at most ``most`` of its draws, chosen at random."""
    if fill.draws <= most:
        return fill
    chosen = torch.randperm(fill.draws, generator=seeded(seed, "draws"))[:most]
    return fill.select(draws=chosen.sort().values.tolist())


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything that the steps of an audit need."""

    subject: Subject
    plan: Plan
    methods: Mapping[str, Method]  # bound to the audited samples
    numbers: Int[Tensor, " audited"]  # of the audited samples among all
    x: Rows  # the audited samples
    masked: Mapping[str, Tensor]  # the samples of R by each method that masks the model's input
    noise: WhiteNoise
    reference: Reference
    sizes: Int[Tensor, " sizes"]  # of the coalitions of the masking curve
    tau: float | None = None  # the size above which an effect is salient
    rows_by_time: int | None = None  # the rows that the plan was given, if the time that the model takes decided

    @classmethod
    def of(
        cls,
        subject: Subject,
        absences: Any,
        draws: int,
        max_players: int,
        evaluations: int | None = None,
        *,
        by_time: bool = False,
    ) -> Setup:
        """Bind the absences, plan the audit and choose its samples, with white noise as the reference.

        ``by_time`` makes the plan smaller if the model would take several minutes.
        """
        methods = subject.bind_methods(absences)
        whole = _whole_plan(subject, methods, draws, max_players)
        plan = _plan_within(whole, subject.evaluator, evaluations)
        rows_by_time = None
        if by_time:
            rows_by_time = _rows_by_time(whole, subject.evaluator, plan)
        if rows_by_time is not None:
            plan = whole.within(rows_by_time)
        numbers = torch.arange(subject.evaluator.samples)
        if plan.fewest_samples < len(numbers):
            numbers = torch.randperm(len(numbers), generator=seeded(subject.seed, "samples"))[: plan.empty_samples]
            chosen = numbers.to(subject.evaluator.x.device)
            methods = {name: method.select(chosen) for name, method in methods.items()}
        x = subject.evaluator.x[numbers]
        noise = WhiteNoise(subject.data_range, x[: plan.removal.samples], subject.seed)
        sizes = torch.linspace(0, len(subject.evaluator.players), plan.sizes + 1).round().long()
        masked = _mask_region(subject, plan, methods)
        return cls(
            subject=subject,
            plan=plan,
            methods=methods,
            numbers=numbers,
            x=x,
            masked=masked,
            noise=noise,
            reference=noise,
            sizes=sizes,
            rows_by_time=rows_by_time,
        )

    def with_count(self, row_count: RowCount) -> Setup:
        """Return the same setup with another count of the rows of all models, such as that of a worker."""
        subject = replace(self.subject, evaluator=self.subject.evaluator.with_count(row_count))
        methods = {
            name: replace(method, evaluator=method.evaluator.with_count(row_count))
            for name, method in self.methods.items()
        }
        return replace(self, subject=subject, methods=methods)

    @property
    def surrogates(self) -> tuple[str, ...]:
        """The methods that explain another model."""
        return tuple(name for name, method in self.methods.items() if method.is_surrogate)

    @property
    def presence(self) -> Tensor:
        """Which entries are present while the region is masked."""
        return _presence(self.subject)

    def rows_run(self, method: Method | None, rows: int) -> int:
        """Return how many rows the model is run on for values of a method; None stands for whole samples."""
        if method is None:
            return 0 if isinstance(self.subject.leaves, AuditLeaves) else rows
        return rows if self.subject.leaves_of(method) is None else 0

    def _notes_on_leaves(self) -> list[str]:
        """Say which values follow from leaves, or why a model of trees is run."""
        leaves = self.subject.leaves
        if not isinstance(leaves, AuditLeaves):
            return [leaves.note] if leaves.note else []
        notes = [leaves.note]
        others = [name for name, method in self.methods.items() if self.subject.leaves_of(method) is None]
        if others:
            names = ", ".join(others)
            notes.append(f"For {names} the model is run, because what stands in depends on the coalition.")
        return notes

    def make_reference(self, reference: Any) -> Reference:
        """Return what replaces absent players: white noise, or the draws of an absence one after another."""
        if isinstance(reference, str) and reference == "noise":
            return self.noise
        subject = self.subject
        games = self.plan.removal
        with errors_about("The reference cannot be used"):
            task = subject.evaluator.task
            absence = task.of_classes(subject.make_absence(reference))
            if isinstance(absence, BringsModel):
                raise AbsentiaError("It brings its own model and masks no input.")
            numbers = self.numbers[: games.samples].to(self.x.device)
            fill = few_draws(task.bind(absence).select(numbers), games.draws, subject.seed)
        if isinstance(fill, StandIns):
            return FixedReference(fill)
        return BoundReference(absence, games.draws, subject.seed)

    def notes(self) -> list[str]:
        """Note where figures are measured on only some of the samples, players or draws."""
        plan = self.plan
        evaluator = self.subject.evaluator
        notes = []
        notes += self._notes_on_leaves()
        games = describe_games(plan.own.samples, plan.empty_samples, plan.own.players, len(evaluator.players))
        if games:
            notes.append(f"Length is measured {games}. Pass evaluations=… for more.")
        for name, method in self.methods.items():
            for figure, most in (("score", plan.curve_draws), ("length", plan.game_draws)):
                if method.fill.draws > most:
                    drawn = f"{most} of its {method.fill.draws:,} draws"
                    notes.append(f"The {figure} of {name} is measured with {drawn}. Pass evaluations=… for more.")
        if self.rows_by_time is not None:
            notes.append(
                f"The model takes long, so at most {self.rows_by_time:,} rows are evaluated. "
                f"audit(…, evaluations={self.rows_by_time}) repeats this; a larger number is more precise."
            )
        if self.subject.every_class is not None and evaluator.task.classes is None:
            notes.append("No classes were given: they are those that the model predicts for whole samples.")
        if not self.subject.data_were_passed:
            notes.append("The data's range was taken from the audited samples: pass data=… to use all your data.")
        for name, method in self.methods.items():
            if isinstance(method.absence, LearnedBaseline):
                notes += [f"{name}: {note}" for note in method.absence.notes_on(evaluator.task.readout_note)]
        return notes


def check_settings(draws: int, max_players: int) -> None:
    """Raise an error if a setting of the audit is out of range."""
    check_number("draws", draws, 1)
    check_number("max_players", max_players, 1, MAX_PLAYERS)


def _whole_plan(subject: Subject, methods: Mapping[str, Method], draws: int, max_players: int) -> Plan:
    """Plan the work without a budget."""
    evaluator = subject.evaluator
    rows_of_methods = [
        MethodRows(method.fill.draws, method.fills, subject.has_one_empty_value(method))
        for method in methods.values()
    ]
    maskers = [method for method in methods.values() if not method.is_surrogate]
    plan = Plan.of(
        samples=evaluator.samples,
        players=len(evaluator.players),
        region=len(subject.region),
        draws=draws,
        most=max_players,
        methods=rows_of_methods,
        states=2 + len(maskers),
    )
    has_exact_games = isinstance(subject.leaves, AuditLeaves) and subject.leaves.has_exact_games
    if has_exact_games and all(subject.leaves_of(method) is not None for method in methods.values()):
        return plan.from_leaves(len(evaluator.players), len(subject.region))
    return plan


def _plan_within(whole: Plan, evaluator: Evaluator, evaluations: int | None) -> Plan:
    """Plan the work within the given number of rows, or within the default for a model of this size."""
    if evaluations is not None:
        plan = whole.within(evaluations)
        if plan.rows > evaluations:
            raise wrong("evaluations", f"be at least {plan.rows:,} for these absences", evaluations)
        return plan
    if whole.rows <= _FEW_ROWS:
        return whole  # so few that counting the model's operations is not worthwhile
    evaluator.limit.check()
    rows = affordable_rows(evaluator.model, evaluator.x, _OPERATIONS, evaluator.task.row_count)
    return whole.within(max(rows, _FEW_ROWS))


def _rows_by_time(whole: Plan, evaluator: Evaluator, plan: Plan) -> int | None:
    """Return how many rows fit a minute if those of the plan take several; None if they do not.

    It is a power of two, or the rows of the smallest plan.
    """
    as_they_are = StandIns(evaluator.x[:1], evaluator.x[:1, None])
    row_time = time_values(evaluator, as_they_are, plan.rows, as_table=False, short_work=_SEVERAL_MINUTES)
    seconds_per_row = row_time.seconds_per_row(evaluator.batch_size) / worker_count()
    if plan.rows * seconds_per_row <= _SEVERAL_MINUTES:
        return None
    rows = 2 ** math.floor(math.log2(max(1.0, MINUTE / seconds_per_row)))
    while rows < plan.rows and whole.within(rows).rows > rows:  # the smallest plan, which needs more
        rows = whole.within(rows).rows
    return rows if rows < plan.rows else None


def _presence(subject: Subject) -> Tensor:
    return subject.region.labels.to(subject.evaluator.x.device) == ALWAYS_PRESENT


def _mask_region(subject: Subject, plan: Plan, methods: Mapping[str, Method]) -> dict[str, Tensor]:
    """Mask the region of the samples with each method that masks the model's input, for R."""
    masked = {}
    may_have_gaps = isinstance(subject.evaluator.model, NumpyModel)
    for name, method in methods.items():
        if not method.is_surrogate:
            with errors_about(f"{name} cannot be audited"):
                fill = few_draws(method.fill, plan.removal.draws, subject.seed)
                masked[name] = _masked_samples(fill, _presence(subject), plan.removal.samples, may_have_gaps)
    return masked


def _masked_samples(
    fill: Fill, presence: Tensor, samples: int, may_have_gaps: bool
) -> Shaped[Tensor, "samples draws *entries"]:
    """Mask the first samples with all draws of a fill, a few samples at a time."""
    at_once = max(1, _ENTRIES_AT_A_TIME // (presence.numel() * fill.draws))
    parts = [fill(block, presence[None, None])[:, 0] for block in blocks(samples, at_once)]
    masked = torch.cat(parts)
    accepted = torch.isfinite(masked)
    if may_have_gaps:
        accepted |= masked.isnan()
    if not bool(accepted.all()):
        raise AbsentiaError("It fills absent entries with NaN or infinity.")
    return masked
