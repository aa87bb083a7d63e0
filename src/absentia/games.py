"""Games: coalition → value."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, final, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.absences.protocol import Absence, BringsModel, Fill, check_absence
from absentia.absences.words import named_absence
from absentia.arguments import checked
from absentia.coalitions import coalition_numbers, enumerate_coalitions, sums_by_size_and_player, table_players
from absentia.data import Array, Categorical, CheckedRows, Classes, Rows, Table, as_tensor, blocks, check_columns
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator, Tabulated, check_coalitions, check_finite, rounding_noise
from absentia.evaluation.leaf_values import LeafValues, NotFromLeaves, leaf_values
from absentia.models.adapters import as_model
from absentia.models.encoded_inputs import EncodedInputs, encode_inputs
from absentia.models.model import Model
from absentia.players import Players
from absentia.readout_notes import ReadoutNote
from absentia.readouts import Readout
from absentia.runtime.row_count import RowCount
from absentia.runtime.workers import spread, worker_count
from absentia.task import Task
from absentia.task_inputs import TaskInputs, TaskOptions
from absentia.text import count_of

MAX_PLAYERS = 24
MAX_TABLE_BYTES = 4 * 2**30
# How many coalitions are asked of a game at a time.
_COALITIONS_PER_STEP = 2**14
# Samples are spread over workers in about this many parts for each.
_PARTS_OF_A_WORKER = 4
# The samples of a part are a multiple of what an evaluator takes at once, which is this many batches.
_BATCHES_OF_A_BLOCK = 4


@runtime_checkable
class Game(Protocol):
    """Coalition → value, for a batch of samples that share the players.

    Examples
    --------
    >>> class Majority:
    ...     samples, names = 1, ("a", "b", "c")
    ...     def __call__(self, coalitions):
    ...         return (coalitions.sum(1) >= 2).double()[None]
    >>> ab.shapley(Majority()).values
    tensor([[0.3333, 0.3333, 0.3333]], dtype=torch.float64)
    """

    @property
    def samples(self) -> int:
        """The number of samples, the first axis of the values."""

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""

    def __call__(self, coalitions: Bool[Tensor, "coalitions players"]) -> Float[Tensor, "samples coalitions"]:
        """Return the value of each coalition for each sample."""


@checked
@final
@dataclass(frozen=True, eq=False, init=False)
class ValueTable:
    """The values of all 2ⁿ coalitions in counting order: from `value_table`, or from values you already have.

    Parameters
    ----------
    values : sequence or array
        Of shape (2ⁿ,) or (samples, 2ⁿ). Entry k belongs to the coalition that holds player i iff bit i of k is set.
    names : sequence of str, optional
        The players' names.
    readout : str, default "given"
        A description of the value, for records.
    noise : Tensor, optional
        The size of the rounding errors in the values of each sample; by default four times the precision of the
        values' type at the largest value.
    evaluations : int, default 0
        The rows that were evaluated for the values: one for each coalition and draw of the absence.
    rows_seen : int, optional
        The rows that the model saw for them, checks included; None if that is not known.
    notes : sequence of str, optional
        What could not be measured, and why.

    Examples
    --------
    >>> table = ValueTable([2.0, -2.0, -1.0, 1.0])
    >>> table
    ValueTable(1 sample, 2 players, 4 coalitions; value: given)
    >>> table(torch.tensor([[True, False]]))
    tensor([[-2.]], dtype=torch.float64)
    """

    values: Float[Tensor, "samples coalitions"]
    names: tuple[str, ...]
    readout: str
    noise: Float[Tensor, " samples"]
    evaluations: int
    rows_seen: int | None
    notes: tuple[str, ...]

    def __init__(
        self,
        values: Sequence[float] | Sequence[Sequence[float]] | Array,
        names: Sequence[str] | None = None,
        *,
        readout: str = "given",
        noise: Float[Tensor, " samples"] | None = None,
        evaluations: int = 0,
        rows_seen: int | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        numbers = as_tensor("values", values)
        if numbers.ndim not in (1, 2) or numbers.numel() == 0:
            expected = "have shape (2ⁿ,) or (samples, 2ⁿ) with at least one sample"
            raise wrong("values", expected, f"shape {tuple(numbers.shape)}")
        # A copy, because the caller may change the values later.
        table = numbers.reshape(-1, numbers.shape[-1]).to(torch.float64, copy=noise is None)
        players = table_players(table.shape[-1])
        check_finite(table, torch.arange(len(table)), 0, argument="values")
        if noise is None:
            noise = rounding_noise(table, numbers.dtype)
        if names is None:
            names = [f"x{player}" for player in range(players)]
        if len(names) != players:
            raise wrong("names", f"name each of the {players} players", f"{len(names)} names")
        object.__setattr__(self, "values", table)
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "readout", readout)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "evaluations", evaluations)
        object.__setattr__(self, "rows_seen", rows_seen)
        object.__setattr__(self, "notes", tuple(notes))

    def __repr__(self) -> str:
        samples, coalitions = self.values.shape
        count = count_of(samples, "sample")
        return f"ValueTable({count}, {len(self.names)} players, {coalitions} coalitions; value: {self.readout})"

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.values)

    @cached_property
    def sums(self) -> Float[Tensor, "samples sizes players"]:
        """The sums of the values over the coalitions of each size that contain each player."""
        return sums_by_size_and_player(self.values)

    def cpu(self) -> ValueTable:
        """Return the table in the CPU's memory."""
        if self.values.device.type == "cpu":
            return self
        return ValueTable(
            self.values.cpu(),
            self.names,
            readout=self.readout,
            noise=self.noise.cpu(),
            evaluations=self.evaluations,
            rows_seen=self.rows_seen,
            notes=self.notes,
        )

    def __call__(self, coalitions: Bool[Tensor, "coalitions players"]) -> Float[Tensor, "samples coalitions"]:
        """Look the coalitions up."""
        check_coalitions(coalitions, len(self.names))
        return self.values[:, coalition_numbers(coalitions)]


