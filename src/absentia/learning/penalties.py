"""The paper's losses: penalties on the values of coalitions, and the samples and coalitions that they are taken on.

A penalty is a sum over the orders up to λ, averaged over samples:

- ``"shapley"``      Σ_{m<λ} Σᵢ |φᵢ⁽ᵐ⁾|, the paper's L_Shapley
- ``"marginal"``     Σ_{m<λ} Σᵢ E_{|S|=m} |v(S∪i) − v(S)|, the paper's L_marginal
- ``"interactions"`` Σ_{1≤|S|≤λ} |U(S)|, which the paper's two approximate [ren2023faithful, Eq. 5]

With few players all coalitions up to size λ are evaluated, and a penalty is exact. With many it is estimated: from
nested walks for marginal benefits; from sub-cubes for interactions (all coalitions C ∪ A, A ⊆ P, of a few players P
over a drawn context C: the game in which C is always present). Means of absolute values are estimated without bias.
|φᵢ⁽ᵐ⁾| is the absolute value of a mean, which noise makes too large: the same coalitions then serve all players, and
a quadratic fit removes most of the noise. Of vectors, such as features, absolute values are summed over components.

Baselines are compared on fixed samples and coalitions, part by part; gradients are taken on fresh ones. The loss is
the penalty and, with a small weight, two terms that decide between values which the penalty up to order λ cannot
tell apart: marginal benefits of all orders along walks, and detours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.coalitions import Coalitions, coalition_sizes, draw_coalitions, enumerate_coalitions, moebius
from absentia.data import blocks, seeded
from absentia.errors import wrong
from absentia.evaluation import Evaluator
from absentia.indices import order_marginals_of, order_shapley_of
from absentia.learning.processes import shared_values
from absentia.solvers.regression import share_out

Loss: TypeAlias = Literal["shapley", "marginal", "interactions"]
Baselines: TypeAlias = Float[Tensor, "owners entries"]
Owners: TypeAlias = Float[Tensor, " owners"]

FEW_COALITIONS = 2**8  # of a sample: all are evaluated, whatever the budget
LARGEST_TABLE = 2**16  # values that an exact penalty may lay out, however few of them are evaluated
SUBCUBE_PLAYERS = 6
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


class Plan(NamedTuple):
    """Coalitions to evaluate, the same for all samples or each sample's own, and the penalty on their values."""

    coalitions: Bool[Tensor, "*samples coalitions players"]
    measure: Callable[[Tensor], Tensor]  # values (samples, coalitions, features) → (samples,)

    def penalty(self, values: Float[Tensor, "samples coalitions *features"]) -> Float[Tensor, " samples"]:
        """Compute the penalty of each sample from the values of its coalitions."""
        return self.measure(values.unsqueeze(-1) if values.ndim == 2 else values)

    def of(self, rows: Tensor | slice | int) -> Plan:
        """Return the plan for some of the samples; or with the coalitions of one sample for all."""
        return self if self.coalitions.ndim == 2 else Plan(self.coalitions[rows], self.measure)


