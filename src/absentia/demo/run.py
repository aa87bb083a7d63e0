"""The demonstration from beginning to end: train, learn a baseline, audit every masking method, explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from absentia.absence import Absence, Baseline, Blur, GaussianConditional, Marginal, NearestNeighbours
from absentia.audit import Audit, audit
from absentia.demo.digits import digit_model, digits
from absentia.demo.explanation import show_attribution, show_interactions, show_orders, take_apart
from absentia.demo.task import Task, accuracy
from absentia.demo.tumours import breast_cancer, closest_call, tumour_model
from absentia.learning import LearnedBaseline, learn_baseline
from absentia.plots import plot_explanation


@dataclass(frozen=True)
class Effort:
    """How much of everything the demonstration does; tests do less."""

    learned_from: int = 64
    steps: int = 40
    evaluations: int = 2**14  # in one comparison of baselines; a quarter of it for the slower network
    audited: int = 20
    draws: int = 3


def run(folder: Path, seed: int = 0, console: Console | None = None, effort: Effort | None = None) -> Path:
    """Run the whole demonstration; return the folder of its pictures."""
    console, effort = console or Console(), effort or Effort()
    folder.mkdir(parents=True, exist_ok=True)
    tumours = breast_cancer(seed)
    model = tumour_model(tumours, seed)
    console.print(f"[bold]Tumours.[/bold] {_describe('A small MLP', model, tumours)}")
    learned = learn(console, model, tumours, effort, seed)
    methods = usual_methods(tumours) | {"learned": learned}
    show_audit(console, model, tumours, methods, effort, seed).plot(folder / "audit-tumours.png")
    explain_one(console, model, tumours, learned, folder / "explanation.png")
    images = digits(seed)
    network = digit_model(images, seed)
    console.print(f"\n[bold]Digits.[/bold] {_describe('A small convolutional network', network, images)}")
    learned = learn(console, network, images, replace(effort, evaluations=max(2**8, effort.evaluations // 4)), seed)
    methods = usual_methods(images) | {"blur": Blur(1.0), "learned": learned}
    show_audit(console, network, images, methods, effort, seed).plot(folder / "audit-digits.png")
    console.print(f"\nPictures are in [bold]{folder}[/bold]: explanation.png, audit-tumours.png, audit-digits.png.")
    return folder


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


def explain_one(console: Console, model: nn.Module, task: Task, absence: Absence, picture: Path) -> None:
    """Take the closest call apart, with the learned baseline, and draw it."""
    number = closest_call(model, task)
    kind = task.class_names[int(task.y_test[number])]
    console.print(f"\nSample {number}, {kind}, is the model's closest call.")
    interactions, attribution = take_apart(console, model, task, number, absence)
    show_interactions(console, interactions)
    show_attribution(console, attribution)
    show_orders(console, interactions)
    title = f"sample {number}, {kind}: {interactions.readout}"
    plot_explanation(interactions, attribution, title=title).savefig(picture, dpi=120)
