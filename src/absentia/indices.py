"""Indices: functions from the values of a game to one number for each player, or for each set of players.

With v̄ₛ(i) the mean value of the coalitions of size s that contain i, and v̄ₛ(−i) of those without i, the order-wise
Shapley value is φᵢ⁽ᵐ⁾ = v̄ₘ₊₁(i) − v̄ₘ(−i), and the Shapley value is its mean over the orders m = 0 … n − 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, overload

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.arguments import checked
from absentia.attributions import Attribution, MarginalBenefits, OrderAttribution, exact_attribution
from absentia.coalitions import sums_by_size, sums_by_size_and_player, table_players
from absentia.data import check_number
from absentia.errors import AbsentiaError, wrong
from absentia.games import MAX_PLAYERS, Game, ValueTable, draws_of, value_table
from absentia.interaction_indices import (
    InteractionIndex,
    bii,
    check_adds_up,
    fbii,
    fsii,
    k_sii,
    sii,
    stii,
)
from absentia.sampled_indices import draw_pairs, sample_banzhaf, sample_index, usual_evaluations
from absentia.solvers.choice import interactions
from absentia.solvers.leaves import LeafSums, sums_over_leaves
from absentia.solvers.order_wise import order_shapley_of_pairs, sample_order_marginals
from absentia.solvers.sampled_shapley import AUTO, sample_shapley
from absentia.terms import Terms
from absentia.terms_in_words import WALSH

# The order of interaction indices unless another one is asked for: players and pairs.
_USUAL_ORDER = 2


@checked
def shapley(
    game: Game | Terms,
    *,
    evaluations: int | None = None,
    tolerance: float | None = None,
    method: str = AUTO,
    seed: int = 0,
    more: Attribution | None = None,
) -> Attribution:
    """Compute Shapley values: φᵢ = Σ_{S∌i} |S|!(n−|S|−1)!/n! · [v(S∪i) − v(S)].

    Values are exact by default: from all 2ⁿ coalitions, or, at any number of players, from the leaves of a model of
    trees whose value is a sum over leaves. With ``evaluations``, ``tolerance`` or ``more`` they are estimated from
    drawn coalitions, with standard errors. Either way they add up to v(N) − v(∅).

    Parameters
    ----------
    game : Game or Terms
        A `MaskedModel`, a `ValueTable`, a game of your own, or its effects, for any number of players.
    evaluations : int, optional
        The number of rows that the model may evaluate for each sample: one for each coalition and draw of the
        absence.
    tolerance : float, optional
        Draw until the largest standard error is at most this share of the values' size, or ``evaluations`` are
        spent. The size is the range of the values, or |v(N) − v(∅)|/n if that is larger.
    method : str, default "auto"
        "process" fits a Gaussian process to the values of coalitions, with a weight for each player. "leverage" is a
        weighted regression [musco2025leverage], "antithetic" averages over random orders and their reverses
        [mitchell2022sampling], and "permutation" over random orders [castro2009polynomial]. "auto" chooses between
        "process", which needs the fewest evaluations, and "leverage", which is quicker where the model is.
    seed : int, default 0
        The seed of the drawn coalitions.
    more : Attribution, optional
        An earlier sampled result of the same game. Its coalitions are used again, and ``evaluations`` counts them.

    Examples
    --------
    >>> ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[2., 3.]], dtype=torch.float64)
    >>> game = ab.MaskedModel(lambda rows: rows.sum(1).exp(), torch.ones(1, 30) / 30, absence=0.0)
    >>> ab.shapley(game, evaluations=400, method="process").errors.max() < 0.002
    tensor(True)
    """
    is_sampled = evaluations is not None or tolerance is not None or more is not None
    if method != AUTO and not is_sampled:
        raise wrong("evaluations", f"be given for method={method!r}, or a tolerance", "none")
    if isinstance(game, Terms):
        if is_sampled:
            raise _needs_no_evaluations()
        check_adds_up(game)
        return game.shapley()
    all_rows = 2 ** len(game.names) * draws_of(game)
    if is_sampled and (evaluations is None or evaluations < all_rows):
        return sample_shapley(game, evaluations, seed, method=method, tolerance=tolerance, more=more).attribution
    leaves = sums_over_leaves(game)
    if leaves is not None:
        return leaves.shapley()
    return shapley_of_table(value_table(game))


@checked
def banzhaf(game: Game | Terms) -> Attribution:
    """Compute Banzhaf values: the mean of v(S∪i) − v(S) over all 2ⁿ⁻¹ coalitions S without i.

    ``index(game, "Banzhaf", evaluations=…)`` estimates them for any number of players.

    Parameters
    ----------
    game : Game or Terms
        A game, or its effects, for any number of players.

    Examples
    --------
    >>> ab.banzhaf(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    if isinstance(game, Terms):
        check_adds_up(game)
        return banzhaf_of_terms(game)
    leaves = sums_over_leaves(game)
    if leaves is not None:
        return leaves.banzhaf()
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


def banzhaf_of_terms(terms: Terms) -> Attribution:
    """Compute Banzhaf values from effects: φᵢ = Σ_{S∋i} U(S)/2^(|S|−1), or 2 w_{i} from Walsh terms."""
    if terms.basis == WALSH:
        return _banzhaf_of_walsh_terms(terms)
    # Terms.shapley gives each player an equal share of an effect, so the effect is multiplied by their number.
    scaled = terms.effects * terms.orders / 2.0 ** (terms.orders - 1)
    sums = replace(terms, effects=scaled).shapley()
    return replace(sums, kind="Banzhaf values", index="Banzhaf")


def _banzhaf_of_walsh_terms(terms: Terms) -> Attribution:
    """Return twice the terms of single players: those of other sets cancel over all coalitions."""
    single = terms.orders == 1
    sums = replace(terms, effects=torch.where(single, terms.effects, 0.0)).shapley()
    errors = sums.errors
    if terms.errors is not None:
        # Each value is a single term, so its error is known. That of a player without a term is not.
        counted = replace(terms, errors=None, fidelity=None)
        has_term = replace(counted, effects=single.to(terms.effects)).shapley().values > 0
        of_terms = replace(counted, effects=torch.where(single, terms.errors, 0.0)).shapley().values
        errors = torch.where(has_term, of_terms, torch.nan)
    return replace(sums, errors=errors, kind="Banzhaf values", index="Banzhaf")


def _sampled_shapley(game: Game, evaluations: int | None, seed: int) -> Attribution:
    """Estimate Shapley values from drawn coalitions."""
    return shapley(game, evaluations=evaluations or usual_evaluations(game), seed=seed)


def _sampled_banzhaf(game: Game, evaluations: int | None, seed: int) -> Attribution:
    """Estimate Banzhaf values from drawn coalitions."""
    return sample_banzhaf(game, InteractionIndex(bii), evaluations, seed)


@dataclass(frozen=True)
class PlayerIndex:
    """An index with one number for each player, as a function of all values.

    Examples
    --------
    >>> PlayerIndex(shapley_of_table).of_table(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[2., 3.]], dtype=torch.float64)
    """

    of_table: Callable[[ValueTable], Attribution]
    of_terms: Callable[[Terms], Attribution] | None = None  # the same from effects; None if there is no such function
    of_leaves: Callable[[LeafSums], Attribution] | None = None  # the same from the leaves of trees
    of_draws: Callable[[Game, int | None, int], Attribution] | None = None  # from a game, a budget, and a seed


# The indices that `index` computes, by name. Add one with `INDICES["name"] = PlayerIndex(function)`, or with
# `INDICES["name"] = InteractionIndex(weight)`.
INDICES: dict[str, PlayerIndex | InteractionIndex] = {
    "Shapley": PlayerIndex(shapley_of_table, Terms.shapley, LeafSums.shapley, _sampled_shapley),
    "Banzhaf": PlayerIndex(banzhaf_of_table, banzhaf_of_terms, LeafSums.banzhaf, _sampled_banzhaf),
    "SII": InteractionIndex(sii),
    "k-SII": InteractionIndex(k_sii),
    "STII": InteractionIndex(stii),
    "FSII": InteractionIndex(fsii),
    "BII": InteractionIndex(bii),
    "FBII": InteractionIndex(fbii),
}


@overload
def index(
    game: Game | Terms,
    name: Literal["Shapley", "Banzhaf"],
    *,
    order: int | None = None,
    evaluations: int | None = None,
    seed: int = 0,
) -> Attribution: ...  # numbers of players


@overload
def index(
    game: Game | Terms,
    name: Literal["SII", "k-SII", "STII", "FSII", "BII", "FBII"],
    *,
    order: int | None = None,
    evaluations: int | None = None,
    seed: int = 0,
) -> Terms: ...  # numbers of sets


@overload
def index(
    game: Game | Terms, name: str, *, order: int | None = None, evaluations: int | None = None, seed: int = 0
) -> Attribution | Terms: ...


@checked
def index(
    game: Game | Terms, name: str, *, order: int | None = None, evaluations: int | None = None, seed: int = 0
) -> Attribution | Terms:
    """Compute an index by its name.

    It is exact from all 2ⁿ coalitions of a game of up to 24 players, from the leaves of trees, or from effects.
    Effects may be listed for any number of players: an index of them needs no other values, and lists the subsets of
    up to ``order`` players of their sets. For more players, or with ``evaluations``, it is estimated with standard
    errors, by a Gaussian process that is fitted to the values of drawn coalitions.

    Parameters
    ----------
    game : Game or Terms
        A `MaskedModel`, a `ValueTable`, a game of your own, or its effects.
    name : str
        "Shapley" or "Banzhaf" for one number for each player. "SII", "k-SII", "STII", "FSII", "BII" or "FBII" for
        one number for each set of up to ``order`` players. Or an index of ``absentia.indices.INDICES`` of your own.
    order : int, optional
        The size of the largest sets of an interaction index, 2 by default.
    evaluations : int, optional
        To estimate the index: the number of rows that the model may evaluate for each sample, one for each coalition
        and draw of the absence. The default beyond 24 players is 4096 coalitions, or 16 for each player.
    seed : int, default 0
        The seed of the drawn coalitions.

    Returns
    -------
    Attribution or Terms
        Numbers of players, or of sets; the ``basis`` of these terms is the name of the index. If there are more than
        4096 sets and the index is estimated, all players and the strongest other sets are listed. If it is computed
        from effects that are estimated, errors of sets are upper bounds of their standard errors.

    Examples
    --------
    >>> table = ab.ValueTable([0.0, 1.0, 2.0, 5.0])
    >>> ab.index(table, "Banzhaf").values
    tensor([[2., 3.]], dtype=torch.float64)
    >>> ab.index(table, "k-SII", order=2)
    Interactions (k-SII of order 2) of 1 sample, 2 players; value: given; strongest:
      x1       +2
      x0 & x1  +2
      x0       +1
    >>> game = ab.MaskedModel(lambda rows: 5 * rows[:, 0] * rows[:, 1] + rows.mean(1), torch.ones(1, 30), absence=0.0)
    >>> ab.index(game, "BII", evaluations=300).top(1)[0].players
    ('x0', 'x1')
    """
    if name not in INDICES:
        raise wrong("name", f"be one of {', '.join(INDICES)}", repr(name))
    chosen = INDICES[name]
    check_number("evaluations", evaluations, 1)
    is_sampled = _is_sampled(game, evaluations)
    if isinstance(chosen, PlayerIndex):
        return _index_of_players(chosen, game, name, order, evaluations, is_sampled, seed)
    players = len(game.names)
    if order is None:
        order = min(_USUAL_ORDER, players)
    check_number("order", order, 1, players)
    if isinstance(game, Terms):
        return chosen.of_terms(game, order, name)
    if is_sampled:
        return sample_index(game, chosen, name, order, evaluations, seed)
    leaves = sums_over_leaves(game)
    if leaves is not None:
        return leaves.interaction_index(chosen.weight, order, name)
    return chosen.of_terms(interactions(game), order, name)


def _is_sampled(game: Game | Terms, evaluations: int | None) -> bool:
    """Return whether to estimate: for a budget that is too small for all coalitions, or for too many players."""
    if evaluations is None:
        return not isinstance(game, Terms) and _has_many_players(game)
    if isinstance(game, Terms):
        raise _needs_no_evaluations()
    return evaluations < 2 ** len(game.names) * draws_of(game)


def _needs_no_evaluations() -> AbsentiaError:
    """Return the error for a budget that is given with terms."""
    return wrong("game", "be a game if evaluations are given", "terms", "Terms need no evaluations.")


def _has_many_players(game: Game) -> bool:
    """Return whether a game has too many players for all coalitions, and no other way to exact results."""
    return len(game.names) > MAX_PLAYERS and sums_over_leaves(game) is None


def _index_of_players(
    chosen: PlayerIndex,
    game: Game | Terms,
    name: str,
    order: int | None,
    evaluations: int | None,
    is_sampled: bool,
    seed: int,
) -> Attribution:
    """Compute an index of players from all values of a game, or from effects if the index knows how."""
    if order not in (None, 1):
        interaction_indices = [key for key, index in INDICES.items() if isinstance(index, InteractionIndex)]
        then = f"Interaction indices are {', '.join(interaction_indices)}."
        raise wrong("order", f"be 1 for {name}, which has numbers for single players", order, then)
    if not isinstance(game, Terms):
        if is_sampled and (evaluations is not None or chosen.of_draws is not None):
            return _sampled_index_of_players(chosen, game, name, evaluations, seed)
        leaves = sums_over_leaves(game)
        if leaves is not None and chosen.of_leaves is not None:
            return chosen.of_leaves(leaves)
        return chosen.of_table(value_table(game))
    check_adds_up(game)
    if chosen.of_terms is None:
        raise wrong("game", f"be a game for {name}, which needs the values of coalitions", "terms")
    return chosen.of_terms(game)


def _sampled_index_of_players(
    chosen: PlayerIndex, game: Game, name: str, evaluations: int | None, seed: int
) -> Attribution:
    """Estimate an index of players, if it knows how."""
    if chosen.of_draws is None:
        then = "Pass no evaluations, or give the index a function of_draws."
        raise wrong("name", "be that of an index that can be estimated", repr(name), then)
    return chosen.of_draws(game, evaluations, seed)


@checked
def order_shapley(
    game: Game | Terms, orders: Sequence[int] | None = None, *, evaluations: int | None = None, seed: int = 0
) -> OrderAttribution:
    """Compute order-wise Shapley values: φᵢ⁽ᵐ⁾ = E_{|S|=m, S∌i} [v(S∪i) − v(S)], for each order m.

    Their mean over all orders is the Shapley value. With ``evaluations`` they are estimated with standard errors, for
    any number of players, by a Gaussian process that is fitted to the values of drawn coalitions.

    Parameters
    ----------
    game : Game or Terms
        A game, or its exact effects, for any number of players.
    orders : sequence of int, optional
        The orders to return. The default is all orders, 0 … n − 1. If they are estimated for more than 90 players,
        the default is some of them, evenly spaced.
    evaluations : int, optional
        The number of rows that the model may evaluate for each sample: one for each coalition and draw of the
        absence. The default beyond 24 players is 4096 coalitions, or 16 for each player.
    seed : int, default 0
        The seed of the drawn coalitions.

    Examples
    --------
    >>> ab.order_shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[[1., 2.],
             [3., 4.]]], dtype=torch.float64)
    >>> game = ab.MaskedModel(lambda rows: rows.mean(1).exp(), torch.ones(1, 30), absence=0.0)
    >>> by_order = ab.order_shapley(game, evaluations=300)
    >>> by_order.values[0, [0, 29], 0].round(decimals=2)  # exp(1/30) − 1 and exp(1) − exp(29/30)
    tensor([0.0300, 0.0900], dtype=torch.float64)
    """
    orders = _checked_orders(game, orders)
    check_number("evaluations", evaluations, 1)
    is_sampled = _is_sampled(game, evaluations)
    if isinstance(game, Terms):
        check_adds_up(game)
        by_order = game.order_shapley()
        return by_order if orders is None else by_order.at(*orders)
    if is_sampled:
        drawn = draw_pairs(game, evaluations, seed)
        return order_shapley_of_pairs(drawn.values, game, seed, orders, drawn.rows_seen)
    leaves = sums_over_leaves(game)
    if leaves is not None:
        by_order = leaves.order_shapley()
        return by_order if orders is None else by_order.at(*orders)
    table = value_table(game)
    values = order_shapley_of(table.values, table.sums)
    return _by_order(table, values, "order-wise Shapley values", orders)


@checked
def order_marginals(
    game: Game, orders: Sequence[int] | None = None, *, evaluations: int | None = None, seed: int = 0
) -> OrderAttribution:
    """Compute the mean strength of marginal benefits by order: E_{|S|=m, S∌i} |v(S∪i) − v(S)|.

    Unlike in `order_shapley`, benefits of opposite sign in different coalitions do not cancel. With ``evaluations``
    strengths are estimated with standard errors, for any number of players, from random orders in which players join.

    Parameters
    ----------
    game, seed
        See `order_shapley`.
    orders : sequence of int, optional
        The orders to return. The default is all orders, 0 … n − 1; fewer need fewer evaluations.
    evaluations : int, optional
        The number of rows that the model may evaluate for each sample. All orders need at least 2n(n − 1) + 2, and
        one order at most 4n + 2, times the draws of the absence.

    Examples
    --------
    >>> ab.order_marginals(ab.ValueTable([0.0, 1.0, 2.0, -5.0]), orders=[1]).values
    tensor([[[7., 6.]]], dtype=torch.float64)
    >>> game = ab.MaskedModel(lambda rows: rows.mean(1).exp(), torch.ones(1, 30), absence=0.0)
    >>> ab.order_marginals(game, orders=[0, 15], evaluations=500).values[0, :, 0]  # exp(16/30) − exp(15/30)
    tensor([0.0339, 0.0559], dtype=torch.float64)
    """
    orders = _checked_orders(game, orders)
    check_number("evaluations", evaluations, 1)
    if evaluations is not None and _is_sampled(game, evaluations):
        return sample_order_marginals(game, orders, evaluations, seed)
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
    return MarginalBenefits(
        values, table.evaluations, table.names, player, table.readout, rows_seen=table.rows_seen, notes=table.notes
    )


def _checked_orders(game: Game | Terms, orders: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return orders that a game has; None stands for the default."""
    if orders is None:
        return None
    for order in orders:
        check_number("orders", order, 0, len(game.names) - 1)
    return tuple(orders)


def _by_order(
    table: ValueTable, values: Float[Tensor, "samples orders players"], kind: str, orders: Sequence[int] | None
) -> OrderAttribution:
    """Return values by order as a result, for all orders or the requested ones."""
    every = tuple(range(len(table.names)))
    by_order = OrderAttribution(
        values, table.evaluations, table.names, kind, table.readout, every, rows_seen=table.rows_seen
    )
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
