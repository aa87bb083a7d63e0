"""The search for a baseline: steps along the gradient, and sweeps over candidate values, from several starts.

The default loss is followed by steps on fresh batches alone, and the last quarter of them is averaged. The paper's
losses are compared on fixed samples on the way. Sweeps try other values of one coordinate at a time: of categories,
of models without a gradient, and to polish what the gradient found.
"""

import hashlib
import logging
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.optim.adam import adam

from absentia.data import seeded
from absentia.errors import AbsentiaError, wrong
from absentia.learning.assessment import Assessment
from absentia.learning.faithful import FaithfulObjective
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Plan
from absentia.learning.processes import decided_by_first, is_first, summed_over_processes
from absentia.learning.sample_draws import equally_weighted
from absentia.learning.space import HELD, Baselines, Owners, Space
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import progress
from absentia.storage import read_tensors, write_tensors

ENDED_BY_USER = ("interrupted", "the callback")  # how the reason to stop begins
_CONVERGED = "no other value of a single coordinate lowers the loss by 0.1 %"
_PLATEAU_CHECKS, _PLATEAU_SHARE, _STEPS_PER_CHECK = 20, 0.005, 5  # descent stops without such a gain for long
# Of the time that is left, at most this share is kept for choosing between candidates in the end. They are judged on
# other samples than those on which usual baselines are compared: a row may take this many times as long.
_MOST_RESERVED = 0.5
_LONGER_TO_JUDGE = 1.5
MOST_CROSSED = 32  # players whose values are taken over from another baseline one by one
MAX_SWEPT, MAX_SWEEPS = 256, 14  # coordinates, of each of which a sweep tries about ten values; and sweeps
# Shares of the range that a sweep tries to both sides: first and last ones without a gradient, and those after it.
_FIRST_RADIUS, _LAST_RADIUS, _CLOSE_RADII = 0.15, 0.003, (0.016, 0.008, 0.004, 0.002)
# A candidate is dropped if its loss on the first part, or the first two, of the samples is this many times the best.
_DROPPED, _DROPPED_IF_CLOSE = (1.25, 1.1, torch.inf), (1.01, 1.0, torch.inf)
# Candidates whose loss is within this share of the best are close calls: at most this many, or this many if exact.
_CLOSE_CALL, _MOST_CALLS, _MOST_EXACT = 0.02, 64, 16
# Close calls, and true ties, are judged on all samples if that takes at most this many times a comparison's rows.
_TIMES, _TIMES_FOR_TIES = 8, 32
_DRAWN, _DRAWN_CUBE = 32, 4  # coalitions, the same for all samples, if not all can be evaluated; their sub-cubes
_FEW = 256  # samples that show whether the drawn coalitions tell anything
_ROUNDING, _ROUNDINGS = 1e-10, 8  # share, or roundings of the model's type, by which equal losses may differ
_SAME_MODEL = 1e-4  # share by which values of one model may differ, because threads and batches change last digits


class LearningStep(NamedTuple):
    """What a callback is told after each step of learning."""

    step: int
    steps: int  # planned in all
    loss: float
    seconds: float  # since the beginning
    seconds_left: float  # until the planned steps are done


class StopLearning(Exception):  # noqa: N818 - no error
    """The time is up, or the callback ends the search: its best values so far are the result."""


