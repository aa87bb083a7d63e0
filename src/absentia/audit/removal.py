"""The R metric: how much of a sample's effects a masking method leaves or adds, above those of white noise.

R = E_x[(Σ|U′(S)| − Σ|U_noise(S)|) / Σ|U(S)|] over all S ≠ ∅ [ren2023faithful, Sec. 4], with the effects U of the
sample, U′ of the sample whose region is masked by the method, and U_noise of the sample with noise in its region. All
three are those of games between that input and one and the same reference, which stands in for absent players.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.audit.estimates import SURE, Estimate, estimate, ratio_of_means


@dataclass(frozen=True, eq=False)
class Removal:
    """The strengths Σ_{S≠∅}|U(S)| of samples, masked samples and noise, for each draw; and R from them.

    A sample's strengths are averaged over the draws before they are divided: a ratio of means is steadier than a mean
    of ratios. Errors take both the samples and the draws as drawn: see `estimate`. Methods that mask no input have
    NaN. Samples that the model does not respond to, beyond rounding errors, have no ratio and are left out.

    >>> removal = Removal(torch.tensor([[[3.0]]]), torch.tensor([[10.0]]), torch.tensor([[1.0]]), torch.zeros(1))
    >>> removal.R.value, removal.unmasked.value, removal.removed.value
    (tensor([0.2000]), tensor(0.9000), tensor([0.7778]))
    """

    masked: Float[Tensor, "methods samples draws"]
    original: Float[Tensor, "samples draws"]
    noise: Float[Tensor, "samples draws"]
    rounding: Float[Tensor, " samples"]  # what rounding errors of the values can add up to in a strength

    @cached_property
    def kept(self) -> Bool[Tensor, " samples"]:
        """Which samples the model responds to."""
        return self.original.mean(1) > self.rounding

    @cached_property
    def ratios(self) -> Float[Tensor, "methods samples draws"]:
        """R for each kept sample and draw, linearised, so that a sample's mean is its ratio of means."""
        return self._linearised(self.masked[:, self.kept] - self.noise[self.kept])

    @cached_property
    def unmasked_ratios(self) -> Float[Tensor, "samples draws"]:
        """The same for samples that nothing has masked."""
        return self._linearised((self.original - self.noise)[self.kept])

    def _linearised(self, upper: Tensor) -> Tensor:
        original = self.original[self.kept]
        bottom = original.mean(1, keepdim=True)
        ratio = upper.mean(-1, keepdim=True) / bottom
        return ratio + (upper - ratio * original) / bottom

    @property
    def per_sample(self) -> Float[Tensor, "methods samples"]:
        """R of each kept sample, for each method."""
        return self.ratios.mean(-1)

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """R of each method: 0 at the level of white noise; the less, the better."""
        return estimate(self.ratios)

    @property
    def unmasked(self) -> Estimate:
        """R of samples that nothing has masked: 1 less the noise's share."""
        return estimate(self.unmasked_ratios)

    @property
    def noise_is_weaker(self) -> bool:
        """Whether noise has surely weaker effects than the samples: else nothing can be removed down to its level."""
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
        """The effects of masked samples as a share of the sample's own, E[Σ|U′| / Σ|U|], noise and all."""
        return estimate(self._linearised(self.masked[:, self.kept]))

    @property
    def beyond_unmasked(self) -> Estimate:
        """How far R is above that of unmasked samples, sample by sample: positive for what adds effects."""
        return estimate(self.ratios - self.unmasked_ratios)

    def difference(self, one: int, other: int) -> Estimate:
        """How far one method's R is above another's, sample by sample."""
        return estimate(self.ratios[one] - self.ratios[other])
