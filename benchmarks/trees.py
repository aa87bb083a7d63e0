"""Compare explanations of tree ensembles from their leaves with shap, woodelf and shapiq, in milliseconds per row.

    python benchmarks/trees.py                          # about ten minutes; writes results/trees.md and .json
    python benchmarks/trees.py --quick --output DIR     # a smoke test of a few seconds

Boosters are fitted to made-up data with LightGBM. Every explainer is prepared first, which is timed separately, and
then explains the same rows against the same stand-ins: one row of means, or 100 rows of data. Results are compared
before their times are reported. woodelf is left out if it cannot be imported, and the results say why; so are the
cases that a stopped run has not measured. shapiq's TreeExplainer has another value function (path-dependent), so only
its time can be compared.
"""

from __future__ import annotations

import contextlib
import functools
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import shap
import shapiq
import torch

import absentia as ab
from result_tables import Cell, Row, Table, describe_machine, options, print_table, show, verdict, write

SHAPLEY_GOAL = 3.0  # times the fastest peer
INTERACTIONS_GOAL = 20.0  # times the fastest peer's time for Shapley values alone
AGREEMENT = 1e-5  # largest difference allowed, as a share of the largest value
SHAPIQ_ROWS = 2  # shapiq explains one row at a time, slowly


@dataclass(frozen=True)
class Case:
    """A booster: its columns, trees and depth, and how many rows are explained."""

    columns: int
    trees: int
    depth: int
    rows: int


FULL = (
    Case(columns=12, trees=100, depth=4, rows=200),
    Case(columns=12, trees=1000, depth=6, rows=50),
    Case(columns=60, trees=300, depth=6, rows=100),
    Case(columns=60, trees=1000, depth=8, rows=20),
    Case(columns=500, trees=100, depth=4, rows=200),
    Case(columns=500, trees=300, depth=8, rows=50),
    Case(columns=500, trees=300, depth=12, rows=20),
)
QUICK = (Case(columns=5, trees=5, depth=3, rows=3),)
BACKGROUND_ROWS = 100
REPEATS = 3


@dataclass(frozen=True)
class Fitted:
    """A fitted booster with rows to explain and stand-ins."""

    booster: Any
    rows: np.ndarray
    background: np.ndarray


def fit(case: Case) -> Fitted:
    """Fit a booster to columns that interact in pairs and triples."""
    random = np.random.default_rng(0)
    data = random.normal(size=(5000, case.columns))
    informative = data[:, : min(case.columns, 30)]
    target = informative[:, 0] * informative[:, 1] + np.maximum(informative[:, 2], informative[:, 3])
    target = target + informative.sum(1) / 5 + informative[:, -1] * informative[:, -2] * informative[:, -3]
    booster = lightgbm.LGBMRegressor(
        n_estimators=case.trees,
        max_depth=case.depth,
        num_leaves=2**case.depth,
        min_child_samples=5,
        n_jobs=1,
        verbose=-1,
    )
    booster.fit(data, target)
    return Fitted(booster, data[: case.rows], data[-BACKGROUND_ROWS:])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least time of a few runs in seconds, and the last result."""
    seconds = []
    result = None
    for _ in range(REPEATS):
        start = time.process_time()
        result = work()
        seconds.append(time.process_time() - start)
    return min(seconds), result


def explained_by_shap(fitted: Fitted, background: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Return the seconds for preparing and for explaining, and the values."""
    start = time.process_time()
    explainer = shap.TreeExplainer(fitted.booster, background, feature_perturbation="interventional")
    prepared = time.process_time() - start
    seconds, values = timed(lambda: explainer.shap_values(fitted.rows))
    return prepared, seconds, np.asarray(values)


@functools.cache
def why_no_woodelf() -> str:
    """Say why woodelf cannot be compared; empty if it can."""
    try:
        import woodelf  # noqa: F401
    except ImportError as error:
        return f"woodelf cannot be imported ({error}): pip install woodelf-explainer treelite"
    return ""