def ask(game: Game, coalitions: Bool[Tensor, "coalitions players"]) -> Float[Tensor, "samples coalitions"]:
    """Return the values of a game; raise an error for one that does not return a number for each coalition."""
    values: Any = game(coalitions)
    if not isinstance(values, Tensor) or values.shape != (game.samples, len(coalitions)):
        got = f"{type(values).__name__} of shape {tuple(getattr(values, 'shape', ()))}"
        raise wrong("game", f"return a tensor of shape {(game.samples, len(coalitions))}", got)
    return values


@checked
def value_table(game: Game, *, max_players: int = MAX_PLAYERS) -> ValueTable:
    """Evaluate all 2ⁿ coalitions; every exact result is a function of this table.

    Parameters
    ----------
    game : Game
        A `MaskedModel`, a `ValueTable`, or a game of your own.
    max_players : int, default 24
        Raise an error for more players.

    Examples
    --------
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=1.0)
    >>> ab.value_table(game).values
    tensor([[1., 2., 3., 6.]], dtype=torch.float64)
    """
    if isinstance(game, ValueTable):
        return game
    players = len(game.names)
    samples = game.samples
    coalitions = 2**players
    size = 8 * samples * coalitions
    need = f"{samples} × 2^{players} = {samples * coalitions:.2g} values, {size / 2**30:.2g} GiB"
    if players > max_players:
        raise AbsentiaError(
            f"players must be at most {max_players} for exact results. Got {players} instead, which would take "
            f"{need}. Estimate with errors by shapley, index or order_marginals(game, evaluations=…), group players "
            f"with Players.groups or a coarser Players.grid, or raise the bound: "
            f"value_table(game, max_players={players})."
        )
    if size > MAX_TABLE_BYTES:
        raise AbsentiaError(
            f"x must hold fewer samples for exact results with {players} players. Got {samples} instead, which "
            f"would take {need}. Explain {max(1, samples * MAX_TABLE_BYTES // size)} at a time."
        )
    if hasattr(game, "table") and callable(game.table):  # its own way to compute the values of all coalitions
        return game.table()
    steps = blocks(coalitions, _COALITIONS_PER_STEP)
    parts = [ask(game, enumerate_coalitions(players, step.start, step.stop)) for step in steps]
    return ValueTable(torch.cat(parts, dim=1), game.names, evaluations=samples * coalitions)


def model_for(absence: object, inputs: EncodedInputs) -> EncodedInputs:
    """Return inputs with the model that runs under an absence: the user's, or the one that the absence brings."""
    if isinstance(absence, str | int | float):
        return inputs
    check_absence(absence)
    if isinstance(absence, BringsModel):
        return replace(inputs, model=absence.instead_of(as_model(inputs.model)))
    return inputs


def resolve_absence(task: Task, absence: object, data: Table | CheckedRows | None, seed: int) -> Absence:
    """Return an absence as it is, or the one that a word or a number names, made from rows like the task's."""
    if not isinstance(absence, str | int | float):
        columns = getattr(data, "columns", None)
        if columns is not None:  # also of data that is not used
            check_columns("data", columns, task.columns)
        return task.coded(check_absence(absence))
    if data is not None and not isinstance(data, CheckedRows):
        data = CheckedRows(task.rows_of(data))
    return named_absence(absence, data, players=task.players, seed=seed)


