"""The default loss of many candidates at once, for models of trees whose value is a sum over leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.learning.faithful import Batch, FaithfulObjective
from absentia.learning.leaf_source import LeafSource

if TYPE_CHECKING:
    from absentia.trees.levels import Levels


@dataclass(frozen=True, eq=False)
class LevelLosses:
    """The losses of baselines that differ in one coordinate, on all samples that are compared.

    They equal the objective's own up to rounding. Candidates in ascending order are quickest: from one to the next,
    only the trees with a threshold between them change.
    """

    objective: FaithfulObjective
    source: LeafSource

    def losses(self, candidates: Float[Tensor, "owners levels entries"]) -> Float[Tensor, "owners levels"]:
        """Compute the loss of each candidate of each owner."""
        objective = self.objective
        levels = self.source.levels(candidates)
        figures = []
        weights = []
        for batch in objective.compared_batches:
            figures.append(len(batch.rows) * self._figures(levels, batch))
            weights.append(len(batch.rows))
        means = torch.stack(figures).sum(0) / sum(weights)
        return objective.losses(means.flatten(1)).unflatten(0, candidates.shape[:2])

    def _figures(self, levels: Levels, batch: Batch) -> Float[Tensor, "5 owners levels"]:
        """Compute the figures of the loss at each level; the order is that of the objective."""
        concision = self._concision(levels, batch)
        noise_of_mean = self._mean(
            batch.usual[:, None].expand(-1, concision.shape[1]), batch.rows[: len(batch.usual)]
        )
        return torch.stack(
            [
                concision,
                self._score_over_sizes(levels, batch),
                self._excess_at_nothing(levels, batch),
                self._noise(levels, batch, noise_of_mean),
                noise_of_mean,
            ]
        )

    def _concision(self, levels: Levels, batch: Batch) -> Float[Tensor, "owners levels"]:
        """Compute Σ|U(S)| of samples."""
        objective = self.objective
        rows = batch.rows
        owners = objective.owner[rows]
        sums = self.source.level_strengths(objective.inputs[rows], levels, owners, rows, levels_are_present=False)
        return self._mean(sums, rows)

    def _score_over_sizes(self, levels: Levels, batch: Batch) -> Float[Tensor, "owners levels"]:
        """Compute the score of masked predictions over all coalition sizes."""
        objective = self.objective
        rows = batch.scored_rows
        owners = objective.owner[rows]
        values = self.source.level_values(objective.inputs[rows], levels, owners, batch.scored, rows)
        scores = objective.score(values.flatten(1), rows).unflatten(1, values.shape[1:])
        return self._mean(scores.mean(2), rows)

    def _excess_at_nothing(self, levels: Levels, batch: Batch) -> Float[Tensor, "owners levels"]:
        """Compute how far the score with all players absent exceeds that of the best constant prediction."""
        objective = self.objective
        owned, scored_on = batch.empty
        owners = objective.owner[owned]
        values = self.source.level_values_of_nobody(objective.inputs[scored_on], levels, owners, scored_on)
        score = objective.score(values, scored_on)
        return self._mean(score - objective.score.prior[scored_on, None], owned)

    def _noise(self, levels: Levels, batch: Batch, of_mean: Tensor) -> Float[Tensor, "owners levels"]:
        """Compute Σ|U(S)| of the baselines themselves against white noise; if it has no weight, use the mean's."""
        objective = self.objective
        if not objective.weights.noise:
            return of_mean
        rows = batch.rows[: len(batch.references)]
        owners = objective.owner[rows]
        sums = self.source.level_strengths(batch.references, levels, owners, rows, levels_are_present=True)
        return self._mean(sums, rows)

    def _mean(self, values: Float[Tensor, "rows levels"], rows: Tensor) -> Float[Tensor, "owners levels"]:
        """Average over the samples of each owner."""
        objective = self.objective
        owner = objective.owner[rows]
        counts = owner.bincount(minlength=objective.owners).clamp_min(1)
        sums = torch.zeros(objective.owners, values.shape[1]).double().index_add(0, owner, values)
        return sums / counts[:, None]