@dataclass(frozen=True)
class Penalty:
    """A loss up to order λ for a number of players."""

    loss: Loss
    players: int
    orders: int  # λ
    per_sample: int = 2**12  # the most coalitions of a sample that are all evaluated; of more, some are drawn
    cube: int | None = None  # players of a sub-cube, to measure interactions within sub-cubes in any case

    @property
    def exact(self) -> bool:
        """Whether all coalitions up to size λ are evaluated."""
        count = sum(math.comb(self.players, size) for size in range(self.orders + 1))
        fits = 2**self.players <= max(LARGEST_TABLE, self.per_sample)
        in_cubes = self.loss == "interactions" and self.cube is not None
        return fits and count <= max(FEW_COALITIONS, self.per_sample) and not in_cubes

    @property
    def scale(self) -> float:
        """The usual ratio to the marginal benefits of all players at all orders, by the number of terms."""
        if self.loss != "interactions":
            return 1.0
        return (1.0 if self.exact else self._inside / self.players) / self.players

    @property
    def _inside(self) -> int:
        return min(self.cube or SUBCUBE_PLAYERS, self.orders)  # players of a sub-cube

    def plan(self, samples: int, evaluations: int, generator: torch.Generator) -> Plan:
        """Choose the coalitions: all, or draws that cost each sample about this many ``evaluations``."""
        if self.exact:
            return self.exact_plan()
        if self.loss == "marginal":
            return self.walks(samples, max(1, evaluations // (self.orders + 1)), generator)
        if self.loss == "interactions":
            return self.subcubes(samples, evaluations, generator)
        coalitions, weights = order_shapley_weights(self.players, self.orders, evaluations, generator)
        return Plan(coalitions, lambda v: torch.einsum("oc,scf->sof", weights.to(v), v).abs().sum((1, 2)))

    def exact_plan(self) -> Plan:
        """Evaluate all coalitions up to size λ."""
        sizes = coalition_sizes(self.players)
        numbers, counted = (sizes <= self.orders).nonzero().flatten(), (sizes >= 1) & (sizes <= self.orders)

        def measure(values: Tensor) -> Tensor:
            # Coalitions above size λ stay 0: nothing that is read below depends on them.
            table = values.new_zeros(len(values), values.shape[2], 2**self.players)
            table = table.index_copy(-1, numbers.to(values.device), values.transpose(1, 2))
            if self.loss == "interactions":
                return moebius(table)[..., counted.to(values.device)].abs().sum((1, 2))
            by_order = order_shapley_of(table).abs() if self.loss == "shapley" else order_marginals_of(table)
            return by_order[..., : self.orders, :].sum((1, 2, 3))

        return Plan(enumerate_coalitions(self.players)[numbers], measure)

    def walks(self, samples: int, walks: int, generator: torch.Generator) -> Plan:
        """Draw walks for each sample: marginal benefits at all orders below λ, for any number of players."""
        pairs = -(-samples // 2)  # of samples with the same walks: in a balanced order their extremes cancel
        places = torch.rand(pairs * walks, self.players, generator=generator).argsort(-1).argsort(-1)
        coalitions = places[:, None] < torch.arange(self.orders + 1)[:, None]  # one player more at each step

        def measure(values: Tensor) -> Tensor:
            along = values.unflatten(1, (walks, self.orders + 1))
            # A walk meets one player at each order; Σᵢ E is n times the mean over players.
            return self.players * (along[:, :, 1:] - along[:, :, :-1]).abs().sum((2, 3)).mean(1)

        return Plan(coalitions.view(pairs, -1, self.players).repeat_interleave(2, dim=0)[:samples], measure)

    def detours(self) -> Plan:
        """Sum up how much longer the ways from ∅ to N become by a stop at N∖i.

        Σᵢ |v(N∖i) − v(∅)| + |v(N) − v(N∖i)| − |v(N) − v(∅)| is signal that only the stand-in of one player causes.
        The direct way does not count, because a sample may differ from its absence.
        """
        everyone = torch.ones(1, self.players, dtype=torch.bool)

        def measure(values: Tensor) -> Tensor:
            nothing, everything, stops = values[:, :1], values[:, 1:2], values[:, 2:]
            return ((stops - nothing).abs() + (everything - stops).abs() - (everything - nothing).abs()).sum((1, 2))

        return Plan(torch.cat([~everyone, everyone, ~torch.eye(self.players, dtype=torch.bool)]), measure)

    def subcubes(self, samples: int, evaluations: int, generator: torch.Generator) -> Plan:
        """Draw sub-cubes for each sample: games of a few players, over a context that is always present.

        The penalty is that of the interactions in a sub-cube, or of its order-wise Shapley values for other losses.
        """
        inside, pairs = self._inside, -(-samples // 2)
        cubes, corners = max(1, evaluations // 2**inside), enumerate_coalitions(inside)
        order = torch.rand(pairs * cubes, self.players, generator=generator).argsort(-1)
        chosen, others = order[:, :inside], order[:, inside:]
        # The context's size is uniform, from 0 to the largest that keeps coalitions within λ.
        size = torch.randint(0, self.orders - inside + 1, (pairs * cubes, 1), generator=generator)
        context = torch.zeros(pairs * cubes, self.players, dtype=torch.bool)
        context.scatter_(1, others, torch.arange(others.shape[1]) < size)
        coalitions = context[:, None].expand(-1, len(corners), -1).clone()
        coalitions.scatter_(2, chosen[:, None].expand(-1, len(corners), -1), corners.expand(len(chosen), -1, -1))

        def measure(values: Tensor) -> Tensor:
            table = values.unflatten(1, (cubes, len(corners))).transpose(2, 3).contiguous()
            if self.loss == "interactions":
                return moebius(table)[..., 1:].abs().sum((2, 3)).mean(1)
            return order_shapley_of(table).abs().sum((2, 3, 4)).mean(1)

        return Plan(coalitions.view(pairs, -1, self.players).repeat_interleave(2, dim=0)[:samples], measure)


def order_shapley_weights(
    players: int, orders: int, evaluations: int, generator: torch.Generator
) -> tuple[Coalitions, Float[Tensor, "estimates coalitions"]]:
    """Draw coalitions, and the weights W with which their values estimate all φᵢ⁽ᵐ⁾, m < λ: φ ≈ W v.

    A quadratic a + Σβᵢ + Σγᵢⱼ is fitted by ridge regression. Its order-wise values are βᵢ + m/(n−1)·Σⱼγᵢⱼ exactly.
    The differences of means, v̄ₘ₊₁(i) − v̄ₘ(−i), of the residuals are added. All of it is linear in v.
    """
    coalitions = _balanced_coalitions(players, orders, evaluations, generator)
    rows, order = coalitions.double(), torch.arange(orders)[:, None, None]
    first, second = torch.triu_indices(players, players, offset=1)
    design = torch.cat([torch.ones(len(rows), 1).double(), rows, rows[:, first] * rows[:, second]], dim=1)
    ridge = 1e-3 * len(rows) * torch.eye(design.shape[1]).double()
    ridge[0, 0] = 0.0
    fit = torch.linalg.solve(design.T @ design + ridge, design.T)
    in_pair = (torch.arange(players)[:, None, None] == torch.stack([first, second])).any(1)
    alone = torch.eye(players).expand(orders, -1, -1)
    read = torch.cat([torch.zeros(orders, players, 1), alone, order.double() / max(1, players - 1) * in_pair], dim=-1)
    sizes = coalitions.sum(1)
    having = coalitions.T & (sizes == order + 1)
    shares = [marked / marked.sum(-1, keepdim=True) for marked in (having, ~coalitions.T & (sizes == order))]
    means = (shares[0] - shares[1]).nan_to_num().double()  # 0 where one of them has no coalition
    residual = torch.eye(len(rows)).double() - design @ fit
    return coalitions, read.flatten(0, 1) @ fit + means.flatten(0, 1) @ residual


def _balanced_coalitions(players: int, orders: int, evaluations: int, generator: torch.Generator) -> Coalitions:
    """Take all coalitions of the sizes 0 … λ that are few, and equally many of each of the other sizes."""
    chosen: list[Tensor] = []
    sizes = sorted(range(orders + 1), key=lambda size: math.comb(players, size))
    for place, size in enumerate(sizes):
        share = max(2, (evaluations - sum(len(part) for part in chosen)) // (len(sizes) - place))
        if math.comb(players, size) <= share:
            members = torch.tensor(list(combinations(range(players), size)), dtype=torch.int64)
            chosen.append(torch.zeros(len(members), players, dtype=torch.bool).scatter(1, members, True))
        else:
            chosen.append(torch.unique(draw_coalitions(players, torch.full((share,), size), generator), dim=0))
    return torch.cat(chosen)


def count_orders(orders: float, players: int) -> int:
    """Return λ: a share of the players (a float up to 1.0) or a number of them."""
    if isinstance(orders, float) and 0 < orders <= 1:
        return max(1, math.ceil(orders * players))
    if orders != int(orders) or not 1 <= orders <= players:
        raise wrong("orders", f"be a share between 0 and 1, or a number from 1 to {players}", orders)
    return int(orders)


class Chosen(NamedTuple):
    """Samples that a loss is computed on, and their weights."""

    rows: Int[Tensor, " chosen"]
    weights: Float[Tensor, " chosen"]


def shares_of(outputs: Float[Tensor, "samples *features"]) -> Float[Tensor, " samples"]:
    """Return how often to draw each sample: half of the draws evenly, half by the output's distance to the median."""
    values = outputs.detach().double().cpu().reshape(len(outputs), -1)
    distance = (values - values.median(0).values).abs().sum(1)
    even, total = torch.full_like(distance, 1 / len(distance)), float(distance.sum())
    return (even + distance / total) / 2 if 0 < total < math.inf else even


def draw_samples(shares: Float[Tensor, " samples"], count: int, generator: torch.Generator) -> Chosen:
    """Draw ``count`` samples by their shares, none twice; weights keep means unbiased."""
    chance = share_out(min(count, int((shares > 0).sum())), shares, torch.ones_like(shares))
    shuffled = torch.randperm(len(shares), generator=generator)
    # One draw in every stretch of length 1 of the chances, laid end to end.
    reached = torch.cat([torch.zeros(1).double(), chance[shuffled].cumsum(0)]) + torch.rand(1, generator=generator)
    rows = shuffled[(reached[1:] + 1e-9).floor() > (reached[:-1] + 1e-9).floor()]
    weights = 1 / chance[rows]
    return Chosen(rows, weights / weights.mean())


def balanced_order(x: Shaped[Tensor, "samples *entries"], weights: Tensor, generator: torch.Generator) -> Tensor:
    """Order samples so that the first few have nearly the weighted mean of all, however many they are."""
    # Every other sample is drawn. The one after it is the one that brings the mean so far nearest to that of all.
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

    ``owner`` is the number of each sample's owner, or −1 for none. Comparisons take about ``rows`` evaluations.
    """

    rows_per_step = 0  # not told: a descent takes comparisons beside its steps

    def __init__(self, evaluator: Evaluator, penalty: Penalty, owner: Tensor, seed: int, rows: int) -> None:
        self.evaluator, self.penalty, self.owner, self.seed, self.rows = evaluator, penalty, owner, seed, rows
        self.settings = penalty  # what the loss depends on, beside the model and the samples
        self.record: dict[str, Any] = {"exact": penalty.exact, "orders": penalty.orders}
        self.mine = (owner >= 0).nonzero().flatten()  # samples
        self.owners, self.evaluations, samples = int(owner.max()) + 1, 0, len(self.mine)
        generator = seeded(seed, 0, 0)
        drawn = min(max(_LEAST_DRAWN[penalty.loss], rows // samples), _MOST_DRAWN[penalty.loss])
        count = max(8, rows // penalty.plan(1, drawn, generator).coalitions.shape[-2])
        self.shares = (owner >= 0).double() / samples
        if self.owners == 1:
            nothing, everyone = torch.zeros(1, evaluator.x[0].numel()), torch.ones(1, penalty.players).bool()
            self.shares[self.mine] = shares_of(self.values(nothing, self.mine, everyone)[:, 0])
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
            return Chosen(self.mine, torch.ones(len(self.mine)).double())
        rows, weights = draw_samples(self.shares, min(count, _MOST_COMPARED), generator)
        order = balanced_order(self.evaluator.x[rows], weights, generator)
        return Chosen(rows[order], weights[order])

    def _draw_walks(self, samples: int, generator: torch.Generator) -> Plan:
        return self.all_orders.walks(samples, max(1, self.many // samples), generator)

    def values(self, baseline: Baselines, rows: Int[Tensor, " some"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of some samples; keep the graph if the baseline requires a gradient."""
        x = self.evaluator.x[rows.to(self.evaluator.x.device)]
        fill = StandIns(x, baseline[self.owner[rows], None].unflatten(2, self.evaluator.players.shape).to(x))
        self.evaluations += len(rows) * coalitions.shape[-2]
        return shared_values(self.evaluator, fill, coalitions, rows, gradient=baseline.requires_grad)

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
        samples, generator = len(self.mine), seeded(self.seed, stream, step)
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
