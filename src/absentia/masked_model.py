"""The game that explanations are about: a model, samples, and what their players' absence means."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import partial
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.absence import Absence, BringsModel, StandIns
from absentia.arrays import Array, Table, as_tensor
from absentia.coalitions import coalition_of, enumerate_coalitions
from absentia.errors import wrong
from absentia.game import ValueTable, check_coalitions, check_finite, rounding_noise
from absentia.inference import (
    BatchRunner,
    Model,
    blocks,
    evaluation_mode,
    layer_output,
    placement,
    progress,
    rows_per_batch,
    try_rows,
)
from absentia.lattice import Lattice
from absentia.players import Players
from absentia.readouts import Features, Readout, default_readout
from absentia.sequential import FirstLayerLattice, keeps_precision, reuse_memory, split_first_layer

# Masked inputs are made for several batches at once: what is done once for them all costs less for each.
_BATCHES_PER_BLOCK = 4
# The first layer's outputs, which are larger than inputs, are made for fewer batches; and only where at least so many
# batches come of what has grown by doubling.
_BATCHES_PER_GROWN_BLOCK, _BATCHES_TO_GROW_FOR = 2, 4


@final
class MaskedModel:
    """A model on samples with some of their players absent, as a game.

    ``model`` is an nn.Module, any callable on torch rows, or a numpy callable wrapped by `from_numpy`. ``x`` is a
    batch (samples, …): a tensor, an array, or a DataFrame, whose columns then name the players. ``y`` chooses the
    class when there is no ``readout``: see `default_readout`. Calling it with coalitions (coalitions, players), or
    with coalitions of its own for each sample (samples, coalitions, players), gives values (samples, coalitions), or
    (samples, coalitions, features) for the readout `Features`.

    The model runs in evaluation mode on its own device, without a gradient unless ``gradient`` asks for one, in
    batches of ``batch_size`` rows, or of as many as fit ``memory`` bytes. Integer inputs stay integers for
    tokens, and become the model's dtype otherwise. An absence that brings its own model, such as a `Surrogate`, has
    it run in the model's place; the class predicted on the full sample, where it is asked for, is then its own.

    >>> import absentia as ab
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> game(torch.tensor([[False, False], [True, False], [True, True]]))
    tensor([[1., 2., 6.]])
    """

    def __init__(
        self,
        model: Model,
        x: Table,
        y: int | Sequence[int] | Array | None = None,
        *,
        absence: Absence,
        players: Players | None = None,
        readout: Readout | None = None,
        gradient: bool = False,
        batch_size: int | None = None,
        memory: int | None = None,
    ) -> None:
        if not callable(model):
            then = "Wrap a numpy model with from_numpy(estimator.predict_proba, probabilities=True)."
            raise wrong("model", "be an nn.Module or a callable on torch rows", type(model).__name__, then)
        if not isinstance(absence, Absence):
            raise wrong("absence", "be an absence such as Baseline(0.0)", type(absence).__name__)
        if y is not None and readout is not None:
            raise wrong("readout", "be left out where y is given", readout, "Put y into the readout.")
        if batch_size is not None and batch_size < 1:
            raise wrong("batch_size", "be at least 1", batch_size)
        if isinstance(absence, BringsModel):
            model = absence.instead_of(model)
        columns = getattr(x, "columns", None)  # a DataFrame's, which name the players
        x = _check_samples(x)
        self.players = _check_players(players, x, columns)
        self.x = _place(x, model, self.players)
        self.absence = absence
        self.gradient = gradient
        self.model = model
        self._fill = absence.bind(self.x)
        self._numbers = torch.arange(len(self.x), device=self.x.device)
        self._forward = layer_output(model, readout.layer) if isinstance(readout, Features) else model
        with evaluation_mode(model):
            # Two rows at least, so that an output without a row for each input row can't go unnoticed; and copies,
            # for a model may work in place.
            output, size = try_rows(model, self.x[[0, -1]])
            self.batch_size = batch_size or rows_per_batch(model, size, self.x.device, memory)
            if isinstance(readout, Features):
                output = self._forward(self.x[[0, -1]])
            self.dtype = output.dtype
            self.readout, self.readout_note = self._resolve_readout(readout, y, output)

    def __repr__(self) -> str:
        return f"MaskedModel({self.samples} × {self.players}, {self.absence}; value: {self.readout_note})"

    @property
    def samples(self) -> int:
        """How many samples."""
        return len(self.x)

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        return self.players.names

    @property
    def draws(self) -> int:
        """How many evaluations of the model one value takes."""
        return self._fill.draws

    def part(self, samples: Int[Tensor, " part"], absence: Absence, *, gradient: bool = False) -> MaskedModel:
        """Take some of the samples, with another absence, without looking at the model again."""
        if absence is not self.absence and (
            isinstance(absence, BringsModel) or isinstance(self.absence, BringsModel)
        ):
            raise wrong("absence", "leave the model as it is", "one that brings its own", "Make a game of its own.")
        other = copy.copy(self)
        other.x = self.x[samples.to(self.x.device)]
        other._numbers = self._numbers[samples.to(self.x.device)]
        other.absence, other.gradient = absence, gradient
        other._fill = absence.bind(other.x)
        return other

    def __call__(
        self, coalitions: Bool[Tensor, "*own coalitions players"]
    ) -> Float[Tensor, "samples coalitions *features"]:
        """Give the value of each coalition for each sample."""
        check_coalitions(coalitions, len(self.players), self.samples)
        if coalitions.shape[-2] == 0:
            raise wrong("coalitions", "hold at least one coalition", f"shape {tuple(coalitions.shape)}")
        shared = coalitions.ndim == 2
        rows = coalitions.to(self.x.device)[None] if shared else coalitions.to(self.x.device)
        pairs = max(1, self.batch_size // self.draws)
        sample_blocks = list(blocks(self.samples, max(1, pairs // max(1, rows.shape[1]))))
        coalition_blocks = list(blocks(rows.shape[1], pairs))
        runner = BatchRunner(self._forward, self.batch_size)
        values = []
        with (
            evaluation_mode(self.model, self.gradient),
            progress(len(sample_blocks) * len(coalition_blocks)) as bar,
        ):
            for samples in sample_blocks:
                parts = []
                for columns in coalition_blocks:
                    mine = rows[:, columns] if shared else rows[samples, columns]
                    parts.append(self._evaluate(runner, samples, mine))
                    bar.update()
                values.append(torch.cat(parts, dim=1))
        return torch.cat(values)

    def _evaluate(self, runner: BatchRunner, samples: slice, coalitions: Tensor) -> Tensor:
        """Evaluate one block: fill, run, read, and average over the draws."""
        inputs = self._fill(samples, self.players.presence(coalitions))
        numbers = self._numbers[samples]
        whose = numbers.repeat_interleave(inputs.shape[1] * inputs.shape[2])
        values = self.readout(runner(inputs.flatten(0, 2)), whose).unflatten(0, inputs.shape[:3]).mean(2)
        check_finite(values, numbers, lambda row, column: coalitions[min(row, len(coalitions) - 1), column])
        return values

    def table(self) -> ValueTable:
        """Evaluate all 2ⁿ coalitions; `value_table` does it with a check of the memory it takes."""
        if isinstance(self.readout, Features):
            raise wrong("readout", "give one number for a table of values", str(self.readout))
        if self.gradient or not isinstance(self._fill, StandIns):
            values = self(enumerate_coalitions(len(self.players))).double()
        else:
            values = self._enumerate(self._fill)
        return ValueTable(
            values,
            self.names,
            readout=self.readout_note,
            noise=rounding_noise(values, self.dtype),
            evaluations=values.numel() * self.draws,
        )

    def _enumerate(self, fill: StandIns) -> Float[Tensor, "samples coalitions"]:
        """Evaluate all coalitions along the lattice, which is faster than by presence."""
        table = torch.zeros(self.samples, 2 ** len(self.players), dtype=torch.float64, device=self.x.device)
        lattice, runner = self._lattice(fill)
        with evaluation_mode(self.model), progress(len(lattice)) as bar:
            for step, (samples, first, inputs) in enumerate(lattice):
                values = self._read(runner, samples, inputs)
                columns = table[:, first : first + inputs.shape[1]]
                if self.draws == 1:  # samples follow each other: the same as below, in one quicker step
                    start = int(samples[0])
                    columns[start : start + len(samples)] = values
                else:
                    columns.index_add_(0, samples, values.double(), alpha=1 / self.draws)
                if step == 0:  # a model that always fails should fail at once
                    check_finite(values, self._numbers[samples], partial(self._coalition, first))
                bar.update()
        check_finite(table, self._numbers, partial(self._coalition, 0))
        return table

    def _lattice(self, fill: StandIns) -> tuple[Lattice | FirstLayerLattice, BatchRunner]:
        """Choose what to enumerate, masked inputs or the first layer's outputs, and what to run on it."""
        enough = 2 ** len(self.players) // self.batch_size >= _BATCHES_TO_GROW_FOR
        split = split_first_layer(self._forward, self.players)
        if split is not None and enough and keeps_precision(split[0], fill):
            layer, rectified, rest = split
            rows = _BATCHES_PER_GROWN_BLOCK * self.batch_size
            grown = FirstLayerLattice(layer, rectified, self.players, fill, rows)
            return grown, BatchRunner(reuse_memory(rest), self.batch_size)
        lattice = Lattice(self.players, fill, _BATCHES_PER_BLOCK * self.batch_size)
        return lattice, BatchRunner(reuse_memory(self._forward), self.batch_size)

    def _read(self, runner: BatchRunner, samples: Tensor, inputs: Tensor) -> Float[Tensor, "pairs coalitions"]:
        pairs, coalitions = inputs.shape[:2]
        whose = self._numbers[samples]
        # One sample's number is expanded, which is a view; several are repeated, which is a copy.
        whose = whose.expand(coalitions) if pairs == 1 else whose.repeat_interleave(coalitions)
        return self.readout(runner(inputs.flatten(0, 1)), whose).view(pairs, coalitions)

    def _coalition(self, first: int, _row: int, column: int) -> Tensor:
        return coalition_of(len(self.players), first + column)

    def _resolve_readout(self, readout: Readout | None, y: object, output: Tensor) -> tuple[Readout, str]:
        """Settle the readout by the model's output on full samples, and refuse outputs that do not fit it."""
        note = str(readout)
        if readout is None:
            if y is None and output.ndim == 2 and output.shape[1] > 1:
                full = BatchRunner(self._forward, self.batch_size)(self.x.clone())
                readout, note = default_readout(full, y)
            else:
                readout, note = default_readout(output, y)
        readout.check(output, self.samples)
        return readout, note


