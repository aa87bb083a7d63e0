"""How masked samples compare with the data: their distance from its rows, and whether they stay in its range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.data import DataRange, Rows, has_gaps, known_deviation, known_mean, seeded
from absentia.players import Players

# Distances are not measured for samples with more entries than this.
_MOST_ENTRIES = 20_000
# Distances are measured from at most this many masked samples to at most this many rows of the data.
_MOST_MASKED = 500
_MOST_ROWS = 1_000
# Distances are computed by matrix products. Those up to this size are rounding errors.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Plausibility:
    """How the masked samples of each method compare with the data.

    ``distance`` is the median distance from masked samples to the nearest row of the data, divided by the median
    distance from the data's own rows to the nearest other row, in units of each entry's standard deviation.
    ``outside`` marks the players whose stand-ins leave the range of the data. A method that does not mask the input
    has NaN and False.
    """

    distance: Float[Tensor, " methods"]
    outside: Bool[Tensor, "methods players"]

    @property
    def beyond(self) -> Float[Tensor, " methods"]:
        """The distance, but at least 1, because being closer to the data than its own rows is no advantage."""
        return self.distance.clamp_min(1)


def measure_distances(data: Rows, seed: int) -> tuple[Callable[[Rows], float] | None, str]:
    """Return a function that measures the distance of inputs from the data, or why it cannot be measured."""
    if not data.is_floating_point():
        return None, "Distances to the data were not measured: tokens have none."
    if data[0].numel() > _MOST_ENTRIES:
        return None, f"Distances to the data were not measured: samples have more than {_MOST_ENTRIES:,} entries."
    if len(data) < 3:
        return None, f"Distances to the data were not measured: it has only {len(data)} rows."
    flat = data.flatten(1).double()
    mean = known_mean(flat)
    spread = known_deviation(flat) if has_gaps(flat) else flat.std(0)
    # An entry that never changes has no unit of its own, so the typical unit is used.
    spread = torch.where(spread > 0, spread, spread.square().nanmean().sqrt())
    chosen = torch.randperm(len(flat), generator=seeded(seed, "rows"))[:_MOST_ROWS].to(flat.device)
    rows = (flat[chosen] - mean) / spread
    usual = float(_distances(rows, rows).fill_diagonal_(math.inf).amin(1).median())
    if not usual > _ROUNDING:
        return None, "Distances to the data were not measured: most of its rows are repeated."

    def distance(inputs: Tensor) -> float:
        every = math.ceil(len(inputs) / _MOST_MASKED)
        few = inputs[::every].flatten(1).double()
        return float(_distances((few - mean) / spread, rows).amin(1).median()) / usual

    return distance, ""


def _distances(inputs: Float[Tensor, "inputs entries"], rows: Float[Tensor, "rows entries"]) -> Tensor:
    """Return the distances of standardised inputs to rows; a missing value is one unit away from the mean."""
    if has_gaps(inputs) or has_gaps(rows):
        inputs = _with_gaps_beside(inputs)
        rows = _with_gaps_beside(rows)
    return torch.cdist(inputs, rows)


def _with_gaps_beside(rows: Float[Tensor, "rows entries"]) -> Float[Tensor, "rows coordinates"]:
    """Return rows with missing values at the mean, and beside each entry whether it is missing."""
    missing = rows.isnan()
    return torch.cat([torch.where(missing, 0.0, rows), missing.to(rows)], dim=1)


def compare_with_data(
    masked: Sequence[Tensor | None], data: Tensor, within: DataRange, region: Players, seed: int
) -> tuple[Plausibility, str]:
    """Compare each method's masked samples with the data, and return a note if distances cannot be measured."""
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
