"""The contexts in which a player matters most [ren2023faithful, Alg. 1]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.arguments import checked
from absentia.attributions import Attribution
from absentia.coalitions import Coalitions
from absentia.data import check_number, seeded
from absentia.errors import wrong
from absentia.evaluation import check_finite
from absentia.games import Game, RowMeter, ask, draws_of, readout_of


@checked
def context_map(
    game: Game, player: int | None = None, *, drawn: int = 100, grown: int = 20, seed: int = 0
) -> Attribution:
    """Find contexts S in which a player's benefit |v(S∪i) − v(S)| is large, and how often they contain each player.

    The value of player j is p(j|i), the share of the contexts that contain j [ren2023faithful, Alg. 1]. First, the
    best of some drawn contexts is extended by a tenth of all players at random, many times. Each of the resulting
    contexts then gains or loses one player at a time as long as the benefit grows. A player that does not matter to i
    stays as it was drawn. The errors of the shares are unknown and therefore NaN. Other seeds may give other
    contexts.

    Parameters
    ----------
    game : Game
        A game of one sample, of any number of players.
    player : int, optional
        The number of the player i. The default is the player with the largest benefit in a drawn context.
    drawn, grown : int
        The number of contexts to draw for a player, and the number to grow from the best one.
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
    generator = seeded(seed)
    meter = RowMeter.start(game)
    benefits = _Benefits(game)
    start = _best_context(benefits, range(players) if player is None else [player], drawn, generator)
    contexts = _grow(benefits, start.player, _enlarge(start, grown, generator))
    contexts[:, start.player] = False
    shares = contexts.double().mean(0)[None]
    unknown = torch.full_like(shares, torch.nan)
    kind = f"shares of the contexts of {game.names[start.player]} (errors unknown)"
    return Attribution(
        shares,
        unknown,
        benefits.evaluations,
        game.names,
        kind,
        readout_of(game),
        "contexts",
        rows_seen=meter.rows_seen,
    )


@dataclass
class _Benefits:
    """The strengths |v(S∪i) − v(S)| of a game, and the number of rows evaluated for them."""

    game: Game
    evaluations: int = 0

    def __call__(self, player: int, contexts: Coalitions) -> Float[Tensor, " contexts"]:
        """Return the strength of a player's benefit in each context."""
        self.evaluations += 2 * len(contexts) * draws_of(self.game)
        own = torch.arange(len(self.game.names)) == player
        asked = torch.cat([contexts | own, contexts & ~own])
        values = ask(self.game, asked).detach().double().cpu()
        check_finite(values, torch.zeros(1), asked[None], "values of the game")
        having, without = values[0].chunk(2)
        return (having - without).abs()


class _Start(NamedTuple):
    """The drawn context in which a player's benefit is largest."""

    strength: float
    player: int
    context: Bool[Tensor, " players"]


def _best_context(benefits: _Benefits, candidates: Iterable[int], drawn: int, generator: torch.Generator) -> _Start:
    """Draw contexts for each candidate, and return the one with the largest benefit of all."""
    players = len(benefits.game.names)
    starts = []
    for player in candidates:
        contexts = torch.rand(drawn, players, generator=generator) < 0.5
        strengths = benefits(player, contexts)
        starts.append(_Start(float(strengths.max()), player, contexts[strengths.argmax()]))
    return max(starts, key=lambda start: start.strength)


def _enlarge(start: _Start, count: int, generator: torch.Generator) -> Coalitions:
    """Return copies of the best context, each extended by a tenth of all players, drawn at random."""
    players = len(start.context)
    taken = start.context | (torch.arange(players) == start.player)
    ranks = torch.rand(count, players, generator=generator).masked_fill(taken, 2.0).argsort(1).argsort(1)
    return start.context | ((ranks < max(1, players // 10)) & ~taken)


def _grow(benefits: _Benefits, player: int, contexts: Coalitions) -> Coalitions:
    """Add or remove one other player at a time in each context, as long as the benefit grows."""
    strengths = benefits(player, contexts)
    growing = torch.arange(len(contexts))
    while len(growing):
        before = strengths[growing]
        for other in range(contexts.shape[1]):
            if other == player:
                continue
            changed = contexts[growing]
            changed[:, other] ^= True
            changed_strengths = benefits(player, changed)
            better = changed_strengths > strengths[growing]
            contexts[growing[better]] = changed[better]
            strengths[growing[better]] = changed_strengths[better]
        growing = growing[strengths[growing] > before]
    return contexts
