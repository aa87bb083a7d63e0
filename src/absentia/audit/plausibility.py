"""Whether masked samples look like the data: within its range, and no further from it than its own rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from absentia.data import DataRange, seeded
from absentia.players import Players

# Masked samples are far from the data beyond this multiple of the usual distance.
FAR = 2.0
_MOST_ENTRIES = 20_000
# Distances are measured from at most this many masked samples to at most this many rows of the data.
_MOST_MASKED, _MOST_ROWS = 500, 1_000
_ROUNDING = 1e-6  # of distances that are computed by matrix products


@dataclass(frozen=True, eq=False)
class Plausibility:
    """How masked samples compare with the data, for each method; NaN and False where a method masks no input.

    ``distance`` is the median distance of masked samples to the nearest row of the data, divided by the median
    distance of the data's own rows to the nearest other row, in units of each entry's standard deviation. ``outside``
    marks the players whose stand-ins leave the data's range.
    """

    distance: Float[Tensor, " methods"]
    outside: Bool[Tensor, "methods players"]


def measure_distances(
    data: Shaped[Tensor, "rows *entries"], seed: int
) -> tuple[Callable[[Shaped[Tensor, "inputs *entries"]], float] | None, str]:
    """Return the function that measures inputs' distance to the data, or why it cannot be measured."""
    if not data.is_floating_point():
        return None, "Distances to the data were not measured: tokens have none."
    if data[0].numel() > _MOST_ENTRIES:
        return None, f"Distances to the data were not measured: samples have more than {_MOST_ENTRIES:,} entries."
    if len(data) < 3:
        return None, f"Distances to the data were not measured: it has only {len(data)} rows."
    flat = data.flatten(1).double()
    mean, spread = flat.mean(0), flat.std(0)
    # An entry that never changes has no unit of its own, and gets the usual one.
    spread = torch.where(spread > 0, spread, spread.square().mean().sqrt())
    chosen = torch.randperm(len(flat), generator=seeded(seed, "rows"))[:_MOST_ROWS].to(flat.device)
    rows = (flat[chosen] - mean) / spread
    usual = float(torch.cdist(rows, rows).fill_diagonal_(math.inf).amin(1).median())
    if not usual > _ROUNDING:
        return None, "Distances to the data were not measured: most of its rows are repeated."

    def distance(inputs: Tensor) -> float:
        some = inputs[:: -(-len(inputs) // _MOST_MASKED)].flatten(1).double()
        return float(torch.cdist((some - mean) / spread, rows).amin(1).median()) / usual

    return distance, ""


def compare_with_data(
    masked: Sequence[Tensor | None], data: Tensor, within: DataRange, region: Players, seed: int
) -> tuple[Plausibility, str]:
    """Compare each method's masked samples with the data; also return a note if distances cannot be measured."""
    measure, note = measure_distances(data, seed)
    distance = torch.full((len(masked),), math.nan, dtype=torch.float64)
    outside = torch.zeros(len(masked), len(region), dtype=torch.bool)
    for number, inputs in enumerate(masked):
        if inputs is not None:
            beyond = (~within.holds(inputs)).flatten(0, 1).any(0)
            owned = [region.labels.to(beyond.device) == player for player in range(len(region))]
            outside[number] = torch.stack([beyond[entries].any() for entries in owned])
            distance[number] = math.nan if measure is None else measure(inputs.flatten(0, 1))
    return Plausibility(distance, outside), note
