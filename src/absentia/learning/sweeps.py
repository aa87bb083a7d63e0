"""Sweeps: other values of one coordinate at a time are tried, and kept where they lower the loss.

Categories and models without a gradient are searched like this, and what the gradient found is polished.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data import seeded
from absentia.learning.checkpoint import SearchState
from absentia.learning.close_calls import CloseCalls, settle
from absentia.learning.comparer import Comparer
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.space import Baselines, Owners, Space

# The most coordinates of a sweep, which tries about ten values of each.
MAX_SWEPT = 256

# The most sweeps of a stage.
MAX_SWEEPS = 14

# Shares of the range that a sweep tries to both sides. Without a gradient they fall from the first to the last one.
_FIRST_RADIUS = 0.15
_LAST_RADIUS = 0.003
_RADIUS_DIVISOR = 3

# Those of the last sweeps after steps along the gradient.
_CLOSE_RADII = (0.016, 0.008, 0.004, 0.002)

# A candidate is dropped if its loss on the first part, or the first two, of the samples is this many times the best.
_DROPPED = (1.25, 1.1, torch.inf)
_DROPPED_IF_CLOSE = (1.01, 1.0, torch.inf)

# Candidates whose loss is within this share of the best are close calls, of which at most so many are kept.
_CLOSE_CALL = 0.02
_MOST_CALLS = 64

# The share by which a value must lower the loss to be taken over, and a sweep to be followed by another.
_LEAST_GAIN = 1e-6
_LEAST_GAIN_OF_SWEEP = 1e-3

# The least share of the range by which a candidate differs from the present value.
_LEAST_CHANGE = 1e-9

# The stream of random numbers that the orders of coordinates are drawn from.
_STREAM = 2


@dataclass(frozen=True)
class SearchPlan:
    """How a search proceeds: its steps along the gradient, their first size, and whether it is polished.

    ``gradient`` says whether the model has one; without it, no steps are taken.
    """

    steps: int
    rate: float
    polish: bool
    gradient: bool = True

    @property
    def thorough(self) -> bool:
        """Whether all coordinates are swept over, and close calls are settled."""
        return self.polish or not self.steps

    @property
    def steps_again(self) -> int:
        """The number of smaller steps that follow the sweeps."""
        return self.steps // 3

    @property
    def rate_again(self) -> float:
        """The first size of the steps that follow the sweeps."""
        return self.rate / 5


class _Reach(NamedTuple):
    """How far a sweep reaches: neighbours at the radius and, if it is wide, all over the range."""

    wide: bool
    radius: float

    def next(self) -> "_Reach":
        """Return the reach of the next sweep without a gradient: closer and closer ones, then a wide one again."""
        if self.radius < _LAST_RADIUS:
            return _WIDE
        return _Reach(wide=False, radius=self.radius / _RADIUS_DIVISOR)


_WIDE = _Reach(wide=True, radius=_FIRST_RADIUS)


class _Candidate(NamedTuple):
    """Baselines with one coordinate changed, and whether to a value near the present one."""

    baseline: Baselines
    near: bool


class _Call(NamedTuple):
    """A close call: the ratio of the candidate's loss to the best one, and the values that it changes."""

    ratio: float
    change: Float[Tensor, " entries"]