def _check_samples(x: Table) -> Tensor:
    x = as_tensor("x", x)
    if x.ndim < 2:
        raise wrong(
            "x", "be a batch of shape (samples, …)", f"shape {tuple(x.shape)}", "Pass x[None] for one sample."
        )
    if x.numel() == 0:
        raise wrong("x", "hold at least one sample", f"shape {tuple(x.shape)}")
    finite = torch.isfinite(x).flatten(1)
    if not bool(finite.all()):
        sample, entry = (~finite).nonzero()[0].tolist()
        raise wrong("x", "be finite", f"{x.flatten(1)[sample, entry].item()} in sample {sample}, entry {entry}")
    return x


def _check_players(players: object, x: Tensor, columns: Iterable[str] | None) -> Players:
    if players is None:
        if x.ndim != 2:
            then = "Use for instance Players.grid(shape, cells=(4, 4)) or Players.segments(labels)."
            raise wrong("players", f"be given for samples of shape {tuple(x.shape[1:])}", "none", then)
        return Players.features(x.shape[1] if columns is None else list(columns))
    if not isinstance(players, Players):
        raise wrong("players", "be Players, such as Players.features(names)", type(players).__name__)
    if players.shape != tuple(x.shape[1:]):
        then = "Pass x[None] for one sample." if players.shape == tuple(x.shape) else ""
        raise wrong("x", f"have samples of the players' shape {players.shape}", f"{tuple(x.shape[1:])}", then)
    return players


def _place(x: Tensor, model: Model, players: Players) -> Tensor:
    """Move samples to where the model works; token numbers stay integers, all else becomes its dtype."""
    device, dtype = placement(model, x)
    return x.to(device) if players.integer and not x.is_floating_point() else x.to(device, dtype)
