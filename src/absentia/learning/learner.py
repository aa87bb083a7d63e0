"""Learning a baseline: the public functions, and how they set up the problem."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.absences.protocol import Absence, BringsModel, StandIns, for_classes
from absentia.absences.words import named_absence
from absentia.arguments import checked
from absentia.data import (
    Categorical,
    Classes,
    Table,
    data_quantiles,
)
from absentia.errors import AbsentiaError, wrong
from absentia.games import resolve_absence
from absentia.learning.checkpoint import Checkpoint
from absentia.learning.faithful import FaithfulObjective
from absentia.learning.joined_parts import join_parts
from absentia.learning.learned import LEARNED, LearnedBaseline, LearningRecord, Share, best_candidate, learned_from
from absentia.learning.learning_problem import (
    Problem,
    has_gradient,
    make_objective,
    make_problem,
    search_identity,
    try_step,
)
from absentia.learning.options import FAITHFUL, AnyLoss, LearningOptions, schedule_of
from absentia.learning.processes import process_count
from absentia.learning.search import Search
from absentia.learning.space import Baselines, Bounds, Owners, Space, describe_bounds, make_space
from absentia.learning.starts import Start, named_starts, start_baseline, usual_baselines
from absentia.learning.sweeps import SearchPlan
from absentia.players import Players
from absentia.readouts import Output, Readout
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import progress
from absentia.runtime.threads import quickest_threads
from absentia.runtime.workers import spread, worker_count
from absentia.task import Task

# The most coalitions that are evaluated to choose the number of threads.
_TRIED_COALITIONS = 2**8

# A baseline that an audit learns on its way takes at most this share of the time that is left.
_SHARE_FOR_LEARNING = 0.5

# The usual baselines that learned values are compared with by the default loss.
_COMPARED = ("mean", "median", "zero")

# The least limit of a part, because a limit of zero is none.
_LEAST_SECONDS = 1e-9


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
        limit = TimeLimit(seconds)
        options = options or LearningOptions()
        try:
            problem = make_problem(
                model,
                x,
                y,
                loss=loss,
                share=share,
                seed=seed,
                options=options,
                players=players,
                readout=readout,
                class_names=class_names,
                categorical=categorical,
                limit=limit,
            )
        except OutOfTime as error:
            raise limit.too_short(FAITHFUL.samples, "Or learn from fewer samples.") from error
        space = make_space(problem.data, problem.evaluator.players, bounds, options.tie, options.held)
        if not problem.evaluator.x.is_floating_point() and len(space.low):
            then = "Name every free entry, as in categorical=range(length), and hold the others."
            raise wrong("categorical", "name the entries of inputs that are token numbers", "fewer", then)
        parts = problem.parts()
        learn = partial(_learn_part, space, start, bounds)
        if len(parts) == 1:
            return learn(problem, limit).baseline
        return join_parts(_learn_parts(learn, parts, limit), limit.spent)


def _learn_parts(
    learn: Callable[..., LearnedPart], parts: Sequence[Problem], limit: TimeLimit
) -> list[LearnedBaseline]:
    """Learn the baselines of all parts; if the user ends one, the others take the best of the usual values."""
    rounds = math.ceil(len(parts) / worker_count())
    learn_number = partial(_learn_number, learn, parts, limit, limit.left / rounds)
    baselines: list[LearnedBaseline] = []
    with progress(len(parts), "learning the baselines", "part") as bar:
        numbers = range(len(parts))  # because what the work holds is sent to workers once
        for part in spread(learn_number, numbers, "learning"):
            baselines.append(part.baseline)
            bar.update()
            if part.ended_by_user:
                others = parts[len(baselines) :]
                baselines += [learn(other, _limit_within(limit), ended=True).baseline for other in others]
                break
    return baselines


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
    return TimeLimit(max(_LEAST_SECONDS, min(seconds, whole.left)))


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
    evaluator = problem.evaluator
    options = problem.options
    first = next(iter(starts.values()))
    gradient = has_gradient(evaluator, first, options)
    trial = partial(try_step, evaluator, first, gradient, min(_TRIED_COALITIONS, evaluator.batch_size))
    with nullcontext() if process_count() > 1 else quickest_threads(trial, evaluator.x.device, limit):
        objective = make_objective(problem, usual["mean"][0], space)
        plan = _search_plan(problem, gradient)
        checkpoint = None
        if options.checkpoint is not None:
            identity = search_identity(objective, space, plan, problem, starts)
            checkpoint = Checkpoint(Path(options.checkpoint), identity)
        run = Search(objective, space, plan, limit, options.callback, checkpoint=checkpoint, ended=ended)
        if isinstance(objective, FaithfulObjective):
            # Without a gradient, "best" is the best of the usual baselines, which the search finds itself.
            own_starts = {} if choose and not gradient else starts
            selection = _select_faithful(run, objective, own_starts, usual)
        else:
            selection = _select_paper(run, starts, usual)
    evaluator.check_still_same()
    idle = run.undetermined(selection.losses)
    # Reset players that do not affect the loss to their start values.
    values = torch.where(evaluator.players.presence(~idle).flatten(), selection.values, first)
    record = _record(run, problem.loss, bounds, idle, selection.compared)
    names = _name_usual(values, selection.names, record.learned_names, usual | starts)
    if len(names) == 1:
        chosen = names[0]
    else:
        chosen = best_candidate(selection.compared, record.learned_names)
    record = replace(record, chosen=chosen, picked=dict(Counter(names)))
    history = torch.tensor(run.state.history).double().reshape(-1, 2)
    return Choice(values, selection.losses, history, record, run.ended_by_user)


def _search_plan(problem: Problem, gradient: bool) -> SearchPlan:
    """Return the steps that the options ask for, or those of the loss's schedule; none without a gradient."""
    options = problem.options
    schedule = schedule_of(problem.loss)
    steps = schedule.steps if options.steps is None else options.steps
    rate = schedule.rate if options.rate is None else options.rate
    if not gradient:
        steps = 0
    return SearchPlan(steps, rate, options.polish, gradient)


