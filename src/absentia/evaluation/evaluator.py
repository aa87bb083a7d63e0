"""The evaluator: values of coalitions of a task's samples, under any fill."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from absentia.absences.protocol import Fill, StandIns
from absentia.arguments import checked
from absentia.coalitions import enumerate_coalitions
from absentia.data import Rows, blocks
from absentia.errors import wrong
from absentia.evaluation.checks import check_coalitions, check_finite
from absentia.evaluation.first_layer import first_layer_outputs, reuse_memory, split_first_layer
from absentia.evaluation.lattice import NUMBERS_AT_A_TIME, Block, Layout, masked_inputs
from absentia.evaluation.rounding import (
    ABOVE_MEASURED,
    MeasuredErrors,
    largest_errors,
    measured_coalitions,
    members_of,
    not_measured,
    rounding_noise,
)
from absentia.models.model import Model
from absentia.models.outputs import read_output
from absentia.players import Players
from absentia.readout_notes import ReadoutNote
from absentia.readouts import Features, Margin, Readout
from absentia.runtime.batches import BatchRunner
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.precision import in_double
from absentia.runtime.progress import progress
from absentia.runtime.row_count import RowCount
from absentia.task import Task

# Masked inputs are made for several batches at once, which costs less for each.
_BATCHES_PER_BLOCK = 4
# The first layer's outputs are made by doubling only if at least this many batches come of it.
_BATCHES_TO_GROW_FOR = 4


class Tabulated(NamedTuple):
    """The values of all coalitions, the size of their rounding errors, and the rows that were evaluated for them."""

    values: Float[Tensor, "samples coalitions"]
    noise: Float[Tensor, " samples"]
    evaluations: int
    notes: tuple[str, ...] = ()  # on measurements that failed

    @classmethod
    def join(cls, parts: Iterable[Tabulated]) -> Tabulated:
        """Join the tables of different samples."""
        tables = list(parts)
        return cls(
            torch.cat([table.values for table in tables]),
            torch.cat([table.noise for table in tables]),
            sum(table.evaluations for table in tables),
            tuple(dict.fromkeys(note for table in tables for note in table.notes)),
        )


@checked
@final
class Evaluator:
    """The values of coalitions of a task's samples, under any fill.

    Parameters
    ----------
    task : Task
        A model on samples.

    Examples
    --------
    >>> task = ab.Task(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]))
    >>> fill = ab.Baseline(1.0).bind(task.x)
    >>> ab.Evaluator(task).values(fill, torch.tensor([[False, False], [True, True]]))
    tensor([[1., 6.]])
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def __repr__(self) -> str:
        return f"Evaluator({self.samples} × {self.players}; value: {self.readout_note})"

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
    def readout(self) -> Readout:
        """The task's readout."""
        return self.task.readout

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        return self.task.names

    @property
    def readout_note(self) -> ReadoutNote:
        """What is read out."""
        return self.task.readout_note

    @property
    def classes(self) -> Int[Tensor, " samples"] | None:
        """The classes of the samples, if they are known."""
        return self.task.classes

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.task.class_names

    @property
    def batch_size(self) -> int:
        """The rows of a batch."""
        return self.task.batch_size

    @property
    def limit(self) -> TimeLimit:
        """The task's time limit."""
        return self.task.limit

    def with_count(self, row_count: RowCount) -> Evaluator:
        """Return the same evaluator with another count of rows, such as that of a worker."""
        return Evaluator(self.task.with_count(row_count))

    def values(
        self,
        fill: Fill,
        coalitions: Bool[Tensor, "*own coalitions players"],
        *,
        samples: Int[Tensor, " some"] | None = None,
        players: Players | None = None,
        readout: Readout | None = None,
        gradient: bool = False,
        recompute: bool = False,
        double: bool = False,
    ) -> Float[Tensor, "some coalitions *features"]:
        """Return the value of each coalition for each sample.

        ``fill`` is an absence bound to the samples, or to inputs that take their place. ``coalitions`` are shared by
        the samples or each sample's own. ``samples`` are the numbers of the samples that the rows of the fill belong
        to (all by default), ``players`` other players over the same entries, ``readout`` another readout.
        ``gradient`` keeps the graph; ``recompute`` computes activations again, batch by batch, and holds none;
        ``double`` is double precision.
        """
        players = self._players_or(players)
        numbers = self._sample_numbers(samples)
        check_coalitions(coalitions, len(players), len(numbers))
        if coalitions.shape[-2] == 0:
            raise wrong("coalitions", "hold at least one coalition", f"shape {tuple(coalitions.shape)}")
        runner = self._runner(double=double, adapt=not recompute)
        masking = _Masking(fill, players, numbers, self.readout if readout is None else readout, runner)
        return self._values(masking, coalitions, gradient=gradient, recompute=recompute)

    def _values(
        self,
        masking: _Masking,
        coalitions: Bool[Tensor, "*own coalitions players"],
        *,
        gradient: bool = False,
        recompute: bool = False,
    ) -> Float[Tensor, "some coalitions *features"]:
        """Return the values of coalitions that are known to fit; see `values`."""
        numbers = masking.numbers
        coalitions = coalitions.to(self.x.device)
        count = coalitions.shape[-2]
        pairs = max(1, self.batch_size // masking.fill.draws)
        sample_blocks = list(blocks(len(numbers), max(1, pairs // count)))
        coalition_blocks = list(blocks(count, pairs))
        bar = progress(len(sample_blocks) * len(coalition_blocks), "evaluating coalitions", "batch")

        def values_of(samples: slice) -> Iterator[Tensor]:
            """Yield the values of some samples, block by block of the coalitions."""
            for columns in coalition_blocks:
                shared = coalitions.ndim == 2
                asked = coalitions[None, columns] if shared else coalitions[samples, columns]
                if recompute:
                    values = checkpoint(masking, samples, asked, use_reentrant=False)
                else:
                    values = masking(samples, asked)
                check_finite(values, numbers[samples], asked.expand(len(values), -1, -1))
                yield values
                bar.update()

        with self.task.evaluation_mode(gradient), bar:
            return torch.cat([torch.cat(list(values_of(part)), dim=1) for part in sample_blocks])

    def _players_or(self, players: Players | None) -> Players:
        """Return the task's players, or others after checking that they have the shape of the samples."""
        if players is None or players is self.players:
            return self.players
        players.check_samples(self.x)
        return players

    def _sample_numbers(self, samples: Int[Tensor, " some"] | None) -> Int[Tensor, " numbers"]:
        """Return the numbers of these samples on the device of the data; None stands for all samples."""
        if samples is None:
            return self.task.numbers
        return samples.to(self.x.device)

    def _runner(self, *, double: bool, adapt: bool) -> BatchRunner:
        """Return what runs the model in batches."""
        forward = self.task.forward
        if double:
            forward = partial(in_double, forward, parts=self.task.modules)
        runner = self.task.runner(forward)
        if adapt:
            return runner
        # Activations are computed again in the same batches as at first: torch compares what they hold.
        return replace(runner, batch=self.limit.rows_of_a_batch(self.batch_size), adapt=False)

    def table(
        self,
        fill: Fill,
        *,
        samples: Int[Tensor, " some"] | None = None,
        players: Players | None = None,
        gradient: bool = False,
    ) -> Tabulated:
        """Return the values of all 2ⁿ coalitions of each sample, in double precision; see `values`."""
        if isinstance(self.readout, Features):
            raise wrong("readout", "give one number for a table of values", str(self.readout))
        players = self._players_or(players)
        numbers = self._sample_numbers(samples)
        if isinstance(fill, StandIns) and not gradient:
            values = self._enumerate(fill, numbers, players)
        else:
            masking = _Masking(fill, players, numbers, self.readout, self._runner(double=False, adapt=True))
            values = self._values(masking, enumerate_coalitions(len(players)), gradient=gradient).double()
            if getattr(fill, "x", None) is self.x:
                self.check_full(values[-1, -1], values)
        noise = rounding_noise(values, self.task.probe.dtype, self.task.probe.largest, "model")
        notes: tuple[str, ...] = ()
        if self.task.probe.rounds:
            measured = self._measure_errors(fill, values.detach(), numbers, players)
            if bool((measured.errors > noise).any()):  # which may also be those of a model that changed meanwhile
                self.check_still_same()
            noise = noise.maximum(ABOVE_MEASURED * measured.errors)
            notes = measured.notes
        return Tabulated(values, noise, values.numel() * fill.draws, notes)

    def _measure_errors(self, fill: Fill, values: Tensor, samples: Tensor, players: Players) -> MeasuredErrors:
        """Return the largest rounding error of a few values of each sample: the extreme ones, and some drawn."""
        numbers = measured_coalitions(values, len(players), self.samples)
        coalitions = members_of(numbers, len(players))
        masking = _Masking(fill, players, samples, self.readout, self._runner(double=True, adapt=True))
        try:
            exact = self._values(masking, coalitions)
        except OutOfTime:
            raise
        except Exception as error:  # a model with a custom type may raise anything
            return not_measured(values, error)
        return MeasuredErrors(largest_errors(values.gather(1, numbers) - exact))

    def try_coalitions(self, fill: Fill, coalitions: Bool[Tensor, "coalitions players"]) -> int:
        """Evaluate coalitions of the first sample, to see how long that takes; return the number of rows."""
        masking = _Masking(
            fill.select(slice(0, 1)),
            self.players,
            self.task.numbers[:1],
            self.readout,
            self._runner(double=False, adapt=True),
        )
        with self.task.evaluation_mode():
            values = masking(slice(0, 1), coalitions[None].to(self.x.device))
        values.cpu()  # a GPU still computes when the call returns
        return len(coalitions) * fill.draws

    def try_block(self, fill: StandIns, rows: int) -> int:
        """Evaluate a block of a table with at most ``rows`` rows, in order to time it; return their number."""
        _layout, lattice, model = self._lattice(fill, self.players, rows)
        runner = self.task.runner(reuse_memory(model))
        with self.task.evaluation_mode():
            samples, _first, inputs = next(lattice)
            owners = self.task.numbers[samples].repeat_interleave(inputs.shape[1])
            values = self.readout(runner(inputs.flatten(0, 1)), owners)
        values.cpu()  # a GPU still computes when the call returns
        return len(values)

    def expected_values(self) -> Float[Tensor, " samples"] | None:
        """Return the v(N) that can be computed without the table: mean scores, for `Margin(y)`. Otherwise None."""
        readout = self.readout
        if not isinstance(readout, Margin) or readout.y.ndim == 0:
            return None
        with self.task.evaluation_mode():
            runner = BatchRunner(self.task.forward, self.batch_size, row_count=self.task.row_count)
            output = runner(self.x.clone())
        return readout.class_means(output)

    def check_still_same(self) -> None:
        """Raise an error if the model no longer returns for the last sample what it did at first."""
        rows = self.task.probe_rows()  # as many as at first: they round alike
        self.task.row_count.add(len(rows))
        with self.task.evaluation_mode():
            output, _ = read_output(self.task.forward(rows))
        self.task.check_repeated(self.task.probe.last[0], output[-1])

    def check_full(self, value: Tensor, values: Tensor) -> None:
        """Raise an error if v(N) of the last sample is not what it was: the model depends on the batch, or varies."""
        first = self.readout(self.task.probe.last, self.task.numbers[-1:])[0]
        self.task.check_repeated(first, value.detach().to(first), values.detach())

    def _enumerate(self, fill: StandIns, numbers: Tensor, players: Players) -> Float[Tensor, "samples coalitions"]:
        """Evaluate all coalitions block by block, which is faster than by presence."""
        table = torch.zeros(len(numbers), 2 ** len(players), dtype=torch.float64, device=self.x.device)
        layout, lattice, model = self._lattice(fill, players)
        runner = self.task.runner(reuse_memory(model))
        bar = progress(layout.blocks, "evaluating coalitions", "batch")
        last = None
        with self.task.evaluation_mode(), bar:
            for step, (samples, first, inputs) in enumerate(lattice):
                coalitions = inputs.shape[1]
                outputs = runner(inputs.flatten(0, 1))
                values = self.readout(outputs, numbers[samples].repeat_interleave(coalitions)).view(-1, coalitions)
                if step == layout.blocks - 1:
                    last = outputs[-1].clone()
                del outputs  # so that the next block finds its memory in cache
                columns = table[:, first : first + coalitions]
                if fill.draws == 1:  # samples follow each other: the same as below, in one quicker step
                    columns[int(samples[0]) :][: len(values)] = values
                else:
                    columns.index_add_(0, samples, values.double(), alpha=1 / fill.draws)
                if step == 0:  # a model that always fails should fail at once
                    check_finite(values, numbers[samples], first)
                bar.update()
        check_finite(table, numbers, 0)
        if fill.x is self.x and last is not None:
            self.task.check_repeated(self.task.probe.last[0], last, table)
        return table

    def _lattice(
        self, fill: StandIns, players: Players, most_rows: float = math.inf
    ) -> tuple[Layout, Iterator[Block], Model]:
        """Choose what to enumerate, masked inputs or the first layer's outputs, and what to run on it.

        Blocks have at most ``most_rows`` rows.
        """
        if 2 ** len(players) // self.batch_size >= _BATCHES_TO_GROW_FOR:
            split = split_first_layer(self.task.forward, players)
            if split is not None and split.may_reorder(fill):
                rows = int(min(self.batch_size, split.rows_in_cache(), most_rows))
                layout = Layout.of(players, fill, rows)
                return layout, first_layer_outputs(layout, split.layer, split.rectified), split.rest
        batches = 1
        if self.batch_size * fill.x[0].numel() <= NUMBERS_AT_A_TIME:
            batches = _BATCHES_PER_BLOCK
        layout = Layout.of(players, fill, int(min(batches * self.batch_size, most_rows)))
        return layout, masked_inputs(layout), self.task.forward


@dataclass(frozen=True, eq=False)
class _Masking:
    """Masked inputs of some samples, run through the model and read out."""

    fill: Fill
    players: Players
    numbers: Int[Tensor, " samples"]
    readout: Readout
    runner: BatchRunner

    def __call__(
        self, samples: slice, coalitions: Bool[Tensor, "#some coalitions players"]
    ) -> Float[Tensor, "some coalitions *features"]:
        """Return the values of coalitions, averaged over the draws."""
        inputs = self.fill(samples, self.players.presence(coalitions))
        owners = self.numbers[samples].repeat_interleave(inputs.shape[1] * inputs.shape[2])
        values = self.readout(self.runner(inputs.flatten(0, 2)), owners)
        return values.unflatten(0, inputs.shape[:3]).mean(2)
