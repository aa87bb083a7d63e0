"""Few interactions that account for most of a game, for any number of players, from drawn coalitions.

Some coalitions are held out, to measure how well the result predicts values that no fit saw. The others are fitted in
two ways. Games that are sums of few effects are searched directly. Other games, such as most networks, are first
fitted by a Gaussian process, which predicts the values of thousands of coalitions; few terms are then searched that
agree with these predictions. They are used where the process predicts the held-out coalitions better than the direct
search, unless the terms found directly predict clearly better than those that agree with it. All of this is done in
the Harsanyi and in the Walsh basis. The one that clearly predicts better is taken. If neither does, it is the Walsh
basis, unless the Harsanyi basis needs clearly fewer terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.cube.kernels import CubeKernel
from absentia.data import seeded
from absentia.errors import wrong
from absentia.games import MAX_PLAYERS, Game, RowMeter, draws_of, readout_of
from absentia.runtime.progress import progress
from absentia.solvers.cost_of_fits import MOST_PAIRS_OF_FEW_TERMS
from absentia.solvers.evaluated_pairs import evaluate_pairs_or_keep
from absentia.solvers.exact import harsanyi
from absentia.solvers.fitted_kernels import check_small
from absentia.solvers.fitted_parts import FittedGame
from absentia.solvers.grouped_draws import error_of_draws
from absentia.solvers.paired_draws import MIN_COALITIONS_PER_PLAYER, PairedValues
from absentia.solvers.process_terms import (
    EstimatedTerms,
    drawn_predictions,
    estimated_walsh_terms,
    fitted_terms,
)
from absentia.term_search.exchange import exchanged
from absentia.term_search.features import Basis
from absentia.term_search.growth import ChosenTerms, Growth, grow_terms, stop_by_information
from absentia.terms import Terms
from absentia.walsh import harsanyi_sets_of, walsh_to_harsanyi

# The share of the pairs that is held out, and bounds on their number.
_HELD_OUT = 0.15
_FEWEST_HELD_OUT = 16
_MOST_HELD_OUT = 1000
# Terms are added until the variation of the process that they miss is this share of the variation of the values that
# the process misses, or this share of all variation if that is more.
_LEFT_OF_UNEXPLAINED = 0.1
_LEAST_LEFT = 0.0005
# Terms predict clearly better than others if they account for this share of what the others miss, and for this share
# of all variation.
_CLEAR_OF_MISSED = 0.1
_CLEAR = 0.002
# Terms in one basis are clearly fewer than in the other if they are at most this share of them.
_CLEARLY_FEWER = 2 / 3
# Squares below this share of the values' are rounding errors.
_ROUNDING = 1e-12
# A sum of terms that leaves less than this share of the variation is the game itself.
_LEFT_OF_EXACT = 1e-10
# Walsh terms are converted to Harsanyi effects if that gives at most this many times as many terms.
_MOST_TIMES_AS_MANY = 2
# Coalitions of a sample by default, or for each player.
COALITIONS = 2**12
COALITIONS_PER_PLAYER = 16
LEAST_COALITIONS = 64


# The kernels of the odd and the even part of a sample's game.
Kernels = tuple[CubeKernel, ...]


class Fidelity(NamedTuple):
    """R² on held-out coalitions, with its standard error, and the share of the variation that each pair misses."""

    value: float
    error: float
    missed_by_pair: Float[Tensor, " pairs"]

    @property
    def shown(self) -> float:
        """R², or NaN, which is unknown, if the held-out values do not vary but the predictions differ from them."""
        return self.value if math.isfinite(self.value) else math.nan

    def is_clearly_above(self, other: Fidelity) -> bool:
        """Return whether predictions are better than others of the same coalitions, beyond chance and by enough."""
        if not (math.isfinite(self.value) and math.isfinite(other.value)):
            return self.value > other.value
        gains = other.missed_by_pair - self.missed_by_pair
        missed = float(other.missed_by_pair.sum())
        least = max(_CLEAR, _CLEAR_OF_MISSED * missed, float(gains.norm()))
        return float(gains.sum()) > least


def few_terms(
    game: Game,
    evaluations: int | None = None,
    *,
    seed: int = 0,
    max_order: int | None = None,
    max_terms: int | None = None,
) -> Terms:
    """Draw coalitions of a game, and return few terms that account for most of its values.

    A budget for all coalitions gives the exact terms.
    """
    players = len(game.names)
    draws = draws_of(game)
    least = max(LEAST_COALITIONS, MIN_COALITIONS_PER_PLAYER * players + 2)
    if evaluations is None:
        evaluations = max(COALITIONS, COALITIONS_PER_PLAYER * players) * draws
    if players <= MAX_PLAYERS and evaluations >= 2**players * draws:
        return _cut(harsanyi(game), max_order, max_terms)
    if evaluations < least * draws:
        of_draws = f" and {draws} draws of the absence" if draws > 1 else ""
        fewest = min(least, 2**players) * draws
        must = f"be at least {fewest} for interactions of {players} players{of_draws}"
        raise wrong("evaluations", must, evaluations)
    meter = RowMeter.start(game)
    drawn = evaluate_pairs_or_keep(game, (evaluations // draws - 2) // 2, seeded(seed), least)
    terms = few_terms_of(drawn.values, game, seed, _growth(max_order, max_terms), meter)
    return replace(terms, notes=(*drawn.notes, *terms.notes))


def _cut(terms: Terms, max_order: int | None, max_terms: int | None) -> Terms:
    """Return the sets of at most this size, and the strongest so many of them."""
    if max_order is not None:
        terms = terms.up_to_order(max_order)
    return terms if max_terms is None else terms.keep(max_terms)


def _growth(max_order: int | None, max_terms: int | None) -> Growth:
    """Return how far to search for sets of at most this size, and for at most this many besides ∅."""
    growth = Growth(max_order=max_order)
    if max_terms is None or 1 + max_terms >= growth.most_terms:
        return growth
    return replace(growth, most_terms=1 + max_terms)


def few_terms_of(
    values: PairedValues,
    game: Game,
    seed: int,
    growth: Growth,
    meter: RowMeter,
    kernels: Sequence[Kernels] | None = None,
) -> Terms:
    """Return few terms that account for most of the values of drawn coalitions.

    ``kernels`` are those of `fit_kernels` for each sample, if they are fitted already.
    """
    split = Split.of(values, seed)
    by_sample = []
    with progress(values.samples, "finding interactions", "sample") as bar:
        for sample in range(values.samples):
            search = _Search(split, sample, seed, growth, None if kernels is None else kernels[sample])
            by_sample.append(search.best_by_basis())
            bar.update()
    basis = _common_basis(by_sample)
    chosen = [best[basis] for best in by_sample]
    is_converted = basis is Basis.WALSH and all(_is_convertible(found, growth) for found in chosen)
    lists = [_listed(found, is_converted) for found in chosen]
    return Terms.listed(
        torch.cat([part.sets for part in lists]),
        torch.cat([part.effects for part in lists]),
        game.names,
        owners=torch.arange(len(lists)).repeat_interleave(torch.tensor([len(part.effects) for part in lists])),
        samples=values.samples,
        errors=torch.cat([part.errors for part in lists]),
        basis=Basis.HARSANYI.value if is_converted else basis.value,
        fidelity=torch.tensor([found.fidelity.shown for found in chosen], dtype=torch.float64),
        fidelity_error=torch.tensor([found.fidelity.error for found in chosen], dtype=torch.float64),
        readout=readout_of(game),
        evaluations=values.samples * values.coalitions_per_sample * draws_of(game),
        rows_seen=meter.rows_seen,
        notes=_notes(chosen, values.has_groups),
    )


def fit_kernels(values: PairedValues, seed: int) -> list[Kernels]:
    """Fit the kernels of each sample to the coalitions that are not held out."""
    split = Split.of(values, seed)
    fitted = []
    with progress(values.samples, "fitting the process", "sample") as bar:
        for sample in range(values.samples):
            fitted.append(split.process_of(sample, seed).kernels)
            bar.update()
    return fitted


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
        held_out = torch.cat([coalitions[self.held_out], ~coalitions[self.held_out]])
        by_group = [
            sample_values.drawn_by_group[0][:, self.fitted],
            sample_values.complements_by_group[0][:, self.fitted],
            sample_values.ends_by_group[0],
        ]
        return SampleSplit(
            coalitions=torch.cat([coalitions[self.fitted], ~coalitions[self.fitted], ends]),
            values_by_group=torch.cat(by_group, dim=1),
            shares=sample_values.shares,
            held_out=held_out,
            held_out_values=torch.cat([drawn[self.held_out], complements[self.held_out]]),
            held_out_weights=_weights_by_size(held_out),
        )

    def process_of(self, sample: int, seed: int, kernels: Kernels | None = None) -> FittedGame:
        """Fit a process to pairs that are not held out: to all of them, or to some if they are many."""
        order = torch.randperm(len(self.fitted), generator=seeded(seed, "fitted"))
        pairs = self.fitted[order[:MOST_PAIRS_OF_FEW_TERMS].sort().values]
        return FittedGame.of_sample(self.values, sample, seed, pairs, kernels)


@dataclass(frozen=True, eq=False)
class SampleSplit:
    """The values of one sample: of fitted pairs, of ∅ and all players, and of held-out coalitions."""

    coalitions: Bool[Tensor, "rows players"]  # those of the pairs, their complements, ∅ and all players
    values_by_group: Float[Tensor, "groups rows"]
    shares: Float[Tensor, " groups"]
    held_out: Bool[Tensor, "held_out players"]  # the complements come in the second half
    held_out_values: Float[Tensor, " held_out"]
    held_out_weights: Float[Tensor, " held_out"]

    @property
    def values(self) -> Float[Tensor, " rows"]:
        """The values of the fitted coalitions."""
        return self.shares @ self.values_by_group

    @property
    def end_values(self) -> Float[Tensor, " 2"]:
        """The values of ∅ and of all players."""
        return self.values[-2:]

    def fidelity_of(self, predicted: Float[Tensor, " held_out"]) -> Fidelity:
        """Return R² of predictions for the coalitions held out, with its standard error."""
        weights = self.held_out_weights
        centred = self.held_out_values - weights @ self.held_out_values
        residuals = self.held_out_values - predicted
        variance = float(weights @ centred.square())
        unexplained = float(weights @ residuals.square())
        rounding = _ROUNDING * float(weights @ self.held_out_values.square())
        if variance <= rounding:  # a constant
            is_met = unexplained <= rounding
            missed = torch.full((len(weights) // 2,), 0.0 if is_met else math.inf, dtype=torch.float64)
            return Fidelity(1.0 if is_met else -math.inf, 0.0, missed)
        share = unexplained / variance
        # How much each coalition moves the ratio; the two of a pair depend on each other.
        influence = weights * (residuals.square() - share * centred.square()) / variance
        by_pair = influence.view(2, -1).sum(0)
        missed_by_pair = (weights * residuals.square() / variance).view(2, -1).sum(0)
        return Fidelity(1 - share, float(by_pair.norm()), missed_by_pair)


def _weights_by_size(coalitions: Bool[Tensor, "held_out players"]) -> Float[Tensor, " held_out"]:
    """Return weights with which every size that occurs counts equally."""
    sizes = coalitions.sum(1)
    weights = 1 / sizes.bincount().double()[sizes]
    return weights / weights.sum()


class Meaning(str, Enum):
    """What the effects of few terms are."""

    SUM = (
        "Effects are those of a sum of these terms that was fitted to the values. Errors count what it leaves as "
        "noise, and whether other sets explain the values as well."
    )
    GAME = "Effects and errors are estimates for the model itself, not for the sum of the listed terms alone."
    COEFFICIENT = (
        "Each effect is a coefficient of the sum that predicts best. Its error includes how far it may be from the "
        "effect of the same set in the model itself."
    )


@dataclass(frozen=True, eq=False)
class Found:
    """Terms that were found in one way, the errors of their effects, and how well they predict."""

    terms: ChosenTerms
    errors: Float[Tensor, " terms"]
    fidelity: Fidelity
    meaning: Meaning
    covariance: Float[Tensor, "terms terms"] | None = None  # of the errors, if the terms are all but noise


@dataclass(frozen=True)
class _Search:
    """A search of few terms for the values of one sample."""

    split: Split
    sample: int
    seed: int
    growth: Growth
    kernels: Kernels | None

    def best_by_basis(self) -> dict[Basis, Found]:
        """Search terms directly, and by a process where that predicts better; return those of each basis."""
        split = self.split.of_sample(self.sample)
        directly = {basis: _found_directly(split, basis, self.growth) for basis in Basis}
        best = max(found.fidelity.value for found in directly.values())
        if best >= 1 - _LEFT_OF_EXACT:
            return directly
        process = self.split.process_of(self.sample, self.seed, self.kernels)
        by_process = split.fidelity_of(process.predict(split.held_out))
        if by_process.value <= best:
            return directly
        left = max(_LEAST_LEFT, _LEFT_OF_UNEXPLAINED * (1 - by_process.value))
        by_process_terms = self._found_by_process(split, process, left)
        found = {}
        for basis in Basis:
            is_direct = directly[basis].fidelity.is_clearly_above(by_process_terms[basis].fidelity)
            found[basis] = directly[basis] if is_direct else by_process_terms[basis]
        return found

    def _found_by_process(self, split: SampleSplit, process: FittedGame, left: float) -> dict[Basis, Found]:
        """Search terms that agree with the predictions of a process."""
        predicted = drawn_predictions(process, split.end_values, self.seed)
        found = {}
        for basis in Basis:
            fitted = fitted_terms(process, predicted, basis, self.growth, left)
            found[basis] = _judged(split, fitted, Meaning.COEFFICIENT)
        walsh = _judged(split, estimated_walsh_terms(process, predicted, self.growth, left), Meaning.GAME)
        # They are preferred, unless coefficients clearly predict better.
        if not found[Basis.WALSH].fidelity.is_clearly_above(walsh.fidelity):
            found[Basis.WALSH] = walsh
        return found


def _found_directly(split: SampleSplit, basis: Basis, growth: Growth) -> Found:
    """Search terms that fit the drawn values, without those that could be noise."""
    grown = grow_terms(split.coalitions, split.values, basis, growth, stop_by_information, prune=True)
    exchange = exchanged(split.coalitions, split.values, grown, growth)
    covariance = exchange.covariance()
    if len(split.shares) > 1:
        covariance += error_of_draws(exchange.effects_of(split.values_by_group), split.shares).square().diag()
    errors = covariance.diagonal().clamp_min(0).sqrt()
    fidelity = split.fidelity_of(exchange.terms.predict(split.held_out))
    return Found(exchange.terms, errors, fidelity, Meaning.SUM, covariance)


def _judged(split: SampleSplit, found: EstimatedTerms, meaning: Meaning) -> Found:
    """Measure how well terms predict the held-out coalitions."""
    fidelity = split.fidelity_of(found.terms.predict(split.held_out))
    return Found(found.terms, found.errors, fidelity, meaning)


def _notes(chosen: list[Found], has_groups: bool) -> tuple[str, ...]:
    """Say what effects are, and whether errors include the draws of a random absence."""
    exact = all(found.meaning is Meaning.SUM and found.fidelity.value >= 1 - _LEFT_OF_EXACT for found in chosen)
    meanings = {found.meaning for found in chosen}
    notes = [] if exact else [meaning.value for meaning in Meaning if meaning in meanings]
    if has_groups:
        notes.append("Standard errors include the variance of the draws of the absence.")
    return tuple(notes)


def _is_better_in_walsh(harsanyi: Found, walsh: Found) -> bool:
    """Return whether Walsh terms predict clearly better, or else are not clearly more.

    Where neither is better, Walsh terms are preferred, because the strongest of them predict better alone, and their
    effects in the game are more certain.
    """
    if walsh.fidelity.is_clearly_above(harsanyi.fidelity):
        return True
    if harsanyi.fidelity.is_clearly_above(walsh.fidelity):
        return False
    return len(harsanyi.terms.effects) > _CLEARLY_FEWER * len(walsh.terms.effects)


def _common_basis(by_sample: list[dict[Basis, Found]]) -> Basis:
    """Return the basis in which more samples have the better terms; the Harsanyi basis if as many samples do."""
    wins = 0
    for best in by_sample:
        if _is_better_in_walsh(best[Basis.HARSANYI], best[Basis.WALSH]):
            wins += 1
    return Basis.WALSH if 2 * wins > len(by_sample) else Basis.HARSANYI


def _is_convertible(found: Found, growth: Growth) -> bool:
    """Return whether Harsanyi effects can be shown instead of Walsh terms, because they are few and as certain."""
    if found.covariance is None:
        return False
    sets = found.terms.sets
    return harsanyi_sets_of(sets) <= min(_MOST_TIMES_AS_MANY * len(sets), growth.most_terms)


class ListedTerms(NamedTuple):
    """Sets of players, their effects, and the errors of these."""

    sets: Bool[Tensor, "terms players"]
    effects: Float[Tensor, " terms"]
    errors: Float[Tensor, " terms"]


def _listed(found: Found, is_converted: bool) -> ListedTerms:
    """Return the terms of a sample, as Harsanyi effects if they are to be converted."""
    terms = found.terms
    if not is_converted:
        return ListedTerms(terms.sets, terms.effects, found.errors)
    converted = walsh_to_harsanyi(terms.sets, terms.effects, found.covariance)
    if converted.errors is None:  # only without a covariance
        raise wrong("covariance", "be converted with the effects", "none")
    return ListedTerms(converted.sets, converted.effects, converted.errors)
