"""The training of imputers and surrogates: on masked rows, until the loss on held-out rows stops falling."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from absentia.absences.protocol import check_floating
from absentia.data import check_number, seeded
from absentia.errors import AbsentiaError, wrong
from absentia.players import Players
from absentia.runtime.progress import progress
from absentia.version import __version__

Rows: TypeAlias = Float[Tensor, "rows *entries"]
# Row numbers and the presence of their entries → a loss for each row. The generator is for any other random numbers.
Loss: TypeAlias = Callable[[Int[Tensor, " batch"], Bool[Tensor, "batch *entries"], torch.Generator], Tensor]

# The share of the rows that is held out to choose the weights.
_HELD_OUT_SHARE = 0.1
# The most rows that are held out, which are enough to compare epochs.
_MOST_HELD_OUT = 2000
# If fewer rows than this are held out, each of them is masked several times.
_HELD_OUT_MASKED = 1024
# The most times that each held-out row is masked.
_MOST_REPEATS = 16

# A minibatch is this share of the rows, within the two bounds below, so that even few rows make several steps.
_BATCHES_PER_EPOCH = 16
_LEAST_BATCH = 32
_MOST_BATCH = 256

# The held-out loss is checked after every epoch, or after this many steps if epochs are shorter.
_STEPS_PER_CHECK = 32
# The loss has stopped falling if it gains less than this share of its whole fall in `_PATIENCE` checks.
_LEAST_GAIN = 5e-4
# The number of checks in which the loss must gain `_LEAST_GAIN`.
_PATIENCE = 5
# Training then continues at the next lower learning rate, and ends after the last one.
_RATES = (3e-3, 6e-4, 1e-4)


class Standardise(nn.Module):
    """Encode masked inputs for a network: standardised values, 0 where absent, together with presence.

    For images, presence is one additional plane, the mean over the channels.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...], mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", mean.float())
        self.register_buffer("scale", torch.where(deviation > 0, deviation, 1.0).float())

    def standardised(self, rows: Rows) -> Rows:
        """Subtract the mean of the data, and divide by its standard deviation."""
        return (rows - self.mean) / self.scale

    def code(self, values: Tensor, present: Tensor) -> Tensor:
        """Append presence to standardised values."""
        if len(self.shape) == 3:
            plane = present.to(values).mean(1, keepdim=True)
            return torch.cat([values, plane], dim=1)
        return torch.cat([values.flatten(1), present.flatten(1).to(values)], dim=1)

    def forward(self, rows: Rows) -> Tensor:
        """Encode rows whose absent entries are NaN."""
        present = ~rows.isnan()
        values = torch.where(present, self.standardised(rows), 0.0)
        return self.code(values, present)


