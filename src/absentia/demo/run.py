"""The demonstration from beginning to end: train, learn a baseline, audit every masking method, explain, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from rich.console import Console
from torch import nn

from absentia.absence import Absence, Baseline, Blur, GaussianConditional, Marginal, NearestNeighbours
from absentia.audit import Audit, audit
from absentia.demo.digits import digit_model, digits
from absentia.demo.explanation import describe, show_attribution, show_interactions, show_orders
from absentia.demo.task import Task, accuracy
from absentia.demo.tumours import breast_cancer, closest_call, tumour_model
from absentia.explanation import Explanation, explain
from absentia.learning import LearnedBaseline, learn_baseline
from absentia.report import write_report

Result: TypeAlias = Audit | Explanation | LearnedBaseline


@dataclass(frozen=True)
class Effort:
    """How much of everything the demonstration does; tests do less."""

    learned_from: int = 64
    steps: int = 40
    evaluations: int = 2**14  # in one comparison of baselines; a quarter of it for the slower network
    audited: int = 20
    draws: int = 3
    explained: int = 6


def run(folder: Path, seed: int = 0, console: Console | None = None, effort: Effort | None = None) -> Path:
    """Run the whole demonstration; return the folder of its report and pictures."""
    console, effort = console or Console(), effort or Effort()
    folder.mkdir(parents=True, exist_ok=True)
    results = study_tumours(console, folder, effort, seed) | study_digits(console, folder, effort, seed)
    page = write_report(results, folder / "report.html", title="Two models, and what absence means to them")
    console.print(f"\nPictures are in [bold]{folder}[/bold]: explanation.png, audit-tumours.png, audit-digits.png.")
    console.print("Everything is on one page, which needs no network. Open it in a browser:", end=" ")
    console.print(f"[bold]{page.resolve().as_uri()}[/bold]", soft_wrap=True)
    return folder


def study_tumours(console: Console, folder: Path, effort: Effort, seed: int) -> dict[str, Result]:
    """Train the first model; learn, audit, and explain its closest call and a few others."""
    task = breast_cancer(seed)
    model = tumour_model(task, seed)
    console.print(f"[bold]Tumours.[/bold] {_describe('A small MLP', model, task)}")
    learned = learn(console, model, task, effort, seed)
    found = show_audit(console, model, task, usual_methods(task) | {"learned": learned}, effort, seed)
    found.plot(folder / "audit-tumours.png")
    number = closest_call(model, task)
    rows = [number, *(row for row in range(effort.explained) if row != number)][: effort.explained]
    explanation = explain(model, task.x_test[rows], task.y_test[rows], absence=learned, players=task.players)
    console.print(f"\nSample {number}, {task.class_names[int(task.y_test[number])]}, is the model's closest call.")
    show_explanation(console, explanation)
    explanation.plot(folder / "explanation.png")
    return {"Tumours": found, "Tumours, the closest call first": explanation, "Tumours, learned": learned}


def study_digits(console: Console, folder: Path, effort: Effort, seed: int) -> dict[str, Result]:
    """Train the second model; learn, audit and explain."""
    task = digits(seed)
    network = digit_model(task, seed)
    console.print(f"\n[bold]Digits.[/bold] {_describe('A small convolutional network', network, task)}")
    less = replace(effort, evaluations=max(2**8, effort.evaluations // 4))
    learned = learn(console, network, task, less, seed)
    methods = usual_methods(task) | {"blur": Blur(1.0), "learned": learned}
    found = show_audit(console, network, task, methods, effort, seed)
    found.plot(folder / "audit-digits.png")
    x, y = task.x_test[: effort.explained], task.y_test[: effort.explained]
    explanation = explain(network, x, y, absence=learned, players=task.players)
    return {"Digits": found, "Digits, explained": explanation, "Digits, learned": learned}


def _describe(kind: str, model: nn.Module, task: Task) -> str:
    share = accuracy(model, task)
    return f"{kind}, trained on {len(task.x):,} of them: {share:.1%} of {len(task.y_test)} others are right."


def learn(console: Console, model: nn.Module, task: Task, effort: Effort, seed: int) -> LearnedBaseline:
    """Learn the baseline values that leave the least signal behind."""
    options: dict[str, Any] = {
        "samples": effort.learned_from,
        "steps": effort.steps,
        "evaluations": effort.evaluations,
    }
    if task.x.ndim > 2:  # images: a grey for each cell, as the paper has it, is found in a tenth of the time
        options["tie"] = task.players.labels
    learned = learn_baseline(model, task.x, task.y, players=task.players, seed=seed, **options)
    show(console, "The baseline that leaves the least signal behind, learned:", learned)
    return learned


def show(console: Console, title: str, result: object) -> None:
    """Print a result under a title."""
    console.print(f"\n[bold]{title}[/bold]")
    console.print(repr(result), markup=False, highlight=False, soft_wrap=True)


def usual_methods(task: Task) -> dict[str, Absence]:
    """List the masking methods that people use."""
    return {
        "zero": Baseline(0.0),
        "mean": Baseline.mean(task.x),
        "median": Baseline.median(task.x),
        "marginal": Marginal(task.x, draws=8),
        "Gaussian": GaussianConditional(task.x, draws=4),
        "neighbours": NearestNeighbours(task.x, neighbours=4),
    }


def show_audit(
    console: Console, model: nn.Module, task: Task, methods: Mapping[str, Absence], effort: Effort, seed: int
) -> Audit:
    """Audit every method on test samples, and print the verdict."""
    rows = torch.randperm(len(task.x_test), generator=torch.Generator().manual_seed(seed))[: effort.audited]
    x, y = task.x_test[rows], task.y_test[rows]
    found = audit(model, x, y, methods, players=task.players, data=task.x, draws=effort.draws, seed=seed)
    show(console, "Do masking methods remove the signal, and add none?", found)
    return found


def show_explanation(console: Console, explanation: Explanation) -> None:
    """Print what its first sample is made of."""
    describe(console, explanation)
    if explanation.interactions is not None:
        show_interactions(console, explanation.interactions)
        show_orders(console, explanation.interactions)
    show_attribution(console, explanation.shapley)
