"""Close calls: candidates that nearly tied on the samples that were compared, looked at again on all samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.learning.comparison import Comparison, mix
from absentia.learning.penalties import Plan
from absentia.learning.samples import Chosen

# All samples are looked at where that takes at most so many times the evaluations of a usual comparison; and ties, of
# which there are few, so many times.
TIMES, TIMES_FOR_TIES = 8, 32
# Where not all coalitions of all samples can be evaluated, so many are drawn, the same for all samples.
DRAWN, DRAWN_CUBE = 32, 4
# Calls that are settled by all coalitions of all samples, at most; and samples that tell whether a draw is needed.
MOST_EXACT, FEW = 16, 256
# Losses that differ by less than this share of them are the same but for rounding; or by so many roundings of the
# model's own type.
ROUNDING, ROUNDINGS = 1e-10, 8


@dataclass(frozen=True)
class CloseCalls:
    """The judge of close calls.

    Where all coalitions of all samples are affordable, the penalty over them decides. Where they are not, a draw may
    not decide between losses that nearly tie; but it shows a true tie, whatever was drawn: over all samples, and the
    same coalitions of each, the difference is then nothing but rounding. True ties go to the rare patterns of high
    order, on all samples too.
    """

    comparison: Comparison

    @property
    def open(self) -> bool:
        """Whether there is more to see than the comparison saw, at a cost that is worth it."""
        objective = self.comparison.objective
        samples = len(objective.owner)
        seen = self.exact and len(self.comparison.compared.rows) == samples
        each, of_ties = self.plan.coalitions.shape[-2], 3 * objective.penalty.players + 4
        affordable = samples * each <= TIMES * self.comparison.evaluations
        affordable &= samples * of_ties <= TIMES_FOR_TIES * self.comparison.evaluations
        return objective.owners == 1 and not seen and affordable

    @property
    def exact(self) -> bool:
        """Whether the penalty of all samples is affordable."""
        penalty, samples = self.comparison.objective.penalty, len(self.comparison.objective.owner)
        return (
            penalty.exact
            and samples * self.comparison.plan.coalitions.shape[-2] <= TIMES * self.comparison.evaluations
        )

    @property
    def plan(self) -> Plan:
        """All coalitions, or a few that are the same for all samples."""
        if self.exact:
            return self.comparison.plan
        penalty = replace(self.comparison.objective.penalty, per_sample=0, cube=DRAWN_CUBE)
        if penalty.exact:
            return penalty.exact_plan()
        if penalty.loss == "marginal":
            return _shared(penalty.plan(1, DRAWN, self._generator()))
        # A fit of order-wise Shapley values mixes players; within sub-cubes they are exact.
        return _shared(penalty.subcubes(1, DRAWN, self._generator()))

    def settle(self, baseline: Float[Tensor, "owners entries"], calls: Float[Tensor, "calls entries"]) -> Tensor:
        """Change the baseline as those calls say that are better; NaN stands for what a call leaves as it is."""
        if not self.open:
            return baseline
        plan = self.plan
        here, ties = self._mean(baseline, plan), None
        for call in calls[:MOST_EXACT] if self.exact else calls:
            candidate = torch.where(call.isnan(), baseline, call)
            if torch.equal(candidate, baseline) or self._alike(baseline, candidate, plan):
                continue
            found = self._mean(candidate, plan)
            if self._same(found, here):
                ties = self._ties(baseline) if ties is None else ties
                better = self._ties(candidate) < ties * (1 - 1e-6)
            else:
                better = self.exact and found < here * (1 - 1e-6)
            if better:
                baseline, here, ties = candidate, found, None
        return baseline

    def _same(self, one: float, other: float) -> bool:
        """Tell whether two losses are the same but for rounding."""
        dtype = self.comparison.objective.game.dtype
        roundings = ROUNDINGS * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
        return abs(one - other) <= max(ROUNDING, roundings) * abs(other)

    def _alike(self, one: Tensor, other: Tensor, plan: Plan) -> bool:
        """Tell at less cost whether no sample tells two baselines apart.

        The comparison then saw the tie itself; or the draw leaves the player out, and says nothing of it.
        """
        samples = len(self.comparison.objective.owner)
        if self.exact or samples <= FEW:
            return False
        penalties = [
            self.comparison.objective.penalties(baseline, torch.arange(FEW), plan) for baseline in (one, other)
        ]
        return bool((penalties[0] - penalties[1]).abs().max() <= ROUNDING * penalties[0].abs().max())

    def _ties(self, baseline: Tensor) -> float:
        """Add up the walks and the detours of all samples."""
        walks = _shared(self.comparison.all_orders.walks(1, 2, self._generator()))
        return self._mean(baseline, walks) + self._mean(baseline, self.comparison.detours)

    def _mean(self, baseline: Tensor, plan: Plan) -> float:
        everyone = Chosen.evenly(torch.arange(len(self.comparison.objective.owner)))
        return float(self.comparison.objective.losses(baseline, everyone, plan))

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(mix(self.comparison.seed, 3, 0))


def _shared(plan: Plan) -> Plan:
    """Give all samples the coalitions that were drawn for one."""
    return plan if plan.coalitions.ndim == 2 else Plan(plan.coalitions[0], plan.penalty)
