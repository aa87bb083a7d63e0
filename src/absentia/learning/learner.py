"""Learning a baseline: the public functions, and how they set up the problem."""

from __future__ import annotations

import copy
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.absences.protocol import Absence, BringsModel, StandIns, for_classes
from absentia.absences.words import named_absence
from absentia.arguments import checked
from absentia.data import (
    Array,
    Categorical,
    Classes,
    Table,
    class_numbers,
    data_quantiles,
    data_range,
)
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator
from absentia.games import resolve_absence
from absentia.learning.checkpoint import Checkpoint, Identity
from absentia.learning.faithful import FaithfulObjective, Weights
from absentia.learning.learned import LEARNED, LearnedBaseline, LearningRecord, Share, best_candidate, learned_from
from absentia.learning.pace import LearningStep
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Penalty, count_orders
from absentia.learning.processes import process_count
from absentia.learning.samples import read_samples
from absentia.learning.search import Search
from absentia.learning.space import Baselines, Bounds, Owners, Space, describe_bounds, make_space
from absentia.learning.starts import Start, named_starts, start_baseline, usual_baselines
from absentia.learning.sweeps import SearchPlan
from absentia.models.adapters import as_model, check_fit, labels_of
from absentia.models.arrays import NumpyModel
from absentia.players import Players
from absentia.readouts import Logit, LogOdds, Margin, Output, Probability, Readout
from absentia.runtime.cost import affordable_rows
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import progress
from absentia.runtime.threads import quickest_threads
from absentia.runtime.workers import spread, worker_count
from absentia.storage import check_folder
from absentia.task import Task

AnyLoss: TypeAlias = Literal["faithful", "interactions", "shapley", "marginal"]

_LEAST_ROWS = 2**8
# A penalty is exact if all coalitions of all samples, or of this many, fit into one comparison. If not, coalitions
# are drawn, because an exact result on fewer samples may not hold for others.
_MANY_SAMPLES = 32
# Samples to learn from, steps, the first rate: of the default loss and of the paper's.
_SAMPLES, _STEPS, _RATE = (1024, 256), (120, 60), (0.03, 0.1)
# Operations of the model in a step of the default loss, by which rows are chosen between these numbers.
_OPERATIONS, _FEWEST_ROWS, _MOST_ROWS = 3e9, 2**9, 2**14
# A search that is worth its while evaluates the rows of about this many steps, most of them before the first step and
# after the last one. If there is too little time for it, steps have fewer rows, but not less than this number.
_STEPS_OF_A_SHORT_SEARCH, _FEWEST_ROWS_IN_TIME = 160, 2**6
_TRIED_COALITIONS = 2**8  # to choose the number of threads
# A baseline that an audit learns on its way takes at most this share of the time that is left.
_SHARE_FOR_LEARNING = 0.5
# Baselines of classes or samples are learned in this many parts, each of at most so many; and the least time, in s.
_PARTS, _TOGETHER, _TINY = 4, 16, 1e-9


