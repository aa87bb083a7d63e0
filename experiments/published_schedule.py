"""The paper's published schedule for L_Shapley, to compare learning with.

It draws 100 contexts for every player and order, and takes steps of plain gradient descent. The box, contexts by coin
flips and 1,000 samples are those of the paper's released code. That takes one step of rate 0.01 for all samples; here
a step takes 50 samples, and the rate is the best of four on training rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

import absentia as ab

BOX = 0.3  # the bounds of the released code: mean ± 0.3 standard deviations
ORDERS = 0.5  # the paper's λ, as a share of the players
PAPER_EPOCHS = 1000
PAPER_SAMPLES = 1000
PAPER_DRAWS = 100
PUBLISHED_BATCH = 50
# The paper does not print its learning rate: the best of these in a short trial is taken.
RATES = (0.003, 0.01, 0.03, 0.1)
TRIAL_SAMPLES = 40
TRIAL_BATCH = 4
# The most rows of masked inputs for which a graph is kept at a time.
_ROWS_PER_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class Published:
    """The result of the published schedule, its cost, and the mean loss of each epoch."""

    baseline: Float[Tensor, " players"]
    evaluations: int
    seconds: float
    losses: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class DrawnShapley:
    """L_Shapley of samples, estimated from drawn contexts."""

    evaluator: ab.Evaluator
    orders: int  # λ
    draws: int

    def draw(self, samples: int, generator: torch.Generator) -> Bool[Tensor, "samples coalitions players"]:
        """Draw contexts for this many samples."""
        return bernoulli_contexts(samples, len(self.evaluator.players), self.orders, self.draws, generator)

    def loss(
        self,
        baseline: Float[Tensor, " players"],
        samples: Int[Tensor, " some"],
        coalitions: Bool[Tensor, "some coalitions players"],
    ) -> Float[Tensor, ""]:
        """Compute the mean loss of some samples, and add its gradient to that of ``baseline`` if it requires one."""
        size = max(1, _ROWS_PER_BLOCK // coalitions.shape[1])
        total = torch.zeros((), dtype=torch.float64)
        for rows, drawn in zip(samples.split(size), coalitions.split(size), strict=True):
            loss = self._losses(baseline, rows, drawn).double().sum() / len(samples)
            if baseline.requires_grad:
                loss.backward()
            total += loss.detach()
        return total

    def _losses(self, baseline: Tensor, rows: Tensor, coalitions: Tensor) -> Float[Tensor, " rows"]:
        """Compute Σ|φ̂| of each sample: the sum over players and orders of the absolute mean over draws."""
        fill = ab.OwnBaselines(baseline.expand(len(rows), -1)).bind(self.evaluator.x[rows])
        values = self.evaluator.values(fill, coalitions, samples=rows, gradient=baseline.requires_grad)
        without, having = values.unflatten(1, (2, -1, self.orders, self.draws)).unbind(1)
        return (having - without).mean(-1).abs().sum((1, 2))


def published_schedule(
    model: Callable[..., Any],
    x: Float[Tensor, "rows players"],
    y: Int[Tensor, " rows"],
    epochs: int,
    rate: float,
    seed: int,
    box: float = BOX,
    *,
    samples: int = PAPER_SAMPLES,
    draws: int = PAPER_DRAWS,
    batch: int = PUBLISHED_BATCH,
) -> Published:
    """Minimise L_Shapley as the paper does: gradient descent on drawn contexts, projected on mean ± box · sd.

    For every player i and order m < λ, each sample draws ``draws`` contexts S. Every other player is in S with
    probability m/n, so |S| is only m on average. φ̂ is the mean of v(S∪i) − v(S) over the draws, and the loss is
    Σ|φ̂|. An epoch costs n·λ·draws·2 evaluations for each sample. There is a step after every ``batch`` samples.
    """
    if epochs < 1:
        raise ab.AbsentiaError(f"epochs must be at least 1. Got {epochs} instead.")
    began = time.perf_counter()
    drawn = _drawn_shapley(model, x, y, samples, draws, seed)
    low, high = entry_box(x.double(), box)
    baseline = x.double().mean(0).clamp(low, high)
    generator = torch.Generator().manual_seed(seed)
    losses = []
    evaluations = 0
    for _ in range(epochs):
        total = 0.0
        for part in torch.randperm(drawn.evaluator.samples, generator=generator).split(batch):
            contexts = drawn.draw(len(part), generator)
            leaf = baseline.clone().requires_grad_()
            loss = drawn.loss(leaf, part, contexts)
            slope = torch.zeros_like(baseline) if leaf.grad is None else leaf.grad
            baseline = (baseline - rate * slope).clamp(low, high)
            total += float(loss) * len(part)
            evaluations += contexts.shape[0] * contexts.shape[1]
        losses.append(total / drawn.evaluator.samples)
    return Published(baseline, evaluations, time.perf_counter() - began, tuple(losses))


def choose_rate(
    model: Callable[..., Any],
    x: Float[Tensor, "rows players"],
    y: Int[Tensor, " rows"],
    seed: int,
    *,
    samples: int = TRIAL_SAMPLES,
    draws: int = PAPER_DRAWS,
) -> float:
    """Return the rate that lowers the loss most in ten steps, on the same drawn contexts for all rates."""
    drawn = _drawn_shapley(model, x, y, samples, draws, seed)
    everything = torch.arange(drawn.evaluator.samples)
    contexts = drawn.draw(len(everything), torch.Generator().manual_seed(seed))
    losses = {}
    for rate in RATES:
        end = published_schedule(model, x, y, 1, rate, seed, samples=samples, draws=draws, batch=TRIAL_BATCH)
        losses[rate] = float(drawn.loss(end.baseline, everything, contexts))
    return min(losses, key=lambda rate: losses[rate])


def bernoulli_contexts(
    samples: int, players: int, orders: int, draws: int, generator: torch.Generator
) -> Bool[Tensor, "samples coalitions players"]:
    """Draw S for every player and order, then S ∪ i: coalitions are (without or with i) × i × order × draws."""
    share = torch.arange(orders)[:, None, None] / players
    drawn = torch.rand(samples, players, orders, draws, players, generator=generator) < share
    is_player = torch.eye(players, dtype=torch.bool)[:, None, None]
    return torch.stack([drawn & ~is_player, drawn | is_player], dim=1).flatten(1, 4)


def count_orders(share: float, players: int) -> int:
    """Return λ for a share of the players.

    >>> count_orders(0.5, 12), count_orders(0.2, 49)
    (6, 10)
    """
    return max(1, math.ceil(share * players))


def entry_box(
    data: Float[Tensor, "rows players"], box: float
) -> tuple[Float[Tensor, " players"], Float[Tensor, " players"]]:
    """Return mean − box · sd and mean + box · sd of each column."""
    mean = data.mean(0)
    spread = box * data.std(0, correction=0)
    return mean - spread, mean + spread


def _drawn_shapley(
    model: Callable[..., Any], x: Tensor, y: Tensor, samples: int, draws: int, seed: int
) -> DrawnShapley:
    """Draw the samples, which are the same as those that `learn_baseline` draws by the same seed."""
    rows = torch.arange(len(x))
    if samples < len(x):
        rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:samples]
    return DrawnShapley(ab.Evaluator(ab.Task(model, x[rows], y[rows])), count_orders(ORDERS, x.shape[1]), draws)
