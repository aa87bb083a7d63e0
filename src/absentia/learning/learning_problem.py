"""The problem of learning: samples, whose baselines are learned, and the loss to minimise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.data import (
    Categorical,
    CheckedClasses,
    Classes,
    check_numbers,
    class_numbers,
    count_blocks,
    data_range,
)
from absentia.errors import wrong
from absentia.evaluation import Evaluator
from absentia.evaluation.leaf_values import NotFromLeaves
from absentia.learning.checkpoint import Identity
from absentia.learning.faithful import FaithfulObjective, Weights
from absentia.learning.leaf_source import leaf_source
from absentia.learning.learned import Share
from absentia.learning.options import FEWEST_ROWS, LearningOptions, schedule_of
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Penalty, count_orders
from absentia.learning.samples import Source, read_samples
from absentia.learning.space import Space
from absentia.learning.sweeps import SearchPlan
from absentia.learning.value_sources import EvaluatedValues, ValueSource
from absentia.models.adapters import as_model, check_fit, labels_of
from absentia.models.arrays import NumpyModel
from absentia.models.encoded_inputs import encode_inputs
from absentia.players import Players
from absentia.readouts import Readout, select_classes
from absentia.runtime.cost import affordable_rows
from absentia.runtime.limits import TimeLimit
from absentia.runtime.row_count import RowCount
from absentia.task import Task
from absentia.task_inputs import TaskInputs, TaskOptions

# A penalty is exact if all coalitions of all samples, or of this many samples, fit into one comparison. Otherwise
# coalitions are drawn, because an exact result on fewer samples may not hold for others.
_MANY_SAMPLES = 32

# The operations of the model in a step of the default loss determine its rows, between these numbers.
_OPERATIONS_PER_STEP = 3e9
_FEWEST_ROWS_PER_STEP = 2**9
_MOST_ROWS_PER_STEP = 2**14

# A useful search evaluates the rows of about this many steps, most of them before the first step and after the last.
_STEPS_OF_A_SHORT_SEARCH = 160
# If there is too little time for that, steps have fewer rows, but at least this many.
_FEWEST_ROWS_IN_TIME = 2**6

# Baselines of classes or samples are learned in at least this many parts.
_FEWEST_PARTS = 4
# A part has at most this many baselines.
_MOST_TOGETHER = 16

# The highest order of the paper's losses by default, as a share of the players.
_ORDERS_OF_INTERACTIONS = 1.0
_ORDERS_OF_OTHERS = 0.5

# The messages of torch's errors for models without a gradient.
_NO_GRADIENT = ("does not require grad", "Tensor that requires grad", "with out=...")


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

    def with_count(self, row_count: RowCount) -> Problem:
        """Return the same problem with another count of rows, such as that of a worker."""
        return self._replace(evaluator=self.evaluator.with_count(row_count))

    def within(self, limit: TimeLimit) -> Problem:
        """Return the same problem with another time limit."""
        return self._replace(evaluator=Evaluator(self.evaluator.task.with_limit(limit)))

    def parts(self) -> list[Problem]:
        """Return problems of a few baselines each, whose checkpoints are numbered from the second on."""
        owners = torch.arange(int(self.owner.max()) + 1)
        count = max(min(_FEWEST_PARTS, len(owners)), count_blocks(len(owners), _MOST_TOGETHER))
        parts: list[Problem] = []
        for number, members in enumerate(owners.tensor_split(count)):
            owner = torch.where(torch.isin(self.owner, members), self.owner - members[0], -1)
            classes = None if self.classes is None else self.classes[members]
            options = self.options
            if number > 0 and options.checkpoint:
                options = replace(options, checkpoint=f"{options.checkpoint}.{number}")
            rows = 1 / min(_FEWEST_PARTS, count)
            parts.append(self._replace(owner=owner, classes=classes, options=options, rows=rows))
        return parts


def make_problem(
    model: Any,
    x: Any,
    y: Classes,
    *,
    loss: Any,
    share: Any,
    seed: int,
    options: LearningOptions,
    players: Players | None = None,
    readout: Readout | None = None,
    class_names: Sequence[str] | None = None,
    categorical: Categorical = (),
    limit: TimeLimit | None = None,
) -> Problem:
    """Draw the samples to learn from, and determine the owners of the baselines."""
    if share not in ("all", "class", "sample"):
        raise wrong("share", "be 'all', 'class' or 'sample'", repr(share))
    if loss not in ("faithful", "interactions", "shapley", "marginal"):
        raise wrong("loss", "be 'faithful', 'interactions', 'shapley' or 'marginal'", repr(loss))
    encoded = encode_inputs(model, x, players=players)
    adapter = as_model(encoded.model)
    columns = _column_names(encoded.x)
    check_fit(adapter, columns)
    may_have_gaps = isinstance(adapter, NumpyModel)
    source = _draw_samples(encoded.x, y, loss, options, seed, missing=may_have_gaps)
    chosen = source.chosen
    rows = check_numbers(source.data[chosen].detach(), 1, "x", "sample", missing=may_have_gaps)
    labels = labels_of(adapter) if class_names is None else tuple(class_names)
    numbers = None
    if source.classes is not None:
        numbers = class_numbers(source.classes, labels).cpu()[chosen]
    task_options = TaskOptions(
        y=None if numbers is None else CheckedClasses(numbers),
        players=players,
        readout=select_classes(readout, chosen, len(source.data)),
        class_names=[str(label) for label in labels] or None,
        categorical=categorical,
    )
    inputs = TaskInputs(adapter, rows, table=rows, columns=columns, trial_rows=encoded.trial_rows)
    evaluator = Evaluator(Task.of_inputs(inputs, task_options, limit))
    owners, owner = torch.unique(_owner_labels(share, numbers, len(chosen)), return_inverse=True)
    classes = owners if share == "class" else None
    return Problem(evaluator, source.thinned_data(), owner, numbers, classes, loss, share, seed, options)


def _column_names(x: Any) -> Any:
    """Return the columns of a DataFrame, which name the players; None for samples without columns."""
    columns = getattr(x, "columns", None)
    return columns if isinstance(columns, Iterable) else None


def _draw_samples(x: Any, y: Classes, loss: str, options: LearningOptions, seed: int, *, missing: bool) -> Source:
    """Read the data, and draw as many samples as the options ask for, or the default number if memory allows."""
    if options.samples is None:
        return read_samples(x, y, schedule_of(loss).samples, seed, missing=missing).limited_by_bytes()
    if options.samples == "all":
        return read_samples(x, y, None, seed, missing=missing)
    return read_samples(x, y, options.samples, seed, missing=missing)


def _owner_labels(share: Share, numbers: Tensor | None, samples: int) -> Int[Tensor, " samples"]:
    """Return a label for each sample: samples with the same label share a baseline."""
    if share == "all":
        return torch.zeros(samples, dtype=torch.int64)
    if share == "sample":
        return torch.arange(samples)
    if numbers is None:
        raise wrong("y", "be given for a baseline of each class", "none")
    return numbers


def choose_source(problem: Problem, mean: Tensor) -> ValueSource:
    """Choose where the values of the default loss come from: the leaves of trees, if there are any, or the model."""
    if problem.loss != "faithful" or problem.options.gradient:
        return EvaluatedValues(problem.evaluator)
    source = leaf_source(problem.evaluator, mean)
    if isinstance(source, NotFromLeaves):
        return EvaluatedValues(problem.evaluator, notes=(source.note,) if source.note else ())
    return source


def make_objective(
    problem: Problem, mean: Tensor, space: Space, source: ValueSource | None = None
) -> PaperObjective | FaithfulObjective:
    """Make the loss that the options describe; the scales of the default loss are measured at the mean."""
    loss = problem.loss
    options = problem.options
    if options.cube is not None and loss != "interactions":
        raise wrong("cube", "be left out for losses other than interactions", f"{options.cube} for {loss!r}")
    if options.orders is not None and loss == "faithful":
        raise wrong("orders", "be left out for the loss 'faithful', which takes all", options.orders)
    if loss == "faithful":
        _check_left_out("ties", options.ties)
        _check_left_out("restart", options.restart)
        return _faithful_objective(problem, mean, space, source)
    return _paper_objective(problem)


def _check_left_out(name: str, value: object) -> None:
    """Check that an option of the paper's losses is not set for the default loss."""
    if value is not None:
        raise wrong(name, "be left out for the loss 'faithful'", value)