@checked
@dataclass(frozen=True, eq=False)
class LearningOptions:
    """Options of `learn_baseline` that few users need.

    Parameters
    ----------
    evidence, noise : float, default 4.0 and 0.6
        The weights of honest predictions, and of white noise, beside concision in the loss "faithful".
    polish : bool, default False
        Whether to try other values of one coordinate at a time after the steps along the gradient, which takes far
        more evaluations. Categories, and models without a gradient, are always searched like this.
    steps, rate : int and float, optional
        The number of steps along the gradient, and the first step size as a share of the bounds. The default is 120
        and 0.03; 60 and 0.1 for the paper's losses.
    rows_per_step : int, optional
        Rows that the model evaluates in a step of the loss "faithful", from 512 to 16,384 by the model's size.
    samples : int or "all", optional
        The number of samples to learn from, drawn by the seed. The default is 1,024; 256 for the paper's losses.
    callback : callable, optional
        Called after each step with its ``step``, ``steps``, ``loss``, ``seconds`` and ``seconds_left``. It may return
        True to end learning with the values so far.
    checkpoint : str or Path, optional
        A file that is written on the way. If it exists, learning goes on from it. Baselines for each class or sample
        are learned in parts, and each part has its file: ``path``, ``path.1`` and so on.
    tie, held : array, optional
        Labels of the shape of one sample: entries of one ``tie`` share a value; ``held`` ones keep that of the start.
    gradient : bool, optional
        Whether the model has a gradient; by default this is found out.
    orders : float or int, optional
        The highest order λ of the paper's losses: a share of the players or a number of them. The default is half of
        them for "shapley" and "marginal", as in the paper, and all of them for "interactions".
    cube : int, optional
        Measure "interactions" within drawn groups of this many players, which suits outputs that bend a little
        everywhere. By default they are those of the whole sample, or within groups of 6 if players are many.
    rows_per_comparison : int, default 262,144
        Rows that the model evaluates to compare two baselines by one of the paper's losses. A step along the gradient
        takes a quarter of them.

    Examples
    --------
    >>> LearningOptions(steps=10, noise=0.0).evidence
    4.0
    """

    evidence: float = 4.0
    noise: float = 0.6
    polish: bool = False
    steps: int | None = None
    rate: float | None = None
    rows_per_step: int | None = None
    samples: int | Literal["all"] | None = None
    callback: Callable[[LearningStep], Any] | None = None
    checkpoint: str | Path | None = None
    tie: Array | None = None
    held: Array | None = None
    gradient: bool | None = None
    orders: float | None = None
    cube: int | None = None
    rows_per_comparison: int = 2**18

    def __post_init__(self) -> None:
        leasts = {"samples": 1, "rows_per_comparison": _LEAST_ROWS, "rows_per_step": 16, "steps": 0}
        for name, least in (leasts | {"evidence": 0, "noise": 0}).items():
            if getattr(self, name) not in (None, "all") and not least <= getattr(self, name) < np.inf:
                raise wrong(name, f"be at least {least}, and finite", getattr(self, name))
        if self.checkpoint is not None:
            check_folder("checkpoint", self.checkpoint)


@checked
def learn_baseline(
    model: Any,
    x: Any,
    y: Classes = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    loss: AnyLoss = "faithful",
    start: Start | Sequence[Start] = "best",
    bounds: Bounds = "range",
    share: Share = "all",
    categorical: Categorical = (),
    class_names: Sequence[str] | None = None,
    seed: int = 0,
    seconds: float | None = None,
    options: LearningOptions | None = None,
) -> LearnedBaseline:
    """Find the baseline values that represent absence best.

    The default loss asks for a short account by honest predictions: few and weak interactions, masked predictions
    that are as good as the present players allow and assert nothing of their own, and no more signal than white
    noise. A fifth of the samples is kept aside. The result is the best there of the learned values, the start, the
    mean, the median and zero; its record says which. Ctrl-C ends learning with the best values so far.

    Parameters
    ----------
    model, players, readout, class_names
        See `Evaluator`.
    x, y
        Samples, and their classes as numbers or names; or a Dataset or DataLoader, whose items may be pairs (x, y).
    loss : {"faithful", "interactions", "shapley", "marginal"}
        What to minimise: see above; or a penalty alone, Σ|U(S)|, the paper's L_Shapley or L_marginal.
    start : {"best", "mean", "median", "zero"}, float, array, or a list of these
        The values to start from. Of several starts, the best end is kept. "best" is the mean; for the
        default loss and a model without a gradient, it is that of the mean, the median and zero with the lowest loss.
    bounds : "range", float or tuple
        The data's range, a number k for mean ± k standard deviations, or a pair (low, high).
    share : {"all", "class", "sample"}
        Learn one baseline for all samples, for each class or for each sample: by the workers of joblib, if there are.
    categorical : sequence
        Columns, or groups of columns such as a one-hot code, that only take values that occur together in the data;
        besides those that the players know.
    seed : int
        The seed of all draws.
    seconds : float, optional
        A limit on the time, after which the best values so far are returned.
    options : LearningOptions, optional
        Weights of the loss, steps, rows, a callback, a checkpoint and more.

    Examples
    --------
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x, options=ab.LearningOptions(steps=20))
    >>> learned.loss <= min(learned.record.compared[name] for name in ("learned", "mean", "median"))
    True
    """
    with torch.inference_mode(False), torch.enable_grad():
        limit, options = TimeLimit(seconds), options or LearningOptions()
        try:
            problem = _make_problem(
                model, x, y, loss, share, seed, options, players, readout, class_names, categorical, limit
            )
        except OutOfTime as error:
            raise limit.too_short(_SAMPLES[0], "Or learn from fewer samples.") from error
        space = make_space(problem.data, problem.evaluator.players, bounds, options.tie, options.held)
        if not problem.evaluator.x.is_floating_point() and len(space.low):
            then = "Name every free entry, as in categorical=range(length), and hold the others."
            raise wrong("categorical", "name the entries of inputs that are token numbers", "fewer", then)
        parts, learn = problem.parts(), partial(_learn_part, space, start, bounds)
        if len(parts) == 1:
            return learn(problem, limit).baseline
        rounds = math.ceil(len(parts) / worker_count())
        learn_number = partial(_learn_number, learn, parts, limit, limit.left / rounds)
        learned: list[LearnedBaseline] = []
        with progress(len(parts), "learning the baselines", "part") as bar:
            numbers = range(len(parts))  # because what the work holds is sent to workers once
            for part in spread(learn_number, numbers, "learning"):
                learned.append(part.baseline)
                bar.update()
                if part.ended_by_user:  # the others end with the best of the usual values
                    others = parts[len(learned) :]
                    learned += [learn(other, _limit_within(limit), ended=True).baseline for other in others]
                    break
        return _join(learned, limit.spent)


