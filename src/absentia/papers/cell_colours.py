"""Learning a colour for each cell of an image as the paper does it: the gradient of drawn marginal benefits, no more.

`learn_baseline` goes on to try other values of one coordinate at a time; for some 200 colours and a residual network
that would take hours. The loss is the paper's L_marginal up to order λ, along walks of drawn players over drawn
training images. |Δv| is the change of the log-odds of the image's class or, as the paper has it "to boost the
efficiency of learning", the L1 norm of the change of the penultimate layer's features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from absentia.absence import Baseline, OwnBaselines
from absentia.errors import wrong
from absentia.learning.penalties import Penalty, count_orders
from absentia.learning.search import cosine
from absentia.masked_model import MaskedModel
from absentia.players import Players
from absentia.readouts import Features, LogOdds, Readout

Value: TypeAlias = Literal["log-odds", "features"]

ORDERS = 0.2  # the paper's λ, as a share of the players
# Images whose graph is held at a time.
_IMAGES_AT_A_TIME = 8
# The losses before and after are those of so many images, the same for both.
_COMPARED = 64


@dataclass(frozen=True)
class Schedule:
    """How long to follow the gradient."""

    images: int  # drawn by the seed
    steps: int
    batch: int  # images in a step, each with a walk of its own
    value: Value = "log-odds"
    rate: float = 0.05  # of Adam, falling along a cosine
    orders: float = ORDERS  # λ, as a share of the players


@dataclass(frozen=True, eq=False)
class Colours:
    """A learned colour for each cell, and what learning it came to."""

    values: Float[Tensor, "channels height width"]
    before: float  # the loss of the mean colours that learning began with
    after: float
    evaluations: int


def penultimate(model: nn.Module) -> Features:
    """Read the features that the last layer of a sequential network takes in.

    >>> penultimate(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)))
    Features(layer='1')
    """
    if not isinstance(model, nn.Sequential) or len(model) < 2:
        raise wrong("model", "be an nn.Sequential of two layers or more", type(model).__name__)
    return Features(str(len(model) - 2))


def learn_colours(
    model: nn.Module,
    data: Float[Tensor, "rows channels height width"],
    labels: Int[Tensor, " rows"],
    players: Players,
    cells: Int[Tensor, "channels height width"],
    schedule: Schedule,
    seed: int = 0,
) -> Colours:
    """Learn a value between 0 and 1 for every label of ``cells``, from the mean of the data."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(data), generator=generator)[: schedule.images]
    images = data[rows]
    readout: Readout = penultimate(model) if schedule.value == "features" else LogOdds(labels[rows])
    game = MaskedModel(model, images, players=players, readout=readout, absence=Baseline(0.0))
    loss = _Loss(game, Penalty("marginal", len(players), count_orders(schedule.orders, len(players))))
    numbers, place = torch.unique(cells, return_inverse=True)
    colours = torch.zeros(len(numbers)).index_add_(0, place.flatten(), data.mean(0).flatten())
    colours = (colours / torch.bincount(place.flatten())).requires_grad_()
    fixed = torch.arange(min(_COMPARED, len(images)))
    before = loss.measure(colours.detach()[place], fixed, seed)
    adam = torch.optim.Adam([colours], lr=schedule.rate)
    for step in range(schedule.steps):
        adam.param_groups[0]["lr"] = cosine(step, schedule.steps, schedule.rate)
        adam.zero_grad()
        loss.slope(colours, place, torch.randint(len(images), (schedule.batch,), generator=generator), generator)
        adam.step()
        with torch.no_grad():
            colours.clamp_(0, 1)
    values = colours.detach()[place]
    return Colours(values, before, loss.measure(values, fixed, seed), loss.evaluations)


@dataclass
class _Loss:
    """The mean penalty over images, along one walk of each."""

    game: MaskedModel
    penalty: Penalty
    evaluations: int = 0

    def measure(self, values: Tensor, chosen: Int[Tensor, " images"], seed: int) -> float:
        """Compute the loss along walks drawn by the seed."""
        generator = torch.Generator().manual_seed(seed)
        parts = chosen.split(_IMAGES_AT_A_TIME)
        return sum(float(self._of(values, part, generator, gradient=False)) for part in parts) / len(chosen)

    def slope(
        self, colours: Tensor, place: Tensor, chosen: Int[Tensor, " images"], generator: torch.Generator
    ) -> None:
        """Add the gradient along fresh walks to that of the colours."""
        for part in chosen.split(_IMAGES_AT_A_TIME):
            (self._of(colours[place], part, generator, gradient=True) / len(chosen)).backward()

    def _of(
        self, values: Shaped[Tensor, "*entries"], part: Tensor, generator: torch.Generator, gradient: bool
    ) -> Tensor:
        plan = self.penalty.walks(len(part), 1, generator)
        game = self.game.part(part, OwnBaselines(values.expand(len(part), *values.shape)), gradient=gradient)
        self.evaluations += plan.coalitions.shape[0] * plan.coalitions.shape[1]
        return plan.penalty(game(plan.coalitions)).sum()
