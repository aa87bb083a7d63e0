"""What plots and reports read from learned baselines: their entries and whom they belong to, as they are shown."""

from __future__ import annotations

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
    """The first entries of the players of a learned baseline."""

    names: list[str]
    values: Float[Tensor, "owners entries"]
    texts: list[list[str]]  # the values as they are shown
    quantiles: Float[Tensor, "levels entries"] | None  # of the data; NaN for categories, None in old files
    undetermined: list[bool]  # whether the value has no effect on the loss


def players_of(learned: LearnedBaseline) -> Players:
    """Return the players of a learned baseline; for old files that do not have them, one for each entry."""
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


def entries_of(learned: LearnedBaseline, most: int, owners: int | None = None) -> Entries:
    """Return the first entries of the baselines of the first owners; None for all of these."""
    players = players_of(learned)
    each = players.each_entry(most)
    rows = baselines_by_owner(learned)[:owners].detach().double()
    quantiles = None
    if learned.quantiles is not None:
        quantiles = each.means(learned.quantiles)
        if each.categories:
            quantiles[:, [bool(names) for names in each.categories]] = torch.nan  # categories have no range
    player_of_entry = players.labels[each.labels != ALWAYS_PRESENT].tolist()
    if learned.players is None:  # as in old files, which do not tell
        undetermined = [False] * len(player_of_entry)
    else:
        undetermined = [learned.undetermined[player] for player in player_of_entry]
    return Entries(list(each.names), each.means(rows), each.texts(rows), quantiles, undetermined)


def owner_names(learned: LearnedBaseline) -> list[str]:
    """Return the class or the sample that each baseline belongs to; none if all samples share one."""
    if learned.share == "all":
        return []
    if learned.share == "class":
        return [f"class {label}" for label in learned.class_labels]
    return [f"{learned.share} {number}" for number in range(len(learned.values))]
