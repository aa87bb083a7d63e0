"""Indices: numbers for players that are maps of a game's values.

With v̄ₛ(i) the mean value of the coalitions of size s that contain i, and v̄ₛ(−i) of those without i, the order-wise
Shapley value is φᵢ⁽ᵐ⁾ = v̄ₘ₊₁(i) − v̄ₘ(−i), and the Shapley value is its mean over the orders m = 0 … n − 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.arguments import checked
from absentia.attributions import Attribution, MarginalBenefits, OrderAttribution, exact_attribution
from absentia.coalitions import sums_by_size, sums_by_size_and_player, table_players
from absentia.data import check_number
from absentia.errors import wrong
from absentia.games import Game, ValueTable, draws_of, value_table
from absentia.solvers.regression import sample_shapley

IndexFunction: TypeAlias = Callable[[ValueTable], Attribution]


@checked
def shapley(game: Game, *, evaluations: int | None = None, seed: int = 0) -> Attribution:
    """Compute Shapley values: φᵢ = Σ_{S∌i} |S|!(n−|S|−1)!/n! · [v(S∪i) − v(S)].

    Values are exact by default, from all 2ⁿ coalitions. With ``evaluations`` they are estimated from drawn
    coalitions, with standard errors [musco2025leverage]. Either way they add up to v(N) − v(∅).

    Parameters
    ----------
    game : Game
        A `MaskedModel`, a `ValueTable`, or a game of your own.
    evaluations : int, optional
        The rows that the model may evaluate for each sample: one for each coalition and draw of the absence.
    seed : int, default 0
        Fixes the coalitions that are drawn.

    Examples
    --------
    >>> ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    if evaluations is not None and evaluations < 2 ** len(game.names) * draws_of(game):
        return sample_shapley(game, evaluations, seed).attribution
    return shapley_of_table(value_table(game))


@checked
def banzhaf(game: Game) -> Attribution:
    """Compute Banzhaf values: the mean of v(S∪i) − v(S) over all 2ⁿ⁻¹ coalitions S without i.

    Parameters
    ----------
    game : Game

    Examples
    --------
    >>> ab.banzhaf(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    return banzhaf_of_table(value_table(game))


def shapley_of_table(table: ValueTable) -> Attribution:
    """Compute Shapley values from all values of a game."""
    values = order_shapley_of(table.values, table.sums).mean(1)
    return exact_attribution(table, values, "Shapley values")


def banzhaf_of_table(table: ValueTable) -> Attribution:
    """Compute Banzhaf values from all values of a game."""
    contexts = table.values.shape[1] // 2
    values = (2 * table.sums.sum(1) - table.values.sum(1, keepdim=True)) / contexts
    return exact_attribution(table, values, "Banzhaf values", "Banzhaf")


# The indices that `index` computes, by name. Add one with `INDICES["name"] = function`.
INDICES: dict[str, IndexFunction] = {
    "Shapley": shapley_of_table,
    "Banzhaf": banzhaf_of_table,
}


@checked
def index(game: Game, name: str) -> Attribution:
    """Compute an index by its name, exactly, from all 2ⁿ coalitions.

    Parameters
    ----------
    game : Game
        A `MaskedModel`, a `ValueTable`, or a game of your own.
    name : str
        "Shapley" or "Banzhaf", or an index that was added to ``absentia.indices.INDICES``.

    Examples
    --------
    >>> ab.index(ab.ValueTable([0.0, 1.0, 2.0, 5.0]), "Banzhaf").values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    if name not in INDICES:
        raise wrong("name", f"be one of {', '.join(INDICES)}", repr(name))
    return INDICES[name](value_table(game))


@checked
def order_shapley(game: Game, orders: Sequence[int] | None = None) -> OrderAttribution:
    """Compute order-wise Shapley values: φᵢ⁽ᵐ⁾ = E_{|S|=m, S∌i} [v(S∪i) − v(S)], for each order m.

    Their mean over all orders is the Shapley value.

    Parameters
    ----------
    game : Game
    orders : sequence of int, optional
        The orders to return, 0 … n − 1 by default.

    Examples
    --------
    >>> ab.order_shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[[1., 2.],
             [3., 4.]]], dtype=torch.float64)
    """
    table = value_table(game)
    values = order_shapley_of(table.values, table.sums)
    return _by_order(table, values, "order-wise Shapley values", orders)


