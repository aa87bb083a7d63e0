"""Other ways to few terms of a game: SPEX and ProxySPEX of shapiq, LightGBM, and LASSO on pairs of players."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import lightgbm
import numpy as np
import shapiq
from sklearn.linear_model import LassoCV

from found_terms import Found, HarsanyiTerms, Players, WalshTerms, trees_of_rows
from shapley_peers import Values

Fitter: TypeAlias = Callable[[Values, int, int, int], Found]

MOST_FOR_SPEX = 256  # players
MOST_FOR_PAIRS = 64  # players


def effects_of(approximator: Any, values: Values, evaluations: int, players: int) -> WalshTerms:
    """Run SPEX or ProxySPEX, and take what it found before it computes an index from it."""
    kept: dict[Players, float] = {}

    def keep(moebius_transform: Mapping[Any, float]) -> np.ndarray:
        for members, effect in moebius_transform.items():
            kept[tuple(sorted(int(player) for player in members))] = float(np.real(effect))
        approximator._interaction_lookup = {(): 0}
        return np.zeros(1)

    approximator._process_moebius = keep
    approximator.approximate(evaluations, values)
    return WalshTerms(players, kept)


def spex(values: Values, players: int, evaluations: int, seed: int) -> Found:
    """Decode a sparse Walsh transform from structured coalitions; shapiq's default is soft decoding."""
    np.random.seed(seed)  # noqa: NPY002 (the transform draws from the global generator)
    return effects_of(shapiq.SPEX(n=players, random_state=seed), values, evaluations, players)


def proxy_spex(values: Values, players: int, evaluations: int, seed: int) -> Found:
    """Fit boosted trees to coalitions drawn uniformly, and refit their strongest Walsh terms."""
    return effects_of(shapiq.ProxySPEX(n=players, random_state=seed), values, evaluations, players)


def proxy_spex_by_size(values: Values, players: int, evaluations: int, seed: int) -> Found:
    """Fit ProxySPEX to coalitions of all sizes alike, as fidelity is measured, which is not its default."""
    approximator = shapiq.ProxySPEX(n=players, random_state=seed)
    approximator._uniform_sampler = shapiq.approximator.sampling.CoalitionSampler(
        n_players=players, sampling_weights=np.ones(players + 1), pairing_trick=True, random_state=seed
    )
    return effects_of(approximator, values, evaluations, players)


def drawn_by_size(players: int, count: int, seed: int) -> np.ndarray:
    """Draw coalitions of all sizes alike, other than ∅ and N."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, players, size=count)
    places = random.random((count, players)).argsort(1).argsort(1)
    return places < sizes[:, None]


def drawn_alike(players: int, count: int, seed: int) -> np.ndarray:
    """Draw from all coalitions alike."""
    return np.random.default_rng(seed).random((count, players)) < 0.5


def rows_to_fit(players: int, evaluations: int, seed: int) -> np.ndarray:
    """Return ∅, N, and coalitions of all sizes alike."""
    ends = np.repeat([[False], [True]], players, axis=1)
    return np.concatenate([ends, drawn_by_size(players, evaluations - 2, seed)])


def boosted_trees(values: Values, players: int, evaluations: int, seed: int) -> Found:
    """Fit LightGBM to rows of 0 and 1, sizes alike."""
    rows = rows_to_fit(players, evaluations, seed)
    booster = lightgbm.LGBMRegressor(
        n_estimators=500,
        learning_rate=0.05,
        max_depth=5,
        min_child_samples=5,
        n_jobs=1,
        random_state=seed,
        verbose=-1,
    )
    booster.fit(rows.astype(float), values(rows))
    return trees_of_rows(booster, players)


def pairwise_lasso(values: Values, players: int, evaluations: int, seed: int) -> Found:
    """Fit players and pairs of players by a sum of AND terms whose penalty is chosen by cross-validation."""
    rows = rows_to_fit(players, evaluations, seed)
    sets = [*itertools.combinations(range(players), 1), *itertools.combinations(range(players), 2)]
    columns = np.stack([rows[:, members].all(1) for members in sets], axis=1).astype(float)
    lasso = LassoCV(alphas=30, cv=3, max_iter=2000, tol=1e-3).fit(columns, values(rows))
    kept = {members: float(effect) for members, effect in zip(sets, lasso.coef_, strict=True) if effect != 0}
    return HarsanyiTerms.listed({(): float(lasso.intercept_)} | kept, players)


FITTERS: dict[str, Fitter] = {
    "SPEX": spex,
    "ProxySPEX": proxy_spex,
    "ProxySPEX, sizes alike": proxy_spex_by_size,
    "LightGBM": boosted_trees,
    "LASSO on pairs": pairwise_lasso,
}


def can_fit(name: str, players: int) -> bool:
    """Return whether a method can be run with this many players within minutes."""
    if name == "LASSO on pairs":
        return players <= MOST_FOR_PAIRS
    if name == "LightGBM":
        return True
    return players <= MOST_FOR_SPEX


def fit_quietly(name: str, values: Values, players: int, evaluations: int, seed: int) -> Found | None:
    """Fit a peer; return None where it says that the budget is too small for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return FITTERS[name](values, players, evaluations, seed)
        except ValueError as error:
            if "Insufficient budget" in str(error):
                return None
            raise
