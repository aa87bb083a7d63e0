"""Masked samples beside noise and beside the data: the R metric, and how far from the data they lie.

R = E_x[(Σ|U′(S)| − Σ|U_noise(S)|) / Σ|U(S)|] over all S ≠ ∅ [ren2023faithful, Sec. 4], with the effects U of the
sample, U′ of the sample whose region the method masks, and U_noise of the sample with noise in its region. All three
are effects of games between that input and the same reference, which stands in for absent players.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from absentia.absences.protocol import Fill
from absentia.audit.estimates import SURE, Estimate, estimate, ratio_of_means
from absentia.data import DataRange, seeded
from absentia.players import Players

# Masked samples are far from the data beyond this multiple of the usual distance.
FAR = 2.0
_MOST_ENTRIES = 20_000
# Distances are measured from at most this many masked samples to at most this many rows of the data.
_MOST_MASKED, _MOST_ROWS = 500, 1_000
_ROUNDING = 1e-6  # of distances that are computed by matrix products


@dataclass(frozen=True, eq=False)
class Removal:
    """The strengths Σ_{S≠∅}|U(S)| of samples, masked samples and noise, for each draw; and R from them.

    A sample's strengths are averaged over the draws before they are divided: a ratio of means is steadier than a mean
    of ratios. Errors treat both the samples and the draws as random: see `estimate`. Methods that mask no input have
    NaN. Samples to which the model does not respond, beyond rounding errors, have no ratio and are left out.
    """

    masked: Float[Tensor, "methods samples draws"]
    original: Float[Tensor, "samples draws"]
    noise: Float[Tensor, "samples draws"]
    rounding: Float[Tensor, " samples"]  # what rounding errors of the values can add to a strength

    @cached_property
    def kept(self) -> Bool[Tensor, " samples"]:
        """Which samples the model responds to."""
        return self.original.mean(1) > self.rounding

    def _shares(self, strengths: Float[Tensor, "*methods samples draws"]) -> Float[Tensor, "*methods kept draws"]:
        """Divide by the strengths of the kept samples, linearised: a sample's mean is its ratio of means."""
        original, some = self.original[self.kept], strengths[..., self.kept, :]
        bottom = original.mean(1, keepdim=True)
        ratio = some.mean(-1, keepdim=True) / bottom
        return ratio + (some - ratio * original) / bottom

    @cached_property
    def ratios(self) -> Float[Tensor, "methods kept draws"]:
        """R for each kept sample and draw."""
        return self._shares(self.masked) - self._shares(self.noise)

    @cached_property
    def unmasked_ratios(self) -> Float[Tensor, "kept draws"]:
        """The same for unmasked samples."""
        return 1 - self._shares(self.noise)

    @property
    def per_sample(self) -> Float[Tensor, "methods kept"]:
        """R of each kept sample, for each method."""
        return self.ratios.mean(-1)

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """R of each method: 0 at the level of white noise; lower is better."""
        return estimate(self.ratios)

    @property
    def unmasked(self) -> Estimate:
        """R of unmasked samples: 1 less the noise's share."""
        return estimate(self.unmasked_ratios)

    @property
    def noise_is_weaker(self) -> bool:
        """Whether noise has significantly weaker effects than the samples; otherwise no signal can be removed."""
        value, error = self.unmasked
        return bool(value > SURE * error.nan_to_num())

    @property
    def removed(self) -> Estimate:
        """The share of the signal that each method removes, 1 − R/(unmasked R); NaN where noise is not weaker."""
        ratio = ratio_of_means(self.ratios, self.unmasked_ratios)
        if not self.noise_is_weaker:
            return Estimate(torch.full_like(ratio.value, torch.nan), torch.full_like(ratio.value, torch.nan))
        return Estimate(1 - ratio.value, ratio.error)

    def difference(self, one: int, other: int) -> Estimate:
        """Return R of one method less that of another, sample by sample."""
        return estimate(self.ratios[one] - self.ratios[other])


@dataclass(frozen=True)
class Cost:
    """What a measurement cost."""

    evaluations: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.evaluations + other.evaluations, self.seconds + other.seconds)


def few_draws(fill: Fill, most: int, seed: int) -> Fill:
    """Return a fill with at most ``most`` of its draws, chosen at random."""
    if fill.draws <= most:
        return fill
    chosen = torch.randperm(fill.draws, generator=seeded(seed, "draws"))[:most]
    return fill.select(draws=chosen.sort().values.tolist())


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
