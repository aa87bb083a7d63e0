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
from functools import cache, partial
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.cube.set_functionals import SetWeights, noise_matters
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
        weight_of = self.weight
        if terms.basis == WALSH:
            weight_of = partial(_weight_of_walsh_term, self.weight)
        weights = torch.zeros(order + 1, len(terms.names) + 1, dtype=torch.float64)
        for size in sizes.unique().tolist():
            for subset_size in range(min(order, size) + 1):
                weights[subset_size, size] = float(weight_of(subset_size, size, order))
        return weights.to(terms.effects)

    def set_weights(self, subset_size: int, order: int, players: int, most_added: int) -> SetWeights:
        """Return the index of sets of a size as weights of Walsh terms with up to ``most_added`` more players.

        >>> InteractionIndex(sii).set_weights(1, order=2, players=3, most_added=2).of_terms
        tensor([[2.0000, 0.0000, 0.6667]], dtype=torch.float64)
        """
        largest = min(subset_size + most_added, players)
        of_terms = [
            float(_weight_of_walsh_term(self.weight, subset_size, size, order))
            for size in range(subset_size, largest + 1)
        ]
        matters = noise_matters(players, subset_size).tolist()
        of_contexts = [
            self._weight_of_context(subset_size, context, order, players) if has_noise else 0.0
            for context, has_noise in enumerate(matters)
        ]
        return SetWeights(
            torch.tensor([of_terms], dtype=torch.float64), torch.tensor([of_contexts], dtype=torch.float64)
        )

    def _weight_of_context(self, subset_size: int, context: int, order: int, players: int) -> float:
        """Return the weight of the joint difference of a set in each context of a size."""
        others = players - subset_size - context
        weight = Fraction(0)
        for added in range(others + 1):
            share = Fraction(self.weight(subset_size, subset_size + context + added, order))
            weight += (-1) ** added * math.comb(others, added) * share
        return float(weight)

    def is_own_effect(self, subset_size: int, order: int, players: int) -> bool:
        """Return whether the index of sets of a size is their own effect."""
        sizes = range(subset_size, players + 1)
        return all(self.weight(subset_size, size, order) == int(size == subset_size) for size in sizes)

    def is_efficient(self, order: int, players: int) -> bool:
        """Return whether the numbers of all sets but ∅ add up to v(N) − v(∅): every effect is shared out in full.

        >>> InteractionIndex(stii).is_efficient(2, 5), InteractionIndex(sii).is_efficient(2, 5)
        (True, False)
        """
        for size in range(1, players + 1):
            subset_sizes = range(1, min(order, size) + 1)
            shares = [
                math.comb(size, subset_size) * self.weight(subset_size, size, order) for subset_size in subset_sizes
            ]
            if sum(shares) != 1:
                return False
        return True


@cache
def _weight_of_walsh_term(weight_of: Weight, subset_size: int, size: int, order: int) -> Fraction:
    """Return the weight of a Walsh term: that of the Harsanyi effects over which it spreads."""
    weight = Fraction(0)
    for between in range(subset_size, size + 1):
        sets_between = math.comb(size - subset_size, between - subset_size)
        share = 2**between * (-1) ** (size - between)
        weight += sets_between * share * Fraction(weight_of(subset_size, between, order))
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
