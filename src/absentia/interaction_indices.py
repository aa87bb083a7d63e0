"""Interaction indices: numbers for sets of up to k players, as weighted sums of the effects of their supersets.

Every index here is I(S) = Σ_{T⊇S} w(|S|, |T|, k) · U(T), with U the Harsanyi effects. These are sums of Walsh terms,
so an index of Walsh terms is such a sum as well, with other weights. An index is its weight w, the
share of the effect of a set of ``size`` players that goes to each of its subsets of ``subset_size`` players. Weights
are exact fractions, because their binomial coefficients are too large for floating-point numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.errors import wrong
from absentia.subset_sums import ListedSets, rows_of_subsets, subset_pairs, table_subset_sums
from absentia.terms import Terms
from absentia.terms_in_words import BASES_OF_VALUES, WALSH

# From the size of a subset, the size of a set that contains it, and the order, to the share of the effect.
Weight: TypeAlias = Callable[[int, int, int], Fraction | float]


@dataclass(frozen=True)
class InteractionIndex:
    """An index of sets of players, which is defined by its weight.

    Examples
    --------
    >>> everything = InteractionIndex(lambda subset_size, size, order: 1)
    >>> everything.of_terms(ab.harsanyi(ab.ValueTable([0.0, 1.0, 2.0, 5.0])), 1, "Co-Moebius").effects
    tensor([5., 3., 4.], dtype=torch.float64)
    """

    weight: Weight

    def of_terms(self, terms: Terms, order: int, name: str) -> Terms:
        """Compute the index of all sets of up to ``order`` players, or of the subsets of listed sets."""
        check_adds_up(terms)
        if terms.owners is None:
            indexed = self._of_table(terms, order)
        else:
            indexed = self._of_listed(terms, terms.owners, order)
        return replace(indexed, basis=name, order=order)

    def _of_table(self, terms: Terms, order: int) -> Terms:
        """Compute the index from a full table."""
        weights = self._weights(order, terms.orders, terms)
        sets, effects = table_subset_sums(terms.effects, weights)
        errors = None
        if terms.errors is not None:
            _, bounds = table_subset_sums(terms.errors, weights.abs())
            errors = bounds.flatten()
        every_sample = torch.arange(terms.samples, device=effects.device)
        return replace(
            terms,
            effects=effects.flatten(),
            members=sets.repeat(terms.samples, 1),
            owners=every_sample.repeat_interleave(len(sets)),
            errors=errors,
            base_values=terms.effects[:, 0].detach(),
        )

    def _of_listed(self, terms: Terms, owners: Int[Tensor, " terms"], order: int) -> Terms:
        """Compute the index of the subsets of listed sets, some samples at a time."""
        players = len(terms.names)
        sets = ListedSets.of_rows(terms.sets, owners)
        weights = self._weights(order, sets.sizes, terms)
        blocks = []
        effects = []
        bounds = []
        for pairs in subset_pairs(sets, terms.samples, players, order):
            blocks.append(pairs.subsets)
            effects.append(pairs.sums(terms.effects, sets.sizes, weights))
            if terms.errors is not None:
                # Errors may depend on each other in any way: that of a sum is at most the sum of the errors.
                bounds.append(pairs.sums(terms.errors, sets.sizes, weights.abs()))
        nobody = torch.zeros(1, players, dtype=torch.bool, device=sets.sizes.device)
        return replace(
            terms,
            effects=torch.cat(effects),
            members=rows_of_subsets(blocks, players),
            owners=torch.cat([block.owners for block in blocks]),
            errors=torch.cat(bounds) if bounds else None,
            base_values=terms.predict(nobody)[:, 0],
        )

    def _weights(self, order: int, sizes: Int[Tensor, " terms"], terms: Terms) -> Float[Tensor, "subset_sizes sizes"]:
        """Return the weights by size of the subset and by size of the set, for the sizes that occur."""
        weight_of = self._weight_of_walsh_term if terms.basis == WALSH else self.weight
        weights = torch.zeros(order + 1, len(terms.names) + 1, dtype=torch.float64)
        for size in sizes.unique().tolist():
            for subset_size in range(min(order, size) + 1):
                weights[subset_size, size] = float(weight_of(subset_size, size, order))
        return weights.to(terms.effects)

    def _weight_of_walsh_term(self, subset_size: int, size: int, order: int) -> Fraction:
        """Return the weight of a Walsh term: that of the Harsanyi effects over which it spreads."""
        weight = Fraction(0)
        for between in range(subset_size, size + 1):
            sets_between = math.comb(size - subset_size, between - subset_size)
            share = 2**between * (-1) ** (size - between)
            weight += sets_between * share * Fraction(self.weight(subset_size, between, order))
        return weight


def check_adds_up(terms: Terms) -> None:
    """Raise an error if terms hold an index already, or not all effects."""
    if terms.basis not in BASES_OF_VALUES:
        must = f"hold {' or '.join(BASES_OF_VALUES)} effects, such as those of ab.interactions"
        raise wrong("terms", must, f"effects of {terms.basis}")
    if terms.highest_order is not None:
        got = f"those of at most {terms.highest_order} players, because the others are too many"
        raise wrong("terms", "hold all sets that have an effect for an index", got)


def sii(subset_size: int, size: int, order: int) -> Fraction:
    """Return the weight of the Shapley interaction index [grabisch1999interaction]."""
    return Fraction(1, size - subset_size + 1)


def bii(subset_size: int, size: int, order: int) -> Fraction:
    """Return the weight of the Banzhaf interaction index [grabisch1999interaction]."""
    return Fraction(1, 2 ** (size - subset_size))


def k_sii(subset_size: int, size: int, order: int) -> Fraction:
    """Return the weight of the k-SII: indices of larger sets are moved to their subsets [bordt2023shapley]."""
    if subset_size == 0:
        return _own_effect(subset_size, size)
    others = size - subset_size
    weight = Fraction(0)
    for added in range(min(order, size) - subset_size + 1):
        sets_between = math.comb(others, added)
        weight += bernoulli_number(added) * sets_between * sii(subset_size + added, size, order)
    return weight


def stii(subset_size: int, size: int, order: int) -> Fraction:
    """Return the weight of the Shapley–Taylor index [sundararajan2020taylor]."""
    if subset_size < order:
        return _own_effect(subset_size, size)
    return Fraction(1, math.comb(size, order))


def fsii(subset_size: int, size: int, order: int) -> Fraction:
    """Return the weight of the faithful Shapley interaction index [tsai2023faith]."""
    if size <= order:
        return _own_effect(subset_size, size)
    sign = (-1) ** (order - subset_size)
    factor = Fraction(subset_size, order + subset_size) * math.comb(order, subset_size)
    return sign * factor * Fraction(math.comb(size - 1, order), math.comb(size + order - 1, order + subset_size))


def fbii(subset_size: int, size: int, order: int) -> Fraction:
    """Return the weight of the faithful Banzhaf interaction index [tsai2023faith]."""
    if size <= order:
        return _own_effect(subset_size, size)
    sign = (-1) ** (order - subset_size)
    return sign * Fraction(math.comb(size - subset_size - 1, order - subset_size), 2 ** (size - subset_size))


def _own_effect(subset_size: int, size: int) -> Fraction:
    """Return 1 if the subset is the set itself, else 0: the weight of Harsanyi effects."""
    return Fraction(int(subset_size == size))


@cache
def bernoulli_number(number: int) -> Fraction:
    """Return a Bernoulli number, with −1/2 as the first after 1."""
    if number == 0:
        return Fraction(1)
    return -sum(
        (
            math.comb(number, earlier) * bernoulli_number(earlier) / (number - earlier + 1)
            for earlier in range(number)
        ),
        Fraction(0),
    )
