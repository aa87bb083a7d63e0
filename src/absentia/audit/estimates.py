"""Means over samples with standard errors, what is significant, and rank correlations: pure functions on tensors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

# A difference of more than this many standard errors is significant, if there are many samples and draws.
SURE = 2.0


class Estimate(NamedTuple):
    """A mean over samples and draws, with its standard error; the error of a single sample is NaN."""

    value: Float[Tensor, " *methods"]
    error: Float[Tensor, " *methods"]

    def at(self, number: int) -> tuple[float, float]:
        """Return one method's value and error."""
        return float(self.value[number]), float(self.error[number])


def _variances(values: Float[Tensor, "*methods samples draws"]) -> tuple[Tensor, Tensor]:
    """Return the variance of the mean that comes of the samples, and that of the draws: see `estimate`."""
    samples, draws = values.shape[-2:]
    by_sample, by_draw = values.mean(-1), values.mean(-2)
    of_samples = by_sample.var(-1) / samples
    if draws < 2:
        return of_samples, torch.zeros_like(of_samples)
    rest = values - by_sample[..., None] - by_draw[..., None, :] + values.mean((-2, -1))[..., None, None]
    rest_variance = rest.square().sum((-2, -1)) / ((samples - 1) * (draws - 1))
    return of_samples, (by_draw.var(-1) / draws - rest_variance / (samples * draws)).clamp_min(0)


def estimate(values: Float[Tensor, "*methods samples draws"]) -> Estimate:
    """Average over samples and draws; the samples may share the draws or not.

    With values y = μ + sample + draw + rest, the variance of the mean is the variance over samples of the samples'
    means (which holds the sample's part and the rest's), divided by their number, plus the same of the draws' means,
    less the rest's part, which was counted twice: s²(ȳ over draws)/K + max(0, s²(ȳ over samples)/D − s²(rest)/KD).
    """
    mean = values.mean((-2, -1))
    if values.shape[-2] < 2:
        return Estimate(mean, torch.full_like(mean, math.nan))
    return Estimate(mean, sum(_variances(values), torch.zeros_like(mean)).sqrt())


def is_above(values: Float[Tensor, "samples draws"]) -> bool:
    """Return whether a mean is significantly above 0: by two standard errors, or more with few samples or draws.

    The number of errors is Student's, for the degrees of freedom that samples and draws have together. A single
    sample is never significant.
    """
    samples, draws = values.shape
    if samples < 2:
        return False
    mean, of_samples, of_draws = (float(part) for part in (values.mean(), *_variances(values)))
    variance = of_samples + of_draws
    if not variance > 0:
        return mean > 0
    freedom = variance**2 / (of_samples**2 / (samples - 1) + of_draws**2 / max(1, draws - 1))
    return mean > SURE * (1 + 1.25 / freedom + 1.53 / freedom**2 + 1.43 / freedom**3) * math.sqrt(variance)


def ratio_of_means(
    upper: Float[Tensor, "*methods samples draws"], lower: Float[Tensor, "*#methods samples draws"]
) -> Estimate:
    """Divide one mean by another; the error is that of the linearised ratio, (upper − ratio · lower)/mean(lower)."""
    bottom = lower.mean((-2, -1))
    ratio = upper.mean((-2, -1)) / bottom
    rest = estimate((upper - ratio[..., None, None] * lower) / bottom[..., None, None])
    return Estimate(ratio, rest.error)


def ranks(values: Float[Tensor, "*rows players"]) -> Float[Tensor, "*rows players"]:
    """Rank each row from 1 up; equal values share the mean of their ranks."""
    lower = (values[..., None, :] < values[..., :, None]).sum(-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(-1)
    return (lower + (equal + 1) / 2).to(values.dtype)


def spearman(attributions: Float[Tensor, "methods *rows players"]) -> Float[Tensor, "*rows methods methods"]:
    """Correlate the ranks of the players between each two methods; NaN for a method whose values are all equal."""
    ranked = ranks(attributions)
    centred = (ranked - ranked.mean(-1, keepdim=True)).movedim(0, -2)
    products = centred @ centred.transpose(-1, -2)
    size = products.diagonal(dim1=-2, dim2=-1).sqrt()
    return (products / (size[..., :, None] * size[..., None, :])).clamp(-1, 1)
