"""How well masked samples predict: leak and invention of fully masked ones, and the masking curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from absentia.auditing.estimates import Estimate, estimates


@dataclass(frozen=True, eq=False)
class FullyMasked:
    """What fully masked samples tell: leak and invention of each method, as pseudo-values (see `jackknife`).

    Evidence is by how much the score of fully masked samples exceeds that of the prior: invention less leak. Averaged
    log-odds of three or more classes are not those of a distribution; ``averaging`` is what that adds to the log-loss
    of the explained values. It is neither leak nor invention.
    """

    leaks: Float[Tensor, "methods samples groups"]
    inventions: Float[Tensor, "methods samples groups"]
    averaging: Float[Tensor, "methods samples groups"]
    prior: Float[Tensor, " samples"]  # the score of what can be said without the sample
    whole: Float[Tensor, " samples"]  # the score of the model's predictions on whole samples
    left_out: int = 0  # samples of classes that are too rare to fit
    reason: str = ""  # why leak and invention can't be measured, if they can't

    @property
    def evidence(self) -> Float[Tensor, "methods samples groups"]:
        """Invention less leak."""
        return self.inventions - self.leaks


@dataclass(frozen=True, eq=False)
class MaskingCurve:
    """The proper score of each method's values, with one random coalition of each size for each sample.

    The coalitions are the same for all methods. ``prior`` is the score of what can be said without the sample: the
    class frequencies, or the mean. ``inventions`` is the part of the score of each size that recalibration removes:
    what is lost by how predictions are made, rather than by what present players do not tell. ``by_draws`` is the
    score over all sizes as pseudo-values.
    """

    scores: Float[Tensor, "methods samples sizes"]
    prior: Float[Tensor, " samples"]
    sizes: Int[Tensor, " sizes"]  # of the coalitions, from 0 to the number of players
    unit: str = "nats"  # or "of the variance"
    limit: float = math.inf  # all that there is to know: log(classes) in nats, or the variance itself
    all_absent: bool = True  # whether ∅ leaves no entry of the sample, so that it can only tell by a leak
    by_draws: Float[Tensor, "methods samples groups"] | None = None  # missing in files of older versions
    inventions: Float[Tensor, "methods sizes"] | None = None

    @property
    def means(self) -> Float[Tensor, "methods samples groups"]:
        """The score of each sample over all sizes, which have equal weights."""
        if self.by_draws is None:
            return self.scores.mean(-1, keepdim=True)
        return self.by_draws

    @property
    def score(self) -> Estimate:
        """The score over all sizes; lower is better."""
        return estimates(self.means)
