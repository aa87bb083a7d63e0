"""Sweeps for models of trees, which try values that make a difference.

A tree only sees between which thresholds a value lies. So the values of a column fall into intervals in which the
loss is constant. One value stands for each interval that the data reach: the median of the data in it. If there are
many, some all over the range are ranked on a part of the samples. Only the best of them are compared on all, in this
sweep and in later ones, and all next to the present one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.data import seeded
from absentia.learning.assessment import Assessment
from absentia.learning.checkpoint import SearchState
from absentia.learning.comparer import Comparer
from absentia.learning.faithful import FaithfulObjective
from absentia.learning.leaf_source import LeafSource
from absentia.learning.level_losses import LevelLosses
from absentia.learning.search_ends import EndKind, SearchEnd
from absentia.learning.space import Baselines, Owners, Space

# The maximum number of coordinates that trees use, of which each is searched at a time.
MAX_SWEPT = 1024

# The maximum number of sweeps.
MAX_SWEEPS = 14

# The share by which a value must lower the loss to be adopted, and a sweep to be followed by another.
_LEAST_GAIN = 1e-6
_LEAST_GAIN_OF_SWEEP = 1e-3

# The maximum number of values of a column in which thresholds are looked for.
_MOST_VALUES = 2048

# The levels that are ranked all over the range, and how many of them are compared on all samples.
_RANKED_LEVELS = 32
_BEST_LEVELS = 6
# How far from the present level all levels are compared.
_NEAREST_LEVELS = 3

# The stream of random numbers that the orders of coordinates are drawn from.
_STREAM = 2


class LevelSweeps:
    """Sweeps over the levels of all coordinates.

    ``leverage`` is the most that each coordinate ever mattered; sweeps raise it in place.
    """

    def __init__(
        self,
        comparer: Comparer,
        objective: FaithfulObjective,
        source: LeafSource,
        space: Space,
        state: SearchState,
        leverage: Float[Tensor, " coordinates"],
    ) -> None:
        self.comparer = comparer
        self.objective = objective
        self.source = source
        self.space = space
        self.state = state
        self.leverage = leverage
        self._best_levels: dict[int, Int[Tensor, "owners best"]] = {}  # of each coordinate with many levels

    def sweep_while_it_helps(self, baseline: Baselines) -> Baselines:
        """Sweep until no other value of a coordinate helps."""
        levels = {}
        for coordinate in range(len(self.space)):
            self.leverage[coordinate].clamp_min_(0.0)
            values = self._levels(baseline, coordinate)
            if len(values) > 1:
                levels[coordinate] = values
        if len(levels) > MAX_SWEPT:
            self.state.unfinished = SearchEnd(EndKind.NO_GRADIENT, coordinates=len(levels))
            return baseline
        used = torch.tensor(list(levels))
        searched_at: dict[int, Baselines] = {}  # the result of each coordinate's last search
        losses = self.comparer.losses(baseline)
        for turn in range(MAX_SWEEPS):
            shuffled = torch.randperm(len(used), generator=seeded(self.objective.seed, _STREAM, turn))
            losses_before = losses
            level_losses = LevelLosses(self.objective, self.source, baseline)
            for coordinate in used[shuffled].tolist():
                if coordinate in searched_at and torch.equal(searched_at[coordinate], baseline):
                    continue  # nothing has changed since
                losses = self._improve(level_losses, losses, coordinate, levels[coordinate])
                baseline = level_losses.present
                searched_at[coordinate] = baseline
            self.comparer.pace.count_sweep()
            if not bool((losses < losses_before * (1 - _LEAST_GAIN_OF_SWEEP)).any()):
                return baseline
        self.state.unfinished = SearchEnd(EndKind.SWEEPS_DONE, sweeps=MAX_SWEEPS)
        return baseline

    def _improve(
        self, level_losses: LevelLosses, losses: Owners, coordinate: int, levels: Float[Tensor, "levels own"]
    ) -> Owners:
        """Try all levels of a coordinate, and move to each owner's best one; return the losses."""
        self.comparer.check_time()
        baseline = level_losses.present
        candidates = self._candidates(baseline, coordinate, self._tried(level_losses, coordinate, levels))
        of_candidates = level_losses.losses(candidates)
        self.leverage[coordinate].clamp_min_((of_candidates - losses[:, None]).abs().max())
        least_losses, best = of_candidates.min(1)
        better = least_losses < losses * (1 - _LEAST_GAIN)
        if better.any():
            adopted = candidates[torch.arange(len(baseline)), best]
            level_losses.move_to(torch.where(better[:, None], adopted, baseline))
            losses = torch.where(better, least_losses, losses)
        self.comparer.remember_best(Assessment(level_losses.present, losses, losses))
        return losses

    def _tried(
        self, level_losses: LevelLosses, coordinate: int, levels: Float[Tensor, "levels own"]
    ) -> Float[Tensor, "owners tried own"]:
        """Return the levels that are tried for each owner, in ascending order; a level may occur twice."""
        baseline = level_losses.present
        is_choice = coordinate >= len(self.space.low)
        beside = torch.arange(-_NEAREST_LEVELS, _NEAREST_LEVELS + 1)
        if is_choice or len(levels) <= _BEST_LEVELS + len(beside):
            return levels.expand(len(baseline), -1, -1)
        if coordinate not in self._best_levels:
            self._best_levels[coordinate] = self._rank(level_losses, coordinate, levels)
        present = baseline[:, self.space.entries(coordinate)[0]]
        nearest = (levels[:, 0] - present[:, None]).abs().argmin(1)
        close = (nearest[:, None] + beside).clamp(0, len(levels) - 1)
        numbers = torch.cat([self._best_levels[coordinate], close], dim=1).sort(1).values
        return levels[numbers]

    def _rank(
        self, level_losses: LevelLosses, coordinate: int, levels: Float[Tensor, "levels own"]
    ) -> Int[Tensor, "owners best"]:
        """Return the numbers of the best levels all over the range, on a part of the samples."""
        baseline = level_losses.present
        numbers = _evenly_spaced(len(levels), _RANKED_LEVELS)
        ranked = levels[numbers].expand(len(baseline), -1, -1)
        losses = level_losses.rough_losses(self._candidates(baseline, coordinate, ranked))
        return numbers[losses.argsort(1)[:, :_BEST_LEVELS]]

    def _candidates(
        self, baseline: Baselines, coordinate: int, levels: Float[Tensor, "owners levels own"]
    ) -> Float[Tensor, "owners levels all"]:
        """Return the baselines with each level of a coordinate."""
        entries = self.space.entries(coordinate)
        candidates = baseline[:, None].repeat(1, levels.shape[1], 1)
        candidates[:, :, entries] = levels
        return candidates

    def _levels(self, baseline: Baselines, coordinate: int) -> Float[Tensor, "levels own"]:
        """Return the values of a coordinate's entries that the trees distinguish."""
        space = self.space
        entries = space.entries(coordinate)
        if coordinate >= len(space.low):
            choices = space.choices[coordinate - len(space.low)]
            return _one_of_each(choices, self._codes(baseline, coordinate, choices))
        data = space.data[:, entries].flatten().double().clamp(space.low[coordinate], space.high[coordinate])
        ascending = data.sort().values
        values = ascending[_evenly_spaced(len(data), _MOST_VALUES), None].expand(-1, len(entries))
        return _one_of_each(values, self._codes(baseline, coordinate, values))

    def _codes(self, baseline: Baselines, coordinate: int, values: Tensor) -> Tensor:
        """Return what the trees see of the first baseline with other values of a coordinate."""
        candidates = self._candidates(baseline[:1], coordinate, values[None])[0]
        return self.source.encode(candidates.to(self.source.evaluator.x))


def _evenly_spaced(count: int, most: int) -> Int[Tensor, " chosen"]:
    """Return at most ``most`` numbers from 0 to count − 1, evenly spaced and including both ends."""
    return torch.linspace(0, count - 1, min(count, most)).round().long()


def _one_of_each(values: Float[Tensor, "values own"], codes: Tensor) -> Float[Tensor, "levels own"]:
    """Return the middle value of each run of values that have the same codes."""
    differs = (codes[1:] != codes[:-1]).any(1)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), differs.nonzero().flatten() + 1])
    ends = torch.cat([starts[1:], torch.tensor([len(values)])])
    return values[(starts + ends - 1) // 2]
