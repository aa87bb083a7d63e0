"""Exact results from the leaves of a model's trees, for any number of players."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.absences.protocol import describe_absence
from absentia.attributions import Attribution, OrderAttribution
from absentia.errors import wrong
from absentia.evaluation.leaf_values import LeafValues
from absentia.games import Game, MaskedModel, readout_of
from absentia.solvers.exact import harsanyi
from absentia.terms import Terms
from absentia.text import count_of

if TYPE_CHECKING:
    from absentia.trees.masked_trees import LeafWeights, MaskedTrees, SampleTerms

# From the size of a subset, the size of a set that contains it, and the order, to the share of the effect.
Weight: TypeAlias = Callable[[int, int, int], Fraction | float]

# The leaves of a sample are expanded to at most this many terms, before equal sets are joined: some seconds.
MOST_TERMS = 2.0**25
# The sets of all samples take at most this many bytes.
MOST_BYTES = 2.0**30
# Up to this many players, all coalitions are evaluated where expanding would take too long.
_MOST_ENUMERATED = 16


@dataclass(frozen=True, eq=False)
class LeafSums:
    """A game whose values are sums over the leaves of a model's trees."""

    game: MaskedModel
    trees: MaskedTrees
    weights: LeafWeights

    @property
    def note(self) -> str:
        """How values are computed, for records."""
        trees = count_of(len(self.trees.ensemble.roots), "tree")
        note = f"Values are sums over the leaves of {trees}: exact, without running the model."
        if importlib.util.find_spec("numba") is None:
            note += " Install absentia[trees] to make that some hundred times quicker."
        return note

    def ends(self) -> tuple[Float[Tensor, " samples"], Float[Tensor, " samples"]]:
        """Return v(∅) and v(N) of each sample."""
        empty, full = self.trees.ends(self.weights)
        return torch.from_numpy(empty), torch.from_numpy(full)

    def terms(
        self,
        most_terms: float = MOST_TERMS,
        enumerate_up_to: int = _MOST_ENUMERATED,
        most_bytes: float = MOST_BYTES,
    ) -> Terms:
        """Return the interactions: all of them, or those of the orders that have few enough terms.

        Few players are enumerated instead, from the leaves too.
        """
        # Imported here, because numba takes a second.
        from absentia.trees.affordable_terms import TermBudget, expand_affordable, order_by_time

        game = self.game
        budget = TermBudget(most_terms, most_bytes)
        order = order_by_time(self.trees, budget)
        if order < self.trees.most_on_a_path and len(game.names) <= enumerate_up_to:
            return harsanyi(game)
        affordable = expand_affordable(self.trees, self.weights, budget, order)
        notes: tuple[str, ...] = ()
        if affordable.highest_order is not None:
            note = (
                f"Interactions of more than {affordable.highest_order} players are left out: leaves have about "
                f"{affordable.left_out:.2g} such terms. Shapley values and all listed interactions are exact."
            )
            if affordable.ends_by_memory and game.samples > 1:
                note += " Fewer samples at a time may have more."
            notes = (note,)
        terms = self._listed(affordable.by_sample)
        return replace(terms, highest_order=affordable.highest_order, notes=notes)

    def interaction_index(self, weight: Weight, order: int, name: str) -> Terms:
        """Return an interaction index, given the share of the effect of a set that each of its subsets gets."""
        samples = range(self.game.samples)
        terms = self._listed([self.trees.indices(self.weights, sample, weight, order) for sample in samples])
        empty, _ = self.ends()
        return replace(terms, basis=name, order=order, base_values=empty)

    def _listed(self, by_sample: Sequence[SampleTerms]) -> Terms:
        """Return the sets of all samples as terms."""
        game = self.game
        counts = torch.tensor([len(terms.effects) for terms in by_sample])
        return Terms.listed(
            torch.from_numpy(np.concatenate([terms.members for terms in by_sample])),
            torch.from_numpy(np.concatenate([terms.effects for terms in by_sample])),
            game.names,
            owners=torch.arange(game.samples).repeat_interleave(counts),
            samples=game.samples,
            noise=torch.tensor([terms.rounding for terms in by_sample], dtype=torch.float64),
            readout=readout_of(game),
            absence=describe_absence(game.absence),
            rows_seen=game.rows_of_setup,
        )

    def shapley(self) -> Attribution:
        """Return Shapley values."""
        return self._attribution(self.trees.shapley(self.weights), "Shapley values", "Shapley")

    def banzhaf(self) -> Attribution:
        """Return Banzhaf values."""
        return self._attribution(self.trees.banzhaf(self.weights), "Banzhaf values", "Banzhaf")

    def order_shapley(self) -> OrderAttribution:
        """Return order-wise Shapley values."""
        return OrderAttribution(
            torch.from_numpy(self.trees.order_shapley(self.weights)),
            evaluations=0,
            names=self.game.names,
            kind="order-wise Shapley values",
            readout=readout_of(self.game),
            orders=tuple(range(len(self.game.names))),
            rows_seen=self.game.rows_of_setup,
        )

    def _attribution(self, values: np.ndarray, kind: str, index: str) -> Attribution:
        """Return exact values as a result."""
        numbers = torch.from_numpy(values)
        return Attribution(
            numbers,
            errors=torch.zeros_like(numbers),
            evaluations=0,
            names=self.game.names,
            kind=kind,
            readout=readout_of(self.game),
            index=index,
            rows_seen=self.game.rows_of_setup,
        )


def sums_over_leaves(game: Game) -> LeafSums | None:
    """Return `LeafSums` if the values of a game are sums over leaves, otherwise None."""
    if not isinstance(game, MaskedModel):
        return None
    values = game.leaf_values
    if not isinstance(values, LeafValues) or values.weights is None:
        return None
    return LeafSums(game, values.trees, values.weights)


def terms_of_leaves(game: Game) -> Terms:
    """Return the interactions of a game whose values are sums over leaves."""
    leaves = sums_over_leaves(game)
    if leaves is None:
        raise wrong("game", "be a model of trees whose value is a sum over leaves for solver='leaves'", repr(game))
    return leaves.terms()
