"""Order-wise Shapley values of drawn coalitions, and order-wise strengths of what players add, from nested walks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.attributions import OrderAttribution
from absentia.coalitions import Coalitions
from absentia.cube.kernels import CubeKernel
from absentia.cube.set_functionals import SetWeights, all_sets, noise_matters
from absentia.data import seeded
from absentia.errors import wrong
from absentia.games import Game, RowMeter, draws_of, readout_of
from absentia.runtime.progress import progress
from absentia.solvers.fitted_parts import FittedGame, SetEstimates
from absentia.solvers.grouped_draws import ask_by_draws, games_by_draws
from absentia.solvers.moderated_variances import moderated
from absentia.solvers.paired_draws import PairedValues
from absentia.walsh import walsh_shares_by_context

# Errors of this many numbers are quick to compute; with more players, some orders are left out by default.
_MOST_NUMBERS = 8192
# Walks are drawn in rounds, in which each player joins once at each place. Errors need two.
_LEAST_ROUNDS = 2
# Strengths below this share of the player's usual one are rounding errors.
_ROUNDING = 1e-6


def order_weights(players: int, orders: Sequence[int], most_added: int) -> SetWeights:
    """Return the weights of Walsh terms in what a player adds to coalitions of m others, for each order m.

    Examples
    --------
    >>> order_weights(3, [0, 2], most_added=2).of_terms
    tensor([[ 2., -2.,  2.],
            [ 2.,  2.,  2.]], dtype=torch.float64)
    """
    sizes = torch.arange(1, min(most_added + 1, players) + 1)
    of_terms = walsh_shares_by_context(sizes, players)[list(orders)]
    of_contexts = torch.zeros(len(orders), players, dtype=torch.float64)
    matters = noise_matters(players, 1)
    for number, order in enumerate(orders):
        if matters[order]:
            of_contexts[number, order] = 1 / math.comb(players - 1, order)
    return SetWeights(of_terms, of_contexts)


def orders_shown(players: int) -> tuple[int, ...]:
    """Return the orders of results by default: all of them, or with many players some, evenly spaced.

    Examples
    --------
    >>> orders_shown(4), len(orders_shown(200))
    ((0, 1, 2, 3), 40)
    """
    count = max(2, _MOST_NUMBERS // players)
    if count >= players:
        return tuple(range(players))
    return tuple(torch.linspace(0, players - 1, count, dtype=torch.float64).round().long().tolist())


def order_shapley_of_pairs(
    values: PairedValues,
    game: Game,
    seed: int,
    orders: Sequence[int] | None = None,
    rows_seen: int | None = None,
    kernels: Sequence[tuple[CubeKernel, ...]] | None = None,
    means: Float[Tensor, "samples players"] | None = None,
) -> OrderAttribution:
    """Estimate order-wise Shapley values from the values of drawn coalitions, with standard errors.

    ``kernels`` are those of both parts of each sample, if they are fitted already. ``means`` are Shapley values.
    Their mean over all orders is the Shapley value that the same process gives.
    """
    players = len(game.names)
    every = tuple(range(players))
    chosen = orders_shown(players) if orders is None else tuple(orders)
    estimates_by_sample = []
    with progress(values.samples, "order-wise values", "sample") as bar:
        for sample in range(values.samples):
            own = None if kernels is None else kernels[sample]
            fitted = FittedGame.of_sample(values, sample, seed, kernels=own)
            estimates = fitted.estimates(all_sets(players, 1), partial(order_weights, players, chosen))
            if chosen == every:
                estimates = _with_means(estimates, fitted.shapley if means is None else means[sample])
            estimates_by_sample.append(estimates)
            bar.update()
    notes = [f"Estimated by a Gaussian process from {values.coalitions_per_sample:,} coalitions of each sample."]
    if orders is None and chosen != every:
        notes.append(f"{len(chosen)} of {players} orders are given. Pass orders=… for others.")
    by_order = torch.stack([estimates.values for estimates in estimates_by_sample])
    return OrderAttribution(
        by_order * (by_order.abs() > values.rounding[:, None, None]),
        values.samples * values.coalitions_per_sample * draws_of(game),
        game.names,
        "sampled order-wise Shapley values",
        readout_of(game),
        chosen,
        rows_seen=rows_seen,
        standard_errors=torch.stack([estimates.errors for estimates in estimates_by_sample]),
        notes=tuple(notes),
    )


def _with_means(estimates: SetEstimates, means: Float[Tensor, " players"]) -> SetEstimates:
    """Spread what the orders' means miss of known ones over the orders, in proportion to their variances.

    Known means add up to v(N) − v(∅), and may come from a regression.
    """
    variances = estimates.errors.square()
    shares = variances / variances.sum(0).clamp_min(torch.finfo(variances.dtype).tiny)
    shares = torch.where(variances.sum(0) > 0, shares, 1 / len(variances))
    missing = len(variances) * (means - estimates.values.mean(0))
    return SetEstimates(estimates.values + shares * missing, estimates.errors)


def sample_order_marginals(game: Game, orders: Sequence[int] | None, evaluations: int, seed: int) -> OrderAttribution:
    """Estimate the mean of |v(S∪i) − v(S)| by order from separately drawn walks."""
    players = len(game.names)
    chosen = tuple(range(players)) if orders is None else tuple(orders)
    plan = WalkPlan(players, tuple(sorted(set(chosen))))
    draws = draws_of(game)
    least = (_LEAST_ROUNDS * plan.coalitions_per_round + 2) * draws
    if evaluations < least:
        then = "" if len(plan.orders) == 1 else "Pass fewer orders, which need fewer evaluations."
        must = f"be at least {least} for {len(plan.orders)} orders of {players} players"
        raise wrong("evaluations", must, evaluations, then)
    rounds = (evaluations // draws - 2) // max(1, plan.coalitions_per_round)
    if plan.coalitions_per_round == 0:  # a single player adds the same to ∅ in each round
        rounds = _LEAST_ROUNDS
    meter = RowMeter.start(game)
    benefits = plan.evaluate(game, rounds, seed)
    estimates = benefits.strengths(plan.are_known)
    places = [plan.orders.index(order) for order in chosen]
    notes = [f"Estimated from {rounds * players:,} random orders of the players."]
    if len(benefits.shares) > 1:
        notes.append("Standard errors include the variance of the draws of the absence.")
    return OrderAttribution(
        estimates.values[:, places],
        game.samples * (rounds * plan.coalitions_per_round + 2) * draws,
        game.names,
        "sampled order-wise strengths of benefits",
        readout_of(game),
        chosen,
        rows_seen=meter.rows_seen,
        standard_errors=estimates.errors[:, places],
        notes=tuple(notes),
    )


class Strengths(NamedTuple):
    """Estimated strengths of each order and player, with standard errors."""

    values: Float[Tensor, "samples orders players"]
    errors: Float[Tensor, "samples orders players"]


class Benefits(NamedTuple):
    """What players add at their places in random orders, by groups of draws of a random absence."""

    shares: Float[Tensor, " groups"]
    by_group: Float[Tensor, "samples groups rounds orders players"]

    def strengths(self, are_known: Sequence[bool]) -> Strengths:
        """Average the absolute values over the rounds; errors come from how rounds, and groups of draws, differ.

        What no round saw may be rare rather than absent, except in the orders that are known.
        """
        values = _weighted(self.by_group, self.shares).abs()
        mean = values.mean(1)
        rounds = values.shape[1]
        between = values.var(1)
        variances = moderated(between, _typical(between, mean), rounds) / rounds
        variances += _rare(mean, rounds) * ~torch.tensor(are_known)[:, None]
        groups = len(self.shares)
        if groups > 1:
            without = [self._without(group) for group in range(groups)]
            left_out = torch.stack(without)
            variances += (left_out - left_out.mean(0)).square().sum(0) * (groups - 1) / groups
        return Strengths(mean, variances.sqrt())

    def _without(self, group: int) -> Float[Tensor, "samples orders players"]:
        """Return the strengths without one group of draws."""
        others = [other for other in range(len(self.shares)) if other != group]
        shares = self.shares[others] / self.shares[others].sum()
        return _weighted(self.by_group[:, others], shares).abs().mean(1)


def _weighted(
    by_group: Float[Tensor, "samples groups rounds orders players"], shares: Float[Tensor, " groups"]
) -> Float[Tensor, "samples rounds orders players"]:
    """Average over groups of draws."""
    return torch.einsum("sgrop,g->srop", by_group, shares)


def _typical(
    variances: Float[Tensor, "samples orders players"], means: Float[Tensor, "samples orders players"]
) -> Float[Tensor, "samples orders players"]:
    """Return the variances that players of an order have typically: relative to squared means, they are alike."""
    squares = means.square()
    tiny = torch.finfo(squares.dtype).tiny
    return squares * variances.sum(2, keepdim=True) / squares.sum(2, keepdim=True).clamp_min(tiny)


def _rare(means: Float[Tensor, "samples orders players"], rounds: int) -> Float[Tensor, "samples orders players"]:
    """Return the variances of strengths that no round saw, as if one more round saw the player's usual strength."""
    usual = means.square().mean(1, keepdim=True).sqrt()
    is_unseen = means <= _ROUNDING * usual
    return is_unseen * (usual / rounds).square()