def _faithful_objective(
    problem: Problem, mean: Tensor, space: Space, source: ValueSource | None
) -> FaithfulObjective:
    """Make the default loss."""
    evaluator = problem.evaluator
    options = problem.options
    rows = options.rows_per_step
    if rows is None:
        evaluator.limit.check()
        affordable = affordable_rows(evaluator.model, evaluator.x, _OPERATIONS_PER_STEP, evaluator.task.row_count)
        rows = min(_MOST_ROWS_PER_STEP, max(_FEWEST_ROWS_PER_STEP, affordable))
        rows = _within_time(rows, evaluator.limit)
    rows = max(min(rows, FEWEST_ROWS), int(rows * problem.rows))
    within = data_range(evaluator.x, (~space.free).nonzero().flatten().tolist())
    weights = Weights(options.evidence, options.noise)
    return FaithfulObjective(evaluator, problem.owner, problem.seed, rows, weights, mean, within, source)


def _paper_objective(problem: Problem) -> PaperObjective:
    """Make one of the paper's losses."""
    options = problem.options
    players = len(problem.evaluator.players)
    if options.cube is not None and not 1 <= options.cube <= players:
        raise wrong("cube", f"be a number of players from 1 to {players}", options.cube)
    highest = options.orders
    if highest is None:
        highest = _ORDERS_OF_INTERACTIONS if problem.loss == "interactions" else _ORDERS_OF_OTHERS
    samples = int((problem.owner >= 0).sum())
    rows = max(FEWEST_ROWS, int(options.rows_per_comparison * problem.rows))
    rows_per_sample = rows // min(samples, _MANY_SAMPLES)
    penalty = Penalty(problem.loss, players, count_orders(highest, players), rows_per_sample, options.cube)
    ties = options.decides_ties(problem.loss)
    return PaperObjective(problem.evaluator, penalty, problem.owner, problem.seed, rows, ties=ties)


