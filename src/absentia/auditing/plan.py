"""The plan of an audit: how many samples, coalition sizes, draws and games to evaluate within a budget of rows.

The plan depends only on the size of the model and on the user's limits. It never depends on the clock, so the same
call gives the same figures on every machine.

If the budget is too small for everything, samples and coalition sizes are reduced first. Draws of a random absence
are reduced last, because the audit would otherwise measure a different absence from the one that `explain` uses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

# The maximum number of samples on which leaks and the masking curve are measured.
MOST_SAMPLES = 500
# The maximum number of coalition sizes on the masking curve.
_MOST_SIZES = 32
# The number of players in a game if there are too many players to evaluate all coalitions.
_GAME_PLAYERS = 12
# If the budget does not allow this many samples on the masking curve, the number of sizes is reduced, ...
_MANY_SAMPLES = 64
# ... to this many.
_FEW_SIZES = 8
# The minimum number of samples in each part of the audit.
_FEWEST_SAMPLES = 16
# The minimum number of players in a game.
_FEWEST_PLAYERS = 4
# The minimum number of draws of the noise in R.
_FEWEST_NOISE_DRAWS = 2
# All absences look alike in games of fewer players than this, so draws are reduced before players.
_FEW_PLAYERS = 8
# A limit on draws that allows all of them.
_ALL_DRAWS = 2**62
# The limits on the draws of a random absence, tried in this order until the plan fits.
_DRAWS = (_ALL_DRAWS, 32, 8, 2)
# Games that follow from leaves take no rows, but some time. Those of R are measured on at most this many samples, ...
_REMOVAL_SAMPLES_OF_LEAVES = 64
# ... and own games on at most this many, ...
_OWN_SAMPLES_OF_LEAVES = 24
# ... with at most this many draws.
_DRAWS_OF_LEAVES = 2
# The share of the rows for fully masked samples.
_SHARE_OF_EMPTY = 1 / 8
# The share of the rows for the masking curve.
_SHARE_OF_CURVE = 1 / 4
# The share of the remaining rows for each method's own games; the rest is for R.
_SHARE_OF_GAMES = 2 / 3


@dataclass(frozen=True)
class MethodRows:
    """What determines how many rows a method needs for one value."""

    draws: int  # the number of stand-ins for each coalition
    fills: int = 1  # the number of classes if each class has its own baseline
    shared: bool = False  # whether all samples share the stand-ins, so that ∅ is evaluated only once

    def of_curve(self, most_draws: int) -> int:
        """Return the number of rows for one coalition of the masking curve."""
        return min(self.draws, most_draws) * self.fills


@dataclass(frozen=True)
class Games:
    """The number of samples, draws and players of games whose coalitions are all evaluated."""

    samples: int
    draws: int
    players: int

    @property
    def coalitions(self) -> int:
        """The total number of coalitions in all games."""
        return self.samples * self.draws << self.players

    def within(self, coalitions: float) -> Games:
        """Return games with at most this many coalitions, or the smallest games allowed."""
        samples = min(self.samples, max(_FEWEST_SAMPLES, int(coalitions / (self.draws << self.players))))
        draws = min(self.draws, max(_FEWEST_NOISE_DRAWS, int(coalitions / (samples << self.players))))
        fitting = math.floor(math.log2(max(1.0, coalitions / (samples * draws))))
        return Games(samples, draws, min(self.players, max(_FEWEST_PLAYERS, fitting)))


@dataclass(frozen=True)
class Plan:
    """The plan for fully masked samples, the masking curve, each method's own games, and the games of R."""

    empty_samples: int  # the number of samples that are fully masked
    samples: int  # the number of samples on the masking curve
    sizes: int  # the number of coalition sizes on the masking curve, without that of all players
    own: Games  # the methods' own games
    removal: Games  # the games of R
    methods: Sequence[MethodRows]
    states: int  # the number of inputs that R compares for a sample: itself, noise, and one for each method
    curve_draws: int = _ALL_DRAWS  # the maximum number of draws on the masking curve
    game_draws: int = _ALL_DRAWS  # the maximum number of draws in own games
    own_from_leaves: bool = False  # whether the own games follow from the leaves of trees, without any rows
    removal_from_leaves: bool = False  # whether the games of R do

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
        """Return the plan without a budget; games of more than ``most`` players are replaced by smaller ones."""
        samples = min(samples, MOST_SAMPLES)
        own = Games(samples, 1, _game_size(players, most))
        removal = Games(samples, draws, _game_size(region, most))
        return cls(samples, samples, min(players, _MOST_SIZES), own, removal, methods, states)

    def from_leaves(self, players: int, region: int) -> Plan:
        """Return the plan for a model whose interactions of all players follow from leaves, however many they are.

        Tables of few players are still evaluated for the methods' own games.
        """
        removal = Games(min(self.samples, _REMOVAL_SAMPLES_OF_LEAVES), self.removal.draws, region)
        plan = replace(self, removal=removal, removal_from_leaves=True)
        if self.own.players == players:
            return plan
        own = Games(min(self.samples, _OWN_SAMPLES_OF_LEAVES), 1, players)
        return replace(plan, own=own, own_from_leaves=True, game_draws=_DRAWS_OF_LEAVES)

    @property
    def fewest_samples(self) -> int:
        """The number of samples in the part of the audit that has the fewest."""
        return min(self.empty_samples, self.samples, self.own.samples, self.removal.samples)

    @property
    def empty_rows(self) -> int:
        """The number of rows for whole samples and fully masked samples."""
        shared = sum(method.draws * method.fills for method in self.methods if method.shared)
        own = sum(method.draws * method.fills for method in self.methods if not method.shared)
        return shared + self.empty_samples * (1 + own)

    @property
    def curve_rows(self) -> int:
        """The number of rows for one sample on the masking curve: the whole sample, and a coalition of each size."""
        return 1 + self.sizes * sum(method.of_curve(self.curve_draws) for method in self.methods)

    @property
    def game_rows(self) -> int:
        """The number of rows for one coalition in all methods' own games."""
        return sum(min(method.draws, self.game_draws) for method in self.methods)

    @property
    def own_game_rows(self) -> int:
        """The number of rows for one sample's own games."""
        return 0 if self.own_from_leaves else self.game_rows << self.own.players

    @property
    def removal_rows(self) -> int:
        """The number of rows for one sample and draw of R."""
        return 0 if self.removal_from_leaves else self.states << self.removal.players

    @property
    def rows(self) -> int:
        """The total number of rows that the model evaluates."""
        games = self.own.samples * self.own.draws * self.own_game_rows
        games += self.removal.samples * self.removal.draws * self.removal_rows
        return self.empty_rows + self.samples * self.curve_rows + games

    def within(self, rows: int) -> Plan:
        """Return a plan with at most this many rows, or the smallest plan, which may still need more."""
        if self.rows <= rows:
            return self
        plan = self._empty_within(rows * _SHARE_OF_EMPTY)._curve_within(rows * _SHARE_OF_CURVE)
        left = rows - plan.empty_rows - plan.samples * plan.curve_rows
        if plan.own_from_leaves:
            plan = replace(plan, own=replace(plan.own, samples=min(plan.own.samples, plan.samples)))
        else:
            plan = plan._games_within(left * _SHARE_OF_GAMES)
        left -= plan.own.samples * plan.own.draws * plan.own_game_rows
        removal = replace(self.removal, samples=min(self.removal.samples, plan.samples))
        if not plan.removal_from_leaves:
            removal = replace(self.removal, samples=plan.samples).within(left / self.states)
        return replace(plan, removal=removal)

    def _empty_within(self, rows: float) -> Plan:
        """Return the plan with as many fully masked samples as this many rows allow."""
        shared = replace(self, empty_samples=0).empty_rows
        each = replace(self, empty_samples=1).empty_rows - shared
        fitting = int((rows - shared) / each)
        return replace(self, empty_samples=min(self.empty_samples, max(_FEWEST_SAMPLES, fitting)))

    def _curve_within(self, rows: float) -> Plan:
        """Fit the masking curve into this many rows by reducing its sizes, then its samples, then its draws."""
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
        """Fit the own games into this many rows by reducing samples, then players, then draws, then players again."""
        games = replace(self.own, samples=self.samples)
        for most_draws in _DRAWS:
            plan = replace(self, game_draws=most_draws)
            plan = replace(plan, own=games.within(rows / plan.game_rows))
            fits = plan.own.coalitions * plan.game_rows <= rows
            if fits and plan.own.players >= min(games.players, _FEW_PLAYERS):
                break
        return plan


def _game_size(players: int, most: int) -> int:
    """Return the number of players in a game: all of them, or as many as a game of drawn players has."""
    if players <= most:
        return players
    return min(_GAME_PLAYERS, most)
