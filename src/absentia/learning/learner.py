"""The public functions for learning a baseline, and the setup of the problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.absences.protocol import Absence, BringsModel, StandIns
from absentia.arguments import checked
from absentia.data import (
    Categorical,
    CheckedRows,
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
    choose_source,
    has_gradient,
    make_objective,
    make_problem,
    search_identity,
    try_step,
)
from absentia.learning.options import FAITHFUL, AnyLoss, LearningOptions, schedule_of
from absentia.learning.processes import process_count, rows_of_all_processes
from absentia.learning.profiling import SHARE_OF_SEARCH, Profiling, profile_values
from absentia.learning.search import Search
from absentia.learning.search_ends import EndKind, SearchEnd
from absentia.learning.space import Baselines, Bounds, Owners, Space, describe_bounds, make_space
from absentia.learning.starts import Start, named_starts, start_baseline, usual_baselines
from absentia.learning.sweeps import SearchPlan
from absentia.learning.value_profiles import ValueProfiles
from absentia.learning.value_sources import ValueSource
from absentia.players import Players
from absentia.readouts import Output, Readout
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.progress import progress
from absentia.runtime.row_count import RowCount
from absentia.runtime.stops import Stop
from absentia.runtime.threads import quickest_threads
from absentia.runtime.workers import spread, worker_count
from absentia.task import Task

# The maximum number of coalitions that are evaluated to choose the number of threads.
_TRIED_COALITIONS = 2**8

# A baseline that is learned within an audit takes at most this share of the remaining time.
_SHARE_FOR_LEARNING = 0.5

# The usual baselines that the default loss compares with the learned values.
_COMPARED = ("mean", "median", "zero")

# The shortest time limit of a part, because zero would mean no limit.
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

    The default loss asks for short explanations and honest predictions. Interactions should be few and weak. Masked
    predictions should be as good as the present players allow, and should claim nothing by themselves. The baseline
    should carry no more signal than white noise. A fifth of the samples is held out, and the learned values, the
    start, the mean, the median and zero are compared on them. The best of these is the result, and its record says
    which one it is. Ctrl-C ends learning with the best values so far.

    Parameters
    ----------
    model, players, readout, class_names
        See `Evaluator`.
    x, y
        Samples, and their classes as numbers or names. ``x`` may also be a Dataset or DataLoader, whose items may be
        pairs (x, y).
    loss : {"faithful", "interactions", "shapley", "marginal"}
        What to minimise. "faithful" is described above. The others are penalties only: Σ|U(S)|, and the paper's
        L_Shapley and L_marginal, which are minimised as in the paper, along the gradient from the start. The options
        ``ties``, ``restart`` and ``polish`` add to that.
    start : {"best", "mean", "median", "zero"}, float, array, or a list of these
        The values to start from. If there are several, the best result is kept. "best" is the mean, except for the
        default loss and a model without a gradient. Then it is the mean, the median or zero, whichever has the lowest
        loss.
    bounds : "range", float or tuple
        The range of the data, a number k for mean ± k standard deviations, or a pair (low, high).
    share : {"all", "class", "sample"}
        Whether to learn one baseline for all samples, one for each class, or one for each sample. The latter two use
        the workers of joblib, if there are any.
    categorical : sequence
        Categorical columns that the players do not know about, or groups of columns such as a one-hot encoding. They
        only take values that occur together in the data.
    seed : int
        The seed of all random draws.
    seconds : float, optional
        A time limit, after which the best values so far are returned.
    options : LearningOptions, optional
        Weights of the loss, steps, rows, a callback, a checkpoint and other advanced options.

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
            learned = learn(problem, limit).baseline
        else:
            learned = join_parts(_learn_parts(learn, parts, limit), limit.spent)
        task = problem.evaluator.task
        rows_seen = rows_of_all_processes(task.row_count.rows, task.x.device)
        return replace(learned, record=replace(learned.record, rows_seen=rows_seen))


def _learn_parts(
    learn: Callable[..., LearnedPart], parts: Sequence[Problem], limit: TimeLimit
) -> list[LearnedBaseline]:
    """Learn the baselines of all parts; if the user ends one of them, the others use the best usual values."""
    rounds = math.ceil(len(parts) / worker_count())
    learn_number = partial(_learn_number, learn, parts, limit, limit.left / rounds)
    baselines: list[LearnedBaseline] = []
    with progress(len(parts), "learning the baselines", "part") as bar:
        numbers = range(len(parts))  # because what the work holds is sent to workers once
        for part in spread(learn_number, numbers, "learning", parts[0].evaluator.task.row_count):
            baselines.append(part.baseline)
            bar.update()
            if part.ended_by_user:
                others = parts[len(baselines) :]
                baselines += [learn(other, _limit_within(limit), ended=True).baseline for other in others]
                break
    return baselines


class LearnedPart(NamedTuple):
    """The baselines of some of the owners, and whether the user ended learning in the meantime."""

    baseline: LearnedBaseline
    ended_by_user: bool


def _learn_number(
    learn: Callable[[Problem, TimeLimit], LearnedPart],
    parts: Sequence[Problem],
    whole: TimeLimit,
    seconds: float,
    number: int,
    row_count: RowCount,
) -> LearnedPart:
    """Learn one of the parts within its share of the time, and count its rows."""
    return learn(parts[number].with_count(row_count), _limit_within(whole, seconds))


def _limit_within(whole: TimeLimit, seconds: float = math.inf) -> TimeLimit:
    """Return a time limit for a part of the work, which ends no later than that of the whole work."""
    return TimeLimit(max(_LEAST_SECONDS, min(seconds, whole.left)))


def _learn_part(
    space: Space, start: object, bounds: Bounds, problem: Problem, limit: TimeLimit, *, ended: bool = False
) -> LearnedPart:
    """Learn the baselines of a problem's owners together; take usual ones if the user ``ended`` learning before."""
    limit.strict = process_count() == 1  # several processes wait for each other's values, so they end between steps
    row_count = problem.evaluator.task.row_count
    own_count = RowCount()  # so that a checkpoint holds the rows of this part alone
    problem = problem.within(limit).with_count(own_count)
    evaluator = problem.evaluator
    may_choose = isinstance(start, str) and start == "best"
    starts = named_starts("mean" if may_choose else start, problem.data, space, int(problem.owner.max()) + 1)
    usual = usual_baselines(problem.data, space, next(iter(starts.values())))
    try:
        setup = SearchSetup(problem, space, bounds, limit, starts, usual, may_choose, ended)
        choice = _search(setup)
    except OutOfTime as error:
        choice = _take_start(problem, bounds, limit, starts, error.stop)
    row_count.add(own_count.rows)
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
        profiles=choice.profiles,
    )
    return LearnedPart(baseline, choice.ended_by_user)


