"""Attributions: one number for each player, from the values of coalitions.

Exact ones are weighted sums over the value table. With v̄ₛ(i) the mean value of the coalitions of size s that
contain i, and v̄ₛ(−i) of those that lack i, the order-wise Shapley value is φᵢ⁽ᵐ⁾ = v̄ₘ₊₁(i) − v̄ₘ(−i), and the Shapley
value is its mean over the orders m = 0 … n − 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.coalitions import sums_by_size, sums_by_size_and_player, table_players
from absentia.errors import wrong
from absentia.game import Game, ValueTable, value_table
from absentia.sampling import MIN_EVALUATIONS_PER_PLAYER, sample_shapley
from absentia.wording import count_of


@dataclass(frozen=True, eq=False)
class Attribution:
    """One number for each player and sample, with its standard error (0 where it is exact) and its cost.

    >>> import absentia as ab
    >>> ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0], names=["age", "income"]))
    Attribution: Shapley values of 1 sample, 2 players; value: given
      income    +3
      age       +2
    """

    values: Float[Tensor, "samples players"]
    errors: Float[Tensor, "samples players"]
    evaluations: int
    names: tuple[str, ...]
    kind: str
    readout: str

    def __repr__(self) -> str:
        samples, players = self.values.shape
        count = count_of(samples, "sample")
        head = f"Attribution: {self.kind} of {count}, {players} players; value: {self.readout}"
        if samples > 1:
            return f"{head}; means of |value|:\n{self._lines(self.values.abs().mean(0), None)}"
        return f"{head}\n{self._lines(self.values[0], self.errors[0] if bool(self.errors.any()) else None)}"

    def _lines(self, values: Tensor, errors: Tensor | None) -> str:
        width = max(len(name) for name in self.names)
        ranked = values.abs().argsort(descending=True).tolist()
        return "\n".join(
            f"  {self.names[i]:<{width}}  {values[i]:+8.4g}".rstrip()
            + ("" if errors is None else f" ± {errors[i]:.2g}")
            for i in ranked
        )


def shapley(game: Game, *, evaluations: int | None = None, seed: int = 0) -> Attribution:
    """Compute Shapley values: φᵢ = Σ_{S∌i} |S|!(n−|S|−1)!/n! · [v(S∪i) − v(S)].

    Exact from all 2ⁿ coalitions; or, given a number of ``evaluations`` for each sample, estimated from that many
    coalitions drawn by ``seed``, with standard errors [musco2025leverage]. They add up to v(N) − v(∅) either way.

    >>> import absentia as ab
    >>> ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[2., 3.]], dtype=torch.float64)
    """
    if evaluations is not None and evaluations < 2 ** len(game.names):
        least = MIN_EVALUATIONS_PER_PLAYER * len(game.names) + 2
        if evaluations < least:
            raise wrong("evaluations", f"be at least {least} for {len(game.names)} players", evaluations)
        values, errors, spent = sample_shapley(game, evaluations, seed)
        note = getattr(game, "readout_note", getattr(game, "readout", "given"))
        return Attribution(values, errors, spent, game.names, "sampled Shapley values", note)
    return _exact(game, "Shapley values", lambda table: order_shapley_of(table.values, table.sums).mean(1))


def banzhaf(game: Game) -> Attribution:
    """Compute Banzhaf values: the mean of v(S∪i) − v(S) over all 2ⁿ⁻¹ coalitions S that lack i.

    >>> import absentia as ab
    >>> ab.banzhaf(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).values
    tensor([[2., 3.]], dtype=torch.float64)
    """

    def means(table: ValueTable) -> Tensor:
        with_player, coalitions = table.sums.sum(1), table.values.shape[1]
        return (2 * with_player - table.values.sum(1, keepdim=True)) / (coalitions // 2)

    return _exact(game, "Banzhaf values", means)


def order_shapley(game: Game, orders: Sequence[int] | None = None) -> Float[Tensor, "samples orders players"]:
    """Compute order-wise Shapley values: φᵢ⁽ᵐ⁾ = E_{|S|=m, S∌i} [v(S∪i) − v(S)], for each order m.

    ``orders`` are 0 … n − 1 by default. Their mean is the Shapley value.

    >>> import absentia as ab
    >>> ab.order_shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0]))
    tensor([[[1., 2.],
             [3., 4.]]], dtype=torch.float64)
    """
    table = value_table(game)
    return _pick_orders(order_shapley_of(table.values, table.sums), orders)


def order_marginals(game: Game, orders: Sequence[int] | None = None) -> Float[Tensor, "samples orders players"]:
    """Measure how strong marginal benefits are, by order: E_{|S|=m, S∌i} |v(S∪i) − v(S)|.

    Unlike in `order_shapley`, benefits of opposite sign in different coalitions do not cancel.

    >>> import absentia as ab
    >>> ab.order_marginals(ab.ValueTable([0.0, 1.0, 2.0, -5.0]), orders=[1])
    tensor([[[7., 6.]]], dtype=torch.float64)
    """
    table = value_table(game).values
    return _pick_orders(order_marginals_of(table), orders)


def marginal_benefits(game: Game, player: int) -> Float[Tensor, "samples coalitions"]:
    """List a player's marginal benefits v(S∪i) − v(S) over all S of the other players, in their counting order.

    >>> import absentia as ab
    >>> ab.marginal_benefits(ab.ValueTable([0.0, 1.0, 2.0, 5.0]), player=0)
    tensor([[1., 3.]], dtype=torch.float64)
    """
    table = value_table(game)
    if not 0 <= player < len(table.names):
        raise wrong("player", f"lie between 0 and {len(table.names) - 1}", player)
    return marginal_benefits_of(table.values, player)


def order_shapley_of(
    table: Float[Tensor, "*batch coalitions"], sums: Float[Tensor, "*batch sizes players"] | None = None
) -> Float[Tensor, "*batch orders players"]:
    """Compute φᵢ⁽ᵐ⁾ of a table of values; differentiable. Its ``sums`` by size and player may be at hand."""
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
def _contexts_by_order(players: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Count the coalitions of each size among the other players."""
    return torch.tensor([math.comb(players - 1, order) for order in range(players)], dtype=dtype, device=device)


def marginal_benefits_of(table: Float[Tensor, "*batch coalitions"], player: int) -> Float[Tensor, "*batch others"]:
    """Subtract the half of a table without a player from the half with it."""
    halves = table.unflatten(-1, (-1, 2, 2**player))
    return (halves[..., 1, :] - halves[..., 0, :]).flatten(-2)


def _exact(game: Game, kind: str, of_table: Callable[[ValueTable], Tensor]) -> Attribution:
    table = value_table(game)
    values = of_table(table)
    return Attribution(values, torch.zeros_like(values), table.evaluations, table.names, kind, table.readout)


def _pick_orders(by_order: Tensor, orders: Sequence[int] | None) -> Tensor:
    if orders is None:
        return by_order
    highest = by_order.shape[-2] - 1
    if not all(0 <= order <= highest for order in orders):
        raise wrong("orders", f"lie between 0 and {highest}", list(orders))
    return by_order[..., list(orders), :]
