"""Terms that a method found, in its own basis, and what they say in the Harsanyi basis.

In the Harsanyi basis, a term of a set T is 1 where all of T is present, and 0 elsewhere. In the Walsh basis, it is
the product of sᵢ over T, where sᵢ is 1 if i is present and −1 if not. Sums of terms are converted exactly: an effect
U(A) of the Harsanyi basis adds U(A) / 2^|A| to the Walsh term of each subset of A.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch

import absentia as ab

Players: TypeAlias = tuple[int, ...]
Effects: TypeAlias = dict[Players, float]

MOST_MEMBERS = 12  # sets of more players have too many subsets
ROWS_AT_ONCE = 500


class Found(Protocol):
    """What a method found about one sample."""

    def predict(self, coalitions: np.ndarray, strongest: int | None = None) -> np.ndarray:
        """Return the values of coalitions, from the constant and the strongest terms or from all of them."""

    @property
    def terms(self) -> int:
        """The number of terms besides the constant."""

    def effects(self) -> Effects:
        """Return the effects in the Harsanyi basis, besides that of ∅."""


@dataclass(frozen=True, eq=False)
class OwnTerms:
    """Terms as absentia returns them, of one sample."""

    found: ab.Terms

    def predict(self, coalitions: np.ndarray, strongest: int | None = None) -> np.ndarray:
        """Return the values of coalitions."""
        terms = self.found if strongest is None else self.found.keep(strongest)
        return terms.predict(torch.from_numpy(coalitions))[0].double().numpy()

    @property
    def terms(self) -> int:
        """The number of terms besides the constant."""
        return int(self.found.sets.any(1).sum())

    def effects(self) -> Effects:
        """Return the effects in the Harsanyi basis.

        Those of another basis come from the predictions, which no convention of signs can change: U is the
        alternating sum of the values of a set's subsets, and is 0 for a set that is in no term.
        """
        sets = [members_of(row) for row in self.found.sets.numpy()]
        if self.found.basis == "Harsanyi":
            effects = dict(zip(sets, self.found.effects.flatten().tolist(), strict=True))
        else:
            closure = subsets_of_all(sets)
            values = dict(zip(closure, self.predict(rows_of(closure, len(self.found.names))).tolist(), strict=True))
            effects = alternating_sums(closure, values)
        effects.pop((), None)
        return effects


@dataclass(frozen=True, eq=False)
class WalshTerms:
    """Terms that a method found in the Walsh basis but hands over as effects in the Harsanyi basis."""

    players: int
    by_set: Mapping[Players, float]  # effects, ∅ included

    @cached_property
    def walsh(self) -> Effects:
        """The terms of the Walsh basis."""
        sums: dict[Players, float] = defaultdict(float)
        for members, effect in self.by_set.items():
            for subset in subsets_of(members):
                sums[subset] += effect / 2 ** len(members)
        # Terms that are 0 but for rounding are none: a conversion to effects and back leaves them.
        largest = max((abs(value) for value in sums.values()), default=0.0)
        return {members: value for members, value in sums.items() if abs(value) > 1e-9 * largest}

    def predict(self, coalitions: np.ndarray, strongest: int | None = None) -> np.ndarray:
        """Return the values of coalitions."""
        constant = self.walsh.get((), 0.0)
        others = sorted((members for members in self.walsh if members), key=lambda one: -abs(self.walsh[one]))
        kept = others[:strongest]
        coefficients = np.array([self.walsh[members] for members in kept])
        sets = rows_of(kept, self.players).astype(np.float32)
        values = [
            (1 - 2 * (((~rows).astype(np.float32) @ sets.T) % 2)) @ coefficients
            for rows in np.array_split(coalitions, -(-len(coalitions) // ROWS_AT_ONCE))
        ]
        return constant + np.concatenate(values)

    @property
    def terms(self) -> int:
        """The number of terms besides the constant."""
        return sum(bool(members) for members in self.walsh)

    def effects(self) -> Effects:
        """Return the effects in the Harsanyi basis."""
        return {members: effect for members, effect in self.by_set.items() if members}


@dataclass(frozen=True, eq=False)
class HarsanyiTerms:
    """Terms of the Harsanyi basis, in which a method found them."""

    terms_of_all: ab.Terms

    @classmethod
    def listed(cls, by_set: Mapping[Players, float], players: int) -> HarsanyiTerms:
        """Make terms from sets and their effects, ∅ included."""
        sets = torch.from_numpy(rows_of(by_set, players))
        return cls(ab.Terms.listed(sets, torch.tensor(list(by_set.values()), dtype=torch.float64)))

    def predict(self, coalitions: np.ndarray, strongest: int | None = None) -> np.ndarray:
        """Return the values of coalitions."""
        return OwnTerms(self.terms_of_all).predict(coalitions, strongest)

    @property
    def terms(self) -> int:
        """The number of terms besides the constant."""
        return OwnTerms(self.terms_of_all).terms

    def effects(self) -> Effects:
        """Return the effects."""
        return OwnTerms(self.terms_of_all).effects()


def trees_of_rows(booster: Any, players: int) -> HarsanyiTerms:
    """Return the effects of trees that were fitted to rows of 0 and 1, exactly from their leaves."""
    game = ab.MaskedModel(booster, np.ones((1, players)), absence=ab.Baseline(torch.zeros(players)))
    return HarsanyiTerms(ab.interactions(game))


def members_of(row: np.ndarray) -> Players:
    return tuple(int(player) for player in np.flatnonzero(row))


def rows_of(sets: Iterable[Players], players: int) -> np.ndarray:
    """Return sets as boolean rows."""
    listed = list(sets)
    rows = np.zeros((len(listed), players), dtype=bool)
    for number, members in enumerate(listed):
        rows[number, list(members)] = True
    return rows


def subsets_of(members: Players) -> Iterable[Players]:
    return itertools.chain.from_iterable(itertools.combinations(members, size) for size in range(len(members) + 1))


def subsets_of_all(sets: Iterable[Players]) -> list[Players]:
    """Return all subsets of sets, the smaller ones first."""
    closure: set[Players] = {()}
    for members in sets:
        if len(members) > MOST_MEMBERS:
            raise RuntimeError(f"Sets must have at most {MOST_MEMBERS} players. Got {len(members)} instead.")
        closure.update(subsets_of(members))
    return sorted(closure, key=len)


def alternating_sums(closure: list[Players], values: Mapping[Players, float]) -> Effects:
    """Return U(A) = Σ_{B⊆A} (−1)^{|A|−|B|} v(B) for sets whose subsets all have values."""
    return {
        members: sum((-1) ** (len(members) - len(subset)) * values[subset] for subset in subsets_of(members))
        for members in closure
    }
