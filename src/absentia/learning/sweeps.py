"""Sweeps, which try other values of one coordinate at a time and keep those that lower the loss.

Categories and models without a gradient are searched in this way. Sweeps also polish the result of gradient descent.
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
from absentia.learning.search_ends import NOT_POLISHED, EndKind, SearchEnd
from absentia.learning.space import Baselines, Owners, Space

# The maximum number of coordinates of a sweep, which tries about ten values of each.
MAX_SWEPT = 256

# The maximum number of sweeps of a stage.
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

# The share by which a value must lower the loss to be adopted, and a sweep to be followed by another.
_LEAST_GAIN = 1e-6
_LEAST_GAIN_OF_SWEEP = 1e-3

# The smallest difference between a candidate and the present value, as a share of the range.
_LEAST_CHANGE = 1e-9

# The stream of random numbers that the orders of coordinates are drawn from.
_STREAM = 2


@dataclass(frozen=True)
class SearchPlan:
    """How a search proceeds: the number of gradient steps, their first size, and whether it is polished.

    ``gradient`` says whether the model has a gradient. Without one, no steps are taken. ``restart`` says whether a
    search by one of the paper's losses may start again from a usual baseline.
    """

    steps: int
    rate: float
    polish: bool
    gradient: bool = True
    restart: bool = True

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
        """Return the reach of the next sweep without a gradient: ever closer, then wide again."""
        if self.radius < _LAST_RADIUS:
            return _WIDE
        return _Reach(wide=False, radius=self.radius / _RADIUS_DIVISOR)


_WIDE = _Reach(wide=True, radius=_FIRST_RADIUS)


class _Candidate(NamedTuple):
    """Baselines with one coordinate changed, and whether to a value near the present one."""

    baseline: Baselines
    near: bool


class _Best(NamedTuple):
    """The best baselines so far, with their losses on ever more samples; the last losses are on all of them."""

    baseline: Baselines
    running_losses: list[Owners]

    @property
    def losses(self) -> Owners:
        """The losses on all samples."""
        return self.running_losses[-1]

    def or_better(self, candidate: Baselines, running_losses: Sequence[Owners], least_gain: float) -> "_Best":
        """Return for each owner the candidate, if it lowers the loss by more than this share, or else this one."""
        better = running_losses[-1] < self.losses * (1 - least_gain)
        pairs = zip(running_losses, self.running_losses, strict=True)
        return _Best(
            torch.where(better[:, None], candidate, self.baseline),
            [torch.where(better, new, old) for new, old in pairs],
        )


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
        self.state.unfinished = SearchEnd(EndKind.SWEEPS_DONE, sweeps=MAX_SWEEPS)
        return baseline

    def _why_not_swept(self) -> SearchEnd:
        """Return why no other values of single coordinates were tried."""
        count = len(self.coordinates)
        if not count:
            return NOT_POLISHED
        if self.plan.steps:
            return SearchEnd(EndKind.STEPS_WITHOUT_SWEEP, coordinates=count)
        if self.plan.gradient:
            return SearchEnd(EndKind.NO_STEPS, coordinates=count)
        return SearchEnd(EndKind.NO_GRADIENT, coordinates=count)

    def close_in(self, baseline: Baselines) -> Baselines:
        """Try closer and closer values, because gradient steps may stop beside a kink, and decide close calls."""
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
        its bounds and quantiles of the data; those of a choice are all its rows. Poor candidates are dropped early,
        on the first part of the samples. A wide sweep remembers its close calls: see `close_calls`.
        """
        drop_beyond = _DROPPED if wide else _DROPPED_IF_CLOSE
        before = _Best(baseline, list(self.comparer.running_losses(baseline)))
        best = before
        close_calls: list[_Call] = []
        for coordinate in order.tolist():
            self.leverage[coordinate].clamp_min_(0.0)  # it is tried, even if it has no candidates
            for candidate in _candidates(self.space, best.baseline, coordinate, radius, wide):
                running_losses = self.comparer.compare(candidate.baseline, best.running_losses, drop_beyond)
                self._note_leverage(coordinate, running_losses, best.running_losses)
                was_dropped = len(running_losses) < len(best.running_losses)
                if was_dropped:
                    continue
                losses = running_losses[-1]
                if not candidate.near and _is_close_call(losses, best.losses):
                    change = torch.where(self.space.coordinate == coordinate, candidate.baseline[0], torch.nan)
                    close_calls.append(_Call(float(losses / best.losses), change))
                best = best.or_better(candidate.baseline, running_losses, _LEAST_GAIN)
        if wide:
            self.state.close_calls = _closest(close_calls, best.baseline)
        improved = (best.losses < before.losses * (1 - _LEAST_GAIN_OF_SWEEP)).any()
        return best.baseline, bool(improved)

    def _note_leverage(self, coordinate: int, running_losses: list[Owners], best_losses: list[Owners]) -> None:
        """Note by how much a change of a coordinate changed the loss."""
        change = torch.stack(running_losses) - torch.stack(best_losses[: len(running_losses)])
        self.leverage[coordinate].clamp_min_(change.abs().max())

    def cross(self, baseline: Baselines, other: Baselines) -> Baselines:
        """Adopt the values of each player from another baseline if they lower the loss."""
        players = self.comparer.objective.evaluator.players
        best = _Best(baseline, list(self.comparer.running_losses(baseline)))
        for player in range(len(players)):
            candidate = torch.where(players.labels.flatten() == player, other, best.baseline)
            if torch.equal(candidate, best.baseline):
                continue
            running_losses = self.comparer.compare(candidate, best.running_losses, _DROPPED_IF_CLOSE)
            if len(running_losses) == len(best.running_losses):
                best = best.or_better(candidate, running_losses, least_gain=0.0)
        return best.baseline


def _is_close_call(losses: Owners, best_losses: Owners) -> bool:
    """Return whether the loss of the only baseline is about as low as the best one."""
    return len(losses) == 1 and bool(losses <= best_losses * (1 + _CLOSE_CALL))


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
