"""Training the networks behind learned absences: minibatches of masked rows, a stop when nothing improves."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from tqdm.auto import tqdm

from absentia.errors import AbsentiaError, wrong
from absentia.players import Players
from absentia.version import __version__

# Rows and their presence to a loss for each; the generator is for whatever else is random.
Loss: TypeAlias = Callable[[Int[Tensor, " batch"], Bool[Tensor, "batch *entries"], torch.Generator], Tensor]

# Held-out rows choose the weights: a tenth of the rows, but no more than needed to tell epochs apart. Few are masked
# several times, up to so many masked rows, once and for all.
_HELD_OUT_SHARE, _MOST_HELD_OUT, _HELD_OUT_MASKED, _MOST_REPEATS = 0.1, 2000, 1024, 16
# A minibatch is a sixteenth of the rows, within these numbers: few rows would otherwise be few steps.
_LEAST_BATCH, _BATCH = 32, 256
# The held-out loss is checked after every epoch, or after so many steps where epochs are shorter.
_STEPS_PER_CHECK = 32
# The loss has stopped falling when this many checks bring less than this share of all that it has fallen. Then the
# rate drops, for what a smaller one still finds; with the last rate training ends.
_PATIENCE, _LEAST_GAIN = 5, 5e-4
_RATES = (3e-3, 6e-4, 1e-4)


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
        return (
            f"trained on {self.rows:,} rows, {self.players} players, {self.epochs} epochs, {self.seconds:.1f} s: "
            f"{self.stopped}"
        )


@dataclass(frozen=True, eq=False)
class MaskedRows:
    """Rows to learn from, and rows held out with the presence that they keep, drawn by ``seed``."""

    players: Players
    kept: Int[Tensor, " kept"]
    held_out: Int[Tensor, " held_out"]
    repeated: Int[Tensor, " masked"]  # held-out rows, as often as each is masked
    presence: Bool[Tensor, "masked *entries"]  # theirs
    seed: int

    @classmethod
    def draw(cls, x: Float[Tensor, "rows *entries"], players: Players | None, seed: int) -> MaskedRows:
        """Split the rows; without players each entry is one."""
        if players is None:
            count = math.prod(x.shape[1:])
            players = Players(torch.arange(count).view(x.shape[1:]), tuple(f"x{i}" for i in range(count)))
        if players.shape != tuple(x.shape[1:]):
            raise wrong("players", f"have the rows' shape {tuple(x.shape[1:])}", f"{players.shape}")
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(x), generator=generator)
        count = min(_MOST_HELD_OUT, max(1, round(_HELD_OUT_SHARE * len(x))))
        repeated = order[:count].repeat(min(_MOST_REPEATS, max(1, _HELD_OUT_MASKED // count)))
        presence = random_presence(players, len(repeated), generator)
        return cls(players, order[count:], order[:count], repeated, presence, seed)


def random_presence(players: Players, rows: int, generator: torch.Generator) -> Bool[Tensor, "rows *entries"]:
    """Draw a coalition for each row, of a size that is uniform on 0 … n, and spread it over the entries.

    Where each player is present with a probability that is itself uniform on [0, 1], the size is uniform, and all
    coalitions of a size are equally likely.

    >>> random_presence(Players.features(3), 2, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 3])
    """
    chance = torch.rand(rows, 1, generator=generator)
    return players.presence(torch.rand(rows, len(players), generator=generator) < chance)


def fit(network: nn.Module, loss: Loss, rows: MaskedRows, *, epochs: int, title: str, show: bool) -> TrainingRecord:
    """Train until the held-out loss stops falling, and leave the network with the weights of the lowest."""
    if epochs < 1:
        raise wrong("epochs", "be at least 1", epochs)
    begun = time.perf_counter()
    generator = torch.Generator().manual_seed(rows.seed)
    adam = torch.optim.Adam(network.parameters(), lr=_RATES[0], fused=True)
    search = Search(network, adam, held_out_loss(network, loss, rows))
    batch = min(_BATCH, max(_LEAST_BATCH, len(rows.kept) // 16))
    epochs_per_check = -(-_STEPS_PER_CHECK // -(-len(rows.kept) // batch))
    epoch = 0
    with _bar(epochs, title, show) as bar:
        while epoch < epochs and not search.ended:
            network.train()
            for some in rows.kept[torch.randperm(len(rows.kept), generator=generator)].split(batch):
                adam.zero_grad()
                loss(some, random_presence(rows.players, len(some), generator), generator).mean().backward()
                adam.step()
            epoch += 1
            bar.update()
            if epoch % epochs_per_check == 0 or epoch == epochs:
                search.look(held_out_loss(network, loss, rows))
                bar.set_postfix(held_out=f"{search.lowest:.4g}")
    search.take_best()
    network.eval().requires_grad_(False)
    return TrainingRecord(
        len(rows.kept), len(rows.held_out), len(rows.players), epoch, search.first, search.lowest,
        "the held-out loss no longer fell" if search.ended else "the last epoch was reached",
        time.perf_counter() - begun, rows.seed,
    )  # fmt: skip


def held_out_loss(network: nn.Module, loss: Loss, rows: MaskedRows) -> float:
    """Take the mean loss of the held-out rows, always with the same presence and the same random numbers."""
    network.eval()
    generator = torch.Generator().manual_seed(rows.seed)
    parts = zip(rows.repeated.split(_BATCH), rows.presence.split(_BATCH), strict=True)
    with torch.no_grad():
        mean = float(torch.cat([loss(some, presence, generator) for some, presence in parts]).double().mean())
    if not math.isfinite(mean):
        then = "Look for outliers in the data."
        raise AbsentiaError(f"training must have a finite held-out loss. Got {mean} instead. {then}")
    return mean


@dataclass
class Search:
    """Where a training stands: the best weights so far, and how long ago the loss last fell by much."""

    network: nn.Module
    adam: torch.optim.Adam
    first: float
    lowest: float = field(init=False)
    weights: dict[str, Tensor] = field(init=False)
    reached: float = field(init=False)  # the loss when it last fell by much
    checks: int = 0  # since then
    stage: int = 0  # which of the rates

    def __post_init__(self) -> None:
        self.lowest = self.reached = self.first
        self.weights = copy.deepcopy(self.network.state_dict())

    @property
    def ended(self) -> bool:
        """Whether the loss has stopped falling with the last rate."""
        return self.stage == len(_RATES)

    def look(self, loss: float) -> None:
        """Keep the weights if they are the best; drop the rate, or end, when the loss has stopped falling."""
        if loss < self.lowest:
            self.lowest, self.weights = loss, copy.deepcopy(self.network.state_dict())
        self.checks += 1
        if self.reached - self.lowest > _LEAST_GAIN * (self.first - self.lowest):
            self.reached, self.checks = self.lowest, 0
        if self.checks < _PATIENCE:
            return
        self.stage, self.checks = self.stage + 1, 0
        self.take_best()
        if not self.ended:
            self.adam.param_groups[0]["lr"] = _RATES[self.stage]

    def take_best(self) -> None:
        """Give the network its best weights."""
        self.network.load_state_dict(self.weights)


def _bar(epochs: int, title: str, show: bool) -> Any:
    shown = show and sys.stderr.isatty()
    return tqdm(total=epochs, desc=title, unit="epoch", delay=2, disable=not shown, leave=False)
