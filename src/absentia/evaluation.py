"""The values of coalitions: a model on samples whose absent players a fill replaces.

An `Evaluator` has no absence of its own: every method takes the fill. Where stand-ins do not depend on the coalition,
all 2ⁿ masked inputs are made block by block. A block holds 2^k consecutive coalitions: all combinations of the first
k players, with the other players fixed. One bit mask over the first k players then serves every block. An entry is
chosen between the sample's value and the stand-in by three bit operations, absent ⊕ (mask ∧ (present ⊕ absent)).
This is exact for every type, and several times faster than a conditional on each entry.

Where a plain sequential model begins with a linear layer, no masked input is made at all. With h(S) = W x_S + c the
first layer's output, h(S ∪ i) = h(S) + dᵢ with dᵢ = W(xᵢ − bᵢ) for every S. So the outputs of a block grow by
doubling, and other blocks differ from it by one vector. It is the same sum in another order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from absentia.absences.protocol import Fill, StandIns
from absentia.arguments import checked
from absentia.coalitions import coalition_members, enumerate_coalitions
from absentia.data import blocks, seeded
from absentia.errors import wrong
from absentia.models.layers import see
from absentia.models.model import Model
from absentia.models.outputs import read_output
from absentia.players import ALWAYS_PRESENT, Players
from absentia.readouts import Features, Margin, Readout
from absentia.runtime.batches import BatchRunner
from absentia.runtime.limits import OutOfTime
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.precision import in_double
from absentia.runtime.progress import progress
from absentia.task import Task

# Masked inputs are made for several batches at once, which costs less for each.
_BATCHES_PER_BLOCK = 4
# The first layer's outputs are larger than inputs: they are made for fewer batches at once, and by doubling only if
# at least this many batches come of it.
_BATCHES_PER_GROWN_BLOCK, _BATCHES_TO_GROW_FOR = 2, 4
# Samples and stand-ins are gathered for this many pairs at once, to keep small operations out of the loop.
_PAIRS_AT_A_TIME = 64
# The presence of the players that are fixed within a block is made for this many blocks at once.
_BLOCKS_AT_A_TIME = 256
# Fewer of each where inputs are large: this many numbers.
_NUMBERS_AT_A_TIME = 2**20
_ENTRIES_OF_A_LONG_ROW = 2048
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# The largest ratio of a stand-in's part of a sum to the usual part: at most five bits of precision are lost.
_LARGEST_PART = 32.0
_ROWS_IN_CACHE = 2048
# Rounding errors of values, in units of their type's precision, as networks of some layers were seen to have.
_ROUNDED = 4
# Errors are measured on so many values of a sample, or one of 128. Those of effects, over 2^(order/2), were seen to
# be up to 6 times the largest of these. Errors of the two extreme values may be far larger: they have less weight.
_MEASURED, _ONE_OF, _ABOVE_MEASURED, _OF_EXTREMES = 16, 128, 8, 0.25
# Layers that write their output to fresh memory.
_FRESH_OUTPUT = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class Tabulated(NamedTuple):
    """The values of all coalitions, the size of their rounding errors, and the rows that the model evaluated."""

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


class MeasuredErrors(NamedTuple):
    """The largest rounding error that was seen of each sample, and why none could be measured, if so."""

    errors: Float[Tensor, " samples"]
    notes: tuple[str, ...]


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
        self.model = task.model
        self.x = task.x
        self.samples = task.samples
        self.players = task.players
        self.names = task.names
        self.readout = task.readout
        self.readout_note = task.readout_note
        self.classes = task.classes
        self.class_names = task.class_names
        self.batch_size = task.batch_size
        self.limit = task.limit

    def __repr__(self) -> str:
        return f"Evaluator({self.samples} × {self.players}; value: {self.readout_note})"

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
        players = self.players if players is None else players
        players.check_samples(self.x)
        numbers = self.task.numbers if samples is None else samples.to(self.x.device)
        check_coalitions(coalitions, len(players), len(numbers))
        if coalitions.shape[-2] == 0:
            raise wrong("coalitions", "hold at least one coalition", f"shape {tuple(coalitions.shape)}")
        read = self.readout if readout is None else readout
        shared = coalitions.ndim == 2
        rows = coalitions.to(self.x.device)[None] if shared else coalitions.to(self.x.device)
        pairs = max(1, self.batch_size // fill.draws)
        sample_blocks = list(blocks(len(numbers), max(1, pairs // max(1, rows.shape[1]))))
        coalition_blocks = list(blocks(rows.shape[1], pairs))
        forward = partial(in_double, self.task.forward) if double else self.task.forward
        runner = BatchRunner(forward, self.batch_size, self.limit)
        if recompute:  # in the same batches as at first: torch compares what they hold
            size = self.limit.rows_of_a_batch(self.batch_size)
            runner = BatchRunner(forward, size, self.limit, adapt=False)
        bar = progress(len(sample_blocks) * len(coalition_blocks), "evaluating coalitions", "batch")

        def run(some: slice, mine: Tensor) -> Tensor:
            inputs = fill(some, players.presence(mine))
            whose = numbers[some].repeat_interleave(inputs.shape[1] * inputs.shape[2])
            return read(runner(inputs.flatten(0, 2)), whose).unflatten(0, inputs.shape[:3]).mean(2)

        def parts(some: slice) -> Iterator[Tensor]:
            for columns in coalition_blocks:
                mine = rows[:, columns] if shared else rows[some, columns]
                found = checkpoint(run, some, mine, use_reentrant=False) if recompute else run(some, mine)
                check_finite(found, numbers[some], mine.expand(len(found), -1, -1))
                yield found
                bar.update()

        with evaluation_mode(self.model, gradient), bar:
            return torch.cat([torch.cat(list(parts(some)), dim=1) for some in sample_blocks])

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
        players = self.players if players is None else players
        players.check_samples(self.x)
        if isinstance(fill, StandIns) and not gradient:
            values = self._enumerate(
                fill, self.task.numbers if samples is None else samples.to(self.x.device), players
            )
        else:
            rows = enumerate_coalitions(len(players))
            values = self.values(fill, rows, samples=samples, players=players, gradient=gradient).double()
            if getattr(fill, "x", None) is self.x:
                self.check_full(values[-1, -1], values)
        noise = rounding_noise(values, self.task.probe.dtype, self.task.probe.largest, "model")
        notes: tuple[str, ...] = ()
        if self.task.probe.rounds:
            measured = self._measure_errors(fill, values.detach(), samples, players)
            if bool((measured.errors > noise).any()):  # which may also be those of a model that changed meanwhile
                self.check_still_same()
            noise = noise.maximum(_ABOVE_MEASURED * measured.errors)
            notes = measured.notes
        return Tabulated(values, noise, values.numel() * fill.draws, notes)

    def _measure_errors(self, fill: Fill, values: Tensor, samples: Tensor | None, players: Players) -> MeasuredErrors:
        """Return the largest rounding error of a few values of each sample: the extreme ones, and some drawn."""
        n = len(players)
        count = min(max(2**n // _ONE_OF, 4 * _MEASURED // self.samples, 6), _MEASURED)
        drawn = torch.randint(2**n, (count, 1), generator=seeded(n)).to(values.device).expand(-1, len(values))
        numbers = torch.stack([values.argmin(1), values.argmax(1), *drawn], dim=1)
        coalitions = numbers[..., None] >> torch.arange(n, device=numbers.device) & 1 == 1
        try:
            exact = self.values(fill, coalitions, samples=samples, players=players, double=True)
        except OutOfTime:
            raise
        except Exception as error:  # a model that works in a type of its own may raise anything
            why = f"the model cannot run in double precision ({type(error).__name__})"
            note = f"Rounding errors are estimated rather than measured, because {why}."
            return MeasuredErrors(values.new_zeros(len(values)), (note,))
        errors = (values.gather(1, numbers) - exact).abs()
        return MeasuredErrors(torch.maximum(errors[:, 2:].amax(1), _OF_EXTREMES * errors[:, :2].amax(1)), ())

    def expected_values(self) -> Float[Tensor, " samples"] | None:
        """Return what is known of each sample's v(N) without it: for scores of its class their mean, else None."""
        readout = self.readout
        if not isinstance(readout, Margin) or readout.y.ndim == 0:
            return None
        with evaluation_mode(self.model):
            output = BatchRunner(self.task.forward, self.batch_size)(self.x.clone())
        return readout.class_means(output)

    def check_still_same(self, found: Any = None) -> Any:
        """Return what was found; raise an error if the model no longer returns for the last sample what it did."""
        with evaluation_mode(self.model):
            rows = self.task.probe_rows()  # as many as at first: they round alike
            self.task.check_repeated(self.task.probe.last[0], read_output(self.task.forward(rows))[0][-1])
        return found

    def check_full(self, found: Tensor, values: Tensor) -> None:
        """Raise an error if v(N) of the last sample is not what it was: the model depends on the batch, or varies."""
        first = self.readout(self.task.probe.last, self.task.numbers[-1:])[0]
        self.task.check_repeated(first, found.detach().to(first), values.detach())

    def _enumerate(self, fill: StandIns, numbers: Tensor, players: Players) -> Float[Tensor, "samples coalitions"]:
        """Evaluate all coalitions block by block, which is faster than by presence."""
        table = torch.zeros(len(numbers), 2 ** len(players), dtype=torch.float64, device=self.x.device)
        layout, lattice, model = self._lattice(fill, players)
        runner = BatchRunner(reuse_memory(model), self.batch_size, self.limit)
        bar = progress(layout.blocks, "evaluating coalitions", "batch")
        with evaluation_mode(self.model), bar:
            for step, (samples, first, inputs) in enumerate(lattice):
                outputs, coalitions = runner(inputs.flatten(0, 1)), inputs.shape[1]
                values = self.readout(outputs, numbers[samples].repeat_interleave(coalitions)).view(-1, coalitions)
                last = outputs[-1].clone() if step == layout.blocks - 1 else None
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

    def _lattice(self, fill: StandIns, players: Players) -> tuple[Layout, Iterator[Block], Model]:
        """Choose what to enumerate, masked inputs or the first layer's outputs, and what to run on it."""
        enough = 2 ** len(players) // self.batch_size >= _BATCHES_TO_GROW_FOR
        split = split_first_layer(self.task.forward, players) if enough else None
        if split is not None:  # sums may be reordered if no stand-in's part is far larger than the sample's usual one
            weight = split[0].weight.detach().abs().amax(0)
            usual = (fill.x.abs() * weight).median(1).values.amin()
            if bool((fill.values.abs() * weight).amax() <= _LARGEST_PART * usual):
                layout = Layout.of(players, fill, _BATCHES_PER_GROWN_BLOCK * self.batch_size)
                return layout, first_layer_outputs(layout, *split[:2]), split[2]
        few = self.batch_size * fill.x[0].numel() <= _NUMBERS_AT_A_TIME
        layout = Layout.of(players, fill, (_BATCHES_PER_BLOCK if few else 1) * self.batch_size)
        return layout, masked_inputs(layout), self.task.forward


