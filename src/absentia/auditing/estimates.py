"""Means over samples and draws, with the errors that both give them.

An audited figure is a mean over samples. Where an absence draws its stand-ins, all samples share the draws, so that
the figure depends on them too. Draws are joined in a few groups. Leaving out one group at a time shows how much the
figure depends on them: a jackknife. It is kept as *pseudo-values*, one for each sample and group, whose mean is the
figure itself, and whose spread over samples and over groups shows both errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data import seeded

Values: TypeAlias = Float[Tensor, "*methods samples draws"]

# A difference of more than this many standard errors is significant, if there are many samples and draws.
SURE = 2.0
# Draws are left out in this many groups, one after another.
GROUPS = 10
# Changes of a figure by no more than this share of it are rounding errors.
_ROUNDING = 1e-9


class Estimate(NamedTuple):
    """A mean over samples and draws, with its standard error; the error of a single sample is NaN."""

    value: Float[Tensor, " *methods"]
    error: Float[Tensor, " *methods"]


def _variances(values: Values) -> tuple[Tensor, Tensor]:
    """Return the variance of the mean that comes of the samples, and that of the draws: see `estimate`."""
    samples, draws = values.shape[-2:]
    by_sample, by_draw = values.mean(-1), values.mean(-2)
    of_samples = by_sample.var(-1) / samples
    if draws < 2:
        return of_samples, torch.zeros_like(of_samples)
    rest = values - by_sample[..., None] - by_draw[..., None, :] + values.mean((-2, -1))[..., None, None]
    rest_variance = rest.square().sum((-2, -1)) / ((samples - 1) * (draws - 1))
    return of_samples, (by_draw.var(-1) / draws - rest_variance / (samples * draws)).clamp_min(0)


def estimate(values: Values) -> Estimate:
    """Average over samples and draws; the samples may share the draws or not.

    With values y = μ + sample + draw + rest, the variance of the mean is the variance over samples of the samples'
    means (which holds the sample's part and the rest's), divided by their number, plus the same of the draws' means,
    less the rest's part, which was counted twice: s²(ȳ over draws)/K + max(0, s²(ȳ over samples)/D − s²(rest)/KD).
    """
    mean = values.mean((-2, -1))
    if values.shape[-2] < 2:
        return Estimate(mean, torch.full_like(mean, math.nan))
    return Estimate(mean, sum(_variances(values), torch.zeros_like(mean)).sqrt())


@dataclass(frozen=True)
class Mean:
    """The mean of one figure of one method, and its variances.

    Examples
    --------
    >>> Mean.of(torch.tensor([[1.0], [2.0], [3.0]]).double()).value
    2.0
    """

    value: float
    of_samples: float  # the variance of the mean that comes of the samples
    of_draws: float  # and of the draws
    samples: int
    draws: int

    @classmethod
    def of(cls, values: Float[Tensor, "samples draws"]) -> Mean:
        """Average pseudo-values; rows and columns of NaN are samples and groups that there are not."""
        known = ~values.isnan()
        values = values[known.any(1)][:, known.any(0)]
        samples, draws = values.shape
        if samples == 0:
            return cls(math.nan, math.nan, math.nan, 0, 0)
        value = float(values.mean())
        if samples == 1:
            return cls(value, math.nan, 0.0, 1, draws)
        of_samples, of_draws = _variances(values)
        return cls(value, float(of_samples), float(of_draws), samples, draws)

    @property
    def error(self) -> float:
        """The standard error; NaN for a single sample."""
        return math.sqrt(self.of_samples + self.of_draws)

    @property
    def margin(self) -> float:
        """How far the mean must be from a number to be significantly above it; infinite for a single sample.

        It is two standard errors, or more by Student's factor for the degrees of freedom that samples and draws have
        together.
        """
        variance = self.of_samples + self.of_draws
        if math.isnan(variance):
            return math.inf
        if variance == 0:
            return 0.0
        of_samples = self.of_samples**2 / (self.samples - 1)
        of_draws = self.of_draws**2 / max(1, self.draws - 1)
        freedom = variance**2 / (of_samples + of_draws)
        student = 1 + 1.25 / freedom + 1.53 / freedom**2 + 1.43 / freedom**3
        return SURE * student * math.sqrt(variance)

    def is_above(self, limit: float = 0.0) -> bool:
        """Return whether the mean is significantly above a number."""
        return self.value - limit > self.margin


def estimates(figures: Values) -> Estimate:
    """Return the mean of each method with its error; rows and columns of NaN are left out."""
    means = [Mean.of(values) for values in figures.flatten(0, -3)]
    value = torch.tensor([mean.value for mean in means], dtype=torch.float64)
    error = torch.tensor([mean.error for mean in means], dtype=torch.float64)
    return Estimate(value.reshape(figures.shape[:-2]), error.reshape(figures.shape[:-2]))


def ratio_of_means(upper: Values, lower: Float[Tensor, "*#methods samples draws"]) -> Estimate:
    """Divide one mean by another; the error is that of the linearised ratio, (upper − ratio · lower)/mean(lower)."""
    bottom = lower.nanmean((-2, -1))
    ratio = upper.nanmean((-2, -1)) / bottom
    linearised = (upper - ratio[..., None, None] * lower) / bottom[..., None, None]
    return Estimate(ratio, estimates(linearised.expand(upper.shape)).error)


def draw_groups(draws: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Split the numbers of draws into groups of nearly the same size, at random."""
    order = torch.randperm(draws, generator=seeded(seed, "groups of draws"))
    groups = min(draws, GROUPS)
    return tuple(tuple(order[first::groups].sort().values.tolist()) for first in range(groups))


