"""Budgets: how many rows to evaluate for each sample of an explanation, by the time that they take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from absentia.evaluation.rounding import MOST_MEASURED
from absentia.games import MAX_PLAYERS
from absentia.solvers.few_terms import COALITIONS, COALITIONS_PER_PLAYER
from absentia.solvers.paired_draws import MIN_COALITIONS_PER_PLAYER
from absentia.text import count_of, duration

# The model of an explanation may take this long, in seconds, where the user set no limit of any kind.
MINUTE = 60.0
# More coalitions than these are drawn only up to this many entries, because their fit takes time as well.
_MOST_ENTRIES = 2**21
# Without a time limit, more coalitions than this, or than the usual number, are not drawn for slow models: errors are
# small by then, and fall slowly.
_MOST_WITHOUT_LIMIT = 2**13
# Fits make do with this many times fewer coalitions, so without fits there must be as many times more.
_WORTH_OF_FITS = 16
# The share of a time limit that the model may take. The rest is for the fit, and for work that takes longer.
_SHARE_OF_LIMIT = 0.8
# Standard errors of Shapley values, as a share of their range, are usually below the number of players over that of
# coalitions, in the models of benchmarks/sampling.py; and with many coalitions below this times its root.
_USUAL_ERROR_OF_MANY = 0.07
# Work is announced if it takes at least this long, in seconds.
LONG = 10.0


class BudgetReason(str, Enum):
    """What decided on a budget."""

    ALL = "all coalitions"  # nothing: they are evaluated in any case
    EVALUATIONS = "evaluations"  # the user's number of rows
    PLAYERS = "players"  # they are too many for all coalitions
    MINUTE = "a minute"  # the usual number of coalitions would take longer
    LIMIT = "time limit"  # the user's


# From the number of drawn coalitions of each sample to the seconds that fits take.
FitTime: TypeAlias = Callable[[int], float]


def no_fit(coalitions: int) -> float:
    """Return the time that a fit takes if there is none."""
    return 0.0


@dataclass(frozen=True)
class Work:
    """The size of an explanation, and the time that each row takes."""

    players: int
    draws: int
    samples: int
    seconds_per_row: float
    fit: FitTime = field(default=no_fit, compare=False)  # of all samples, by the number of drawn coalitions

    @property
    def all_coalitions(self) -> int:
        """The number of all coalitions of a sample."""
        return 2**self.players

    @property
    def usual_coalitions(self) -> int:
        """The number of coalitions to draw if there are too many players for all of them."""
        return max(COALITIONS, COALITIONS_PER_PLAYER * self.players)

    @property
    def fewest_coalitions(self) -> int:
        """The number of coalitions that sampled values need at least."""
        return MIN_COALITIONS_PER_PLAYER * self.players + 2

    @property
    def most_coalitions(self) -> int:
        """The number of coalitions beyond which no more are drawn for more time."""
        return max(self.usual_coalitions, _MOST_ENTRIES // self.players)

    @property
    def most_without_limit(self) -> int:
        """The number of coalitions beyond which no more are drawn if the user set no time limit."""
        return max(self.usual_coalitions, _MOST_WITHOUT_LIMIT)

    def usual_error(self, coalitions: int) -> float:
        """Return the share of the values' range below which errors usually are; the model decides what they are."""
        ratio = self.players / coalitions
        return min(1.0, max(ratio, _USUAL_ERROR_OF_MANY * math.sqrt(ratio)))

    def usual_error_in_words(self, coalitions: int) -> str:
        """Say below which share of the values' range standard errors usually are."""
        besides = ", besides those of the absence's draws" if self.draws > 1 else ""
        percents = 100 * self.usual_error(coalitions)
        digits = f"{percents:.0f}" if percents >= 1 else f"{percents:.1g}"
        return f"errors usually below {digits} % of the values' range{besides}"

    def rows(self, coalitions: int) -> int:
        """Return the number of rows that this many coalitions of every sample take."""
        return coalitions * self.draws * self.samples

    def seconds(self, coalitions: int) -> float:
        """Return the time that this many coalitions of every sample take."""
        try:
            return self.rows(coalitions) * self.seconds_per_row
        except OverflowError:  # of more than a thousand players
            return math.inf

    @property
    def seconds_of_all(self) -> float:
        """The time that all coalitions of every sample take, with the check of their rounding errors."""
        return self.seconds(self.all_coalitions + MOST_MEASURED)

    def coalitions_within(self, seconds: float, most: int | None = None) -> int:
        """Return how many coalitions of every sample fit this time: a power of two, but no fewer than are needed.

        Fits are left out if the time allows many more coalitions without them.
        """
        most = self.most_coalitions if most is None else most
        with_fits = self._power_within(seconds, most, self.fit)
        without = self._power_within(seconds, most, no_fit)
        fits = self.seconds(with_fits) + self.fit(with_fits) <= seconds
        if fits and with_fits * _WORTH_OF_FITS >= without:
            return max(self.fewest_coalitions, with_fits)
        return max(self.fewest_coalitions, without)

    def _power_within(self, seconds: float, most: int, fit: FitTime) -> int:
        """Return the largest power of two, of at most so many coalitions, that fits the time; 1 if none does."""
        power = 2 ** (max(1, most).bit_length() - 1)
        while power > 1 and self.seconds(power) + fit(power) > seconds:
            power //= 2
        return power

    def seconds_with_fits(self, coalitions: int) -> float:
        """Return the time that so many drawn coalitions of every sample take, with their fits."""
        return self.seconds(coalitions) + self.fit(coalitions)


