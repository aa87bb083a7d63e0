"""The sets of players that interactions belong to, with the numbers of their players.

Terms are a full table of 2ⁿ effects or a list of sets. Only this module asks which; plots and reports call its
functions, which leave out ∅.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import coalition_members
from absentia.terms import Terms


class PlayerSet(NamedTuple):
    """An interaction as it is drawn: the numbers of its players, and its effect."""

    players: tuple[int, ...]
    effect: float


class NumberedSets(NamedTuple):
    """The sets of one sample: their effects and orders by their place, and the players at a place."""

    effects: Float[Tensor, " sets"]
    measurable: Bool[Tensor, " sets"]  # whether the effect exceeds the errors of the values
    orders: Int[Tensor, " sets"]  # the number of players in each set
    players_in: Callable[[int], tuple[int, ...]]


def only_sample(terms: Terms, sample: int) -> Terms:
    """Return the terms of one sample alone, because copies of large tables of all samples may not fit into memory."""
    own: slice | Tensor = slice(sample, sample + 1)
    owners = None
    members = None
    if terms.owners is not None:
        own = terms.owners == sample
        owners = torch.zeros_like(terms.owners[own])
        members = terms.sets[own]
    return replace(
        terms,
        effects=terms.effects[own].detach(),
        noise=terms.noise[sample : sample + 1],
        members=members,
        owners=owners,
        errors=None if terms.errors is None else terms.errors[own],
    )


def sets_of_sample(terms: Terms, sample: int) -> NumberedSets:
    """Return all sets of a sample, with ∅; those of a full table are not written out."""
    own = only_sample(terms, sample)
    effects = own.effects.flatten().cpu()
    measurable = own.measurable.flatten().cpu()
    orders = own.orders.cpu()
    if own.members is None:
        return NumberedSets(effects, measurable, orders, coalition_members)
    members = own.members.cpu()

    def players_in(place: int) -> tuple[int, ...]:
        return tuple(members[place].nonzero()[:, 0].tolist())

    return NumberedSets(effects, measurable, orders, players_in)


def count_sets(terms: Terms, sample: int = 0) -> int:
    """Return the number of sets of players that have an effect on a sample."""
    if terms.is_full:
        return terms.effects.shape[1] - 1
    return int((sets_of_sample(terms, sample).orders > 0).sum())


def ranked_strengths(terms: Terms, sample: int) -> Float[Tensor, " sets"]:
    """Return the strengths |U| of a sample in descending order."""
    sets = sets_of_sample(terms, sample)
    return sets.effects[sets.orders > 0].abs().sort(descending=True).values


def count_salient(terms: Terms, sample: int) -> int:
    """Return the number of salient sets of a sample."""
    own = only_sample(terms, sample)
    return int((own.salient() & (own.orders > 0)).sum())


def strongest_sets(terms: Terms, sample: int, count: int) -> list[PlayerSet]:
    """Return the sets of a sample with the largest |U|, the strongest first; `Terms.top` gives the same by name.

    Names do not tell the players of a text apart, where a word occurs twice.

    Examples
    --------
    >>> strongest_sets(ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])), sample=0, count=1)
    [PlayerSet(players=(0, 1), effect=6.0)]
    """
    sets = sets_of_sample(terms, sample)
    places = (sets.orders > 0).nonzero()[:, 0]
    strength = sets.effects[places].abs()
    strongest = places[strength.topk(min(count, len(places))).indices]
    return [PlayerSet(sets.players_in(place), float(sets.effects[place])) for place in strongest.tolist()]
