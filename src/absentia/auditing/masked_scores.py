"""How well masked samples predict: the masking curve, and the leak and invention of fully masked samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jaxtyping import Float, Int
from torch import Tensor

from absentia.auditing.estimates import Estimate, estimates

# The unit of scores.
Unit: TypeAlias = Literal["nats", "of the variance"]


@dataclass(frozen=True, eq=False)
class FullyMasked:
    """The leak and invention of each method on fully masked samples, as pseudo-values (see `jackknife`).

    Evidence is the amount by which the score of fully masked samples exceeds that of the prior, which is invention
    minus leak. Averaged log-odds of three or more classes do not belong to a distribution. ``averaging`` is what this
    adds to the log-loss of the explained values. It is neither leak nor invention.
    """

    leaks: Float[Tensor, "methods samples groups"]
    inventions: Float[Tensor, "methods samples groups"]
    averaging: Float[Tensor, "methods samples groups"]
    prior: Float[Tensor, " samples"]  # the score of what can be said without the sample
    whole: Float[Tensor, " samples"]  # the score of the model's predictions on whole samples
    left_out: int = 0  # how many samples belong to classes that are too rare to fit
    reason: str = ""  # why leak and invention can't be measured, if they can't

    @property
    def evidence(self) -> Float[Tensor, "methods samples groups"]:
        """Invention less leak."""
        return self.inventions - self.leaks


@dataclass(frozen=True, eq=False)
class MaskingCurve:
    """The proper score of each method's values, with one random coalition of each size for each sample.

    All methods use the same coalitions. ``prior`` is the score of predictions that do not depend on the sample: the
    class frequencies, or the mean. ``inventions`` is the part of the score at each size that recalibration removes.
    It is lost because of how predictions are made, not because of what the present players do not reveal.
    ``by_draws`` is the score over all sizes as pseudo-values.
    """

    scores: Float[Tensor, "methods samples sizes"]
    prior: Float[Tensor, " samples"]
    sizes: Int[Tensor, " sizes"]  # of the coalitions, from 0 to the number of players
    unit: Unit = "nats"
    limit: float = math.inf  # all that there is to know: log(classes) in nats, or the variance itself
    all_absent: bool = True  # whether ∅ leaves no entry of the sample, so that anything it reveals is a leak
    by_draws: Float[Tensor, "methods samples groups"] | None = None  # missing in files of older versions
    inventions: Float[Tensor, "methods sizes"] | None = None

    @property
    def means(self) -> Float[Tensor, "methods samples groups"]:
        """The score of each sample, averaged over all sizes with equal weights."""
        if self.by_draws is None:
            return self.scores.mean(-1, keepdim=True)
        return self.by_draws

    @property
    def score(self) -> Estimate:
        """The score over all sizes; lower is better."""
        return estimates(self.means)
