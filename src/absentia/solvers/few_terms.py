"""Few interactions that account for most of a game, for any number of players, from drawn coalitions.

Some coalitions are held out, to measure how well the result predicts values that no fit saw. The others are fitted in
two ways. Games that are sums of few effects are searched directly. Other games, such as most networks, are first
fitted by a Gaussian process, which predicts the values of thousands of coalitions; few terms are then searched that
agree with these predictions. Each is done in the Harsanyi and in the Walsh basis, and the one that predicts the
coalitions held out best with the fewest terms is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import Coalitions, draw_coalitions
from absentia.cube.kernels import Part, part_of, signs_of
from absentia.cube.likelihood import fit_kernel
from absentia.cube.posterior import Posterior, scale_of
from absentia.data import seeded
from absentia.errors import wrong
from absentia.games import Game, RowMeter, draws_of, readout_of
from absentia.runtime.progress import progress
from absentia.solvers.paired_draws import MIN_COALITIONS_PER_PLAYER, PairedValues, evaluate_pairs
from absentia.solvers.process import check_small
from absentia.term_search.features import Basis, features_of
from absentia.term_search.forward_selection import least_squares
from absentia.term_search.growth import ChosenTerms, Growth, grow_terms, stop_at_share, stop_by_information
from absentia.terms import Terms
from absentia.walsh import harsanyi_sets_of, walsh_to_harsanyi

# The share of the pairs that is held out, and bounds on their number.
_HELD_OUT = 0.15
_FEWEST_HELD_OUT = 24
_MOST_HELD_OUT = 1000
# The process is fitted to at most this many pairs, and predicts this many coalitions.
_MOST_FITTED = 3000
_PREDICTED = 4000
# Terms are added until the variation of the process that they miss is this share of the variation of the values that
# the process misses, or this share of all variation if that is more.
_LEFT_OF_UNEXPLAINED = 0.5
_LEAST_LEFT = 0.005
# Squares below this share of the values' are rounding errors.
_ROUNDING = 1e-12
# Walsh terms are converted to Harsanyi effects if that gives at most this many times as many terms.
_MOST_TIMES_AS_MANY = 2
# Coalitions of a sample by default, or for each player.
COALITIONS = 2**12
COALITIONS_PER_PLAYER = 16
LEAST_COALITIONS = 64


class Fidelity(NamedTuple):
    """R² on held-out coalitions, with its standard error."""

    value: float
    error: float


def few_terms(game: Game, evaluations: int | None = None, *, seed: int = 0, max_order: int | None = None) -> Terms:
    """Draw coalitions of a game, and return few terms that account for most of its values."""
    players = len(game.names)
    draws = draws_of(game)
    least = max(LEAST_COALITIONS, MIN_COALITIONS_PER_PLAYER * players + 2)
    if evaluations is None:
        evaluations = max(COALITIONS, COALITIONS_PER_PLAYER * players) * draws
    if evaluations < least * draws:
        raise wrong("evaluations", f"be at least {least * draws} for interactions of {players} players", evaluations)
    meter = RowMeter.start(game)
    values = evaluate_pairs(game, (evaluations // draws - 2) // 2, seeded(seed))
    return few_terms_of(values, game, seed, max_order, meter)


def few_terms_of(values: PairedValues, game: Game, seed: int, max_order: int | None, meter: RowMeter) -> Terms:
    """Return few terms that account for most of the values of drawn coalitions."""
    split = Split.of(values, seed)
    by_sample = []
    with progress(values.samples, "finding interactions", "sample") as bar:
        for sample in range(values.samples):
            by_sample.append(_best_by_basis(split.of_sample(sample), seed, max_order))
            bar.update()
    basis = _common_basis(by_sample)
    chosen = [best[basis] for best in by_sample]
    is_converted = basis is Basis.WALSH and all(_is_convertible(found) for found in chosen)
    lists = [_listed(found, is_converted) for found in chosen]
    return Terms.listed(
        torch.cat([part.sets for part in lists]),
        torch.cat([part.effects for part in lists]),
        game.names,
        owners=torch.arange(len(lists)).repeat_interleave(torch.tensor([len(part.effects) for part in lists])),
        samples=values.samples,
        errors=torch.cat([part.errors for part in lists]),
        basis=Basis.HARSANYI.value if is_converted else basis.value,
        fidelity=torch.tensor([found.fidelity.value for found in chosen], dtype=torch.float64),
        fidelity_error=torch.tensor([found.fidelity.error for found in chosen], dtype=torch.float64),
        readout=readout_of(game),
        evaluations=values.samples * values.coalitions_per_sample * draws_of(game),
        rows_seen=meter.rows_seen,
    )


@dataclass(frozen=True, eq=False)
class Split:
    """The values of drawn pairs, some of which are held out."""

    values: PairedValues
    fitted: Int[Tensor, " fitted"]  # the numbers of the pairs that fits see
    held_out: Int[Tensor, " held_out"]

    @classmethod
    def of(cls, values: PairedValues, seed: int) -> Split:
        """Hold out some pairs at random."""
        count = round(_HELD_OUT * values.pairs)
        count = min(max(count, _FEWEST_HELD_OUT), _MOST_HELD_OUT, values.pairs // 2)
        order = torch.randperm(values.pairs, generator=seeded(seed, "held out"))
        return cls(values, order[count:].sort().values, order[:count].sort().values)

    def of_sample(self, sample: int) -> SampleSplit:
        """Return the split values of one sample."""
        sample_values = self.values.of_samples([sample])
        drawn = sample_values.drawn[0]
        complements = sample_values.complements[0]
        coalitions = sample_values.coalitions
        check_small(drawn)
        check_small(complements)
        players = coalitions.shape[1]
        ends = torch.stack([torch.zeros(players), torch.ones(players)]).bool()
        end_values = torch.cat([sample_values.empty, sample_values.full])
        held_out = torch.cat([coalitions[self.held_out], ~coalitions[self.held_out]])
        return SampleSplit(
            first=coalitions[self.fitted],
            first_values=drawn[self.fitted],
            complement_values=complements[self.fitted],
            ends=ends,
            end_values=end_values,
            held_out=held_out,
            held_out_values=torch.cat([drawn[self.held_out], complements[self.held_out]]),
            held_out_weights=_weights_by_size(held_out),
        )


@dataclass(frozen=True, eq=False)
class SampleSplit:
    """The values of one sample: of pairs that are fitted, of ∅ and all players, and of coalitions held out."""

    first: Bool[Tensor, "fitted players"]  # one coalition of each pair
    first_values: Float[Tensor, " fitted"]
    complement_values: Float[Tensor, " fitted"]
    ends: Bool[Tensor, "2 players"]
    end_values: Float[Tensor, " 2"]
    held_out: Bool[Tensor, "held_out players"]  # the complements come in the second half
    held_out_values: Float[Tensor, " held_out"]
    held_out_weights: Float[Tensor, " held_out"]

    @property
    def coalitions(self) -> Bool[Tensor, "rows players"]:
        """All fitted coalitions; ∅ and all players are repeated as often as another size occurs."""
        return torch.cat([self.first, ~self.first, self.ends.repeat(self._repeats, 1)])

    @property
    def values(self) -> Float[Tensor, " rows"]:
        """Their values."""
        return torch.cat([self.first_values, self.complement_values, self.end_values.repeat(self._repeats)])

    @property
    def _repeats(self) -> int:
        """How often a size occurs."""
        players = self.first.shape[1]
        return max(1, round(2 * len(self.first) / max(1, players - 1)))

    def fidelity_of(self, predicted: Float[Tensor, " held_out"]) -> Fidelity:
        """Return R² of predictions for the coalitions held out, with its standard error."""
        weights = self.held_out_weights
        centred = self.held_out_values - weights @ self.held_out_values
        residuals = self.held_out_values - predicted
        variance = float(weights @ centred.square())
        unexplained = float(weights @ residuals.square())
        rounding = _ROUNDING * float(weights @ self.held_out_values.square())
        if variance <= rounding:  # a constant
            return Fidelity(1.0 if unexplained <= rounding else -math.inf, 0.0)
        share = unexplained / variance
        # How much each coalition moves the ratio; the two of a pair depend on each other.
        influence = weights * (residuals.square() - share * centred.square()) / variance
        by_pair = influence.view(2, -1).sum(0)
        return Fidelity(1 - share, float(by_pair.square().sum().sqrt()))


def _weights_by_size(coalitions: Bool[Tensor, "held_out players"]) -> Float[Tensor, " held_out"]:
    """Return weights with which every size that occurs counts equally."""
    sizes = coalitions.sum(1)
    weights = 1 / sizes.bincount().double()[sizes]
    return weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Found:
    """Terms that were found in one way, the covariance of their errors, and how well they predict."""

    terms: ChosenTerms
    covariance: Float[Tensor, "terms terms"]
    fidelity: Fidelity


def _best_by_basis(split: SampleSplit, seed: int, max_order: int | None) -> dict[Basis, Found]:
    """Search terms directly and by a process; return the better ones of each basis."""
    growth = Growth(max_order=max_order)
    directly = {basis: _found_directly(split, basis, growth) for basis in Basis}
    process = PartsOfProcess.fitted(split, seed)
    by_process = split.fidelity_of(process.predict(split.held_out))
    if by_process.value <= max(found.fidelity.value for found in directly.values()):
        return directly
    predicted = process.drawn_predictions(split, seed)
    unexplained = max(_LEAST_LEFT, _LEFT_OF_UNEXPLAINED * (1 - by_process.value))
    best = {}
    for basis in Basis:
        found = _found_by_process(split, process, predicted, basis, growth, unexplained)
        best[basis] = _better(directly[basis], found)
    return best


def _found_directly(split: SampleSplit, basis: Basis, growth: Growth) -> Found:
    """Search terms that fit the drawn values, without those that could be noise."""
    coalitions = split.coalitions
    values = split.values
    terms = grow_terms(coalitions, values, basis, growth, stop_by_information, prune=True)
    features = features_of(terms.sets, coalitions, basis)
    fit = least_squares(features, values)
    freedom = max(1, 2 * len(split.first) - len(terms.effects))
    variance = float((values - features.double() @ fit.coefficients).square().sum()) / freedom
    return Found(terms, variance * fit.inverse, split.fidelity_of(terms.predict(split.held_out)))


class Predictions(NamedTuple):
    """What a process predicts for drawn coalitions."""

    coalitions: Coalitions
    values: Float[Tensor, " coalitions"]


@dataclass(frozen=True, eq=False)
class PartsOfProcess:
    """A Gaussian process of both parts of a game."""

    parts: tuple[Posterior, ...]

    @classmethod
    def fitted(cls, split: SampleSplit, seed: int) -> PartsOfProcess:
        """Fit the odd part first, whose weights of players are where the fit of the even part starts."""
        rows = torch.randperm(len(split.first), generator=seeded(seed, "fitted"))[:_MOST_FITTED].sort().values
        first = split.first[rows]
        signs = signs_of(torch.cat([split.ends[1:], first]))
        values = torch.cat([split.end_values[1:], split.first_values[rows]])
        complements = torch.cat([split.end_values[:1], split.complement_values[rows]])
        parts: list[Posterior] = []
        weights = None
        for part in Part:
            own = part_of(part, values, complements)
            kernel = fit_kernel(part, signs, own / scale_of(own), seeded(seed, part.value), start=weights)
            weights = kernel.weights
            parts.append(Posterior.of(kernel, signs, own))
        return cls(tuple(parts))

    def predict(self, coalitions: Bool[Tensor, "rows players"]) -> Float[Tensor, " rows"]:
        """Return the expected values of coalitions."""
        signs = signs_of(coalitions)
        return torch.stack([part.predict(signs) for part in self.parts]).sum(0)

    def drawn_predictions(self, split: SampleSplit, seed: int) -> Predictions:
        """Return the expected values of coalitions whose sizes are drawn evenly; those of ∅ and all are known."""
        players = split.first.shape[1]
        generator = seeded(seed, "predicted")
        sizes = torch.randint(0, players + 1, (_PREDICTED,), generator=generator)
        coalitions = draw_coalitions(players, sizes, generator)
        values = self.predict(coalitions)
        values[sizes == 0] = split.end_values[0]
        values[sizes == players] = split.end_values[1]
        return Predictions(coalitions, values)

    def covariance(
        self, coalitions: Bool[Tensor, "rows players"], weights: Float[Tensor, "rows numbers"]
    ) -> Float[Tensor, "numbers numbers"]:
        """Return the covariance of numbers that are weighted sums of the values of coalitions."""
        signs = signs_of(coalitions)
        total = weights.new_zeros(weights.shape[1], weights.shape[1])
        for part in self.parts:
            prior = weights.T @ (part.kernel(signs, signs) @ weights)
            total += part.covariance(part.kernel(part.signs, signs) @ weights, prior)
        return total


def _found_by_process(
    split: SampleSplit,
    process: PartsOfProcess,
    predicted: Predictions,
    basis: Basis,
    growth: Growth,
    left: float,
) -> Found:
    """Search terms that agree with the predictions of a process."""
    coalitions, values = predicted
    terms = grow_terms(coalitions, values, basis, growth, stop_at_share(left), prune=False)
    features = features_of(terms.sets, coalitions, basis)
    # The effects are sums of values with these weights.
    weights = features.double() @ least_squares(features, values).inverse
    covariance = process.covariance(coalitions, weights)
    return Found(terms, covariance, split.fidelity_of(terms.predict(split.held_out)))


def _better(first: Found, second: Found) -> Found:
    """Return the terms that predict clearly better, or else the fewer ones."""
    best = max(first, second, key=lambda found: found.fidelity.value)
    fewest = min(first, second, key=lambda found: len(found.terms.effects))
    if best.fidelity.value - fewest.fidelity.value <= best.fidelity.error:
        return fewest
    return best


def _common_basis(by_sample: list[dict[Basis, Found]]) -> Basis:
    """Return the basis in which more samples have the better terms; the Harsanyi basis if as many."""
    wins = 0
    for best in by_sample:
        if _better(best[Basis.HARSANYI], best[Basis.WALSH]) is best[Basis.WALSH]:
            wins += 1
    return Basis.WALSH if 2 * wins > len(by_sample) else Basis.HARSANYI


def _is_convertible(found: Found) -> bool:
    """Return whether the Harsanyi effects of Walsh terms are few enough to be shown instead."""
    sets = found.terms.sets
    return harsanyi_sets_of(sets) <= _MOST_TIMES_AS_MANY * len(sets)


class ListedTerms(NamedTuple):
    """Sets of players, their effects, and the errors of these."""

    sets: Bool[Tensor, "terms players"]
    effects: Float[Tensor, " terms"]
    errors: Float[Tensor, " terms"]


def _listed(found: Found, is_converted: bool) -> ListedTerms:
    """Return the terms of a sample, as Harsanyi effects if they are to be converted."""
    terms = found.terms
    if not is_converted:
        return ListedTerms(terms.sets, terms.effects, found.covariance.diagonal().clamp_min(0).sqrt())
    converted = walsh_to_harsanyi(terms.sets, terms.effects, found.covariance)
    if converted.errors is None:  # only without a covariance
        raise wrong("covariance", "be converted with the effects", "none")
    return ListedTerms(converted.sets, converted.effects, converted.errors)
