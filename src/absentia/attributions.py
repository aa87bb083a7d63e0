"""Attributions: one number for each player, from the values of coalitions.

Exact ones are weighted sums over the value table. With v̄ₛ(i) the mean value of the coalitions of size s that
contain i, and v̄ₛ(−i) of those without i, the order-wise Shapley value is φᵢ⁽ᵐ⁾ = v̄ₘ₊₁(i) − v̄ₘ(−i), and the Shapley
value is its mean over the orders m = 0 … n − 1.

Sampled ones solve the weighted regression whose solution the Shapley values are over some of the coalitions. Sizes
are drawn equally often (by the leverage scores of the regression [musco2025leverage]), each set with its complement,
without replacement. The sample is stratified by size, and a size that the budget can cover is enumerated, so that the
estimate is exact when the budget reaches 2ⁿ. Errors come from a delete-a-group jackknife.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.coalitions import Coalitions, draw_coalitions, sums_by_size, sums_by_size_and_player, table_players
from absentia.data import check_number, seeded
from absentia.errors import wrong
from absentia.evaluation import check_finite
from absentia.games import Game, MaskedModel, ask, value_table
from absentia.text import align, count_of, written, written_alike

# What the values of players are: Shapley values, Banzhaf values, or the shares of a player's contexts.
Index: TypeAlias = Literal["Shapley", "Banzhaf", "contexts"]
# Drawn coalitions of one size, and the number of all pairs of that size with a complement, which they represent.
Stratum: TypeAlias = tuple[Tensor, int]

MIN_COALITIONS_PER_PLAYER = 4
JACKKNIFE_GROUPS = 10


@dataclass(frozen=True, eq=False)
class Attribution:
    """One number for each player and sample, with its standard error and its cost.

    Examples
    --------
    >>> ab.shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0], names=["age", "income"]))
    Attribution: Shapley values of 1 sample, 2 players; value: given
      income  +3
      age     +2
    """

    values: Float[Tensor, "samples players"]
    errors: Float[Tensor, "samples players"]  # standard errors; 0 where values are exact, NaN where unknown
    evaluations: int  # rows that the model evaluated
    names: tuple[str, ...]
    kind: str  # such as "Shapley values", in words
    readout: str
    index: Index = "Shapley"  # files of older versions hold Shapley values only

    @property
    def is_estimated(self) -> bool:
        """Whether values have errors, known or not."""
        return bool((self.errors != 0).any())

    def __repr__(self) -> str:
        samples, players = self.values.shape
        head = f"Attribution: {self.kind} of {count_of(samples, 'sample')}, {players} players; value: {self.readout}"
        note = " ± mean standard error" if (self.errors > 0).any() else ""
        head += f"; means of |value|{note}:" if samples > 1 else ""
        shown = self.ranked(None if samples > 1 else 0)
        return "\n".join([head, *align([[self.names[i], text] for i, text in shown], 2)])

    def ranked(self, sample: int | None = 0) -> list[tuple[int, str]]:
        """Return players with values and at most their errors in words, largest first; None for means of |value|."""
        check_number("sample", sample, -len(self.values), len(self.values) - 1)
        both = (self.values.abs().mean(0), self.errors.mean(0)) if sample is None else ()
        values, errors = both or (self.values[sample], self.errors[sample])
        order = values.abs().argsort(dim=0, descending=True, stable=True).tolist()
        shown = list(zip(order, written_alike(values[order].tolist(), plus=sample is not None), strict=True))
        known = bool((self.errors > 0).any())
        return [(i, f"{text} ± {written(float(errors[i]), 2)}") for i, text in shown] if known else shown


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
        return sample_shapley(game, evaluations, seed)[0]
    table = value_table(game)
    return exact_attribution(table, order_shapley_of(table.values, table.sums).mean(1), "Shapley values")


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
    table = value_table(game)
    values = (2 * table.sums.sum(1) - table.values.sum(1, keepdim=True)) / (table.values.shape[1] // 2)
    return exact_attribution(table, values, "Banzhaf values", "Banzhaf")


def order_shapley(game: Game, orders: Sequence[int] | None = None) -> Float[Tensor, "samples orders players"]:
    """Compute order-wise Shapley values: φᵢ⁽ᵐ⁾ = E_{|S|=m, S∌i} [v(S∪i) − v(S)], for each order m.

    Their mean over all orders is the Shapley value.

    Parameters
    ----------
    game : Game
    orders : sequence of int, optional
        The orders to return, 0 … n − 1 by default.

    Examples
    --------
    >>> ab.order_shapley(ab.ValueTable([0.0, 1.0, 2.0, 5.0]))
    tensor([[[1., 2.],
             [3., 4.]]], dtype=torch.float64)
    """
    table = value_table(game)
    return _pick_orders(order_shapley_of(table.values, table.sums), orders)


def order_marginals(game: Game, orders: Sequence[int] | None = None) -> Float[Tensor, "samples orders players"]:
    """Compute the mean strength of marginal benefits by order: E_{|S|=m, S∌i} |v(S∪i) − v(S)|.

    Unlike in `order_shapley`, benefits of opposite sign in different coalitions do not cancel.

    Parameters
    ----------
    game, orders
        See `order_shapley`.

    Examples
    --------
    >>> ab.order_marginals(ab.ValueTable([0.0, 1.0, 2.0, -5.0]), orders=[1])
    tensor([[[7., 6.]]], dtype=torch.float64)
    """
    return _pick_orders(order_marginals_of(value_table(game).values), orders)


def marginal_benefits(game: Game, player: int) -> Float[Tensor, "samples coalitions"]:
    """Compute a player's marginal benefits v(S∪i) − v(S) over all S of the other players, in counting order.

    Parameters
    ----------
    game : Game
    player : int
        The number of the player.

    Examples
    --------
    >>> ab.marginal_benefits(ab.ValueTable([0.0, 1.0, 2.0, 5.0]), player=0)
    tensor([[1., 3.]], dtype=torch.float64)
    """
    table = value_table(game)
    check_number("player", player, 0, len(table.names) - 1)
    return marginal_benefits_of(table.values, player)


def context_map(
    game: Game, player: int | None = None, *, drawn: int = 100, grown: int = 20, seed: int = 0
) -> Attribution:
    """Find contexts S in which a player's benefit |v(S∪i) − v(S)| is large, and the share of them that others are in.

    The value of player j is p(j|i), the share of the contexts that contain j [ren2023faithful, Alg. 1]. The best of
    some drawn contexts gets more players at random, a tenth of all, many times over. Each of these then gains and
    loses one player at a time as long as the benefit grows. A player that does not matter to i stays as it was drawn.
    Errors of the shares are unknown, and NaN in the result: other seeds may give other contexts.

    Parameters
    ----------
    game : Game
        A game of one sample, of any number of players.
    player : int, optional
        The number of the player i. By default the one with the largest benefit in a drawn context.
    drawn, grown : int
        How many contexts are drawn for a player, and how many grow from the best.
    seed : int, default 0

    Examples
    --------
    >>> game = ab.MaskedModel(lambda rows: rows[:, 0] * rows[:, 1] * (1 - rows[:, 2]), torch.ones(1, 3), absence=0.0)
    >>> ab.context_map(game, 0)
    Attribution: shares of the contexts of x0 (errors unknown) of 1 sample, 3 players; value: the output as it is
      x1  +1
      x0  0
      x2  0
    """
    players = len(game.names)
    if game.samples != 1 or players < 2:
        raise wrong("game", "have one sample and two players or more", f"{game.samples} and {players}")
    check_number("player", player, 0, players - 1)
    check_number("drawn and grown", min(drawn, grown), 1)
    generator, evaluations = seeded(seed), 0

    def benefits(of: int, contexts: Tensor) -> Tensor:
        nonlocal evaluations
        evaluations += 2 * len(contexts) * draws_of(game)
        own = torch.arange(players) == of
        asked = torch.cat([contexts | own, contexts & ~own])
        values = ask(game, asked).detach().double().cpu()
        check_finite(values, torch.zeros(1), asked[None], "values of the game")
        having, without = values[0].chunk(2)
        return (having - without).abs()

    found = []
    for candidate in range(players) if player is None else [player]:
        contexts = torch.rand(drawn, players, generator=generator) < 0.5
        strengths = benefits(candidate, contexts)
        found.append((float(strengths.max()), candidate, contexts[strengths.argmax()]))
    _, player, best = max(found, key=lambda one: one[0])
    taken = best | (torch.arange(players) == player)
    ranks = torch.rand(grown, players, generator=generator).masked_fill(taken, 2.0).argsort(1).argsort(1)
    contexts = best | ((ranks < max(1, players // 10)) & ~taken)
    strengths, growing = benefits(player, contexts), torch.arange(grown)
    while len(growing):
        before = strengths[growing]
        for j in (j for j in range(players) if j != player):
            changed = contexts[growing]
            changed[:, j] ^= True
            tried = benefits(player, changed)
            better = tried > strengths[growing]
            contexts[growing[better]], strengths[growing[better]] = changed[better], tried[better]
        growing = growing[strengths[growing] > before]
    contexts[:, player] = False
    shares = contexts.double().mean(0)[None]
    kind = f"shares of the contexts of {game.names[player]} (errors unknown)"
    return Attribution(shares, shares * math.nan, evaluations, game.names, kind, readout_of(game), "contexts")


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
@torch.inference_mode(False)  # what is kept may be used with a gradient later
def _contexts_by_order(players: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Count the coalitions of each size among the other players."""
    return torch.tensor([math.comb(players - 1, order) for order in range(players)], dtype=dtype, device=device)


