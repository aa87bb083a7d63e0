"""Profiles of learned values: the loss along each player's values, and what it says about them.

A profile holds the losses at a few values of one player, with all others at their learned values, on the same samples
and coalitions. From these follows whether the loss determines the value, within which range it is as low, and whether
it has other minima that are as low.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# A value is as low as the learned one if its loss is higher by at most so many standard errors of the difference, or
# by at most this share of the loss, below which a search does not look for gains either.
_STANDARD_ERRORS = 2.0
_LEVEL_SHARE = 1e-3

# A value is determined if the range in which the loss is as low has at most this share of the width of all values,
# and holds at most this share of the values that were tried, which lie close to each other where the data do.
_NARROW_WIDTH = 1 / 5
_NARROW_COUNT = 1 / 3


class ProfileKind(str, Enum):
    """What the loss says about a value."""

    DETERMINED = "determined"  # the loss is as low near the value only
    IN_A_RANGE = "in a range"  # … within a range around it
    SEVERAL_MINIMA = "several minima"  # … and at other values, with higher losses in between
    LEVEL = "level"  # … at all values, although it is not the same
    NO_EFFECT = "no effect"  # the loss is the same at all values
    ADDITIVE = "additive alone"  # the player takes part in no interaction
    NOT_PROFILED = "not profiled"
    FIXED = "fixed"  # held, or constant in the data: there is nothing to learn


# The kinds of values that the loss leaves open over the whole range.
OPEN_KINDS = (ProfileKind.LEVEL, ProfileKind.NO_EFFECT)


class ProfilePath(str, Enum):
    """Along what a player is moved."""

    VALUES = "values"  # of its only entry, or of entries that share a value
    LEVELS = "levels"  # quantile levels of the data, the same for all of its entries
    CODES = "codes"  # rows of its category: codes, or the numbers of one-hot rows
    NONE = "none"


class SkipReason(str, Enum):
    """Why a player has no profile."""

    COST = "cost"  # it would have taken more than a modest share of the evaluations of the search
    TIME = "time"  # the time limit was reached
    INTERRUPTED = "interrupted"
    SEVERAL_CATEGORIES = "several categories"  # there is no path through the values of several categories
    FIXED = "fixed"


class _Run(NamedTuple):
    """Neighbouring points at which the loss is as low, by the places of the first and the last."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class ValueProfile:
    """The loss along one player's values, with all others at their learned values.

    ``points`` ascend. They are values, levels of quantiles or codes, depending on ``path``. ``excess`` is the loss at
    each point minus the loss at the learned value, and ``errors`` are the standard errors of these differences over
    the samples.
    """

    points: Float[Tensor, " points"]
    excess: Float[Tensor, " points"]
    errors: Float[Tensor, " points"]
    learned: float  # the learned value or code; NaN for a path along levels, which does not pass through it
    loss: float  # at the learned values
    rounding: float = 0.0  # the share of the loss by which equal losses may differ
    additive: bool = False
    path: ProfilePath = ProfilePath.VALUES
    reason: SkipReason | None = None  # why there is no profile

    @property
    def kind(self) -> ProfileKind:
        """What the loss says about the value."""
        if self.reason is SkipReason.FIXED:
            return ProfileKind.FIXED
        if self.reason is not None:
            return ProfileKind.NOT_PROFILED
        if bool((self.excess.abs() <= self.rounding * abs(self.loss)).all()):
            return ProfileKind.NO_EFFECT
        if self.additive:
            return ProfileKind.ADDITIVE
        if bool(self.is_as_low.all()):
            return ProfileKind.LEVEL
        if self.path is ProfilePath.CODES:
            others = self.is_as_low & (self.points != self.learned)
            return ProfileKind.SEVERAL_MINIMA if bool(others.any()) else ProfileKind.DETERMINED
        if self.other_minima:
            return ProfileKind.SEVERAL_MINIMA
        return ProfileKind.DETERMINED if self._is_narrow else ProfileKind.IN_A_RANGE

    @property
    def is_as_low(self) -> Bool[Tensor, " points"]:
        """Whether the loss at each point is as low as at the learned value, as far as the samples tell.

        What lies between two such points is as low, too, unless the loss is higher there than it may be at one of
        them: differences to near values are known more exactly, but that alone makes no hill.
        """
        as_low = self.excess <= self._allowed
        places = as_low.nonzero().flatten().tolist()
        for first, second in pairwise(places):
            most = float(torch.maximum(self._allowed[first], self._allowed[second]))
            if bool((self.excess[first + 1 : second] <= most).all()):
                as_low[first:second] = True
        return as_low

    @property
    def _allowed(self) -> Float[Tensor, " points"]:
        """By how much the loss at each point may be higher than at the learned value."""
        share = torch.full_like(self.errors, _LEVEL_SHARE * abs(self.loss))
        return torch.maximum(_STANDARD_ERRORS * self.errors, share)

    @property
    def highest_share(self) -> float:
        """By how much the loss rises at most, as a share of the loss at the learned value."""
        if self.loss == 0:
            return 0.0
        return max(0.0, float(self.excess.max()) / abs(self.loss))

    @property
    def edges(self) -> tuple[tuple[float, float], ...]:
        """The gaps at the ends of the range around the learned value: the last value inside and the first outside."""
        home = self._home(self._runs())
        if home is None:
            before = self.points[self.points < self.learned]
            after = self.points[self.points > self.learned]
            inside_low = inside_high = self.learned
        else:
            before = self.points[: home.first]
            after = self.points[home.last + 1 :]
            inside_low, inside_high = self._range
        gaps = []
        if len(before):
            gaps.append((float(before[-1]), inside_low))
        if len(after):
            gaps.append((inside_high, float(after[0])))
        return tuple(gaps)

    @property
    def low(self) -> float:
        """The least value of the range around the learned value in which the loss is as low."""
        return self._range[0]

    @property
    def high(self) -> float:
        """The largest value of the range around the learned value in which the loss is as low."""
        return self._range[1]

    @property
    def other_minima(self) -> tuple[float, ...]:
        """The values of other minima at which the loss is as low, beyond values at which it is higher."""
        if self.path is ProfilePath.CODES:
            return tuple(self.points[self.is_as_low & (self.points != self.learned)].tolist())
        runs = self._runs()
        home = self._home(runs)
        return tuple(self._best_of(run) for run in runs if run != home)

    @property
    def _is_narrow(self) -> bool:
        """Whether the range is much smaller than that of all values, both by width and by the points in it."""
        width = float(self.points[-1] - self.points[0])
        if self.high - self.low > _NARROW_WIDTH * width:
            return False
        inside = (self.points >= self.low) & (self.points <= self.high) & (self.points != self.learned)
        return int(inside.sum()) <= _NARROW_COUNT * len(self.points)

    @property
    def _range(self) -> tuple[float, float]:
        """The range around the learned value in which the loss is as low: the learned value alone if no point is."""
        if self.reason is not None or self.path is ProfilePath.CODES:
            return self.learned, self.learned
        home = self._home(self._runs())
        if home is None:
            return self.learned, self.learned
        low = float(self.points[home.first])
        high = float(self.points[home.last])
        if self.path is ProfilePath.LEVELS:
            return low, high
        return min(low, self.learned), max(high, self.learned)

    def _runs(self) -> list[_Run]:
        """Return the runs of neighbouring points at which the loss is as low."""
        runs: list[_Run] = []
        for place in self.is_as_low.nonzero().flatten().tolist():
            if runs and runs[-1].last == place - 1:
                runs[-1] = _Run(runs[-1].first, place)
            else:
                runs.append(_Run(place, place))
        return runs

    def _home(self, runs: list[_Run]) -> _Run | None:
        """Return the run around the learned value, or the lowest one of a path that does not pass through it."""
        if not runs:
            return None
        if self.path is ProfilePath.LEVELS:
            return min(runs, key=self._least_excess)
        for run in runs:
            before = self.points[run.first - 1] if run.first > 0 else -torch.inf
            after = self.points[run.last + 1] if run.last + 1 < len(self.points) else torch.inf
            if before < self.learned < after:
                return run
        return None

    def _least_excess(self, run: _Run) -> float:
        """Return the least excess in a run."""
        return float(self.excess[run.first : run.last + 1].min())

    def _best_of(self, run: _Run) -> float:
        """Return the point of a run with the lowest loss."""
        place = run.first + int(self.excess[run.first : run.last + 1].argmin())
        return float(self.points[place])


