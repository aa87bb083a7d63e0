"""Means over samples with standard errors, ratios of means, and rank correlations: pure functions on tensors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

# A difference of more than this many standard errors is significant.
SURE = 2.0


class Estimate(NamedTuple):
    """A mean over samples and draws, with its standard error; the error of a single sample is NaN."""

    value: Float[Tensor, " *methods"]
    error: Float[Tensor, " *methods"]

    def at(self, number: int) -> tuple[float, float]:
        """Return one method's value and error."""
        return float(self.value[number]), float(self.error[number])


def estimate(values: Float[Tensor, "*methods samples draws"]) -> Estimate:
    """Average over samples and draws; the samples may share the draws or not.

    With values y = μ + sample + draw + rest, the variance of the mean is the variance over samples of the samples'
    means (which holds the sample's part and the rest's), divided by their number, plus the same of the draws' means,
    less the rest's part, which was counted twice: s²(ȳ over draws)/K + max(0, s²(ȳ over samples)/D − s²(rest)/KD).
    """
    samples, draws = values.shape[-2:]
    mean = values.mean((-2, -1))
    if samples < 2:
        return Estimate(mean, torch.full_like(mean, math.nan))
    by_sample, by_draw = values.mean(-1), values.mean(-2)
    variance = by_sample.var(-1) / samples
    if draws > 1:
        rest = values - by_sample[..., None] - by_draw[..., None, :] + mean[..., None, None]
        rest_variance = rest.square().sum((-2, -1)) / ((samples - 1) * (draws - 1))
        variance = variance + (by_draw.var(-1) / draws - rest_variance / (samples * draws)).clamp_min(0)
    return Estimate(mean, variance.sqrt())


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
