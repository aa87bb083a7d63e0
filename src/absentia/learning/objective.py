"""The penalty as a function of the baseline: its value and gradient, over samples in blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.absence import OwnBaselines
from absentia.errors import AbsentiaError
from absentia.learning.penalties import Penalty, Plan
from absentia.learning.samples import Chosen
from absentia.masked_model import MaskedModel

# Rows of masked inputs whose graph is held at a time for a gradient.
_ROWS_PER_BLOCK = 2**15


@dataclass
class Objective:
    """The mean penalty over the samples of each owner: all of them, those of a class, or one sample.

    A baseline is (owners, entries), and ``owner`` tells whose each sample is.
    """

    game: MaskedModel
    penalty: Penalty
    owner: Int[Tensor, " samples"]
    evaluations: int = field(default=0, init=False)

    @property
    def owners(self) -> int:
        """How many baselines are learned."""
        return int(self.owner.max()) + 1

    def outputs(self) -> Float[Tensor, "samples *features"]:
        """Evaluate the samples as they are."""
        everyone = torch.ones(1, self.penalty.players, dtype=torch.bool)
        self.evaluations += len(self.owner)
        return self.game.part(torch.arange(len(self.owner)), self.game.absence, gradient=False)(everyone)[:, 0]

    def losses(
        self, baseline: Float[Tensor, "owners entries"], chosen: Chosen, plan: Plan
    ) -> Float[Tensor, " owners"]:
        """Compute the mean penalty over each owner's samples, without a gradient."""
        sums = torch.zeros(self.owners).double()
        for part in self._parts(len(chosen.rows), plan):
            rows = chosen.rows[part]
            per_sample = self.penalties(baseline, rows, plan.of(part), gradient=False).double().cpu()
            sums.index_add_(0, self.owner[rows], per_sample * chosen.weights[part])
        return sums / self._totals(chosen)

    def gradient(
        self, baseline: Float[Tensor, "owners entries"], chosen: Chosen, plan: Plan
    ) -> tuple[Float[Tensor, " owners"], Float[Tensor, "owners entries"]]:
        """Compute the mean penalties and their gradient, one block of samples at a time."""
        totals = self._totals(chosen)
        leaf = baseline.detach().clone().requires_grad_()
        sums = torch.zeros(self.owners).double()
        for part in self._parts(len(chosen.rows), plan):
            rows = chosen.rows[part]
            per_sample = self.penalties(leaf, rows, plan.of(part), gradient=True).double().cpu()
            weighted = per_sample * chosen.weights[part]
            (weighted / totals[self.owner[rows]]).sum().backward()
            sums.index_add_(0, self.owner[rows], weighted.detach())
        gradient = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        return sums / totals, gradient

    def penalties(
        self,
        baseline: Float[Tensor, "owners entries"],
        samples: Int[Tensor, " some"],
        plan: Plan,
        gradient: bool = False,
    ) -> Float[Tensor, " some"]:
        """Compute the penalty of each of some samples, all at once."""
        rows = baseline[self.owner[samples]].unflatten(1, self.game.players.shape)
        game = self.game.part(samples, OwnBaselines(rows), gradient=gradient)
        penalties = plan.penalty(game(plan.coalitions))
        self.evaluations += len(samples) * plan.coalitions.shape[-2] * game.draws
        if not bool(torch.isfinite(penalties.detach()).all()):
            sample = int(samples[int((~torch.isfinite(penalties)).int().argmax())])
            raise AbsentiaError(f"loss must be finite. Got {float(penalties.sum())} for sample {sample} instead.")
        return penalties

    def _parts(self, samples: int, plan: Plan) -> tuple[Tensor, ...]:
        size = max(1, _ROWS_PER_BLOCK // plan.coalitions.shape[-2])
        return torch.arange(samples).split(size)

    def _totals(self, chosen: Chosen) -> Tensor:
        """Add up the weights of each owner's samples."""
        totals = torch.zeros(self.owners).double().index_add_(0, self.owner[chosen.rows], chosen.weights)
        return torch.where(totals > 0, totals, 1.0)