class Drawn(NamedTuple):
    """The means of values over each group of draws."""

    by_group: Float[Tensor, "groups *values"]
    sizes: Float[Tensor, " groups"]

    @classmethod
    def of(cls, by_group: Sequence[Tensor], groups: Sequence[Sequence[int]]) -> Drawn:
        """Join the means of the groups."""
        return cls(torch.stack(list(by_group)), torch.tensor([len(group) for group in groups]).double())

    @property
    def mean(self) -> Float[Tensor, " *values"]:
        """The mean over all draws."""
        return self._weighted(self.sizes)

    @property
    def without(self) -> list[Float[Tensor, " *values"]]:
        """The means with one group left out; none if there is only one."""
        if len(self.sizes) == 1:
            return []
        kept = 1 - torch.eye(len(self.sizes), dtype=torch.float64)
        return [self._weighted(self.sizes * row) for row in kept]

    def _weighted(self, weights: Float[Tensor, " groups"]) -> Float[Tensor, " *values"]:
        return torch.tensordot(weights / weights.sum(), self.by_group.double(), dims=1)


def pseudo_values(
    whole: Float[Tensor, "samples *figure"], without: Sequence[Tensor], shared: bool
) -> Float[Tensor, "samples groups *figure"]:
    """Return a figure as pseudo-values, given also with each group of draws left out.

    The jackknife is blind to draws where a figure has its least value: there it changes by squares alone. Where all
    samples share the draws, that does not average out over samples. So the spread over groups is widened by it: with
    b the bias that the jackknife finds, squares have a variance of 2b².
    """
    if not without:
        return whole[:, None]
    left_out = torch.stack(list(without), dim=1)
    groups = len(without)
    apart = (groups - 1) * (left_out.mean(1, keepdim=True) - left_out)
    if not shared:
        return whole[:, None] + apart
    bias = (groups - 1) * (left_out.mean(1) - whole).nanmean(0)
    of_all = apart.nanmean(0)
    rounding = _ROUNDING * whole.abs().nanmean(0)
    squares = torch.where(bias.abs() > rounding, 2 * bias.square(), 0.0)
    wider = (1 + squares / (of_all.var(0) / groups).clamp_min(rounding.square())).sqrt()
    return whole[:, None] + apart + (wider - 1).nan_to_num(0.0) * of_all


def join_methods(figures: Sequence[Tensor]) -> Float[Tensor, "methods samples groups *figure"]:
    """Join the pseudo-values of methods; those with fewer groups of draws have NaN for the others."""
    groups = max(values.shape[1] for values in figures)
    samples, _, *figure = figures[0].shape
    joined = figures[0].new_full((len(figures), samples, groups, *figure), math.nan)
    for own, values in zip(joined, figures, strict=True):
        own[:, : values.shape[1]] = values
    return joined
