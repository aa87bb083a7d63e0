"""The rounding errors of values."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.data import seeded
from absentia.errors import wrong

# Rounding errors of values, in units of their type's precision, as networks of some layers were seen to have.
_UNITS_OF_PRECISION = 4
# Sums over coalitions must stay finite with this many bits to spare.
_SPARE_BITS = 52
# Errors are measured on at most this many values of a sample, ...
_MOST_MEASURED = 16
# ... at least this many, ...
_LEAST_MEASURED = 6
# ... and one of this many between these bounds.
_ONE_OF = 128
# Errors of effects, over 2^(order/2), were seen to be up to 6 times the largest that were measured.
ABOVE_MEASURED = 8
# Errors of the two extreme values may be far larger than others: they have less weight.
_WEIGHT_OF_EXTREMES = 0.25


class MeasuredErrors(NamedTuple):
    """The largest rounding error that was seen of each sample, and why none could be measured, if so."""

    errors: Float[Tensor, " samples"]
    notes: tuple[str, ...] = ()


def rounding_noise(
    values: Float[Tensor, "samples coalitions"], dtype: torch.dtype, largest: float = 0.0, name: str = "values"
) -> Float[Tensor, " samples"]:
    """Estimate the rounding errors of values computed in ``dtype`` from outputs of this size."""
    # A few times the precision of the type at the largest value or output: log-odds are differences of logits.
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
    """Return the numbers of the coalitions whose errors are measured: the two extreme values, then some drawn."""
    count = min(max(2**players // _ONE_OF, 4 * _MOST_MEASURED // samples, _LEAST_MEASURED), _MOST_MEASURED)
    drawn = torch.randint(2**players, (count, 1), generator=seeded(players)).to(values.device)
    return torch.stack([values.argmin(1), values.argmax(1), *drawn.expand(-1, len(values))], dim=1)


def members_of(numbers: Int[Tensor, "samples measured"], players: int) -> Bool[Tensor, "samples measured players"]:
    """Return the coalitions with these numbers."""
    return numbers[..., None] >> torch.arange(players, device=numbers.device) & 1 == 1


def largest_errors(differences: Float[Tensor, "samples measured"]) -> Float[Tensor, " samples"]:
    """Return the largest error of each sample; the first two are those of its extreme values."""
    errors = differences.abs()
    return torch.maximum(errors[:, 2:].amax(1), _WEIGHT_OF_EXTREMES * errors[:, :2].amax(1))


def not_measured(values: Float[Tensor, "samples coalitions"], error: Exception) -> MeasuredErrors:
    """Return errors of 0 and a note that says why they could not be measured."""
    why = f"the model cannot run in double precision ({type(error).__name__})"
    note = f"Rounding errors are estimated rather than measured, because {why}."
    return MeasuredErrors(values.new_zeros(len(values)), (note,))