class LearnedPart(NamedTuple):
    """The baselines of a part of the owners, and whether the user ended learning meanwhile."""

    baseline: LearnedBaseline
    ended_by_user: bool


def _learn_number(
    learn: Callable[[Problem, TimeLimit], LearnedPart],
    parts: Sequence[Problem],
    whole: TimeLimit,
    seconds: float,
    number: int,
) -> LearnedPart:
    """Learn one of the parts within its share of the time."""
    return learn(parts[number], _limit_within(whole, seconds))


def _limit_within(whole: TimeLimit, seconds: float = math.inf) -> TimeLimit:
    """Return a limit for a part of the work, which ends no later than that of the whole work."""
    return TimeLimit(max(_TINY, min(seconds, whole.left)))


def _learn_part(
    space: Space, start: object, bounds: Bounds, problem: Problem, limit: TimeLimit, *, ended: bool = False
) -> LearnedPart:
    """Learn the baselines of a problem's owners together; take usual ones if the user ``ended`` learning before."""
    limit.strict = process_count() == 1  # several processes wait for each other's values: they end between steps
    evaluator = copy.copy(problem.evaluator)
    evaluator.limit = limit
    problem = problem._replace(evaluator=evaluator)
    choose = isinstance(start, str) and start == "best"
    starts = named_starts("mean" if choose else start, problem.data, space, int(problem.owner.max()) + 1)
    usual = usual_baselines(problem.data, space, next(iter(starts.values())))
    try:
        choice = _search(problem, space, bounds, limit, starts, usual, choose, ended)
    except OutOfTime as stop:
        choice = _take_start(problem, bounds, limit, starts, str(stop))
    values = choice.values.unflatten(1, evaluator.players.shape)
    quantiles = None
    if evaluator.x.is_floating_point():
        quantiles = data_quantiles(problem.data.unflatten(1, evaluator.players.shape))
    baseline = LearnedBaseline(
        values=values[0] if problem.share == "all" else values,
        share=problem.share,
        classes=problem.classes,
        players=evaluator.players,
        loss=float(choice.losses.mean()),
        history=choice.history,
        record=choice.record,
        quantiles=quantiles,
    )
    return LearnedPart(baseline, choice.ended_by_user)


class Choice(NamedTuple):
    """The values that a search ends with, their losses, and how they were found."""

    values: Baselines
    losses: Owners
    history: Float[Tensor, "checks 2"]
    record: LearningRecord
    ended_by_user: bool = False


