"""What plots and reports show of learned baselines: their entries, and whom they belong to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players

if TYPE_CHECKING:
    from absentia.learning import LearnedBaseline

# The rows of the quantiles of the data, from the least to the largest value.
LOW = 1  # 5 %
LOWER_QUARTER = 2
MEDIAN = 3
UPPER_QUARTER = 4
HIGH = 5  # 95 %


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of a learned baseline to show."""

    names: list[str]
    values: Float[Tensor, "owners entries"]
    texts: list[list[str]]  # the values as shown
    quantiles: Float[Tensor, "levels entries"] | None  # of the data; NaN for categories, None in old files
    undetermined: list[bool]  # whether the loss is as low at all values
    findings: list[list[Finding]]  # of each owner's entries: what the loss says about them


@dataclass(frozen=True)
class Finding:
    """What the loss says about an entry; the range in which it is as low is NaN if that is no range of values."""

    kind: str = ""  # that of its profile
    doubt: str = ""  # why the value is not determined; "" if it is, or if nothing is known
    low: float = math.nan
    high: float = math.nan
    minima: tuple[float, ...] = ()  # other values at which the loss is as low

    @property
    def has_range(self) -> bool:
        """Whether there is a range to draw."""
        return self.high > self.low


def players_of(learned: LearnedBaseline) -> Players:
    """Return the players of a learned baseline, or one for each entry if an old file does not have them."""
    if getattr(learned, "KIND", "") != "baseline":
        raise wrong("learned", "be a LearnedBaseline, which learn_baseline returns", type(learned).__name__)
    if learned.players is not None:
        return learned.players
    shape = baselines_by_owner(learned).shape[1:]
    return Players(torch.arange(shape.numel()).reshape(shape), Players.features(shape.numel()).names)


def baselines_by_owner(learned: LearnedBaseline) -> Shaped[Tensor, "owners *entries"]:
    """Return one row of values for each class or sample, or a single row that all samples share."""
    if learned.share == "all":
        return learned.values[None]
    return learned.values


def entries_of(learned: LearnedBaseline, most_entries: int, most_owners: int | None = None) -> Entries:
    """Return the first entries of the baselines, of the first classes or samples; None means all."""
    players = players_of(learned)
    as_players = players.each_entry(most_entries)  # one player for each entry that is shown
    baselines = baselines_by_owner(learned)[:most_owners].detach().double()
    quantiles = None
    if learned.quantiles is not None:
        quantiles = as_players.means(learned.quantiles)
        quantiles[:, _is_categorical(as_players)] = torch.nan  # categories have no order and therefore no range
    is_shown = as_players.labels != ALWAYS_PRESENT
    player_of_entry = players.labels[is_shown].tolist()
    open_values = [False] * len(players)
    if learned.players is not None:  # otherwise it is from an old file
        open_values = learned.undetermined
    return Entries(
        names=list(as_players.names),
        values=as_players.means(baselines),
        texts=as_players.texts(baselines),
        quantiles=quantiles,
        undetermined=[open_values[player] for player in player_of_entry],
        findings=[[learned.finding(player, owner) for player in player_of_entry] for owner in range(len(baselines))],
    )


def _is_categorical(players: Players) -> list[bool]:
    """Return whether each player owns an entry that holds categories, with or without names."""
    labels = players.labels.flatten().tolist()
    owners = {labels[entry] for group in players.categorical for entry in group}
    return [player in owners for player in range(len(players))]


def owner_names(learned: LearnedBaseline) -> list[str]:
    """Name the class or sample of each baseline; return an empty list if all samples share one."""
    if learned.share == "all":
        return []
    if learned.share == "class":
        return [f"class {label}" for label in learned.class_labels]
    return [f"{learned.share} {number}" for number in range(len(learned.values))]