class Choice(NamedTuple):
    """The values that a search ends with, their losses, and how they were found."""

    values: Baselines
    losses: Owners
    history: Float[Tensor, "checks 2"]
    record: LearningRecord
    profiles: ValueProfiles | None = None
    ended_by_user: bool = False


@dataclass(frozen=True, eq=False)
class SearchSetup:
    """What a search begins with."""

    problem: Problem
    space: Space
    bounds: Bounds
    limit: TimeLimit
    starts: dict[str, Tensor]  # by name
    usual: dict[str, Tensor]  # the usual baselines, by name
    may_choose: bool  # whether the search may choose its start itself
    ended: bool  # whether the user ended learning before

    @property
    def first_start(self) -> Baselines:
        """The start that comes first, which players without an effect keep."""
        return next(iter(self.starts.values()))


def _search(setup: SearchSetup) -> Choice:
    """Search for the baselines; raise `OutOfTime` if none could be compared within the limit."""
    evaluator = setup.problem.evaluator
    gradient = has_gradient(evaluator, setup.first_start, setup.problem.options)
    source = choose_source(setup.problem, setup.usual["mean"][0])
    with _threads_for(setup, gradient, source):
        run = _make_run(setup, gradient, source)
        selection = _select(run, setup, gradient)
        profiling = _profile(run, setup, selection)
    evaluator.check_still_same()
    return _choice(run, setup, selection, profiling)


def _threads_for(setup: SearchSetup, gradient: bool, source: ValueSource) -> AbstractContextManager[object]:
    """Return a context in which as many threads run as are quickest; several processes share theirs already."""
    model_is_run = source.tree_count == 0
    if process_count() > 1 or not model_is_run:
        return nullcontext()
    evaluator = setup.problem.evaluator
    coalitions = min(_TRIED_COALITIONS, evaluator.batch_size)
    trial = partial(try_step, evaluator, setup.first_start, gradient, coalitions)
    return quickest_threads(trial, evaluator.x.device, setup.limit)


def _make_run(setup: SearchSetup, gradient: bool, source: ValueSource) -> Search:
    """Make the objective and the search for it, which resumes from a checkpoint if there is one."""
    problem = setup.problem
    options = problem.options
    objective = make_objective(problem, setup.usual["mean"][0], setup.space, source)
    plan = _search_plan(problem, gradient)
    checkpoint = None
    if options.checkpoint is not None:
        identity = search_identity(objective, setup.space, plan, problem, setup.starts)
        checkpoint = Checkpoint(Path(options.checkpoint), identity)
    return Search(
        objective,
        setup.space,
        plan,
        setup.limit,
        options.callback,
        checkpoint=checkpoint,
        ended=setup.ended,
        share_for_profiles=SHARE_OF_SEARCH if options.profiles else 0.0,
    )


