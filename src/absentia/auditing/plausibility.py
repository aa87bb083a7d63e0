"""How masked samples compare with the data: their distance to its rows, and whether they stay in its range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.data import DataRange, Rows, seeded
from absentia.players import Players

# Distances are not measured for samples with more entries than this.
_MOST_ENTRIES = 20_000
# Distances are measured from at most this many masked samples to at most this many rows of the data.
_MOST_MASKED = 500
_MOST_ROWS = 1_000
# Distances up to this are rounding errors, because they are computed by matrix products.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Plausibility:
    """How masked samples compare with the data, for each method; NaN and False if a method does not mask the input.

    ``distance`` is the median distance of masked samples to the nearest row of the data, divided by the median
    distance of the data's own rows to the nearest other row, in units of each entry's standard deviation. ``outside``
    marks the players whose stand-ins leave the data's range.
    """

    distance: Float[Tensor, " methods"]
    outside: Bool[Tensor, "methods players"]

    @property
    def beyond(self) -> Float[Tensor, " methods"]:
        """The distance, but at least 1: being closer to the data than its own rows is no advantage."""
        return self.distance.clamp_min(1)


def measure_distances(data: Rows, seed: int) -> tuple[Callable[[Rows], float] | None, str]:
    """Return the function that measures the distance of inputs to the data, or why it cannot be measured."""
    if not data.is_floating_point():
        return None, "Distances to the data were not measured: tokens have none."
    if data[0].numel() > _MOST_ENTRIES:
        return None, f"Distances to the data were not measured: samples have more than {_MOST_ENTRIES:,} entries."
    if len(data) < 3:
        return None, f"Distances to the data were not measured: it has only {len(data)} rows."
    flat = data.flatten(1).double()
    mean = flat.mean(0)
    spread = flat.std(0)
    # An entry that never changes has no unit of its own: use the typical one.
    spread = torch.where(spread > 0, spread, spread.square().mean().sqrt())
    chosen = torch.randperm(len(flat), generator=seeded(seed, "rows"))[:_MOST_ROWS].to(flat.device)
    rows = (flat[chosen] - mean) / spread
    usual = float(torch.cdist(rows, rows).fill_diagonal_(math.inf).amin(1).median())
    if not usual > _ROUNDING:
        return None, "Distances to the data were not measured: most of its rows are repeated."

    def distance(inputs: Tensor) -> float:
        every = math.ceil(len(inputs) / _MOST_MASKED)
        few = inputs[::every].flatten(1).double()
        return float(torch.cdist((few - mean) / spread, rows).amin(1).median()) / usual

    return distance, ""


def compare_with_data(
    masked: Sequence[Tensor | None], data: Tensor, within: DataRange, region: Players, seed: int
) -> tuple[Plausibility, str]:
    """Compare each method's masked samples with the data; also return a note if distances cannot be measured."""
    measure, note = measure_distances(data, seed)
    distance = torch.full((len(masked),), math.nan, dtype=torch.float64)
    outside = torch.zeros(len(masked), len(region), dtype=torch.bool)
    for number, inputs in enumerate(masked):
        if inputs is None:
            continue
        if not region.integer:  # token numbers have no range
            beyond = (~within.holds(inputs)).flatten(0, 1).any(0)
            outside[number] = region.sums(beyond[None].int())[0] > 0
        if measure is not None:
            distance[number] = measure(inputs.flatten(0, 1))
    return Plausibility(distance, outside), note
