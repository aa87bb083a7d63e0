"""Task: a model on samples, checked and converted once."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, final

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from absentia.absences.protocol import (
    Absence,
    BringsModel,
    Fill,
    HoldsFrame,
    KnowsCategories,
    StandIns,
    check_shape,
    check_whole,
    for_classes,
)
from absentia.arguments import checked
from absentia.data import (
    Categorical,
    CheckedClasses,
    Classes,
    Rows,
    Table,
    check_rows,
    each_class,
    has_gaps,
    read_classes,
)
from absentia.errors import wrong
from absentia.models.adapters import labels_of, placement
from absentia.models.arrays import NumpyModel
from absentia.models.encoded_inputs import encode_inputs
from absentia.models.layers import layer_output
from absentia.models.model import Model, Outputs
from absentia.players import ALWAYS_PRESENT, Players
from absentia.readout_notes import ReadoutNote
from absentia.readouts import Features, Readout, check_logits, default_readout, note_on, with_names
from absentia.runtime.batches import BatchRunner, rows_per_batch, try_rows
from absentia.runtime.gaps_in_rows import check_gaps, takes_missing, why_gaps_are_refused
from absentia.runtime.limits import TimeLimit
from absentia.runtime.modes import evaluation_mode, modules_behind
from absentia.runtime.readings import confirm_margins
from absentia.runtime.row_count import RowCount
from absentia.task_inputs import TaskInputs, TaskOptions, model_rows, place_in

# Fractions of outputs in single precision are rarely multiples of this power of two.
_SMALL_FRACTION = 1 / 1024
# Two results of the same sample may differ by rounding: by up to this many units of their type's precision, ...
_UNITS_APART = 1000
# ... and by up to this share of the range of values, or of their size in low precision.
_MOST_APART = 0.01


@dataclass(frozen=True, eq=False)
class Probe:
    """What the first run, on one or two samples, revealed about a model."""

    last: Shaped[Tensor, "one *output"]  # the output on the last sample
    largest: float  # the largest absolute output
    dtype: torch.dtype  # the type in which the model computes
    rounds: bool  # whether values carry rounding errors beyond those of double precision
    key: str | int | None  # where the output was found in what the model returns
    seconds_per_row: float = 0.0  # of this run, which is slower than later ones


@checked
@final
class Task:
    """A model and samples: the common starting point of explaining, auditing and learning.

    Arguments are checked and converted here, once. The model runs in evaluation mode on its own device, in batches.
    Creating a task already runs the model: on the first and the last sample, and on all samples if neither ``y`` nor
    ``readout`` is passed, to find the predicted classes. Models that offer both margins and probabilities, and
    tables with text or missing values, take a few more trial runs.

    Parameters
    ----------
    model : nn.Module, estimator or callable
        Estimators and boosters are wrapped; a numpy callable needs `from_numpy`.
    x : Tensor, array or DataFrame
        A batch of shape (samples, …). Columns of a DataFrame name the players. Integer inputs stay integers for
        tokens, and become the model's dtype otherwise.
    y : int, str, sequence or array, optional
        The classes of the samples, as numbers or names. The default readout reads these classes. If ``readout`` is
        passed, they only select the baseline of each sample where baselines differ by class.
    players : Players, optional
        The default is one player for each column of a table.
    readout : Readout, optional
        What number to take from the output. The default is the log-odds of the classes ``y``. Without ``y`` it is
        the log-odds of the predicted classes, or the output itself if it is a single number.
    class_names : sequence of str, optional
        The names of the classes, in the order of the model's outputs.
    categorical : sequence, optional
        Columns that hold categories, or groups of columns such as a one-hot code, in addition to those already
        marked in ``players``.
    batch_size : int, optional
        Rows of a batch; by default as many as fit ``memory``.
    memory : int, optional
        Bytes available for the largest layer's input and output.
    limit : TimeLimit, optional
        Stops the work between two batches once the time is up. Set by audits and learning.
    row_count : RowCount, optional
        Counts the rows that the model sees. The tasks of an audit share one count.

    Examples
    --------
    >>> task = ab.Task(lambda rows: rows.prod(1), [[2.0, 3.0]])
    >>> task
    Task(1 × Players(2 of shape (2,): x0, x1); value: the output as it is)
    >>> task.row_count.rows  # the sample, twice: the model must return the same
    2
    """

    def __init__(
        self,
        model: Any,
        x: Table,
        y: Classes = None,
        *,
        players: Players | None = None,
        readout: Readout | None = None,
        class_names: Iterable[str] | None = None,
        categorical: Categorical = (),
        batch_size: int | None = None,
        memory: int | None = None,
        limit: TimeLimit | None = None,
        row_count: RowCount | None = None,
    ) -> None:
        options = TaskOptions(y, players, readout, class_names, categorical, batch_size, memory)
        inputs = TaskInputs.read(encode_inputs(model, x, players=players))
        self._begin(inputs, options, limit, row_count)

    @classmethod
    def of_inputs(
        cls,
        inputs: TaskInputs,
        options: TaskOptions,
        limit: TimeLimit | None = None,
        row_count: RowCount | None = None,
    ) -> Task:
        """Return a task of a model and samples that have been converted and checked."""
        task = cls.__new__(cls)
        task._begin(inputs, options, limit, row_count)
        return task

    def _begin(
        self, inputs: TaskInputs, options: TaskOptions, limit: TimeLimit | None, row_count: RowCount | None
    ) -> None:
        """Set the task up. Each step needs what the steps before it have set."""
        self.limit = limit or TimeLimit()
        self.row_count = RowCount() if row_count is None else row_count
        self.row_count.add(inputs.trial_rows)
        inputs = inputs.for_readout(options.readout)
        self._set_samples(inputs, options)
        self._set_model(inputs, options)
        with evaluation_mode(self.model):
            output = self._run_first(inputs, options)
            chosen = self._choose_readout(options, output)
        self._set_readout(options, chosen)

    def _set_samples(self, inputs: TaskInputs, options: TaskOptions) -> None:
        """Hold the samples, as they were passed and as the model takes them, and choose the players."""
        self.columns = inputs.columns  # the column names of a DataFrame
        self.rows = inputs.rows  # the samples in the caller's type
        self.samples = len(inputs.rows)
        self.players = inputs.choose_players(options)
        self.names = self.players.names
        self.x = model_rows(inputs.model, inputs.rows, self.players)
        check_gaps(inputs.model, self.x, "x", inputs.place_of, self.row_count)
        self.numbers = torch.arange(self.samples, device=self.x.device)

    def _set_model(self, inputs: TaskInputs, options: TaskOptions) -> None:
        """Hold the model, the part of it that is read out, and the labels of its classes."""
        self.model = confirm_margins(inputs.model, self.x, self.row_count, self.limit)
        self._labels = labels_of(self.model) if options.class_names is None else tuple(options.class_names)
        self.forward = self.model
        if isinstance(options.readout, Features) and options.readout.layer is not None:
            self.forward = layer_output(self.model, options.readout.layer)

    def _run_first(self, inputs: TaskInputs, options: TaskOptions) -> Outputs:
        """Run the first and the last sample, set what they reveal and the size of batches; return the output."""
        probe_rows = self.probe_rows()
        began = time.perf_counter()
        output, bytes_per_row, key = try_rows(self.model, probe_rows, self.row_count)
        seconds_per_row = (time.perf_counter() - began) / len(probe_rows)
        largest = float(output.abs().nan_to_num(posinf=0.0).max()) if output.numel() else 0.0
        check_repeated(output[-2], output[-1], self.samples - 1, largest)
        self.batch_size = options.batch_size or rows_per_batch(
            self.model, bytes_per_row, self.x.device, options.memory
        )
        if self.forward is not self.model:
            self.limit.check()
            rows = self.x[[0, -1]]
            self.row_count.add(len(rows))
            output = self.forward(rows)
        _, computes_in = placement(self.model, inputs.rows)
        dtype = output.dtype
        if isinstance(self.model, NumpyModel):
            dtype = computes_in = _precision_of(output)
        rounds = {computes_in, dtype} != {torch.float64}
        self.probe = Probe(output[-1:].clone(), largest, dtype, rounds, key, seconds_per_row)
        return output

    def _set_readout(self, options: TaskOptions, chosen: _ChosenReadout) -> None:
        """Hold the readout, its description, and the classes of the samples."""
        check_logits(chosen.readout, chosen.output, self.runner(self.model), self.x)
        self.readout = chosen.readout
        remarks = (*self._remarks_on_output(), *_remarks_on_model(self.model))
        self.readout_note = replace(chosen.note, remarks=remarks)
        self.readout_is_default = options.readout is None
        self.class_names = getattr(self.readout, "names", ()) or tuple(str(label) for label in self._labels)
        self.classes = self._choose_classes(options.y)

    def __repr__(self) -> str:
        return f"Task({self.samples} × {self.players}; value: {self.readout_note})"

    @property
    def has_one_output(self) -> bool:
        """Whether the model returns one number for each row."""
        return self.probe.last.ndim == 1 or self.probe.last[0].numel() == 1

    def with_count(self, row_count: RowCount) -> Task:
        """Return the same task with another count of rows, such as that of a worker."""
        task = self._copy()
        task.row_count = row_count
        return task

    def with_limit(self, limit: TimeLimit) -> Task:
        """Return the same task with another time limit, such as that of one part of the work."""
        task = self._copy()
        task.limit = limit
        return task

    def with_batch_size(self, batch_size: int) -> Task:
        """Return the same task with this batch size."""
        task = self._copy()
        task.batch_size = batch_size
        return task

    def _copy(self) -> Task:
        """Return a shallow copy with the same modules, which pickling and so copying leave out."""
        task = copy.copy(self)
        task.modules = self.modules
        return task

    @cached_property
    def modules(self) -> tuple[nn.Module, ...]:
        """The modules behind the model, which are searched for after its first run: that may have made some."""
        return tuple(modules_behind(self.model))

    def evaluation_mode(self, gradient: bool = False) -> AbstractContextManager[None]:
        """Return a context in which the model is in evaluation mode, with a graph only if ``gradient``."""
        return evaluation_mode(self.model, gradient, self.modules)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: not the modules, because a worker may import others of its own."""
        return {name: value for name, value in vars(self).items() if name != "modules"}

    def runner(self, forward: Model) -> BatchRunner:
        """Return a runner for the model, or for a part or variant of it, whose rows are added to the task's count."""
        return BatchRunner(forward, self.batch_size, self.limit, row_count=self.row_count)

    def rows_of(self, data: Table) -> Rows:
        """Return data in the type and on the device of the samples; raise an error if its rows differ in shape."""
        rows = check_rows(data, columns=self.columns, missing=isinstance(self.model, NumpyModel))
        check_shape("data", rows.shape[1:], self.x)
        check_whole("data", rows, self.x)
        rows = rows.to(self.x)
        check_gaps(self.model, rows, "data", partial(place_in, data, "row"), self.row_count)
        return rows

    @cached_property
    def takes_missing(self) -> bool:
        """Whether the model takes a sample in which the entries of all players are missing."""
        return takes_missing(self.model, self.x, self.players, self.row_count)

    def of_classes(self, absence: Absence, classes: Classes = None) -> Absence:
        """Return an absence for these classes, by default those of the samples, if it differs by class."""
        return for_classes(absence, self.classes if classes is None else classes, self.names)

    def bind(self, absence: Absence, classes: Classes = None) -> Fill:
        """Bind an absence to the samples; raise an error for missing stand-ins that the model does not take.

        Absences that differ by class are bound for ``classes``, by default those of the samples.
        """
        fill = self.of_classes(absence, classes).bind(self.x)
        if isinstance(fill, StandIns) and not isinstance(absence, BringsModel) and has_gaps(fill.values):
            owned = (self.players.labels != ALWAYS_PRESENT).to(self.x.device)
            stand_ins = torch.where(owned, fill.values, self.x[-1]).flatten(0, 1)
            why = why_gaps_are_refused(self.model, stand_ins, self.row_count)
            if why:
                then = f"The model does not take them ({why}). Use another absence, such as mean."
                raise wrong("absence", "have stand-ins that the model takes", "missing values", then)
        return fill

    def coded(self, absence: Absence) -> Absence:
        """Return an absence with categories by the codes of this task's table, if it knows them by name."""
        table = self.model.table if isinstance(self.model, NumpyModel) else None
        if table is None:
            return absence
        if isinstance(absence, KnowsCategories):
            return absence.coded_for(table.category_names)
        if isinstance(absence, HoldsFrame) and absence.frame is not None:
            return absence.of_numbers(table.encode(absence.frame))
        return absence

    def probe_rows(self) -> Rows:
        """Return the rows of the first run; the last sample is run twice to check that the model is deterministic."""
        return self.x[[0, -1, -1] if self.samples > 1 else [0, 0]]

    def check_repeated(self, first: Tensor, again: Tensor, values: Tensor | None = None) -> None:
        """Raise an error if two results of the last sample differ by more than `check_repeated` allows."""
        check_repeated(first, again, self.samples - 1, self.probe.largest, values)

    def _choose_readout(self, options: TaskOptions, output: Outputs) -> _ChosenReadout:
        """Return the readout that was passed, or the default one, after checking it on the output."""
        if options.readout is not None:
            readout = with_names(options.readout, output, self._labels)
            note = note_on(readout)
        else:
            if options.y is None and output.ndim == 2 and output.shape[1] > 1:
                # The default readout needs the predicted class of every sample.
                output = self.runner(self.forward)(self.x.clone())
            readout, note = default_readout(output, options.y, self._labels, self.model)
        readout.check(output, self.samples)
        _check_value(readout(self.probe.last, self.numbers[-1:]), readout)
        return _ChosenReadout(readout, note, output)

    def _choose_classes(self, y: Classes | CheckedClasses) -> Int[Tensor, " samples"] | None:
        """Return the class of each sample if classes were passed; predicted classes do not select baselines."""
        if not self.readout_is_default and y is not None:
            classes = read_classes(y, self._labels)
        elif self.readout_is_default and y is None:
            classes = None
        else:
            classes = getattr(self.readout, "y", None)
        if classes is None:
            return None
        return each_class(classes, self.samples)

    def _remarks_on_output(self) -> list[str]:
        """Say where the output was found, if the model returns more than a tensor."""
        if self.probe.key is None:
            return []
        return [f"from {self.probe.key!r} of the model's output"]


