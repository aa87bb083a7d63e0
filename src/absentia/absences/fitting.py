"""Networks on masked inputs, in which absent entries are NaN: how they read them, and one training loop."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from absentia.absences.protocol import check_floating
from absentia.data import check_number, seeded
from absentia.errors import AbsentiaError, wrong
from absentia.models import progress
from absentia.players import Players
from absentia.version import __version__

Rows: TypeAlias = Float[Tensor, "rows *entries"]
# Numbers of rows and their presence → a loss for each row. The generator is for whatever else is random.
Loss: TypeAlias = Callable[[Int[Tensor, " batch"], Bool[Tensor, "batch *entries"], torch.Generator], Tensor]

# Held-out rows choose the weights: a tenth of the rows, but no more than needed to compare epochs. Few rows are
# masked several times, always in the same way.
_HELD_OUT_SHARE, _MOST_HELD_OUT, _HELD_OUT_MASKED, _MOST_REPEATS = 0.1, 2000, 1024, 16
# A minibatch is a sixteenth of the rows, within these numbers, so that few rows still make several steps.
_LEAST_BATCH, _BATCH = 32, 256
# The held-out loss is checked after every epoch, or after this many steps where epochs are shorter.
_STEPS_PER_CHECK = 32
# The loss has stopped falling when this many checks bring less than this share of all that it has fallen. Training
# then goes on with the next lower rate, and ends after the last.
_PATIENCE, _LEAST_GAIN = 5, 5e-4
_RATES = (3e-3, 6e-4, 1e-4)


class Standardise(nn.Module):
    """Read masked inputs: standardised values, 0 where absent, and presence beside them (of images, as a plane)."""

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...], mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", mean.float())
        self.register_buffer("scale", torch.where(deviation > 0, deviation, 1.0).float())

    def standardised(self, rows: Rows) -> Rows:
        """Return the values in units of the data's deviations from its mean."""
        return (rows - self.mean) / self.scale

    def code(self, values: Tensor, present: Tensor) -> Tensor:
        """Put presence beside standardised values."""
        if len(self.shape) == 3:
            return torch.cat([values, present.to(values).mean(1, keepdim=True)], dim=1)
        return torch.cat([values.flatten(1), present.flatten(1).to(values)], dim=1)

    def forward(self, rows: Rows) -> Tensor:
        """Read rows whose absent entries are NaN."""
        present = ~rows.isnan()
        return self.code(torch.where(present, self.standardised(rows), 0.0), present)


