"""Σ|U(S)| and values of pairs, followed while one side runs through the values that a search tries.

Each pair has an input on one side, and its owner's baseline on the other. What is known at the present baseline is
kept. So baselines that differ from it in one coordinate cost as much as the leaves that they change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.learning.leaf_source import LeafSource

if TYPE_CHECKING:
    from absentia.trees.level_strengths import KeptEffects
    from absentia.trees.levels import Levels

# Effects that take more bytes than this are computed again for each coordinate.
_MOST_KEPT_BYTES = 2**25


class FollowedStrengths:
    """Σ|U(S)| of pairs: baselines stand in for other inputs, or other inputs for baselines."""

    def __init__(
        self,
        source: LeafSource,
        baselines: Int[Tensor, "owners columns"],
        others: Int[Tensor, "rows columns"],
        owners: Int[Tensor, " rows"],
        samples: Int[Tensor, " rows"],
        *,
        baselines_are_present: bool,
    ) -> None:
        weights = source.weights
        self._trees = source.leaves.trees.played
        self._others = others.numpy()
        self._settings = (owners.numpy(), baselines_are_present, weights.weights, weights.kinds[samples.numpy()])
        self._kept = self._kept_if_small(self._effects(baselines.numpy()))

    def at(self, levels: Levels) -> Float[Tensor, "rows levels"]:
        """Return Σ|U(S)| at each level; the first is the present baseline."""
        from absentia.trees.level_strengths import scan_strengths

        effects = self._kept
        if effects is None:
            effects = self._effects(levels.codes[:, 0])
        return torch.from_numpy(scan_strengths(effects, self._trees, self._others, levels, *self._settings))

    def move(self, levels: Levels) -> None:
        """Take the second level as the present baseline; the first is the one before."""
        from absentia.trees.level_strengths import move_effects

        if self._kept is not None:
            moved = move_effects(self._kept, self._trees, self._others, levels, *self._settings)
            self._kept = self._kept_if_small(moved)

    def _effects(self, baselines: np.ndarray) -> KeptEffects:
        """Compute the effects at baselines, given as codes."""
        from absentia.trees.level_strengths import keep_effects

        return keep_effects(self._trees, self._others, np.ascontiguousarray(baselines), *self._settings)

    @staticmethod
    def _kept_if_small(effects: KeptEffects) -> KeptEffects | None:
        """Return effects unless they take too many bytes."""
        if effects.keys.nbytes + effects.effects.nbytes > _MOST_KEPT_BYTES:
            return None
        return effects


class FollowedValues:
    """Values of coalitions while baselines stand in for the absent players."""

    def __init__(
        self,
        source: LeafSource,
        baselines: Int[Tensor, "owners columns"],
        present: Int[Tensor, "rows columns"],
        owners: Int[Tensor, " rows"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
        samples: Int[Tensor, " rows"],
    ) -> None:
        from absentia.trees.coalition_values import bits_of

        weights = source.weights
        asked = coalitions.numpy()
        self._trees = source.leaves.trees.played
        self._present = present.numpy()
        self._owners = owners.numpy()
        self._bits = bits_of(asked if asked.ndim == 3 else asked[None])
        self._weights = (weights.weights[:, :, None], weights.kinds[samples.numpy()])
        self._values = source.values(present, baselines[owners], coalitions, samples)

    def at(self, levels: Levels) -> Float[Tensor, "rows levels coalitions"]:
        """Return the values at each level; the first is the present baseline."""
        from absentia.trees.coalition_values import scan_values

        first = self._values.numpy()
        values = scan_values(self._trees, self._present, levels, self._owners, self._bits, first, *self._weights)
        return torch.from_numpy(values)

    def move(self, levels: Levels) -> None:
        """Take the second level as the present baseline; the first is the one before."""
        self._values = self.at(levels)[:, 1].contiguous()


class FollowedEmptyValues:
    """Values with all players absent; rows that cannot differ are followed once."""

    def __init__(
        self,
        source: LeafSource,
        baselines: Int[Tensor, "owners columns"],
        present: Int[Tensor, "rows columns"],
        owners: Int[Tensor, " rows"],
        samples: Int[Tensor, " rows"],
    ) -> None:
        trees = source.leaves.trees
        weights = source.weights
        chosen = torch.arange(len(present))
        self._places = chosen
        if not (trees.player < 0).any():
            cases = owners.numpy() * len(weights.base) + weights.kinds[samples.numpy()]
            _, first, places = np.unique(cases, return_index=True, return_inverse=True)
            chosen = torch.from_numpy(first)
            self._places = torch.from_numpy(places)
        nobody = torch.zeros(1, trees.player_count, dtype=torch.bool)
        self._values = FollowedValues(source, baselines, present[chosen], owners[chosen], nobody, samples[chosen])

    def at(self, levels: Levels) -> Float[Tensor, "rows levels"]:
        """Return the values at each level; the first is the present baseline."""
        return self._values.at(levels)[self._places, :, 0]

    def move(self, levels: Levels) -> None:
        """Take the second level as the present baseline; the first is the one before."""
        self._values.move(levels)
