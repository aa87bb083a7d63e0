"""Exchanges of sets by information: sets that were grown one by one are replaced by those that explain the values.

Growth takes sets in the order in which they help, so a part of a set often comes before the set itself, and stays.
Here sets are dropped, exchanged for their neighbours (the same set without a player, with one more, or with another
one) and added, as long as that gains information. A set must explain more than the best of all sets of its size would
explain of noise: with n players and N values, a set of k players costs log N + 2 log C(n, k) [chen2008extended].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.coalitions import Coalitions
from absentia.term_search.features import Rows
from absentia.term_search.growth import ChosenTerms, Growth

# Every set is compared with this many of its neighbours in every round.
_NEIGHBOURS = 12
# And with this many to see whether the values tell it from them.
_COMPARED = 30
# This many of the best extensions are candidates for a further set.
_CANDIDATES = 120
_ROUNDS = 6
# A gain of less information than this is a rounding error.
_LEAST_GAIN = 1e-6
# A feature of which less than this share is left beside the others adds nothing.
_LEAST_LEFT = 1e-6
# Squares below this share of the values' are rounding errors.
_ROUNDING = 1e-12
_TINY = 1e-300
_RIDGE = 1e-10
# Logarithms of odds beyond this are as good as infinite.
_MOST_LOG_ODDS = 50.0


class _Fit(NamedTuple):
    """Sets with their least-squares fit."""

    sets: Bool[Tensor, "terms players"]
    features: Float[Tensor, "rows terms"]
    products: Float[Tensor, "terms terms"]  # of the features
    inverse: Float[Tensor, "terms terms"]
    effects: Float[Tensor, " terms"]
    residuals: Float[Tensor, " rows"]
    left: float  # the sum of their squares


class SetExchange:
    """Sets of players that explain values, ∅ first, which are improved step by step."""

    def __init__(
        self, coalitions: Coalitions, values: Float[Tensor, " rows"], start: ChosenTerms, max_order: int | None = None
    ) -> None:
        self.rows = Rows(coalitions, start.basis)
        self.values = values
        self.basis = start.basis
        self.max_order = max_order
        self.rounding = _ROUNDING * float(values @ values) + _TINY
        features = self.rows.features_of(start.sets).double()
        self.fit = self._fitted(start.sets, features, features.T @ features)

    @property
    def terms(self) -> ChosenTerms:
        """The sets with their effects."""
        return ChosenTerms(self.basis, self.fit.sets, self.fit.effects)

    def improve(self, most_terms: int) -> None:
        """Drop, exchange and add sets until nothing gains information."""
        for _ in range(_ROUNDS):
            self._drop()
            exchanged = self._exchange_all()
            self._drop()
            added = self._add(most_terms)
            if not (exchanged or added):
                break
        self._drop()

    def covariance(self) -> Float[Tensor, "terms terms"]:
        """Return the covariance of the errors of the effects, which counts that other sets may explain the values.

        A set's probability is compared with those of its neighbours in its place, and of nothing in its place. If it
        is not the one that the values come from, its effect is 0.
        """
        fit = self.fit
        freedom = max(1, len(self.values) - len(fit.sets))
        covariance = (fit.left + self.rounding) / freedom * fit.inverse
        in_doubt = torch.zeros(len(fit.sets), dtype=torch.float64)
        alone = self._losses()
        for term in range(1, len(fit.sets)):
            against = -alone[term : term + 1]
            neighbours = self._neighbours(term, _COMPARED)
            if len(neighbours):
                against = torch.cat([against, self._gains(term, neighbours)])
            odds = (against / 2).clamp_max(_MOST_LOG_ODDS).exp().sum()
            in_doubt[term] = fit.effects[term].square() * odds / (1 + odds)
        return covariance + in_doubt.diag()

    def effects_of(self, values: Float[Tensor, "others rows"]) -> Float[Tensor, "others terms"]:
        """Return the effects that other values of the same coalitions give."""
        return (values @ self.fit.features) @ self.fit.inverse

    def _fitted(
        self,
        sets: Bool[Tensor, "terms players"],
        features: Float[Tensor, "rows terms"],
        products: Float[Tensor, "terms terms"],
    ) -> _Fit:
        """Fit the values by sets."""
        ridge = _RIDGE * products.diagonal().mean()
        inverse = torch.linalg.inv(products + ridge * torch.eye(len(products), dtype=products.dtype))
        effects = inverse @ (features.T @ self.values)
        residuals = self.values - features @ effects
        return _Fit(sets, features, products, inverse, effects, residuals, float(residuals @ residuals))

    def _without(self, term: int) -> _Fit:
        """Fit the values by the sets but one."""
        fit = self.fit
        stays = torch.arange(len(fit.sets)) != term
        return self._fitted(fit.sets[stays], fit.features[:, stays], fit.products[stays][:, stays])

    def _with(self, added: Bool[Tensor, "1 players"]) -> _Fit:
        """Fit the values by the sets and one more."""
        fit = self.fit
        feature = self.rows.features_of(added).double()
        return self._with_feature(
            torch.cat([fit.sets, added]), torch.cat([fit.features, feature], dim=1), len(fit.sets)
        )

    def _with_instead(self, term: int, neighbour: Bool[Tensor, "1 players"]) -> _Fit:
        """Fit the values by the sets with another one in the place of one of them."""
        sets = self.fit.sets.clone()
        sets[term] = neighbour[0]
        features = self.fit.features.clone()
        features[:, term] = self.rows.features_of(neighbour)[:, 0].double()
        return self._with_feature(sets, features, term)

    def _with_feature(
        self, sets: Bool[Tensor, "terms players"], features: Float[Tensor, "rows terms"], place: int
    ) -> _Fit:
        """Fit the values by sets of which the one at a place is new."""
        known = len(self.fit.sets)
        products = features.new_zeros(len(sets), len(sets))
        products[:known, :known] = self.fit.products
        products[place] = features[:, place] @ features
        products[:, place] = products[place]
        return self._fitted(sets, features, products)

    def _prices(self, sets: Bool[Tensor, "sets players"]) -> Float[Tensor, " sets"]:
        """Return the information that each set costs."""
        players = sets.shape[1]
        sizes = sets.sum(1).double()
        log_counts = math.lgamma(players + 1) - torch.lgamma(sizes + 1) - torch.lgamma(players - sizes + 1)
        return math.log(len(self.values)) + 2 * log_counts

    def _information(self, before: Tensor, after: Tensor) -> Tensor:
        """Return the information that a lower sum of squares gains; fewer values are free if there are many sets."""
        freedom = max(1, len(self.values) - len(self.fit.sets) - 1)
        return freedom * ((before + self.rounding) / (after.clamp_min(0) + self.rounding)).log()

    def _losses(self) -> Float[Tensor, " terms"]:
        """Return the information that is lost without each set; negative if its price exceeds what it explains."""
        fit = self.fit
        left = torch.tensor(fit.left, dtype=torch.float64)
        without = left + fit.effects.square() / fit.inverse.diagonal()
        return self._information(without, left) - self._prices(fit.sets)

    def _drop(self) -> None:
        """Drop sets that explain too little, the worst first; never ∅."""
        while len(self.fit.sets) > 1:
            losses = self._losses()
            losses[0] = math.inf
            worst = int(losses.argmin())
            if float(losses[worst]) >= 0:
                return
            self.fit = self._without(worst)

    def _exchange_all(self) -> bool:
        """Exchange each set for its best neighbour if that gains information, the least important sets first."""
        changed = False
        for term in self._losses().argsort().tolist():
            if not bool(self.fit.sets[term].any()):
                continue
            neighbours = self._neighbours(term, _NEIGHBOURS)
            if len(neighbours) == 0:
                continue
            gains = self._gains(term, neighbours)
            best = int(gains.argmax())
            if float(gains[best]) > _LEAST_GAIN:
                self.fit = self._with_instead(term, neighbours[best : best + 1])
                changed = True
        return changed

    def _add(self, most_terms: int) -> bool:
        """Add sets that explain more than they cost, the best first."""
        changed = False
        while len(self.fit.sets) < most_terms:
            candidates = self._extensions()
            if len(candidates) == 0:
                break
            left = torch.tensor(self.fit.left, dtype=torch.float64)
            after = left - self._explained(candidates, self.fit.residuals, None)
            gains = self._information(left, after) - self._prices(candidates)
            best = int(gains.argmax())
            if float(gains[best]) <= 0:
                break
            self.fit = self._with(candidates[best : best + 1])
            changed = True
        return changed

    def _apart(self, term: int) -> Float[Tensor, " rows"]:
        """Return what the others leave of a set's feature."""
        fit = self.fit
        return fit.features @ (fit.inverse[:, term] / fit.inverse[term, term])

    def _neighbours(self, term: int, most: int) -> Bool[Tensor, "neighbours players"]:
        """Return the best sets that differ from a set by a player more, a player less, or another player."""
        own = self.fit.sets[term]
        smaller = _without_each(own)
        bases = torch.cat([own[None], smaller])
        residuals = self.fit.residuals + self.fit.effects[term] * self._apart(term)
        best = self._best_extensions(bases, residuals, most)
        return self._unknown(torch.cat([best, smaller[smaller.any(1)]]))

    def _gains(self, term: int, candidates: Bool[Tensor, "sets players"]) -> Float[Tensor, " sets"]:
        """Return the information gained if a set is exchanged for each candidate."""
        fit = self.fit
        without = torch.tensor(fit.left, dtype=torch.float64) + fit.effects[term].square() / fit.inverse[term, term]
        apart = self._apart(term)
        explained = self._explained(candidates, fit.residuals + fit.effects[term] * apart, apart)
        left = torch.tensor(fit.left, dtype=torch.float64)
        price = self._prices(fit.sets[term : term + 1]) - self._prices(candidates)
        return self._information(left, without - explained) + price

    def _explained(
        self,
        candidates: Bool[Tensor, "sets players"],
        residuals: Float[Tensor, " rows"],
        freed: Float[Tensor, " rows"] | None,
    ) -> Float[Tensor, " sets"]:
        """Return how far each candidate lowers the sum of squares, beside all sets but that which is freed."""
        features = self.rows.features_of(candidates).double()
        along = self.fit.features.T @ features
        squares = features.square().sum(0)
        apart = squares - (along * (self.fit.inverse @ along)).sum(0)
        if freed is not None:
            apart += (features.T @ freed).square() / freed.square().sum().clamp_min(_TINY)
        explained = (features.T @ residuals).square() / apart.clamp_min(_TINY)
        return torch.where(apart > _LEAST_LEFT * squares, explained, 0.0)

    def _extensions(self) -> Bool[Tensor, "sets players"]:
        """Return the best sets that extend ∅, a player, a chosen set or one without a player."""
        sets = self.fit.sets
        players = sets.shape[1]
        bases = [torch.zeros(1, players, dtype=torch.bool), torch.eye(players, dtype=torch.bool), sets]
        bases += [_without_each(row) for row in sets]
        best = self._best_extensions(torch.cat(bases).unique(dim=0), self.fit.residuals, _CANDIDATES)
        return self._unknown(best)

    def _best_extensions(
        self, bases: Bool[Tensor, "bases players"], residuals: Float[Tensor, " rows"], most: int
    ) -> Bool[Tensor, "sets players"]:
        """Return the sets with one player more on which residuals depend most."""
        if self.max_order is not None:
            bases = bases[bases.sum(1) < self.max_order]
        if len(bases) == 0:
            return bases
        scores = self.rows.extension_scores(bases, residuals)
        best = scores.flatten().topk(min(most, scores.numel()))
        places = best.indices[best.values > 0]
        extended = bases[places // scores.shape[1]].clone()
        extended[torch.arange(len(places)), places % scores.shape[1]] = True
        return extended

    def _unknown(self, sets: Bool[Tensor, "sets players"]) -> Bool[Tensor, "unknown players"]:
        """Return distinct sets that are not chosen."""
        distinct = sets.unique(dim=0)
        chosen = {row.numpy().tobytes() for row in self.fit.sets}
        is_new = [row.numpy().tobytes() not in chosen for row in distinct]
        return distinct[torch.tensor(is_new, dtype=torch.bool)]


def _without_each(own: Bool[Tensor, " players"]) -> Bool[Tensor, "smaller players"]:
    """Return a set without each of its players in turn."""
    members = own.nonzero()[:, 0]
    smaller = own.repeat(len(members), 1)
    smaller[torch.arange(len(members)), members] = False
    return smaller


def exchanged(
    coalitions: Coalitions, values: Float[Tensor, " rows"], start: ChosenTerms, growth: Growth
) -> SetExchange:
    """Return sets that explain values, improved from those of a growth."""
    exchange = SetExchange(coalitions, values, start, growth.max_order)
    exchange.improve(min(growth.most_terms, max(2, len(values) // growth.rows_per_term)))
    return exchange
