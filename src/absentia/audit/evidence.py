"""The masking curve: how well masked samples predict, by how many players are present; leaks and inventions at ∅."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.audit.estimates import Estimate, estimate
from absentia.readouts import Score


@dataclass(frozen=True, eq=False)
class MaskingCurve:
    """The proper score (`Score`) of each method's values, with one drawn coalition of each size for each sample.

    The coalitions are the same for all methods. ``prior`` is the score of what can be said without the sample: the
    class frequencies, or the mean. At ∅ a method that leaves nothing of the sample and argues for nothing has it.
    """

    scores: Float[Tensor, "methods samples sizes"]
    prior: Float[Tensor, " samples"]
    sizes: Int[Tensor, " sizes"]  # of the coalitions, from 0 to the number of players
    unit: str = "nats"  # or "of the variance"
    limit: float = math.inf  # all that there is to know: log(classes) in nats, or the variance itself
    all_absent: bool = True  # whether ∅ leaves no entry of the sample, so that it can only tell by a leak

    @classmethod
    def unknown(cls, methods: int) -> MaskingCurve:
        """Return the curve of an audit that measured none."""
        return cls(torch.zeros(methods, 0, 1).double(), torch.zeros(0).double(), torch.zeros(1, dtype=torch.int64))

    @classmethod
    def of(cls, score: Score, values: Tensor, sizes: Tensor, all_absent: bool) -> MaskingCurve:
        """Score values of shape (methods, samples, sizes)."""
        scores = torch.stack([score(one) for one in values])
        if score.classes is not None:
            limit = math.log(max(2, len(score.classes.unique())))
            return cls(scores, score.prior, sizes, score.unit, limit, all_absent)
        varies = bool((score.full != score.full[0]).any())  # otherwise there is no variance to compare with
        return cls(scores if varies else scores * math.nan, score.prior, sizes, score.unit, 1.0, all_absent)

    @property
    def beyond_prior(self) -> Float[Tensor, "methods samples 1"]:
        """The score at ∅ less the prior, of each sample."""
        return (self.scores[..., 0] - self.prior)[..., None]

    @property
    def means(self) -> Float[Tensor, "methods samples 1"]:
        """The score over all sizes, each of the same weight, of each sample."""
        return self.scores.mean(-1, keepdim=True)

    @property
    def evidence(self) -> Estimate:
        """The score at ∅ less the prior: below 0 the method leaks, above 0 it invents."""
        return estimate(self.beyond_prior)

    @property
    def score(self) -> Estimate:
        """The score over all sizes; lower is better."""
        return estimate(self.means)
