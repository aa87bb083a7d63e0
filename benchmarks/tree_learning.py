"""Measure learning for models of trees: from their leaves, and by running them as a black box.

    python benchmarks/tree_learning.py                       # some minutes; writes results/tree_learning.md and .json
    python benchmarks/tree_learning.py --quick --output DIR  # a smoke test of some seconds

Boosters are fitted with LightGBM: to the census data, whose folder ABSENTIA_DATA names, or to made-up data of the
same size if there is none; and to made-up data of 60 columns. A small model is learned first, so that compiling loops
is not timed. Losses are those of the default loss on rows that were not learned from, with the same categories: white
noise and the scale of the loss depend on them.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import torch

import absentia as ab
from result_tables import Row, Table, describe_machine, options, print_table, verdict, write

GOAL = 20.0  # CPU seconds from leaves
BLACK_BOX_SECONDS = 240.0  # after which the search of the black box ends with its best values
HELD_OUT = 5000
JUDGED_ROWS = 2**15  # of a step: more than while learning, so that losses depend less on the samples
ROWS = 5000  # of made-up tables

CENSUS_COLUMNS = (
    *("age", "workclass", "weight", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)
# The weight is none of a person, and one column codes the words of the other.
CENSUS_DROPPED = ("weight", "education")


@dataclass(frozen=True)
class Data:
    """A table with two classes: rows to learn from, and rows held out."""

    name: str
    x: np.ndarray
    y: np.ndarray
    held_out_x: np.ndarray
    held_out_y: np.ndarray
    categorical: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fitted:
    """A booster and its data."""

    booster: Any
    data: Data

    def loss(self, values: np.ndarray) -> float:
        """Compute the default loss of a baseline on the rows held out, of which it uses a fifth."""
        data = self.data
        return ab.baseline_loss(
            self.booster,
            data.held_out_x,
            data.held_out_y,
            absence=ab.Baseline(values),
            categorical=data.categorical,
            options=ab.LearningOptions(samples="all", rows_per_step=JUDGED_ROWS),
        )


def census() -> Data | None:
    """Read the census data, 12 columns, of which categories are numbered; None if no folder holds it."""
    folder = Path(os.environ.get("ABSENTIA_DATA", ""), "adult")
    files = [folder / "adult.data", folder / "adult.test"]
    if not all(file.is_file() for file in files):
        return None
    settings = {"names": CENSUS_COLUMNS, "skipinitialspace": True, "comment": "|", "na_values": "?"}
    train, test = (pd.read_csv(file, **settings) for file in files)
    table = pd.concat([train, test], ignore_index=True).drop(columns=list(CENSUS_DROPPED))
    classes = table.pop("income").str.startswith(">50K").to_numpy().astype(int)
    categorical = []
    for number, column in enumerate(table):
        if not pd.api.types.is_numeric_dtype(table[column]):
            categorical.append(number)
            table[column] = table[column].fillna("unknown").astype("category").cat.codes
    x = table.to_numpy(float)
    end = len(train)
    held_out = slice(end, end + HELD_OUT)
    return Data("census", x[:end], classes[:end], x[held_out], classes[held_out], tuple(categorical))


def made_up(columns: int, rows: int = ROWS) -> Data:
    """Make a table whose columns interact in pairs and triples."""
    random = np.random.default_rng(0)
    held_out = min(HELD_OUT, rows)
    data = random.normal(size=(rows + held_out, columns))
    used = data[:, : min(columns, 30)]
    score = used[:, 0] * used[:, 1] + np.maximum(used[:, 2], used[:, 3])
    score = score + used.sum(1) / 5 + used[:, -1] * used[:, -2] * used[:, -3]
    classes = (score + random.logistic(scale=0.5, size=len(score)) > np.median(score)).astype(int)
    return Data("made up", data[:rows], classes[:rows], data[rows:], classes[rows:])


def fit(data: Data, trees: int) -> Fitted:
    """Fit a classifier."""
    booster = lightgbm.LGBMClassifier(n_estimators=trees, verbose=-1, n_jobs=1, random_state=0)
    booster.fit(data.x, data.y, categorical_feature=list(data.categorical))
    return Fitted(booster, data)


def learn(
    model: Any, data: Data, seconds: float | None = None, quick: bool = False
) -> tuple[ab.LearnedBaseline, float]:
    """Learn a baseline; return it with the CPU seconds that it took."""
    settings = ab.LearningOptions(samples=32, rows_per_step=2**8) if quick else None
    began = time.process_time()
    learned = ab.learn_baseline(
        model, data.x, data.y, seconds=seconds, options=settings, categorical=data.categorical
    )
    return learned, time.process_time() - began


def compare(fitted: Fitted, *, with_black_box: bool, quick: bool) -> Row:
    """Learn from leaves, and compare time and loss with the usual baselines, and the black box if asked for."""
    data = fitted.data
    learned, seconds = learn(fitted.booster, data, quick=quick)
    loss = fitted.loss(learned.values.numpy())
    usual = {"mean": data.x.mean(0), "median": np.median(data.x, 0), "zero": np.zeros(data.x.shape[1])}
    usual_losses = {f"{name}, held-out loss": fitted.loss(values) for name, values in usual.items()}
    goals = [f"under {GOAL:g} s: {verdict(seconds < GOAL)}"]
    black_box_seconds = None
    black_box_loss = None
    if with_black_box:
        black_box = ab.from_numpy(fitted.booster.predict_proba, probabilities=True)
        searched, black_box_seconds = learn(black_box, data, BLACK_BOX_SECONDS, quick)
        black_box_loss = fitted.loss(searched.values.numpy())
        goals.append(f"black box no better: {verdict(loss <= black_box_loss)}")
    goals.append(f"no usual baseline better: {verdict(loss <= min(usual_losses.values()))}")
    return {
        "table": data.name,
        "columns": data.x.shape[1],
        "trees": fitted.booster.n_estimators,
        "from leaves, CPU s": seconds,
        "black box, CPU s": black_box_seconds,
        "from leaves, held-out loss": loss,
        "black box, held-out loss": black_box_loss,
        **usual_losses,
        "goals": "; ".join(goals),
    }


def main() -> None:
    """Measure, print and write."""
    chosen = options(__doc__, "one small booster, some seconds").parse_args()
    torch.set_num_threads(1)
    machine = describe_machine()
    small = fit(made_up(columns=4, rows=200), trees=5)
    learn(small.booster, small.data, quick=True)  # compiles the loops
    if chosen.quick:
        rows = [compare(small, with_black_box=True, quick=True)]
    else:
        twelve = census()
        if twelve is None:
            twelve = made_up(columns=12)
        rows = [
            compare(fit(twelve, trees=100), with_black_box=True, quick=False),
            compare(fit(made_up(columns=60), trees=300), with_black_box=False, quick=False),
        ]
    note = (
        "CPU seconds of one thread. The black box is the same booster as a function, whose search ends after "
        f"{BLACK_BOX_SECONDS:g} s. Losses: the default loss on rows that were not learned from, lower is better."
    )
    table = Table("Learning from leaves against the search of a black box", note, rows)
    print_table(table)
    write("tree_learning", "Learning for models of trees", machine, [table], chosen)


if __name__ == "__main__":
    main()
