"""Whether masked samples look like the data: within its range, and no further from it than its own rows are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from absentia.audit.white_noise import DataRange, stream
from absentia.players import Players

MOST_ENTRIES = 20_000
# Distances are taken to so many rows of the data, and from so many masked samples.
_MOST_ROWS, _MOST_MASKED = 1_000, 500
FAR = 2.0
_ROUNDING = 1e-6  # of distances that are computed by matrix products


@dataclass(frozen=True, eq=False)
class Plausibility:
    """How masked samples lie to the data, for each method; NaN and False where a method masks no input.

    ``distance`` is the median distance of masked samples to the nearest row of the data, over the median distance of
    the data's own rows to the nearest other row, in units of each entry's standard deviation. ``outside`` marks the
    players whose stand-ins leave the data's range.
    """

    distance: Float[Tensor, " methods"]
    outside: Bool[Tensor, "methods players"]


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Rows of data in standard units, and how far they lie from each other."""

    rows: Float[Tensor, "rows entries"]
    mean: Float[Tensor, " entries"]
    spread: Float[Tensor, " entries"]
    usual: float  # the median distance of a row to the nearest other one

    def distance(self, inputs: Shaped[Tensor, "inputs *entries"]) -> float:
        """Compare the inputs' median distance to the nearest row with the usual one."""
        flat = inputs.flatten(1).double()
        step = -(-len(flat) // _MOST_MASKED)
        standard = (flat[::step] - self.mean) / self.spread
        return float(torch.cdist(standard, self.rows).amin(1).median()) / self.usual


def make_yardstick(data: Shaped[Tensor, "rows *entries"], seed: int) -> tuple[Yardstick | None, str]:
    """Prepare to measure distances; or say why they can't be measured."""
    if not data.is_floating_point():
        return None, "Distances to the data were not measured: tokens have none."
    if data[0].numel() > MOST_ENTRIES:
        return None, f"Distances to the data were not measured: samples have more than {MOST_ENTRIES:,} entries."
    if len(data) < 3:
        return None, f"Distances to the data were not measured: it has only {len(data)} rows."
    flat = data.flatten(1).double()
    mean, spread = flat.mean(0), flat.std(0)
    # An entry that never changes has no unit of its own, and takes the usual one.
    spread = torch.where(spread > 0, spread, spread.square().mean().sqrt())
    chosen = torch.randperm(len(flat), generator=stream(seed, "draws"))[:_MOST_ROWS].to(flat.device)
    rows = (flat[chosen] - mean) / spread
    distances = torch.cdist(rows, rows).fill_diagonal_(math.inf)
    usual = float(distances.amin(1).median())
    if not usual > _ROUNDING:
        return None, "Distances to the data were not measured: most of its rows are repeated."
    return Yardstick(rows, mean, spread, usual), ""


def players_outside(
    masked: Shaped[Tensor, "samples draws *entries"], within: DataRange, region: Players
) -> Bool[Tensor, " players"]:
    """Tell which players of the region have stand-ins that leave the data's range, in any sample."""
    outside = (~within.holds(masked)).flatten(0, 1).any(0)
    labels = region.labels.to(outside.device)
    return torch.stack([outside[labels == player].any() for player in range(len(region))]).cpu()