def _select(run: Search, setup: SearchSetup, gradient: bool) -> Selection:
    """Run the search, and select the best values for each owner."""
    if not isinstance(run.objective, FaithfulObjective):
        return _select_paper(run, setup.starts, setup.usual)
    # Without a gradient, "best" is the best of the usual baselines, which the search finds itself.
    finds_start = setup.may_choose and not gradient
    return _select_faithful(run, run.objective, {} if finds_start else setup.starts, setup.usual)


def _profile(run: Search, setup: SearchSetup, selection: Selection) -> Profiling | None:
    """Profile the selected values, unless the options say otherwise or the user has ended learning."""
    if not setup.problem.options.profiles or run.ended_by_user:
        return None
    return profile_values(run, selection.values)


def _choice(run: Search, setup: SearchSetup, selection: Selection, profiling: Profiling | None) -> Choice:
    """Return the selected values and how they were found; players that do not affect the loss keep their start."""
    profiles = None if profiling is None else profiling.profiles
    idle = _idle_players(run, selection, profiles)
    determined = setup.problem.evaluator.players.presence(~idle).flatten()  # (entries,)
    values = torch.where(determined, selection.values, setup.first_start)  # (owners, entries)
    record = _record(run, setup.problem.loss, setup.bounds, idle, selection.compared)
    names = _name_usual(values, selection.names, record.learned_names, setup.usual | setup.starts)
    if len(names) == 1:
        chosen = names[0]
    else:
        chosen = best_candidate(selection.compared, record.learned_names)
    record = replace(record, chosen=chosen, picked=dict(Counter(names)))
    history = torch.tensor(run.state.history).double().reshape(-1, 2)
    ended_by_user = run.ended_by_user or (profiling is not None and profiling.interrupted)
    return Choice(values, selection.losses, history, record, profiles, ended_by_user)


def _idle_players(run: Search, selection: Selection, profiles: ValueProfiles | None) -> Bool[Tensor, " players"]:
    """Return the players of which no value that was tried changed the loss.

    A gradient that is always 0 is not enough: a profile, or a sweep, must have tried other values.
    """
    seem_idle = run.seems_idle(selection.losses)
    if profiles is None:
        return seem_idle & run.was_swept()
    has_profile = torch.tensor([reason is None for reason in profiles.reasons])
    return seem_idle & torch.where(has_profile, profiles.has_no_effect, torch.tensor(run.was_swept()))


def _search_plan(problem: Problem, gradient: bool) -> SearchPlan:
    """Return the steps that the options ask for, or those of the loss's schedule; none without a gradient."""
    options = problem.options
    schedule = schedule_of(problem.loss)
    steps = schedule.steps if options.steps is None else options.steps
    rate = schedule.rate if options.rate is None else options.rate
    if not gradient:
        steps = 0
    return SearchPlan(steps, rate, options.polish, gradient, options.restarts(problem.loss))


def _name_usual(
    values: Baselines, names: Sequence[str], learned: Sequence[str], usual: dict[str, Tensor]
) -> list[str]:
    """Return the name of each owner's values; values that learning did not change keep the name of their origin."""
    owner_names: list[str] = []
    for owner, name in enumerate(names):
        equal = [
            usual_name
            for usual_name, baseline in usual.items()
            if torch.allclose(values[owner], baseline[owner], rtol=1e-9)
        ]
        owner_names.append(equal[0] if equal and name in learned else name)
    return owner_names


def _take_start(problem: Problem, bounds: object, limit: TimeLimit, starts: dict[str, Tensor], stop: Stop) -> Choice:
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
        end=SearchEnd(EndKind.CUT_BEFORE_START, stop),
        evaluations=evaluator.task.row_count.rows,
        seconds=limit.spent,
        undetermined=(),
        readout_note=evaluator.task.readout_note,
        chosen=name,
        class_names=evaluator.task.class_names,
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
    """Learn with one of the paper's losses, which do not consider zero."""
    others = {name: baseline for name, baseline in usual.items() if name != "zero"}
    end = run.search_paper(starts, others)
    return Selection(end.baseline, end.penalties, {}, [LEARNED] * len(end.baseline))


