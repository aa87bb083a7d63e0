"""The loss at the points of profiles, on samples and coalitions that are the same for all of them.

The loss is that of the search. On few evaluations, interactions within drawn cubes of players take the place of
whole tables, as they do in a search with many players. The samples of the default loss are drawn from all samples,
and those of the paper's losses are the first of the samples that baselines are compared on.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.data import seeded
from absentia.learning.faithful import Batch, FaithfulObjective
from absentia.learning.leaf_source import LeafSource
from absentia.learning.level_losses import LevelLosses
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Penalty, Plan
from absentia.learning.sample_draws import WeightedSamples
from absentia.learning.space import Baselines
from absentia.learning.value_profiles import ComparedLosses, GroupedFigures, compare_with_last

# The samples of a profile: the most, the fewest with whole tables, and the fewest with drawn cubes.
_MOST_SAMPLES = 128
_MOST_SAMPLES_OF_LEAVES = 48
_FEWEST_WITH_TABLES = 32
_FEWEST_WITH_CUBES = 64
_FEWEST_SAMPLES = 8

# The fewest and the most players of drawn cubes, if tables are too large.
_SMALLEST_CUBE = 4
_LARGEST_CUBE = 8

# The players of drawn cubes for the paper's losses: the larger ones if each sample can have so many of them.
_LARGER_CUBE_OF_PENALTY = 6
_SMALLER_CUBE_OF_PENALTY = 4
_FEWEST_LARGER_CUBES = 4

# Errors come from this many groups of samples. Those of leaves are batches of their own.
_GROUPS = 16
_BATCHES_OF_LEAVES = 8

# The maximum number of entries of stand-ins that are held at once.
_MOST_ENTRIES = 2**24

# The streams of random numbers of the draws.
_STREAM = "profiles"


@runtime_checkable
class ProfiledLoss(Protocol):
    """A loss at the points of profiles; ``rows`` are the numbers of its samples."""

    rows: Int[Tensor, " samples"]
    learned: Baselines

    @property
    def evaluations(self) -> int:
        """The rows that were evaluated so far; 0 if the leaves of trees give the values."""

    def compare(self, moved: Float[Tensor, "points owners entries"]) -> ComparedLosses:
        """Compute the losses of moved baselines, and last of the learned ones."""

    def values(self, rows: Int[Tensor, " rows"], others: Int[Tensor, " rows"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of samples whose absent players have the values of other samples."""


def group_numbers(owner: Int[Tensor, " samples"], groups: int) -> Int[Tensor, " samples"]:
    """Return the group of each sample, so that those of each owner are spread over the groups evenly."""
    numbers = torch.zeros_like(owner)
    for number in owner.unique().tolist():
        own = (owner == number).nonzero().flatten()
        numbers[own] = torch.arange(len(own)) % groups
    return numbers


