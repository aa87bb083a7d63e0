"""How long fits take on this machine, from the operations that they need."""

from __future__ import annotations

import time
from functools import cache

import torch

from absentia.cube.likelihood import STAGES

# The speed is measured by products of matrices of this size, the quickest of many, because others may compute too.
_MEASURED_SIZE = 256
_MEASURED_TIMES = 25
# The likelihood takes about this many operations for each entry of the covariances, beside those of the factor.
_PER_ENTRY = 360
# And about this many for the cube of the coalitions: a factorisation and an inverse.
_PER_CUBE = 3.0
# And this many that do not depend on the coalitions.
_PER_LOSS = 4e7
# Few terms are searched among about this many candidates, with this many coalitions, this many times.
_CANDIDATES = 1000
_PREDICTED = 4000
_SEARCHES = 20
# Elements of the quadrature take about this many operations.
_PER_QUADRATURE = 1000


@cache
def operations_per_second() -> float:
    """Measure how many operations of matrix products this machine computes in a second, once for each process."""
    matrix = torch.ones(_MEASURED_SIZE, _MEASURED_SIZE, dtype=torch.float64)
    quickest = float("inf")
    for _ in range(_MEASURED_TIMES):
        began = time.perf_counter()
        matrix @ matrix
        quickest = min(quickest, time.perf_counter() - began)
    return 2 * _MEASURED_SIZE**3 / max(quickest, 1e-9)


def seconds_of_process(coalitions: int, players: int, samples: int) -> float:
    """Estimate how long it takes to fit a process to this many coalitions of each sample."""
    operations = 0.0
    for number, stage in enumerate(STAGES):
        if number > 0 and coalitions <= STAGES[number - 1].coalitions:
            break  # there are no coalitions that the stage before has not seen
        seen = min(coalitions, stage.coalitions)
        operations += stage.losses * (_PER_CUBE * seen**3 + (_PER_ENTRY + 14 * players) * seen**2 + _PER_LOSS)
    operations += coalitions**3 / 3 + 3 * players * coalitions**2 + _PER_QUADRATURE * players * coalitions
    return samples * operations / operations_per_second()


def seconds_of_few_terms(pairs: int, players: int) -> float:
    """Estimate how long it takes to search few terms of one sample with this many pairs of coalitions."""
    candidates = players + _CANDIDATES
    search = _SEARCHES * (2 * pairs + _PREDICTED) * candidates**2
    return 2 * seconds_of_process(pairs, players, 1) + search / operations_per_second()
