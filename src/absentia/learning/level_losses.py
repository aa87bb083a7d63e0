"""The default loss of many candidates at once, for models of trees whose value is a sum over leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.learning.faithful import Batch, FaithfulObjective
from absentia.learning.followed_pairs import FollowedEmptyValues, FollowedStrengths, FollowedValues
from absentia.learning.leaf_source import LeafSource
from absentia.learning.space import Baselines

if TYPE_CHECKING:
    from absentia.trees.levels import Levels

# Candidates are ranked on this share of the samples.
_ROUGH_SHARE = 1 / 4


class LevelLosses:
    """The losses of baselines that differ from the present ones in one coordinate, on all samples of batches.

    By default these are the samples that are compared. The losses equal the objective's own up to rounding.
    """

    def __init__(
        self,
        objective: FaithfulObjective,
        source: LeafSource,
        present: Baselines,
        batches: Sequence[Batch] | None = None,
    ) -> None:
        self.objective = objective
        self.source = source
        self.present = present
        codes = source.encode(present.to(source.evaluator.x))
        if batches is None:
            batches = objective.compared_batches
        self._figures = [_LevelFigures(objective, source, codes, batch) for batch in batches]

    def losses(self, candidates: Float[Tensor, "owners levels entries"]) -> Float[Tensor, "owners levels"]:
        """Compute the loss of each candidate of each owner."""
        return self._losses_on(self._figures, candidates)

    def rough_losses(self, candidates: Float[Tensor, "owners levels entries"]) -> Float[Tensor, "owners levels"]:
        """Compute the losses on a part of the samples, which is enough to rank candidates."""
        return self._losses_on(self._figures[: math.ceil(_ROUGH_SHARE * len(self._figures))], candidates)

    def _losses_on(
        self, figures: list[_LevelFigures], candidates: Float[Tensor, "owners levels entries"]
    ) -> Float[Tensor, "owners levels"]:
        """Compute the loss of each candidate on some batches."""
        from absentia.trees.levels import MOST_LEVELS

        parts = candidates.split(MOST_LEVELS - 1, dim=1)
        return torch.cat([self._losses_of_few(figures, part) for part in parts], dim=1)

    def _losses_of_few(
        self, of_batches: list[_LevelFigures], candidates: Float[Tensor, "owners levels entries"]
    ) -> Float[Tensor, "owners levels"]:
        """Compute the loss of each candidate, of no more than can be followed together."""
        figures = self._figures_of(of_batches, candidates)
        weights = torch.tensor([float(len(batch_figures.batch.rows)) for batch_figures in of_batches])
        means = (figures * weights.to(figures)[:, None, None, None]).sum(0) / weights.sum()
        of_present_and_candidates = self.objective.losses(means.flatten(1)).unflatten(0, means.shape[1:])
        return of_present_and_candidates[:, 1:]

    def figures(
        self, candidates: Float[Tensor, "owners levels entries"]
    ) -> Float[Tensor, "batches 5 owners levels_and_present"]:
        """Compute the figures of each batch, first of the present baselines and then of few candidates."""
        return self._figures_of(self._figures, candidates)

    def _figures_of(
        self, of_batches: list[_LevelFigures], candidates: Float[Tensor, "owners levels entries"]
    ) -> Float[Tensor, "batches 5 owners levels_and_present"]:
        """Compute the figures of some batches."""
        levels = self._levels(candidates)
        return torch.stack([batch_figures.at(levels) for batch_figures in of_batches])

    def move_to(self, baselines: Baselines) -> None:
        """Take other baselines as the present ones."""
        levels = self._levels(baselines[:, None])
        for batch_figures in self._figures:
            batch_figures.move(levels)
        self.present = baselines

    def _levels(self, candidates: Float[Tensor, "owners levels entries"]) -> Levels:
        """Return levels that begin with the present baselines."""
        return self.source.levels(torch.cat([self.present[:, None], candidates], dim=1))


class _LevelFigures:
    """The figures of the loss on a batch, in the order of the objective."""

    def __init__(self, objective: FaithfulObjective, source: LeafSource, codes: Tensor, batch: Batch) -> None:
        self.objective = objective
        self.batch = batch
        inputs = objective.inputs
        owner = objective.owner
        rows = batch.rows
        self.concision = FollowedStrengths(
            source, codes, inputs[rows], owner[rows], rows, baselines_are_present=False
        )
        scored_rows = batch.scored_rows
        self.scored_values = FollowedValues(
            source, codes, inputs[scored_rows], owner[scored_rows], batch.scored, scored_rows
        )
        owned, scored_on = batch.empty
        self.empty_values = FollowedEmptyValues(source, codes, inputs[scored_on], owner[owned], scored_on)
        self.noise = None
        if objective.weights.noise:
            rows = rows[: len(batch.references)]
            self.noise = FollowedStrengths(
                source, codes, batch.references, owner[rows], rows, baselines_are_present=True
            )

    def at(self, levels: Levels) -> Float[Tensor, "5 owners levels"]:
        """Compute the figures at each level."""
        concision = self._mean(self.concision.at(levels), self.batch.rows)
        usual = self.batch.usual
        noise_of_mean = self._mean(usual[:, None].expand(-1, concision.shape[1]), self.batch.rows[: len(usual)])
        return torch.stack(
            [
                concision,
                self._score_over_sizes(levels),
                self._excess_at_nothing(levels),
                self._noise(levels, noise_of_mean),
                noise_of_mean,
            ]
        )

    def move(self, levels: Levels) -> None:
        """Take the second level as the present baselines; the first are those before."""
        self.concision.move(levels)
        self.scored_values.move(levels)
        self.empty_values.move(levels)
        if self.noise is not None:
            self.noise.move(levels)

    def _score_over_sizes(self, levels: Levels) -> Float[Tensor, "owners levels"]:
        """Compute the score of masked predictions over all coalition sizes."""
        rows = self.batch.scored_rows
        values = self.scored_values.at(levels)
        scores = self.objective.score(values.flatten(1), rows).unflatten(1, values.shape[1:])
        return self._mean(scores.mean(2), rows)

    def _excess_at_nothing(self, levels: Levels) -> Float[Tensor, "owners levels"]:
        """Compute how far the score with all players absent exceeds that of the best constant prediction."""
        owned, scored_on = self.batch.empty
        score = self.objective.score(self.empty_values.at(levels), scored_on)
        return self._mean(score - self.objective.score.prior[scored_on, None], owned)

    def _noise(self, levels: Levels, of_mean: Tensor) -> Float[Tensor, "owners levels"]:
        """Compute Σ|U(S)| of the baselines themselves against white noise; if it has no weight, use the mean's."""
        if self.noise is None:
            return of_mean
        return self._mean(self.noise.at(levels), self.batch.rows[: len(self.batch.references)])

    def _mean(self, values: Float[Tensor, "rows levels"], rows: Tensor) -> Float[Tensor, "owners levels"]:
        """Average over the samples of each owner."""
        objective = self.objective
        owner = objective.owner[rows]
        counts = owner.bincount(minlength=objective.owners).clamp_min(1)
        sums = torch.zeros(objective.owners, values.shape[1]).double().index_add(0, owner, values)
        return sums / counts[:, None]