def _within_time(rows: int, limit: TimeLimit) -> int:
    """Return fewer rows for a step, a power of two, if a short search would exceed the remaining time."""
    if not limit.is_set or limit.seconds_per_row == math.inf:
        return rows
    affordable = limit.left / (limit.seconds_per_row * _STEPS_OF_A_SHORT_SEARCH)
    fitting = 2 ** math.floor(math.log2(max(1.0, affordable)))
    return min(rows, max(_FEWEST_ROWS_IN_TIME, fitting))


def has_gradient(evaluator: Evaluator, baseline: Tensor, options: LearningOptions) -> bool:
    """Return whether the gradient of a value with all players absent is finite, unless the options specify it."""
    if options.gradient is not None:
        return options.gradient
    if isinstance(evaluator.model, NumpyModel) or not evaluator.x.is_floating_point():
        return False
    try:
        slope = try_step(evaluator, baseline, gradient=True)
    except RuntimeError as error:
        if any(text in str(error) for text in _NO_GRADIENT):
            return False
        raise
    return slope is not None and bool(torch.isfinite(slope).all())


def try_step(evaluator: Evaluator, baseline: Tensor, gradient: bool, rows: int = 1) -> Tensor | None:
    """Evaluate a sample with all players absent, this many times; return the gradient, if there is one."""
    leaf = baseline[:1].detach().clone().requires_grad_(gradient)
    x = evaluator.x[:1]
    fill = StandIns(x, leaf.unflatten(1, evaluator.players.shape).to(x)[None])
    nobody = torch.zeros(rows, len(evaluator.players), dtype=torch.bool)
    values = evaluator.values(fill, nobody, samples=torch.zeros(1, dtype=torch.int64), gradient=gradient)
    if gradient:
        values.sum().backward()
    return leaf.grad


def search_identity(
    objective: PaperObjective | FaithfulObjective,
    space: Space,
    plan: SearchPlan,
    problem: Problem,
    starts: dict[str, Tensor],
) -> Identity:
    """Return what a search depends on: a digest, and values of the model with all players present or absent."""
    evaluator = problem.evaluator
    settings = (problem.share, problem.seed, plan.steps, plan.rate, plan.polish, plan.restart)
    described = repr((objective.settings, str(evaluator.task.readout_note), settings))
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
