"""Means over samples and draws, with the errors that come from both.

An audited figure is a mean over samples. If an absence draws its stand-ins at random, the figure also depends on the
draws. It is then stored as pseudo-values, one for each sample and group of draws (see `jackknife`). Their mean is the
figure, and their spread over samples and over groups gives its error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Values: TypeAlias = Float[Tensor, "*methods samples draws"]

# A difference of more than this many standard errors is significant, given many samples and draws.
SURE = 2.0


class Estimate(NamedTuple):
    """A mean over samples and draws, with its standard error; the error of a single sample is NaN."""

    value: Float[Tensor, " *methods"]
    error: Float[Tensor, " *methods"]


class _Variances(NamedTuple):
    """The two parts of the variance of a mean."""

    from_samples: Float[Tensor, " *methods"]
    from_draws: Float[Tensor, " *methods"]


def _variances(values: Values) -> _Variances:
    """Split the variance of the mean into the parts due to the samples and to the draws: see `estimate`."""
    samples, draws = values.shape[-2:]
    sample_means = values.mean(-1)
    draw_means = values.mean(-2)
    from_samples = sample_means.var(-1) / samples
    if draws < 2:
        return _Variances(from_samples, torch.zeros_like(from_samples))
    residuals = values - sample_means[..., None] - draw_means[..., None, :] + values.mean((-2, -1))[..., None, None]
    residual_variance = residuals.square().sum((-2, -1)) / ((samples - 1) * (draws - 1))
    from_draws = (draw_means.var(-1) / draws - residual_variance / (samples * draws)).clamp_min(0)
    return _Variances(from_samples, from_draws)


def estimate(values: Values) -> Estimate:
    """Average over samples and draws, whether or not the samples share the draws.

    With values y = μ + sample + draw + residual, the variance of the mean has two parts. The first is the variance of
    the samples' means, divided by the number of samples. The second is the same for the draws. Both contain the
    residual, so it is subtracted once: s²(ȳ over draws)/K + max(0, s²(ȳ over samples)/D − s²(residual)/KD).
    """
    mean = values.mean((-2, -1))
    if values.shape[-2] < 2:
        return Estimate(mean, torch.full_like(mean, math.nan))
    variances = _variances(values)
    return Estimate(mean, (variances.from_samples + variances.from_draws).sqrt())


@dataclass(frozen=True)
class Mean:
    """The mean of one figure of one method, and its variances.

    Examples
    --------
    >>> Mean.of(torch.tensor([[1.0], [2.0], [3.0]]).double()).value
    2.0
    """

    value: float
    sample_variance: float  # the part of the mean's variance that comes from the samples
    draw_variance: float  # and the part that comes from the draws
    samples: int
    draws: int

    @classmethod
    def of(cls, values: Float[Tensor, "samples draws"]) -> Mean:
        """Average pseudo-values without rows and columns of NaN, which stand for missing samples and groups."""
        known = ~values.isnan()
        values = values[known.any(1)][:, known.any(0)]
        samples, draws = values.shape
        if samples == 0:
            return cls(math.nan, math.nan, math.nan, 0, 0)
        value = float(values.mean())
        if samples == 1:
            return cls(value, math.nan, 0.0, 1, draws)
        variances = _variances(values)
        return cls(value, float(variances.from_samples), float(variances.from_draws), samples, draws)

    @property
    def error(self) -> float:
        """The standard error; NaN for a single sample."""
        return math.sqrt(self.sample_variance + self.draw_variance)

    @property
    def margin(self) -> float:
        """The difference above which the mean significantly exceeds a number, infinite for a single sample.

        It is two standard errors, multiplied by Student's factor for the joint degrees of freedom of samples and
        draws (the Welch–Satterthwaite approximation).
        """
        variance = self.sample_variance + self.draw_variance
        if math.isnan(variance):
            return math.inf
        if variance == 0:
            return 0.0
        sample_part = self.sample_variance**2 / (self.samples - 1)
        draw_part = self.draw_variance**2 / max(1, self.draws - 1)
        freedom = variance**2 / (sample_part + draw_part)
        return SURE * _student_factor(freedom) * math.sqrt(variance)

    def is_above(self, limit: float = 0.0) -> bool:
        """Return whether the mean is significantly above a number."""
        return self.value - limit > self.margin


def _student_factor(freedom: float) -> float:
    """Return the factor by which Student's quantile exceeds the normal one at two standard errors."""
    return 1 + 1.25 / freedom + 1.53 / freedom**2 + 1.43 / freedom**3


def estimates(figures: Values) -> Estimate:
    """Return the mean of each method with its error, leaving out rows and columns of NaN."""
    means = [Mean.of(values) for values in figures.flatten(0, -3)]
    value = torch.tensor([mean.value for mean in means], dtype=torch.float64)
    error = torch.tensor([mean.error for mean in means], dtype=torch.float64)
    return Estimate(value.reshape(figures.shape[:-2]), error.reshape(figures.shape[:-2]))


def ratio_of_means(upper: Values, lower: Float[Tensor, "*#methods samples draws"]) -> Estimate:
    """Divide one mean by another, with the error of the linearised ratio, (upper − ratio · lower)/mean(lower)."""
    lower_mean = lower.nanmean((-2, -1))
    ratio = upper.nanmean((-2, -1)) / lower_mean
    linearised = (upper - ratio[..., None, None] * lower) / lower_mean[..., None, None]
    return Estimate(ratio, estimates(linearised.expand(upper.shape)).error)
