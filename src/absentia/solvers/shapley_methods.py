"""The methods that estimate Shapley values: the coalitions that each draws, and what it makes of their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.data import seeded
from absentia.errors import wrong
from absentia.games import Game
from absentia.solvers.evaluated_pairs import evaluate_pairs
from absentia.solvers.paired_draws import MIN_COALITIONS_PER_PLAYER, PairedValues
from absentia.solvers.permutations import Walks, evaluate_walks, permutation_shapley
from absentia.solvers.process import ShapleyEstimate
from absentia.solvers.process_residuals import process_shapley_of_any
from absentia.solvers.regression import leverage_shapley


@runtime_checkable
class DrawnValues(Protocol):
    """Values of drawn coalitions."""

    @property
    def shares(self) -> Float[Tensor, " groups"]:
        """The share of each group of draws of a random absence."""

    @property
    def empty(self) -> Float[Tensor, " samples"]:
        """The values of ∅."""

    @property
    def full(self) -> Float[Tensor, " samples"]:
        """The values of all players together."""

    @property
    def coalitions_per_sample(self) -> int:
        """How many coalitions were evaluated for each sample."""


@runtime_checkable
class ShapleyMethod(Protocol):
    """A way to estimate Shapley values: which coalitions it draws, and what it makes of their values."""

    def least(self, players: int) -> int:
        """Return the fewest coalitions of a sample that it needs."""

    def draw(self, game: Game, coalitions: int, seed: int, earlier: Any) -> Any:
        """Return the values of up to this many coalitions of each sample, earlier ones included."""

    def estimate(self, drawn: Any, seed: int) -> ShapleyEstimate:
        """Estimate Shapley values from drawn values."""


@dataclass(frozen=True)
class OfPairs:
    """A method that draws coalitions of all sizes with their complements."""

    solve: Callable[[PairedValues, int], ShapleyEstimate]

    def least(self, players: int) -> int:
        """Return the fewest coalitions of a sample."""
        return MIN_COALITIONS_PER_PLAYER * players + 2

    def draw(self, game: Game, coalitions: int, seed: int, earlier: Any) -> PairedValues:
        """Draw pairs and evaluate them."""
        if not isinstance(earlier, PairedValues | None):
            raise _other_draws()
        return evaluate_pairs(game, (coalitions - 2) // 2, _generator(seed, earlier), earlier)

    def estimate(self, drawn: PairedValues, seed: int) -> ShapleyEstimate:
        """Estimate Shapley values; all coalitions together give them exactly."""
        if drawn.is_complete:
            return regression_shapley(drawn, seed)
        return self.solve(drawn, seed)


@dataclass(frozen=True)
class OfOrders:
    """A method that draws orders in which the players join."""

    antithetic: bool

    def least(self, players: int) -> int:
        """Return the fewest coalitions of a sample: those of four orders."""
        return 4 * (players - 1) + 2

    def draw(self, game: Game, coalitions: int, seed: int, earlier: Any) -> Walks:
        """Draw orders and evaluate the coalitions on their way."""
        if earlier is not None and not (isinstance(earlier, Walks) and earlier.antithetic == self.antithetic):
            raise _other_draws()
        orders = (coalitions - 2) // max(1, len(game.names) - 1)
        if self.antithetic:
            orders -= orders % 2
        return evaluate_walks(game, orders, self.antithetic, _generator(seed, earlier), earlier)

    def estimate(self, drawn: Walks, seed: int) -> ShapleyEstimate:
        """Average over the orders."""
        return permutation_shapley(drawn)


def regression_shapley(values: PairedValues, seed: int) -> ShapleyEstimate:
    """Estimate Shapley values by a weighted regression, for each group of draws as well; nothing is drawn for it."""
    regression = leverage_shapley(values)
    by_group = None
    if values.has_groups:
        groups = [values.of_group(group) for group in range(len(values.shares))]
        by_group = torch.stack([leverage_shapley(group).values for group in groups])
    return ShapleyEstimate(regression.values, regression.errors, by_group)


def _generator(seed: int, earlier: Any) -> torch.Generator:
    """Return the generator of a seed; further draws have a separate one."""
    if earlier is None:
        return seeded(seed)
    return seeded(seed, "after", earlier.coalitions_per_sample)


def _other_draws() -> Exception:
    """Return the error for earlier values that a method cannot use."""
    then = "Pass the method of the earlier result."
    return wrong("more", "hold coalitions that this method can use", "those of another method", then)


# The methods of `shapley` by name. Add one with `METHODS["name"] = OfPairs(function)`.
METHODS: dict[str, ShapleyMethod] = {
    "process": OfPairs(process_shapley_of_any),
    "leverage": OfPairs(regression_shapley),
    "antithetic": OfOrders(antithetic=True),
    "permutation": OfOrders(antithetic=False),
}