def rounding_noise(
    values: Float[Tensor, "samples coalitions"], dtype: torch.dtype, largest: float = 0.0, name: str = "values"
) -> Float[Tensor, " samples"]:
    """Estimate the rounding errors of values computed in ``dtype`` from outputs of this size."""
    # A few times the precision of the type at the largest value or output: log-odds are differences of logits.
    precision = torch.finfo(dtype if dtype.is_floating_point else torch.float64).eps
    low, high = values.detach().aminmax(dim=1)
    noise = torch.maximum(-low, high).double().clamp_min(largest) * (_ROUNDED * precision)
    if not math.isfinite(float(noise.max()) * 2.0**52 * values.shape[1]):  # a bound on sums over all coalitions
        must = f"{'return values' if name == 'model' else 'be'} small enough for sums over all coalitions"
        raise wrong(name, must, f"{values.detach().abs().max():.3g}")
    return noise


def check_coalitions(coalitions: Tensor, players: int, samples: int | None = None) -> None:
    """Raise an error for coalitions of the wrong type or shape; with ``samples``, each sample may have its own."""
    own = samples is not None and coalitions.ndim == 3 and len(coalitions) == samples
    if coalitions.dtype != torch.bool or not (own or coalitions.ndim == 2) or coalitions.shape[-1] != players:
        expected = f"be boolean of shape (coalitions, {players})"
        expected += f" or ({samples}, coalitions, {players})" if samples is not None else ""
        raise wrong("coalitions", expected, f"{coalitions.dtype} of shape {tuple(coalitions.shape)}")


