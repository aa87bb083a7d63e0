"""Learning a colour for each cell of an image as the paper does it: gradient steps on drawn marginal benefits.

`absentia.learn_baseline` also tries other values of one coordinate at a time. For about 200 colours and a residual
network this would take hours. The loss is the paper's L_marginal up to order λ, along walks of drawn players over
drawn training images. |Δv| is the change of the log-odds of the image's class or, as the paper has it "to boost the
efficiency of learning", the L1 norm of the change of the penultimate layer's features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

import absentia as ab
from experiments.published_schedule import count_orders

Value: TypeAlias = Literal["log-odds", "features"]

ORDERS = 0.2  # the paper's λ, as a share of the players
# Images for which a graph is kept at a time.
_IMAGES_AT_A_TIME = 8
# Images on which the losses before and after are measured.
_COMPARED = 64


@dataclass(frozen=True)
class Schedule:
    """How many gradient steps to take, and on what."""

    images: int  # drawn by the seed
    steps: int
    batch: int  # images in a step, each with its own walk
    value: Value = "log-odds"
    rate: float = 0.05  # of Adam, falling along a cosine
    orders: float = ORDERS  # λ, as a share of the players


@dataclass(frozen=True, eq=False)
class Colours:
    """A learned colour for each cell, and the loss and cost of learning."""

    values: Float[Tensor, "channels height width"]
    before: float  # the loss of the mean colours, from which learning starts
    after: float
    evaluations: int


def penultimate(model: nn.Module) -> ab.Features:
    """Return the readout of the inputs of the last layer of a sequential network.

    >>> penultimate(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)))
    Features(layer='1')
    """
    if not isinstance(model, nn.Sequential) or len(model) < 2:
        kind = type(model).__name__
        raise ab.AbsentiaError(f"model must be an nn.Sequential of two layers or more. Got {kind} instead.")
    return ab.Features(str(len(model) - 2))


def learn_colours(
    model: nn.Module,
    data: Float[Tensor, "rows channels height width"],
    labels: Int[Tensor, " rows"],
    players: ab.Players,
    cells: Int[Tensor, "channels height width"],
    schedule: Schedule,
    seed: int = 0,
) -> Colours:
    """Learn a value between 0 and 1 for every label of ``cells``, starting from the mean of the data."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(data), generator=generator)[: schedule.images]
    readout: ab.Readout = penultimate(model) if schedule.value == "features" else ab.LogOdds(labels[rows])
    loss = _Loss(ab.Evaluator(ab.Task(model, data[rows], players=players, readout=readout)), schedule.orders)
    numbers, place = torch.unique(cells, return_inverse=True)
    colours = torch.zeros(len(numbers)).index_add_(0, place.flatten(), data.mean(0).flatten())
    colours = (colours / torch.bincount(place.flatten())).requires_grad_()
    fixed = torch.arange(min(_COMPARED, len(rows)))
    before = loss.measure(colours.detach()[place], fixed, seed)
    adam = torch.optim.Adam([colours], lr=schedule.rate)
    for step in range(schedule.steps):
        falling = 0.5 * (1 + math.cos(math.pi * step / schedule.steps))
        adam.param_groups[0]["lr"] = schedule.rate * (0.02 + 0.98 * falling)
        adam.zero_grad()
        loss.slope(colours, place, torch.randint(len(rows), (schedule.batch,), generator=generator), generator)
        adam.step()
        with torch.no_grad():
            colours.clamp_(0, 1)
    values = colours.detach()[place]
    return Colours(values, before, loss.measure(values, fixed, seed), loss.evaluations)


@dataclass
class _Loss:
    """L_marginal of images, estimated along one walk for each."""

    evaluator: ab.Evaluator
    orders: float  # λ, as a share of the players
    evaluations: int = 0

    def measure(
        self, values: Float[Tensor, "channels height width"], chosen: Int[Tensor, " some"], seed: int
    ) -> float:
        """Compute the mean loss of some images along walks drawn by the seed."""
        generator = torch.Generator().manual_seed(seed)
        parts = chosen.split(_IMAGES_AT_A_TIME)
        return sum(float(self._of(values, part, generator)) for part in parts) / len(chosen)

    def slope(
        self,
        colours: Float[Tensor, " colours"],
        place: Int[Tensor, "channels height width"],
        chosen: Int[Tensor, " some"],
        generator: torch.Generator,
    ) -> None:
        """Add the gradient along new walks to that of the colours."""
        for part in chosen.split(_IMAGES_AT_A_TIME):
            (self._of(colours[place], part, generator) / len(chosen)).backward()

    def _of(self, values: Tensor, part: Int[Tensor, " part"], generator: torch.Generator) -> Float[Tensor, ""]:
        """Add up the losses of a few images: Σᵢ E|Δv| at an order is n times the mean over players."""
        players = len(self.evaluator.players)
        walks = draw_walks(len(part), players, self.orders, generator)
        fill = ab.OwnBaselines(values.expand(len(part), *values.shape)).bind(self.evaluator.x[part])
        along = self.evaluator.values(fill, walks, samples=part, gradient=values.requires_grad)
        self.evaluations += walks.shape[0] * walks.shape[1]
        return players * (along[:, 1:] - along[:, :-1]).abs().sum()


def draw_walks(
    samples: int, players: int, orders: float, generator: torch.Generator
) -> Bool[Tensor, "samples coalitions players"]:
    """Draw coalitions that grow by one player from the empty one up to size λ; two samples share each walk."""
    arrival = torch.rand(-(-samples // 2), players, generator=generator).argsort(-1).argsort(-1)
    walks = arrival[:, None, :] < torch.arange(count_orders(orders, players) + 1)[None, :, None]
    return walks.repeat_interleave(2, dim=0)[:samples]
