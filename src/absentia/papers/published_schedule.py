"""The paper's published schedule for L_Shapley, written out as it is described, to compare learning with.

Every player, every order, 100 contexts by coin flips, 1,000 samples, plain gradient descent in a box.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.absence import Baseline
from absentia.errors import wrong
from absentia.inference import Model
from absentia.learning.objective import Objective
from absentia.learning.penalties import Penalty, Plan, count_orders
from absentia.learning.samples import Chosen, collect
from absentia.learning.space import entry_bounds
from absentia.masked_model import MaskedModel

BOX = 0.3  # the paper's bounds: mean ± 0.3 standard deviations
ORDERS = 0.5  # the paper's λ, as a share of the players
PAPER_EPOCHS, PAPER_SAMPLES, PAPER_DRAWS = 1000, 1000, 100
PUBLISHED_BATCH = 50
# The paper does not print its learning rate: the best of these in a short trial is taken.
RATES = (0.003, 0.01, 0.03, 0.1)
TRIAL_SAMPLES, TRIAL_BATCH = 40, 4


@dataclass(frozen=True, eq=False)
class Published:
    """What the published schedule ended with, and what it cost: the mean loss of each epoch as it went."""

    baseline: Float[Tensor, " players"]
    evaluations: int
    seconds: float
    losses: tuple[float, ...]


def published_schedule(
    model: Model,
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
    """Minimise L_Shapley as the paper does: plain gradient descent on drawn contexts, projected on mean ± box · sd.

    For every player i and order m < λ, each sample draws ``draws`` contexts S anew; every other player is in S with
    probability m/n (so that |S| is m only nearly). φ̂ is the mean of v(S∪i) − v(S) over them, and the loss Σ|φ̂|. An
    epoch costs n·λ·draws·2 evaluations for each sample; a step is made after every ``batch`` of them.
    """
    if epochs < 1:
        raise wrong("epochs", "be at least 1", epochs)
    began = time.perf_counter()
    pool = collect(x, y, samples, seed)
    players = x.shape[1]
    orders = count_orders(ORDERS, players)
    game = MaskedModel(model, pool.x, pool.y, absence=Baseline(0.0))
    objective = Objective(game, Penalty("shapley", players, orders), torch.zeros(len(pool.x), dtype=torch.int64))
    low, high = entry_bounds(pool.data.double(), box)
    baseline = pool.data.double().mean(0).clamp(low, high)[None]
    generator = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for part in torch.randperm(len(pool.x), generator=generator).split(batch):
            contexts = bernoulli_contexts(len(part), players, orders, draws, generator)
            plan = Plan(contexts, lambda values: _drawn_shapley(values, players, orders, draws))
            loss, slope = objective.gradient(baseline, Chosen.evenly(part), plan)
            baseline = (baseline - rate * slope).clamp(low, high)
            total += float(loss) * len(part)
        losses.append(total / len(pool.x))
    return Published(baseline[0], objective.evaluations, time.perf_counter() - began, tuple(losses))


def bernoulli_contexts(
    samples: int, players: int, orders: int, draws: int, generator: torch.Generator
) -> Bool[Tensor, "samples coalitions players"]:
    """Draw S for every player and order, then S ∪ i: coalitions are (without or with i) × i × order × draws."""
    share = torch.arange(orders)[:, None, None] / players
    drawn = torch.rand(samples, players, orders, draws, players, generator=generator) < share
    own = torch.eye(players, dtype=torch.bool)[:, None, None]
    return torch.stack([drawn & ~own, drawn | own], dim=1).flatten(1, 4)


def _drawn_shapley(values: Tensor, players: int, orders: int, draws: int) -> Tensor:
    without, having = values.unflatten(1, (2, players, orders, draws)).unbind(1)
    return (having - without).mean(-1).abs().sum((1, 2))


def choose_rate(
    model: Model, x: Tensor, y: Tensor, seed: int, *, samples: int = TRIAL_SAMPLES, draws: int = PAPER_DRAWS
) -> float:
    """Take the rate that lowers the loss most in ten steps, judged on the same drawn contexts for all of them."""
    generator = torch.Generator().manual_seed(seed)
    pool = collect(x, y, samples, seed)
    players, orders = x.shape[1], count_orders(ORDERS, x.shape[1])
    game = MaskedModel(model, pool.x, pool.y, absence=Baseline(0.0))
    owner = torch.zeros(len(pool.x), dtype=torch.int64)
    objective = Objective(game, Penalty("shapley", players, orders), owner)
    contexts = bernoulli_contexts(len(pool.x), players, orders, draws, generator)
    plan = Plan(contexts, lambda values: _drawn_shapley(values, players, orders, draws))
    found = {}
    for rate in RATES:
        end = published_schedule(model, x, y, 1, rate, seed, samples=samples, draws=draws, batch=TRIAL_BATCH)
        found[rate] = float(objective.losses(end.baseline[None], Chosen.evenly(torch.arange(len(pool.x))), plan))
    return min(found, key=lambda rate: found[rate])
