"""The R metric: the effects that a masking method leaves or adds, beyond those of white noise.

R = E_x[(Σ|U′(S)| − Σ|U_noise(S)|) / Σ|U(S)|] over all S ≠ ∅ [ren2023faithful, Sec. 4], with the effects U of the
sample, U′ of the sample whose region the method masks, and U_noise of the sample with noise in its region. All three
are effects of games between that input and the same reference, which stands in for absent players.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.absences.protocol import Fill
from absentia.audit.estimates import SURE, Estimate, estimate, ratio_of_means
from absentia.data import blocks, seeded
from absentia.evaluation import Evaluator, Tabulated
from absentia.players import Players

# Tables hold at most this many values at a time: 16 MiB in double precision.
_VALUES_AT_A_TIME = 2**21


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

    @property
    def left(self) -> Estimate:
        """The effects of masked samples as a share of the sample's own, E[Σ|U′| / Σ|U|]; noise is not subtracted."""
        return estimate(self._shares(self.masked))

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


def tables(evaluator: Evaluator, players: Players, fill: Fill) -> Iterator[tuple[slice, Tabulated]]:
    """Evaluate all coalitions of the samples, a few samples at a time."""
    for some in blocks(evaluator.samples, max(1, _VALUES_AT_A_TIME >> len(players))):
        numbers = torch.arange(some.start, some.stop)
        yield some, evaluator.table(fill.select(some), samples=numbers, players=players)


def few_draws(fill: Fill, most: int, seed: int) -> Fill:
    """Return a fill with at most ``most`` of its draws, chosen at random."""
    if fill.draws <= most:
        return fill
    chosen = torch.randperm(fill.draws, generator=seeded(seed, "draws"))[:most]
    return fill.select(draws=chosen.sort().values.tolist())
