"""Experiment on the census and credit networks: how much signal baselines leave.

It compares learned baselines with common ones and with the paper's published schedule. All figures of a baseline come
from one table of values, on test rows that no baseline was learned from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

import absentia as ab
from experiments.datasets import TabularData
from experiments.experiment import Found, Run
from experiments.published_schedule import (
    BOX,
    ORDERS,
    PAPER_DRAWS,
    PAPER_EPOCHS,
    PAPER_SAMPLES,
    PUBLISHED_BATCH,
    RATES,
    TRIAL_SAMPLES,
    choose_rate,
    count_orders,
    entry_box,
    published_schedule,
)
from experiments.tables import ResultTable

Model: TypeAlias = Callable[..., Any]
Loss: TypeAlias = Literal["shapley", "marginal", "interactions"]

LOSSES: tuple[Loss, ...] = ("shapley", "marginal", "interactions")
# A short run with L_Shapley, to compare its cost with that of the published schedule.
ROWS_PER_COMPARISON = 2**18
FRUGAL = "learned, shapley, gradient alone"
FRUGAL_ROWS = 2**14
HELD_OUT_ROWS = {"census": 256, "credit": 8}
EPOCHS = {"census": 10, "credit": 4}  # of the published schedule
STRONGEST = 100
SOBOL_STARTS = 3
COLUMNS = (
    "baseline",
    "box",
    "strength",
    "of mean's",
    "of published",
    "salient",
    f"R² of {STRONGEST} strongest",
    "v(∅)",
    "strength to order λ (Eq. 5)",
    "L_Shapley (Eq. 7)",
    "L_marginal (Eq. 7)",
    "evaluations",
    "seconds",
    "CPU seconds",
)


@dataclass(frozen=True)
class Remains:
    """What a baseline leaves of the signal, on average over rows."""

    strength: float  # Σ|U(S)| over S ≠ ∅
    salient: float
    r2: float
    empty: float  # v(∅)
    low_orders: float  # Σ_{1≤|S|≤λ} |U(S)|
    shapley: float
    marginal: float


@dataclass(frozen=True, eq=False)
class Entry:
    """A baseline to compare: its values, the box they lie in, and the cost of finding them."""

    label: str
    box: str
    values: Float[Tensor, " players"]
    evaluations: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of all cores; independent of other processes


def reconstruction_r2(interactions: ab.Interactions, strongest: int) -> Float[Tensor, " samples"]:
    """Compute R² = 1 − SS_res/SS_tot of all 2ⁿ values rebuilt from v(∅) and the strongest effects.

    >>> reconstruction_r2(ab.harsanyi(ab.ValueTable([0.0, 1.0, 1.0, 5.0])), 3)
    tensor([1.], dtype=torch.float64)
    """
    effects = interactions.effects
    keep = torch.zeros_like(effects, dtype=torch.bool)
    numbers = effects[:, 1:].abs().topk(min(strongest, effects.shape[1] - 1), dim=1).indices + 1
    keep.scatter_(1, numbers, True)
    keep[:, 0] = True
    values = interactions.reconstruct()
    left = (interactions.reconstruct(keep=keep) - values).square_().sum(1)
    total = (values - values.mean(1, keepdim=True)).square_().sum(1)
    # v(∅) alone rebuilds constant values.
    return torch.where(total > 0, 1 - left / total.clamp_min(torch.finfo(total.dtype).tiny), 1.0)


def measure(model: Model, x: Tensor, y: Tensor | None, baseline: Tensor) -> Remains:
    """Compute what a baseline leaves on some rows, from one table of values."""
    table = ab.value_table(ab.MaskedModel(model, x, y, absence=ab.Baseline(baseline.to(x.dtype))))
    interactions = ab.harsanyi(table)
    by_order = interactions.by_order().strength
    orders = count_orders(ORDERS, x.shape[1])
    penalised = range(min(orders + 1, x.shape[1]))  # the orders 0 … λ of Eq. 7
    return Remains(
        strength=float(by_order[:, 1:].sum(1).mean()),
        salient=float(interactions.salient()[:, 1:].sum(1).double().mean()),
        r2=float(reconstruction_r2(interactions, STRONGEST).mean()),
        empty=float(table.values[:, 0].mean()),
        low_orders=float(by_order[:, 1 : orders + 1].sum(1).mean()),
        shapley=float(ab.order_shapley(table, penalised).values.abs().sum((1, 2)).mean()),
        marginal=float(ab.order_marginals(table, penalised).values.sum((1, 2)).mean()),
    )


def held_out(data: TabularData, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw test rows."""
    chosen = torch.randperm(len(data.x_test), generator=torch.Generator().manual_seed(seed))[:rows]
    return data.x_test[chosen], data.y_test[chosen]


