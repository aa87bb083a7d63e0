"""Exact results from the leaves of a model's trees, for any number of players."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    from absentia.trees.masked_trees import LeafWeights, MaskedTrees

# The leaves of a sample are expanded to at most this many terms, before equal sets are joined: some seconds.
MOST_TERMS = 2.0**25
# The sets of all samples take at most this many bytes, one for each set and player.
MOST_BYTES = 2.0**29
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

    def terms(self, most_terms: float = MOST_TERMS, enumerate_up_to: int = _MOST_ENUMERATED) -> Terms:
        """Return the interactions: all of them, or those of the orders that have few enough terms.

        Few players are enumerated instead, from the leaves too.
        """
        game = self.game
        from absentia.trees.joined_terms import TermBudget  # imported here, because numba takes a second

        budget = TermBudget(most_terms, MOST_BYTES / (game.samples * len(game.names)))
        by_sample = []
        for sample in range(game.samples):
            by_sample.append(self.trees.terms(self.weights, sample, budget))
            if by_sample[-1].left_out and len(game.names) <= enumerate_up_to:
                return harsanyi(game)
        highest_order = None
        notes: tuple[str, ...] = ()
        left_out = sum(terms.left_out for terms in by_sample)
        if left_out:
            highest_order = min(terms.highest_order for terms in by_sample)
            notes = (
                f"Interactions of more than {highest_order} players are left out: leaves have about {left_out:.2g} "
                "such terms. Shapley values and all listed interactions are exact.",
            )
            by_sample = [terms.up_to(highest_order) for terms in by_sample]
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
            highest_order=highest_order,
            notes=notes,
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
