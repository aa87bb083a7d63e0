"""Measure learning for models of trees: from their leaves, and by running them as a black box.

    python benchmarks/tree_learning.py                       # some minutes; writes results/tree_learning.md and .json
    python benchmarks/tree_learning.py --quick --output DIR  # a smoke test of some seconds

Boosters are fitted to made-up data with LightGBM. A small model is learned first, so that compiling loops is not
timed. Losses are those of the default loss on rows that were not learned from.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import torch

import absentia as ab
from result_tables import Row, Table, describe_machine, options, print_table, verdict, write

GOAL = 20.0  # CPU seconds from leaves
BLACK_BOX_SECONDS = 240.0  # after which the search of the black box ends with its best values
HELD_OUT = 2000


@dataclass(frozen=True)
class Case:
    """A booster: its columns and trees."""

    columns: int
    trees: int
    rows: int = 5000


FULL = (Case(columns=12, trees=100), Case(columns=60, trees=300))
QUICK = (Case(columns=4, trees=5, rows=200),)


@dataclass(frozen=True)
class Fitted:
    """A fitted booster, rows to learn from and rows held out."""

    booster: Any
    x: np.ndarray
    y: np.ndarray
    held_out_x: np.ndarray
    held_out_y: np.ndarray

    def loss(self, values: np.ndarray) -> float:
        """Compute the default loss of a baseline on the rows held out."""
        return ab.baseline_loss(self.booster, self.held_out_x, self.held_out_y, absence=ab.Baseline(values))


def fit(case: Case) -> Fitted:
    """Fit a classifier to columns that interact in pairs and triples."""
    random = np.random.default_rng(0)
    held_out = min(HELD_OUT, case.rows)
    data = random.normal(size=(case.rows + held_out, case.columns))
    used = data[:, : min(case.columns, 30)]
    score = used[:, 0] * used[:, 1] + np.maximum(used[:, 2], used[:, 3])
    score = score + used.sum(1) / 5 + used[:, -1] * used[:, -2] * used[:, -3]
    classes = (score + random.logistic(scale=0.5, size=len(score)) > np.median(score)).astype(int)
    booster = lightgbm.LGBMClassifier(n_estimators=case.trees, verbose=-1, n_jobs=1, random_state=0)
    booster.fit(data[: case.rows], classes[: case.rows])
    return Fitted(booster, data[: case.rows], classes[: case.rows], data[case.rows :], classes[case.rows :])


def learn(model: Any, fitted: Fitted, seconds: float | None, quick: bool) -> tuple[ab.LearnedBaseline, float]:
    """Learn a baseline; return it with the CPU seconds that it took."""
    settings = ab.LearningOptions(samples=32, rows_per_step=2**8) if quick else None
    began = time.process_time()
    learned = ab.learn_baseline(model, fitted.x, fitted.y, seconds=seconds, options=settings)
    return learned, time.process_time() - began


def compare(case: Case, quick: bool) -> Row:
    """Learn in both ways, and compare times and losses."""
    fitted = fit(case)
    learned, seconds = learn(fitted.booster, fitted, None, quick)
    black_box = ab.from_numpy(fitted.booster.predict_proba, probabilities=True)
    searched, black_box_seconds = learn(black_box, fitted, BLACK_BOX_SECONDS, quick)
    usual = {"mean": fitted.x.mean(0), "median": np.median(fitted.x, 0), "zero": np.zeros(case.columns)}
    usual_losses = {f"{name}, held-out loss": fitted.loss(values) for name, values in usual.items()}
    loss = fitted.loss(learned.values.numpy())
    good = loss <= min(usual_losses.values())
    return {
        "columns": case.columns,
        "trees": case.trees,
        "from leaves, CPU s": seconds,
        "black box, CPU s": black_box_seconds,
        "from leaves, held-out loss": loss,
        "black box, held-out loss": fitted.loss(searched.values.numpy()),
        **usual_losses,
        "goals": f"under {GOAL:g} s, {verdict(seconds < GOAL)}; no usual baseline better, {verdict(good)}",
    }


def main() -> None:
    """Measure, print and write."""
    chosen = options(__doc__, "one small booster, some seconds").parse_args()
    torch.set_num_threads(1)
    machine = describe_machine()
    small = fit(QUICK[0])
    learn(small.booster, small, None, quick=True)  # compiles the loops
    rows = [compare(case, chosen.quick) for case in (QUICK if chosen.quick else FULL)]
    note = (
        "CPU seconds of one thread. The black box is the same booster as a function, whose search ends after "
        f"{BLACK_BOX_SECONDS:g} s. Losses: the default loss on rows that were not learned from, lower is better."
    )
    table = Table("Learning from leaves against the search of a black box", note, rows)
    print_table(table)
    write("tree_learning", "Learning for models of trees", machine, [table], chosen)


if __name__ == "__main__":
    main()