def raw_zero(data: TabularData) -> Float[Tensor, " players"]:
    """Return the value 0 of the columns as published, in standardised units."""
    return -data.mean / data.std


def make_options(samples: int, steps: int, compared: int, polish: bool) -> ab.LearningOptions:
    """Return the options of a search."""
    return ab.LearningOptions(samples=samples, steps=steps, rows_per_comparison=compared, polish=polish)


def learn(
    model: Model, data: TabularData, seed: int, options: ab.LearningOptions, **settings: Any
) -> ab.LearnedBaseline:
    """Learn from the training rows."""
    return ab.learn_baseline(model, data.x_train, data.y_train, seed=seed, options=options, **settings)


def timed(
    model: Model, data: TabularData, seed: int, options: ab.LearningOptions, **settings: Any
) -> tuple[ab.LearnedBaseline, float]:
    """Learn from the training rows, and measure the CPU time."""
    began = time.process_time()
    return learn(model, data, seed, options, **settings), time.process_time() - began


def compared_loss(
    model: Model, data: TabularData, loss: Loss, baseline: Tensor, seed: int, options: ab.LearningOptions
) -> float:
    """Compute the loss of a baseline on the samples and coalitions that learning by this seed compares on."""
    return ab.baseline_loss(
        model, data.x_train, data.y_train, absence=ab.Baseline(baseline), loss=loss, options=options, seed=seed
    )