@dataclass(frozen=True, eq=False)
class ValueProfiles:
    """The profiles of all players, one for each baseline, on the same samples.

    Examples
    --------
    >>> x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows[:, :2] - 0.25).prod(1), x, loss="interactions")
    >>> [kind.value for kind in learned.profiles.kinds()]
    ['determined', 'determined', 'no effect']
    """

    points: Float[Tensor, "owners players points"]  # NaN beyond the last point of a player
    excess: Float[Tensor, "owners players points"]
    errors: Float[Tensor, "owners players points"]
    learned: Float[Tensor, "owners players"]
    losses: Float[Tensor, " owners"]
    additive: Bool[Tensor, " players"]
    paths: tuple[ProfilePath, ...]
    reasons: tuple[SkipReason | None, ...]
    rounding: float  # the share of the loss by which equal losses may differ
    samples: int  # on which the losses were computed
    evaluations: int  # rows that they took; 0 if the leaves of trees gave the values

    def of(self, player: int, owner: int = 0) -> ValueProfile:
        """Return the profile of a player, of the baseline of one of the classes or samples."""
        own = ~self.points[owner, player].isnan()
        return ValueProfile(
            points=self.points[owner, player, own],
            excess=self.excess[owner, player, own],
            errors=self.errors[owner, player, own],
            learned=float(self.learned[owner, player]),
            loss=float(self.losses[owner]),
            rounding=self.rounding,
            additive=bool(self.additive[player]),
            path=self.paths[player],
            reason=self.reasons[player],
        )

    def kinds(self, owner: int = 0) -> tuple[ProfileKind, ...]:
        """Return what the loss says about the value of each player."""
        return tuple(self.of(player, owner).kind for player in range(len(self.paths)))

    @property
    def owners(self) -> int:
        """The number of baselines."""
        return len(self.losses)

    @property
    def has_no_effect(self) -> Bool[Tensor, " players"]:
        """Which players have no effect on the loss of any baseline."""
        kinds = [self.kinds(owner) for owner in range(self.owners)]
        return torch.tensor(
            [all(kind is ProfileKind.NO_EFFECT for kind in of_player) for of_player in zip(*kinds, strict=True)]
        )