def _search(
    problem: Problem,
    space: Space,
    bounds: Bounds,
    limit: TimeLimit,
    starts: dict[str, Tensor],
    usual: dict[str, Tensor],
    choose: bool,
    ended: bool,
) -> Choice:
    """Search for the baselines; raise `OutOfTime` if none could be compared within the limit."""
    evaluator, options = problem.evaluator, problem.options
    paper = problem.loss != "faithful"
    first = next(iter(starts.values()))
    gradient = _has_gradient(evaluator, first, options)
    trial = partial(_try_step, evaluator, first, gradient, min(_TRIED_COALITIONS, evaluator.batch_size))
    with nullcontext() if process_count() > 1 else quickest_threads(trial, evaluator.x.device, limit):
        objective = _make_objective(problem, usual["mean"][0], space)
        steps = _STEPS[paper] if options.steps is None else options.steps
        rate = _RATE[paper] if options.rate is None else options.rate
        plan = SearchPlan(steps if gradient else 0, rate, options.polish, gradient)
        checkpoint = None
        if options.checkpoint is not None:
            identity = _identity(objective, space, plan, problem, starts)
            checkpoint = Checkpoint(Path(options.checkpoint), identity)
        run = Search(objective, space, plan, limit, options.callback, checkpoint=checkpoint, ended=ended)
        if isinstance(objective, FaithfulObjective):
            values, losses, compared, names = _choose(
                run, objective, {} if choose and not gradient else starts, usual
            )
        else:
            found = run.search_paper(starts, {name: one for name, one in usual.items() if name != "zero"})
            values, losses, compared = found.baseline, found.penalties, {}
            names = [LEARNED] * len(values)
    evaluator.check_still_same()
    idle = run.undetermined(losses)
    # Reset players that do not affect the loss to their start values.
    values = torch.where(evaluator.players.presence(~idle).flatten(), values, first)
    record = _record(run, problem.loss, bounds, idle, compared)
    names = _name_usual(values, names, record.learned_names, usual | starts)
    chosen = names[0] if len(names) == 1 else best_candidate(compared, record.learned_names)
    record = replace(record, chosen=chosen, picked=dict(Counter(names)))
    history = torch.tensor(run.state.history).double().reshape(-1, 2)
    return Choice(values, losses, history, record, run.ended_by_user)


def _name_usual(
    values: Baselines, names: Sequence[str], learned: Sequence[str], usual: dict[str, Tensor]
) -> list[str]:
    """Return the name of each owner's values: that of a usual baseline or a start also if learning ended there."""
    found = []
    for owner, name in enumerate(names):
        equal = [other for other, one in usual.items() if torch.allclose(values[owner], one[owner], rtol=1e-9)]
        found.append(equal[0] if equal and name in learned else name)
    return found


def _take_start(problem: Problem, bounds: object, limit: TimeLimit, starts: dict[str, Tensor], why: str) -> Choice:
    """Return the first start: there was no time to compare it with others."""
    name, values = next(iter(starts.items()))
    evaluator = problem.evaluator
    record = LearningRecord(
        loss=problem.loss,
        exact=False,
        orders=len(evaluator.players),
        bounds=describe_bounds(bounds),
        starts=(),
        final_losses=(),
        seed=problem.seed,
        samples=evaluator.samples,
        converged=False,
        stopped=f"{why} before any baseline was compared; these are the values of the start",
        evaluations=limit.rows,
        seconds=limit.spent,
        undetermined=(),
        readout=evaluator.readout_note,
        chosen=name,
        class_names=evaluator.class_names,
        undetermined_numbers=(),
        picked={name: len(values)},
    )
    losses = torch.full((len(values),), math.nan).double()
    return Choice(values, losses, torch.zeros(0, 2).double(), record)


