"""What an audit evaluates: how many samples, sizes, draws and games fit into a number of rows.

The plan depends on the model's size and the user's limits alone, never on a clock, so that the same call gives the
same figures on every machine. Rows are saved in samples and sizes first. Draws of a random absence come last: with
fewer of them another absence would be audited than the one that explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

# The masking curve and leaks are measured on at most this many samples, at about this many sizes of coalitions.
MOST_SAMPLES = 500
_MOST_SIZES = 32
# The number of players of a drawn game, if there are too many for all their coalitions.
_GAME_PLAYERS = 12
# Scarce rows are saved down to these: sizes below this many samples, then samples, players of a game, draws.
_MANY_SAMPLES = 64
_FEW_SIZES = 8
_FEWEST_SAMPLES = 16
_FEWEST_PLAYERS = 4
_FEWEST_NOISE_DRAWS = 2
# Smaller games look alike for all absences: rather than play them, fewer draws are used.
_FEW_PLAYERS = 8
# How many draws of a random absence are used at most, from all of them to the fewest.
_ALL_DRAWS = 2**62
_DRAWS = (_ALL_DRAWS, 32, 8, 2)
# The shares of the rows: for fully masked samples, for the masking curve, and of the rest for own games.
_SHARE_OF_EMPTY = 1 / 8
_SHARE_OF_CURVE = 1 / 4
_SHARE_OF_GAMES = 2 / 3


@dataclass(frozen=True)
class MethodRows:
    """How many rows a method takes for one value."""

    draws: int  # of its stand-ins
    fills: int = 1  # as many as classes if each class has a baseline of its own
    shared: bool = False  # whether all samples share the stand-ins, so that ∅ is evaluated once

    def of_curve(self, most_draws: int) -> int:
        """Return the rows of one coalition of the masking curve."""
        return min(self.draws, most_draws) * self.fills


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
        draws = min(self.draws, max(_FEWEST_NOISE_DRAWS, int(coalitions / (samples << self.players))))
        fitting = math.floor(math.log2(max(1.0, coalitions / (samples * draws))))
        return Games(samples, draws, min(self.players, max(_FEWEST_PLAYERS, fitting)))


@dataclass(frozen=True)
class Plan:
    """What an audit evaluates: fully masked samples, the masking curve, each method's own games, and those of R."""

    empty_samples: int  # that are fully masked
    samples: int  # of the masking curve
    sizes: int  # of coalitions, besides that of all players
    own: Games
    removal: Games
    methods: Sequence[MethodRows]
    states: int  # of a sample that R compares: itself, noise, and each method
    curve_draws: int = _ALL_DRAWS  # of a random absence, at most
    game_draws: int = _ALL_DRAWS

    @classmethod
    def of(
        cls,
        samples: int,
        players: int,
        region: int,
        draws: int,
        most: int,
        methods: Sequence[MethodRows],
        states: int,
    ) -> Plan:
        """Plan an audit without a limit, but that of ``most`` players for all coalitions."""
        samples = min(samples, MOST_SAMPLES)
        own = Games(samples, 1, _game_size(players, most))
        removal = Games(samples, draws, _game_size(region, most))
        return cls(samples, samples, min(players, _MOST_SIZES), own, removal, methods, states)

    @property
    def fewest_samples(self) -> int:
        """The number of samples of the part that has the fewest."""
        return min(self.empty_samples, self.samples, self.own.samples, self.removal.samples)

    @property
    def empty_rows(self) -> int:
        """The rows of whole samples and of fully masked ones."""
        shared = sum(method.draws * method.fills for method in self.methods if method.shared)
        own = sum(method.draws * method.fills for method in self.methods if not method.shared)
        return shared + self.empty_samples * (1 + own)

    @property
    def curve_rows(self) -> int:
        """The rows of one sample of the masking curve: the whole sample, and a coalition of each size."""
        return 1 + self.sizes * sum(method.of_curve(self.curve_draws) for method in self.methods)

    @property
    def game_rows(self) -> int:
        """The rows of one coalition of the methods' own games."""
        return sum(min(method.draws, self.game_draws) for method in self.methods)

    @property
    def rows(self) -> int:
        """The number of rows that the model evaluates."""
        games = self.own.coalitions * self.game_rows + self.removal.coalitions * self.states
        return self.empty_rows + self.samples * self.curve_rows + games

    def within(self, rows: int) -> Plan:
        """Return a plan of at most this many rows; or the least plan, which may take more."""
        if self.rows <= rows:
            return self
        plan = self._empty_within(rows * _SHARE_OF_EMPTY)._curve_within(rows * _SHARE_OF_CURVE)
        left = rows - plan.empty_rows - plan.samples * plan.curve_rows
        plan = plan._games_within(left * _SHARE_OF_GAMES)
        left -= plan.own.coalitions * plan.game_rows
        removal = replace(self.removal, samples=plan.samples).within(left / self.states)
        return replace(plan, removal=removal)

    def _empty_within(self, rows: float) -> Plan:
        """Return the plan with as many fully masked samples as fit."""
        shared = replace(self, empty_samples=0).empty_rows
        each = replace(self, empty_samples=1).empty_rows - shared
        fitting = int((rows - shared) / each)
        return replace(self, empty_samples=min(self.empty_samples, max(_FEWEST_SAMPLES, fitting)))

    def _curve_within(self, rows: float) -> Plan:
        """Return the plan with fewer sizes, then samples, then draws on the masking curve."""
        for most_draws in _DRAWS:
            plan = replace(self, curve_draws=most_draws)
            if min(self.empty_samples, _MANY_SAMPLES) * plan.curve_rows > rows:
                plan = replace(plan, sizes=min(self.sizes, _FEW_SIZES))
            fitting = max(_FEWEST_SAMPLES, int(rows / plan.curve_rows))
            plan = replace(plan, samples=min(self.empty_samples, fitting))
            if plan.samples * plan.curve_rows <= rows:
                break
        return plan

    def _games_within(self, rows: float) -> Plan:
        """Return the plan with own games of fewer samples, then players, then draws, then players again."""
        games = replace(self.own, samples=self.samples)
        for most_draws in _DRAWS:
            plan = replace(self, game_draws=most_draws)
            plan = replace(plan, own=games.within(rows / plan.game_rows))
            fits = plan.own.coalitions * plan.game_rows <= rows
            if fits and plan.own.players >= min(games.players, _FEW_PLAYERS):
                break
        return plan


def _game_size(players: int, most: int) -> int:
    """Return the number of players of a game: all, or as many as games of drawn players have."""
    if players <= most:
        return players
    return min(_GAME_PLAYERS, most)
