"""How long fits take on this machine, from the operations that they need."""

from __future__ import annotations

import time
from functools import cache

import torch

from absentia.cube.likelihood import STAGES, Stage

# The matrices whose products measure the speed have this many rows and columns.
_MEASURED_SIZE = 256
# The number of products that are timed. The quickest counts, because other programs may compute, too.
_MEASURED_TIMES = 25
# A machine that seems slower than this, in operations a second, is busy with other work for a moment.
_LEAST_SPEED = 1e10
# A game has an odd and an even part, whose kernels are fitted together.
_PARTS = 2
# Operations of the likelihood of a part for each entry of the covariances, without those of the factorisation.
_PER_ENTRY = 360
# Operations of the factorisation and of an inverse, as a multiple of the number of coalitions cubed.
_PER_CUBE = 3.0
# Operations of a likelihood that do not depend on the coalitions.
_PER_LOSS = 4e7
# The number of candidate sets in a search for few terms.
_CANDIDATES = 1000
# The number of coalitions in such a search.
_PREDICTED = 4000
# The number of such searches for a sample.
_SEARCHES = 30
# Operations for each element of the quadrature.
_PER_QUADRATURE = 1000
# The process of few terms is fitted to at most this many pairs.
MOST_PAIRS_OF_FEW_TERMS = 3000


@cache
def operations_per_second() -> float:
    """Measure how many operations of matrix products this machine computes in a second, once for each process."""
    matrix = torch.ones(_MEASURED_SIZE, _MEASURED_SIZE, dtype=torch.float64)
    quickest = float("inf")
    for _ in range(_MEASURED_TIMES):
        began = time.perf_counter()
        matrix @ matrix
        quickest = min(quickest, time.perf_counter() - began)
    return max(_LEAST_SPEED, 2 * _MEASURED_SIZE**3 / max(quickest, 1e-9))


def seconds_of_process(coalitions: int, players: int, samples: int, stages: tuple[Stage, ...] = STAGES) -> float:
    """Estimate how long it takes to estimate Shapley values by a process from so many pairs of each sample."""
    operations = _operations_of_kernels(coalitions, players, stages) + _operations_of_posterior(coalitions, players)
    return samples * operations / operations_per_second()


def seconds_of_few_terms(pairs: int, players: int) -> float:
    """Estimate how long it takes to search few terms of one sample with this many pairs of coalitions."""
    candidates = players + _CANDIDATES
    search = _SEARCHES * (2 * pairs + _PREDICTED) * candidates**2
    fitted = min(pairs, MOST_PAIRS_OF_FEW_TERMS)
    fit = _operations_of_kernels(fitted, players, STAGES) + _PARTS * _operations_of_posterior(fitted, players)
    return (fit + search) / operations_per_second()


def _operations_of_kernels(coalitions: int, players: int, stages: tuple[Stage, ...]) -> float:
    """Estimate the operations of the fit of both kernels of a sample."""
    operations = 0.0
    for number, stage in enumerate(stages):
        if number > 0 and coalitions <= stages[number - 1].coalitions:
            break  # there are no coalitions that the stage before has not seen
        seen = min(coalitions, stage.coalitions)
        of_part = _PER_CUBE * seen**3 + (_PER_ENTRY + 14 * players) * seen**2 + _PER_LOSS
        operations += _PARTS * stage.losses * of_part
    return operations


def _operations_of_posterior(coalitions: int, players: int) -> float:
    """Estimate the operations of the posterior of one part, and of the Shapley values that follow from it."""
    return coalitions**3 / 3 + 3 * players * coalitions**2 + _PER_QUADRATURE * players * coalitions


def seconds_of_orders(pairs: int, players: int) -> float:
    """Estimate how long it takes to estimate all order-wise values of one sample by a fitted process."""
    factor = pairs**3 / 3
    numbers = players**2
    return 2 * (factor + 2 * numbers * pairs**2) / operations_per_second()


def seconds_of_fits(coalitions: int, players: int, samples: int) -> float:
    """Estimate how long all fits of an explanation take with this many drawn coalitions of each sample."""
    return samples * seconds_of_few_terms(coalitions // 2, players)
