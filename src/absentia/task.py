"""Task: a model on samples, checked and converted once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from absentia.absences.protocol import check_shape, check_whole
from absentia.arguments import checked
from absentia.data import Categorical, Classes, Rows, Table, check_number, check_rows, class_numbers, each_class
from absentia.errors import wrong
from absentia.models.adapters import as_model, labels_of, placement
from absentia.models.arrays import NumpyModel
from absentia.models.layers import layer_output
from absentia.models.model import Model, Outputs
from absentia.players import Players
from absentia.readouts import Features, Readout, check_logits, default_readout, with_names
from absentia.runtime.batches import BatchRunner, rows_per_batch, try_rows
from absentia.runtime.limits import TimeLimit
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.readings import confirm_margins

# Fractions of outputs in single precision are rarely multiples of this power of two.
_SMALL_FRACTION = 1 / 1024
# The largest difference that rounding makes between two results of a sample, in units of their type's precision, ...
_UNITS_APART = 1000
# ... and as a share of the values' range, or of their size in low precision.
_MOST_APART = 0.01


@dataclass(frozen=True, eq=False)
class Probe:
    """What a first run on one or two samples showed of a model."""

    last: Shaped[Tensor, "one *output"]  # the output on the last sample
    largest: float  # the largest absolute output
    dtype: torch.dtype  # that the model computes in
    rounds: bool  # whether values carry rounding errors beyond those of double precision
    key: str | int | None  # where the output was found in what the model returns


@checked
@final
class Task:
    """A model on samples: what to explain, to audit or to learn for.

    Arguments are checked and converted here, once. The model runs in evaluation mode on its own device, in batches.

    Parameters
    ----------
    model : nn.Module, estimator or callable
        Estimators and boosters are wrapped; a numpy callable needs `from_numpy`.
    x : Tensor, array or DataFrame
        A batch of shape (samples, …). Columns of a DataFrame name the players. Integer inputs stay integers for
        tokens, and become the model's dtype otherwise.
    y : int, str, sequence or array, optional
        The classes of the samples, numbers or names: the default readout reads them. Beside a readout they only
        choose among baselines for each class.
    players : Players, optional
        The default is one player for each column of a table.
    readout : Readout, optional
        What number to take from the output. The default depends on ``y``: the log-odds of its classes, of the
        predicted classes without ``y``, or the output itself if it is a single number.
    class_names : sequence of str, optional
        The names of the classes, in the order of the model's outputs.
    categorical : sequence, optional
        Columns of categories, or groups of columns such as a one-hot code, besides those that the players know.
    batch_size : int, optional
        Rows of a batch; by default as many as fit ``memory``.
    memory : int, optional
        Bytes for the largest layer's input and output.
    limit : TimeLimit, optional
        Ends work between two batches once it is reached. Audits and learning set it.

    Examples
    --------
    >>> task = ab.Task(lambda rows: rows.prod(1), [[2.0, 3.0]])
    >>> task
    Task(1 × Players(2 of shape (2,): x0, x1); value: the output as it is)
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
    ) -> None:
        check_number("batch_size", batch_size, 1)
        self.limit = limit or TimeLimit()
        self.columns = getattr(x, "columns", None)  # those of a DataFrame
        adapter = as_model(model)
        rows = check_rows(x, name="x", kind="sample", columns=getattr(adapter, "columns", None))
        self.rows = rows  # the samples in the type that the caller holds them in
        self.samples = len(rows)
        self.players = _choose_players(rows, self.columns, players, adapter, categorical)
        self.names = self.players.names
        self.x = model_rows(adapter, rows, self.players)
        self.numbers = torch.arange(self.samples, device=self.x.device)
        self.model = confirm_margins(adapter, self.x, self.limit)
        labels = labels_of(self.model) if class_names is None else tuple(class_names)
        layer = readout.layer if isinstance(readout, Features) else None
        computes_in = placement(self.model, rows)[1]
        self.forward = self.model if layer is None else layer_output(self.model, layer)
        with evaluation_mode(self.model):
            output, self.probe, self.batch_size = self._probe(computes_in, layer, batch_size, memory)
            chosen = self._choose_readout(readout, output, y, labels)
        check_logits(chosen.readout, chosen.output, self.model, self.x, self.limit)
        self.readout = chosen.readout
        self.readout_note = chosen.note + self._note_on_output() + _note_on_model(self.model)
        self.readout_is_default = readout is None
        self.class_names = getattr(self.readout, "names", ()) or tuple(str(label) for label in labels)
        self.classes = self._choose_classes(y, labels)

    def __repr__(self) -> str:
        return f"Task({self.samples} × {self.players}; value: {self.readout_note})"

    @property
    def has_one_output(self) -> bool:
        """Whether the model returns one number for each row."""
        return self.probe.last.ndim == 1 or self.probe.last[0].numel() == 1

    def rows_of(self, data: Table) -> Rows:
        """Return data as the samples are held, in their type and on their device; refuse rows of another shape."""
        rows = check_rows(data, columns=self.columns)
        check_shape("data", rows.shape[1:], self.x)
        check_whole("data", rows, self.x)
        return rows.to(self.x)

    def probe_rows(self) -> Rows:
        """Return the rows of the first run: the last sample twice, so that an output that varies is noticed."""
        return self.x[[0, -1, -1] if self.samples > 1 else [0, 0]]

    def check_repeated(self, first: Tensor, again: Tensor, values: Tensor | None = None) -> None:
        """Raise an error if results of the last sample differ by more than rounding, or a small share of values."""
        check_repeated(first, again, self.samples - 1, self.probe.largest, values)

    def _probe(
        self, computes_in: torch.dtype, layer: str | None, batch_size: int | None, memory: int | None
    ) -> tuple[Outputs, Probe, int]:
        """Run the first and the last sample; return the output, what it shows, and the size of a batch."""
        output, bytes_per_row, key = try_rows(self.model, self.probe_rows())
        largest = float(output.abs().nan_to_num(posinf=0.0).max()) if output.numel() else 0.0
        check_repeated(output[-2], output[-1], self.samples - 1, largest)
        size = batch_size or rows_per_batch(self.model, bytes_per_row, self.x.device, memory)
        if layer is not None:
            self.limit.check()
            output = self.forward(self.x[[0, -1]])
        dtype = output.dtype
        if isinstance(self.model, NumpyModel):
            dtype = computes_in = _precision_of(output)
        rounds = {computes_in, dtype} != {torch.float64}
        return output, Probe(output[-1:].clone(), largest, dtype, rounds, key), size

    def _choose_readout(
        self, readout: Readout | None, output: Outputs, y: Classes, labels: tuple[Any, ...]
    ) -> _ChosenReadout:
        """Return the readout as it was passed, or the default one, checked on the output; and its description."""
        if readout is not None:
            readout = with_names(readout, output, labels)
            note = str(readout)
        else:
            if y is None and output.ndim == 2 and output.shape[1] > 1:  # which class is predicted for each sample
                output = BatchRunner(self.forward, self.batch_size, self.limit)(self.x.clone())
            readout, note = default_readout(output, y, labels, self.model)
        readout.check(output, self.samples)
        _check_value(readout(self.probe.last, self.numbers[-1:]), readout)
        return _ChosenReadout(readout, note, output)

    def _choose_classes(self, y: Classes, labels: tuple[Any, ...]) -> Int[Tensor, " samples"] | None:
        """Return the class of each sample if they are known: classes that the model predicts choose no baseline."""
        if not self.readout_is_default and y is not None:
            classes = class_numbers(y, labels)
        elif self.readout_is_default and y is None:
            classes = None
        else:
            classes = getattr(self.readout, "y", None)
        if classes is None:
            return None
        return each_class(classes, self.samples)

    def _note_on_output(self) -> str:
        """Say where the output was found, if the model returns more than a tensor."""
        if self.probe.key is None:
            return ""
        return f"; from {self.probe.key!r} of the model's output"


