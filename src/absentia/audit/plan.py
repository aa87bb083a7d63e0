"""The plan of an audit: how many samples, draws and players its parts can afford within a number of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

# The masking curve is measured on at most this many samples, and at about this many sizes of coalitions.
MOST_SAMPLES, MOST_SIZES = 500, 32
# A random absence is audited with at most this many of its draws, and with this many if rows are scarce.
MOST_DRAWS, FEW_DRAWS = 32, 8
# The number of players of a drawn game, if there are too many for all their coalitions.
_GAME_PLAYERS = 12
# Scarce rows are saved down to these: sizes below this many samples, then samples, draws, and players of a game.
_MANY_SAMPLES, _FEW_SIZES = 64, 8
_FEWEST_SAMPLES, _FEWEST_DRAWS, _FEWEST_PLAYERS = 16, 2, 4


@dataclass(frozen=True)
class Games:
    """Games of which all coalitions are evaluated: how many samples, draws for each, and players."""

    samples: int
    draws: int
    players: int

    @property
    def coalitions(self) -> int:
        """The number of coalitions of all games."""
        return self.samples * self.draws << self.players

    def within(self, coalitions: float) -> Games:
        """Return smaller games with at most this many coalitions, if they can be so small."""
        found = self
        for part, least in (("samples", _FEWEST_SAMPLES), ("draws", _FEWEST_DRAWS)):
            now = getattr(found, part)
            fitting = int(coalitions * now // found.coalitions)
            found = replace(found, **{part: min(now, max(least, fitting))})
        fitting = math.floor(math.log2(max(1.0, coalitions / (found.samples * found.draws))))
        return replace(found, players=min(found.players, max(_FEWEST_PLAYERS, fitting)))


@dataclass(frozen=True)
class Plan:
    """What an audit evaluates: the masking curve, each method's own games, and the games of R."""

    samples: int  # of the masking curve
    sizes: int  # of coalitions, besides that of all players
    most_draws: int  # of a random absence
    own: Games
    removal: Games
    own_draws: int  # draws of all methods together
    states: int  # of a sample that R compares: itself, noise, and each method

    @property
    def rows(self) -> int:
        """The number of rows that the model evaluates."""
        return (
            self.samples * (1 + self.sizes * self.own_draws)
            + self.own.coalitions * self.own_draws
            + self.removal.coalitions * self.states
        )


def make_plan(
    samples: int, players: int, region: int, draws_of: Sequence[int], states: int, draws: int, max_players: int
) -> Plan:
    """Plan an audit without a limit; ``draws_of`` are the draws of each method."""
    samples, game = min(samples, MOST_SAMPLES), min(_GAME_PLAYERS, max_players)
    own = Games(samples, 1, players if players <= max_players else game)
    removal = Games(samples, draws, region if region <= max_players else game)
    own_draws = sum(min(one, MOST_DRAWS) for one in draws_of)
    return Plan(samples, min(players, MOST_SIZES), MOST_DRAWS, own, removal, own_draws, states)


def reduce_plan(plan: Plan, draws_of: Sequence[int], rows: int) -> Plan:
    """Reduce a plan to a number of rows, a quarter for the curve and the rest in halves, or to the least it takes."""
    if plan.rows <= rows:
        return plan
    own_draws = sum(min(one, FEW_DRAWS) for one in draws_of)
    sizes, samples = plan.sizes, int(rows / 4 // (1 + plan.sizes * own_draws))
    if samples < min(plan.samples, _MANY_SAMPLES):
        sizes = min(sizes, _FEW_SIZES)
        samples = int(rows / 4 // (1 + sizes * own_draws))
    samples = min(plan.samples, max(_FEWEST_SAMPLES, samples))
    left = rows - samples * (1 + sizes * own_draws)
    own = replace(plan.own, samples=min(samples, plan.own.samples)).within(left / 2 / own_draws)
    left -= own.coalitions * own_draws
    removal = replace(plan.removal, samples=min(samples, plan.removal.samples)).within(left / plan.states)
    return replace(plan, samples=samples, sizes=sizes, most_draws=FEW_DRAWS, own=own, removal=removal,
                   own_draws=own_draws)  # fmt: skip