def tabular_part(name: str, run: Run) -> Found:
    """Compare baselines of the "census" or "credit" network, their cost, and where learning ends from several starts.

    The ``epochs`` of the published schedule take a hundred times the evaluations of the short run.
    """
    model = run.network(name, run.seed)
    data = run.data(name)
    epochs = run.pick(full=EPOCHS[name], quick=1, tiny=1)
    rows = run.pick(full=HELD_OUT_ROWS[name], quick=max(2, HELD_OUT_ROWS[name] // 8), tiny=2)
    samples = run.pick(full=PAPER_SAMPLES, quick=16, tiny=4)
    learning: dict[str, Any] = {
        "learned_from": run.pick(full=256, quick=32, tiny=16),
        "steps": run.pick(full=60, quick=6, tiny=2),
        "compared": run.pick(full=ROWS_PER_COMPARISON, quick=2**12, tiny=2**10),
        "polish": run.size != "tiny",
    }
    draws = run.pick(full=PAPER_DRAWS, quick=PAPER_DRAWS // 10, tiny=2)
    figures, tables = compare(model, data, run.seed, epochs, samples, rows, draws=draws, **learning)
    spread, starts = compare_starts(model, data, run.seed, rows, **learning)
    return Found({**figures, "spread over starts": spread}, (*tables, starts))


def compare(
    model: Model,
    data: TabularData,
    seed: int,
    epochs: int,
    samples: int,
    rows: int,
    *,
    draws: int = PAPER_DRAWS,
    learned_from: int = 256,
    steps: int = 60,
    compared: int = ROWS_PER_COMPARISON,
    polish: bool = True,
) -> tuple[dict[str, float], list[ResultTable]]:
    """Measure costs and losses, and make the tables of what each baseline leaves on test rows and of goals."""
    rate = choose_rate(model, data.x_train, data.y_train, seed, samples=min(samples, TRIAL_SAMPLES), draws=draws)
    published = published_schedule(
        model, data.x_train, data.y_train, epochs, rate, seed, samples=samples, draws=draws
    )
    options = make_options(learned_from, steps, compared, polish)
    learned = {loss: timed(model, data, seed, options, loss=loss, bounds=BOX) for loss in LOSSES}
    wide, wide_cpu = timed(model, data, seed, options, loss="interactions", bounds="range")
    short = replace(options, polish=False, rows_per_comparison=FRUGAL_ROWS)
    frugal, frugal_cpu = timed(model, data, seed, short, loss="shapley", bounds=BOX)
    within = f"mean ± {BOX:g} sd"
    entries = [
        Entry("zero (raw)", "–", raw_zero(data)),
        Entry("mean", "–", data.x_train.mean(0)),
        Entry("median", "–", data.x_train.median(0).values),
        Entry("published schedule", within, published.baseline, published.evaluations, published.seconds),
        *(
            Entry(f"learned, {loss}", within, one.values, one.evaluations, one.seconds, cpu)
            for loss, (one, cpu) in learned.items()
        ),
        Entry("learned, interactions", "range", wide.values, wide.evaluations, wide.seconds, wide_cpu),
        Entry(FRUGAL, within, frugal.values, frugal.evaluations, frugal.seconds, frugal_cpu),
    ]
    x, y = held_out(data, rows, seed)
    left_by_entry = [measure(model, x, y, entry.values) for entry in entries]
    course = " → ".join(f"{loss:.4g}" for loss in published.losses)
    note = (
        f"{len(x)} test rows of {data.name}, {x.shape[1]} players, λ = {count_orders(ORDERS, x.shape[1])}, "
        f"seed {seed}; strength: Σ|U(S)| over S ≠ ∅; salient: how many S ≠ ∅ are above 5 % of the row's largest "
        f"effect; means over rows. The published schedule ran {epochs} of the paper's {PAPER_EPOCHS:,} epochs "
        f"over {min(samples, len(data.x_train)):,} samples, a step for every {PUBLISHED_BATCH} of them, at rate "
        f"{rate:g} (the paper prints none: the best of {', '.join(f'{r:g}' for r in RATES)} in ten steps on "
        f"{min(samples, TRIAL_SAMPLES)} samples, not counted here); its mean drawn loss by epoch: {course}. "
        f"Learning used {learned_from} samples."
    )
    table = ResultTable(f"What baselines leave of the signal: {data.name}", COLUMNS, note)
    mean = left_by_entry[1].strength
    schedule = left_by_entry[3].strength
    for entry, one in zip(entries, left_by_entry, strict=True):
        table.add(
            entry.label,
            entry.box,
            f"{one.strength:.4g}",
            f"{one.strength / mean:.3f}",
            f"{one.strength / schedule:.3f}",
            f"{one.salient:.1f}",
            f"{one.r2:.4f}",
            f"{one.empty:+.3f}",
            f"{one.low_orders:.4g}",
            f"{one.shapley:.4g}",
            f"{one.marginal:.4g}",
            f"{entry.evaluations:,}",
            f"{entry.seconds:.1f}",
            f"{entry.cpu_seconds:.1f}",
        )
    goals = _goals(data.name, entries[:-1], left_by_entry[:-1])
    losses = [
        compared_loss(model, data, "shapley", values, seed, options) for values in (published.baseline, frugal.values)
    ]
    fewer = published.evaluations / frugal.evaluations
    goals.add(
        FRUGAL,
        "the published schedule's L_Shapley for ≤ 1/100 of the evaluations that it ran",
        f"{losses[1]:.5g} (the schedule {losses[0]:.5g}) for {frugal.evaluations:,} evaluations, 1/{fewer:,.0f} of "
        f"{published.evaluations:,} in {epochs} epochs",
        verdict(losses[1] <= losses[0] and fewer >= 100),
    )
    # An epoch of fewer samples than the paper's takes as much less.
    epoch = published.seconds / epochs * PAPER_SAMPLES / min(samples, len(data.x_train))
    figures = {
        "seconds of an epoch": epoch,
        "loss of the schedule": losses[0],
        "loss of ours": losses[1],
        "seconds of ours": frugal.seconds,
        "evaluations of the schedule": published.evaluations,
        "evaluations of ours": frugal.evaluations,
    }
    return figures, [table, goals]


def _goals(name: str, entries: Sequence[Entry], left_by_entry: Sequence[Remains]) -> ResultTable:
    """Make the table of goals, without the last one."""
    note = (
        "Σ|U| on the held-out rows. The last goal compares the published schedule's end with that of a short run, "
        f"{FRUGAL_ROWS:,} evaluations a comparison and no sweep, by L_Shapley on training rows that are "
        "the same for both."
    )
    table = ResultTable(f"Goals: {name}", ("baseline", "goal", "measured", "verdict"), note)
    mean = left_by_entry[1].strength
    schedule = left_by_entry[3].strength
    for entry, left in zip(entries[4:], left_by_entry[4:], strict=True):
        label = f"{entry.label} ({entry.box})"
        for goal, ratio, least in (
            ("mean", mean / left.strength, 5),
            ("published schedule", schedule / left.strength, 3),
        ):
            table.add(label, f"Σ|U| ≥ {least} × below the {goal}'s", f"{ratio:.2f} ×", verdict(ratio >= least))
        took = f"{entry.seconds:.1f} s, {entry.cpu_seconds:.1f} CPU seconds"
        table.add(label, "learned in under 60 CPU seconds", took, verdict(entry.cpu_seconds < 60))
    return table


def compare_starts(
    model: Model,
    data: TabularData,
    seed: int,
    rows: int,
    box: float = BOX,
    *,
    learned_from: int = 256,
    steps: int = 60,
    compared: int = ROWS_PER_COMPARISON,
    polish: bool = True,
) -> tuple[float, ResultTable]:
    """Make the table of where learning ends from each start, and return the spread of the losses with it."""
    values = data.x_train.double()
    low, high = entry_box(values, box)
    starts: dict[str, Any] = {"0 (standardised)": 0.0, "mean": "mean"}
    starts["median, within the box"] = values.median(0).values.clamp(low, high)
    sobol = torch.quasirandom.SobolEngine(values.shape[1], scramble=True, seed=seed).draw(SOBOL_STARTS).double()
    starts |= {f"Sobol {number + 1}": low + point * (high - low) for number, point in enumerate(sobol)}
    options = make_options(learned_from, steps, compared, polish)
    ends = {
        label: learn(model, data, seed, options, loss="interactions", start=start, bounds=box)
        for label, start in starts.items()
    }
    best = min(ends.values(), key=lambda end: end.loss)
    losses = [end.loss for end in ends.values()]
    spread = (max(losses) - min(losses)) / min(losses)
    x, y = held_out(data, rows, seed)
    note = (
        f"Learned by interactions within mean ± {box} sd, seed "
        f"{seed}; losses on the same samples; strength, Σ|U|, on {len(x)} test rows. 0 is the mean in "
        f"standardised units. Spread of the final losses: {spread:.1%} (goal: under 10 %, {verdict(spread < 0.1)})."
    )
    columns = ("start", "final loss", "above the best", "held-out strength", "furthest value from the best's, in sd")
    table = ResultTable(f"Where learning ends, by start: {data.name}", (*columns, "evaluations", "seconds"), note)
    spreads = values.std(0, correction=0).clamp_min(torch.finfo(torch.float64).tiny)
    for label, end in ends.items():
        apart = float(((end.values - best.values).abs() / spreads).max())
        left = measure(model, x, y, end.values).strength
        table.add(
            label,
            f"{end.loss:.5g}",
            f"{end.loss / best.loss - 1:.1%}",
            f"{left:.4g}",
            f"{apart:.3f}",
            f"{end.evaluations:,}",
            f"{end.seconds:.1f}",
        )
    return spread, table


def verdict(met: bool) -> str:
    """Return "met" or "missed"."""
    return "met" if met else "missed"
