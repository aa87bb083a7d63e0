"""What a task begins with: a model and samples, converted and checked once, and the options of a user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from absentia.data import (
    Categorical,
    CheckedClasses,
    Classes,
    Rows,
    Table,
    as_tensor,
    check_columns,
    check_number,
    check_numbers,
)
from absentia.errors import wrong
from absentia.models.adapters import as_model, placement
from absentia.models.arrays import NumpyModel
from absentia.models.encoded_inputs import EncodedInputs
from absentia.models.model import Model
from absentia.players import Players, check_sample_shape
from absentia.readouts import Probability, Readout

# torch holds whole numbers below this.
_LIMIT_OF_BATCH_SIZES = 2**63


@dataclass(frozen=True, eq=False)
class TaskOptions:
    """What a user says about a model and samples; see `Task`."""

    y: Classes | CheckedClasses = None
    players: Players | None = None
    readout: Readout | None = None
    class_names: Iterable[str] | None = None
    categorical: Categorical = ()
    batch_size: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        check_number("batch_size", self.batch_size, 1)
        if self.batch_size is not None and self.batch_size >= _LIMIT_OF_BATCH_SIZES:
            raise wrong("batch_size", "lie within ±2^63", self.batch_size)
        check_number("memory", self.memory, 1)


@dataclass(frozen=True, eq=False)
class TaskInputs:
    """A model on torch rows, and samples whose numbers and columns have been checked."""

    model: Model
    rows: Rows  # the samples in the caller's type
    table: Table  # the samples as they were passed, whose labels say in errors where a value is
    columns: Any = None  # the column names of a DataFrame
    trial_rows: int = 0  # rows that the model saw when its inputs were encoded

    @classmethod
    def read(cls, encoded: EncodedInputs, axes: int | None = None) -> TaskInputs:
        """Convert a model and samples; with ``axes``, an array with this number of axes is a single sample."""
        model = as_model(encoded.model)
        may_have_gaps = isinstance(model, NumpyModel)
        columns = getattr(encoded.x, "columns", None)
        check_columns("x", columns, getattr(model, "columns", None))
        rows = as_tensor("x", encoded.x, missing=may_have_gaps)
        if axes is not None and columns is None:
            rows = _as_batch(rows, axes)
        rows = check_numbers(rows, 1, "x", "sample", missing=may_have_gaps)
        return cls(model, rows, encoded.x, columns, encoded.trial_rows)

    def for_readout(self, readout: Readout | None) -> TaskInputs:
        """Lift the bounds on probabilities if these are explained themselves rather than their logarithms."""
        model = self.model
        if isinstance(model, NumpyModel) and model.least and isinstance(readout, Probability):
            return replace(self, model=replace(model, least=0.0))
        return self

    def choose_players(self, options: TaskOptions) -> Players:
        """Return the players of the samples, with the categorical columns that the model and the caller name."""
        table = self.model.table if isinstance(self.model, NumpyModel) else None
        if table is not None and len(table.columns) != self.rows[0].numel():
            table = None  # the model itself refuses such rows
        columns = self.columns
        if columns is None and table is not None:
            columns = table.columns
        players = options.players
        if players is None:
            players = _players_of(self.rows, columns)
        check_sample_shape(players, self.rows)
        if table is not None:
            players = players.with_category_names(table.category_names).with_categorical(table.categorical)
        return players.with_categorical(options.categorical)

    def place_of(self, row: int, entry: int) -> str:
        """Say where a value is: by the names of a DataFrame, or by numbers."""
        return place_in(self.table, "sample", row, entry)


def place_in(table: Table, kind: str, row: int, entry: int) -> str:
    """Say where a value of a table is: by the names of a DataFrame, or by numbers."""
    if hasattr(table, "columns") and hasattr(table, "index"):
        return f"column {table.columns[entry]!r}, row {table.index[row]!r}"
    return f"{kind} {row}, entry {entry}"


def model_rows(model: Model, rows: Rows, players: Players) -> Rows:
    """Return rows on the model's device and in its type, except that token numbers stay integers."""
    device, dtype = placement(model, rows)
    if players.integer and not rows.is_floating_point():
        return rows.to(device)
    return rows.to(device, dtype)


def _as_batch(rows: Tensor, axes: int) -> Tensor:
    """Return a batch of samples with this number of axes; a single sample becomes a batch of one."""
    if rows.ndim == 0:
        raise wrong("x", "be a sample or a batch of samples", "a single number")
    if rows.ndim == axes:
        return rows[None]
    return rows


def _players_of(x: Rows, columns: Any) -> Players:
    """Return a player for each column of a table, with the column names of a DataFrame."""
    if x.ndim != 2:
        then = "Use for instance Players.grid(shape, cells=(4, 4)) or Players.segments(labels)."
        raise wrong("players", f"be given for samples of shape {tuple(x.shape[1:])}", "none", then)
    return Players.features(x.shape[1] if columns is None else list(columns))
