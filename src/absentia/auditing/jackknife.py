"""The jackknife over draws: how much a figure depends on the stand-ins that happened to be drawn.

All samples share the draws of a random absence. The draws are divided into a few groups, and the figure is recomputed
with each group left out in turn. The result is stored as *pseudo-values*, one for each sample and group. Their mean
is the figure itself, and their spread over samples and over groups gives its error (see `estimates`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data import seeded

# The number of groups of draws, which are left out one after another.
GROUPS = 10
# Changes in a figure of at most this share are rounding errors.
_ROUNDING = 1e-9


def draw_groups(draws: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Split the numbers of draws into random groups of nearly equal size."""
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
    def draws(self) -> int:
        """The number of draws in all groups."""
        return int(self.sizes.sum())

    @property
    def mean(self) -> Float[Tensor, " *values"]:
        """The mean over all draws."""
        return self._weighted(self.sizes)

    @property
    def without(self) -> list[Float[Tensor, " *values"]]:
        """The means with each group left out in turn; empty if there is only one group."""
        if len(self.sizes) == 1:
            return []
        others = 1 - torch.eye(len(self.sizes), dtype=torch.float64)
        return [self._weighted(self.sizes * row) for row in others]

    def _weighted(self, weights: Float[Tensor, " groups"]) -> Float[Tensor, " *values"]:
        """Return the mean of the groups' means with these weights, which need not add up to 1."""
        return torch.tensordot(weights / weights.sum(), self.by_group.double(), dims=1)


def pseudo_values(
    whole: Float[Tensor, "samples *figure"], without: Sequence[Tensor], shared: bool
) -> Float[Tensor, "samples groups *figure"]:
    """Return pseudo-values of a figure from its value with all draws, and with each group of draws left out.

    With G groups, θ the figure and θ₋ᵍ the one without group g, the pseudo-values are θ + (G − 1)(mean of θ₋ − θ₋ᵍ).
    Their mean is θ. If all samples share the draws, the spread over groups is widened: see `_widening`.
    """
    if not without:
        return whole[:, None]
    left_out = torch.stack(list(without), dim=1)  # (samples, groups, *figure)
    deviations = (len(without) - 1) * (left_out.mean(1, keepdim=True) - left_out)  # (samples, groups, *figure)
    if not shared:
        return whole[:, None] + deviations
    mean_deviations = deviations.nanmean(0)  # (groups, *figure), what all samples have in common
    widening = _widening(whole, left_out, mean_deviations)  # (*figure,)
    return whole[:, None] + deviations + (widening - 1).nan_to_num(0.0) * mean_deviations


def _widening(
    whole: Float[Tensor, "samples *figure"],
    left_out: Float[Tensor, "samples groups *figure"],
    mean_deviations: Float[Tensor, "groups *figure"],
) -> Float[Tensor, " *figure"]:
    """Return the factor by which the spread over groups grows to include quadratic effects of the draws.

    Let the figure be θ + a z + c z² with z the mean of the draws, of mean 0 and variance s². The jackknife sees the
    variance a²s² of the linear part. It misses that of the quadratic part, which is all there is at a minimum, where
    a = 0. For normal z, c z² has the mean c s² and the variance 2(c s²)². The mean is the bias b that the jackknife
    estimates, (G − 1)(mean of θ₋ − θ), so the variance is 2b². The factor is √(1 + 2b² / linear variance).
    """
    groups = left_out.shape[1]
    bias = (groups - 1) * (left_out.mean(1) - whole).nanmean(0)  # (*figure,)
    rounding = _ROUNDING * whole.abs().nanmean(0)  # (*figure,)
    quadratic_variance = torch.where(bias.abs() > rounding, 2 * bias.square(), 0.0)
    linear_variance = (mean_deviations.var(0) / groups).clamp_min(rounding.square())
    return (1 + quadratic_variance / linear_variance).sqrt()


def join_methods(figures: Sequence[Tensor]) -> Float[Tensor, "methods samples groups *figure"]:
    """Join the pseudo-values of methods, padded with NaN for methods with fewer groups of draws."""
    groups = max(values.shape[1] for values in figures)
    samples, _, *figure = figures[0].shape
    joined = figures[0].new_full((len(figures), samples, groups, *figure), math.nan)
    for row, values in zip(joined, figures, strict=True):
        row[:, : values.shape[1]] = values
    return joined
