"""The rounding errors of values."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.data import seeded
from absentia.errors import wrong

# Rounding errors of values in units of their type's precision, as observed in networks of several layers.
_UNITS_OF_PRECISION = 4
# Sums over coalitions must stay finite with this many bits to spare.
_SPARE_BITS = 52
# Rounding errors are measured on a share of each sample's values: on at most this many, ...
_MOST_MEASURED = 16
# ... on at least this many, ...
_LEAST_MEASURED = 6
# ... and within these bounds on one value in this many.
_ONE_OF = 128
# All that are measured of a sample, with the two extreme values.
MOST_MEASURED = _MOST_MEASURED + 2
# Errors of effects, divided by 2^(order/2), were observed to be up to 6 times the largest measured error.
ABOVE_MEASURED = 8
# The errors of the two extreme values may be far larger than all others, so they get less weight.
_WEIGHT_OF_EXTREMES = 0.25


class MeasuredErrors(NamedTuple):
    """The largest measured rounding error of each sample, with a note if none could be measured."""

    errors: Float[Tensor, " samples"]
    notes: tuple[str, ...] = ()


def rounding_noise(
    values: Float[Tensor, "samples coalitions"], dtype: torch.dtype, largest: float = 0.0, name: str = "values"
) -> Float[Tensor, " samples"]:
    """Estimate the rounding errors of values computed in ``dtype`` from outputs of at most ``largest``."""
    # Log-odds are differences of logits, so the largest output counts as well as the largest value.
    precision = torch.finfo(dtype if dtype.is_floating_point else torch.float64).eps
    low, high = values.detach().aminmax(dim=1)
    noise = torch.maximum(-low, high).double().clamp_min(largest) * (_UNITS_OF_PRECISION * precision)
    if not math.isfinite(float(noise.max()) * 2.0**_SPARE_BITS * values.shape[1]):
        verb = "return values" if name == "model" else "be"
        must = f"{verb} small enough for sums over all coalitions"
        raise wrong(name, must, f"{values.detach().abs().max():.3g}")
    return noise


def measured_coalitions(
    values: Float[Tensor, "samples coalitions"], players: int, samples: int
) -> Int[Tensor, "samples measured"]:
    """Return the numbers of the coalitions to measure: those of the two extreme values, then some drawn at random."""
    count = min(max(2**players // _ONE_OF, 4 * _MOST_MEASURED // samples, _LEAST_MEASURED), _MOST_MEASURED)
    # If there are few coalitions, some are drawn twice but need only be evaluated once.
    drawn = torch.randint(2**players, (count,), generator=seeded(players)).unique().to(values.device)
    return torch.cat([values.argmin(1, True), values.argmax(1, True), drawn.expand(len(values), -1)], dim=1)


def members_of(numbers: Int[Tensor, "samples measured"], players: int) -> Bool[Tensor, "samples measured players"]:
    """Return the coalitions with these numbers."""
    return numbers[..., None] >> torch.arange(players, device=numbers.device) & 1 == 1


def largest_errors(differences: Float[Tensor, "samples measured"]) -> Float[Tensor, " samples"]:
    """Return the largest error of each sample, where its first two errors are those of its extreme values."""
    errors = differences.abs()
    return torch.maximum(errors[:, 2:].amax(1), _WEIGHT_OF_EXTREMES * errors[:, :2].amax(1))


def not_measured(values: Float[Tensor, "samples coalitions"], error: Exception) -> MeasuredErrors:
    """Return errors of 0 and a note that says why they could not be measured."""
    why = f"the model cannot run in double precision ({type(error).__name__})"
    note = f"Rounding errors are estimated rather than measured, because {why}."
    return MeasuredErrors(values.new_zeros(len(values)), (note,))