def join_profiles(parts: list[ValueProfiles | None]) -> ValueProfiles | None:
    """Join the profiles of baselines that were learned in parts; return None if one of the parts has none.

    A player is additive if it is in all parts, and its profile is left out if it is in one of them.
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    most = max(part.points.shape[2] for part in known)
    reasons = []
    paths = []
    for player in range(len(known[0].paths)):
        reasons.append(next((part.reasons[player] for part in known if part.reasons[player] is not None), None))
        paths.append(next((part.paths[player] for part in known if part.reasons[player] is None), ProfilePath.NONE))
    return ValueProfiles(
        points=torch.cat([_padded(part.points, most) for part in known]),
        excess=torch.cat([_padded(part.excess, most) for part in known]),
        errors=torch.cat([_padded(part.errors, most) for part in known]),
        learned=torch.cat([part.learned for part in known]),
        losses=torch.cat([part.losses for part in known]),
        additive=torch.stack([part.additive for part in known]).all(0),
        paths=tuple(paths),
        reasons=tuple(reasons),
        rounding=max(part.rounding for part in known),
        samples=sum(part.samples for part in known),
        evaluations=sum(part.evaluations for part in known),
    )


def _padded(rows: Float[Tensor, "owners players own"], points: int) -> Float[Tensor, "owners players points"]:
    """Pad rows to so many points with NaN."""
    missing = torch.full((*rows.shape[:2], points - rows.shape[2]), torch.nan).double()
    return torch.cat([rows, missing], dim=2)


# Computes losses from figures, one for each column.
LossOfFigures = Callable[[Float[Tensor, "figures columns"]], Float[Tensor, " columns"]]


class GroupedFigures(NamedTuple):
    """Sums over groups of samples of the figures that a loss is made of, with the weights of the samples."""

    sums: Float[Tensor, "figures groups owners points"]
    weights: Float[Tensor, "figures groups owners"]


class ComparedLosses(NamedTuple):
    """The losses at several points, and the standard errors of their differences to the last one."""

    losses: Float[Tensor, "owners points"]
    errors: Float[Tensor, "owners points"]


def compare_with_last(figures: GroupedFigures, loss_of: LossOfFigures) -> ComparedLosses:
    """Compute losses from the means of figures over all samples, and errors by a jackknife that leaves out groups.

    The loss is not linear in the figures, so that errors of figures do not give those of the loss. An owner whose
    samples are all in one group has errors of 0: these samples are all that its baseline is for.
    """
    sums, weights = figures
    whole = sums.sum(1)
    whole_weights = weights.sum(1)
    losses = _losses(whole, whole_weights, loss_of)  # (owners, points)
    differences = []
    for group in range(sums.shape[1]):
        left_weights = whole_weights - weights[:, group]
        # Where nothing is left, nothing is left out.
        is_left = left_weights > 0
        left = torch.where(is_left[..., None], whole - sums[:, group], whole)
        own = _losses(left, torch.where(is_left, left_weights, whole_weights), loss_of)
        differences.append(own - own[:, -1:])
    of_groups = torch.stack(differences)  # (groups, owners, points)
    counts = _groups_of_owners(weights)
    takes_part = (weights > 0).any(0).double()[..., None]  # (groups, owners, 1)
    mean = (of_groups * takes_part).sum(0) / counts[:, None]
    squares = ((of_groups - mean).square() * takes_part).sum(0)
    factor = (counts - 1) / counts
    return ComparedLosses(losses, (factor[:, None] * squares).sqrt())


def _groups_of_owners(weights: Float[Tensor, "figures groups owners"]) -> Int[Tensor, " owners"]:
    """Return how many groups hold samples of each owner."""
    return (weights > 0).any(0).sum(0).clamp_min(1)


def _losses(
    sums: Float[Tensor, "figures owners points"], weights: Float[Tensor, "figures owners"], loss_of: LossOfFigures
) -> Float[Tensor, "owners points"]:
    """Compute the losses of mean figures; a figure without a sample is 0."""
    means = sums / weights.clamp_min(torch.finfo(weights.dtype).tiny)[..., None]
    return loss_of(means.flatten(1)).unflatten(0, tuple(means.shape[1:]))
