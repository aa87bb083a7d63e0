"""What is needed to read the trees of a model: the estimator that holds them, and how rows reach it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from absentia.models.boosters import Margins

if TYPE_CHECKING:
    from absentia.trees.reading import TreeReading

# Euler's constant, in the mean depth of an unsuccessful search of a binary tree.
_EULER = 0.5772156649015329


@dataclass(frozen=True)
class TreeSource:
    """An estimator of trees, behind the steps of a pipeline if there are any."""

    estimator: Any
    transformers: tuple[Any, ...]
    table: Callable[[np.ndarray], Any]  # rows of numbers → what the first step takes
    margins: Margins | None  # how a booster is read, if by its margins
    why_not: str = ""  # why the trees are not used, if they are not

    def read(self) -> TreeReading | None:
        """Return the trees; None if the estimator has none that are known."""
        from absentia.trees.reading import read_trees  # imported here, because numba takes a second

        return read_trees(self.estimator)

    def inner_rows(self, reading: TreeReading, rows: np.ndarray) -> np.ndarray:
        """Return rows of numbers as the trees see them: after the other steps of a pipeline."""
        table = self.table(rows)
        for transformer in self.transformers:
            if hasattr(transformer, "transform"):
                table = transformer.transform(table)
        return reading.rows_of(table)


def find_source(estimator: Any, table: Callable[[np.ndarray], Any], margins: Margins | None) -> TreeSource:
    """Return where the trees of an estimator or of a pipeline's last step are, if it has any."""
    transformers: list[Any] = []
    while isinstance(getattr(estimator, "steps", None), list) and estimator.steps:
        *earlier, estimator = [step for _, step in estimator.steps]
        transformers += earlier
    return TreeSource(estimator, tuple(transformers), table, margins)


def decision_of_depth(forest: Any, depth: np.ndarray) -> np.ndarray:
    """Return the decision function of an isolation forest from the mean depth of rows."""
    score = -(2.0 ** (-depth / average_depth(forest)))
    decision: np.ndarray = score - forest.offset_
    return decision


def depth_of_decision(forest: Any, decision: Any) -> Any:
    """Return the mean depth of rows from the decision function of an isolation forest; arrays or tensors."""
    return -average_depth(forest) * (-(decision + forest.offset_)).log2()


def average_depth(forest: Any) -> float:
    """Return the mean depth of a tree on as many samples as the forest drew for each of its trees."""
    samples = int(forest.max_samples_)
    if samples <= 2:
        return float(max(0, samples - 1))
    return 2 * (math.log(samples - 1) + _EULER) - 2 * (samples - 1) / samples


def separate(
    transform: Callable[[np.ndarray], np.ndarray], samples: np.ndarray, stand_ins: np.ndarray, labels: np.ndarray
) -> np.ndarray | None:
    """Return the player of each column after a transformation; None if a column depends on several players.

    ``labels`` are the players of the columns before it, and ``stand_ins`` are rows. Each player in turn is replaced
    by stand-ins, and the columns that change are its own: with the first sample and every stand-in, and with every
    sample and the first stand-in. A column that never changes is said to be always present.
    """
    sample_rows = np.concatenate([np.broadcast_to(samples[:1], stand_ins.shape), samples])
    stand_in_rows = np.concatenate([stand_ins, np.broadcast_to(stand_ins[:1], samples.shape)])
    # Both ways: a product of two columns that are 0 in the sample changes only from the side of the stand-in.
    original = np.concatenate([sample_rows, stand_in_rows])
    other = np.concatenate([stand_in_rows, sample_rows])
    before = transform(original)
    players = np.full(before.shape[1], -1)
    for player in range(int(labels.max()) + 1):
        after = transform(np.where(labels == player, other, original))
        same = (after == before) | (np.isnan(after) & np.isnan(before))
        changed = ~same.all(0)
        if (players[changed] >= 0).any():
            return None
        players[changed] = player
    return players