@dataclass(frozen=True, eq=False)
class _ChosenReadout:
    """A readout, its description, and the output that it was checked on."""

    readout: Readout
    note: str
    output: Outputs = field(repr=False)


def model_rows(model: Model, rows: Rows, players: Players) -> Rows:
    """Return rows on the model's device and in its type; token numbers stay integers."""
    device, dtype = placement(model, rows)
    if players.integer and not rows.is_floating_point():
        return rows.to(device)
    return rows.to(device, dtype)


def check_repeated(first: Tensor, again: Tensor, sample: int, largest: float, values: Tensor | None = None) -> None:
    """Raise an error if two results of a sample differ by more than rounding, or a small share of the values."""
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
        then = "Put it into evaluation mode, and fix the seed of what it draws."
        raise wrong("model", "return the same for the same sample", got, then)


def _choose_players(
    rows: Rows, columns: Any, players: Players | None, model: Model, categorical: Categorical
) -> Players:
    """Return the players of the samples, with the categories that the model and the caller name."""
    if players is None:
        players = _players_of(rows, columns)
    players.check_samples(rows)
    if isinstance(model, NumpyModel) and max(model.categorical, default=0) < rows[0].numel():
        players = players.with_categorical(model.categorical)
    return players.with_categorical(categorical)


def _players_of(x: Rows, columns: Any) -> Players:
    """Return a player for each column of a table, named by those of a DataFrame."""
    if x.ndim != 2:
        then = "Use for instance Players.grid(shape, cells=(4, 4)) or Players.segments(labels)."
        raise wrong("players", f"be given for samples of shape {tuple(x.shape[1:])}", "none", then)
    return Players.features(x.shape[1] if columns is None else list(columns))


def _precision_of(output: Outputs) -> torch.dtype:
    """Return the precision of a numpy model: boosters compute in float32 but may return float64."""
    fits_single = bool((output.float() == output).all())
    has_fractions = bool((output / _SMALL_FRACTION % 1 != 0).any())
    if output.dtype == torch.float64 and fits_single and has_fractions:
        return torch.float32
    return output.dtype


def _check_value(value: object, readout: Readout) -> None:
    """Raise an error unless a readout gave one number for one row, or features."""
    shape = tuple(getattr(value, "shape", ()))
    if not isinstance(value, Tensor) or (shape != (1,) and not isinstance(readout, Features)):
        got = f"{type(value).__name__} of shape {shape} for one row"
        raise wrong("readout", "return a tensor of one number for each row", got)


def _note_on_model(model: Model) -> str:
    """Say how probabilities are read, and what else is known of the model, if anything."""
    if not isinstance(model, NumpyModel):
        return ""
    note = ""
    if model.probabilities and model.least:
        places = 1 - math.floor(math.log10(model.least))
        least = f"{model.least:.{places}f}"
        most = f"{1 - model.least:.{places}f}"
        note += f"; probabilities of 0 and 1 are read as {least} and {most}"
    if model.note:
        note += f"; {model.note}"
    return note