def _join(found: list[LearnedBaseline], seconds: float) -> LearnedBaseline:
    """Join the baselines of parts: losses are means over all owners, evaluations add up, histories follow."""
    first, records, counts = found[0], [one.record for one in found], [len(one.values) for one in found]

    def mean(losses: list[dict[str, float]]) -> dict[str, float]:
        named = {name: [name in one for one in losses] for one in losses for name in one}
        known = {name: [one.get(name, 0.0) for one in losses] for name in named}
        return {name: float(np.average(known[name], weights=np.multiply(counts, named[name]))) for name in named}

    picked = sum((Counter(one.picked) for one in records), Counter[str]())
    finals = mean([dict(zip(one.starts, one.final_losses, strict=True)) for one in records])
    compared = mean([one.compared for one in records])
    idle = tuple(i for i, _ in enumerate(first.names) if all(one.undetermined[i] for one in found))
    before = torch.tensor([0, *(one.evaluations for one in records)]).cumsum(0)
    record = replace(
        next((one for one in records if not one.converged), records[0]), starts=tuple(finals),
        final_losses=tuple(finals.values()), evaluations=sum(one.evaluations for one in records), seconds=seconds,
        undetermined=tuple(first.names[number] for number in idle), undetermined_numbers=idle,
        compared=compared, kept_aside=sum(one.kept_aside for one in records), picked=dict(picked),
    )  # fmt: skip
    record = replace(record, chosen=best_candidate(compared, record.learned_names))
    # Parts that had no time have no loss.
    known = [(one.loss, count) for one, count in zip(found, counts, strict=True) if not math.isnan(one.loss)]
    loss = math.nan
    if known:
        loss = sum(part * count for part, count in known) / sum(count for _, count in known)
    return replace(
        first, values=torch.cat([one.values for one in found]), record=record, loss=loss,
        classes=None if first.classes is None else torch.cat([one.classes for one in found]),  # type: ignore[misc]
        history=torch.cat([one.history + torch.tensor([int(n), 0]) for one, n in zip(found, before, strict=False)]),
    )  # fmt: skip


def _choose(
    run: Search, objective: FaithfulObjective, starts: dict[str, Tensor], usual: dict[str, Tensor]
) -> tuple[Baselines, Owners, dict[str, float], list[str]]:
    """Learn by the default loss; return for each owner the best values on the samples kept aside.

    Also return their losses, those of all candidates, and the names of the candidates that are returned.
    """
    others = {name: one for name, one in usual.items() if name in ("mean", "median", "zero")}
    known = starts | others
    rows_to_judge = objective.judged_rows(len(known) + max(1, len(starts)))
    ends = run.search_faithful(starts, others, rows_to_judge)
    run.limit.reserve = 0.0
    names = [LEARNED] if len(ends) == 1 else [learned_from(name) for name in ends]
    learned = dict(zip(names, ends.values(), strict=True))
    candidates = known | learned  # of equal losses the first counts: learned values must be better
    losses = objective.judge(list(candidates.values()))
    if not objective.judged_all:
        reached = f"the limit of {run.limit.seconds:g} s is reached"
        if run.converged:
            run.state.unfinished = f"{reached} before candidates were compared on all samples kept aside"
    means = dict(zip(candidates, losses.mean(1).tolist(), strict=True))
    run.finals = {start: means[name] for start, name in zip(ends, names, strict=True)}
    best = losses.argmin(0)
    values = torch.stack(list(candidates.values()))[best, torch.arange(objective.owners)]
    picked = [list(candidates)[number] for number in best.tolist()]
    return values, losses.amin(0), {name: means[name] for name in (*learned, *known)}, picked