def _select_faithful(
    run: Search, objective: FaithfulObjective, starts: dict[str, Tensor], usual: dict[str, Tensor]
) -> Selection:
    """Learn with the default loss, and select the best values for each owner on the held-out samples."""
    others = {name: baseline for name, baseline in usual.items() if name in _COMPARED}
    fixed_candidates = starts | others
    rows_to_judge = objective.judged_rows(len(fixed_candidates) + max(1, len(starts)))
    ends = run.search_faithful(starts, others, rows_to_judge)
    run.limit.reserve = 0.0
    learned_names = [LEARNED] if len(ends) == 1 else [learned_from(name) for name in ends]
    learned = dict(zip(learned_names, ends.values(), strict=True))
    candidates = fixed_candidates | learned  # of equal losses the first counts: learned values must be better
    losses = objective.judge(list(candidates.values()))
    if not objective.judged_all and run.converged:
        run.state.unfinished = SearchEnd(EndKind.CUT_IN_COMPARISON, run.limit.stop)
    means = dict(zip(candidates, losses.mean(1).tolist(), strict=True))
    run.finals = {start: means[name] for start, name in zip(ends, learned_names, strict=True)}
    best = losses.argmin(0)
    values = torch.stack(list(candidates.values()))[best, torch.arange(objective.owners)]
    candidate_names = list(candidates)
    return Selection(
        values=values,
        losses=losses.amin(0),
        compared={name: means[name] for name in (*learned, *fixed_candidates)},
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

    The loss is computed on the samples and coalitions on which `learn_baseline`, with the same arguments, compares
    baselines for all samples. The losses of several absences can therefore be compared with each other, and with the
    ``loss`` of a learned baseline.

    Parameters
    ----------
    model, x, y, loss, players, readout, categorical, class_names, seed
        See `learn_baseline`.
    absence : Absence, str or float
        Fixed values: an absence with one stand-in for each sample that does not depend on the present players.
    options : LearningOptions, optional
        Only the weights, rows, samples, orders and cube are used.

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
    data = problem.data.unflatten(1, evaluator.players.shape).to(evaluator.x)
    absence = absence_for(evaluator.task, absence, CheckedRows(data), seed)
    classes = getattr(evaluator.readout, "y", None) if y is None else problem.numbers
    fill = evaluator.task.bind(absence, classes)
    if isinstance(absence, BringsModel) or not isinstance(fill, StandIns) or fill.draws != 1:
        raise wrong("absence", "have one fixed stand-in for each sample", absence)
    stand_ins = fill.values[:, 0].flatten(1).double().cpu().expand(evaluator.samples, -1)
    space = make_space(problem.data, evaluator.players, "range", None, None)
    mean = start_baseline("mean", problem.data, space)
    objective = make_objective(problem, mean, space, choose_source(problem, mean))
    if isinstance(objective, FaithfulObjective):
        if len(fill.values) > 1:
            raise wrong("loss", "be one of the paper's losses if stand-ins differ between samples", repr(loss))
        return float(objective.judge([stand_ins[:1]]))
    objective.owner = torch.arange(evaluator.samples)  # of its own stand-ins
    losses = objective.losses(stand_ins, objective.compared, objective.plan)
    rows, weights = objective.compared
    return float((losses[rows] * weights).sum() / weights.sum())


def absence_for(task: Task, absence: object, data: Table | CheckedRows | None, seed: int) -> Absence:
    """Return the absence for a task: unchanged, named by a word or a number, or learned from the data.

    Both `explain` and `audit` use this function, so a word means the same absence in both.
    """
    if not (isinstance(absence, str) and absence == LEARNED):
        return resolve_absence(task, absence, data, seed)
    if data is None:
        raise AbsentiaError("A baseline is learned from data. Pass data=…, rows such as those of the training.")
    rows = data.rows if isinstance(data, CheckedRows) else task.rows_of(data)
    seconds = None
    if task.limit.is_set:
        task.limit.check()
        seconds = _SHARE_FOR_LEARNING * task.limit.left
    learned = learn_baseline(
        task.model, rows, players=task.players, readout=_readout_of_rows(task, rows), seed=seed, seconds=seconds
    )
    task.row_count.add(learned.record.rows_seen or 0)
    return learned


def _readout_of_rows(task: Task, rows: Tensor) -> Readout | None:
    """Return the samples' readout if it also suits rows of data; None stands for the default readout of the rows."""
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
        evaluations=objective.evaluated_rows,
        seconds=run.limit.spent,
        converged=run.converged,
        end=run.end,
        undetermined=tuple(evaluator.task.names[number] for number in numbers),
        undetermined_numbers=numbers,
        compared=compared,
        readout_note=evaluator.task.readout_note,
        class_names=evaluator.task.class_names,
        **objective.record,
    )
