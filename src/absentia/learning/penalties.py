"""Penalties: what a good baseline makes small, measured on values of coalitions.

Each is a sum over the orders up to λ, averaged over samples:

- ``"shapley"``      Σ_{m<λ} Σᵢ |φᵢ⁽ᵐ⁾|, the paper's L_Shapley
- ``"marginal"``     Σ_{m<λ} Σᵢ E_{|S|=m} |v(S∪i) − v(S)|, the paper's L_marginal
- ``"interactions"`` Σ_{1≤|S|≤λ} |U(S)|, the quantity that the paper's two stand in for [ren2023faithful, Eq. 5]

With few players all coalitions up to size λ are evaluated, and a penalty is exact. With many, it is estimated from
drawn coalitions: nested walks for marginal benefits; sub-cubes for interactions (all coalitions C ∪ A, A ⊆ P, of a
few players P over a drawn context C: their effects are those of the game in which C is always present). Both are
averages of absolute values, so that no draw is biased. |φᵢ⁽ᵐ⁾| is the absolute value of an average, and a noisy
estimate of φ makes it too large: the same coalitions then serve all players, and a quadratic fit takes up most of the
noise.

Values may be vectors (the features of a layer): absolute values are then summed over their components.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.attributions import order_marginals_of, order_shapley_of
from absentia.coalitions import coalition_sizes, draw_coalitions, draw_walks, enumerate_coalitions, moebius
from absentia.errors import wrong

Loss: TypeAlias = Literal["shapley", "marginal", "interactions"]

# So many coalitions of a sample are all evaluated in any case.
FEW_COALITIONS = 2**8
SUBCUBE_PLAYERS = 6


@dataclass(frozen=True)
class Plan:
    """Coalitions to evaluate, the same for all samples or of each sample's own, and the penalty on their values."""

    coalitions: Bool[Tensor, "*samples coalitions players"]
    penalty: Callable[[Tensor], Tensor]  # values (samples, coalitions[, features]) → (samples,)

    def of(self, rows: Tensor) -> Plan:
        """Keep the coalitions of some samples."""
        return self if self.coalitions.ndim == 2 else Plan(self.coalitions[rows], self.penalty)