@checked
def baseline_loss(
    model: Any, x: Any, y: Classes = None, *, absence: Absence | str | float, loss: AnyLoss = "faithful",
    players: Players | None = None, readout: Readout | None = None, categorical: Categorical = (),
    class_names: Sequence[str] | None = None, options: LearningOptions | None = None, seed: int = 0,
) -> float:  # fmt: skip
    """Compute the loss of given baseline values.

    Samples and coalitions are those on which `learn_baseline`, with the same arguments, chooses between baselines for
    all samples. So the losses of several absences can be compared, also with the ``loss`` of a learned baseline.

    Parameters
    ----------
    model, x, y, loss, players, readout, categorical, class_names, seed
        See `learn_baseline`.
    absence : Absence, str or float
        Fixed values: an absence with one stand-in for each sample, whichever players are present.
    options : LearningOptions, optional
        Its weights, rows, samples, orders and cube are used.

    Examples
    --------
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> product = {"model": lambda rows: rows.prod(1), "x": x, "loss": "interactions"}
    >>> baseline_loss(**product, absence=0.0) < baseline_loss(**product, absence=0.5)
    True
    """
    options = options or LearningOptions()
    problem = _make_problem(model, x, y, loss, "all", seed, options, players, readout, class_names, categorical)
    evaluator = problem.evaluator
    rows = problem.data.unflatten(1, evaluator.players.shape).to(evaluator.x)
    absence = named_absence(absence, rows, players=evaluator.players, seed=seed)
    classes = getattr(evaluator.readout, "y", None) if y is None else problem.numbers
    fill = for_classes(absence, classes).bind(evaluator.x)
    if isinstance(absence, BringsModel) or not isinstance(fill, StandIns) or fill.draws != 1:
        raise wrong("absence", "have one fixed stand-in for each sample", absence)
    stand_ins = fill.values[:, 0].flatten(1).double().cpu().expand(evaluator.samples, -1)
    space = make_space(problem.data, evaluator.players, "range", None, None)
    objective = _make_objective(problem, start_baseline("mean", problem.data, space), space)
    if isinstance(objective, FaithfulObjective):
        if len(fill.values) > 1:
            raise wrong("loss", "be one of the paper's for stand-ins of each sample", repr(loss))
        return float(objective.judge([stand_ins[:1]]))
    objective.owner = torch.arange(evaluator.samples)  # of its own stand-ins
    losses, (rows, weights) = objective.losses(stand_ins, objective.compared, objective.plan), objective.compared
    return float((losses[rows] * weights).sum() / weights.sum())


def choose_absence(absence: object, model: Any, data: Any, readout: Readout | None = None, **more: Any) -> Absence:
    """Return an absence as it is, or the one that a word or a number names; "learned" learns it from the data."""
    if isinstance(absence, str) and absence == "learned":
        if data is None:
            raise AbsentiaError("A baseline is learned from data. Pass data=…, rows such as those of the training.")
        return learn_baseline(model, data, readout=readout, **more)
    return named_absence(absence, data, **more)


def absence_for(task: Task, absence: object, data: Table | None, seed: int) -> Absence:
    """Return the absence for a task: as it is, named by a word or a number, or learned from the data.

    Explaining and auditing both come here, so that a word means the same absence to both.
    """
    if not (isinstance(absence, str) and absence == LEARNED):
        return resolve_absence(task, absence, data, seed)
    if data is None:
        raise AbsentiaError("A baseline is learned from data. Pass data=…, rows such as those of the training.")
    rows = task.rows_of(data)
    seconds = None
    if task.limit.is_set:
        task.limit.check()
        seconds = _SHARE_FOR_LEARNING * task.limit.left
    return learn_baseline(
        task.model, rows, players=task.players, readout=_readout_of_rows(task, rows), seed=seed, seconds=seconds
    )


def _readout_of_rows(task: Task, rows: Tensor) -> Readout | None:
    """Return the readout of the samples if it also suits rows of data; None is the default one of the rows."""
    readout = task.readout
    classes = getattr(readout, "y", None)
    if classes is not None and classes.ndim == 1 and rows is not task.x:
        return None  # the samples' own classes say nothing about other rows
    if task.readout_is_default and isinstance(readout, Output):
        return None  # the default again, with its own description
    return readout