def _name_usual(
    values: Baselines, names: Sequence[str], learned: Sequence[str], usual: dict[str, Tensor]
) -> list[str]:
    """Return the name of each owner's values: that of a usual baseline or a start also if learning ended there."""
    owner_names: list[str] = []
    for owner, name in enumerate(names):
        equal = [
            usual_name
            for usual_name, baseline in usual.items()
            if torch.allclose(values[owner], baseline[owner], rtol=1e-9)
        ]
        owner_names.append(equal[0] if equal and name in learned else name)
    return owner_names


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


class Selection(NamedTuple):
    """The best values for each owner with their losses, the mean losses of all candidates, and the values' names."""

    values: Baselines
    losses: Owners
    compared: dict[str, float]
    names: list[str]


def _select_paper(run: Search, starts: dict[str, Tensor], usual: dict[str, Tensor]) -> Selection:
    """Learn by one of the paper's losses, which zero is not compared by."""
    others = {name: baseline for name, baseline in usual.items() if name != "zero"}
    end = run.search_paper(starts, others)
    return Selection(end.baseline, end.penalties, {}, [LEARNED] * len(end.baseline))


def _select_faithful(
    run: Search, objective: FaithfulObjective, starts: dict[str, Tensor], usual: dict[str, Tensor]
) -> Selection:
    """Learn by the default loss; select for each owner the best values on the samples kept aside."""
    others = {name: baseline for name, baseline in usual.items() if name in _COMPARED}
    known = starts | others
    rows_to_judge = objective.judged_rows(len(known) + max(1, len(starts)))
    ends = run.search_faithful(starts, others, rows_to_judge)
    run.limit.reserve = 0.0
    learned_names = [LEARNED] if len(ends) == 1 else [learned_from(name) for name in ends]
    learned = dict(zip(learned_names, ends.values(), strict=True))
    candidates = known | learned  # of equal losses the first counts: learned values must be better
    losses = objective.judge(list(candidates.values()))
    if not objective.judged_all and run.converged:
        reached = f"the limit of {run.limit.seconds:g} s is reached"
        run.state.unfinished = f"{reached} before candidates were compared on all samples kept aside"
    means = dict(zip(candidates, losses.mean(1).tolist(), strict=True))
    run.finals = {start: means[name] for start, name in zip(ends, learned_names, strict=True)}
    best = losses.argmin(0)
    values = torch.stack(list(candidates.values()))[best, torch.arange(objective.owners)]
    candidate_names = list(candidates)
    return Selection(
        values=values,
        losses=losses.amin(0),
        compared={name: means[name] for name in (*learned, *known)},
        names=[candidate_names[number] for number in best.tolist()],
    )


@checked
def baseline_loss(
    model: Any,
    x: Any,
    y: Classes = None,
    *,
    absence: Absence | str | float,
    loss: AnyLoss = "faithful",
    players: Players | None = None,
    readout: Readout | None = None,
    categorical: Categorical = (),
    class_names: Sequence[str] | None = None,
    options: LearningOptions | None = None,
    seed: int = 0,
) -> float:
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
    problem = make_problem(
        model,
        x,
        y,
        loss=loss,
        share="all",
        seed=seed,
        options=options,
        players=players,
        readout=readout,
        class_names=class_names,
        categorical=categorical,
    )
    evaluator = problem.evaluator
    rows = problem.data.unflatten(1, evaluator.players.shape).to(evaluator.x)
    absence = named_absence(absence, rows, players=evaluator.players, seed=seed)
    classes = getattr(evaluator.readout, "y", None) if y is None else problem.numbers
    fill = for_classes(absence, classes).bind(evaluator.x)
    if isinstance(absence, BringsModel) or not isinstance(fill, StandIns) or fill.draws != 1:
        raise wrong("absence", "have one fixed stand-in for each sample", absence)
    stand_ins = fill.values[:, 0].flatten(1).double().cpu().expand(evaluator.samples, -1)
    space = make_space(problem.data, evaluator.players, "range", None, None)
    objective = make_objective(problem, start_baseline("mean", problem.data, space), space)
    if isinstance(objective, FaithfulObjective):
        if len(fill.values) > 1:
            raise wrong("loss", "be one of the paper's for stand-ins of each sample", repr(loss))
        return float(objective.judge([stand_ins[:1]]))
    objective.owner = torch.arange(evaluator.samples)  # of its own stand-ins
    losses = objective.losses(stand_ins, objective.compared, objective.plan)
    rows, weights = objective.compared
    return float((losses[rows] * weights).sum() / weights.sum())


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


def _record(run: Search, loss: str, bounds: object, idle: Tensor, compared: dict[str, float]) -> LearningRecord:
    """Describe how a baseline was learned."""
    objective = run.objective
    evaluator = objective.evaluator
    numbers = tuple(idle.nonzero()[:, 0].tolist())
    return LearningRecord(
        loss=loss,
        bounds=describe_bounds(bounds),
        starts=tuple(run.finals),
        final_losses=tuple(run.finals.values()),
        seed=objective.seed,
        samples=evaluator.samples,
        evaluations=objective.evaluations,
        seconds=run.limit.spent,
        converged=run.converged,
        stopped=run.stopped,
        undetermined=tuple(evaluator.names[number] for number in numbers),
        undetermined_numbers=numbers,
        compared=compared,
        readout=evaluator.readout_note,
        class_names=evaluator.class_names,
        **objective.record,
    )
