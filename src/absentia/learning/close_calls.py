"""Close calls between baselines, decided on all samples."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data import seeded
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Plan
from absentia.learning.sample_draws import WeightedSamples, equally_weighted
from absentia.learning.space import Baselines

# Changed values of a baseline, and NaN for the others.
CloseCalls: TypeAlias = Float[Tensor, "calls entries"]

# The maximum number of close calls that are decided by the exact penalty.
_MOST_EXACT = 16

# Close calls and true ties are judged on all samples if that takes at most this many times the rows of a comparison.
_MOST_TIMES = 8
_MOST_TIMES_FOR_TIES = 32

# The number of drawn coalitions, the same for all samples, if not all can be evaluated, and the players of a
# sub-cube.
_DRAWN_COALITIONS = 32
_PLAYERS_OF_SUBCUBE = 4

# The number of samples used to find out whether the drawn coalitions can distinguish two baselines.
_FEW_SAMPLES = 256

# The share, or the roundings of the model's type, by which equal losses may differ.
_ROUNDING = 1e-10
_ROUNDINGS_OF_MODEL = 8

# The share by which a lower loss counts as better.
_LEAST_GAIN = 1e-6

# The stream of random numbers of these draws.
_STREAM = 3


def settle(objective: PaperObjective, baseline: Baselines, calls: CloseCalls) -> Baselines:
    """Judge close calls on all samples, and return the baseline with the changes that are better.

    If all coalitions of all samples are affordable, the penalty over them decides. If not, drawn coalitions cannot
    decide between losses that are nearly equal, but they do reveal a true tie: over all samples and the same
    coalitions of each, the losses differ only by rounding. True ties go to the baseline with the smaller walks and
    detours over all samples, unless the objective does without these.
    """
    judge = _Judge.of(objective)
    if not judge.is_worthwhile():
        return baseline
    if judge.exact:
        calls = calls[:_MOST_EXACT]
    loss = judge.loss(baseline)
    tie_loss: float | None = None  # computed at the first tie
    for call in calls:
        candidate = torch.where(call.isnan(), baseline, call)
        if torch.equal(candidate, baseline) or judge.sees_no_difference(baseline, candidate):
            continue
        candidate_loss = judge.loss(candidate)
        if judge.is_tie(candidate_loss, loss):
            if not objective.decides_ties:
                continue
            if tie_loss is None:
                tie_loss = judge.tie_loss(baseline)
            better = judge.tie_loss(candidate) < tie_loss * (1 - _LEAST_GAIN)
        else:
            better = judge.exact and candidate_loss < loss * (1 - _LEAST_GAIN)
        if better:
            baseline = candidate
            loss = candidate_loss
            tie_loss = None
    return baseline


@dataclass(frozen=True, eq=False)
class _Judge:
    """The penalty on all samples, over all coalitions if ``exact``, or over drawn ones."""

    objective: PaperObjective
    plan: Plan
    exact: bool
    everyone: WeightedSamples

    @classmethod
    def of(cls, objective: PaperObjective) -> "_Judge":
        """Return the judge that an objective can afford."""
        samples = len(objective.owned)
        every_row = samples * objective.plan.coalitions.shape[-2]
        exact = objective.penalty.exact and every_row <= _MOST_TIMES * objective.rows
        plan = objective.plan if exact else _drawn_plan(objective)
        return cls(objective, plan, exact, equally_weighted(objective.owned))

    def is_worthwhile(self) -> bool:
        """Return whether there is one baseline, and all samples are affordable but not all were compared before."""
        objective = self.objective
        samples = len(objective.owned)
        if objective.owners > 1 or not (self.exact or objective.decides_ties):
            return False
        if self.exact and len(objective.compared.rows) == samples:
            return False
        rows = samples * self.plan.coalitions.shape[-2]
        rows_for_ties = samples * (3 * objective.penalty.players + 4)
        return rows <= _MOST_TIMES * objective.rows and rows_for_ties <= _MOST_TIMES_FOR_TIES * objective.rows

    def loss(self, baseline: Baselines) -> float:
        """Return the penalty over all samples."""
        return float(self.objective.losses(baseline, self.everyone, self.plan))

    def tie_loss(self, baseline: Baselines) -> float:
        """Return the walks and detours over all samples, which break ties."""
        walks = self.objective.all_orders.walks(1, 2, seeded(self.objective.seed, _STREAM, 0)).of(0)
        walked = float(self.objective.losses(baseline, self.everyone, walks))
        detoured = float(self.objective.losses(baseline, self.everyone, self.objective.detours))
        return walked + detoured

    def is_tie(self, first: float, second: float) -> bool:
        """Return whether two losses differ only by rounding."""
        epsilon = torch.finfo(self.objective.evaluator.task.probe.dtype).eps
        precision = max(_ROUNDING, _ROUNDINGS_OF_MODEL * epsilon)
        return abs(first - second) <= precision * abs(second)

    def sees_no_difference(self, baseline: Baselines, candidate: Baselines) -> bool:
        """Return whether a few samples show that the drawn coalitions cannot distinguish the two baselines.

        Either the comparison has already found the tie, or the draw does not contain the changed player.
        """
        if self.exact or len(self.objective.owned) <= _FEW_SAMPLES:
            return False
        rows = self.everyone.rows[:_FEW_SAMPLES]
        penalties = self.plan.penalty(self.objective.values(baseline, rows, self.plan.coalitions))
        others = self.plan.penalty(self.objective.values(candidate, rows, self.plan.coalitions))
        return bool((penalties - others).abs().max() <= _ROUNDING * penalties.abs().max())


def _drawn_plan(objective: PaperObjective) -> Plan:
    """Draw coalitions, the same for all samples."""
    small = replace(objective.penalty, per_sample=0, cube=_PLAYERS_OF_SUBCUBE)
    generator = seeded(objective.seed, _STREAM, 0)
    if small.exact or small.loss == "marginal":
        plan = small.plan(1, _DRAWN_COALITIONS, generator)
    else:  # a fit of order-wise Shapley values would mix players; within sub-cubes they are exact
        plan = small.subcubes(1, _DRAWN_COALITIONS, generator)
    return plan.of(0)