def check_finite(values: Tensor, samples: Tensor, coalitions: Tensor | int, argument: str = "model") -> None:
    """Raise an error for values that are not finite; ``coalitions`` are theirs, or the number of the first one."""
    # The sum is the quick check; that of finite values may still overflow.
    if math.isfinite(values.detach().sum().item()) or bool(torch.isfinite(values).all()):
        return
    row, column = (~torch.isfinite(values)).nonzero()[0].tolist()[:2]
    if isinstance(coalitions, int):
        present = list(coalition_members(coalitions + column))
    else:
        present = coalitions[row, column].nonzero().flatten().tolist()
    value = values[row, column].flatten()[0].item()
    got = f"{value} for sample {int(samples[row])} with players {present} present"
    log_odds = "Probabilities of 0 and 1 have infinite log-odds: use readout=Probability(y) to explain these."
    then = log_odds if argument == "model" and math.isinf(value) else ""
    raise wrong(argument, "give finite values" if argument == "model" else "be finite", got, then)


class Block(NamedTuple):
    """Masked inputs for consecutive coalitions of a few samples."""

    samples: Int[Tensor, " pairs"]  # the sample of each pair; a sample has one pair for each draw
    first: int  # the number of the first coalition
    inputs: Shaped[Tensor, "pairs coalitions *entries"]  # valid until the next block, which reuses the memory