def mlp(widths: Sequence[int]) -> nn.Sequential:
    """Build linear layers of these widths with a smooth rectifier between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class TrainingEnd(str, Enum):
    """Why training stopped; the values are the words that records show."""

    PLATEAU = "the held-out loss no longer fell"
    LAST_EPOCH = "the last epoch was reached"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class TrainingRecord:
    """How a network was trained, and how well it did on held-out rows."""

    rows: int  # that it learned from
    held_out: int  # rows that it never learned from, on which the losses are measured
    players: int
    epochs: int
    first_loss: float
    loss: float
    stopped: TrainingEnd  # why training stopped
    seconds: float
    seed: int
    version: str = __version__
    rows_seen: int | None = None  # rows that the imitated model saw; None for an imputer, and in older files

    def __str__(self) -> str:
        trained = f"trained on {self.rows:,} rows, {self.players} players, {self.epochs} epochs, {self.seconds:.1f} s"
        return f"{trained}: {self.stopped.value}"


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """The numbers of the rows to learn from and of the held-out rows, which are always masked in the same way."""

    players: Players
    training: Int[Tensor, " training"]
    held_out: Int[Tensor, " held_out"]
    repeated: Int[Tensor, " masked"]  # the held-out rows, each as often as it is masked
    presence: Bool[Tensor, "masked *entries"]  # of the repeated rows
    seed: int

    @classmethod
    def draw(cls, x: Tensor, players: Players | None, seed: int, method: str) -> MaskedRows:
        """Split the rows at random. By default each entry is a player."""
        shape = tuple(x.shape[1:])
        if players is None:
            players = Players.segments(torch.arange(x[0].numel()).view(shape))
        if players.integer:
            check_floating(method, x)
        if players.shape != shape:
            raise wrong("players", f"have the rows' shape {shape}", f"{players.shape}")
        generator = seeded(seed)
        order = torch.randperm(len(x), generator=generator)
        count = min(_MOST_HELD_OUT, max(1, round(_HELD_OUT_SHARE * len(x))))
        held_out = order[:count]
        repeats = min(_MOST_REPEATS, max(1, _HELD_OUT_MASKED // count))
        repeated = held_out.repeat(repeats)
        presence = random_presence(players, len(repeated), generator)
        return cls(players, order[count:], held_out, repeated, presence, seed)


def random_presence(players: Players, rows: int, generator: torch.Generator) -> Bool[Tensor, "rows *entries"]:
    """Draw a coalition for each row, of a size that is uniform on 0 … n, and spread it over the entries."""
    # A uniform probability of presence makes the size uniform, and all coalitions of a size equally likely.
    chance = torch.rand(rows, 1, generator=generator)
    coalitions = torch.rand(rows, len(players), generator=generator) < chance
    return players.presence(coalitions)


@dataclass
class _LossCourse:
    """The course of the held-out loss, which shows when it has stopped falling."""

    first: float
    lowest: float = field(init=False)
    last_gain: float = field(init=False)  # the lowest loss when it last fell by enough
    checks: int = 0  # since then

    def __post_init__(self) -> None:
        self.lowest = self.first
        self.last_gain = self.first

    def add(self, loss: float) -> None:
        """Note the loss of one more check."""
        self.lowest = min(self.lowest, loss)
        self.checks += 1
        if self.last_gain - self.lowest > _LEAST_GAIN * (self.first - self.lowest):
            self.last_gain = self.lowest
            self.checks = 0

    @property
    def has_stopped_falling(self) -> bool:
        """Whether the loss improved too little in the last checks."""
        return self.checks >= _PATIENCE


class _TrainingRun:
    """The state of one training run: the optimiser, its learning rate, and the best weights so far."""

    def __init__(self, network: nn.Module, loss: Loss, rows: MaskedRows) -> None:
        self.network = network
        self.loss = loss
        self.rows = rows
        self.generator = seeded(rows.seed)
        self.adam = torch.optim.Adam(network.parameters(), lr=_RATES[0], fused=True)
        self.rates_done = 0
        self.batch = min(_MOST_BATCH, max(_LEAST_BATCH, len(rows.training) // _BATCHES_PER_EPOCH))
        steps_per_epoch = math.ceil(len(rows.training) / self.batch)
        self.epochs_per_check = math.ceil(_STEPS_PER_CHECK / steps_per_epoch)
        self.course = _LossCourse(_held_out_loss(network, loss, rows))
        self.best_weights: dict[str, Any] = copy.deepcopy(network.state_dict())

    @property
    def is_finished(self) -> bool:
        """Whether the loss has stopped falling at the last learning rate too."""
        return self.rates_done == len(_RATES)

    def train_epoch(self) -> None:
        """Learn from every row once, in random order, with random players absent."""
        self.network.train()
        order = torch.randperm(len(self.rows.training), generator=self.generator)
        for batch in self.rows.training[order].split(self.batch):
            presence = random_presence(self.rows.players, len(batch), self.generator)
            self.adam.zero_grad()
            self.loss(batch, presence, self.generator).mean().backward()
            self.adam.step()

    def check(self) -> None:
        """Measure the held-out loss, keep the best weights, and lower the rate if the loss has stopped falling."""
        loss = _held_out_loss(self.network, self.loss, self.rows)
        if loss < self.course.lowest:
            self.best_weights = copy.deepcopy(self.network.state_dict())
        self.course.add(loss)
        if self.course.has_stopped_falling:
            self.course.checks = 0
            self._lower_rate()

    def _lower_rate(self) -> None:
        """Restore the best weights, and continue from there with smaller steps."""
        self.rates_done += 1
        if not self.is_finished:
            self.adam.param_groups[0]["lr"] = _RATES[self.rates_done]
        self.network.load_state_dict(self.best_weights)


@torch.enable_grad()
def fit(network: nn.Module, loss: Loss, rows: MaskedRows, *, epochs: int, title: str, show: bool) -> TrainingRecord:
    """Train until the held-out loss stops falling, and give the network the weights with the lowest loss."""
    check_number("epochs", epochs, 1)
    began = time.perf_counter()
    run = _TrainingRun(network, loss, rows)
    epoch = 0
    with progress(epochs, title, "epoch", show) as bar:
        while epoch < epochs and not run.is_finished:
            run.train_epoch()
            epoch += 1
            bar.update()
            if epoch % run.epochs_per_check == 0 or epoch == epochs:
                run.check()
                bar.set_postfix(held_out=f"{run.course.lowest:.4g}")
    network.load_state_dict(run.best_weights)
    network.eval().requires_grad_(False)
    stopped = TrainingEnd.PLATEAU if run.is_finished else TrainingEnd.LAST_EPOCH
    return TrainingRecord(
        rows=len(rows.training),
        held_out=len(rows.held_out),
        players=len(rows.players),
        epochs=epoch,
        first_loss=run.course.first,
        loss=run.course.lowest,
        stopped=stopped,
        seconds=time.perf_counter() - began,
        seed=rows.seed,
    )


def _held_out_loss(network: nn.Module, loss: Loss, rows: MaskedRows) -> float:
    """Return the mean loss of the held-out rows, always with the same presence and the same random numbers."""
    network.eval()
    generator = seeded(rows.seed)
    batches = zip(rows.repeated.split(_MOST_BATCH), rows.presence.split(_MOST_BATCH), strict=True)
    with torch.no_grad():
        losses = torch.cat([loss(batch, presence, generator) for batch, presence in batches])
    mean = float(losses.double().mean())
    if not math.isfinite(mean):
        raise AbsentiaError(f"The loss of held-out rows is {mean}. Look for outliers in the data.")
    return mean
