"""The paper's losses: penalties on the values of coalitions.

A penalty is a sum over the orders up to λ, averaged over samples:

- ``"shapley"``      Σ_{0≤m≤λ} Σᵢ |φᵢ⁽ᵐ⁾|, the paper's L_Shapley [ren2023faithful, Eq. 7]
- ``"marginal"``     Σ_{0≤m≤λ} Σᵢ E_{|S|=m} |v(S∪i) − v(S)|, the paper's L_marginal [ren2023faithful, Eq. 7]
- ``"interactions"`` Σ_{1≤|S|≤λ} |U(S)|, which the paper's two approximate [ren2023faithful, Eq. 5]

The order m of a marginal benefit is the size of its context S, so that its largest coalition has m + 1 players. The
highest order of n players is n − 1: λ = n and λ = n − 1 are the same two losses.

With few players, all coalitions up to that size are evaluated and the penalty is exact. With many players, it is
estimated: from nested walks for marginal benefits, and from sub-cubes for interactions. A sub-cube holds all
coalitions C ∪ A, A ⊆ P, of a few players P over a drawn context C. It is the game in which C is always present. These
means of absolute values are unbiased. |φᵢ⁽ᵐ⁾| is the absolute value of a mean, which noise makes too large. The same
coalitions are therefore used for all players, and a quadratic fit removes most of the noise. For vectors, such as
features, absolute values are summed over the components.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.coalitions import coalition_sizes, enumerate_coalitions, moebius
from absentia.data import count_blocks
from absentia.errors import wrong
from absentia.indices import order_marginals_of, order_shapley_of
from absentia.learning.order_fit import order_shapley_weights

PenaltyName: TypeAlias = Literal["shapley", "marginal", "interactions"]

# If a sample has at most this many coalitions, all of them are evaluated, whatever the budget.
FEW_COALITIONS = 2**8

# The maximum size of the table of an exact penalty, even if only a few of its values are evaluated.
LARGEST_TABLE = 2**16

# The players of a sub-cube unless the user chooses their number.
SUBCUBE_PLAYERS = 6


class Plan(NamedTuple):
    """Coalitions to evaluate, the same for all samples or each sample's own, and the penalty on their values."""

    coalitions: Bool[Tensor, "*samples coalitions players"]
    measure: Callable[[Tensor], Tensor]  # values (samples, coalitions, features) → (samples,)

    @property
    def rows_per_sample(self) -> int:
        """How many rows the model evaluates for each sample."""
        return self.coalitions.shape[-2]

    def penalty(self, values: Float[Tensor, "samples coalitions *features"]) -> Float[Tensor, " samples"]:
        """Compute the penalty of each sample from the values of its coalitions."""
        if values.ndim == 2:
            values = values.unsqueeze(-1)
        return self.measure(values)

    def of(self, samples: Tensor | slice | int) -> Plan:
        """Return the plan for a selection of samples, which may give the coalitions of one sample to all."""
        if self.coalitions.ndim == 2:
            return self
        return Plan(self.coalitions[samples], self.measure)