class Layout(NamedTuple):
    """How the coalitions of all pairs of a sample and a draw are split into blocks of at most some rows."""

    players: Players
    fill: StandIns
    first_players: int  # those that vary within a block
    pairs_per_block: int

    @classmethod
    def of(cls, players: Players, fill: StandIns, rows: int) -> Layout:
        """Split into blocks of at most ``rows`` rows."""
        return cls(players, fill, min(len(players), max(0, rows.bit_length() - 1)), max(1, rows >> len(players)))

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        pairs = len(self.fill.x) * self.fill.draws
        return -(-pairs // self.pairs_per_block) * 2 ** (len(self.players) - self.first_players)

    def at_a_time(self, most: int) -> int:
        """Return how many inputs to hold at a time: as many as hold few numbers, and at most ``most``."""
        return max(1, min(most, _NUMBERS_AT_A_TIME // self.fill.x[0].numel()))

    def pairs(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the samples, their entries and their stand-ins for the pairs of one block after another."""
        x, stand_ins, size = self.fill.x, self.fill.values, self.pairs_per_block
        pairs = torch.arange(len(x) * self.fill.draws, device=x.device)
        for some in pairs.split(max(1, self.at_a_time(_PAIRS_AT_A_TIME) // size) * size):
            samples = some // self.fill.draws
            gathered = samples, x[samples], stand_ins[samples % len(stand_ins), some % self.fill.draws]
            yield from zip(*(part.split(size) for part in gathered), strict=True)


def masked_inputs(layout: Layout) -> Iterator[Block]:
    """Yield the masked inputs of all coalitions of the samples."""
    players, first_players = layout.players, layout.first_players
    mask = _first_players_mask(layout)
    # Kept if they are few; made anew for each pair if they would fill the memory.
    few_blocks = 2 ** (len(players) - first_players) <= layout.at_a_time(_BLOCKS_AT_A_TIME)
    kept = list(_other_players_presence(layout)) if few_blocks else None
    flips = mask.new_empty(layout.pairs_per_block, *mask.shape)
    # With one block for each pair the flips are not needed again, and the inputs can overwrite them.
    bits = flips if first_players == len(players) else torch.empty_like(flips)
    # Rows are short: treating several as one long row saves most of the overhead of a loop. Their number is a power
    # of two, so that it divides the number of coalitions.
    tiles = min(len(mask), 1 << max(1, _ENTRIES_OF_A_LONG_ROW // mask.shape[1]).bit_length() - 1)
    for samples, *entries in layout.pairs():
        present, absent = (part.contiguous().view(mask.dtype).flatten(1) for part in entries)
        long_flips = flips[: len(samples)].view(len(samples), -1, tiles * mask.shape[1])
        long_bits = bits[: len(samples)].view_as(long_flips)
        flip = (present ^ absent).repeat(1, tiles)
        torch.bitwise_and(mask.view(long_flips.shape[1:]), flip.unsqueeze(1), out=long_flips)
        inputs = bits[: len(samples)].view(entries[0].dtype).view(len(samples), len(mask), *players.shape)
        for number, presence in enumerate(kept or _other_players_presence(layout)):
            # The first players are absent from this row, and the flips bring them in.
            row = torch.where(presence, present, absent).repeat(1, tiles)
            torch.bitwise_xor(long_flips, row.unsqueeze(1), out=long_bits)
            yield Block(samples, number << first_players, inputs)


def _other_players_presence(layout: Layout) -> Iterator[Bool[Tensor, " entries"]]:
    """Yield, for each block, which entries are present in all of it."""
    others = len(layout.players) - layout.first_players
    for part in blocks(2**others, layout.at_a_time(_BLOCKS_AT_A_TIME)):
        coalitions = enumerate_coalitions(others, part.start, part.stop).to(layout.fill.x.device)
        yield from layout.players.presence(pad(coalitions, (layout.first_players, 0))).flatten(1)


def _first_players_mask(layout: Layout) -> Shaped[Tensor, "coalitions entries"]:
    """Set all bits of the entries whose player is present, for every coalition of the first players."""
    labels = layout.players.labels.flatten().to(layout.fill.x.device)
    numbers = torch.arange(layout.first_players, device=labels.device)
    own = -(labels == numbers[:, None]).to(_BITS[layout.fill.x.element_size()])  # all bits of each player's entries
    mask = own.new_zeros(2**layout.first_players, len(labels))
    # By doubling: the coalitions up to a player are those before it, and the same with the player.
    for player, entries in enumerate(own):
        half = 2**player
        torch.bitwise_or(mask[:half], entries, out=mask[half : 2 * half])
    return mask


def split_first_layer(model: Model, players: Players) -> tuple[nn.Linear, bool, nn.Sequential] | None:
    """Split a model into its first linear layer, whether a ReLU follows, and the rest; None if it can't be split."""
    # Subclasses and hooks may do more than their layers.
    if type(model) is not nn.Sequential or len(model) < 2 or _is_altered(model):
        return None
    first = model[0]
    if type(first) is not nn.Linear or _is_altered(first) or players.shape != (first.in_features,):
        return None
    rectified = type(model[1]) is nn.ReLU and not _is_altered(model[1])
    return first, rectified, nn.Sequential(*list(model)[2 if rectified else 1 :])


def _is_altered(module: nn.Module) -> bool:
    hooks = [hook for hook in list(module._forward_hooks.values()) if getattr(hook, "func", None) is not see]
    return bool(hooks or module._forward_pre_hooks or "forward" in vars(module))


def reuse_memory(model: Model) -> Model:
    """Return a plain nn.Sequential that runs each ReLU in place whose input nothing else can hold: in less time."""
    if type(model) is not nn.Sequential or _is_altered(model):
        return model
    steps: list[Model] = []
    for before, layer in pairwise([model, *model]):
        reuse = type(layer) is nn.ReLU and type(before) in _FRESH_OUTPUT
        steps.append(Tensor.relu_ if reuse and not (_is_altered(layer) or _is_altered(before)) else layer)

    def run(rows: Tensor) -> Tensor:
        for step in steps:
            rows = step(rows)
        return rows

    return run


def first_layer_outputs(layout: Layout, layer: nn.Linear, rectified: bool) -> Iterator[Block]:
    """Yield the first layer's outputs for all coalitions of the samples, after a ReLU if ``rectified``."""
    x, k = layout.fill.x, layout.first_players
    labels = layout.players.labels.to(x.device)
    owned = (labels != ALWAYS_PRESENT).nonzero().flatten()
    grown, outputs = x.new_empty(2, layout.pairs_per_block, 2**k, layer.out_features)
    others = enumerate_coalitions(len(layout.players) - k).to(x)
    for samples, present, absent in layout.pairs():
        mine, block = grown[: len(samples)], outputs[: len(samples)]
        by_entry = (present - absent)[:, owned, None] * layer.weight.T[owned]
        steps = by_entry.new_zeros(len(samples), len(layout.players), layer.out_features)
        steps.index_add_(1, labels[owned], by_entry)  # what each player adds
        mine[:, 0] = layer(torch.where(labels == ALWAYS_PRESENT, present, absent))
        for player in range(k):  # by doubling: outputs with a player are those without it plus one vector
            half = 2**player
            torch.add(mine[:, :half], steps[:, player, None], out=mine[:, half : 2 * half])
        parts = list(zip(mine.split(_ROWS_IN_CACHE, 1), block.split(_ROWS_IN_CACHE, 1), strict=True))
        for number, offset in enumerate((others @ steps[:, k:]).unsqueeze(2).unbind(1)):
            for source, target in parts:  # small enough to stay in cache
                torch.add(source, offset, out=target)
                if rectified:
                    target.relu_()
            yield Block(samples, number << k, block)
