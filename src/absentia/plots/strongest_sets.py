"""The sets of players that interactions belong to, with the numbers of their players.

Interactions hold the effects of all 2ⁿ sets in counting order, with ∅ first. Only this module reads them by their
place; plots and reports call its functions.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from absentia.coalitions import coalition_members, coalition_sizes
from absentia.terms import Interactions


class PlayerSet(NamedTuple):
    """An interaction as it is drawn: the numbers of its players, and its effect."""

    players: tuple[int, ...]
    effect: float


def count_sets(interactions: Interactions) -> int:
    """Return the number of sets of players that have an effect, without ∅."""
    return interactions.effects.shape[1] - 1


def orders_of(interactions: Interactions) -> Int[Tensor, " sets"]:
    """Return the number of players in each set, with ∅."""
    return coalition_sizes(len(interactions.names))


def players_in(number: int) -> tuple[int, ...]:
    """Return the players of a set, given by its place among the effects."""
    return coalition_members(number)


def strengths_of(interactions: Interactions) -> Float[Tensor, "samples sets"]:
    """Return the strengths |U| of all sets but ∅."""
    return interactions.effects[:, 1:].detach().abs()


def count_salient(interactions: Interactions) -> Int[Tensor, " samples"]:
    """Return the number of salient sets of each sample, without ∅."""
    return interactions.salient()[:, 1:].sum(1)


def strongest_sets(interactions: Interactions, sample: int, count: int) -> list[PlayerSet]:
    """Return the sets of a sample with the largest |U|, the strongest first; `top` gives the same by name.

    Names do not tell the players of a text apart, where a word occurs twice.

    Examples
    --------
    >>> strongest_sets(ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])), sample=0, count=1)
    [PlayerSet(players=(0, 1), effect=6.0)]
    """
    effects = interactions.effects[sample].detach()
    numbers = effects[1:].abs().topk(min(count, count_sets(interactions))).indices + 1
    return [PlayerSet(players_in(number), float(effects[number])) for number in numbers.tolist()]