class Sweeps:
    """Sweeps over categories, and in a thorough search over all coordinates.

    ``leverage`` is the most that each coordinate ever mattered; sweeps raise it in place.
    """

    def __init__(
        self,
        comparer: Comparer,
        space: Space,
        plan: SearchPlan,
        state: SearchState,
        leverage: Float[Tensor, " coordinates"],
    ) -> None:
        self.comparer = comparer
        self.space = space
        self.plan = plan
        self.state = state
        self.leverage = leverage
        first = 0 if plan.thorough else len(space.low)
        self.coordinates = torch.arange(first, len(space))

    def sweep_while_it_helps(self, baseline: Baselines) -> Baselines:
        """Sweep until no candidate helps, if sweeps are wanted and affordable."""
        count = len(self.coordinates)
        if count == 0 or count > MAX_SWEPT:
            self.state.unfinished = self._why_not_swept()
            return baseline
        reach = _WIDE
        for turn in range(MAX_SWEEPS):
            shuffled = torch.randperm(count, generator=seeded(self.comparer.objective.seed, _STREAM, turn))
            order = self.coordinates[shuffled]
            baseline, improved = self.sweep_once(baseline, reach.radius, order, wide=reach.wide)
            self.comparer.pace.count_sweep()
            is_first_of_all = turn == 0 and self.plan.steps == 0
            if reach.wide and not improved and not is_first_of_all:
                return baseline
            if self.plan.steps == 0:
                reach = reach.next()
        self.state.unfinished = f"{MAX_SWEEPS} sweeps are done, and the last still lowered the loss"
        return baseline

    def _why_not_swept(self) -> str:
        """Say why no other values of single coordinates were tried."""
        if not len(self.coordinates):
            return "the steps are done; they were not polished"
        too_many = f"{len(self.coordinates):,} values are too many to sweep"
        if self.plan.steps:
            return f"the steps are done; {too_many}"
        if self.plan.gradient:
            return f"no steps were taken, and {too_many}"
        return f"no steps were taken, because the model has no gradient, and {too_many}"

    def close_in(self, baseline: Baselines) -> Baselines:
        """Try ever closer values around those of the gradient, which may stop beside a kink; settle close calls."""
        objective = self.comparer.objective
        if self.state.close_calls is None or not self.plan.thorough or not isinstance(objective, PaperObjective):
            return baseline
        parameters = torch.arange(len(self.space.low))
        if self.plan.steps and len(parameters):
            for radius in _CLOSE_RADII:
                baseline, _ = self.sweep_once(baseline, radius, parameters, wide=False)
        return settle(objective, baseline, self.state.close_calls)

    def sweep_once(self, baseline: Baselines, radius: float, order: Tensor, *, wide: bool) -> tuple[Baselines, bool]:
        """Try other values of one coordinate at a time, keep what lowers the loss, and return whether it fell.

        The candidates of a parameter are neighbours at ``radius`` (a share of its range) and, in a ``wide`` sweep,
        its bounds and quantiles of the data; those of a choice are all its rows. Poor candidates are dropped early.
        Close calls of a wide sweep are kept: the values that they change, and NaN for others.
        """
        dropped = _DROPPED if wide else _DROPPED_IF_CLOSE
        current = list(self.comparer.looks(baseline))
        losses_before = current[-1]
        calls: list[_Call] = []
        for coordinate in order.tolist():
            self.leverage[coordinate].clamp_min_(0.0)
            for candidate in _candidates(self.space, baseline, coordinate, radius, wide):
                looks = self.comparer.compare(candidate.baseline, current, dropped)
                self._note_leverage(coordinate, looks, current)
                if len(looks) < len(current):
                    continue
                if not candidate.near and _is_close_call(looks[-1], current[-1]):
                    change = torch.where(self.space.coordinate == coordinate, candidate.baseline[0], torch.nan)
                    calls.append(_Call(float(looks[-1] / current[-1]), change))
                better = looks[-1] < current[-1] * (1 - _LEAST_GAIN)
                baseline = torch.where(better[:, None], candidate.baseline, baseline)
                current = _where_better(better, looks, current)
        if wide:
            self.state.close_calls = _closest(calls, baseline)
        improved = (current[-1] < losses_before * (1 - _LEAST_GAIN_OF_SWEEP)).any()
        return baseline, bool(improved)

    def _note_leverage(self, coordinate: int, looks: list[Owners], current: list[Owners]) -> None:
        """Note by how much a change of a coordinate changed the loss."""
        change = torch.stack(looks) - torch.stack(current[: len(looks)])
        self.leverage[coordinate].clamp_min_(change.abs().max())

    def cross(self, baseline: Baselines, other: Baselines) -> Baselines:
        """Take over from another baseline the values of each player with which the loss is lower."""
        players = self.comparer.objective.evaluator.players
        current = list(self.comparer.looks(baseline))
        for player in range(len(players)):
            candidate = torch.where(players.labels.flatten() == player, other, baseline)
            if torch.equal(candidate, baseline):
                continue
            looks = self.comparer.compare(candidate, current, _DROPPED_IF_CLOSE)
            if len(looks) == len(current):
                better = looks[-1] < current[-1]
                baseline = torch.where(better[:, None], candidate, baseline)
                current = _where_better(better, looks, current)
        return baseline


def _is_close_call(losses: Owners, best_losses: Owners) -> bool:
    """Return whether the loss of the only baseline is about as low as the best one."""
    return len(losses) == 1 and bool(losses <= best_losses * (1 + _CLOSE_CALL))


def _where_better(better: Tensor, looks: Sequence[Owners], current: Sequence[Owners]) -> list[Owners]:
    """Return the losses of the candidate for owners for whom it is better, and the current ones for others."""
    return [torch.where(better, new, old) for new, old in zip(looks, current, strict=True)]


def _closest(calls: list[_Call], baseline: Baselines) -> CloseCalls:
    """Return the changes of the closest calls, the closest first."""
    if not calls:
        return baseline[:0]
    closest = sorted(calls, key=lambda call: call.ratio)[:_MOST_CALLS]
    return torch.stack([call.change for call in closest])


def _candidates(space: Space, baseline: Baselines, coordinate: int, radius: float, wide: bool) -> list[_Candidate]:
    """Return the baselines with one coordinate changed."""
    if coordinate < len(space.low):
        return list(_parameter_candidates(space, baseline, coordinate, radius, wide))
    if not wide:
        return []
    entries = space.entries(coordinate)
    rows = space.choices[coordinate - len(space.low)]
    return [_Candidate(baseline.index_copy(1, entries, row.expand(len(baseline), -1)), near=False) for row in rows]


def _parameter_candidates(
    space: Space, baseline: Baselines, parameter: int, radius: float, wide: bool
) -> Iterator[_Candidate]:
    """Yield the baselines with one parameter changed."""
    entries = space.entries(parameter)
    low = space.low[parameter]
    high = space.high[parameter]
    present = baseline[:, entries[0]]

    def changed_to(values: Owners) -> Baselines:
        return baseline.index_copy(1, entries, values[:, None].expand(-1, len(entries)))

    def differs(values: Owners) -> bool:
        return bool(((values - present).abs() > _LEAST_CHANGE * (high - low)).any())

    for shift in (-radius, radius):
        neighbours = (present + shift * (high - low)).clamp(low, high)
        if differs(neighbours):
            yield _Candidate(changed_to(neighbours), near=True)
    if wide:
        for value in torch.cat([torch.stack([low, high]), space.quantiles(parameter)]).unique():
            values = value.expand_as(present)
            if differs(values):
                yield _Candidate(changed_to(values), near=False)