def explained_by_woodelf(fitted: Fitted, background: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Return the seconds for explaining, and the values; None if it is not installed or fails."""
    if why_no_woodelf():
        return None
    import pandas
    from woodelf import WoodelfExplainer

    columns = [f"Column_{number}" for number in range(fitted.rows.shape[1])]
    explainer = WoodelfExplainer(fitted.booster, pandas.DataFrame(background, columns=columns))
    rows = pandas.DataFrame(fitted.rows, columns=columns)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # it prints a lot
        seconds, values = timed(lambda: explainer.shap_values(rows))
    return seconds, np.asarray(values)


def explained_by_shapiq(fitted: Fitted) -> float:
    """Return the seconds per row that shapiq needs for path-dependent Shapley values."""
    explainer = shapiq.TreeExplainer(fitted.booster, max_order=1, index="SV")
    start = time.process_time()
    for row in fitted.rows[:SHAPIQ_ROWS]:
        explainer.explain(row)
    return (time.process_time() - start) / min(SHAPIQ_ROWS, len(fitted.rows))


def compare(case: Case, background_rows: int) -> Row:
    """Explain the rows of a case with every contender."""
    fitted = fit(case)
    background = fitted.background if background_rows > 1 else fitted.background.mean(0, keepdims=True)
    absence = ab.Marginal(torch.from_numpy(background))
    ab.shapley(ab.MaskedModel(fitted.booster, fitted.rows[:1], absence=absence))  # compiles on the first run
    start = time.process_time()
    game = ab.MaskedModel(fitted.booster, fitted.rows, absence=absence)
    game.leaf_values  # noqa: B018 (reads the trees, which are cached)
    prepared = time.process_time() - start
    own_seconds, own = timed(lambda: ab.shapley(game))
    terms_seconds, terms = timed(lambda: ab.interactions(game))
    shap_prepared, shap_seconds, by_shap = explained_by_shap(fitted, background)
    check_agreement(own.values.numpy(), by_shap)
    by_woodelf = explained_by_woodelf(fitted, background)
    fastest = shap_seconds
    if by_woodelf is not None:
        check_agreement(own.values.numpy(), by_woodelf[1])
        fastest = min(fastest, by_woodelf[0])
    per_row = 1e3 / len(fitted.rows)
    shapley_ratio = own_seconds / fastest
    terms_ratio = terms_seconds / fastest
    row: dict[str, Cell] = {
        "columns": case.columns,
        "trees": case.trees,
        "depth": case.depth,
        "background": background_rows,
        "absentia, ms": own_seconds * per_row,
        "shap, ms": shap_seconds * per_row,
        "woodelf, ms": None if by_woodelf is None else by_woodelf[0] * per_row,
        "shapiq (path-dependent), ms": 1e3 * explained_by_shapiq(fitted),
        "over the fastest": shapley_ratio,
        f"within {SHAPLEY_GOAL:g}": verdict(shapley_ratio <= SHAPLEY_GOAL),
        "all interactions, ms": terms_seconds * per_row,
        "interactions of a row": len(terms.effects) / len(fitted.rows),
        "over the fastest's Shapley values": terms_ratio,
        f"within {INTERACTIONS_GOAL:g}": verdict(terms_ratio <= INTERACTIONS_GOAL),
        "prepare, s": prepared,
        "shap prepares, s": shap_prepared,
    }
    return row


def check_agreement(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Raise an error if results differ, because their times could not be compared."""
    apart = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    if not apart <= AGREEMENT:
        raise RuntimeError(f"Results must agree within {AGREEMENT:g} to be compared. Got {apart:g} instead.")


def not_measured(cases: list[tuple[Case, int]]) -> str:
    """Name the cases that a run has not measured yet, or never will if it is stopped."""
    if not cases:
        return ""
    names = [
        f"{case.columns} columns × {case.trees} trees × depth {case.depth} against {background}"
        for case, background in cases
    ]
    return f"Not measured, because the run was stopped: {'; '.join(names)}."


def main() -> None:
    """Measure, print and write."""
    chosen = options(__doc__, "a small booster").parse_args()
    machine = describe_machine()
    cases = QUICK if chosen.quick else FULL
    note = (
        "Shapley values of a row against the same stand-ins, equal within 1e-5 of the largest value, and all "
        "interactions of the row, which no peer computes. CPU milliseconds a row, the least of three runs."
    )
    rows: list[Row] = []
    planned = [(case, background) for case in cases for background in (1, BACKGROUND_ROWS)]
    for number, (case, background) in enumerate(planned):
        rows.append(compare(case, background))
        remarks = [note, why_no_woodelf(), not_measured(planned[number + 1 :])]
        table = Table("Shapley values and interactions of tree ensembles", " ".join(filter(None, remarks)), rows)
        print(", ".join(f"{name} {show(cell)}" for name, cell in rows[-1].items()), flush=True)
        write("trees", "Tree ensembles: speed", machine, [table], chosen)  # a run that is stopped keeps its rows
    print_table(table)


if __name__ == "__main__":
    main()