# A checkpoint's fingerprint contains the repr of this class. If names change, older files can no longer be resumed.
@dataclass(frozen=True)
class Penalty:
    """A loss up to order λ for a number of players."""

    loss: PenaltyName
    players: int
    orders: int  # λ
    per_sample: int = 2**12  # a sample with more coalitions than this has only some of them drawn
    cube: int | None = None  # players of a sub-cube, to measure interactions within sub-cubes in any case

    @property
    def largest(self) -> int:
        """The size of the largest coalition: λ players, or one more, which is added to a context of λ."""
        if self.loss == "interactions":
            return self.orders
        return min(self.orders + 1, self.players)

    @property
    def exact(self) -> bool:
        """Whether all coalitions up to the largest size are evaluated."""
        coalitions = sum(math.comb(self.players, size) for size in range(self.largest + 1))
        table_fits = 2**self.players <= max(LARGEST_TABLE, self.per_sample)
        affordable = coalitions <= max(FEW_COALITIONS, self.per_sample)
        within_cubes = self.loss == "interactions" and self.cube is not None
        return table_fits and affordable and not within_cubes

    @property
    def scale(self) -> float:
        """The typical ratio to the marginal benefits of all players at all orders, from the number of terms."""
        if self.loss != "interactions":
            return 1.0
        if self.exact:
            return 1.0 / self.players
        return self._cube_players / self.players / self.players

    @property
    def _cube_players(self) -> int:
        """The number of players that vary in a sub-cube."""
        return min(self.cube or SUBCUBE_PLAYERS, self.largest)

    def plan(self, samples: int, evaluations: int, generator: torch.Generator) -> Plan:
        """Choose the coalitions: all, or draws that cost each sample about this many ``evaluations``."""
        if self.exact:
            return self.exact_plan()
        if self.loss == "marginal":
            walks = max(1, evaluations // (self.largest + 1))
            return self.walks(samples, walks, generator)
        if self.loss == "interactions":
            return self.subcubes(samples, evaluations, generator)
        return self._fitted_plan(evaluations, generator)

    def _fitted_plan(self, evaluations: int, generator: torch.Generator) -> Plan:
        """Draw coalitions for all samples from whose values order-wise Shapley values are estimated by a fit."""
        coalitions, weights = order_shapley_weights(self.players, self.largest, evaluations, generator)

        def measure(values: Tensor) -> Tensor:
            return torch.einsum("oc,scf->sof", weights.to(values), values).abs().sum((1, 2))

        return Plan(coalitions, measure)

    def exact_plan(self) -> Plan:
        """Evaluate all coalitions up to the largest size."""
        sizes = coalition_sizes(self.players)
        numbers = (sizes <= self.largest).nonzero().flatten()
        counted = (sizes >= 1) & (sizes <= self.largest)

        def measure(values: Tensor) -> Tensor:
            # Larger coalitions stay 0: nothing that is read below depends on them.
            table = values.new_zeros(len(values), values.shape[2], 2**self.players)
            table = table.index_copy(-1, numbers.to(values.device), values.transpose(1, 2))
            if self.loss == "interactions":
                return moebius(table)[..., counted.to(values.device)].abs().sum((1, 2))
            if self.loss == "shapley":
                by_order = order_shapley_of(table).abs()
            else:
                by_order = order_marginals_of(table)
            return by_order[..., : self.largest, :].sum((1, 2, 3))

        return Plan(enumerate_coalitions(self.players)[numbers], measure)

    def walks(self, samples: int, walks: int, generator: torch.Generator) -> Plan:
        """Draw walks for each sample: marginal benefits at all orders up to λ, for any number of players."""
        pairs = _pairs_of(samples)
        places = torch.rand(pairs * walks, self.players, generator=generator).argsort(-1).argsort(-1)
        # Each step of a walk adds one player.
        coalitions = places[:, None] < torch.arange(self.largest + 1)[:, None]

        def measure(values: Tensor) -> Tensor:
            along = values.unflatten(1, (walks, self.largest + 1))
            benefits = along[:, :, 1:] - along[:, :, :-1]
            # A walk meets one player at each order; Σᵢ E is n times the mean over players.
            return self.players * benefits.abs().sum((2, 3)).mean(1)

        return Plan(self._repeat_for_pairs(coalitions, pairs, samples), measure)

    def detours(self) -> Plan:
        """Sum the extra length of the ways from ∅ to N that pass through N∖i.

        Σᵢ |v(N∖i) − v(∅)| + |v(N) − v(N∖i)| − |v(N) − v(∅)| is signal that is caused only by the stand-in of one
        player. The direct way is subtracted, because a sample may differ from its absence.
        """
        everyone = torch.ones(1, self.players, dtype=torch.bool)
        all_but_one = ~torch.eye(self.players, dtype=torch.bool)

        def measure(values: Tensor) -> Tensor:
            nothing = values[:, :1]
            everything = values[:, 1:2]
            stops = values[:, 2:]
            with_stop = (stops - nothing).abs() + (everything - stops).abs()
            direct = (everything - nothing).abs()
            return (with_stop - direct).sum((1, 2))

        return Plan(torch.cat([~everyone, everyone, all_but_one]), measure)

    def subcubes(self, samples: int, evaluations: int, generator: torch.Generator) -> Plan:
        """Draw sub-cubes for each sample: games of a few players, over a context that is always present.

        The penalty is that of the interactions in a sub-cube, or of its order-wise Shapley values for other losses.
        """
        inside = self._cube_players
        corners = 2**inside
        cubes = max(1, evaluations // corners)  # of each sample
        pairs = _pairs_of(samples)
        coalitions = self._draw_cubes(pairs * cubes, inside, generator)

        def measure(values: Tensor) -> Tensor:
            # (samples, cubes · corners, features) → (samples, cubes, features, corners)
            tables = values.unflatten(1, (cubes, corners)).transpose(2, 3).contiguous()
            if self.loss == "interactions":
                effects = moebius(tables)[..., 1:]  # without that of ∅
                return effects.abs().sum((2, 3)).mean(1)
            return order_shapley_of(tables).abs().sum((2, 3, 4)).mean(1)

        return Plan(self._repeat_for_pairs(coalitions, pairs, samples), measure)

    def _draw_cubes(
        self, cubes: int, inside: int, generator: torch.Generator
    ) -> Bool[Tensor, "cubes corners players"]:
        """Draw the players of each cube and its context, and return the coalitions of its corners."""
        shuffled = torch.rand(cubes, self.players, generator=generator).argsort(-1)  # (cubes, players)
        members = shuffled[:, :inside]  # (cubes, inside): the players that vary
        others = shuffled[:, inside:]  # (cubes, others)
        # The context's size is uniform, from 0 to the most that keeps coalitions within the largest size.
        context_size = torch.randint(0, self.largest - inside + 1, (cubes, 1), generator=generator)
        in_context = torch.arange(others.shape[1]) < context_size  # (cubes, others)
        context = torch.zeros(cubes, self.players, dtype=torch.bool).scatter_(1, others, in_context)
        corners = enumerate_coalitions(inside)  # (corners, inside)
        coalitions = context[:, None].expand(-1, len(corners), -1).clone()  # (cubes, corners, players)
        members_of_corners = members[:, None].expand(-1, len(corners), -1)  # (cubes, corners, inside)
        return coalitions.scatter_(2, members_of_corners, corners.expand(cubes, -1, -1))

    def _repeat_for_pairs(self, coalitions: Tensor, pairs: int, samples: int) -> Tensor:
        """Give both samples of a pair the same coalitions."""
        return coalitions.view(pairs, -1, self.players).repeat_interleave(2, dim=0)[:samples]


def _pairs_of(samples: int) -> int:
    """Return the number of pairs of samples with shared coalitions, whose extremes cancel in a balanced order."""
    return count_blocks(samples, 2)


def count_orders(orders: float, players: int) -> int:
    """Return λ: a share of the players (a float up to 1.0) or a number of them."""
    if isinstance(orders, float) and 0 < orders <= 1:
        return max(1, math.ceil(orders * players))
    if orders != int(orders) or not 1 <= orders <= players:
        raise wrong("orders", f"be a share between 0 and 1, or a number from 1 to {players}", orders)
    return int(orders)
