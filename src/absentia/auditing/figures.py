"""The figures of an audit, with their errors: what masked samples tell, R, each absence's own game, the data.

Fully masked samples show leak and invention (`split`). The masking curve scores masked samples by how many players
are present.

R = E_x[(Σ|U′(S)| − Σ|U_noise(S)|) / Σ|U(S)|] over all S ≠ ∅ [ren2023faithful, Sec. 4], with the effects U of the
sample, U′ of the sample whose region the method masks, and U_noise of the sample with noise in its region. All three
are effects of games between that input and the same reference, which stands in for absent players.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.auditing.estimates import (
    SURE,
    Drawn,
    Estimate,
    Values,
    estimate,
    estimates,
    pseudo_values,
    ratio_of_means,
)
from absentia.coalitions import coalition_sizes, moebius, sums_by_size
from absentia.data import DataRange, Rows, seeded
from absentia.indices import order_shapley_of
from absentia.players import Players
from absentia.terms import Interactions

# The largest error of a reconstruction, as a share of the values' standard deviation.
RECONSTRUCTION_ERROR = 0.05
_MOST_ENTRIES = 20_000
# Distances are measured from at most this many masked samples to at most this many rows of the data.
_MOST_MASKED, _MOST_ROWS = 500, 1_000
_ROUNDING = 1e-6  # of distances that are computed by matrix products


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
class FullyMasked:
    """What fully masked samples tell: leak and invention of each method, as pseudo-values (`estimates`).

    Evidence is what the score of fully masked samples has above that of the prior: invention less leak. Averaged
    log-odds of three or more classes are no distribution; ``averaging`` is what that adds to the log-loss of the
    values that are explained. It is neither leak nor invention.
    """

    leaks: Float[Tensor, "methods samples groups"]
    inventions: Float[Tensor, "methods samples groups"]
    averaging: Float[Tensor, "methods samples groups"]
    prior: Float[Tensor, " samples"]  # the score of what can be said without the sample
    whole: Float[Tensor, " samples"]  # the score of the model's predictions on whole samples
    left_out: int = 0  # samples of classes that are too rare to fit
    reason: str = ""  # why leak and invention can't be measured, if they can't

    @property
    def evidence(self) -> Float[Tensor, "methods samples groups"]:
        """Invention less leak."""
        return self.inventions - self.leaks


@dataclass(frozen=True, eq=False)
class MaskingCurve:
    """The proper score of each method's values, with one drawn coalition of each size for each sample.

    The coalitions are the same for all methods. ``prior`` is the score of what can be said without the sample: the
    class frequencies, or the mean. ``inventions`` is what the score of each size loses by how predictions are made,
    rather than by what present players do not tell; ``by_draws`` is the score over all sizes as pseudo-values.
    """

    scores: Float[Tensor, "methods samples sizes"]
    prior: Float[Tensor, " samples"]
    sizes: Int[Tensor, " sizes"]  # of the coalitions, from 0 to the number of players
    unit: str = "nats"  # or "of the variance"
    limit: float = math.inf  # all that there is to know: log(classes) in nats, or the variance itself
    all_absent: bool = True  # whether ∅ leaves no entry of the sample, so that it can only tell by a leak
    by_draws: Float[Tensor, "methods samples groups"] | None = None  # files of older versions have none
    inventions: Float[Tensor, "methods sizes"] | None = None

    @property
    def means(self) -> Float[Tensor, "methods samples groups"]:
        """The score over all sizes, each of the same weight, of each sample."""
        return self.scores.mean(-1, keepdim=True) if self.by_draws is None else self.by_draws

    @property
    def score(self) -> Estimate:
        """The score over all sizes; lower is better."""
        return estimates(self.means)


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

    They are pseudo-values over groups of draws (`estimates`): their mean over the groups is a sample's figure.
    ``by_order`` are sums of |U(S)| over the sets of each order 0 … n. ``terms`` is the number of effects that rebuild
    all 2ⁿ values to 5 % of their standard deviation (`Interactions.sparsity`). ``empty`` is v(∅), ``full`` is v(N).
    """

    salient: Float[Tensor, "methods samples groups"]
    terms: Float[Tensor, "methods samples groups"]
    by_order: Float[Tensor, "methods samples groups orders"]
    empty: Float[Tensor, "methods samples groups"]
    full: Float[Tensor, "methods samples groups"]
    shapley: Float[Tensor, "methods samples groups players"]
    log_terms: Float[Tensor, "methods samples groups"] | None = None  # files of older versions have none

    @property
    def strengths(self) -> Float[Tensor, "methods samples groups"]:
        """Σ|U(S)| over S ≠ ∅ of each game."""
        return self.by_order[..., 1:].sum(-1)

    @property
    def lengths(self) -> Float[Tensor, "methods samples groups"]:
        """The logarithm of the number of terms: its mean is that of the geometric mean."""
        return self.terms.clamp_min(1).log() if self.log_terms is None else self.log_terms

    @property
    def length(self) -> Estimate:
        """The number of interactions that an account needs: the geometric mean of the terms over the samples."""
        value, error = estimates(self.lengths)
        return Estimate(value.exp(), value.exp() * error)

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
        gaps = (self.full - self.empty).nanmean(2, keepdim=True).abs().expand_as(self.full)
        return ratio_of_means(means, gaps[:, None])

    def agreement(self) -> Float[Tensor, "methods methods"]:
        """Return the rank correlation of Shapley values between each two methods, averaged over samples."""
        return spearman(self.shapley.nanmean(2)).nanmean(0)


