"""The search for a baseline in stages: gradient steps and sweeps over values, from several starts.

The default loss uses only steps on new batches, and averages the last quarter of them. The paper's losses also
compare baselines on fixed samples along the way. The result of each stage is saved, so that a search can resume.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from absentia.learning.assessment import Assessment
from absentia.learning.checkpoint import Checkpoint, FinishedStage, SearchState
from absentia.learning.comparer import Comparer
from absentia.learning.descent import AveragedDescent, ComparedDescent, Descent, step_size, stream_of
from absentia.learning.faithful import FaithfulObjective
from absentia.learning.leaf_source import LeafSource
from absentia.learning.level_sweeps import LevelSweeps
from absentia.learning.pace import LearningStep, Pace, StopLearning
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.processes import summed_over_processes
from absentia.learning.search_ends import CONVERGED, EndKind, SearchEnd
from absentia.learning.space import HELD, Baselines, Owners, Space
from absentia.learning.sweeps import MAX_SWEPT, SearchPlan, Sweeps
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.stops import INTERRUPTED, Stop

# Steps between checks, at which the descent is saved, and compared if its loss is one of the paper's.
_STEPS_PER_CHECK = 5

# A descent with comparisons stops after this many checks without an improvement of this share.
_PLATEAU_CHECKS = 20
_PLATEAU_SHARE = 0.005

# Of the time that is left, at most this share is kept for choosing between candidates in the end. They are judged on
# other samples than those on which usual baselines are compared: a row may take this many times as long.
_MOST_RESERVED = 0.5
_LONGER_TO_JUDGE = 1.5

# The maximum number of players whose values are taken from another baseline one by one.
_MOST_CROSSED = 32

# A coordinate whose leverage is at most this share of the loss does not matter.
_NO_LEVERAGE = 1e-9

# Sweeps of each start that the progress bar of the paper's losses counts beside the steps.
_COUNTED_SWEEPS = 2


class Search:
    """A search in progress: the state of its starts, what matters to the loss, and why it ended."""

    def __init__(
        self,
        objective: PaperObjective | FaithfulObjective,
        space: Space,
        plan: SearchPlan,
        limit: TimeLimit,
        callback: Callable[[LearningStep], Any] | None = None,
        *,
        checkpoint: Checkpoint | None = None,
        ended: bool = False,
        share_for_profiles: float = 0.0,
    ) -> None:
        self.objective = objective
        self.space = space
        self.plan = plan
        self.limit = limit
        self.checkpoint = checkpoint
        self.device = objective.evaluator.x.device
        self.row_count = objective.evaluator.task.row_count  # of this search alone
        self.state = self._resumed_state()
        self.pace = Pace(limit, self.device, objective.rows_per_step, callback, ended=ended)
        self.comparer = Comparer(objective, self.pace, self.state)
        self.leverage = torch.full((len(space),), -torch.inf).double()  # the most that each coordinate ever mattered
        self.sweeps = Sweeps(self.comparer, space, plan, self.state, self.leverage)
        self.level_sweeps = self._make_level_sweeps()
        self.ends: dict[str, Baselines] = {}  # where each start of the default loss is now
        self.finals: dict[str, float] = {}  # the penalty at the end of each start
        self.finished = CONVERGED  # how the search ends unless it is unfinished
        self.ended_by_user = False
        self.share_for_profiles = share_for_profiles  # of the time that is left, reserved if there is a limit

    def _make_level_sweeps(self) -> LevelSweeps | None:
        """Return sweeps over all values that trees tell apart, if the loss is computed from sums over leaves."""
        objective = self.objective
        if not isinstance(objective, FaithfulObjective) or not isinstance(objective.source, LeafSource):
            return None
        if not objective.source.sums_are_exact:
            return None
        return LevelSweeps(self.comparer, objective, objective.source, self.space, self.state, self.leverage)

    def _resumed_state(self) -> SearchState:
        """Return the state that the checkpoint holds, or a fresh one."""
        saved = None if self.checkpoint is None else self.checkpoint.read()
        if saved is None:
            return SearchState()
        self.objective.evaluations = saved.evaluations
        self.row_count.add(saved.rows_seen)
        return saved

    def _save(self) -> None:
        """Save the state to the checkpoint, if there is one."""
        if self.checkpoint is not None:
            self.state.evaluations = self.objective.evaluations
            self.state.rows_seen = self.row_count.rows
            self.checkpoint.write(self.state)

    @property
    def converged(self) -> bool:
        """Whether the search did all that it set out to do."""
        return self.state.unfinished is None

    @property
    def end(self) -> SearchEnd:
        """Why the search ended."""
        return self.state.unfinished or self.finished

    # Stages

    def _run_stage(self, stage: str, work: Callable[[], Baselines]) -> Baselines:
        """Do the work of a stage, or return its result from before an interruption."""
        if stage not in self.state.finished:
            baseline = work()
            self.state.descent = None
            self.state.finished[stage] = FinishedStage(baseline, self.leverage.clone())
            self._save()
        finished = self.state.finished[stage]
        torch.maximum(self.leverage, finished.leverage, out=self.leverage)
        return finished.baseline

    def _note_stop(self, error: KeyboardInterrupt | StopLearning | OutOfTime) -> Stop:
        """Note whether the user ended the search, and return the reason."""
        stop = INTERRUPTED if isinstance(error, KeyboardInterrupt) else error.stop
        self.ended_by_user = stop.by_user
        return stop

    def _steps(self, descent: Descent, stage: str, baseline: Baselines, steps: int, rate: float) -> Iterator[float]:
        """Take the remaining steps, whose size falls along a cosine, and yield the loss of each."""
        stream = stream_of(stage)
        while descent.step < steps:
            place = self.space.place(descent.point, baseline)
            slope, loss = self.objective.gradient(place, stream, descent.step)
            slope = self.space.gather(summed_over_processes(slope, self.device))
            slope = slope * (self.space.high - self.space.low)
            descent.advance(slope, step_size(rate, descent.step, steps))
            yield loss

    def _note_gradients(self, descent: Descent) -> None:
        """Note how large the gradient of each parameter was in a descent."""
        parameters = self.leverage[: len(self.space.low)]
        torch.maximum(parameters, descent.square.amax(0).sqrt(), out=parameters)

    # The default loss

    def search_faithful(
        self, starts: dict[str, Tensor], usual: dict[str, Tensor], rows_to_judge: int
    ) -> dict[str, Baselines]:
        """Follow the gradient of the default loss from every start, sweep if requested, and return the results.

        Without a start, the search starts at the best of the usual baselines. Values of usual baselines are adopted
        where they are better. Ctrl-C, the time limit and the callback end the search with the best values so far.
        Some time is reserved to evaluate the ``rows_to_judge`` after the search.
        """
        steps_of_start = self.plan.steps
        if len(self.sweeps.coordinates):
            steps_of_start += self.plan.steps_again
        self.pace.plan(max(1, len(starts)) * steps_of_start)
        with self.pace.bar:
            try:
                losses = self._compare_usual(usual, rows_to_judge)
                best = min(losses, key=losses.__getitem__)
                for number, (name, baseline) in enumerate((starts or {best: usual[best]}).items()):
                    self._search_faithful_from(number, name, baseline, usual[best])
            except (KeyboardInterrupt, StopLearning, OutOfTime) as error:
                self.state.unfinished = self._how_far(self._note_stop(error))
                if self.ends and self.plan.steps == 0 and self.comparer.best is not None:
                    last_start = list(self.ends)[-1]
                    self.ends[last_start] = self.comparer.best.baseline
        if self.plan.steps:
            self.finished = SearchEnd(EndKind.STEPS_DONE, steps=self.pace.done, rows=self.objective.rows_per_step)
        return self.ends

    def _search_faithful_from(self, number: int, name: str, baseline: Baselines, usual: Baselines) -> None:
        """Do all stages from one start."""
        plan = self.plan
        ends = self.ends
        ends[name] = baseline
        first = f"{number}: steps"
        ends[name] = self._run_stage(first, lambda: self._follow(first, name, plan.steps, plan.rate))
        if len(self.sweeps.coordinates):
            sweeps = self.sweeps if self.level_sweeps is None else self.level_sweeps
            ends[name] = self._run_stage(f"{number}: sweep", lambda: sweeps.sweep_while_it_helps(ends[name]))
            again = f"{number}: again"
            ends[name] = self._run_stage(again, lambda: self._follow(again, name, plan.steps_again, plan.rate_again))
        if len(self.objective.evaluator.players) <= _MOST_CROSSED:
            ends[name] = self._run_stage(f"{number}: cross", lambda: self.sweeps.cross(ends[name], usual))

    def _follow(self, stage: str, name: str, steps: int, rate: float) -> Baselines:
        """Take steps on fresh batches; return the mean of the last quarter of them."""
        baseline = self.ends[name]
        if steps == 0 or len(self.space.low) == 0:
            return baseline
        averaged = self.state.descent
        if not isinstance(averaged, AveragedDescent) or averaged.stage != stage:
            averaged = AveragedDescent(stage, Descent.start_at(self.space.point(baseline)))
            self.state.descent = averaged
        for loss in self._steps(averaged.descent, stage, baseline, steps, rate):
            averaged.note_point(steps)
            self.ends[name] = averaged.baseline(self.space, baseline)  # in case that the search ends here
            smoothed = self.comparer.remember_smoothed(loss)
            if averaged.descent.step % _STEPS_PER_CHECK == 0:
                self._save()
            self._count_step(smoothed)
        self._note_gradients(averaged.descent)
        return self.ends[name]

    def _compare_usual(self, usual: dict[str, Baselines], rows_to_judge: int) -> dict[str, float]:
        """Compute the losses of usual baselines, and reserve the time needed to judge candidates at the end."""
        began = self.limit.spent
        evaluations_before = self.objective.evaluations
        self._reserve_time(math.inf)
        losses = {name: self.comparer.mean_loss(baseline) for name, baseline in usual.items()}
        seconds_per_row = (self.limit.spent - began) / max(1, self.objective.evaluations - evaluations_before)
        to_judge = _LONGER_TO_JUDGE * rows_to_judge * seconds_per_row
        if self.limit.is_set:
            to_judge += self.share_for_profiles * max(0.0, self.limit.left)
        self._reserve_time(to_judge)
        return losses

    def _reserve_time(self, seconds: float) -> None:
        """Reserve this much time for the work after the search, but not all of the remaining time."""
        if self.limit.is_set:
            self.limit.reserve = min(seconds, _MOST_RESERVED * max(0.0, self.limit.left))

    def _count_step(self, loss: float) -> None:
        """Show that a step is done, call the callback, and check the time."""
        self.pace.count_step(loss)
        self.comparer.check_time()

    def _how_far(self, stop: Stop) -> SearchEnd:
        """Return why the search ended, and how far it came."""
        if self.pace.planned:
            return SearchEnd(EndKind.CUT_IN_STEPS, stop, steps=self.pace.done, planned=self.pace.planned)
        if self.plan.gradient:
            return SearchEnd(EndKind.CUT_IN_VALUES, stop)
        return SearchEnd(EndKind.CUT_WITHOUT_GRADIENT, stop)

    # The paper's losses

    def search_paper(self, starts: dict[str, Tensor], usual: dict[str, Tensor]) -> Assessment:
        """Search from every start and, with restarts, from the best usual baseline if it is lower than their ends.

        Ctrl-C ends the search with the best baseline so far.
        """
        steps_of_start = self.plan.steps + self.plan.steps_again + _COUNTED_SWEEPS
        searches = len(starts) + int(self.plan.restart)
        self.pace.plan(searches * steps_of_start)
        with self.pace.bar:
            try:
                return self._search_paper_from_all(starts, usual)
            except (KeyboardInterrupt, StopLearning, OutOfTime) as error:
                if self.comparer.best is None:
                    raise  # before anything was evaluated
                self.state.unfinished = SearchEnd(EndKind.CUT_IN_SEARCH, self._note_stop(error))
                return self.comparer.best

    def _search_paper_from_all(self, starts: dict[str, Tensor], usual: dict[str, Tensor]) -> Assessment:
        """Search from every start, and from the best usual baseline if that is worthwhile."""
        (first_name, first_start), *other_starts = starts.items()
        self.comparer.losses(first_start)  # there is something to return from now on
        best, usual_losses = self._best_usual(usual)
        end = self._search_paper_from(0, first_name, first_start)  # the best of where the starts ended
        for number, (name, baseline) in enumerate(other_starts, start=1):
            end = self._search_paper_from(number, name, baseline).or_better(end)
        if usual_losses is not None and bool((usual_losses < end.losses).any()):
            end = self._search_paper_from(len(starts), f"{best} (tried)", usual[best]).or_better(end)
        return end

    def _best_usual(self, usual: dict[str, Tensor]) -> tuple[str, Owners | None]:
        """Return the best of the usual baselines by rough losses, and its losses; None without a restart."""
        if not self.plan.restart:
            return "", None
        rough_losses = {name: self.comparer.rough_loss(baseline) for name, baseline in usual.items()}
        best = min(rough_losses, key=rough_losses.__getitem__)
        return best, self.comparer.losses(usual[best])

    def _search_paper_from(self, number: int, name: str, start: Baselines) -> Assessment:
        """Follow the gradient, sweep as long as it helps, follow it again, refine, and return the result."""
        plan = self.plan
        sweeps = self.sweeps
        descent = f"{number}: descent"
        polish = f"{number}: polish"
        descended = self._run_stage(descent, lambda: self._descend(descent, start, plan.steps, plan.rate))
        swept = self._run_stage(f"{number}: sweep", lambda: sweeps.sweep_while_it_helps(descended))
        loss_before = self.comparer.mean_loss(swept)
        polished = self._run_stage(polish, lambda: self._descend(polish, swept, plan.steps_again, plan.rate_again))
        if self.comparer.mean_loss(polished) < loss_before * (1 - _PLATEAU_SHARE):
            swept_again = self._run_stage(f"{number}: last sweep", lambda: sweeps.sweep_while_it_helps(polished))
        else:
            swept_again = polished
        end = self._run_stage(f"{number}: closing in", lambda: sweeps.close_in(swept_again))
        assessment = list(self.objective.running_assessments(end))[-1]
        self.finals[name] = float(assessment.penalties.mean())
        return assessment

    def _descend(self, stage: str, baseline: Baselines, steps: int, rate: float) -> Baselines:
        """Take steps and compare every few of them; return the best baseline of all checks."""
        if steps == 0 or len(self.space.low) == 0:
            return baseline
        compared = self.state.descent
        if not isinstance(compared, ComparedDescent) or compared.stage != stage:
            compared = ComparedDescent(stage, Descent.start_at(self.space.point(baseline)), baseline)
            self.state.descent = compared
        best_losses = self.comparer.losses(compared.best)
        if compared.stalled < _PLATEAU_CHECKS:
            for _ in self._steps(compared.descent, stage, baseline, steps, rate):
                self._count_step(float(best_losses.mean()))
                if compared.descent.step % _STEPS_PER_CHECK == 0 or compared.descent.step == steps:
                    best_losses = self._check_descent(compared, baseline, best_losses)
                    self._save()
                    if compared.stalled >= _PLATEAU_CHECKS:
                        break
        self._note_gradients(compared.descent)
        return compared.best

    def _check_descent(self, compared: ComparedDescent, start: Baselines, best_losses: Owners) -> Owners:
        """Compare the point of a descent with its best one; return the losses of the better one."""
        baseline = self.space.place(compared.descent.point, start)
        losses = self.comparer.losses(baseline)
        if bool((losses < best_losses * (1 - _PLATEAU_SHARE)).any()):
            compared.stalled = 0
        else:
            compared.stalled += 1
        compared.best = torch.where((losses < best_losses)[:, None], baseline, compared.best)
        return torch.minimum(losses, best_losses)

    # After the search

    def seems_idle(self, losses: Owners) -> Bool[Tensor, " players"]:
        """Return which players have free values, none of which changed the loss during the search.

        A gradient of 0 says nothing about values further away: see `profile_values`.
        """
        players = self.objective.evaluator.players
        space = self.space
        idle = (self.leverage >= 0) & (self.leverage <= _NO_LEVERAGE * float(losses.abs().max()))
        idle[: len(space.low)] &= space.high > space.low  # constants are not free
        moved = space.coordinate != HELD
        labels = players.labels.flatten()[moved]
        idle_entries = idle[space.coordinate[moved]]
        unused = set(labels[idle_entries].tolist()) - set(labels[~idle_entries].tolist())
        return torch.tensor([player in unused for player in range(len(players))])

    def was_swept(self) -> bool:
        """Return whether other values of all coordinates were tried, so that leverage tells what matters."""
        if self.level_sweeps is not None:
            return True
        return 0 < len(self.sweeps.coordinates) <= MAX_SWEPT and len(self.sweeps.coordinates) == len(self.space)
