"""Words for profiles of learned values: how many are determined, and a sentence on each of the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from absentia.learning.value_profiles import (
    OPEN_KINDS,
    ProfileKind,
    ProfilePath,
    SkipReason,
    ValueProfile,
    ValueProfiles,
)
from absentia.text import count_of, written

# The kinds that need a sentence, in the order in which they are listed.
_LISTED = (
    ProfileKind.NO_EFFECT,
    ProfileKind.LEVEL,
    ProfileKind.SEVERAL_MINIMA,
    ProfileKind.IN_A_RANGE,
    ProfileKind.ADDITIVE,
)

_WHY_SKIPPED = {
    SkipReason.COST: "more profiles would take over 12 % of the evaluations of the search",
    SkipReason.TIME: "the time limit was reached",
    SkipReason.INTERRUPTED: "interrupted",
    SkipReason.SEVERAL_CATEGORIES: "no path leads through several categories of a player",
}

# The mark beside values at all of which the loss is as low.
UNDETERMINED = "undetermined"

# The digits of values in sentences.
_DIGITS = 3

# The most other minima, or codes, that are listed.
_MOST_MINIMA = 4


@dataclass(frozen=True)
class PlayerNote:
    """What the loss leaves open about the value of a player."""

    name: str
    sentence: str


def summary_of(profiles: ValueProfiles) -> str:
    """Say how many values are determined, on how many samples, and why others have no profile."""
    kinds = [_kinds_of(profiles, player) for player in range(len(profiles.paths))]
    skipped = Counter(reason for reason in profiles.reasons if reason is not None and reason is not SkipReason.FIXED)
    parts = []
    profiled = [of_player for of_player, reason in zip(kinds, profiles.reasons, strict=True) if reason is None]
    if profiled:
        determined = sum(set(of_player) == {ProfileKind.DETERMINED} for of_player in profiled)
        parts.append(
            f"{determined} of {len(profiled)} determined by the loss on {count_of(profiles.samples, 'sample')}"
        )
    for reason, count in skipped.items():
        parts.append(f"{count:,} not profiled: {_WHY_SKIPPED[reason]}")
    return "; ".join(parts)


def notes_on_players(
    profiles: ValueProfiles, names: Sequence[str], categories: Sequence[Sequence[str]], owners: str
) -> list[PlayerNote]:
    """Return a note on each player whose value the loss does not determine, in the order of the kinds.

    ``categories`` are the names of each player's codes, if it has any. ``owners`` says in the plural whose baselines
    these are, such as classes.
    """
    notes: list[tuple[int, PlayerNote]] = []
    for player, name in enumerate(names):
        kinds = [kind for kind in _kinds_of(profiles, player) if kind in _LISTED]
        if not kinds:
            continue
        if profiles.owners == 1:
            sentence = sentence_on(profiles.of(player), categories[player] if categories else ())
        else:
            sentence = _sentence_on_several(kinds, profiles.owners, owners)
        notes.append((min(_LISTED.index(kind) for kind in kinds), PlayerNote(name, sentence)))
    return [note for _, note in sorted(notes, key=lambda ranked: ranked[0])]


def _kinds_of(profiles: ValueProfiles, player: int) -> list[ProfileKind]:
    """Return the kind of a player's value in each baseline."""
    return [profiles.of(player, owner).kind for owner in range(profiles.owners)]


def _sentence_on_several(kinds: Sequence[ProfileKind], total: int, owners: str) -> str:
    """Say for how many baselines a value is of each kind."""
    counts = Counter(kinds)
    return ", ".join(f"{kind.value} for {counts[kind]:,} of {total:,} {owners}" for kind in _LISTED if counts[kind])


def sentence_on(profile: ValueProfile, categories: Sequence[str] = ()) -> str:
    """Say what the loss leaves open about a value; "" if it is determined or has no profile.

    >>> import torch
    >>> points = torch.tensor([0.0, 0.25, 0.5, 1.0]).double()
    >>> excess = torch.tensor([0.0, 0.0, 0.0, 0.3]).double()
    >>> sentence_on(ValueProfile(points, excess, torch.zeros(4).double(), learned=0.4, loss=1.0))
    'the loss is as low from 0 to 0.5'
    """
    kind = profile.kind
    if kind is ProfileKind.NO_EFFECT:
        return "no effect on the loss"
    if kind is ProfileKind.LEVEL:
        return f"no value raises the loss beyond its error; the largest rise is {_percent(profile.highest_share)}"
    if kind is ProfileKind.ADDITIVE:
        return "additive alone: its value follows from the distribution of the inputs, not from interactions"
    if kind is ProfileKind.IN_A_RANGE:
        return f"the loss is as low {_range_of(profile)}"
    if kind is ProfileKind.SEVERAL_MINIMA:
        return _sentence_on_minima(profile, categories)
    return ""


def _sentence_on_minima(profile: ValueProfile, categories: Sequence[str]) -> str:
    """Say at which other values the loss is as low."""
    listed = [_call_point(profile, point, categories) for point in profile.other_minima[:_MOST_MINIMA]]
    if len(profile.other_minima) > _MOST_MINIMA:
        listed.append("…")
    others = ", ".join(listed)
    if profile.path is ProfilePath.CODES:
        return f"the loss is as low at {others}"
    return f"the loss is as low {_range_of(profile)}, and at {others}"


def _percent(share: float) -> str:
    """Write a share as a percentage of two digits."""
    return f"{written(100 * share, 2)} %"


def _range_of(profile: ValueProfile) -> str:
    """Describe the range in which the loss is as low."""
    if profile.path is ProfilePath.LEVELS:
        low = f"{100 * profile.low:.0f}"
        return f"from the {low} % to the {100 * profile.high:.0f} % quantiles of its entries"
    low = _call_point(profile, profile.low)
    high = _call_point(profile, profile.high)
    if low == high:
        return f"at {low}"
    return f"from {low} to {high}"


def _call_point(profile: ValueProfile, point: float, categories: Sequence[str] = ()) -> str:
    """Return a value, the name of a category, or a level of quantiles."""
    if profile.path is ProfilePath.LEVELS:
        return f"the {100 * point:.0f} % quantiles of its entries"
    if categories and not math.isnan(point):
        return categories[int(point)]
    return written(point, _DIGITS)


def doubt_about(kind: ProfileKind) -> str:
    """Return the mark beside a value in plots and tables; "" if the value is determined or nothing is known."""
    if kind in OPEN_KINDS:
        return UNDETERMINED
    if kind in _LISTED:
        return kind.value
    return ""
