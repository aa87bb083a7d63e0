"""Weighted draws of samples, and an order in which the first few represent all."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.solvers.paired_draws import share_out

# At most this many entries of a sample are balanced. If there are more, every second or third … is used.
_MOST_ENTRIES = 1024

# Entries are divided by their spread, or by this number if it is larger.
_LEAST_SPREAD = 1e-9

# The rounding error of sums of probabilities, which must not move a draw to the next sample.
_ROUNDING = 1e-9


class WeightedSamples(NamedTuple):
    """Samples on which a loss is computed, and their weights."""

    rows: Int[Tensor, " drawn"]
    weights: Float[Tensor, " drawn"]

    def part(self, where: slice) -> "WeightedSamples":
        """Return a part of the samples."""
        return WeightedSamples(self.rows[where], self.weights[where])


def equally_weighted(rows: Int[Tensor, " drawn"]) -> WeightedSamples:
    """Return samples that all have the weight 1."""
    return WeightedSamples(rows, torch.ones(len(rows)).double())


def shares_of(outputs: Float[Tensor, "samples *features"]) -> Float[Tensor, " samples"]:
    """Return how often to draw each sample: half of the draws evenly, half by the output's distance to the median."""
    values = outputs.detach().double().cpu().reshape(len(outputs), -1)
    distance = (values - values.median(0).values).abs().sum(1)
    even = torch.full_like(distance, 1 / len(distance))
    total = float(distance.sum())
    if 0 < total < math.inf:
        return (even + distance / total) / 2
    return even


def draw_samples(shares: Float[Tensor, " samples"], count: int, generator: torch.Generator) -> WeightedSamples:
    """Draw ``count`` different samples according to their shares, with weights that keep means unbiased."""
    chance = share_out(min(count, int((shares > 0).sum())), shares, torch.ones_like(shares))
    shuffled = torch.randperm(len(shares), generator=generator)
    # Probabilities are laid end to end, and each interval of length 1 contains one draw.
    ends = torch.cat([torch.zeros(1).double(), chance[shuffled].cumsum(0)]) + torch.rand(1, generator=generator)
    stretches = (ends + _ROUNDING).floor()
    rows = shuffled[stretches[1:] > stretches[:-1]]
    weights = 1 / chance[rows]
    return WeightedSamples(rows, weights / weights.mean())


def balanced_order(
    x: Shaped[Tensor, "samples *entries"], weights: Float[Tensor, " samples"], generator: torch.Generator
) -> Int[Tensor, " samples"]:
    """Order samples so that the first few, however many, have nearly the same weighted mean as all.

    Every other sample is drawn. The sample after it is the one that brings the mean so far closest to that of all.
    """
    shuffled = torch.randperm(len(x), generator=generator)
    deviations = _weighted_deviations(x[shuffled], weights[shuffled, None])
    lengths = deviations.square().sum(1)
    total = torch.zeros_like(deviations[0])
    order = torch.empty_like(shuffled)
    for place in range(len(shuffled)):
        if place % 2:
            # ‖total + row‖² without ‖total‖², which all rows have in common.
            following = int((lengths + 2 * deviations @ total).argmin())
        else:
            following = int((lengths < torch.inf).int().argmax())
        order[place] = shuffled[following]
        total += deviations[following]
        lengths[following] = torch.inf  # it is taken
    return order


def _weighted_deviations(
    x: Shaped[Tensor, "samples *entries"], weights: Float[Tensor, "samples 1"]
) -> Float[Tensor, "samples columns"]:
    """Return each sample's weighted deviation from the mean, in standard deviations of each entry."""
    values = x.flatten(1).double().cpu()
    values = values[:, :: 1 + values.shape[1] // _MOST_ENTRIES]
    values = values - (weights * values).sum(0) / weights.sum()
    variance = (weights * values.square()).sum(0) / weights.sum()
    return weights * values / variance.sqrt().clamp_min(_LEAST_SPREAD)