class Problem(NamedTuple):
    """What to learn: the drawn samples, the data that bounds and starts come from, and settings."""

    evaluator: Evaluator
    data: Float[Tensor, "rows entries"]
    owner: Int[Tensor, " samples"]  # the number of each sample's baseline; −1 if it is not learned here
    numbers: Int[Tensor, " samples"] | None  # the samples' classes
    classes: Int[Tensor, " owners"] | None  # the class of each baseline, if each class has one
    loss: Any
    share: Share
    seed: int
    options: LearningOptions
    rows: float = 1.0  # the share of the rows of a step or a comparison that these baselines take

    def parts(self) -> list[Problem]:
        """Return problems of a few baselines each, whose checkpoints are numbered from the second on."""
        owners, parts = torch.arange(int(self.owner.max()) + 1), []
        count = max(min(_PARTS, len(owners)), -(-len(owners) // _TOGETHER))
        for number, some in enumerate(owners.tensor_split(count)):
            owner = torch.where(torch.isin(self.owner, some), self.owner - some[0], -1)
            classes, path = None if self.classes is None else self.classes[some], self.options.checkpoint
            options = replace(self.options, checkpoint=f"{path}.{number}") if number and path else self.options
            parts.append(self._replace(owner=owner, classes=classes, options=options, rows=1 / min(_PARTS, count)))
        return parts


def _make_problem(
    model: Any, x: Any, y: Classes, loss: Any, share: Any, seed: int, options: LearningOptions,
    players: Players | None, readout: Readout | None, class_names: Sequence[str] | None, categorical: Categorical,
    limit: TimeLimit | None = None,
) -> Problem:  # fmt: skip
    """Draw the samples to learn from, and find out whose baselines are learned."""
    if share not in ("all", "class", "sample"):
        raise wrong("share", "be 'all', 'class' or 'sample'", repr(share))
    if loss not in ("faithful", "interactions", "shapley", "marginal"):
        raise wrong("loss", "be 'faithful', 'interactions', 'shapley' or 'marginal'", repr(loss))
    model = as_model(model)
    check_fit(model, getattr(x, "columns", None))
    columns = getattr(x, "columns", None)
    if players is None and isinstance(columns, Iterable):  # those of a DataFrame name the players
        players = Players.features(list(columns))
    usual = _SAMPLES[loss != "faithful"] if options.samples is None else options.samples
    source = read_samples(x, y, None if usual == "all" else usual, seed)
    if options.samples is None:
        source = source.limited_by_bytes()
    data, y, rows = source.data, source.classes, source.chosen
    labels = labels_of(model) if class_names is None else tuple(class_names)
    numbers = None if y is None else class_numbers(y, labels).cpu()[rows]
    if isinstance(readout, LogOdds | Logit | Margin | Probability) and readout.y.shape == (len(data),):
        readout = type(readout)(readout.y[rows], readout.names)
    names = [str(label) for label in labels] or None
    evaluator = Evaluator(
        Task(
            model,
            data[rows].detach(),
            numbers,
            players=players,
            readout=readout,
            class_names=names,
            categorical=categorical,
            limit=limit,
        )
    )
    if share == "class" and numbers is None:
        raise wrong("y", "be given for a baseline of each class", "none")
    whose = numbers if share == "class" else torch.arange(len(rows)) * (share == "sample")
    owners, owner = torch.unique(whose, return_inverse=True)
    return Problem(
        evaluator,
        source.thinned_data(),
        owner,
        numbers,
        owners if share == "class" else None,
        loss,
        share,
        seed,
        options,
    )


def _make_objective(problem: Problem, mean: Tensor, space: Space) -> PaperObjective | FaithfulObjective:
    """Make the loss that the options describe; scales of the default loss are measured at the mean."""
    evaluator, loss, options = problem.evaluator, problem.loss, problem.options
    if options.cube is not None and loss != "interactions":
        raise wrong("cube", "be left out for other losses than interactions", f"{options.cube} for {loss!r}")
    if options.orders is not None and loss == "faithful":
        raise wrong("orders", "be left out for the loss 'faithful', which takes all", options.orders)
    if loss == "faithful":
        rows = options.rows_per_step
        if rows is None:
            evaluator.limit.check()
            affordable = affordable_rows(evaluator.model, evaluator.x, _OPERATIONS)
            rows = _within_time(min(_MOST_ROWS, max(_FEWEST_ROWS, affordable)), evaluator.limit)
        rows = max(min(rows, _LEAST_ROWS), int(rows * problem.rows))
        within = data_range(evaluator.x, (~space.free).nonzero().flatten().tolist())
        return FaithfulObjective(
            evaluator, problem.owner, problem.seed, rows, Weights(options.evidence, options.noise), mean, within
        )
    players, samples = len(evaluator.players), int((problem.owner >= 0).sum())
    if options.cube is not None and not 1 <= options.cube <= players:
        raise wrong("cube", f"be a number of players from 1 to {players}", options.cube)
    usual = 1.0 if loss == "interactions" else 0.5
    orders = count_orders(usual if options.orders is None else options.orders, players)
    rows = max(_LEAST_ROWS, int(options.rows_per_comparison * problem.rows))
    penalty = Penalty(loss, players, orders, rows // min(samples, _MANY_SAMPLES), options.cube)
    return PaperObjective(evaluator, penalty, problem.owner, problem.seed, rows)


def _within_time(rows: int, limit: TimeLimit) -> int:
    """Return fewer rows for a step, a power of two, if a short search would take longer than the time left."""
    if not limit.is_set or limit.seconds_per_row == math.inf:
        return rows
    affordable = limit.left / (limit.seconds_per_row * _STEPS_OF_A_SHORT_SEARCH)
    fitting = 2 ** math.floor(math.log2(max(1.0, affordable)))
    return min(rows, max(_FEWEST_ROWS_IN_TIME, fitting))


def _has_gradient(evaluator: Evaluator, baseline: Tensor, options: LearningOptions) -> bool:
    """Return whether the gradient of a value with all players absent is finite, unless the options tell."""
    if options.gradient is not None:
        return options.gradient
    if isinstance(evaluator.model, NumpyModel) or not evaluator.x.is_floating_point():
        return False
    try:
        slope = _try_step(evaluator, baseline, gradient=True)
    except RuntimeError as error:
        if any(text in str(error) for text in ("does not require grad", "Tensor that requires grad", "with out=...")):
            return False
        raise
    return slope is not None and bool(torch.isfinite(slope).all())


def _try_step(evaluator: Evaluator, baseline: Tensor, gradient: bool, rows: int = 1) -> Tensor | None:
    """Evaluate a sample with all players absent, this many times; return the gradient, if there is one."""
    leaf, x = baseline[:1].detach().clone().requires_grad_(gradient), evaluator.x[:1]
    fill = StandIns(x, leaf.unflatten(1, evaluator.players.shape).to(x)[None])
    nobody = torch.zeros(rows, len(evaluator.players), dtype=torch.bool)
    values = evaluator.values(fill, nobody, samples=torch.zeros(1, dtype=torch.int64), gradient=gradient)
    if gradient:
        values.sum().backward()
    return leaf.grad


def _identity(
    objective: PaperObjective | FaithfulObjective,
    space: Space,
    plan: SearchPlan,
    problem: Problem,
    starts: dict[str, Tensor],
) -> Identity:
    """Return what a search depends on: a digest, and values of the model with all players present or absent."""
    evaluator = problem.evaluator
    settings = (problem.share, problem.seed, plan.steps, plan.rate, plan.polish)
    described = repr((objective.settings, evaluator.readout_note, settings))
    digest = hashlib.blake2b(described.encode(), digest_size=16)
    tensors = [evaluator.x, problem.owner]
    if problem.numbers is not None:
        tensors.append(problem.numbers)
    tensors += [*starts.values(), space.low, space.high, space.coordinate, *space.choices]
    for tensor in tensors:
        digest.update(tensor.detach().cpu().double().numpy().tobytes())
    all_or_none = torch.tensor([[True], [False]]).expand(2, len(evaluator.players))
    signature = []
    for baseline in starts.values():
        stand_ins = baseline[problem.owner].unflatten(1, evaluator.players.shape).to(evaluator.x)
        values = evaluator.values(StandIns(evaluator.x, stand_ins[:, None]), all_or_none)
        signature.append(values.double().cpu().flatten())
    return Identity(digest.hexdigest(), torch.cat(signature))


def _record(run: Search, loss: str, bounds: object, idle: Tensor, compared: dict[str, float]) -> LearningRecord:
    """Describe how a baseline was learned."""
    objective, evaluator = run.objective, run.objective.evaluator
    numbers = tuple(idle.nonzero()[:, 0].tolist())
    return LearningRecord(
        loss=loss, bounds=describe_bounds(bounds), starts=tuple(run.finals), final_losses=tuple(run.finals.values()),
        seed=objective.seed, samples=evaluator.samples, evaluations=objective.evaluations, seconds=run.limit.spent,
        converged=run.converged, stopped=run.stopped,
        undetermined=tuple(evaluator.names[number] for number in numbers), undetermined_numbers=numbers,
        compared=compared,
        readout=evaluator.readout_note, class_names=evaluator.class_names, **objective.record,
    )  # fmt: skip