def marginal_benefits_of(table: Float[Tensor, "*batch coalitions"], player: int) -> Float[Tensor, "*batch others"]:
    """Subtract the half of a table without a player from the half with it."""
    halves = table.unflatten(-1, (-1, 2, 2**player))
    return (halves[..., 1, :] - halves[..., 0, :]).flatten(-2)


def exact_attribution(
    source: Any, values: Float[Tensor, "samples players"], kind: str, index: Index = "Shapley"
) -> Attribution:
    """Return values without errors as an attribution; the rest is that of the table or the interactions."""
    none = torch.zeros_like(values)
    return Attribution(values, none, source.evaluations, source.names, kind, source.readout, index)


def _pick_orders(by_order: Tensor, orders: Sequence[int] | None) -> Tensor:
    for order in orders or ():
        check_number("orders", order, 0, by_order.shape[-2] - 1)
    return by_order if orders is None else by_order[..., list(orders), :]


def draws_of(game: Game) -> int:
    """Return the rows that the model evaluates for one value of a game."""
    return int(getattr(game, "draws", 1))


def readout_of(game: Game) -> str:
    """Return the description of a game's value."""
    return getattr(game, "readout_note", getattr(game, "readout", "given"))


def sample_shapley(game: Game, evaluations: int, seed: int) -> tuple[Attribution, Tensor, Tensor]:
    """Estimate Shapley values from this many rows for each sample; also return v(∅) and v(N) of the samples."""
    players, draws = len(game.names), draws_of(game)
    least = (MIN_COALITIONS_PER_PLAYER * players + 2) * draws
    if evaluations < least:
        raise wrong("evaluations", f"be at least {least} for {players} players", evaluations)
    generator = seeded(seed)
    strata = draw_strata(players, (evaluations // draws - 2) // 2, generator)
    coalitions = torch.cat([drawn for drawn, _ in strata])
    ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
    asked = torch.cat([ends, coalitions, ~coalitions])
    values = ask(game, asked).double().cpu()
    check_finite(values, torch.arange(len(values)), asked.expand(len(values), -1, -1), "values of the game")
    empty, full = values[:, :1], values[:, 1:2]
    if isinstance(game, MaskedModel):
        game.evaluator.check_full(full[-1, 0], values)
        game.evaluator.check_still_same()
    # A pair enters the regression through its difference alone: the even part of a game has no Shapley values.
    odd = (values[:, 2 : 2 + len(coalitions)] - values[:, 2 + len(coalitions) :]) / 2
    sizes = coalitions.sum(1).double()
    targets = odd - (full - empty) * (sizes / players - 0.5)
    rows = coalitions.double() - sizes[:, None] / players
    share = (full - empty) / players
    *others, estimate = (_solve(rows, targets, one) + share for one in _jackknife_weights(strata, generator))
    spread = torch.stack(others).var(0, correction=0) * (JACKKNIFE_GROUPS - 1)
    if not bool(torch.isfinite(spread).all()):
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{values.abs().max():.3g}")
    spent = game.samples * (2 + 2 * len(coalitions)) * draws
    found = Attribution(estimate, spread.sqrt(), spent, game.names, "sampled Shapley values", readout_of(game))
    return found, empty[:, 0], full[:, 0]


def draw_strata(players: int, pairs: int, generator: torch.Generator) -> list[Stratum]:
    """Distribute the pairs over the sizes 1 … n/2, and draw them without replacement."""
    sizes = range(1, players // 2 + 1)
    totals = [math.comb(players, size) // (2 if 2 * size == players else 1) for size in sizes]
    # Sizes s and n − s share a stratum, so the middle size of an even n has half the leverage of the others.
    leverage = torch.tensor([1.0 if 2 * size < players else 0.5 for size in sizes]).double()
    most = torch.tensor([min(total, pairs) for total in totals]).double()
    # Systematic rounding: whole numbers that add up, each within one of its share.
    reached = share_out(min(pairs, sum(totals)), leverage, most).cumsum(0) + torch.rand(1, generator=generator)
    drawn = torch.cat([torch.zeros(1), (reached + 1e-9).floor()]).diff().long().tolist()
    parts = zip(sizes, drawn, totals, strict=True)
    return [(_draw_pairs(players, size, count, total, generator), total) for size, count, total in parts if count]


def share_out(count: int, weights: Float[Tensor, " parts"], most: Float[Tensor, " parts"]) -> Float[Tensor, " parts"]:
    """Distribute a number in proportion to weights; what exceeds the most that a part takes goes to the others."""
    shares = torch.minimum(weights * count / weights.sum(), most)
    for _ in range(50):
        free, lacking = shares < most, count - float(shares.sum())
        if lacking < 1e-9 or not bool(free.any()):
            break
        shares[free] = torch.minimum(shares[free] * (1 + lacking / float(shares[free].sum())), most[free])
    return shares


def _draw_pairs(players: int, size: int, count: int, total: int, generator: torch.Generator) -> Coalitions:
    """Draw distinct coalitions of one size; of the middle size, those with player 0."""
    if total <= 4 * count:
        members = torch.tensor(list(itertools.islice(itertools.combinations(range(players), size), total)))
        every = torch.zeros(total, players, dtype=torch.bool).scatter(1, members, True)
        return every[torch.randperm(total, generator=generator)[:count]]
    drawn = torch.zeros(0, players, dtype=torch.bool)
    while len(drawn) < count:
        more = draw_coalitions(players, torch.full((count,), size), generator)
        if 2 * size == players:
            more = more ^ ~more[:, :1]
        drawn = torch.cat([drawn, more])
        # Repeated rows are dropped. The others keep their order, because a sorted one would bias the cut.
        _, first = np.unique(np.packbits(drawn.numpy(), axis=1), axis=0, return_index=True)
        drawn = drawn[np.sort(first)]
    return drawn[:count]


def _jackknife_weights(strata: list[Stratum], generator: torch.Generator) -> Float[Tensor, "replicates pairs"]:
    """Weight pairs by the regression's kernel and what they represent; every row but the last leaves a group out."""
    weights, dealt, left_out = [], 0, torch.arange(JACKKNIFE_GROUPS + 1)[:, None]
    for drawn, total in strata:
        (count, players), size, group = drawn.shape, int(drawn[0].sum()), torch.full((len(drawn),), -1)
        if count < total:  # an enumerated stratum has no error and is never left out
            group = (torch.randperm(count, generator=generator) + dealt) % JACKKNIFE_GROUPS
            dealt += count
        kernel, kept = total / (math.comb(players, size) * size * (players - size)), (group != left_out).double()
        weighted = kept * (kernel / kept.sum(1, keepdim=True).clamp_min(1))
        # What is drawn of few pairs has smaller errors than of many: the correction for finite populations.
        weights.append(weighted[-1] + math.sqrt(1 - count / total) * (weighted - weighted[-1]))
    return torch.cat(weights, dim=1)


def _solve(rows: Tensor, targets: Tensor, weights: Float[Tensor, " pairs"]) -> Float[Tensor, "samples players"]:
    """Solve the weighted least squares; the rows add up to 0, so the solution of least norm does too."""
    weighted = rows * weights[:, None]
    # The threshold separates the one zero eigenvalue, which carries rounding errors, from the others.
    return targets @ weighted @ torch.linalg.pinv(weighted.T @ rows, rtol=1e-9, hermitian=True)
