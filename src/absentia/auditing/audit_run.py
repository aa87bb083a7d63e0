"""The run of an audit: its steps, taken in this process or by workers until they are done or time is up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch

from absentia.absences.protocol import describe_absence
from absentia.auditing.audit_record import AuditRecord, Cost
from absentia.auditing.audit_setup import Setup
from absentia.auditing.measuring import SHARED, EmptyValues, Ledger, Outcome, Step, all_steps
from absentia.auditing.summaries import Summary
from absentia.budgets import LONG, MINUTE
from absentia.runtime.batches import BatchRunner
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import announce, progress
from absentia.runtime.row_count import RowCount
from absentia.runtime.stops import INTERRUPTED, Stop
from absentia.runtime.threads import quickest_threads
from absentia.runtime.workers import spread, worker_count
from absentia.text import duration

# Work is split into about this many steps. A step that a time limit cuts off is lost.
_STEPS = 64
# What to do if the time limit is too short to measure anything.
NO_TIME = "Or audit fewer absences, or a faster model."


@dataclass(frozen=True, eq=False)
class StepResult:
    """What a step returned, and what it cost each method."""

    outcome: Outcome
    costs: list[tuple[str, Cost]]


def measure_step(setup: Setup, step: Step, row_count: RowCount) -> StepResult | None:
    """Take one step, and count its rows; return None if the time limit cuts it off."""
    setup = setup.with_count(row_count)
    ledger = Ledger()
    try:
        setup.subject.evaluator.limit.check()
        outcome = step.measure(setup, ledger)
    except OutOfTime:
        return None
    return StepResult(outcome, ledger.entries)


@final
class Run:
    """One run of an audit: what has been measured so far, and what it cost."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.evaluator = setup.subject.evaluator
        self.outcomes: list[Outcome] = []
        self.costs = dict.fromkeys((*setup.methods, SHARED), Cost())
        # A step evaluates at most this many rows, fewer if time is short, but always those of at least one sample.
        self.rows_per_step = max(setup.plan.rows // _STEPS, 4 * self.evaluator.batch_size)

    @property
    def summary(self) -> Summary:
        """The measurements, from which the figures are computed."""
        return Summary(self.setup, self.outcomes)

    @property
    def _measured_any(self) -> bool:
        return any(isinstance(outcome, EmptyValues) for outcome in self.outcomes)

    def work(self) -> Stop | None:
        """Take all steps; return why they ended early, if they did."""
        limit = self.evaluator.limit
        plan = self.setup.plan
        try:
            stop = self._take_all(limit)
        except OutOfTime as error:
            stop = error.stop
        except KeyboardInterrupt:
            if not self._measured_any:
                raise
            stop = INTERRUPTED
        if not self._measured_any:
            rows_needed = plan.empty_rows + plan.samples * plan.curve_rows
            raise limit.too_short(rows_needed, NO_TIME)
        self.evaluator.check_still_same()
        return stop

    def _take_all(self, limit: TimeLimit) -> Stop | None:
        """Time the model, and take all steps with the quickest number of threads."""
        plan = self.setup.plan
        rows = self._rows_to_time(limit)
        batch = self.setup.x[torch.arange(rows) % len(self.setup.x)]

        def run_once() -> None:
            limit.check()
            with self.evaluator.task.evaluation_mode():
                self.evaluator.task.row_count.add(len(batch))
                self.evaluator.model(batch.clone())

        with quickest_threads(run_once, batch.device, limit):
            began = time.perf_counter()
            run_once()
            seconds_per_row = (time.perf_counter() - began) / rows
            self._shorten_steps(rows, seconds_per_row, limit)
            seconds = seconds_per_row * plan.rows
            _announce(seconds / worker_count(), plan.rows, limit)
            with progress(plan.rows, f"auditing, about {seconds:.0f} s", "row") as bar:
                return self.take(all_steps(plan, self.rows_per_step), bar)

    def _rows_to_time(self, limit: TimeLimit) -> int:
        """Return how many rows to time the model with: under a time limit, at most the current size of a batch."""
        x = self.setup.x
        most = max(1, min(self.evaluator.batch_size, self.setup.plan.rows // (4 * _STEPS)))
        runner = BatchRunner(self.evaluator.model, most, limit, row_count=self.evaluator.task.row_count)
        rows = limit.rows_of_a_batch(most)
        while rows < most:
            with self.evaluator.task.evaluation_mode():
                runner(x[torch.arange(rows) % len(x)])
            larger = limit.rows_of_a_batch(most)
            if larger == rows:
                break
            rows = larger
        return rows

    def _shorten_steps(self, timed_rows: int, seconds_per_row: float, limit: TimeLimit) -> None:
        """Make steps small if time is short, because a step that is cut off is lost."""
        if not limit.is_set:
            return
        affordable = limit.left / (_STEPS * seconds_per_row)
        # A step runs the model once for each method. Smaller batches than the timed one would be slower per row.
        least = timed_rows * (1 + len(self.setup.methods))
        self.rows_per_step = min(self.rows_per_step, max(least, int(affordable)))

    def take(self, steps: Sequence[Step], bar: Any) -> Stop | None:
        """Take the steps, here or at workers, and keep their results; return why they ended early, if they did."""
        stop: Stop | None = None
        row_count = self.evaluator.task.row_count
        for result in spread(partial(measure_step, self.setup), steps, "auditing", row_count):
            if result is None:
                stop = self.evaluator.limit.stop
            if result is None or stop is not None:
                continue  # only results before the first that is cut off count; the remaining steps end at once
            self.outcomes.append(result.outcome)
            for name, cost in result.costs:
                self.costs[name] += cost
                if cost.evaluations:  # values from leaves take none
                    bar.update(cost.evaluations)
        return stop


def _announce(seconds: float, rows: int, limit: TimeLimit) -> None:
    """Say how long an audit will take, if that is long."""
    if seconds < LONG:
        return
    sentence = f"auditing takes about {duration(seconds)} by {rows:,} rows"
    if seconds > limit.left:
        sentence += f"; the limit of {limit.seconds:g} s ends it with what is measured by then"
    elif seconds > MINUTE:
        sentence += "; evaluations=… or seconds=… make it shorter"
    announce(f"{sentence}.")


def make_record(setup: Setup, costs: dict[str, Cost], notes: Sequence[str], **more: Any) -> AuditRecord:
    """Return the record of an audit."""
    subject = setup.subject
    games = setup.plan.removal
    return AuditRecord(
        readout_note=subject.evaluator.task.readout_note,
        samples=len(setup.numbers),
        draws=games.draws,
        exact=games.players == len(subject.region),
        region=subject.region.names,
        seed=subject.seed,
        costs={name: costs[name] for name in setup.methods},
        shared_cost=costs[SHARED],
        rows_seen=subject.evaluator.task.row_count.rows,
        notes=tuple(notes),
        game_players=games.players,
        absences={name: describe_absence(method.absence) for name, method in setup.methods.items()},
        given=subject.evaluator.samples,
        surrogates=setup.surrogates,
        **more,
    )
