"""Games that are a sum of a few planted AND terms, with noise that belongs to the coalition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from found_terms import Players

HIGHEST_ORDER = 5
MOST_TERMS = 20
NOISE_SHARE = 0.1  # of the variance over all coalitions
DRAWS_FOR_VARIANCE = 20_000


@dataclass(frozen=True, eq=False)
class PlantedGame:
    """A game of one sample: Σ_T a_T [T ⊆ S] + noise(S), the same noise whenever S is evaluated."""

    names: tuple[str, ...]
    sets: tuple[Players, ...]
    weights: tuple[float, ...]
    seed: int
    samples: int = 1

    def sums(self, coalitions: np.ndarray) -> np.ndarray:
        """Return the values without noise."""
        values = np.zeros(len(coalitions))
        for members, weight in zip(self.sets, self.weights, strict=True):
            values += weight * coalitions[:, members].all(1)
        return values

    @cached_property
    def noise(self) -> float:
        """The standard deviation of the noise.

        It is a share of the variance over coalitions drawn alike, as SPEX and ProxySPEX draw them. Over sizes drawn
        alike, the variance is larger, so that the noise is a smaller share of it.
        """
        random = np.random.default_rng(self.seed)
        drawn = random.random((DRAWS_FOR_VARIANCE, len(self.names))) < 0.5
        return float(np.sqrt(NOISE_SHARE * self.sums(drawn).var()))

    def __call__(self, coalitions: Tensor) -> Tensor:
        """Return the value of each coalition."""
        rows = coalitions.numpy()
        return torch.from_numpy(self.sums(rows) + self.noise * normals_of(rows, self.seed))[None]


def plant(players: int, seed: int) -> PlantedGame:
    """Plant half as many terms as players, at most 20, of orders 1 to 5 in turn, with weights from ±0.5 to ±1.5."""
    random = np.random.default_rng([players, seed])
    planted: dict[Players, float] = {}
    terms = min(players // 2, MOST_TERMS)
    while len(planted) < terms:
        order = 1 + len(planted) % HIGHEST_ORDER
        members = tuple(sorted(random.choice(players, size=order, replace=False).tolist()))
        planted[members] = float(random.uniform(0.5, 1.5) * random.choice([-1, 1]))
    names = tuple(f"player {player}" for player in range(players))
    return PlantedGame(names, tuple(planted), tuple(planted.values()), seed)


def normals_of(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return a normal number for each row of presence, which depends on the row and the seed only."""
    random = np.random.default_rng([rows.shape[1], seed, 1])
    keys = random.integers(0, 2**63, size=(2, rows.shape[1]), dtype=np.uint64)
    # Sums of random keys modulo 2⁶⁴, mixed, are two uniform numbers; those make a normal one (Box and Muller).
    uniform = [(mixed(np.where(rows, key, np.uint64(0)).sum(1, dtype=np.uint64)) + 0.5) / 2**64 for key in keys]
    return np.asarray(np.sqrt(-2 * np.log(uniform[0])) * np.cos(2 * np.pi * uniform[1]))


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Mix the bits of numbers as the generator SplitMix64 does."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (numbers ^ (numbers >> np.uint64(31))).astype(float)


def scores(found: set[Players], planted: set[Players]) -> float:
    """Return F1, the harmonic mean of precision and recall.

    >>> scores({(0,), (1,)}, {(0,), (0, 1)})
    0.5
    """
    if not found:
        return 0.0
    return 2 * len(found & planted) / (len(found) + len(planted))
