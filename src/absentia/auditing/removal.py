"""The paper's R: how much of the signal of a region a masking method removes.

R = E_x[(Σ|U′(S)| − Σ|U_noise(S)|) / Σ|U(S)|] over all S ≠ ∅ [ren2023faithful, Sec. 4]. U are the effects of the
sample, U′ those of the sample with its region masked by the method, and U_noise those of the sample with noise in its
region. In all three games the same reference stands in for absent players.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Bool, Float
from torch import Tensor

from absentia.auditing.estimates import SURE, Estimate, Values, estimate, ratio_of_means


@dataclass(frozen=True, eq=False)
class Removal:
    """The strengths Σ_{S≠∅}|U(S)| of samples, masked samples and noise for each draw, and R computed from them.

    A sample's strengths are averaged over the draws before they are divided, because a ratio of means is more stable
    than a mean of ratios. Errors treat both samples and draws as random: see `estimate`. Methods that do not mask the
    input have NaN. Samples to which the model does not respond, up to rounding errors, are left out.
    """

    masked: Float[Tensor, "methods samples draws"]
    original: Float[Tensor, "samples draws"]
    noise: Float[Tensor, "samples draws"]
    rounding: Float[Tensor, " samples"]  # how much rounding errors of the values can add to a strength

    @cached_property
    def kept(self) -> Bool[Tensor, " samples"]:
        """Which samples the model responds to."""
        return self.original.mean(1) > self.rounding

    def _shares(self, strengths: Values) -> Float[Tensor, "*methods kept draws"]:
        """Divide by the strengths of the kept samples, linearised so that a sample's mean is its ratio of means."""
        original = self.original[self.kept]
        strengths = strengths[..., self.kept, :]
        mean_original = original.mean(1, keepdim=True)
        ratio = strengths.mean(-1, keepdim=True) / mean_original
        return ratio + (strengths - ratio * original) / mean_original

    @cached_property
    def ratios(self) -> Float[Tensor, "methods kept draws"]:
        """R for each kept sample and draw."""
        return self._shares(self.masked) - self._shares(self.noise)

    @cached_property
    def unmasked_ratios(self) -> Float[Tensor, "kept draws"]:
        """The same for unmasked samples."""
        return 1 - self._shares(self.noise)

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """R of each method: 0 at the level of white noise; lower is better."""
        return estimate(self.ratios)

    @property
    def unmasked(self) -> Estimate:
        """R of unmasked samples: 1 minus the share of the noise."""
        return estimate(self.unmasked_ratios)

    @property
    def noise_is_weaker(self) -> bool:
        """Whether noise has significantly weaker effects than the samples; if not, there is no signal to remove."""
        value, error = self.unmasked
        return bool(value > SURE * error.nan_to_num())

    @property
    def removed(self) -> Estimate:
        """The share of the signal that each method removes, 1 − R/(unmasked R); NaN if noise is not weaker."""
        ratio = ratio_of_means(self.ratios, self.unmasked_ratios)
        if not self.noise_is_weaker:
            return Estimate(math.nan - ratio.value, math.nan * ratio.error)
        return Estimate(1 - ratio.value, ratio.error)

    def difference(self, first: int, second: int) -> Estimate:
        """Return R of one method minus that of another, sample by sample."""
        return estimate(self.ratios[first] - self.ratios[second])