@checked
@final
class MaskedModel:
    """A model on samples with some of their players absent, as a game: a `Task` and a bound absence.

    Call it with coalitions of shape (coalitions, players), or (samples, coalitions, players) with each sample's own,
    to get values of shape (samples, coalitions), or (samples, coalitions, features) for the readout `Features`.

    Parameters
    ----------
    model, x, y, players, readout, class_names, categorical, batch_size, memory
        See `Task`. An absence that brings its own model, such as a `Surrogate`, has it run in the model's place.
    absence : Absence, str or float
        What stands in for absent players: an absence, a number, or a word such as "mean".
    data : Tensor, array or DataFrame, optional
        Rows that an absence named by a word is made from.
    seed : int, default 0
        Fixes what an absence named by a word draws.
    gradient : bool, default False
        Whether values keep their graph, for the gradient of the absence's values.

    Examples
    --------
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> game(torch.tensor([[False, False], [True, False], [True, True]]))
    tensor([[1., 2., 6.]])
    """

    def __init__(
        self,
        model: Any,
        x: Table,
        y: Classes = None,
        *,
        absence: Absence | str | float,
        data: Table | None = None,
        players: Players | None = None,
        readout: Readout | None = None,
        class_names: Iterable[str] | None = None,
        categorical: Categorical = (),
        seed: int = 0,
        gradient: bool = False,
        batch_size: int | None = None,
        memory: int | None = None,
    ) -> None:
        options = TaskOptions(y, players, readout, class_names, categorical, batch_size, memory)
        encoded = model_for(absence, encode_inputs(model, x, data, [absence], players))
        task = Task.of_inputs(TaskInputs.read(encoded), options)
        self._hold(task, resolve_absence(task, absence, encoded.data, seed), gradient)

    @classmethod
    def of_task(cls, task: Task, absence: Absence, *, gradient: bool = False) -> MaskedModel:
        """Return the game of a task and an absence.

        >>> task = ab.Task(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]))
        >>> ab.value_table(ab.MaskedModel.of_task(task, ab.Baseline(1.0))).values
        tensor([[1., 2., 3., 6.]], dtype=torch.float64)
        """
        game = cls.__new__(cls)
        game._hold(task, absence, gradient)
        return game

    def _hold(self, task: Task, absence: Absence, gradient: bool) -> None:
        """Hold a task, and bind an absence to its samples."""
        self.evaluator = Evaluator(task)
        self.absence = absence
        self.gradient = gradient
        self.fill: Fill = task.bind(absence)
        self.rows_of_setup = task.row_count.rows

    @property
    def task(self) -> Task:
        """The model on samples."""
        return self.evaluator.task

    @property
    def model(self) -> Model:
        """The task's model."""
        return self.task.model

    @property
    def x(self) -> Rows:
        """The task's samples."""
        return self.task.x

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.task.samples

    @property
    def players(self) -> Players:
        """The task's players."""
        return self.task.players

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        return self.task.names

    @property
    def readout(self) -> Readout:
        """The task's readout."""
        return self.task.readout

    @property
    def readout_note(self) -> ReadoutNote:
        """What is explained."""
        return self.task.readout_note

    def __repr__(self) -> str:
        return f"MaskedModel({self.samples} × {self.players}, {self.absence}; value: {self.readout_note})"

    @property
    def draws(self) -> int:
        """The number of rows that the model evaluates for one value."""
        return self.fill.draws

    @property
    def can_select_draws(self) -> bool:
        """Whether `of_draws` works: the absence draws several stand-ins, and values come from running the model."""
        return self.draws > 1 and not self.gradient and self._by_leaves() is None

    def of_draws(self, draws: Sequence[int]) -> MaskedModel:
        """Return the game whose absence makes only these of its draws, by their numbers.

        >>> absence = ab.Marginal([[1.0, 1.0], [2.0, 4.0]])
        >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=absence)
        >>> game.of_draws([1])(torch.tensor([[False, False]]))
        tensor([[8.]])
        """
        part = copy.copy(self)
        part.fill = self.fill.select(draws=draws)
        return part

    def use_batches_of(self, rows: int) -> None:
        """Evaluate in batches of this size from now on."""
        self.evaluator = Evaluator(self.task.with_batch_size(rows))

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: all but the trees, which a worker reads itself."""
        return {name: value for name, value in vars(self).items() if name != "leaf_values"}

    @cached_property
    def leaf_values(self) -> LeafValues | NotFromLeaves:
        """The values as the leaves of the model's trees give them, if it has trees that can be read."""
        if self.gradient:
            return NotFromLeaves()
        rows_before = self.task.row_count.rows
        values = leaf_values(self.task, self.fill)
        # The comparison of the leaves with the model is done once, for all results of the game.
        self.rows_of_setup += self.task.row_count.rows - rows_before
        return values

    def __call__(
        self, coalitions: Bool[Tensor, "*own coalitions players"]
    ) -> Float[Tensor, "samples coalitions *features"]:
        """Return the value of each coalition for each sample."""
        by_leaves = self._by_leaves()
        if by_leaves is not None:
            check_coalitions(coalitions, len(self.names), self.samples)
            return by_leaves.values(coalitions)
        if self.gradient or worker_count() == 1:
            return self.evaluator.values(self.fill, coalitions, gradient=self.gradient)
        check_coalitions(coalitions, len(self.names), self.samples)
        at_once = self.evaluator.batch_size // self.draws // max(1, coalitions.shape[-2])
        return torch.cat(self._spread(partial(_values_of, self.evaluator, self.fill, coalitions), at_once))

    def _by_leaves(self) -> LeafValues | None:
        """Return what computes values from leaves, if values can be computed so."""
        values = self.leaf_values
        return values if isinstance(values, LeafValues) else None

    def table(self) -> ValueTable:
        """Evaluate all 2ⁿ coalitions; `value_table` also checks that they fit into memory."""
        meter = RowMeter.start(self)
        by_leaves = self._by_leaves()
        if by_leaves is not None:
            values = by_leaves.values(enumerate_coalitions(len(self.names)))
            check_finite(values, torch.arange(self.samples), 0)
            return ValueTable(values, self.names, readout=str(self.readout_note), rows_seen=meter.rows_seen)
        table = self._tabulate()
        return ValueTable(
            table.values,
            self.names,
            readout=str(self.readout_note),
            noise=table.noise,
            evaluations=table.evaluations,
            rows_seen=meter.rows_seen,
            notes=table.notes,
        )

    def _tabulate(self) -> Tabulated:
        """Evaluate all coalitions here or at the workers."""
        if self.gradient or worker_count() == 1:
            return self.evaluator.table(self.fill, gradient=self.gradient)
        at_once = _BATCHES_OF_A_BLOCK * self.evaluator.batch_size >> len(self.names)
        return Tabulated.join(self._spread(partial(_table_of, self.evaluator, self.fill), at_once))

    def _spread(self, work: Callable[[Tensor, RowCount], Any], at_once: int) -> list[Any]:
        """Evaluate samples at the workers, as many at once as here, so that results do not depend on the workers."""
        at_once = max(1, at_once)
        blocks_of_samples = math.ceil(self.samples / at_once)
        blocks_of_a_part = math.ceil(blocks_of_samples / (_PARTS_OF_A_WORKER * worker_count()))
        parts = torch.arange(self.samples).split(at_once * blocks_of_a_part)

        return list(spread(work, parts, "evaluating coalitions", self.task.row_count))


