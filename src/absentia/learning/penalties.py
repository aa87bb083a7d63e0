"""Penalties: functions of the values of coalitions that a good baseline makes small.

Each is a sum over the orders up to λ, averaged over samples:

- ``"shapley"``      Σ_{m<λ} Σᵢ |φᵢ⁽ᵐ⁾|, the paper's L_Shapley
- ``"marginal"``     Σ_{m<λ} Σᵢ E_{|S|=m} |v(S∪i) − v(S)|, the paper's L_marginal
- ``"interactions"`` Σ_{1≤|S|≤λ} |U(S)|, which the paper's two approximate [ren2023faithful, Eq. 5]

With few players all coalitions up to size λ are evaluated, and a penalty is exact. With many it is estimated: from
nested walks for marginal benefits; from sub-cubes for interactions (all coalitions C ∪ A, A ⊆ P, of a few players P
over a drawn context C: the game in which C is always present). Means of absolute values are estimated without bias.
|φᵢ⁽ᵐ⁾| is the absolute value of a mean, which noise makes too large: the same coalitions then serve all players, and
a quadratic fit removes most of the noise. Of vectors, such as features, absolute values are summed over components.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.attributions import order_marginals_of, order_shapley_of
from absentia.coalitions import coalition_sizes, draw_coalitions, draw_walks, enumerate_coalitions, moebius
from absentia.errors import wrong

Loss: TypeAlias = Literal["shapley", "marginal", "interactions"]

FEW_COALITIONS = 2**8  # of a sample: all are evaluated, whatever the budget
LARGEST_TABLE = 2**16  # values that an exact penalty may lay out, however few of them are evaluated
SUBCUBE_PLAYERS = 6


@dataclass(frozen=True)
class Plan:
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
        pairs = -(-samples // 2)
        _, coalitions = draw_walks(self.players, self.orders, pairs * walks, generator)

        def measure(values: Tensor) -> Tensor:
            along = values.unflatten(1, (walks, self.orders + 1))
            # A walk meets one player at each order; Σᵢ E is n times the mean over players.
            return self.players * (along[:, :, 1:] - along[:, :, :-1]).abs().sum((2, 3)).mean(1)

        return Plan(_for_pairs(coalitions.view(pairs, -1, self.players), samples), measure)

    def detours(self) -> Plan:
        """Sum up how much longer the ways from ∅ to N become by a stop at N∖i.

        Σᵢ |v(N∖i) − v(∅)| + |v(N) − v(N∖i)| − |v(N) − v(∅)| is signal that only the stand-in of one player causes.
        The direct way does not count, because a sample may differ from its absence.
        """
        everyone = torch.ones(1, self.players, dtype=torch.bool)

        def measure(values: Tensor) -> Tensor:
            nothing, everything, stops = values[:, :1], values[:, 1:2], values[:, 2:]
            direct = (everything - nothing).abs()
            return ((stops - nothing).abs() + (everything - stops).abs() - direct).sum((1, 2))

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

        return Plan(_for_pairs(coalitions.view(pairs, -1, self.players), samples), measure)


def _for_pairs(coalitions: Bool[Tensor, "pairs coalitions players"], samples: int) -> Tensor:
    """Repeat coalitions for a sample and the next: in a balanced order their extremes cancel."""
    return coalitions.repeat_interleave(2, dim=0)[:samples]


def order_shapley_weights(
    players: int, orders: int, evaluations: int, generator: torch.Generator
) -> tuple[Bool[Tensor, "coalitions players"], Float[Tensor, "estimates coalitions"]]:
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
    lacking = ~coalitions.T & (sizes == order)
    counts = [marked.sum(-1, keepdim=True) for marked in (having, lacking)]
    both = (counts[0] > 0) & (counts[1] > 0)
    means = both * (having / counts[0].clamp_min(1) - lacking / counts[1].clamp_min(1)).double()
    residual = torch.eye(len(rows)).double() - design @ fit
    return coalitions, read.flatten(0, 1) @ fit + means.flatten(0, 1) @ residual


def _balanced_coalitions(
    players: int, orders: int, evaluations: int, generator: torch.Generator
) -> Bool[Tensor, "coalitions players"]:
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
