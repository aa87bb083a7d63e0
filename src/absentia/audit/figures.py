"""The figures of an audit, with their errors: what masked samples predict, R, each absence's own game, the data.

The masking curve scores masked samples by how many players are present; at ∅ it shows leaks and inventions.

R = E_x[(Σ|U′(S)| − Σ|U_noise(S)|) / Σ|U(S)|] over all S ≠ ∅ [ren2023faithful, Sec. 4], with the effects U of the
sample, U′ of the sample whose region the method masks, and U_noise of the sample with noise in its region. All three
are effects of games between that input and the same reference, which stands in for absent players.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.attributions import order_shapley_of
from absentia.coalitions import coalition_sizes, moebius, sums_by_size
from absentia.data import DataRange, Rows, seeded
from absentia.evaluation import Tabulated
from absentia.interactions import Interactions
from absentia.players import Players
from absentia.readouts import Score

Values: TypeAlias = Float[Tensor, "*methods samples draws"]

# A difference of more than this many standard errors is significant, if there are many samples and draws.
SURE = 2.0
# The largest error of a reconstruction, as a share of the values' standard deviation.
RECONSTRUCTION_ERROR = 0.05
_MOST_ENTRIES = 20_000
# Distances are measured from at most this many masked samples to at most this many rows of the data.
_MOST_MASKED, _MOST_ROWS = 500, 1_000
_ROUNDING = 1e-6  # of distances that are computed by matrix products


class Estimate(NamedTuple):
    """A mean over samples and draws, with its standard error; the error of a single sample is NaN."""

    value: Float[Tensor, " *methods"]
    error: Float[Tensor, " *methods"]


def _variances(values: Values) -> tuple[Tensor, Tensor]:
    """Return the variance of the mean that comes of the samples, and that of the draws: see `estimate`."""
    samples, draws = values.shape[-2:]
    by_sample, by_draw = values.mean(-1), values.mean(-2)
    of_samples = by_sample.var(-1) / samples
    if draws < 2:
        return of_samples, torch.zeros_like(of_samples)
    rest = values - by_sample[..., None] - by_draw[..., None, :] + values.mean((-2, -1))[..., None, None]
    rest_variance = rest.square().sum((-2, -1)) / ((samples - 1) * (draws - 1))
    return of_samples, (by_draw.var(-1) / draws - rest_variance / (samples * draws)).clamp_min(0)


def estimate(values: Values) -> Estimate:
    """Average over samples and draws; the samples may share the draws or not.

    With values y = μ + sample + draw + rest, the variance of the mean is the variance over samples of the samples'
    means (which holds the sample's part and the rest's), divided by their number, plus the same of the draws' means,
    less the rest's part, which was counted twice: s²(ȳ over draws)/K + max(0, s²(ȳ over samples)/D − s²(rest)/KD).
    """
    mean = values.mean((-2, -1))
    if values.shape[-2] < 2:
        return Estimate(mean, torch.full_like(mean, math.nan))
    return Estimate(mean, sum(_variances(values), torch.zeros_like(mean)).sqrt())


def is_above(values: Float[Tensor, "samples draws"]) -> bool:
    """Return whether a mean is significantly above 0: by two standard errors, or more with few samples or draws.

    The number of errors is Student's, for the degrees of freedom that samples and draws have together. A single
    sample is never significant.
    """
    samples, draws = values.shape
    if samples < 2:
        return False
    mean, of_samples, of_draws = (float(part) for part in (values.mean(), *_variances(values)))
    variance = of_samples + of_draws
    if not variance > 0:
        return mean > 0
    freedom = variance**2 / (of_samples**2 / (samples - 1) + of_draws**2 / max(1, draws - 1))
    return mean > SURE * (1 + 1.25 / freedom + 1.53 / freedom**2 + 1.43 / freedom**3) * math.sqrt(variance)


def ratio_of_means(upper: Values, lower: Float[Tensor, "*#methods samples draws"]) -> Estimate:
    """Divide one mean by another; the error is that of the linearised ratio, (upper − ratio · lower)/mean(lower)."""
    bottom = lower.mean((-2, -1))
    ratio = upper.mean((-2, -1)) / bottom
    return Estimate(ratio, estimate((upper - ratio[..., None, None] * lower) / bottom[..., None, None]).error)


def spearman(attributions: Float[Tensor, "methods *rows players"]) -> Float[Tensor, "*rows methods methods"]:
    """Correlate the ranks of the players between each two methods; NaN for a method whose values are all equal."""
    others, own = attributions[..., None, :], attributions[..., :, None]
    # Equal values share the mean of their ranks.
    ranked = ((others < own).sum(-1) + ((others == own).sum(-1) + 1) / 2).to(attributions.dtype)
    centred = (ranked - ranked.mean(-1, keepdim=True)).movedim(0, -2)
    products = centred @ centred.transpose(-1, -2)
    size = products.diagonal(dim1=-2, dim2=-1).sqrt()
    return (products / (size[..., :, None] * size[..., None, :])).clamp(-1, 1)


@dataclass(frozen=True, eq=False)
class MaskingCurve:
    """The proper score (`Score`) of each method's values, with one drawn coalition of each size for each sample.

    The coalitions are the same for all methods. ``prior`` is the score of what can be said without the sample: the
    class frequencies, or the mean. At ∅ a method that leaves nothing of the sample and argues for nothing has it.
    """

    scores: Float[Tensor, "methods samples sizes"]
    prior: Float[Tensor, " samples"]
    sizes: Int[Tensor, " sizes"]  # of the coalitions, from 0 to the number of players
    unit: str = "nats"  # or "of the variance"
    limit: float = math.inf  # all that there is to know: log(classes) in nats, or the variance itself
    all_absent: bool = True  # whether ∅ leaves no entry of the sample, so that it can only tell by a leak
    fitted: float = 0.0  # what the prior gains on average as its frequencies are those of the same samples

    @classmethod
    def of(cls, score: Score, values: Tensor, sizes: Tensor, all_absent: bool) -> MaskingCurve:
        """Score values of shape (methods, samples, sizes)."""
        scores, limit, unit, fitted = torch.stack([score(one) for one in values]), 1.0, "of the variance", 0.0
        if score.classes is not None:
            classes = len(score.classes.unique())
            limit, unit, fitted = math.log(max(2, classes)), "nats", (classes - 1) / (2 * len(score.classes))
        elif bool((score.full == score.full[0]).all()):  # there is no variance to compare with
            scores = scores * math.nan
        return cls(scores, score.prior, sizes, unit, limit, all_absent, fitted)

    @property
    def beyond_prior(self) -> Float[Tensor, "methods samples 1"]:
        """The score at ∅ less the prior, of each sample; what the prior gains by its samples is no invention."""
        beyond = (self.scores[..., 0] - self.prior)[..., None]
        return beyond - beyond.mean(1, keepdim=True).clamp(0, self.fitted)

    @property
    def means(self) -> Float[Tensor, "methods samples 1"]:
        """The score over all sizes, each of the same weight, of each sample."""
        return self.scores.mean(-1, keepdim=True)

    @property
    def evidence(self) -> Estimate:
        """The score at ∅ less the prior: below 0 the method leaks, above 0 it invents."""
        return estimate(self.beyond_prior)

    @property
    def score(self) -> Estimate:
        """The score over all sizes; lower is better."""
        return estimate(self.means)


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

    def _shares(self, strengths: Values) -> Float[Tensor, "*methods kept draws"]:
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
        ratio, known = ratio_of_means(self.ratios, self.unmasked_ratios), 1.0 if self.noise_is_weaker else math.nan
        return Estimate(known - ratio.value, known * ratio.error)

    def difference(self, one: int, other: int) -> Estimate:
        """Return R of one method less that of another, sample by sample."""
        return estimate(self.ratios[one] - self.ratios[other])


@dataclass(frozen=True, eq=False)
class Companions:
    """Figures of the game that each absence makes of each sample, or of a drawn game of some of its players.

    ``by_order`` are sums of |U(S)| over the sets of each order 0 … n. ``terms`` is the number of effects that rebuild
    all 2ⁿ values to 5 % of their standard deviation (`Interactions.sparsity`). ``empty`` is v(∅), ``full`` is v(N).
    """

    salient: Float[Tensor, "methods samples games"]
    terms: Float[Tensor, "methods samples games"]
    by_order: Float[Tensor, "methods samples games orders"]
    empty: Float[Tensor, "methods samples games"]
    full: Float[Tensor, "methods samples games"]
    shapley: Float[Tensor, "methods samples games players"]

    @property
    def strengths(self) -> Float[Tensor, "methods samples games"]:
        """Σ|U(S)| over S ≠ ∅ of each game."""
        return self.by_order[..., 1:].sum(-1)

    @property
    def low_orders(self) -> Estimate:
        """The share of the strength at orders up to half the number of players."""
        half = (self.by_order.shape[-1] - 1) // 2
        return ratio_of_means(self.by_order[..., 1 : half + 1].sum(-1), self.strengths)

    def order_profile(self) -> Estimate:
        """Return the mean |U(S)| at each order 1 … n, divided by the mean |v(N) − v(∅)|: (methods, orders).

        It is a ratio of means over samples. The paper's mean of ratios has no bound where a sample's v(N) happens to
        be close to its v(∅).
        """
        means = (self.by_order[..., 1:] / coalition_sizes(self.by_order.shape[-1] - 1).bincount()[1:]).movedim(-1, 1)
        return ratio_of_means(means, (self.full - self.empty).abs()[:, None])

    def agreement(self) -> Float[Tensor, "methods methods"]:
        """Return the rank correlation of Shapley values between each two methods, averaged over samples."""
        return spearman(self.shapley).flatten(0, 1).nanmean(0)


def game_figures(table: Tabulated, players: int, tau: float | None) -> dict[str, Tensor]:
    """Return the fields of `Companions`, without the axes of methods and games, for the games of a few samples."""
    effects = Interactions(moebius(table.values), ("",) * players, "", table.noise, table.evaluations)
    found = {
        "salient": effects.salient(tau)[:, 1:].sum(1).double(),
        "terms": effects.sparsity(RECONSTRUCTION_ERROR).double(),
        "by_order": sums_by_size(effects.effects.abs()),
        "empty": table.values[:, 0].clone(),  # a view would keep the whole table
        "full": table.values[:, -1].clone(),
        "shapley": order_shapley_of(table.values).mean(1),
    }
    return {name: figures.cpu() for name, figures in found.items()}


def join_games(found: Sequence[dict[str, Tensor]], methods: int, players: int) -> Companions:
    """Join the figures of blocks of samples; without any, return figures of no sample."""
    if not found:
        sizes = {"by_order": (players + 1,), "shapley": (players,)}
        found = [{one.name: torch.zeros(methods, 0, *sizes.get(one.name, ())).double() for one in fields(Companions)}]
    return Companions(**{name: torch.cat([block[name] for block in found], 1)[:, :, None] for name in found[0]})


@dataclass(frozen=True, eq=False)
class Plausibility:
    """How masked samples compare with the data, for each method; NaN and False where a method masks no input.

    ``distance`` is the median distance of masked samples to the nearest row of the data, divided by the median
    distance of the data's own rows to the nearest other row, in units of each entry's standard deviation. ``outside``
    marks the players whose stand-ins leave the data's range.
    """

    distance: Float[Tensor, " methods"]
    outside: Bool[Tensor, "methods players"]


def measure_distances(data: Rows, seed: int) -> tuple[Callable[[Rows], float] | None, str]:
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
            outside[number] = region.sums((~within.holds(inputs)).flatten(0, 1).any(0)[None].int())[0] > 0
            distance[number] = math.nan if measure is None else measure(inputs.flatten(0, 1))
    return Plausibility(distance, outside), note
