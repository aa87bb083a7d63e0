"""The region of an audit: the players that are masked, and the games that are played among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch

from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players

Region: TypeAlias = Sequence[str | int]

# How many players a drawn game has where the region holds too many for all its coalitions.
GAME_PLAYERS = 12


def choose_region(players: Players, region: Region | None) -> tuple[int, ...]:
    """Turn names or numbers of players into numbers, in the players' own order; all of them for None.

    >>> choose_region(Players.features(["age", "income", "debt"]), ["debt", 0])
    (0, 2)
    """
    if region is None:
        return tuple(range(len(players)))
    if isinstance(region, str):
        raise wrong("region", "be a list of players", repr(region), f"Pass [{region!r}].")
    numbers = [_number_of(players, one) for one in region]
    if not numbers:
        raise wrong("region", "name at least one player", "none", "Leave it out to audit all players.")
    if len(set(numbers)) < len(numbers):
        twice = next(players.names[number] for number in numbers if numbers.count(number) > 1)
        raise wrong("region", "name each player once", f"{twice!r} twice")
    return tuple(sorted(numbers))


def _number_of(players: Players, one: object) -> int:
    if isinstance(one, str) and one in players.names:
        return players.names.index(one)
    if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < len(players):
        return one
    shown = ", ".join(players.names[:8]) + (", …" if len(players) > 8 else "")
    raise wrong("region", f"hold players ({shown}) or their numbers 0 … {len(players) - 1}", repr(one))


def only(players: Players, chosen: Sequence[int]) -> Players:
    """Keep some of the players; the entries of the others are always present.

    >>> only(Players.features(["age", "income", "debt"]), [0, 2]).labels
    tensor([ 0, -1,  1])
    """
    labels = torch.full_like(players.labels, ALWAYS_PRESENT)
    for new, old in enumerate(chosen):
        labels[players.labels == old] = new
    return Players(labels, tuple(players.names[number] for number in chosen), players.integer)


def draw_games(region: Sequence[int], size: int, games: int, seed: int) -> list[tuple[int, ...]]:
    """Draw the players of several games, uniformly among the region's subsets of a size.

    >>> [len(game) for game in draw_games(range(49), 12, games=2, seed=0)]
    [12, 12]
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(len(region), generator=generator)[:size].sort().values.tolist() for _ in range(games)]
    return [tuple(region[place] for place in places) for places in drawn]
