"""Shapley values by random orders in which the players join [castro2009polynomial].

A player's Shapley value is the mean of what it adds when it joins, over all orders. An antithetic pair is an order
and its reverse, whose errors partly cancel [mitchell2022sampling].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.coalitions import Coalitions
from absentia.games import Game
from absentia.solvers.grouped_draws import ask_by_draws, games_by_draws
from absentia.solvers.moderated_variances import moderated
from absentia.solvers.process import ShapleyEstimate


@dataclass(frozen=True, eq=False)
class Walks:
    """What players add when they join in random orders, by groups of draws of a random absence."""

    antithetic: bool  # whether each order is followed by its reverse
    shares: Float[Tensor, " groups"]  # of the draws in each group
    ends_by_group: Float[Tensor, "samples groups 2"]  # the values of ∅ and of all players together
    benefits_by_group: Float[Tensor, "samples groups orders players"]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.ends_by_group)

    @property
    def coalitions_per_sample(self) -> int:
        """How many coalitions were evaluated for each sample."""
        orders, players = self.benefits_by_group.shape[2:]
        return 2 + orders * (players - 1)

    @property
    def empty(self) -> Float[Tensor, " samples"]:
        """The values of ∅."""
        return self.ends_by_group[:, :, 0] @ self.shares

    @property
    def full(self) -> Float[Tensor, " samples"]:
        """The values of all players together."""
        return self.ends_by_group[:, :, 1] @ self.shares


def evaluate_walks(
    game: Game, orders: int, antithetic: bool, generator: torch.Generator, earlier: Walks | None = None
) -> Walks:
    """Draw orders and evaluate the coalitions on their way, in addition to earlier ones, which ``orders`` counts."""
    players = len(game.names)
    earlier_orders = 0 if earlier is None else earlier.benefits_by_group.shape[2]
    drawn = _draw_orders(players, orders - earlier_orders, antithetic, generator)
    ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
    parts, shares = games_by_draws(game)
    values = ask_by_draws(game, parts, torch.cat([ends, _on_the_way(drawn)]))
    steps = values[:, :, 2:].unflatten(2, (len(drawn), players - 1))
    first = values[:, :, :1, None].expand(-1, -1, len(drawn), 1)
    last = values[:, :, 1:2, None].expand(-1, -1, len(drawn), 1)
    added = torch.cat([first, steps, last], dim=3).diff(dim=3)  # by the place of the player in the order
    places = drawn.argsort(1).expand_as(added)
    benefits = added.gather(3, places)
    if earlier is not None:
        benefits = torch.cat([earlier.benefits_by_group, benefits], dim=2)
    return Walks(antithetic, shares, values[:, :, :2], benefits)


def _draw_orders(
    players: int, count: int, antithetic: bool, generator: torch.Generator
) -> Int[Tensor, "orders players"]:
    """Draw random orders of the players, each followed by its reverse if they are antithetic."""
    if not antithetic:
        return torch.rand(count, players, generator=generator).argsort(1)
    forward = torch.rand(count // 2, players, generator=generator).argsort(1)
    return torch.stack([forward, forward.flip(1)], dim=1).flatten(0, 1)


def _on_the_way(orders: Int[Tensor, "orders players"]) -> Coalitions:
    """Return the coalitions of the first 1 … n − 1 players of each order."""
    players = orders.shape[1]
    places = torch.empty_like(orders).scatter_(1, orders, torch.arange(players).expand_as(orders))
    sizes = torch.arange(1, players)
    return (places[:, None, :] < sizes[:, None]).flatten(0, 1)


def permutation_shapley(walks: Walks) -> ShapleyEstimate:
    """Average what players add over the orders; errors come from how orders, or antithetic pairs, differ."""
    mean_benefits = torch.einsum("sgop,g->sop", walks.benefits_by_group, walks.shares)
    units = mean_benefits
    if walks.antithetic:
        units = mean_benefits.unflatten(1, (-1, 2)).mean(2)
    count = units.shape[1]
    variances = units.var(1)
    typical = variances.mean(1, keepdim=True)  # of all players, because rare large effects may not have been drawn
    errors = (moderated(variances, typical, count) / count).sqrt()
    by_group = None
    if len(walks.shares) > 1:
        by_group = walks.benefits_by_group.mean(2).transpose(0, 1)
    return ShapleyEstimate(units.mean(1), errors, by_group)