@dataclass(frozen=True)
class Penalty:
    """A loss up to order λ over some number of players."""

    loss: Loss
    players: int
    orders: int  # λ
    per_sample: int = 2**12  # the most coalitions of a sample that are all evaluated; of more, some are drawn
    cube: int | None = None  # the players of a sub-cube, where interactions are to be measured in sub-cubes anyway

    @property
    def exact(self) -> bool:
        """Whether all coalitions up to size λ are few enough to evaluate, and wanted."""
        if self.loss == "interactions" and self.cube is not None:
            return False
        count = sum(math.comb(self.players, size) for size in range(self.orders + 1))
        return count <= max(FEW_COALITIONS, self.per_sample)

    @property
    def scale(self) -> float:
        """How large it is beside the marginal benefits of all players at all orders, by the number of its terms."""
        if self.loss != "interactions":
            return 1.0
        return (1.0 if self.exact else self._inside / self.players) / self.players

    @property
    def _inside(self) -> int:
        """How many players a sub-cube has."""
        return min(self.cube or SUBCUBE_PLAYERS, self.orders)

    def plan(self, samples: int, evaluations: int, generator: torch.Generator) -> Plan:
        """Choose the coalitions: all, or draws that cost each sample about this many ``evaluations``."""
        if self.exact:
            return self.exact_plan()
        if self.loss == "marginal":
            return self.walks(samples, max(1, evaluations // (self.orders + 1)), generator)
        if self.loss == "interactions":
            return self.subcubes(samples, evaluations, generator)
        return self._fitted(evaluations, generator)

    def exact_plan(self) -> Plan:
        """Evaluate all coalitions up to size λ, however many."""
        sizes = coalition_sizes(self.players)
        numbers = (sizes <= self.orders).nonzero().flatten()
        counted = (sizes >= 1) & (sizes <= self.orders)

        def penalty(values: Tensor) -> Tensor:
            vectors = values.unsqueeze(-1) if values.ndim == 2 else values
            # Coalitions above size λ stay 0: nothing that is read below depends on them.
            table = vectors.new_zeros(len(vectors), vectors.shape[2], 2**self.players)
            table = table.index_copy(-1, numbers.to(values.device), vectors.transpose(1, 2))
            if self.loss == "interactions":
                return moebius(table)[..., counted.to(values.device)].abs().sum((1, 2))
            if self.loss == "shapley":
                return order_shapley_of(table)[..., : self.orders, :].abs().sum((1, 2, 3))
            return order_marginals_of(table)[..., : self.orders, :].sum((1, 2, 3))

        return Plan(enumerate_coalitions(self.players)[numbers], penalty)

    def walks(self, samples: int, walks: int, generator: torch.Generator) -> Plan:
        """Draw walks for each sample: marginal benefits at all orders below λ, whatever the number of players."""
        pairs = -(-samples // 2)
        _, coalitions = draw_walks(self.players, self.orders, pairs * walks, generator)

        def penalty(values: Tensor) -> Tensor:
            along = values.unflatten(1, (walks, self.orders + 1))
            benefits = (along[:, :, 1:] - along[:, :, :-1]).abs().flatten(3 if values.ndim == 3 else 2)
            benefits = benefits.sum(-1) if values.ndim == 3 else benefits
            # A walk meets one player at each order; Σᵢ E is n times the mean over players.
            return self.players * benefits.sum(2).mean(1)

        return Plan(_for_pairs(coalitions.view(pairs, walks * (self.orders + 1), self.players), samples), penalty)

    def detours(self) -> Plan:
        """Go from nothing to all players with a stop at all but one of them, and count by how much that is longer.

        Σᵢ |v(N∖i) − v(∅)| + |v(N) − v(N∖i)| − |v(N) − v(∅)| is signal that the stand-in of one player alone brings
        about. The straight way itself is no fault of a baseline: a sample may differ from its absence.
        """
        everyone = torch.ones(1, self.players, dtype=torch.bool)
        coalitions = torch.cat([~everyone, everyone, ~torch.eye(self.players, dtype=torch.bool)])

        def penalty(values: Tensor) -> Tensor:
            vectors = values.unsqueeze(-1) if values.ndim == 2 else values
            nothing, everything, stops = vectors[:, :1], vectors[:, 1:2], vectors[:, 2:]
            straight = (everything - nothing).abs()
            return ((stops - nothing).abs() + (everything - stops).abs() - straight).sum((1, 2))

        return Plan(coalitions, penalty)

    def subcubes(self, samples: int, evaluations: int, generator: torch.Generator) -> Plan:
        """Draw sub-cubes for each sample: the game of a few players, over a context that is always present.

        Within it, the penalty is that of its interactions, or of its order-wise Shapley values for other losses.
        """
        inside = self._inside
        cubes = max(1, evaluations // 2**inside)
        pairs = -(-samples // 2)
        order = torch.rand(pairs * cubes, self.players, generator=generator).argsort(-1)
        chosen, others = order[:, :inside], order[:, inside:]
        # The context's size is uniform, ∅ included, and leaves room for the cube's players below λ.
        most = min(self.orders, self.players) - inside
        size = torch.randint(0, most + 1, (pairs * cubes, 1), generator=generator)
        context = torch.zeros(pairs * cubes, self.players, dtype=torch.bool)
        context.scatter_(1, others, torch.arange(others.shape[1]) < size)
        corners = enumerate_coalitions(inside)
        coalitions = context[:, None].expand(-1, len(corners), -1).clone()
        coalitions.scatter_(2, chosen[:, None].expand(-1, len(corners), -1), corners.expand(len(chosen), -1, -1))

        def penalty(values: Tensor) -> Tensor:
            vectors = values.unsqueeze(-1) if values.ndim == 2 else values
            table = vectors.unflatten(1, (cubes, len(corners))).transpose(2, 3)
            if self.loss == "interactions":
                return moebius(table.contiguous())[..., 1:].abs().sum((2, 3)).mean(1)
            return order_shapley_of(table.contiguous()).abs().sum((2, 3, 4)).mean(1)

        return Plan(_for_pairs(coalitions.view(pairs, cubes * len(corners), self.players), samples), penalty)

    def _fitted(self, evaluations: int, generator: torch.Generator) -> Plan:
        coalitions, weights = order_shapley_weights(self.players, self.orders, evaluations, generator)

        def penalty(values: Tensor) -> Tensor:
            vectors = values.unsqueeze(-1) if values.ndim == 2 else values
            phi = torch.einsum("oc,scf->sof", weights.to(values), vectors)
            return phi.abs().sum((1, 2))

        return Plan(coalitions, penalty)


def _for_pairs(coalitions: Bool[Tensor, "pairs coalitions players"], samples: int) -> Tensor:
    """Give a sample and the next the same coalitions: in a balanced order they make up for each other's extremes."""
    return coalitions.repeat_interleave(2, dim=0)[:samples]


def order_shapley_weights(
    players: int, orders: int, evaluations: int, generator: torch.Generator
) -> tuple[Bool[Tensor, "coalitions players"], Float[Tensor, "estimates coalitions"]]:
    """Draw coalitions, and the weights W with which their values estimate all φᵢ⁽ᵐ⁾, m < λ: φ ≈ W v.

    A quadratic a + Σβᵢ + Σγᵢⱼ is fitted by ridge regression; its order-wise values are βᵢ + m/(n−1)·Σⱼγᵢⱼ exactly;
    and the differences of means, v̄ₘ₊₁(i) − v̄ₘ(−i), are estimated from what the fit leaves over. All of it is linear.
    """
    coalitions = _balanced_coalitions(players, orders, evaluations, generator)
    rows = coalitions.double()
    first, second = torch.triu_indices(players, players, offset=1)
    design = torch.cat([torch.ones(len(rows), 1).double(), rows, rows[:, first] * rows[:, second]], dim=1)
    ridge = 1e-3 * len(rows) * torch.eye(design.shape[1]).double()
    ridge[0, 0] = 0.0
    fit = torch.linalg.solve(design.T @ design + ridge, design.T)
    read = torch.zeros(orders, players, design.shape[1]).double()
    means = torch.zeros(orders, players, len(rows)).double()
    sizes = rows.sum(1)
    for player in range(players):
        pairs = 1 + players + ((first == player) | (second == player)).nonzero().flatten()
        for order in range(orders):
            read[order, player, 1 + player] = 1.0
            read[order, player, pairs] = order / max(1, players - 1)
            having = coalitions[:, player] & (sizes == order + 1)
            lacking = ~coalitions[:, player] & (sizes == order)
            if having.any() and lacking.any():
                means[order, player, having] += 1 / having.sum()
                means[order, player, lacking] -= 1 / lacking.sum()
    leftover = torch.eye(len(rows)).double() - design @ fit
    weights = read.flatten(0, 1) @ fit + means.flatten(0, 1) @ leftover
    return coalitions, weights


def _balanced_coalitions(
    players: int, orders: int, evaluations: int, generator: torch.Generator
) -> Bool[Tensor, "coalitions players"]:
    """Take all coalitions of the sizes 0 … λ that are few, and equally many of each of the others."""
    chosen: list[Tensor] = []
    sizes = sorted(range(orders + 1), key=lambda size: math.comb(players, size))
    for place, size in enumerate(sizes):
        share = max(2, (evaluations - sum(len(part) for part in chosen)) // (len(sizes) - place))
        if math.comb(players, size) <= share:
            members = torch.combinations(torch.arange(players), size) if size else torch.zeros(1, 0).long()
            chosen.append(torch.zeros(len(members), players, dtype=torch.bool).scatter(1, members, True))
        else:
            drawn = draw_coalitions(players, torch.full((share,), size), generator)
            chosen.append(torch.unique(drawn, dim=0))
    return torch.cat(chosen)


def count_orders(orders: float, players: int) -> int:
    """Turn ``orders`` into λ: a share of the players (0 < orders < 1, or 1.0) or a number of them."""
    if isinstance(orders, float) and 0 < orders <= 1:
        return max(1, math.ceil(orders * players))
    if orders != int(orders) or not 1 <= orders <= players:
        raise wrong("orders", f"be a share between 0 and 1, or a number from 1 to {players}", orders)
    return int(orders)
