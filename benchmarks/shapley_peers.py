"""Other packages' estimators of Shapley values, each with the same function and at most the same evaluations.

Each takes the values of coalitions as a function of rows of 0 and 1, the number of players, a budget of distinct
evaluations and a seed. Permutations are whole, so an estimator that walks along them may leave part of its budget.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import captum.attr
import numpy as np
import shap
import shapiq
import torch
from torch import Tensor

Values: TypeAlias = Callable[[np.ndarray], np.ndarray]
Estimator: TypeAlias = Callable[[Values, int, int, int], np.ndarray]

MOST_PAIRS_OF_PLAYERS = 2500  # kADD-SHAP has a column for each, and solves a dense system
MOST_FOR_SVARM = 100  # players: its time grows with their square; with 784, one sample takes more than a quarter hour


def shap_permutation(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    """Walk along permutations forward and backward: 2 (n − 1) coalitions each, besides ∅ and N."""
    permutations = (evaluations - 2) // (2 * (players - 1))
    masker = RowMasker(players)
    explainer = shap.explainers.Permutation(values, masker, seed=seed)
    # In shap's own unit, a permutation costs 2n + 1, because it evaluates ∅ twice and N once in each.
    explanation = explainer(
        np.ones((1, players)),
        max_evals=permutations * (2 * players + 1),
        batch_size=2 * players + 1,
        silent=True,
    )
    return np.asarray(explanation.values[0])


class RowMasker:
    """Pass the presence of players on as a row of 0 and 1."""

    immutable_outputs = True
    clustering = None

    def __init__(self, players: int) -> None:
        self.shape = (1, players)

    def __call__(self, mask: np.ndarray, row: np.ndarray) -> tuple[np.ndarray]:
        """Return one row for a mask."""
        return (mask[None].astype(float),)


def shap_kernel(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    """Solve shap's weighted regression without its default of keeping ten players only."""
    np.random.seed(seed)  # noqa: NPY002 (shap draws from the global generator)
    explainer = shap.KernelExplainer(values, np.zeros((1, players)))
    explained = explainer.shap_values(np.ones((1, players)), nsamples=evaluations - 2, l1_reg=False, silent=True)
    return np.asarray(explained[0])


def captum_sampling(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    """Walk along permutations: n − 1 coalitions each, besides ∅ and N."""

    def forward(rows: Tensor) -> Tensor:
        return torch.from_numpy(values(rows.numpy()))

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sampling = captum.attr.ShapleyValueSampling(forward)
        attributions = sampling.attribute(
            torch.ones(1, players),
            baselines=0.0,
            n_samples=(evaluations - 2) // (players - 1),
            perturbations_per_eval=players,
        )
    return attributions[0].double().numpy()


def shapiq_permutation(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    estimator = shapiq.PermutationSamplingSV(players, random_state=seed)
    return singletons(estimator.approximate(evaluations, values, batch_size=evaluations), players)


def shapiq_kernel(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    estimator = shapiq.KernelSHAP(players, random_state=seed)
    return singletons(estimator.approximate(evaluations, values), players)


def shapiq_paired_kernel(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    """Draw each coalition with its complement, which is not shapiq's default but serves it well."""
    estimator = shapiq.KernelSHAP(players, pairing_trick=True, random_state=seed)
    return singletons(estimator.approximate(evaluations, values), players)


def shapiq_kadd(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    estimator = shapiq.kADDSHAP(players, max_order=2, random_state=seed)
    return singletons(estimator.approximate(evaluations, values), players)


def shapiq_svarm(values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    estimator = shapiq.SVARM(players, random_state=seed)
    return singletons(estimator.approximate(evaluations, values), players)


def singletons(found: Any, players: int) -> np.ndarray:
    """Return shapiq's numbers of single players."""
    return np.array([found[(player,)] for player in range(players)])


PEERS: dict[str, Estimator] = {
    "shap permutation": shap_permutation,
    "shap kernel": shap_kernel,
    "captum sampling": captum_sampling,
    "shapiq kernel": shapiq_kernel,
    "shapiq kernel, pairs": shapiq_paired_kernel,
    "shapiq permutation": shapiq_permutation,
    "shapiq kADD": shapiq_kadd,
    "shapiq SVARM": shapiq_svarm,
}


def can_run(name: str, players: int) -> bool:
    """Return whether an estimator can be run with this many players."""
    if name == "shapiq kADD":
        return players * (players - 1) // 2 <= MOST_PAIRS_OF_PLAYERS
    if name == "shapiq SVARM":
        return players <= MOST_FOR_SVARM
    return True


def estimate(name: str, values: Values, players: int, evaluations: int, seed: int) -> np.ndarray:
    """Run an estimator quietly."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return PEERS[name](values, players, evaluations, seed)
