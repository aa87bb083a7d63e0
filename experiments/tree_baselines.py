"""Experiment on boosted trees: a baseline learned without a gradient, compared with common ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import absentia as ab
from experiments.datasets import TabularData
from experiments.experiment import Experiment, Figures, Found, Run, Verdict
from experiments.tables import ResultTable
from experiments.tabular_baselines import (
    HELD_OUT_ROWS,
    STRONGEST,
    Entry,
    held_out,
    learn,
    measure,
    raw_zero,
    verdict,
)

# Trees are slower than small networks, so a comparison takes fewer rows.
ROWS_PER_COMPARISON = 2**16


def trees(run: Run) -> Found:
    """Learn the baseline of boosted trees on the census data, without a gradient."""
    rows = run.pick(full=HELD_OUT_ROWS["census"], quick=16, tiny=2)
    smaller: dict[str, int] = run.pick(full={}, quick={"learned_from": 32}, tiny={"learned_from": 8, "iterations": 3})
    return compare_trees(run.data("census"), run.seed, rows, **smaller)


def compare_trees(
    data: TabularData, seed: int, rows: int, *, learned_from: int = 128, iterations: int = 100
) -> Found:
    """Train the trees, learn their baseline, and compare what it and common baselines leave."""
    predict, score = train_trees(data, seed, iterations)
    model = ab.from_numpy(predict, probabilities=True)
    options = ab.LearningOptions(gradient=False, samples=learned_from, rows_per_comparison=ROWS_PER_COMPARISON)
    learned = learn(model, data, seed, options, loss="interactions", categorical=data.categorical)
    entries = [
        Entry("zero (raw)", "–", raw_zero(data)),
        Entry("mean", "–", data.x_train.mean(0)),
        Entry("median", "–", data.x_train.median(0).values),
        Entry("learned, interactions", "range", learned.values, learned.evaluations, learned.seconds),
    ]
    x, y = held_out(data, rows, seed)
    left_by_entry = [measure(model, x, y, entry.values) for entry in entries]
    least = min(left.strength for left in left_by_entry[:3])
    note = (
        f"scikit-learn's HistGradientBoostingClassifier, {iterations} iterations, accuracy {score:.2%} on the test "
        f"rows; seed {seed}. Learned without a gradient from {learned_from} samples; categorical columns take values "
        f"that occur. Held-out strength, Σ|U|, on {len(x)} test rows is {left_by_entry[3].strength / least:.3f} of "
        f"the least of the usual three (goal: lower than all, {verdict(left_by_entry[3].strength < least)})."
    )
    columns = ("baseline", "strength", "salient", f"R² of {STRONGEST} strongest", "v(∅)", "evaluations", "seconds")
    table = ResultTable(f"What baselines leave of the signal of boosted trees: {data.name}", columns, note)
    for entry, left in zip(entries, left_by_entry, strict=True):
        table.add(
            entry.label,
            f"{left.strength:.4g}",
            f"{left.salient:.1f}",
            f"{left.r2:.4f}",
            f"{left.empty:+.3f}",
            f"{entry.evaluations:,}",
            f"{entry.seconds:.1f}",
        )
    return Found({"learned": left_by_entry[3].strength, "least of the usual": least}, (table,))


def train_trees(data: TabularData, seed: int, iterations: int) -> tuple[Callable[..., Any], float]:
    """Train boosted trees; return their probabilities as a function, and their accuracy on the test rows."""
    try:
        from sklearn import ensemble
    except ImportError as error:
        raise ab.AbsentiaError("scikit-learn must be installed. Run pip install 'absentia[experiments]'.") from error
    trees = ensemble.HistGradientBoostingClassifier(max_iter=iterations, random_state=seed)
    trees.fit(data.x_train.numpy(), data.y_train.numpy())
    return trees.predict_proba, float(trees.score(data.x_test.numpy(), data.y_test.numpy()))


def judge(figures: Figures) -> Verdict:
    """Ask for less than the usual baselines leave."""
    learned = figures["trees"]["learned"]
    least = figures["trees"]["least of the usual"]
    ours = f"Σ|U| {learned:.4g}, the least of zero, mean and median {least:.4g}"
    if learned < least:
        reason = "Learned by Σ|U| itself, on other rows; one data set and one seed."
    else:
        reason = "Learned values leave no less than the best of the usual three."
    return Verdict("no claim", ours, reason)


EXPERIMENT = Experiment(
    name="trees",
    title="A baseline of boosted trees, learned without a gradient",
    settings="Beyond the paper, whose method needs a gradient. Learned by the loss interactions, Σ|U| of all orders.",
    caveats=("No claim of the paper. Learned by Σ|U| itself, on other rows; one data set and one seed.",),
    parts={"trees": trees},
    beyond=judge,
)
