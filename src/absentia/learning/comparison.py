"""What baselines are compared on: fixed samples and coalitions, part by part; and gradients on fresh ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.learning.objective import Objective
from absentia.learning.penalties import Loss, Penalty, Plan
from absentia.learning.samples import Chosen, choose_samples, draw_samples, shares_of
from absentia.learning.search import Gradient

# Evaluations of the model in one comparison of baselines, on a fixed set, where not told otherwise; of a step, walks
# and detours, this share.
EVALUATIONS = 2**18
STEP, WALKS, DETOURS = 4, 8, 4
# Evaluations that each sample takes where its coalitions are drawn, in a step, and in a comparison at least and at
# most. Many samples with few draws each tell more than few with many; but noise makes |φ| too large.
DRAWN_PER_STEP = 512
DRAWN_PER_CHECK: dict[Loss, tuple[int, int]] = {
    "shapley": (1024, 2048),
    "marginal": (64, 1024),
    "interactions": (64, 1024),
}
# Values that the penalty up to order λ cannot tell apart are settled by marginal benefits of all orders, along walks,
# and by detours, over as many samples as possible, with this weight: rare patterns of high order show in few of them.
TIE_WEIGHT = 0.01
# Baselines are looked at on these shares of the samples in turn, where one is learned for many of them.
PARTS, FEWEST_FOR_PARTS = (1 / 16, 1 / 4, 1.0), 32
MOST_COMPARED = 4096  # samples


@dataclass
class Comparison:
    """The samples and coalitions that all baselines are compared on: for the penalty, for walks and for detours."""

    objective: Objective
    seed: int
    evaluations: int  # in one comparison

    def __post_init__(self) -> None:
        penalty, owners = self.objective.penalty, self.objective.owners
        generator = torch.Generator().manual_seed(mix(self.seed, 0, 0))
        samples = len(self.objective.owner)
        least, most = DRAWN_PER_CHECK[penalty.loss]
        drawn = min(max(least, self.evaluations // samples), most)
        probe = penalty.plan(1, drawn, generator)
        count = max(8, self.evaluations // probe.coalitions.shape[-2])
        # Owners of few samples must all be compared.
        self.shares = (
            torch.full((samples,), 1 / samples).double() if owners > 1 else shares_of(self.objective.outputs())
        )
        self.compared = self._choose(count, generator)
        self.plan: Plan = penalty.plan(len(self.compared.rows), drawn, generator)
        self.tie_weight = TIE_WEIGHT * penalty.scale
        self.all_orders = Penalty("marginal", penalty.players, penalty.players)
        many = max(1, self.evaluations // WALKS // (penalty.players + 1))
        self.walked = self._choose(many, generator)
        walks = max(1, many // len(self.walked.rows))
        self.walks: Plan = self.all_orders.walks(len(self.walked.rows), walks, generator)
        many = max(1, self.evaluations // DETOURS // (penalty.players + 2))
        self.detoured = self._choose(many, generator)
        self.detours: Plan = self.all_orders.detours()
        # Owners of few samples are looked at whole.
        self.parts = PARTS if owners == 1 and len(self.compared.rows) >= FEWEST_FOR_PARTS else (1.0,)

    def _choose(self, count: int, generator: torch.Generator) -> Chosen:
        """Choose samples to compare baselines on: all, or so many of those that matter."""
        if self.objective.owners > 1:
            return Chosen.evenly(torch.arange(len(self.shares)))
        return choose_samples(self.objective.game.x, self.shares, min(count, MOST_COMPARED), generator)

    def looks(self, baseline: Float[Tensor, "owners entries"]) -> Iterator[tuple[Tensor, Tensor]]:
        """Compute the penalty, and the loss that also settles ties, on ever more samples."""
        measured = [
            self._running_mean(baseline, self.compared, self.plan),
            self._running_mean(baseline, self.walked, self.walks),
            self._running_mean(baseline, self.detoured, self.detours),
        ]
        for penalties, along_walks, on_detours in zip(*measured, strict=True):
            yield penalties, penalties + self.tie_weight * (along_walks + on_detours)

    def _running_mean(self, baseline: Tensor, chosen: Chosen, plan: Plan) -> Iterator[Tensor]:
        done, weight, mean = 0, 0.0, torch.zeros(self.objective.owners).double()
        for share in self.parts:
            until = max(1, round(share * len(chosen.rows)))
            if until > done:
                part = chosen.part(done, until)
                found = self.objective.losses(baseline, part, plan.of(torch.arange(done, until)))
                added = float(part.weights.sum())
                done, weight = until, weight + added
                mean = mean + (found - mean) * added / weight
            yield mean

    def gradient(self, stream: int) -> Gradient:
        """Make the gradient over a fresh batch at each step; the same stream and step draw the same batch."""
        samples, penalty = len(self.objective.owner), self.objective.penalty
        per_sample = self.plan.coalitions.shape[-2] if penalty.exact else DRAWN_PER_STEP
        batch = samples if self.objective.owners > 1 else min(samples, max(4, self.evaluations // STEP // per_sample))
        many = self.evaluations // WALKS // (penalty.players + 1)

        def compute(baseline: Tensor, step: int) -> tuple[Tensor, Tensor]:
            generator = torch.Generator().manual_seed(mix(self.seed, stream, step))
            chosen = draw_samples(self.shares, batch, generator)
            plan = self.plan if penalty.exact else penalty.plan(batch, per_sample, generator)
            losses, slope = self.objective.gradient(baseline, chosen, plan)
            walks = self.all_orders.walks(batch, max(1, many // batch), generator)
            for plan in (walks, self.detours):
                tied, tied_slope = self.objective.gradient(baseline, chosen, plan)
                losses, slope = losses + self.tie_weight * tied, slope + self.tie_weight * tied_slope
            return losses, slope

        return compute


def mix(seed: int, stream: int, step: int) -> int:
    """Make one seed of three numbers."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {stream} {step}".encode(), digest_size=6).digest(), "big")