def game_figures(values: Float[Tensor, "samples coalitions"], noise: Tensor, tau: float | None) -> dict[str, Tensor]:
    """Return the fields of `Companions`, without the axes of methods and groups, for the games of a few samples."""
    players = (values.shape[1] - 1).bit_length()
    effects = Interactions(moebius(values), ("",) * players, "", noise, 0)
    terms = effects.sparsity(RECONSTRUCTION_ERROR).double()
    figures = {
        "salient": effects.salient(tau)[:, 1:].sum(1).double(),
        "terms": terms,
        "by_order": sums_by_size(effects.effects.abs()),
        "empty": values[:, 0].clone(),  # a view would keep the whole table
        "full": values[:, -1].clone(),
        "shapley": order_shapley_of(values).mean(1),
        "log_terms": terms.clamp_min(1).log(),
    }
    return {name: figure.cpu() for name, figure in figures.items()}


def drawn_game_figures(
    tables: Drawn, noise: Float[Tensor, " samples"], tau: float | None, shared: bool
) -> dict[str, Float[Tensor, "samples groups *figure"]]:
    """Return the figures of games whose values are means over draws, as pseudo-values."""
    whole = game_figures(tables.mean, noise, tau)
    without = [game_figures(values, noise, tau) for values in tables.without]
    return {name: pseudo_values(figure, [left[name] for left in without], shared) for name, figure in whole.items()}


def join_games(parts: Sequence[dict[str, Tensor]], methods: int, players: int) -> Companions:
    """Join the figures of blocks of samples, of shape (methods, samples, groups, …); without any, return none."""
    if not parts:
        axes = {"by_order": (players + 1,), "shapley": (players,)}
        names = [field.name for field in fields(Companions)]
        return Companions(**{name: torch.zeros(methods, 0, 1, *axes.get(name, ())).double() for name in names})
    return Companions(**{name: torch.cat([part[name] for part in parts], dim=1) for name in parts[0]})


@dataclass(frozen=True, eq=False)
class Plausibility:
    """How masked samples compare with the data, for each method; NaN and False where a method masks no input.

    ``distance`` is the median distance of masked samples to the nearest row of the data, divided by the median
    distance of the data's own rows to the nearest other row, in units of each entry's standard deviation. ``outside``
    marks the players whose stand-ins leave the data's range.
    """

    distance: Float[Tensor, " methods"]
    outside: Bool[Tensor, "methods players"]

    @property
    def beyond(self) -> Float[Tensor, " methods"]:
        """The distance, at least 1: masked samples can't be closer to the data than its own rows in earnest."""
        return self.distance.clamp_min(1)


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
        if inputs is None:
            continue
        if not region.integer:  # token numbers have no range
            beyond = (~within.holds(inputs)).flatten(0, 1).any(0)
            outside[number] = region.sums(beyond[None].int())[0] > 0
        if measure is not None:
            distance[number] = measure(inputs.flatten(0, 1))
    return Plausibility(distance, outside), note
