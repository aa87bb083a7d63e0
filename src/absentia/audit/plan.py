"""The plan of an audit: how many samples, draws and players its parts can afford within a number of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

# The masking curve is measured on at most this many samples, and at about this many sizes of coalitions.
_MOST_SAMPLES, _MOST_SIZES = 500, 32
# A random absence is audited with at most this many of its draws, and with this many if rows are scarce.
_MOST_DRAWS, _FEW_DRAWS = 32, 8
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
        samples = min(self.samples, max(_FEWEST_SAMPLES, int(coalitions / (self.draws << self.players))))
        draws = min(self.draws, max(_FEWEST_DRAWS, int(coalitions / (samples << self.players))))
        fitting = math.floor(math.log2(max(1.0, coalitions / (samples * draws))))
        return Games(samples, draws, min(self.players, max(_FEWEST_PLAYERS, fitting)))


@dataclass(frozen=True)
class Plan:
    """What an audit evaluates: the masking curve, each method's own games, and the games of R."""

    samples: int  # of the masking curve
    sizes: int  # of coalitions, besides that of all players
    own: Games
    removal: Games
    draws_of: Sequence[int]  # the draws of each method
    states: int  # of a sample that R compares: itself, noise, and each method
    most_draws: int = _MOST_DRAWS  # of a random absence

    @classmethod
    def of(
        cls, samples: int, players: int, region: int, draws: int, most: int, draws_of: Sequence[int], states: int
    ) -> Plan:
        """Plan an audit without a limit, but that of ``most`` players for all coalitions."""
        samples, sizes = min(samples, _MOST_SAMPLES), min(players, _MOST_SIZES)
        own, masked = (size if size <= most else min(_GAME_PLAYERS, most) for size in (players, region))
        return cls(samples, sizes, Games(samples, 1, own), Games(samples, draws, masked), draws_of, states)

    @property
    def draws(self) -> int:
        """The number of draws of all methods together."""
        return sum(min(draws, self.most_draws) for draws in self.draws_of)

    @property
    def curve_rows(self) -> int:
        """The rows of each sample of the masking curve."""
        return 1 + self.sizes * self.draws

    @property
    def rows(self) -> int:
        """The number of rows that the model evaluates."""
        games = self.own.coalitions * self.draws + self.removal.coalitions * self.states
        return self.samples * self.curve_rows + games

    def within(self, rows: int) -> Plan:
        """Return a plan of at most this many rows: a quarter for the curve, the rest in halves; or the least plan."""
        if self.rows <= rows:
            return self
        plan = replace(self, most_draws=_FEW_DRAWS)
        if rows / 4 < min(self.samples, _MANY_SAMPLES) * plan.curve_rows:
            plan = replace(plan, sizes=min(self.sizes, _FEW_SIZES))
        samples = min(self.samples, max(_FEWEST_SAMPLES, int(rows / 4 / plan.curve_rows)))
        left = rows - samples * plan.curve_rows
        own = replace(self.own, samples=samples).within(left / 2 / plan.draws)
        left -= own.coalitions * plan.draws
        removal = replace(self.removal, samples=samples).within(left / self.states)
        return replace(plan, samples=samples, own=own, removal=removal)