@checked
def order_marginals(game: Game, orders: Sequence[int] | None = None) -> OrderAttribution:
    """Compute the mean strength of marginal benefits by order: E_{|S|=m, S∌i} |v(S∪i) − v(S)|.

    Unlike in `order_shapley`, benefits of opposite sign in different coalitions do not cancel.

    Parameters
    ----------
    game, orders
        See `order_shapley`.

    Examples
    --------
    >>> ab.order_marginals(ab.ValueTable([0.0, 1.0, 2.0, -5.0]), orders=[1]).values
    tensor([[[7., 6.]]], dtype=torch.float64)
    """
    table = value_table(game)
    return _by_order(table, order_marginals_of(table.values), "order-wise strengths of benefits", orders)


@checked
def marginal_benefits(game: Game, player: int) -> MarginalBenefits:
    """Compute a player's marginal benefits v(S∪i) − v(S) over all S of the other players, in counting order.

    Parameters
    ----------
    game : Game
    player : int
        The number of the player.

    Examples
    --------
    >>> ab.marginal_benefits(ab.ValueTable([0.0, 1.0, 2.0, 5.0]), player=0).values
    tensor([[1., 3.]], dtype=torch.float64)
    """
    table = value_table(game)
    check_number("player", player, 0, len(table.names) - 1)
    values = marginal_benefits_of(table.values, player)
    return MarginalBenefits(values, table.evaluations, table.names, player, table.readout)


def _by_order(
    table: ValueTable, values: Float[Tensor, "samples orders players"], kind: str, orders: Sequence[int] | None
) -> OrderAttribution:
    """Return values by order as a result; all orders, or those that were asked for."""
    every = tuple(range(len(table.names)))
    by_order = OrderAttribution(values, table.evaluations, table.names, kind, table.readout, every)
    if orders is None:
        return by_order
    return by_order.at(*orders)


def order_shapley_of(
    table: Float[Tensor, "*batch coalitions"], sums: Float[Tensor, "*batch sizes players"] | None = None
) -> Float[Tensor, "*batch orders players"]:
    """Compute φᵢ⁽ᵐ⁾ of a table of values, or of its ``sums`` by size and player; differentiable."""
    players = table_players(table.shape[-1])
    containing = sums_by_size_and_player(table) if sums is None else sums
    # A coalition of size s is counted once for each of its s players.
    sizes = torch.arange(1, players + 1, device=table.device)
    by_size = torch.cat([table[..., :1], containing[..., 1:, :].sum(-1) / sizes], dim=-1)
    lacking = by_size[..., None] - containing
    counts = _contexts_by_order(players, table.dtype, table.device)
    return (containing[..., 1:, :] - lacking[..., :-1, :]) / counts[:, None]


def order_marginals_of(table: Float[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch orders players"]:
    """Compute E|v(S∪i) − v(S)| by order of a table of values; differentiable."""
    players = table_players(table.shape[-1])
    counts = _contexts_by_order(players, table.dtype, table.device)
    sums = [sums_by_size(marginal_benefits_of(table, player).abs()) for player in range(players)]
    return torch.stack(sums, dim=-1) / counts[:, None]


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # what is cached may be used with a gradient later
def _contexts_by_order(players: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Count the coalitions of each size among the other players."""
    return torch.tensor([math.comb(players - 1, order) for order in range(players)], dtype=dtype, device=device)


def marginal_benefits_of(table: Float[Tensor, "*batch coalitions"], player: int) -> Float[Tensor, "*batch others"]:
    """Subtract the half of a table without a player from the half with it."""
    halves = table.unflatten(-1, (-1, 2, 2**player))
    return (halves[..., 1, :] - halves[..., 0, :]).flatten(-2)
