"""Covariances of data with more entries than rows can tell apart: shrunk by the intensity of Ledoit and Wolf."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

# Columns that are copies of each other leave a covariance without an inverse, however many rows there are.
LEAST_SHRINKAGE = 1e-6
_ROWS_AT_A_TIME = 4096


def correlations(
    rows: Float[Tensor, "rows entries"],
) -> tuple[Float[Tensor, " entries"], Float[Tensor, " entries"], Float[Tensor, "entries entries"], float]:
    """Give means, standard deviations, correlations, and the intensity by which to shrink the correlations.

    With S the covariance of n standardised rows x of d entries and m = tr S/d, it is [ledoit2004covariance]

        min(1, (Σ‖x‖⁴/n − ‖S‖²) / n / (‖S‖² − d·m²)).

    An entry that never changes has a standard deviation of 0 and no correlation with any other.

    >>> data = torch.tensor([[0.0, 1.0, 3.0], [2.0, 5.0, 3.0], [4.0, 3.0, 3.0]])
    >>> mean, sd, correlation, intensity = correlations(data)
    >>> mean.tolist(), sd[2].item(), correlation[0], round(intensity, 3)
    ([2.0, 3.0, 3.0], 0.0, tensor([1.0000, 0.5000, 0.0000], dtype=torch.float64), 0.571)
    """
    count, entries = rows.shape
    mean = sum(some.double().sum(0) for some in rows.split(_ROWS_AT_A_TIME)) / count
    variance = sum((some.double() - mean).square().sum(0) for some in rows.split(_ROWS_AT_A_TIME)) / count
    # A column of equal numbers may differ from its mean by a rounding error.
    least = 1e-12 * (1 + mean.abs())
    scale = torch.where(variance.sqrt() > least, variance.sqrt(), 0.0)
    total = torch.zeros(entries, entries, dtype=torch.float64, device=rows.device)
    fourth = torch.zeros((), dtype=torch.float64, device=rows.device)
    for some in rows.split(_ROWS_AT_A_TIME):
        standardised = torch.where(scale > 0, (some.double() - mean) / scale, 0.0)
        total += standardised.T @ standardised
        fourth += standardised.square().sum(1).square().sum()
    covariance = total / count
    strength = covariance.square().sum()
    spread = strength - covariance.trace() ** 2 / entries
    error = (fourth / count - strength) / count
    intensity = float(error / spread) if spread > 0 else 0.0
    return mean, scale, covariance, min(1.0, max(LEAST_SHRINKAGE, intensity))


def shrink(covariance: Float[Tensor, "entries entries"], intensity: float) -> Float[Tensor, "entries entries"]:
    """Mix a covariance with the multiple of the identity that has its trace: (1 − α)·S + α·(tr S/d)·I.

    >>> shrink(torch.tensor([[1.0, 0.8], [0.8, 3.0]]), 0.5).tolist()
    [[1.5, 0.4000000059604645], [0.4000000059604645, 2.5]]
    """
    average = covariance.trace() / len(covariance)
    return (1 - intensity) * covariance + intensity * average * torch.eye(len(covariance)).to(covariance)
