"""The demonstration from beginning to end: train, learn a baseline, audit masking methods, explain, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from absentia.audit import Audit, audit
from absentia.data import seeded
from absentia.demo.tasks import Task, accuracy, closest_call, digit_model, digits, tumour_model, tumours
from absentia.explanation import Explanation, explain
from absentia.learning import LearnedBaseline, LearningOptions, learn_baseline
from absentia.plots.look import name_of_set
from absentia.report import write_report

# The usual masking methods, and for some of them the number of draws or rows.
_WORDS: tuple[str, ...] = ("zero", "mean", "median", "marginal:8", "gaussian:4", "neighbours:4")
_MODELS = (
    ("Tumours", "A small MLP", tumours, tumour_model),
    ("Digits", "A small convolutional network", digits, digit_model),
)
_LEARNING = LearningOptions(samples=64, steps=40, rows_per_comparison=2**14)


@dataclass(frozen=True)
class Effort:
    """How much work the demonstration does; tests do less."""

    learning: LearningOptions = _LEARNING
    audited: int = 20
    draws: int = 3
    explained: int = 6


def run(folder: Path, seed: int = 0, console: Console | None = None, effort: Effort | None = None) -> Path:
    """Run the whole demonstration; return the folder of its report and pictures."""
    console, effort = console or Console(), effort or Effort()
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Audit | Explanation | LearnedBaseline] = {}
    for title, kind, load, train in _MODELS:
        task = load(seed)
        model = train(task, seed)
        of_test = f"{accuracy(model, task):.1%} of {len(task.y_test)} others"
        console.print(f"\n[bold]{title}.[/bold] {kind}, trained on {len(task.x):,} samples, is right on {of_test}.")
        first = closest_call(model, task)
        found, explanation, learned = _study(console, model, task, effort, seed, first)
        found.plot(folder / f"audit-{title.lower()}.png")
        results |= {title: found, f"{title}, explained": explanation, f"{title}, learned": learned}
        if title == "Tumours":
            console.print(f"\nSample {first} is malignant, and the model's closest call.")
            _show_explanation(console, explanation)
            explanation.plot(folder / "explanation.png")
    page = write_report(results, folder / "report.html", title="Two models, and what absence means to them")
    console.print(f"\nPictures are in [bold]{folder}[/bold]: explanation.png, audit-tumours.png, audit-digits.png.")
    console.print("Everything is on one page, which needs no network. Open it in a browser:", end=" ")
    console.print(f"[bold]{page.resolve().as_uri()}[/bold]", soft_wrap=True)
    return folder


def _study(
    console: Console, model: nn.Module, task: Task, effort: Effort, seed: int, first: int
) -> tuple[Audit, Explanation, LearnedBaseline]:
    """Learn a baseline, audit masking methods, and explain a few samples, number ``first`` before the others."""
    options, words, players = effort.learning, _WORDS, task.players
    if players.is_image:  # a slower network; one grey for each cell takes a tenth of the time
        options = replace(options, rows_per_comparison=options.rows_per_comparison // 4, tie=players.labels)
        words = (*words, "blur:1")
    learned = learn_baseline(model, task.x, task.y, players=players, seed=seed, options=options)
    _show(console, "The learned baseline, which leaves the least signal behind:", learned)
    rows = torch.randperm(len(task.x_test), generator=seeded(seed))[: effort.audited]
    absences = {word.partition(":")[0]: word for word in words} | {"learned": learned}
    x, y = task.x_test[rows], task.y_test[rows]
    found = audit(model, x, y, absences, players=players, data=task.x, draws=effort.draws, seed=seed)
    _show(console, "Do masking methods remove the signal, and add none?", found)
    chosen = [first, *(row for row in range(effort.explained) if row != first)][: effort.explained]
    x, y = task.x_test[chosen], task.y_test[chosen]
    return found, explain(model, x, y, absence=learned, players=players), learned


def _show(console: Console, title: str, result: object) -> None:
    console.print(f"\n[bold]{title}[/bold]")
    console.print(repr(result), markup=False, highlight=False, soft_wrap=True)


def _show_explanation(console: Console, explanation: Explanation) -> None:
    """Print the values, the strongest interactions and the Shapley values of the first sample."""
    players, interactions = len(explanation.names), explanation.interactions
    console.print(
        f"\nIts {players} players form {2**players:,} coalitions; absent players have the learned values. All were "
        f"evaluated, with those of {explanation.samples - 1} other samples, in {explanation.record.seconds:.2f} s.\n"
        f"The value, the log-odds of its class, is [bold]{float(explanation.outputs[0]):+.3f}[/bold] with all "
        f"players present and [bold]{float(explanation.base_values[0]):+.3f}[/bold] with all absent."
    )
    if interactions is not None:
        top = [(name_of_set(found.players), str(found.order), found.effect) for found in interactions.top(10)]
        _show_bars(console, "Strongest interactions", ["players together", "order", "effect"], top)
        salient, needed = int(interactions.salient()[0].sum()), int(interactions.sparsity(0.05)[0])
        console.print(
            f"{salient:,} of {2**players:,} are salient (above 5 % of the largest). The {needed:,} strongest "
            f"reproduce all {2**players:,} values to within 5 %."
        )
        shares = [(str(order), share) for order, share in enumerate(interactions.by_order().ratios[0].tolist())]
        _show_bars(console, "Strength by order", ["order", "share of Σ|U|"], shares[1:], ".1%")
    values = zip(explanation.names, explanation.shapley.values[0].tolist(), strict=True)
    _show_bars(console, "Shapley values", ["player", "value"], sorted(values, key=lambda row: -abs(row[1])))


def _show_bars(
    console: Console, title: str, heads: Sequence[str], rows: Sequence[tuple[Any, ...]], form: str = "+.3f"
) -> None:
    """Print a table with a bar for the number at the end of each row."""
    table = Table(*heads, "", title=title, title_justify="left")
    largest = max(abs(row[-1]) for row in rows) or 1.0
    for *cells, value in rows:
        colour = "yellow" if value >= 0 else "blue"
        table.add_row(*cells, f"{value:{form}}", f"[{colour}]{'█' * round(24 * abs(value) / largest)}[/{colour}]")
    console.print("", table)
