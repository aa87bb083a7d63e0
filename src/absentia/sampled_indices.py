"""Interaction indices of drawn coalitions: a Gaussian process estimates them with standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.attributions import Attribution
from absentia.cube.set_functionals import Sets, SetWeights, all_sets
from absentia.data import seeded
from absentia.errors import wrong
from absentia.games import Game, RowMeter, draws_of, readout_of
from absentia.interaction_indices import InteractionIndex
from absentia.runtime.progress import progress
from absentia.solvers.evaluated_pairs import evaluate_pairs_or_keep
from absentia.solvers.few_terms import COALITIONS, COALITIONS_PER_PLAYER, LEAST_COALITIONS
from absentia.solvers.fitted_parts import FittedGame, SetEstimates
from absentia.solvers.grouped_draws import error_of_draws
from absentia.solvers.paired_draws import MIN_COALITIONS_PER_PLAYER, PairedValues
from absentia.terms import Terms
from absentia.text import count_of

# With more pairs than this, the covariances of both parts of a process take more than 1 GB of memory.
_MOST_PAIRS = 8000
# At most this many sets are listed with errors: those of single players and the strongest others.
_MOST_LISTED = 4096
# At most this many sets are compared to find the strongest.
_MOST_COMPARED = 2**20


@dataclass(frozen=True)
class SampledIndex:
    """An interaction index of an order, to be estimated for a number of players."""

    index: InteractionIndex
    name: str
    order: int
    players: int

    def weights(self, size: int, most_added: int) -> SetWeights:
        """Return the weights of Walsh terms in the numbers of sets of a size."""
        return self.index.set_weights(size, self.order, self.players, most_added)

    @property
    def sets(self) -> int:
        """How many sets have a number."""
        return sum(math.comb(self.players, size) for size in range(self.order + 1))


class DrawnPairs(NamedTuple):
    """The values of drawn pairs, and what they cost."""

    values: PairedValues
    evaluations: int
    rows_seen: int | None
    notes: tuple[str, ...]


def usual_evaluations(game: Game) -> int:
    """Return how many rows the model evaluates for a sample by default: as many as for few interactions."""
    return max(COALITIONS, COALITIONS_PER_PLAYER * len(game.names)) * draws_of(game)


def draw_pairs(game: Game, evaluations: int | None, seed: int) -> DrawnPairs:
    """Draw coalitions with their complements up to a budget, or by default as many as for few interactions."""
    players = len(game.names)
    draws = draws_of(game)
    least = max(LEAST_COALITIONS, MIN_COALITIONS_PER_PLAYER * players + 2)
    if evaluations is None:
        evaluations = usual_evaluations(game)
    if evaluations < least * draws:
        raise wrong("evaluations", f"be at least {least * draws} for {players} players", evaluations)
    meter = RowMeter.start(game)
    pairs = (evaluations // draws - 2) // 2
    values, of_interruption = evaluate_pairs_or_keep(game, min(pairs, _MOST_PAIRS), seeded(seed), least)
    notes = [
        *of_interruption,
        f"Estimated by a Gaussian process from {values.coalitions_per_sample:,} coalitions of each sample.",
    ]
    if pairs > _MOST_PAIRS:
        notes.append("More coalitions would need too much memory to fit the process, so they were not evaluated.")
    if values.has_groups:
        notes.append("Standard errors include the variance of the draws of the absence.")
    spent = values.samples * values.coalitions_per_sample * draws
    return DrawnPairs(values, spent, meter.rows_seen, tuple(notes))


def sample_banzhaf(game: Game, index: InteractionIndex, evaluations: int | None, seed: int) -> Attribution:
    """Estimate Banzhaf values, which are the Banzhaf indices of single players."""
    players = len(game.names)
    drawn = draw_pairs(game, evaluations, seed)
    single = SampledIndex(index, "Banzhaf", 1, players)
    estimates_by_sample = []
    with progress(game.samples, "Banzhaf values", "sample") as bar:
        for sample in range(game.samples):
            fitted = FittedGame.of_sample(drawn.values, sample, seed)
            estimates_by_sample.append(fitted.estimates(all_sets(players, 1), partial(single.weights, 1)))
            bar.update()
    return Attribution(
        torch.cat([estimates.values for estimates in estimates_by_sample]),
        torch.cat([estimates.errors for estimates in estimates_by_sample]),
        drawn.evaluations,
        game.names,
        "sampled Banzhaf values",
        readout_of(game),
        "Banzhaf",
        rows_seen=drawn.rows_seen,
        method="process",
        notes=drawn.notes,
    )


def sample_index(
    game: Game, index: InteractionIndex, name: str, order: int, evaluations: int | None, seed: int
) -> Terms:
    """Estimate an interaction index of all sets of up to ``order`` players, or of the strongest of them."""
    chosen = SampledIndex(index, name, order, len(game.names))
    if chosen.sets > _MOST_COMPARED:
        must = f"be so small that there are at most {_MOST_COMPARED:,} sets"
        raise wrong("order", must, f"{order}, which has {chosen.sets:,} sets")
    drawn = draw_pairs(game, evaluations, seed)
    by_sample = []
    with progress(game.samples, f"{name} of order {order}", "sample") as bar:
        for sample in range(game.samples):
            by_sample.append(_index_of_sample(chosen, drawn.values, sample, seed))
            bar.update()
    notes = drawn.notes
    if chosen.sets > _MOST_LISTED:
        strongest = count_of(len(by_sample[0].effects), "set")
        notes = (*notes, f"The strongest {strongest} of {chosen.sets:,} are listed.")
    counts = torch.tensor([len(listed.effects) for listed in by_sample])
    terms = Terms.listed(
        torch.cat([listed.sets for listed in by_sample]),
        torch.cat([listed.effects for listed in by_sample]),
        game.names,
        owners=torch.arange(game.samples).repeat_interleave(counts),
        samples=game.samples,
        errors=torch.cat([listed.errors for listed in by_sample]),
        readout=readout_of(game),
        evaluations=drawn.evaluations,
        rows_seen=drawn.rows_seen,
        notes=notes,
    )
    return replace(terms, basis=name, order=order, base_values=drawn.values.empty)


class _OfSample(NamedTuple):
    """The numbers of the sets of one sample, with their errors."""

    sets: Bool[Tensor, "sets players"]
    effects: Float[Tensor, " sets"]
    errors: Float[Tensor, " sets"]


def _index_of_sample(chosen: SampledIndex, values: PairedValues, sample: int, seed: int) -> _OfSample:
    """Estimate the index of the sets of one sample."""
    fitted = FittedGame.of_sample(values, sample, seed)
    sets_by_size = _listed_sets(chosen, fitted)
    estimates_by_size = []
    for size, sets in enumerate(sets_by_size):
        estimates_by_size.append(fitted.estimates(sets, partial(chosen.weights, size)))
    sample_values = values.of_samples([sample])
    if chosen.index.is_own_effect(0, chosen.order, chosen.players):
        estimates_by_size[0] = _value_of_nobody(sample_values)
    rows = torch.cat([_rows_of(sets, chosen.players) for sets in sets_by_size])
    effects = torch.cat([estimates.values[0] for estimates in estimates_by_size])
    effects = effects * (effects.abs() > sample_values.rounding)
    errors = torch.cat([estimates.errors[0] for estimates in estimates_by_size])
    if len(effects) == chosen.sets and chosen.index.is_efficient(chosen.order, chosen.players):
        effects[1:] = with_sum(effects[1:], float(sample_values.full - sample_values.empty), errors[1:])
    return _OfSample(rows, effects, errors)


def _listed_sets(chosen: SampledIndex, fitted: FittedGame) -> list[Sets]:
    """Return the sets of each size to list: all of them, or ∅, all players, and the strongest others."""
    sets_by_size = [all_sets(chosen.players, size) for size in range(chosen.order + 1)]
    if chosen.sets <= _MOST_LISTED:
        return sets_by_size
    always_listed = sets_by_size[:2]
    candidates = sets_by_size[2:]
    strengths = []
    for size, sets in enumerate(candidates, start=2):
        strengths.append(fitted.means(sets, partial(chosen.weights, size))[0].abs())
    places_left = max(0, _MOST_LISTED - 1 - chosen.players)
    is_strong = _marks_of_largest(torch.cat(strengths), places_left).split([len(sets) for sets in candidates])
    strongest = [sets[mark] for sets, mark in zip(candidates, is_strong, strict=True)]
    return [*always_listed, *strongest]


def _marks_of_largest(numbers: Float[Tensor, " numbers"], count: int) -> Bool[Tensor, " numbers"]:
    """Return which numbers are among the ``count`` largest; the first ones in a tie."""
    marks = torch.zeros(len(numbers), dtype=torch.bool)
    marks[numbers.argsort(descending=True, stable=True)[:count]] = True
    return marks


def _value_of_nobody(values: PairedValues) -> SetEstimates:
    """Return v(∅) of a sample, whose error is that of the draws of a random absence."""
    error = error_of_draws(values.ends_by_group[0, :, 0], values.shares) if values.has_groups else torch.zeros(())
    return SetEstimates(values.empty[None], error.double().view(1, 1))


def _rows_of(sets: Sets, players: int) -> Bool[Tensor, "sets players"]:
    """Return sets as boolean rows."""
    return torch.zeros(len(sets), players, dtype=torch.bool).scatter_(1, sets, True)


def with_sum(
    values: Float[Tensor, " numbers"], total: float, errors: Float[Tensor, " numbers"]
) -> Float[Tensor, " numbers"]:
    """Return estimates whose sum is known: what they miss is spread in proportion to their variances.

    Examples
    --------
    >>> with_sum(torch.tensor([1.0, 2.0]), 4.0, torch.tensor([0.0, 0.1]))
    tensor([1., 3.])
    """
    shares = errors.square()
    if not float(shares.sum()) > 0:
        shares = torch.ones_like(errors)
    return values + (total - values.sum()) * shares / shares.sum()
