"""Values for the default loss from the leaves of a model's trees.

Inputs are encoded as the codes of the trees' columns. Where the value is a sum over leaves, Σ|U(S)| is exact at any
number of players, and a whole column of candidates is valued at the cost of a few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.errors import AbsentiaError
from absentia.evaluation import Evaluator
from absentia.evaluation.leaf_values import LeafValues, NotFromLeaves, leaf_values
from absentia.learning.space import Baselines
from absentia.learning.value_sources import strength_of_tables
from absentia.readouts import Features
from absentia.trees.compiled import is_compiled

if TYPE_CHECKING:
    from absentia.trees.levels import Levels
    from absentia.trees.masked_trees import LeafWeights

# An exact Σ|U(S)| is taken to cost as much as this many rows, so that 128 samples are compared. With fewer of them,
# values would fit the samples and not the model.
_TABLE_ROWS = 2**9

# If the leaves of a sample have more sets than this on average, tables of a few players are valued instead.
_MOST_SETS = 2**17

# Sets are counted on this many samples.
_COUNTED_SAMPLES = 64


@dataclass(frozen=True, eq=False)
class LeafSource:
    """Values of a task's model from its leaves."""

    evaluator: Evaluator
    leaves: LeafValues
    sums_are_exact: bool
    table_rows: int = _TABLE_ROWS

    @property
    def tree_count(self) -> int:
        """The number of trees."""
        return self.leaves.tree_count

    @property
    def notes(self) -> tuple[str, ...]:
        """Say why interactions are not summed over leaves."""
        if self.leaves.weights is None:
            note = "The value is not a sum over leaves: coalitions are valued from the leaves that they reach."
            return (f"{note} Learning is quicker with readout={self.leaves.exact_readout}.",)
        if not self.sums_are_exact:
            return ("The leaves have too many interactions to sum up: those of drawn players are measured.",)
        return ()

    def encode(self, inputs: Shaped[Tensor, "rows *entries"]) -> Int[Tensor, "rows columns"]:
        """Return the codes of inputs."""
        return torch.from_numpy(self.leaves.codes_of(inputs.detach().cpu().numpy()))

    def stand_ins(self, baseline: Baselines, owners: Int[Tensor, " rows"]) -> Int[Tensor, "rows columns"]:
        """Return the codes of each owner's baseline."""
        return self.encode(baseline.to(self.evaluator.x))[owners]

    def values(
        self,
        present: Int[Tensor, "rows columns"],
        absent: Int[Tensor, "rows columns"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
        samples: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows coalitions"]:
        """Return the values of coalitions from the leaves that they reach."""
        if self._is_same_for_all(absent, coalitions):
            return self._values_of_one(present, absent, coalitions, samples)
        return self._values(present, absent, coalitions, samples)

    def _is_same_for_all(self, absent: Tensor, coalitions: Tensor) -> bool:
        """Return whether all masked inputs are the same row: nobody is present, and one baseline stands in."""
        if coalitions.any() or bool((self.leaves.trees.player < 0).any()):
            return False
        return bool((absent == absent[:1]).all())

    def _values_of_one(self, present: Tensor, absent: Tensor, coalitions: Tensor, samples: Tensor) -> Tensor:
        """Return the values of coalitions without players, each kind of which is computed once."""
        kinds = self._kinds(samples)
        _, first, places = np.unique(kinds, return_index=True, return_inverse=True)
        chosen = torch.from_numpy(first)
        own_coalitions = coalitions if coalitions.ndim == 2 else coalitions[chosen]
        values = self._values(present[chosen], absent[chosen], own_coalitions, samples[chosen])
        return values[torch.from_numpy(places)]

    def _kinds(self, samples: Tensor) -> np.ndarray:
        """Return numbers that are equal for samples whose values are read out in the same way."""
        if self.leaves.weights is None:
            return samples.numpy()
        kinds: np.ndarray = self.leaves.weights.kinds[samples.numpy()]
        return kinds

    def _values(self, present: Tensor, absent: Tensor, coalitions: Tensor, samples: Tensor) -> Tensor:
        """Let the coalitions of each row walk through the trees."""
        weights = self.leaves.weights
        if weights is None:
            outputs = self.outputs(present, absent, coalitions)
            owners = samples.repeat_interleave(outputs.shape[1])
            return self.leaves.value_of(outputs.reshape(-1, outputs.shape[2]), owners).reshape(len(present), -1)
        kinds = weights.kinds[samples.numpy()]
        sums = self._sums(present, absent, coalitions, weights.weights[:, :, None], kinds)
        return torch.from_numpy(weights.base[kinds][:, None] + sums[:, :, 0])

    def outputs(
        self,
        present: Int[Tensor, "rows columns"],
        absent: Int[Tensor, "rows columns"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
    ) -> np.ndarray:
        """Return the ensemble's outputs for coalitions: rows × coalitions × outputs."""
        ensemble = self.leaves.trees.ensemble
        kinds = np.zeros(len(present), np.int64)
        return ensemble.base + self._sums(present, absent, coalitions, ensemble.weights_by_output[None], kinds)

    def _sums(
        self, present: Tensor, absent: Tensor, coalitions: Tensor, leaf_weights: np.ndarray, kinds: np.ndarray
    ) -> np.ndarray:
        """Return the sums of leaf weights that coalitions reach: rows × coalitions × outputs."""
        from absentia.trees.coalition_values import bits_of, values_of_pairs

        asked = coalitions.numpy()
        bits = bits_of(asked if asked.ndim == 3 else asked[None])
        played = self.leaves.trees.played
        sums: np.ndarray = values_of_pairs(
            played, present.numpy(), absent.numpy(), bits, asked.shape[-2], leaf_weights, kinds
        )
        return sums

    def strength(
        self,
        present: Int[Tensor, "rows columns"],
        absent: Int[Tensor, "rows columns"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
        samples: Int[Tensor, " rows"],
    ) -> Float[Tensor, " rows"]:
        """Sum |U(S)| over all sets, or over the tables of the coalitions' values."""
        from absentia.trees.effect_sums import strengths

        weights = self.leaves.weights
        if weights is None or not self.sums_are_exact:
            return strength_of_tables(self.values(present, absent, coalitions, samples))
        kinds = weights.kinds[samples.numpy()]
        sums = strengths(self.leaves.trees.played, present.numpy(), absent.numpy(), weights.weights, kinds)
        return torch.from_numpy(sums)

    @property
    def weights(self) -> LeafWeights:
        """The weights of the leaves, of which a value must be a sum."""
        if self.leaves.weights is None:
            raise AbsentiaError("Only values that are sums over leaves can be followed along levels.")
        return self.leaves.weights

    def levels(self, candidates: Float[Tensor, "owners levels entries"]) -> Levels:
        """Return each owner's candidates as levels."""
        from absentia.trees.levels import find_levels

        ensemble = self.leaves.trees.ensemble
        codes = self.encode(candidates.flatten(0, 1).to(self.evaluator.x)).numpy()
        codes = codes.reshape(*candidates.shape[:2], -1)
        return find_levels(ensemble.nodes, ensemble.roots, codes)


def leaf_source(evaluator: Evaluator, mean: Shaped[Tensor, "*entries"]) -> LeafSource | NotFromLeaves:
    """Return values from the leaves of the task's model, if they can be read and agree with it."""
    if isinstance(evaluator.readout, Features):
        return NotFromLeaves()
    fill = StandIns(evaluator.x, mean.to(evaluator.x)[None, None]) if evaluator.x.ndim == 2 else None
    if fill is None:
        return NotFromLeaves()
    leaves = leaf_values(evaluator.task, fill)
    if isinstance(leaves, NotFromLeaves):
        return leaves
    if not is_compiled():
        return NotFromLeaves("The model is run on masked inputs, because numba is not installed: pip install numba.")
    return LeafSource(evaluator, leaves, _sums_are_affordable(leaves))


def _sums_are_affordable(leaves: LeafValues) -> bool:
    """Return whether the value is a sum over leaves that have few enough sets."""
    from absentia.trees.effect_sums import count_sets

    if leaves.weights is None:
        return False
    samples = leaves.trees.samples[:_COUNTED_SAMPLES]
    means = np.broadcast_to(leaves.trees.stand_ins[:, 0], samples.shape)
    played = leaves.trees.played
    at_means = count_sets(played, samples, np.ascontiguousarray(means)).mean()
    at_others = count_sets(played, samples, np.roll(samples, 1, axis=0)).mean()
    return bool(max(at_means, at_others) <= _MOST_SETS)