@dataclass(frozen=True)
class Budget:
    """How many rows to evaluate for each sample, and why."""

    work: Work
    reason: BudgetReason
    evaluations: int | None = None  # the rows of drawn coalitions; None for all coalitions
    limit: float | None = None  # the user's time limit, in seconds

    @property
    def coalitions(self) -> int:
        """The number of coalitions of each sample."""
        if self.evaluations is None:
            return self.work.all_coalitions
        return self.evaluations // self.work.draws

    @property
    def seconds(self) -> float:
        """The estimated time for all samples."""
        if self.evaluations is None:
            return self.work.seconds_of_all
        return self.work.seconds(self.coalitions)

    @property
    def is_by_time(self) -> bool:
        """Whether the time that the model takes decided on the number of drawn coalitions."""
        return self.evaluations is not None and self.reason in (BudgetReason.MINUTE, BudgetReason.LIMIT)

    @property
    def why(self) -> str:
        """Why coalitions are drawn, as the beginning of a sentence."""
        work = self.work
        if self.reason is BudgetReason.EVALUATIONS:
            return "As requested"
        if self.reason is BudgetReason.LIMIT:
            return f"To end within {self.limit:g} s"
        if self.reason is BudgetReason.PLAYERS or work.players > MAX_PLAYERS:
            return f"{work.players} players are too many for all 2^{work.players} coalitions"
        return f"All {work.all_coalitions:,} coalitions would take about {duration(work.seconds_of_all)}"

    @property
    def how_to_repeat(self) -> str:
        """How to get the same result again, if the time that the model takes decided; else nothing."""
        if not self.is_by_time:
            return ""
        return (
            "Their number was chosen by the time that the model takes: "
            f"explain(…, evaluations={self.evaluations}) repeats this."
        )

    @property
    def announcement(self) -> str:
        """How long the work will take, and what would take less or more time; nothing for short work."""
        if self.seconds < LONG:
            return ""
        work = self.work
        needed = self.seconds if self.evaluations is None else self.work.seconds_with_fits(self.coalitions)
        coalitions = f"{self.coalitions:,} coalitions"
        if self.evaluations is None:
            coalitions = f"all {coalitions}"
        if work.samples > 1:
            coalitions += f" of each of {count_of(work.samples, 'sample')}"
        if self.evaluations is not None:
            coalitions += f", with {work.usual_error_in_words(self.coalitions)}"
        return f"explaining takes about {duration(needed)} by {coalitions}{self._alternative()}."

    def _alternative(self) -> str:
        """Say how long fewer coalitions would take if these take long, or all of them if the time decided."""
        work = self.work
        if self.is_by_time and work.players <= MAX_PLAYERS:
            return f"; all {work.all_coalitions:,} would take about {duration(work.seconds_of_all)}"
        fewer = work.coalitions_within(MINUTE, work.most_without_limit)
        if self.is_by_time or self.seconds <= MINUTE or fewer >= self.coalitions:
            return ""
        needed = duration(work.seconds_with_fits(fewer))
        error = work.usual_error_in_words(fewer)
        return f"; about {needed} by {fewer:,}, with {error} (evaluations={fewer * work.draws})"


def smaller_budget(budget: Budget, seconds: float, seconds_per_row: float) -> Budget:
    """Return a budget that fits the seconds that are left, after one that took longer than estimated."""
    work = replace(budget.work, seconds_per_row=max(seconds_per_row, budget.work.seconds_per_row))
    coalitions = work.coalitions_within(_SHARE_OF_LIMIT * seconds)
    return Budget(work, BudgetReason.LIMIT, coalitions * work.draws, budget.limit)


def choose_budget(
    work: Work,
    *,
    evaluations: int | None = None,
    seconds: float | None = None,
    spent: float = 0.0,
    max_players: int = MAX_PLAYERS,
) -> Budget:
    """Choose how many rows to evaluate for each sample.

    1. ``evaluations`` decide, if the user passed them. As many rows as all coalitions take are all coalitions.
    2. Up to ``max_players`` players, all coalitions are evaluated if they fit the time. With more players, the usual
       number of coalitions is drawn if it fits a minute.
    3. Otherwise as many coalitions are drawn as fit the time, rounded down to a power of two.

    The time is what is left of the user's ``seconds`` after those that are ``spent``, or a minute if the user passed
    none. Infinitely many seconds let everything fit.

    >>> budget = choose_budget(Work(players=18, draws=1, samples=1, seconds_per_row=0.005))
    >>> for part in budget.announcement.split("; "):
    ...     print(part)
    explaining takes about 41 s by 8,192 coalitions, with errors usually below 0.3 % of the values' range
    all 262,144 would take about 22 min.
    """
    all_rows = work.all_coalitions * work.draws
    if evaluations is not None:
        if evaluations >= all_rows:
            return Budget(work, BudgetReason.ALL, None, seconds)
        return Budget(work, BudgetReason.EVALUATIONS, evaluations, seconds)
    time = MINUTE if seconds is None else _SHARE_OF_LIMIT * (seconds - spent)
    reason = BudgetReason.MINUTE if seconds is None else BudgetReason.LIMIT
    if work.players <= max_players and work.seconds_of_all <= time:
        return Budget(work, BudgetReason.ALL, None, seconds)
    most = work.most_without_limit if seconds is None else work.most_coalitions
    coalitions = work.coalitions_within(time, most)
    usual_fit = work.seconds(work.usual_coalitions) <= time
    wants_usual = seconds is None or math.isinf(seconds)
    if work.players > max_players and usual_fit and wants_usual:
        coalitions = work.usual_coalitions
        reason = BudgetReason.PLAYERS
    if coalitions >= work.all_coalitions:
        return Budget(work, BudgetReason.ALL, None, seconds)
    return Budget(work, reason, coalitions * work.draws, seconds)
