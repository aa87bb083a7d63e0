"""The growth of sets: those that explain the values are extended by further players, round after round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import Coalitions
from absentia.term_search.features import Basis, extension_scores, features_of
from absentia.term_search.forward_selection import Path, forward_path, least_squares

# The best of a round's new sets that are extended in the next, even if they were not chosen.
_NEW_SETS_EXTENDED = 100
_CHOSEN_SETS_EXTENDED = 200
# For each new set, this many of the best extensions are looked at, because most are known already.
_LOOKED_AT = 4
# More sets than this are not kept from one round to the next.
_LARGEST_POOL = 1500

# Squares below this share of the values' are rounding errors.
_ROUNDING = 1e-12
_TINY = 1e-300

# How many of the chosen features to keep: a function of their path and of the number of rows and candidates.
StopRule: TypeAlias = Callable[[Path, int, int], int]


@dataclass(frozen=True)
class Growth:
    """How far the search goes."""

    rounds: int = 5
    new_sets: int = 300  # in each round
    most_terms: int = 300
    rows_per_term: int = 3
    max_order: int | None = None


@dataclass(frozen=True, eq=False)
class ChosenTerms:
    """Sets of players with their effects, which fit values; ∅ comes first."""

    basis: Basis
    sets: Bool[Tensor, "terms players"]
    effects: Float[Tensor, " terms"]

    def predict(self, coalitions: Coalitions) -> Float[Tensor, " coalitions"]:
        """Return the values of coalitions."""
        return features_of(self.sets, coalitions, self.basis).double() @ self.effects


def grow_terms(
    coalitions: Coalitions,
    values: Float[Tensor, " coalitions"],
    basis: Basis,
    growth: Growth,
    stop: StopRule,
    prune: bool,
) -> ChosenTerms:
    """Search few sets whose effects give the values of coalitions.

    In every round the sets found so far, and all single players, are extended by one player. Sets on which the
    residuals depend most become candidates, of which forward selection chooses. ``prune`` removes those whose effect
    could be noise.
    """
    players = coalitions.shape[1]
    singles = torch.eye(players, dtype=torch.bool)
    pool = torch.cat([torch.zeros(1, players, dtype=torch.bool), singles])
    terms = _fit(coalitions, values, basis, pool)
    extended = singles
    rounds = growth.rounds
    if growth.max_order is not None:
        rounds = min(rounds, 1 + max(0, growth.max_order - 1))
    for _ in range(max(1, rounds)):
        residuals = values - terms.predict(coalitions)
        new = _best_extensions(extended, pool, residuals, coalitions, basis, growth)
        pool = torch.cat([pool, new])
        terms = _choose(coalitions, values, basis, pool, growth, stop, prune)
        if len(new) == 0:
            break
        strongest = terms.sets[terms.effects.abs().argsort(descending=True)[:_CHOSEN_SETS_EXTENDED]]
        extended = torch.cat([singles, strongest, new[:_NEW_SETS_EXTENDED]]).unique(dim=0)
        extended = extended[extended.any(1)]
        if len(pool) > _LARGEST_POOL:
            kept = torch.cat([singles, terms.sets, new]).unique(dim=0)
            pool = torch.cat([pool[:1], kept[kept.any(1)]])
    return terms


def _best_extensions(
    extended: Bool[Tensor, "extended players"],
    pool: Bool[Tensor, "pool players"],
    residuals: Float[Tensor, " coalitions"],
    coalitions: Coalitions,
    basis: Basis,
    growth: Growth,
) -> Bool[Tensor, "new players"]:
    """Return the sets with one player more on which the residuals depend most, the best first, without known ones."""
    if growth.max_order is not None:
        extended = extended[extended.sum(1) < growth.max_order]
    if len(extended) == 0:
        return pool[:0]
    scores = extension_scores(extended, residuals, coalitions, basis)
    best = scores.flatten().topk(min(_LOOKED_AT * growth.new_sets, scores.numel()))
    places = best.indices[best.values > 0]
    candidates = extended[places // scores.shape[1]].clone()
    candidates[torch.arange(len(places)), places % scores.shape[1]] = True
    known = {_key(row) for row in pool}
    new = []
    for row in candidates:
        key = _key(row)
        if key not in known:
            known.add(key)
            new.append(row)
        if len(new) == growth.new_sets:
            break
    return torch.stack(new) if new else pool[:0]


def _key(members: Bool[Tensor, " players"]) -> bytes:
    """Return a key that identifies a set."""
    return members.numpy().tobytes()


def _choose(
    coalitions: Coalitions,
    values: Float[Tensor, " coalitions"],
    basis: Basis,
    pool: Bool[Tensor, "pool players"],
    growth: Growth,
    stop: StopRule,
    prune: bool,
) -> ChosenTerms:
    """Choose sets of the pool by forward selection, and fit their effects."""
    features = features_of(pool, coalitions, basis)
    most = min(growth.most_terms, max(2, len(values) // growth.rows_per_term))
    path = forward_path(features, values, most)
    chosen = path.chosen[: stop(path, len(values), len(pool))]
    if len(chosen) == 0:
        chosen = torch.zeros(1, dtype=torch.long)
    if prune:
        chosen = _pruned(features, values, chosen, len(pool))
    return _fit(coalitions, values, basis, pool[chosen])


def _fit(
    coalitions: Coalitions, values: Float[Tensor, " coalitions"], basis: Basis, sets: Bool[Tensor, "terms players"]
) -> ChosenTerms:
    """Fit the effects of given sets."""
    fit = least_squares(features_of(sets, coalitions, basis), values)
    return ChosenTerms(basis, sets, fit.coefficients)


def _pruned(
    features: Float[Tensor, "rows features"],
    values: Float[Tensor, " rows"],
    chosen: Int[Tensor, " chosen"],
    candidates: int,
) -> Int[Tensor, " kept"]:
    """Remove features whose coefficients could be the largest of as many that are only noise; never the first."""
    threshold = math.sqrt(2 * math.log(max(2, candidates)))
    while True:
        chosen_features = features[:, chosen]
        fit = least_squares(chosen_features, values)
        freedom = max(1, len(values) - len(chosen))
        residuals = values - chosen_features.double() @ fit.coefficients
        variance = float(residuals.square().sum()) / freedom + _ROUNDING * float(values.square().mean())
        deviations = (fit.inverse.diagonal() * variance).clamp_min(1e-300).sqrt()
        ratios = fit.coefficients.abs() / deviations
        ratios[0] = math.inf
        weak = ratios < threshold
        if not bool(weak.any()):
            return chosen
        # The weakest third goes at a time, because the others change with it.
        gone = torch.where(weak, ratios, math.inf).argsort()[: max(1, int(weak.sum()) // 3)]
        stays = torch.ones(len(chosen), dtype=torch.bool)
        stays[gone] = False
        chosen = chosen[stays]


def stop_by_information(path: Path, rows: int, candidates: int) -> int:
    """Return how many features to keep: each must explain more than the best of as many that are only noise."""
    counts = torch.arange(1, len(path.chosen) + 1, dtype=torch.float64)
    price = math.log(rows) / 2 + 1.4 * math.log(max(2, candidates))
    squares = path.residual_squares.clamp_min(_ROUNDING * float(path.residual_squares[0]) + _TINY)
    return int((rows * squares.log() + counts * price).argmin()) + 1


def stop_at_share(share: float) -> StopRule:
    """Return the rule that keeps features until what they leave is at most this share of the values' variation."""

    def stop(path: Path, rows: int, candidates: int) -> int:
        enough = (path.residual_squares <= share * path.residual_squares[0]).nonzero()
        return int(enough[0]) + 1 if len(enough) else len(path.chosen)

    return stop