def _by_player(
    added: Float[Tensor, "samples groups rounds walks"], joining: Int[Tensor, "rounds walks"]
) -> Float[Tensor, "samples groups rounds players"]:
    """Sort what is added in the walks of a round by the player that joins, who differs from walk to walk."""
    return torch.empty_like(added).scatter(3, joining.expand_as(added), added)


class WalkPlan:
    """Which coalitions on the way of random orders are evaluated, so that players' benefits of some orders are known.

    A round has as many random orders as players: a random order, and its rotations, so that each player joins once at
    each place.
    """

    def __init__(self, players: int, orders: tuple[int, ...]) -> None:
        self.players = players
        self.orders = orders
        around = {size for order in orders for size in (order, order + 1)}
        # The values of ∅ and of all players are known anyway.
        self.sizes = tuple(sorted(around - {0, players}))

    @property
    def are_known(self) -> list[bool]:
        """Whether the only context of each order is evaluated: nobody, or all others."""
        return [order in (0, self.players - 1) for order in self.orders]

    @property
    def coalitions_per_round(self) -> int:
        """How many coalitions a round evaluates."""
        return self.players * len(self.sizes)

    def evaluate(self, game: Game, rounds: int, seed: int) -> Benefits:
        """Draw rounds of orders and evaluate the coalitions on their way."""
        places = self._draw_places(rounds, seed)
        nobody_and_everybody = torch.stack([torch.zeros(self.players), torch.ones(self.players)]).bool()
        parts, shares = games_by_draws(game)
        values = ask_by_draws(game, parts, torch.cat([nobody_and_everybody, self._on_the_way(places)]))
        by_size = values[:, :, 2:].unflatten(2, (rounds, self.players, len(self.sizes)))
        by_order = []
        for order in self.orders:
            added = self._at(by_size, values, order + 1) - self._at(by_size, values, order)
            by_order.append(_by_player(added, joining=self._players_at(places, order)))
        return Benefits(shares, torch.stack(by_order, dim=3))

    def _draw_places(self, rounds: int, seed: int) -> Int[Tensor, "rounds walks players"]:
        """Draw the place of each player in each walk: a random order for each round, and its rotations."""
        order = torch.rand(rounds, self.players, generator=seeded(seed, "walks")).argsort(1)
        rotations = torch.stack([order.roll(shift, dims=1) for shift in range(self.players)], dim=1)
        return rotations.argsort(2)  # sorting a permutation inverts it

    def _players_at(self, places: Int[Tensor, "rounds walks players"], order: int) -> Int[Tensor, "rounds walks"]:
        """Return the player of each walk that joins ``order`` others."""
        return (places == order).long().argmax(2)

    def _on_the_way(self, places: Int[Tensor, "rounds walks players"]) -> Coalitions:
        """Return the coalitions of the first players of each order, for each size."""
        sizes = torch.tensor(self.sizes, dtype=torch.long)
        coalitions: Bool[Tensor, "rounds walks sizes players"] = places[:, :, None, :] < sizes[:, None]
        return coalitions.reshape(-1, self.players)

    def _at(
        self,
        by_size: Float[Tensor, "samples groups rounds walks sizes"],
        values: Float[Tensor, "samples groups coalitions"],
        size: int,
    ) -> Float[Tensor, "samples groups rounds walks"]:
        """Return the values of the coalitions of a size on each way."""
        if size in (0, self.players):
            end = values[:, :, 0 if size == 0 else 1]
            return end[:, :, None, None].expand(by_size.shape[:4])
        return by_size[..., self.sizes.index(size)]
