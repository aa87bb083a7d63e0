"""The objective of the paper's losses: the samples and coalitions on which a baseline's penalty is computed.

Baselines are compared on fixed samples and coalitions, part by part. Gradients are computed on new ones. The loss is
the penalty. On request, two terms are added with a small weight. They decide ties between values that the penalty up
to order λ cannot distinguish: marginal benefits of all orders along walks, and detours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.data import blocks, seeded
from absentia.evaluation import Evaluator
from absentia.learning.assessment import Assessment
from absentia.learning.penalties import Penalty, PenaltyName, Plan
from absentia.learning.processes import shared_values
from absentia.learning.sample_draws import (
    WeightedSamples,
    balanced_order,
    draw_samples,
    equally_weighted,
    shares_of,
)
from absentia.learning.space import Baselines, Owners

# The maximum number of masked inputs whose graph is held for a gradient.
_ROWS_PER_BLOCK = 2**15

# A step along the gradient, the walks and the detours each take one part in this many of a comparison's rows.
_COMPARISON_PER_STEP = 4
_COMPARISON_PER_WALKS = 8
_COMPARISON_PER_DETOURS = 4

# Rows of each sample in a step, if coalitions are drawn.
_DRAWN_PER_STEP = 512

# Rows of each sample in a comparison, if coalitions are drawn: the fewest and the most. Many samples with few draws
# each tell more than few samples with many, but noise makes |φ| too large.
_FEWEST_DRAWN: dict[PenaltyName, int] = {"shapley": 1024, "marginal": 64, "interactions": 64}
_MOST_DRAWN: dict[PenaltyName, int] = {"shapley": 2048, "marginal": 1024, "interactions": 1024}

# The fewest samples of a step and of a comparison, and the most of a comparison.
_FEWEST_PER_STEP = 4
_FEWEST_COMPARED = 8
_MOST_COMPARED = 4096

# The weight of walks and detours, on the scale of the penalty. Rare patterns of high order only appear there.
_TIE_WEIGHT = 0.01

# Shares of the samples that baselines are compared on in turn, if one baseline is learned for at least so many.
PARTS = (1 / 16, 1 / 4, 1.0)
_FEWEST_FOR_PARTS = 32


class PaperObjective:
    """The mean penalty over the samples of each owner of a baseline: all samples, those of a class, or one sample.

    ``owner`` is the number of each sample's owner, or −1 for none. Comparisons take about ``rows`` evaluations.
    ``ties`` says whether walks and detours decide ties.
    """

    # Not known in advance, because a descent makes comparisons beside its steps.
    rows_per_step = 0

    def __init__(
        self, evaluator: Evaluator, penalty: Penalty, owner: Tensor, seed: int, rows: int, *, ties: bool = True
    ) -> None:
        self.evaluator = evaluator
        self.penalty = penalty
        self.owner = owner
        self.seed = seed
        self.rows = rows
        self.settings = (penalty, ties)  # what the loss depends on, beside the model and the samples
        self.record: dict[str, Any] = {"exact": penalty.exact, "orders": penalty.orders}
        self.owned = (owner >= 0).nonzero().flatten()  # the samples whose baselines are learned here
        self.owners = int(owner.max()) + 1
        self.evaluations = 0
        self.tie_weight = _TIE_WEIGHT * penalty.scale if ties else 0.0
        self.all_orders = Penalty("marginal", penalty.players, penalty.players)
        self._fix_comparison(seeded(seed, 0, 0))

    @property
    def evaluated_rows(self) -> int:
        """The rows that the model evaluated for values."""
        return self.evaluations

    @property
    def rows_per_comparison(self) -> int:
        """How many rows it takes to compare a baseline with others."""
        rows = len(self.compared.rows) * self.plan.rows_per_sample
        if self.decides_ties:
            rows += len(self.walked.rows) * self.walks.rows_per_sample
            rows += len(self.detoured.rows) * self.detours.rows_per_sample
        return rows

    @property
    def rows_per_gradient(self) -> int:
        """About how many rows a step along the gradient takes."""
        return min(self.rows_per_comparison, self.rows // _COMPARISON_PER_STEP)

    @property
    def decides_ties(self) -> bool:
        """Whether walks and detours have a weight in the loss."""
        return self.tie_weight > 0

    def _fix_comparison(self, generator: torch.Generator) -> None:
        """Fix the samples and coalitions that baselines are compared on."""
        penalty = self.penalty
        per_sample = self.rows // len(self.owned)
        drawn = min(max(_FEWEST_DRAWN[penalty.loss], per_sample), _MOST_DRAWN[penalty.loss])
        rows_per_sample = penalty.plan(1, drawn, generator).rows_per_sample
        self.shares = self._shares()
        self.compared = self._choose(max(_FEWEST_COMPARED, self.rows // rows_per_sample), generator)
        self.plan = penalty.plan(len(self.compared.rows), drawn, generator)
        self.walk_count = max(1, self.rows // _COMPARISON_PER_WALKS // (penalty.players + 1))
        self.walked = self._choose(self.walk_count, generator)
        self.walks = self._draw_walks(len(self.walked.rows), generator)
        detour_count = max(1, self.rows // _COMPARISON_PER_DETOURS // (penalty.players + 2))
        self.detoured = self._choose(detour_count, generator)
        self.detours = self.all_orders.detours()
        self.parts: tuple[float, ...] = (1.0,)
        if self.owners == 1 and len(self.compared.rows) >= _FEWEST_FOR_PARTS:
            self.parts = PARTS

    def _shares(self) -> Float[Tensor, " samples"]:
        """Return how often to draw each sample: depending on its output if samples share a baseline, else evenly."""
        shares = (self.owner >= 0).double() / len(self.owned)
        if self.owners == 1:
            nothing = torch.zeros(1, self.evaluator.x[0].numel())
            everyone = torch.ones(1, self.penalty.players).bool()
            shares[self.owned] = shares_of(self.values(nothing, self.owned, everyone)[:, 0])
        return shares

    def _choose(self, count: int, generator: torch.Generator) -> WeightedSamples:
        """Choose the samples for comparisons: all for several owners, otherwise drawn ones in a balanced order."""
        if self.owners > 1:
            return equally_weighted(self.owned)
        drawn = draw_samples(self.shares, min(count, _MOST_COMPARED), generator)
        order = balanced_order(self.evaluator.x[drawn.rows], drawn.weights, generator)
        return WeightedSamples(drawn.rows[order], drawn.weights[order])

    def _draw_walks(self, samples: int, generator: torch.Generator) -> Plan:
        """Draw the walks of a comparison, or of a step."""
        return self.all_orders.walks(samples, max(1, self.walk_count // samples), generator)

    def values(self, baseline: Baselines, rows: Int[Tensor, " rows"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of these samples; keep the graph if the baseline requires a gradient."""
        x = self.evaluator.x[rows.to(self.evaluator.x.device)]
        stand_ins = baseline[self.owner[rows], None].unflatten(2, self.evaluator.players.shape).to(x)
        fill = StandIns(x, stand_ins)
        self.evaluations += len(rows) * coalitions.shape[-2]
        return shared_values(self.evaluator, fill, coalitions, rows, gradient=baseline.requires_grad)

    def values_between(self, rows: Int[Tensor, " rows"], others: Int[Tensor, " rows"], coalitions: Tensor) -> Tensor:
        """Evaluate coalitions of samples whose absent players have the values of other samples."""
        x = self.evaluator.x
        fill = StandIns(x[rows.to(x.device)], x[others.to(x.device), None])
        self.evaluations += len(rows) * coalitions.shape[-2]
        return shared_values(self.evaluator, fill, coalitions, rows)

    def penalties(
        self, baselines: Float[Tensor, "baselines owners entries"], rows: Int[Tensor, " samples"], plan: Plan
    ) -> Float[Tensor, "baselines samples"]:
        """Compute the penalty of each sample for several baselines, without a gradient."""
        count = len(baselines)
        parts = []
        for block in blocks(len(rows), max(1, _ROWS_PER_BLOCK // (count * plan.rows_per_sample))):
            own = rows[block]
            own_plan = plan.of(block)
            coalitions = own_plan.coalitions
            if coalitions.ndim == 3:
                coalitions = coalitions.repeat(count, 1, 1)
            asked = own.repeat(count)
            x = self.evaluator.x[asked.to(self.evaluator.x.device)]
            stand_ins = torch.cat([baseline[self.owner[own], None] for baseline in baselines])
            fill = StandIns(x, stand_ins.unflatten(2, self.evaluator.players.shape).to(x))
            self.evaluations += len(asked) * coalitions.shape[-2]
            values = shared_values(self.evaluator, fill, coalitions, asked)
            parts.append(own_plan.penalty(values).double().cpu().unflatten(0, (count, -1)))
        return torch.cat(parts, dim=1)

    def losses(self, baseline: Baselines, samples: WeightedSamples, plan: Plan) -> Owners:
        """Compute the mean penalty over each owner's samples, in blocks; add its gradient to ``baseline.grad``."""
        sums = torch.zeros(len(baseline)).double()
        totals = torch.zeros(len(baseline)).double()
        totals.index_add_(0, self.owner[samples.rows], samples.weights)
        totals[totals == 0] = 1.0
        for block in blocks(len(samples.rows), max(1, _ROWS_PER_BLOCK // plan.rows_per_sample)):
            rows = samples.rows[block]
            owners = self.owner[rows]
            block_plan = plan.of(block)
            penalties = block_plan.penalty(self.values(baseline, rows, block_plan.coalitions))
            weighted = penalties.double().cpu() * samples.weights[block]
            if baseline.requires_grad:
                (weighted / totals[owners]).sum().backward()
            sums.index_add_(0, owners, weighted.detach())
        return sums / totals

    def running_assessments(self, baseline: Baselines) -> Iterator[Assessment]:
        """Compute penalties and losses on more and more of the compared samples, at last on all of them."""
        penalties = self._running_mean(baseline, self.compared, self.plan)
        if not self.decides_ties:
            for penalty in penalties:
                yield Assessment(baseline, penalty, penalty)
            return
        along_walks = self._running_mean(baseline, self.walked, self.walks)
        on_detours = self._running_mean(baseline, self.detoured, self.detours)
        for penalty, walks, detours in zip(penalties, along_walks, on_detours, strict=True):
            yield Assessment(baseline, penalty, penalty + self.tie_weight * (walks + detours))

    def _running_mean(self, baseline: Baselines, samples: WeightedSamples, plan: Plan) -> Iterator[Owners]:
        """Compute the mean over the first part of the samples, then over more and more."""
        done = 0
        weight = 0.0
        mean = torch.zeros(len(baseline)).double()
        for share in self.parts:
            stop = max(1, round(share * len(samples.rows)))
            if stop > done:
                added = samples.part(slice(done, stop))
                added_losses = self.losses(baseline, added, plan.of(slice(done, stop)))
                added_weight = float(added.weights.sum())
                weight += added_weight
                mean = mean + (added_losses - mean) * added_weight / weight
                done = stop
            yield mean

    def gradient(self, baseline: Baselines, stream: int, step: int) -> tuple[Baselines, float]:
        """Compute the gradient of the loss on a fresh batch, and the loss; a stream and step fix the draw."""
        generator = seeded(self.seed, stream, step)
        rows_per_sample = self.plan.rows_per_sample if self.penalty.exact else _DRAWN_PER_STEP
        batch = len(self.owned)
        if self.owners == 1:
            batch = min(batch, max(_FEWEST_PER_STEP, self.rows // _COMPARISON_PER_STEP // rows_per_sample))
        samples = draw_samples(self.shares, batch, generator)
        plan = self.plan if self.penalty.exact else self.penalty.plan(batch, rows_per_sample, generator)
        terms = [(1.0, plan)]
        if self.decides_ties:
            walks = self._draw_walks(batch, generator)
            terms += [(self.tie_weight, walks), (self.tie_weight, self.detours)]
        slope = torch.zeros_like(baseline)
        loss = 0.0
        for weight, term in terms:
            leaf = baseline.detach().clone().requires_grad_()
            loss += weight * float(self.losses(leaf, samples, term).mean())
            if leaf.grad is not None:
                slope += weight * leaf.grad
        return slope, loss
