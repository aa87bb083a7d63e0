"""The sets of players behind interactions, as player numbers.

Terms are either a full table of 2ⁿ effects or a list of sets. Plots and reports use the functions of this module,
which work for both and leave out ∅.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.terms import Terms
from absentia.terms_in_words import WALSH
from absentia.walsh import parity

# The most players that matrices and graphs have room for.
MOST_PLAYERS = 48


class PlayerSet(NamedTuple):
    """An interaction to draw: the numbers of its players, and its effect."""

    players: tuple[int, ...]
    effect: float
    measurable: bool = True  # whether the effect exceeds the errors of the values
    error: float = 0.0  # its standard error: 0 for an exact effect, NaN if unknown

    @property
    def determined(self) -> bool:
        """Whether the effect is at least as large as its standard error, or the error is unknown."""
        return not self.error > abs(self.effect)


class Ends(NamedTuple):
    """The values of a sample with all players absent and with all present."""

    base: float
    output: float


class NumberedSets(NamedTuple):
    """The sets of one sample: their effects and orders, and the players of each by its position."""

    effects: Float[Tensor, " sets"]
    errors: Float[Tensor, " sets"]  # standard errors: 0 for exact effects, NaN if unknown
    measurable: Bool[Tensor, " sets"]  # whether the effect exceeds the errors of the values
    orders: Int[Tensor, " sets"]  # the number of players in each set
    players_in: Callable[[int], tuple[int, ...]]


def sets_of_sample(terms: Terms, sample: int) -> NumberedSets:
    """Return all sets of a sample, including ∅, without writing out those of a full table."""
    sample_terms = terms.only(sample)
    effects = sample_terms.effects.detach().flatten().cpu()
    errors = torch.zeros_like(effects) if sample_terms.errors is None else sample_terms.errors.flatten().cpu()
    measurable = sample_terms.measurable.flatten().cpu()
    return NumberedSets(effects, errors, measurable, sample_terms.orders.cpu(), sample_terms.held.players_in)


def count_sets(terms: Terms, sample: int = 0) -> int:
    """Return the number of sets of players that have an effect in a sample."""
    return int((terms.only(sample).orders > 0).sum())


def ends_of(terms: Terms, sample: int) -> Ends | None:
    """Return v(∅) and v(N), the sum of all effects; None if the effects do not add up to v(N)."""
    if not terms.adds_up:
        return None
    sets = sets_of_sample(terms, sample)
    base = sets.effects[sets.orders == 0].sum()
    if terms.basis == WALSH:
        base = (parity(sets.orders) * sets.effects).sum()
    return Ends(base=float(base), output=float(sets.effects.sum()))


def largest_order(terms: Terms) -> int:
    """Return the number of players in the largest set, at least 1."""
    return max(1, terms.held.largest_order)


def ranked_strengths(terms: Terms, sample: int) -> Float[Tensor, " sets"]:
    """Return the strengths |U| of a sample in descending order."""
    sets = sets_of_sample(terms, sample)
    return sets.effects[sets.orders > 0].abs().sort(descending=True).values


def count_salient(terms: Terms, sample: int) -> int:
    """Return the number of salient sets of a sample."""
    own = terms.only(sample)
    return int((own.salient() & (own.orders > 0)).sum())


def strongest_sets(terms: Terms, sample: int, count: int) -> list[PlayerSet]:
    """Return the sets of a sample with the largest |U|, strongest first.

    `Terms.top` returns the same with the names of players. These are ambiguous if a word occurs twice in a text.

    Examples
    --------
    >>> strongest_sets(ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])), sample=0, count=1)
    [PlayerSet(players=(0, 1), effect=6.0, measurable=True, error=0.0)]
    """
    sets = sets_of_sample(terms, sample)
    places = (sets.orders > 0).nonzero()[:, 0]
    strength = sets.effects[places].abs()
    strongest = places[strength.topk(min(count, len(places))).indices]
    return [
        PlayerSet(
            sets.players_in(place),
            float(sets.effects[place]),
            bool(sets.measurable[place]),
            float(sets.errors[place]),
        )
        for place in strongest.tolist()
    ]


def sets_with_room(sets: list[PlayerSet], most: int = MOST_PLAYERS) -> list[PlayerSet]:
    """Return the strongest sets that fit into a matrix or graph, which has room for a limited number of players.

    Examples
    --------
    >>> sets_with_room([PlayerSet((0, 1, 2), 5.0), PlayerSet((0, 3), 4.0), PlayerSet((3,), 1.0)], most=2)
    [PlayerSet(players=(0, 3), effect=4.0, measurable=True, error=0.0), ...(players=(3,), effect=1.0, ...)]
    """
    players: set[int] = set()
    fitting = []
    for candidate in sets:
        joined = players.union(candidate.players)
        if len(joined) <= most:
            players = joined
            fitting.append(candidate)
    return fitting
