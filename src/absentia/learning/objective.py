"""The loss of a baseline: the samples and coalitions that it is computed on, and its gradient.

Baselines are compared on fixed samples and coalitions, part by part; gradients are taken on fresh ones. The loss is
the penalty and, with a small weight, two terms that decide between values which the penalty up to order λ cannot
tell apart: marginal benefits of all orders along walks, and detours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.data import blocks, seeded
from absentia.evaluation import Evaluator
from absentia.learning.penalties import Loss, Penalty, Plan

Baselines: TypeAlias = Float[Tensor, "owners entries"]
Owners: TypeAlias = Float[Tensor, " owners"]

_ROWS_PER_BLOCK = 2**15  # of masked inputs, whose graph is held for a gradient
_STEP, _WALKS, _DETOURS = 4, 8, 4  # parts of the rows of a comparison that these take
# Rows for each sample if coalitions are drawn: in a step; in a comparison, the least and the most. Many samples with
# few draws each tell more than few samples with many, but noise makes |φ| too large.
_DRAWN_PER_STEP, _MOST_DRAWN = 512, {"shapley": 2048, "marginal": 1024, "interactions": 1024}
_LEAST_DRAWN: dict[Loss, int] = {"shapley": 1024, "marginal": 64, "interactions": 64}
_TIE_WEIGHT = 0.01  # of walks and detours, at the penalty's scale: rare patterns of high order show only there
# Shares of the samples that baselines are compared on in turn, if one baseline is learned for many samples.
PARTS, _FEWEST_FOR_PARTS = (1 / 16, 1 / 4, 1.0), 32
_MOST_COMPARED = 4096  # samples


class Chosen(NamedTuple):
    """Samples that a loss is computed on, and their weights."""

    rows: Int[Tensor, " chosen"]
    weights: Float[Tensor, " chosen"]


def shares_of(outputs: Float[Tensor, "samples *features"]) -> Float[Tensor, " samples"]:
    """Return how often to draw each sample: half of the draws evenly, half by the output's distance from the median.

    If a model returns the same on most samples, an even draw would miss most of those that tell baselines apart.

    >>> shares_of(torch.tensor([0.0, 0.0, 0.0, 4.0]))
    tensor([0.1250, 0.1250, 0.1250, 0.6250], dtype=torch.float64)
    """
    values = outputs.detach().double().cpu().reshape(len(outputs), -1)
    distance = (values - values.median(0).values).abs().sum(1)
    even, total = torch.full_like(distance, 1 / len(distance)), float(distance.sum())
    return (even + distance / total) / 2 if 0 < total < math.inf else even


def draw_samples(shares: Float[Tensor, " samples"], count: int, generator: torch.Generator) -> Chosen:
    """Draw ``count`` samples by their shares, none twice; weights keep means unbiased."""
    chance = _chances(shares, min(count, len(shares)))
    shuffled = torch.randperm(len(shares), generator=generator)
    # One draw in every stretch of length 1 of the chances, laid end to end.
    reached = torch.cat([torch.zeros(1).double(), chance[shuffled].cumsum(0)]) + torch.rand(1, generator=generator)
    rows = shuffled[(reached[1:] + 1e-9).floor() > (reached[:-1] + 1e-9).floor()]
    weights = 1 / chance[rows]
    return Chosen(rows, weights / weights.mean())


def _chances(shares: Tensor, count: int) -> Tensor:
    """Scale shares to chances of being drawn that add up to ``count``; none is above 1."""
    chance = (shares * count / shares.sum()).clamp_max(1.0)
    for _ in range(50):
        free, lacking = chance < 1, count - float(chance.sum())
        if lacking < 1e-9 or not bool(free.any()):
            break
        chance[free] = (chance[free] * (1 + lacking / float(chance[free].sum()))).clamp_max(1.0)
    return chance


def balanced_order(x: Shaped[Tensor, "samples *entries"], weights: Tensor, generator: torch.Generator) -> Tensor:
    """Order samples so that the first few have nearly the weighted mean of all, however many they are.

    Every other sample is drawn. The one after it is the one that brings the mean so far nearest to that of all.

    >>> rows = torch.tensor([[0.0], [1.0], [1.0], [0.0], [0.0], [1.0]])
    >>> balanced_order(rows, torch.ones(6).double(), torch.Generator().manual_seed(0))
    tensor([2, 3, 5, 0, 1, 4])
    """
    rows = torch.randperm(len(x), generator=generator)
    values, weight = x[rows].flatten(1).double().cpu(), weights[rows, None]
    values = values[:, :: 1 + values.shape[1] // 1024]
    values = values - (weight * values).sum(0) / weight.sum()
    values = weight * values / ((weight * values.square()).sum(0) / weight.sum()).sqrt().clamp_min(1e-9)
    total, lengths = torch.zeros_like(values[0]), values.square().sum(1)
    order = torch.empty_like(rows)
    for place in range(len(rows)):
        drawn = int((lengths < torch.inf).int().argmax())
        # ‖total + row‖² less what all rows have in common.
        chosen = int((lengths + 2 * values @ total).argmin()) if place % 2 else drawn
        order[place] = rows[chosen]
        total += values[chosen]
        lengths[chosen] = torch.inf
    return order


class Found(NamedTuple):
    """A baseline, its penalties, and its losses, which add the terms that decide ties."""

    baseline: Baselines
    penalties: Owners
    losses: Owners

    def or_better(self, other: Found | None) -> Found:
        """Return for each owner the other one, unless this one is better."""
        if other is None:
            return self
        better = self.losses < other.losses
        parts = (torch.where(better, mine, yours) for mine, yours in zip(self[1:], other[1:], strict=True))
        return Found(torch.where(better[:, None], self.baseline, other.baseline), *parts)


class Objective:
    """The mean penalty over the samples of each owner of a baseline: all samples, those of a class, or one sample.

    ``owner`` is the number of each sample's owner. Comparisons take about ``rows`` evaluations.
    """

    def __init__(self, evaluator: Evaluator, penalty: Penalty, owner: Tensor, seed: int, rows: int) -> None:
        self.evaluator, self.penalty, self.owner, self.seed, self.rows = evaluator, penalty, owner, seed, rows
        self.owners, self.evaluations, samples = int(owner.max()) + 1, 0, len(owner)
        generator = seeded(seed, 0, 0)
        drawn = min(max(_LEAST_DRAWN[penalty.loss], rows // samples), _MOST_DRAWN[penalty.loss])
        count = max(8, rows // penalty.plan(1, drawn, generator).coalitions.shape[-2])
        even = torch.full((samples,), 1 / samples).double()
        self.shares = shares_of(self.outputs()) if self.owners == 1 else even
        self.compared = self._choose(count, generator)
        self.plan = penalty.plan(len(self.compared.rows), drawn, generator)
        self.tie_weight = _TIE_WEIGHT * penalty.scale
        self.all_orders = Penalty("marginal", penalty.players, penalty.players)
        self.many = max(1, rows // _WALKS // (penalty.players + 1))  # walks
        self.walked = self._choose(self.many, generator)
        self.walks = self._draw_walks(len(self.walked.rows), generator)
        self.detoured = self._choose(max(1, rows // _DETOURS // (penalty.players + 2)), generator)
        self.detours = self.all_orders.detours()
        self.parts = PARTS if self.owners == 1 and len(self.compared.rows) >= _FEWEST_FOR_PARTS else (1.0,)

    def _choose(self, count: int, generator: torch.Generator) -> Chosen:
        """Choose samples to compare baselines on: all for several owners, else some in a balanced order."""
        if self.owners > 1:
            return Chosen(torch.arange(len(self.owner)), torch.ones(len(self.owner)).double())
        rows, weights = draw_samples(self.shares, min(count, _MOST_COMPARED), generator)
        order = balanced_order(self.evaluator.x[rows], weights, generator)
        return Chosen(rows[order], weights[order])

    def _draw_walks(self, samples: int, generator: torch.Generator) -> Plan:
        return self.all_orders.walks(samples, max(1, self.many // samples), generator)

    def outputs(self) -> Float[Tensor, "samples *features"]:
        """Evaluate the samples with all players present."""
        everyone, x = torch.ones(1, self.penalty.players, dtype=torch.bool), self.evaluator.x
        self.evaluations += len(x)
        return self.evaluator.values(StandIns(x, x[:, None]), everyone)[:, 0]

    def values(self, baseline: Baselines, rows: Int[Tensor, " some"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of some samples; keep the graph if the baseline requires a gradient."""
        x = self.evaluator.x[rows.to(self.evaluator.x.device)]
        stand_ins = baseline[self.owner[rows]].unflatten(1, self.evaluator.players.shape).to(x)
        self.evaluations += len(rows) * coalitions.shape[-2]
        fill = StandIns(x, stand_ins[:, None])
        return self.evaluator.values(fill, coalitions, samples=rows, gradient=baseline.requires_grad)

    def losses(self, baseline: Baselines, chosen: Chosen, plan: Plan) -> Owners:
        """Compute the mean penalty over each owner's samples, in blocks; add its gradient to ``baseline.grad``."""
        sums, totals = torch.zeros(2, len(baseline)).double()
        totals.index_add_(0, self.owner[chosen.rows], chosen.weights)
        totals[totals == 0] = 1.0
        for part in blocks(len(chosen.rows), max(1, _ROWS_PER_BLOCK // plan.coalitions.shape[-2])):
            rows, mine = chosen.rows[part], plan.of(part)
            penalties = mine.penalty(self.values(baseline, rows, mine.coalitions))
            weighted = penalties.double().cpu() * chosen.weights[part]
            if baseline.requires_grad:
                (weighted / totals[self.owner[rows]]).sum().backward()
            sums.index_add_(0, self.owner[rows], weighted.detach())
        return sums / totals

    def looks(self, baseline: Baselines) -> Iterator[Found]:
        """Compute penalties and losses on ever more of the compared samples; the last are on all of them."""
        penalties = self._running_mean(baseline, self.compared, self.plan)
        along_walks = self._running_mean(baseline, self.walked, self.walks)
        on_detours = self._running_mean(baseline, self.detoured, self.detours)
        for penalty, walks, detours in zip(penalties, along_walks, on_detours, strict=True):
            yield Found(baseline, penalty, penalty + self.tie_weight * (walks + detours))

    def _running_mean(self, baseline: Tensor, chosen: Chosen, plan: Plan) -> Iterator[Tensor]:
        """Compute the mean over the first part of the samples, then over ever more."""
        done, weight, mean = 0, 0.0, torch.zeros(len(baseline)).double()
        for share in self.parts:
            part = slice(done, max(1, round(share * len(chosen.rows))))
            if part.stop > done:
                some = Chosen(chosen.rows[part], chosen.weights[part])
                found, added = self.losses(baseline, some, plan.of(part)), float(some.weights.sum())
                done, weight = part.stop, weight + added
                mean = mean + (found - mean) * added / weight
            yield mean

    def gradient(self, baseline: Baselines, stream: int, step: int) -> tuple[Baselines, float]:
        """Compute the gradient of the loss on a fresh batch, and the loss; the same stream and step draw the same."""
        samples, generator = len(self.owner), seeded(self.seed, stream, step)
        per_sample = self.plan.coalitions.shape[-2] if self.penalty.exact else _DRAWN_PER_STEP
        batch = samples if self.owners > 1 else min(samples, max(4, self.rows // _STEP // per_sample))
        chosen = draw_samples(self.shares, batch, generator)
        plan = self.plan if self.penalty.exact else self.penalty.plan(batch, per_sample, generator)
        walks, slope, loss = self._draw_walks(batch, generator), torch.zeros_like(baseline), 0.0
        for weight, one in ((1.0, plan), (self.tie_weight, walks), (self.tie_weight, self.detours)):
            leaf = baseline.detach().clone().requires_grad_()
            loss += weight * float(self.losses(leaf, chosen, one).mean())
            if leaf.grad is not None:
                slope += weight * leaf.grad
        return slope, loss