class Run:
    """A search under way: the best baseline so far, what each stage ended with, and the history.

    Categories are swept over, and all coordinates to ``polish``, or without steps along the gradient. Such a thorough
    search also closes in, and settles close calls.
    """

    def __init__(
        self,
        objective: PaperObjective | FaithfulObjective,
        space: Space,
        steps: int,
        rate: float,
        polish: bool,
        limit: TimeLimit,
        callback: Callable[[LearningStep], Any] | None = None,
        *,
        gradient: bool = True,
        ended: bool = False,
    ) -> None:
        self.objective, self.space, self.limit, self.callback = objective, space, limit, callback
        self.gradient = gradient  # whether the model has one
        self.ended = ended  # whether the user ended learning before this search began
        self.device = objective.evaluator.x.device
        self.steps, self.rate, self.thorough = steps, rate, polish or not steps
        self.swept = torch.arange(0 if self.thorough else len(space.low), len(space))  # coordinates
        self.best: Assessment | None = None  # of all that was compared: the result of an interrupted run
        self.finals: dict[str, float] = {}  # the penalty at the end of each start
        self.leverage = torch.full((len(space),), -torch.inf).double()  # the most that each coordinate ever mattered
        self.history: list[tuple[float, float]] = []  # evaluations, and the least loss so far
        self.unfinished, self.finished = "", _CONVERGED  # why the search did not converge; how it ends if it does
        self.kept: dict[str, Tensor] = {}  # what stages ended with, close calls, and a descent under way
        self.checkpoint: tuple[Path, str, Tensor] | None = None
        self.planned, self.done = 0, 0  # steps
        self.prepared = 0.0  # seconds until the first step was done
        self.rows_to_judge = 0  # after the search
        self.bar = progress(0, "learning the baseline", "step", show=is_first())

    def resume(self, path: str | Path, fingerprint: str, signature: Float[Tensor, " values"]) -> None:
        """Keep the stages in a file, and go on from it if it exists; the signature is values of the same model."""
        self.checkpoint = (Path(path), fingerprint, signature)
        if not Path(path).exists():
            return
        self.kept, header = read_tensors(path)
        known, history = (self.kept.pop(name, torch.zeros(0)) for name in ("signature", "history"))
        same = header.get("fingerprint") == fingerprint and known.shape == signature.shape
        if not same or bool((known - signature).abs().max() > _SAME_MODEL * signature.abs().max()):
            then = "Name another file, or remove this one to start anew."
            raise wrong("checkpoint", "belong to the same model, data and settings", f"{path}, of another run", then)
        self.history = [(row[0], row[1]) for row in history.tolist()]
        self.objective.evaluations, self.unfinished = header["evaluations"], header["unfinished"]

    def _save(self) -> None:
        if self.checkpoint is not None:
            path, fingerprint, signature = self.checkpoint
            tensors = {"history": torch.tensor(self.history).double().reshape(-1, 2), "signature": signature}
            spent = {"evaluations": self.objective.evaluations, "unfinished": self.unfinished}
            try:
                write_tensors(path, self.kept | tensors, {"fingerprint": fingerprint} | spent, keep=False)
            except AbsentiaError as error:  # the work goes on without it
                warnings.warn(f"The checkpoint is not up to date. {error}", stacklevel=2)

    def looks(self, baseline: Baselines) -> Iterator[Owners]:
        """Compute the loss on ever more samples; remember the best baseline that was seen on all of them."""
        self._check_time()
        for found in self.objective.looks(baseline):
            yield found.losses
        self.best = found.or_better(self.best)
        self._remember(min([float(self.best.losses.mean()), *(loss for _, loss in self.history[-1:])]))

    def _remember(self, loss: float) -> None:
        """Add a loss to the history, and show it."""
        self.history.append((float(self.objective.evaluations), loss))
        self.bar.set_postfix(loss=f"{loss:.4g}", refresh=False)

    def losses(self, baseline: Baselines) -> Owners:
        """Compute the loss on all compared samples."""
        return list(self.looks(baseline))[-1]

    def _check_time(self) -> None:
        found = self.best is not None or self.objective.rows_per_step  # there is something to return
        if found and self.ended:
            raise StopLearning("interrupted")
        if found and self.limit.is_set and decided_by_first(self.limit.is_reached, self.device):
            raise StopLearning(f"the limit of {self.limit.seconds:g} s is reached")

    def _count_step(self, loss: float) -> None:
        """Show that a step is done, call the callback, and check the time."""
        self.done += 1
        self.bar.update()
        spent = self.limit.spent
        if self.done == 1:
            self.prepared = spent  # preparations, and the first step, which takes longer than the others
        step = (spent - self.prepared) / (self.done - 1) if self.done > 1 else spent
        left = max(0.0, step * (self.planned - self.done))
        if self.done == 2 and self.objective.rows_per_step:
            title = f"about {spent + left:.0f} s: {self.planned} steps of {self.objective.rows_per_step:,} rows"
            logging.getLogger("absentia").info("learning the baseline, %s", title)
            self.bar.set_description(f"learning the baseline, {title}")
        known = LearningStep(self.done, self.planned, loss, spent, left)
        if self.callback is not None and decided_by_first(self.callback(known) is True, self.device):
            raise StopLearning("the callback returned True")
        self._check_time()

    def search_faithful(self, starts: dict[str, Tensor], usual: dict[str, Tensor]) -> dict[str, Baselines]:
        """Follow the gradient of the default loss from every start, and sweep if asked; return where they ended.

        Without a start it is the best of the usual baselines, whose values are taken over where they are better.
        Ctrl-C, the time limit and the callback end the search with what was found so far.
        """
        again = self.steps // 3 if len(self.swept) else 0
        self.planned = self.bar.total = max(1, len(starts)) * (self.steps + again)
        ends: dict[str, Baselines] = {}
        with self.bar:
            try:
                losses = self._compare_usual(usual)
                best = min(losses, key=losses.__getitem__)
                for number, (name, baseline) in enumerate((starts or {best: usual[best]}).items()):
                    ends[name] = baseline
                    ends[name] = self._stage(f"{number}: steps", self._follow, ends, name, self.steps, self.rate)
                    if len(self.swept):
                        ends[name] = self._stage(f"{number}: sweep", self._sweep_while_it_helps, ends[name])
                        ends[name] = self._stage(f"{number}: again", self._follow, ends, name, again, self.rate / 5)
                    if len(self.objective.evaluator.players) <= MOST_CROSSED:
                        ends[name] = self._stage(f"{number}: cross", self._cross, ends[name], usual[best])
            except (KeyboardInterrupt, StopLearning, OutOfTime) as stop:
                self.unfinished = f"{self._how_far(str(stop) or 'interrupted')}; these are the best values so far"
                if ends and self.steps == 0 and self.best is not None:
                    ends[name] = self.best.baseline
        if self.steps:
            self.finished = f"{self.done} steps of {self.objective.rows_per_step:,} rows are done"
        return ends

    def _compare_usual(self, usual: dict[str, Baselines]) -> dict[str, float]:
        """Compute the losses of usual baselines; keep the time that it takes to judge candidates in the end."""
        began = self.limit.spent
        rows_before = self.limit.rows
        self._reserve_time(math.inf)
        losses = {name: float(self.losses(one).mean()) for name, one in usual.items()}
        seconds_per_row = (self.limit.spent - began) / max(1, self.limit.rows - rows_before)
        self._reserve_time(_LONGER_TO_JUDGE * self.rows_to_judge * seconds_per_row)
        return losses

    def _reserve_time(self, seconds: float) -> None:
        """Keep this much time for what follows the search, but not all of the time that is left."""
        if self.limit.is_set:
            self.limit.reserve = min(seconds, _MOST_RESERVED * max(0.0, self.limit.left))

    def _how_far(self, why: str) -> str:
        """Say why the search ended, and how far it came."""
        if self.planned:
            return f"{why} after {self.done} of {self.planned} steps"
        if self.gradient:
            return f"{why} while values were searched one by one, without steps along the gradient"
        return f"{why} while values were searched one by one, because the model has no gradient"

    def _follow(self, key: str, ends: dict[str, Baselines], name: str, steps: int, rate: float) -> Baselines:
        """Take steps of Adam on fresh batches; return the mean of the last quarter of them."""
        baseline = ends[name]
        recent = deque(self.kept.get(f"{key}: recent", ()), maxlen=-(-steps // 4))
        for step, state, loss in self._steps(key, baseline, steps, rate):
            recent.append(state[0].clone())
            # Those of the last quarter of what was done, in case that it ends here.
            ends[name] = self.space.place(torch.stack(list(recent)[-max(1, step // 4) :]).mean(0), baseline)
            smooth = loss if not self.history else 0.9 * self.history[-1][1] + 0.1 * loss
            self._remember(smooth)
            if step % _STEPS_PER_CHECK == 0:
                self._keep(key, state, step, recent=torch.stack(list(recent)))
            self._count_step(smooth)
        return ends[name]

    def _steps(self, key: str, baseline: Baselines, steps: int, rate: float) -> Iterator[tuple[int, Tensor, float]]:
        """Take steps of Adam within [0, 1], whose size falls along a cosine, or go on with those that were kept.

        Yield the number of steps so far, Adam's state (the point, mean and mean square of the slopes) and the loss.
        """
        space, parameters = self.space, len(self.space.low)
        if steps == 0 or parameters == 0:
            return
        point, nothing = space.point(baseline), torch.zeros(1)
        fresh = torch.stack([point, torch.zeros_like(point), torch.zeros_like(point)])
        state, step = self.kept.get(f"{key}: adam", fresh).clone(), int(self.kept.get(f"{key}: step", nothing))
        point, mean, square = state
        stream = 1 + int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest(), "big")  # of random numbers
        while step < steps and self.kept.get(f"{key}: stalled", nothing) < _PLATEAU_CHECKS:
            slope, loss = self.objective.gradient(space.place(point, baseline), stream, step)
            slope = space.gather(summed_over_processes(slope, self.device)) * (space.high - space.low)
            size = rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))
            # The function behind torch.optim.Adam: the class imports torch's compiler, which takes two seconds.
            adam([point], [slope], [mean], [square], [], [torch.tensor(float(step))], foreach=False, amsgrad=False,
                 beta1=0.9, beta2=0.99, lr=size, weight_decay=0.0, eps=1e-12, maximize=False)  # fmt: skip
            point.clamp_(0, 1)
            step += 1
            yield step, state, loss
        # How large the gradient of each parameter was.
        self.leverage[:parameters] = torch.maximum(self.leverage[:parameters], square.amax(0).sqrt())

    def _keep(self, key: str, state: Tensor, step: int, **more: Tensor) -> None:
        """Keep the state of a descent under way."""
        parts = {"adam": state.clone(), "step": torch.tensor([step])} | more
        self.kept |= {f"{key}: {part}": one for part, one in parts.items()}
        self._save()

    def search(self, starts: dict[str, Tensor], usual: dict[str, Tensor]) -> Assessment:
        """Search from every start, and from the best of the usual baselines if it is lower than where they ended.

        Ctrl-C ends the search with the best baseline so far.
        """
        self.planned = self.bar.total = (len(starts) + 1) * (self.steps + self.steps // 3 + 2)
        end: Assessment | None = None  # the best of where the starts ended
        with self.bar:
            try:
                self.losses(next(iter(starts.values())))  # there is something to return from now on
                # Two parts of the samples are enough to choose one.
                glances = {name: float([*islice(self.looks(one), 2)][-1].mean()) for name, one in usual.items()}
                best = min(glances, key=lambda name: glances[name])
                before = self.losses(usual[best])
                for number, (name, baseline) in enumerate(starts.items()):
                    end = self._search_from(number, name, baseline).or_better(end)
                if end is None or bool((before < end.losses).any()):
                    end = self._search_from(len(starts), f"{best} (tried)", usual[best]).or_better(end)
            except (KeyboardInterrupt, StopLearning, OutOfTime) as stop:
                end = self.best
                self.unfinished = f"{str(stop) or 'interrupted'}; these are the best values so far"
                if end is None:
                    raise  # before anything was evaluated
        if end is None:
            raise KeyboardInterrupt
        return end

    def _search_from(self, number: int, name: str, baseline: Baselines) -> Assessment:
        """Follow the gradient, sweep as long as it helps, follow the gradient again, close in; return the end."""
        baseline = self._stage(f"{number}: descent", self._descend, baseline, self.steps, self.rate)
        baseline = self._stage(f"{number}: sweep", self._sweep_while_it_helps, baseline)
        before = float(self.losses(baseline).mean())
        baseline = self._stage(f"{number}: polish", self._descend, baseline, self.steps // 3, self.rate / 5)
        if float(self.losses(baseline).mean()) < before * (1 - _PLATEAU_SHARE):
            baseline = self._stage(f"{number}: last sweep", self._sweep_while_it_helps, baseline)
        *_, found = self.objective.looks(self._stage(f"{number}: closing in", self._close_in, baseline))
        self.finals[name] = float(found.penalties.mean())
        return found

    def _stage(self, key: str, work: Callable[..., Tensor], *given: object) -> Tensor:
        """Do the work of a stage, or return what it ended with before an interruption."""
        if key not in self.kept:
            found = work(key, *given)
            self.kept = {name: one for name, one in self.kept.items() if not name.startswith(f"{key}: ")}
            self.kept |= {key: found, f"{key}: leverage": self.leverage}
            self._save()
        self.leverage = torch.maximum(self.leverage, self.kept[f"{key}: leverage"])
        return self.kept[key]

    def _descend(self, key: str, baseline: Baselines, steps: int, rate: float) -> Baselines:
        """Take steps of Adam; return the best baseline of all checks."""
        if steps == 0 or len(self.space.low) == 0:
            return baseline
        best, stalled = self.kept.get(f"{key}: best", baseline), int(self.kept.get(f"{key}: stalled", torch.zeros(1)))
        best_losses = self.losses(best)
        for step, state, _ in self._steps(key, baseline, steps, rate):
            self._count_step(float(best_losses.mean()))
            if step % _STEPS_PER_CHECK == 0 or step == steps:
                here = self.space.place(state[0], baseline)
                found = self.losses(here)
                stalled = 0 if bool((found < best_losses * (1 - _PLATEAU_SHARE)).any()) else stalled + 1
                best = torch.where((found < best_losses)[:, None], here, best)
                best_losses = torch.minimum(found, best_losses)
                self._keep(key, state, step, best=best, stalled=torch.tensor([stalled]))
        return best

    def _sweep_while_it_helps(self, _key: str, baseline: Baselines) -> Baselines:
        """Sweep until no candidate helps, if sweeps are wanted and affordable."""
        if not len(self.swept) or len(self.swept) > MAX_SWEPT:
            self.unfinished = self._why_not_swept()
            return baseline
        wide, radius = True, _FIRST_RADIUS
        for turn in range(MAX_SWEEPS):
            order = self.swept[torch.randperm(len(self.swept), generator=seeded(self.objective.seed, 2, turn))]
            baseline, improved = self.sweep_once(baseline, radius, order, wide=wide)
            self.bar.update()
            if wide and not improved and (turn or self.steps):
                return baseline
            # Without a gradient, closer and closer sweeps follow a wide one; then a wide one again.
            if self.steps == 0:
                wide, radius = (True, _FIRST_RADIUS) if radius < _LAST_RADIUS else (False, radius / 3)
        self.unfinished = f"{MAX_SWEEPS} sweeps are done, and the last still lowered the loss"
        return baseline

    def _why_not_swept(self) -> str:
        """Say why no other values of single coordinates were tried."""
        if not len(self.swept):
            return "the steps are done; they were not polished"
        many = f"{len(self.swept):,} values are too many to sweep"
        if self.steps:
            return f"the steps are done; {many}"
        if self.gradient:
            return f"no steps were taken, and {many}"
        return f"no steps were taken, because the model has no gradient, and {many}"

    def _close_in(self, _key: str, baseline: Baselines) -> Baselines:
        """Try ever closer values around those of the gradient, which may stop beside a kink; settle close calls."""
        if "calls" not in self.kept or not self.thorough or not isinstance(self.objective, PaperObjective):
            return baseline
        for radius in _CLOSE_RADII if self.steps and len(self.space.low) else ():
            baseline, _ = self.sweep_once(baseline, radius, torch.arange(len(self.space.low)), wide=False)
        return settle(self.objective, baseline, self.kept["calls"])

    def sweep_once(self, baseline: Baselines, radius: float, order: Tensor, *, wide: bool) -> tuple[Baselines, bool]:
        """Try other values of one coordinate at a time, keep what lowers the loss, and return whether it fell.

        The candidates of a parameter are neighbours at ``radius`` (a share of its range) and, in a ``wide`` sweep,
        its bounds and quantiles of the data; those of a choice are all its rows. Poor candidates are dropped early.
        Close calls of a wide sweep are kept: the values that they change, and NaN for others.
        """
        current, calls = list(self.looks(baseline)), []
        before = current[-1]
        for number in order.tolist():
            self.leverage[number].clamp_min_(0.0)
            for candidate, near in _candidates(self.space, baseline, number, radius, wide):
                found = self._compare(candidate, current, _DROPPED if wide else _DROPPED_IF_CLOSE)
                change = (torch.stack(found) - torch.stack(current[: len(found)])).abs().max()
                self.leverage[number].clamp_min_(change)
                if len(found) < len(current):
                    continue
                if not near and len(baseline) == 1 and bool(found[-1] <= current[-1] * (1 + _CLOSE_CALL)):
                    change = torch.where(self.space.coordinate == number, candidate[0], torch.nan)
                    calls.append((float(found[-1] / current[-1]), change))
                better = found[-1] < current[-1] * (1 - 1e-6)
                baseline = torch.where(better[:, None], candidate, baseline)
                current = [torch.where(better, new, old) for new, old in zip(found, current, strict=True)]
        if wide:
            closest = [change for _, change in sorted(calls, key=lambda call: call[0])[:_MOST_CALLS]]
            self.kept["calls"] = torch.stack(closest) if closest else baseline[:0]
        return baseline, bool((current[-1] < before * (1 - 1e-3)).any())

    def _compare(self, candidate: Baselines, current: list[Owners], limits: Sequence[float]) -> list[Owners]:
        """Return a candidate's losses on ever more samples, fewer if it is dropped early."""
        found = []
        for seen, known, limit in zip(self.looks(candidate), current, limits, strict=False):
            found.append(seen)
            if bool((seen > limit * known).all()):
                break
        return found

    def _cross(self, _key: str, baseline: Baselines, other: Baselines) -> Baselines:
        """Take over from another baseline the values of each player with which the loss is lower."""
        current, players = list(self.looks(baseline)), self.objective.evaluator.players
        for player in range(len(players)):
            candidate = torch.where(players.labels.flatten() == player, other, baseline)
            if torch.equal(candidate, baseline):
                continue
            found = self._compare(candidate, current, _DROPPED_IF_CLOSE)
            if len(found) == len(current):
                better = found[-1] < current[-1]
                baseline = torch.where(better[:, None], candidate, baseline)
                current = [torch.where(better, new, old) for new, old in zip(found, current, strict=True)]
        return baseline

    def undetermined(self, losses: Owners) -> Bool[Tensor, " players"]:
        """Return which players have free values none of which ever changed the loss."""
        players, space = self.objective.evaluator.players, self.space
        idle = (self.leverage >= 0) & (self.leverage <= 1e-9 * float(losses.abs().max()))
        idle[: len(space.low)] &= space.high > space.low  # constants are not free
        moved = space.coordinate != HELD
        labels, idle = players.labels.flatten()[moved], idle[space.coordinate[moved]]
        unused = set(labels[idle].tolist()) - set(labels[~idle].tolist())
        return torch.tensor([player in unused for player in range(len(players))])


def _candidates(space: Space, baseline: Tensor, number: int, radius: float, wide: bool) -> list[tuple[Tensor, bool]]:
    """Return the baselines with one coordinate changed, and whether to a value near the present one."""
    entries, parameters = space.entries(number), len(space.low)
    if number >= parameters:
        rows = space.choices[number - parameters] if wide else ()
        return [(baseline.index_copy(1, entries, row.expand(len(baseline), -1)), False) for row in rows]
    low, high, here = space.low[number], space.high[number], baseline[:, entries[0]]
    values = [((here + shift * radius * (high - low)).clamp(low, high), True) for shift in (-1.0, 1.0)]
    if wide:
        fixed = torch.cat([torch.stack([low, high]), space.quantiles(number)]).unique()
        values += [(value.expand_as(here), False) for value in fixed]
    others = [(value, near) for value, near in values if bool(((value - here).abs() > 1e-9 * (high - low)).any())]
    return [(baseline.index_copy(1, entries, one[:, None].expand(-1, len(entries))), near) for one, near in others]


def settle(objective: PaperObjective, baseline: Baselines, calls: Float[Tensor, "calls entries"]) -> Baselines:
    """Judge close calls on all samples, and return the baseline with those changes that are better.

    If all coalitions of all samples are affordable, the penalty over them decides. If not, a draw cannot decide
    between losses that nearly tie, but it shows a true tie: over all samples, and the same coalitions of each, the
    losses differ by rounding alone. True ties go to the smaller walks and detours, over all samples too.
    """
    penalty, samples, rows = objective.penalty, len(objective.owned), objective.rows
    exact = penalty.exact and samples * objective.plan.coalitions.shape[-2] <= _TIMES * rows
    plan, small = objective.plan, replace(penalty, per_sample=0, cube=_DRAWN_CUBE)
    if not exact:  # a fit of order-wise Shapley values would mix players; within sub-cubes they are exact
        draw = small.plan if small.exact or penalty.loss == "marginal" else small.subcubes
        plan = draw(1, _DRAWN, seeded(objective.seed, 3, 0)).of(0)
    seen = exact and len(objective.compared.rows) == samples
    affordable = samples * plan.coalitions.shape[-2] <= _TIMES * rows
    affordable &= samples * (3 * penalty.players + 4) <= _TIMES_FOR_TIES * rows
    if objective.owners > 1 or seen or not affordable:
        return baseline
    everyone = equally_weighted(objective.owned)
    walks = objective.all_orders.walks(1, 2, seeded(objective.seed, 3, 0)).of(0)
    precision = max(_ROUNDING, _ROUNDINGS * torch.finfo(objective.evaluator.task.probe.dtype).eps)

    def mean(one: Tensor, *plans: Plan) -> float:
        return sum(float(objective.losses(one, everyone, by)) for by in plans)

    here, ties = mean(baseline, plan), None
    for call in calls[:_MOST_EXACT] if exact else calls:
        candidate = torch.where(call.isnan(), baseline, call)
        if torch.equal(candidate, baseline):
            continue
        if not exact and samples > _FEW:
            few = [objective.values(one, everyone.rows[:_FEW], plan.coalitions) for one in (baseline, candidate)]
            first, second = (plan.penalty(values) for values in few)
            if bool((first - second).abs().max() <= _ROUNDING * first.abs().max()):
                continue  # the comparison saw the tie itself, or the draw leaves the player out
        found = mean(candidate, plan)
        if abs(found - here) <= precision * abs(here):
            ties = mean(baseline, walks, objective.detours) if ties is None else ties
            better = mean(candidate, walks, objective.detours) < ties * (1 - 1e-6)
        else:
            better = exact and found < here * (1 - 1e-6)
        if better:
            baseline, here, ties = candidate, found, None
    return baseline