def _values_of(evaluator: Evaluator, fill: Fill, coalitions: Tensor, samples: Tensor, row_count: RowCount) -> Tensor:
    """Return the values of coalitions for some samples; a worker also checks that the model is still the same."""
    evaluator = evaluator.with_count(row_count)
    asked = coalitions if coalitions.ndim == 2 else coalitions[samples]
    values = evaluator.values(fill.select(samples), asked, samples=samples)
    evaluator.check_still_same()
    return values


def _table_of(evaluator: Evaluator, fill: Fill, samples: Tensor, row_count: RowCount) -> Tabulated:
    """Return all values of some samples; a worker also checks that the model is still the same."""
    evaluator = evaluator.with_count(row_count)
    table = evaluator.table(fill.select(samples), samples=samples)
    evaluator.check_still_same()
    return table


@dataclass(frozen=True)
class RowMeter:
    """The number of rows that the model of a game sees for one result.

    The rows of setting up the game belong to each of its results, and those of its other results to none.
    """

    row_count: RowCount | None  # None for a game of the user's own, whose rows nobody counts
    rows_of_others: int = 0

    @classmethod
    def start(cls, game: Game) -> RowMeter:
        """Start before a result is computed."""
        if not isinstance(game, MaskedModel):
            return cls(None)
        row_count = game.task.row_count
        return cls(row_count, row_count.rows - game.rows_of_setup)

    @property
    def rows_seen(self) -> int | None:
        """The rows so far, checks included; None if they are not known."""
        if self.row_count is None:
            return None
        return self.row_count.rows - self.rows_of_others


def draws_of(game: Game) -> int:
    """Return the rows that the model evaluates for one value of a game."""
    return int(getattr(game, "draws", 1))


def readout_of(game: Game) -> str:
    """Return the description of a game's value."""
    return str(getattr(game, "readout_note", getattr(game, "readout", "given")))