@dataclass(frozen=True, eq=False)
class _ChosenReadout:
    """A readout, its description, and the output on which it was checked."""

    readout: Readout
    note: ReadoutNote
    output: Outputs = field(repr=False)


def check_repeated(first: Tensor, again: Tensor, sample: int, largest: float, values: Tensor | None = None) -> None:
    """Raise an error if two results of a sample differ by more than rounding or a small share of the values."""
    if torch.equal(first, again):
        return
    apart = float((first - again).abs().max())
    precision = torch.finfo(first.dtype).eps
    low = high = 0.0
    if values is not None:
        low = float(values.min())
        high = float(values.max())
    size = max(largest, float(first.abs().max()), -low, high)
    rounding = min(_UNITS_APART * precision, max(_MOST_APART, 16 * precision)) * size
    if apart > max(rounding, _MOST_APART * min(size, high - low)):
        got = f"results for sample {sample} that differ by {apart:.3g}"
        then = "Put it into evaluation mode, and fix the seed of its random draws."
        raise wrong("model", "return the same output for the same sample", got, then)


def _precision_of(output: Outputs) -> torch.dtype:
    """Return the precision of a numpy model: boosters compute in float32 but may return float64."""
    fits_single = bool((output.float() == output).all())
    has_fractions = bool((output / _SMALL_FRACTION % 1 != 0).any())
    if output.dtype == torch.float64 and fits_single and has_fractions:
        return torch.float32
    return output.dtype


def _check_value(value: object, readout: Readout) -> None:
    """Raise an error unless a readout returned one number for one row, or features."""
    shape = tuple(getattr(value, "shape", ()))
    if not isinstance(value, Tensor) or (shape != (1,) and not isinstance(readout, Features)):
        got = f"{type(value).__name__} of shape {shape} for one row"
        raise wrong("readout", "return a tensor of one number for each row", got)


def _remarks_on_model(model: Model) -> list[str]:
    """Say how probabilities are read, and add the model's own note if it has one."""
    if not isinstance(model, NumpyModel):
        return []
    remarks = []
    if model.probabilities and model.least:
        places = 1 - math.floor(math.log10(model.least))
        least = f"{model.least:.{places}f}"
        most = f"{1 - model.least:.{places}f}"
        remarks.append(f"probabilities of 0 and 1 are read as {least} and {most}")
    if model.note:
        remarks.append(model.note)
    return remarks