def mlp(widths: Sequence[int]) -> nn.Sequential:
    """Build linear layers of these widths with a smooth rectifier between them."""
    layers: list[nn.Module] = []
    for width, following in pairwise(widths):
        layers += [nn.Linear(width, following), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


@dataclass(frozen=True)
class TrainingRecord:
    """How a network was trained, and how far to trust it."""

    rows: int  # that it learned from
    held_out: int  # rows that it never learned from: the losses are theirs
    players: int
    epochs: int
    first_loss: float
    loss: float
    stopped: str  # why it stopped, in words
    seconds: float
    seed: int
    version: str = __version__

    def __str__(self) -> str:
        trained = f"trained on {self.rows:,} rows, {self.players} players, {self.epochs} epochs, {self.seconds:.1f} s"
        return f"{trained}: {self.stopped}"


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """Rows to learn from, and held-out rows with the presence that they keep."""

    players: Players
    kept: Int[Tensor, " kept"]
    held_out: Int[Tensor, " held_out"]
    repeated: Int[Tensor, " masked"]  # held-out rows, as often as each is masked
    presence: Bool[Tensor, "masked *entries"]  # theirs
    seed: int

    @classmethod
    def draw(cls, x: Tensor, players: Players | None, seed: int, method: str) -> MaskedRows:
        """Split the rows; without players each entry is one."""
        if players is None:
            players = Players.segments(torch.arange(x[0].numel()).view(x.shape[1:]))
        if players.integer:
            check_floating(method, x)
        if players.shape != tuple(x.shape[1:]):
            raise wrong("players", f"have the rows' shape {tuple(x.shape[1:])}", f"{players.shape}")
        generator = seeded(seed)
        order = torch.randperm(len(x), generator=generator)
        count = min(_MOST_HELD_OUT, max(1, round(_HELD_OUT_SHARE * len(x))))
        repeated = order[:count].repeat(min(_MOST_REPEATS, max(1, _HELD_OUT_MASKED // count)))
        presence = random_presence(players, len(repeated), generator)
        return cls(players, order[count:], order[:count], repeated, presence, seed)


def random_presence(players: Players, rows: int, generator: torch.Generator) -> Bool[Tensor, "rows *entries"]:
    """Draw a coalition for each row, of a size that is uniform on 0 … n, and spread it over the entries."""
    # A uniform chance of presence makes the size uniform, and all coalitions of a size equally likely.
    chance = torch.rand(rows, 1, generator=generator)
    return players.presence(torch.rand(rows, len(players), generator=generator) < chance)


def fit(network: nn.Module, loss: Loss, rows: MaskedRows, *, epochs: int, title: str, show: bool) -> TrainingRecord:
    """Train until the held-out loss stops falling, and leave the network with the weights of the lowest."""
    check_number("epochs", epochs, 1)
    begun, generator = time.perf_counter(), seeded(rows.seed)
    adam = torch.optim.Adam(network.parameters(), lr=_RATES[0], fused=True)
    batch = min(_BATCH, max(_LEAST_BATCH, len(rows.kept) // 16))
    epochs_per_check = -(-_STEPS_PER_CHECK // -(-len(rows.kept) // batch))
    first = lowest = reached = _held_out_loss(network, loss, rows)  # reached: when the loss last fell by much
    best = copy.deepcopy(network.state_dict())
    epoch = stage = checks = 0
    with progress(epochs, title, "epoch", show) as bar:
        while epoch < epochs and stage < len(_RATES):
            network.train()
            for some in rows.kept[torch.randperm(len(rows.kept), generator=generator)].split(batch):
                adam.zero_grad()
                loss(some, random_presence(rows.players, len(some), generator), generator).mean().backward()
                adam.step()
            epoch += 1
            bar.update()
            if epoch % epochs_per_check != 0 and epoch < epochs:
                continue
            held_out = _held_out_loss(network, loss, rows)
            if held_out < lowest:
                lowest, best = held_out, copy.deepcopy(network.state_dict())
            bar.set_postfix(held_out=f"{lowest:.4g}")
            checks += 1
            if reached - lowest > _LEAST_GAIN * (first - lowest):
                reached, checks = lowest, 0
            if checks == _PATIENCE:
                stage, checks = stage + 1, 0
                adam.param_groups[0]["lr"] = _RATES[min(stage, len(_RATES) - 1)]
                network.load_state_dict(best)
    network.load_state_dict(best)
    network.eval().requires_grad_(False)
    stopped = "the held-out loss no longer fell" if stage == len(_RATES) else "the last epoch was reached"
    sizes = (len(rows.kept), len(rows.held_out), len(rows.players), epoch)
    return TrainingRecord(*sizes, first, lowest, stopped, time.perf_counter() - begun, rows.seed)


def _held_out_loss(network: nn.Module, loss: Loss, rows: MaskedRows) -> float:
    """Return the mean loss of the held-out rows, always with the same presence and the same random numbers."""
    network.eval()
    generator = seeded(rows.seed)
    parts = zip(rows.repeated.split(_BATCH), rows.presence.split(_BATCH), strict=True)
    with torch.no_grad():
        mean = float(torch.cat([loss(some, presence, generator) for some, presence in parts]).double().mean())
    if not math.isfinite(mean):
        raise AbsentiaError(f"The loss of held-out rows is {mean}. Look for outliers in the data.")
    return mean