class FaithfulProfiles:
    """The default loss at the points of profiles, with values from the model."""

    def __init__(self, objective: FaithfulObjective, learned: Baselines) -> None:
        self.objective = objective
        self.learned = learned
        generator = seeded(objective.seed, _STREAM)
        pool = _pool(objective)
        self.batch = objective.draw(pool, generator, min(len(pool), objective.batch))
        self.rows = self.batch.rows
        self._at_once = max(1, _MOST_ENTRIES // (len(self.rows) * learned.shape[1]))

    @classmethod
    def within(cls, objective: FaithfulObjective, learned: Baselines, rows: int) -> FaithfulProfiles | None:
        """Return the loss with at most this many rows for each point; None if these are too few."""
        size = _size_within(objective, rows)
        if size is None:
            return None
        samples, cube = size
        return cls(objective.on_fewer_samples(samples, cube), learned)

    @property
    def evaluations(self) -> int:
        """The rows that were evaluated so far."""
        return self.objective.evaluated_rows

    def compare(self, moved: Float[Tensor, "points owners entries"]) -> ComparedLosses:
        """Compute the losses of moved baselines, and last of the learned ones."""
        baselines = torch.cat([moved, self.learned[None]])
        parts = [self._figures(part) for part in baselines.split(self._at_once)]
        sums = torch.cat([part.sums for part in parts], dim=3)
        return compare_with_last(GroupedFigures(sums, parts[0].weights), self.objective.losses)

    def _figures(self, baselines: Float[Tensor, "points owners entries"]) -> GroupedFigures:
        """Compute the figures of groups of samples."""
        objective = self.objective
        sums = []
        weights = []
        for figure in objective.figures_of_samples(baselines, self.batch):
            sums.append(self._by_group(figure.values, figure.rows))
            weights.append(self._by_group(torch.ones(1, len(figure.rows)).double(), figure.rows)[..., 0])
        # The noise of the mean is a scale, which does not change with the samples that are left out.
        scale = objective.mean_by_owner(self.batch.usual, self.batch.rows[: len(self.batch.usual)])
        sums.append(scale[None, :, None].expand_as(sums[0]))
        weights.append(torch.ones_like(weights[0]))
        return GroupedFigures(torch.stack(sums), torch.stack(weights))

    def _by_group(
        self, values: Float[Tensor, "points samples"], rows: Int[Tensor, " samples"]
    ) -> Float[Tensor, "groups owners points"]:
        """Sum values over the samples of each group and owner."""
        owner = self.objective.owner[rows]
        cells = group_numbers(owner, _GROUPS) * self.objective.owners + owner
        sums = torch.zeros(_GROUPS * self.objective.owners, len(values)).double()
        return sums.index_add(0, cells, values.T).unflatten(0, (_GROUPS, -1))

    def values(self, rows: Int[Tensor, " rows"], others: Int[Tensor, " rows"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of samples whose absent players have the values of other samples."""
        return self.objective.values_between(rows, others, coalitions)


def _pool(objective: FaithfulObjective) -> Int[Tensor, " samples"]:
    """Return the samples to draw from: all of them, because those that are kept aside are too few to tell much."""
    return torch.cat([objective.learned, objective.aside]).unique()


def _size_within(objective: FaithfulObjective, rows: int) -> tuple[int, int] | None:
    """Return the samples, and the players of tables, of a loss that takes at most so many rows; None if none fits.

    Whole tables come first, then the largest cubes of enough samples, and then fewer samples with the smallest cubes.
    """
    available = len(_pool(objective))
    most = max(objective.owners, min(available, _MOST_SAMPLES))

    def affordable(cube: int) -> int:
        return min(most, rows // objective.rows_per_sample(cube))

    if objective.whole and affordable(objective.cube) >= min(available, _FEWEST_WITH_TABLES):
        return affordable(objective.cube), objective.cube
    largest = min(objective.cube, _LARGEST_CUBE)
    for cube in range(largest, _SMALLEST_CUBE - 1, -1):
        if affordable(cube) >= min(available, max(objective.owners, _FEWEST_WITH_CUBES)):
            return affordable(cube), cube
    smallest = min(objective.cube, _SMALLEST_CUBE)
    if affordable(smallest) >= min(available, max(objective.owners, _FEWEST_SAMPLES)):
        return affordable(smallest), smallest
    return None


class LeafProfiles:
    """The default loss at the points of profiles, with values from the leaves of trees."""

    def __init__(self, objective: FaithfulObjective, source: LeafSource, learned: Baselines) -> None:
        pool = _pool(objective)
        samples = min(len(pool), max(objective.owners, _MOST_SAMPLES_OF_LEAVES))
        generator = seeded(objective.seed, _STREAM)
        drawn = objective.on_fewer_samples(samples, objective.cube).draw(pool, generator, samples).rows
        self._pool = pool
        self.rows = drawn
        groups = self._groups(objective, drawn)
        self.objective = objective.on_fewer_samples(max(len(rows) for rows in groups), objective.cube)
        self.learned = learned
        batches = [self._batch(rows, generator) for rows in groups]
        self.weights = torch.tensor([float(len(rows)) for rows in groups]).double()
        self._level_losses = LevelLosses(self.objective, source, learned, batches)

    @property
    def evaluations(self) -> int:
        """The rows that were evaluated so far: none, because leaves give the values."""
        return 0

    @staticmethod
    def _groups(objective: FaithfulObjective, rows: Int[Tensor, " samples"]) -> list[Int[Tensor, " own"]]:
        """Split samples into groups with samples of every owner in each."""
        owner = objective.owner[rows]
        fewest = int(owner.bincount(minlength=objective.owners).min())
        numbers = group_numbers(owner, max(1, min(_BATCHES_OF_LEAVES, fewest)))
        return [rows[numbers == number] for number in numbers.unique().tolist()]

    def _batch(self, rows: Int[Tensor, " samples"], generator: torch.Generator) -> Batch:
        """Draw what a group of samples is evaluated on; scores cost little, and come from all samples."""
        batch = self.objective.draw(rows, generator, len(rows))
        everywhere = self.objective.draw(self._pool, generator, len(rows))
        return batch._replace(empty=everywhere.empty)

    def compare(self, moved: Float[Tensor, "points owners entries"]) -> ComparedLosses:
        """Compute the losses of moved baselines, and last of the learned ones."""
        figures = self._level_losses.figures(moved.transpose(0, 1))  # (batches, 5, owners, points), the present first
        # The noise of the mean is a scale, which does not change with the samples that are left out.
        scale = (figures[:, -1] * self.weights[:, None, None]).sum(0) / self.weights.sum()
        figures = torch.cat([figures[:, :-1], scale.expand(len(figures), 1, -1, -1)], dim=1)
        learned_last = figures.roll(-1, dims=3).transpose(0, 1)
        weights = self.weights[None, :, None].expand(len(learned_last), -1, self.objective.owners)
        return compare_with_last(GroupedFigures(learned_last * weights[..., None], weights), self.objective.losses)

    def values(self, rows: Int[Tensor, " rows"], others: Int[Tensor, " rows"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of samples whose absent players have the values of other samples."""
        return self.objective.values_between(rows, others, coalitions)


class PaperProfiles:
    """One of the paper's losses at the points of profiles."""

    def __init__(
        self, objective: PaperObjective, learned: Baselines, rows: WeightedSamples, size: _PenaltySize
    ) -> None:
        self.objective = copy.copy(objective)
        self.objective.evaluations = 0
        self.learned = learned
        self.rows = rows.rows
        self.weights = rows.weights
        generator = seeded(objective.seed, _STREAM)
        plans = [size.plan(objective, generator)]
        self.tie_weight = 0.0
        if objective.decides_ties:
            self.tie_weight = objective.tie_weight / objective.penalty.scale * size.penalty.scale
            plans += [objective.all_orders.walks(size.samples, 1, generator), objective.detours]
        self.plans = plans

    @classmethod
    def within(cls, objective: PaperObjective, learned: Baselines, rows: int) -> PaperProfiles | None:
        """Return the loss with at most this many rows for each point; None if these are too few."""
        size = _PenaltySize.within(objective, rows)
        if size is None:
            return None
        return cls(objective, learned, objective.compared.part(slice(0, size.samples)), size)

    @property
    def evaluations(self) -> int:
        """The rows that were evaluated so far."""
        return self.objective.evaluations

    def compare(self, moved: Float[Tensor, "points owners entries"]) -> ComparedLosses:
        """Compute the losses of moved baselines, and last of the learned ones."""
        baselines = torch.cat([moved, self.learned[None]])
        penalties = [self.objective.penalties(baselines, self.rows, plan) for plan in self.plans]
        sums = torch.stack([self._by_group(figure * self.weights) for figure in penalties])
        weights = self._by_group(self.weights[None])[..., 0].expand(len(penalties), -1, -1)
        return compare_with_last(GroupedFigures(sums, weights), self._losses)

    def _losses(self, figures: Float[Tensor, "figures columns"]) -> Float[Tensor, " columns"]:
        """Add the terms that decide ties to the penalty, if there are any."""
        return figures[0] + self.tie_weight * figures[1:].sum(0)

    def _by_group(self, values: Float[Tensor, "points samples"]) -> Float[Tensor, "groups owners points"]:
        """Sum values over the samples of each group and owner."""
        owner = self.objective.owner[self.rows]
        cells = group_numbers(owner, _GROUPS) * self.objective.owners + owner
        sums = torch.zeros(_GROUPS * self.objective.owners, len(values)).double()
        return sums.index_add(0, cells, values.T).unflatten(0, (_GROUPS, -1))

    def values(self, rows: Int[Tensor, " rows"], others: Int[Tensor, " rows"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of samples whose absent players have the values of other samples."""
        return self.objective.values_between(rows, others, coalitions)


@dataclass(frozen=True)
class _PenaltySize:
    """The samples of a penalty, and the rows of each: those of the search's own plan, or of drawn cubes or walks."""

    samples: int
    rows_per_sample: int
    penalty: Penalty

    @classmethod
    def within(cls, objective: PaperObjective, rows: int) -> _PenaltySize | None:
        """Return the samples, the penalty and its rows that are affordable; None if there are too few."""
        penalty = objective.penalty
        available = len(objective.compared.rows)
        most = max(objective.owners, min(available, _MOST_SAMPLES))
        rows_for_ties = 2 * penalty.players + 3 if objective.decides_ties else 0
        affordable = min(most, rows // (objective.plan.rows_per_sample + rows_for_ties))
        if affordable >= min(available, max(objective.owners, _FEWEST_WITH_TABLES)):
            return cls(affordable, objective.plan.rows_per_sample, penalty)
        per_sample = rows // most - rows_for_ties
        cube = _LARGER_CUBE_OF_PENALTY
        if per_sample < _FEWEST_LARGER_CUBES * 2**cube:
            cube = _SMALLER_CUBE_OF_PENALTY
        smaller = replace(penalty, per_sample=0, cube=min(cube, penalty.largest))
        fewest = smaller.largest + 1 if smaller.loss == "marginal" else 2**cube
        samples = min(most, rows // (fewest + rows_for_ties))
        if samples < min(available, max(objective.owners, _FEWEST_SAMPLES)):
            return None
        return cls(samples, max(fewest, per_sample), smaller)

    def plan(self, objective: PaperObjective, generator: torch.Generator) -> Plan:
        """Return the plan of the comparison for the first samples, or draw one of cubes or walks."""
        if self.penalty == objective.penalty:
            return objective.plan.of(slice(0, self.samples))
        if self.penalty.loss == "marginal":
            walks = max(1, self.rows_per_sample // (self.penalty.largest + 1))
            return self.penalty.walks(self.samples, walks, generator)
        # A fit of order-wise values would mix players.
        return self.penalty.subcubes(self.samples, self.rows_per_sample, generator)


def profiled_loss(
    objective: PaperObjective | FaithfulObjective, learned: Baselines, rows: int
) -> ProfiledLoss | None:
    """Return the loss at the points of profiles with at most this many rows for each; None if these are too few."""
    if isinstance(objective, PaperObjective):
        return PaperProfiles.within(objective, learned, rows)
    source = objective.source
    if isinstance(source, LeafSource) and source.sums_are_exact:
        return LeafProfiles(objective, source, learned)
    return FaithfulProfiles.within(objective, learned, rows)
