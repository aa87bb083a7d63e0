"""Measure learning: the time of the default call, and of the search by sweeps that used to be the default.

    python benchmarks/learning.py                          # a few minutes; writes results/learning.md and .json
    python benchmarks/learning.py --quick --output DIR     # a smoke test of a few seconds

Both learn from the same training samples, one after the other, with one thread. The reported loss is the default loss
on held-out samples. The sweeps are stopped after six times the default call's time, and their best values so far
count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
from sklearn.datasets import load_digits, load_wine
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import absentia as ab
from result_tables import Row, Table, describe_machine, options, print_table, verdict, write

GOAL = 5.0  # times faster
LIMIT = 6.0  # the time of sweeps, as a multiple of the default call's


@dataclass(frozen=True)
class Problem:
    """A trained network with samples to learn from, and held-out samples."""

    name: str
    model: nn.Module
    x: Tensor
    y: Tensor
    train: int
    players: ab.Players | None
    seconds_goal: float

    def loss(self, baseline: Tensor) -> float:
        """Compute the default loss on the held-out samples."""
        absence = ab.Baseline(baseline)
        held = slice(self.train, None)
        return ab.baseline_loss(self.model, self.x[held], self.y[held], absence=absence, players=self.players)


def train(model: nn.Module, x: Tensor, y: Tensor, rate: float, epochs: int, batch: int) -> nn.Module:
    """Train a network by Adam."""
    optimiser = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            optimiser.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()
    return model.eval()


def wine() -> Problem:
    """Return a small network on 13 columns."""
    data = load_wine()
    order = torch.randperm(len(data.data))
    x = torch.tensor(data.data).float()[order]
    y = torch.tensor(data.target)[order]
    x = (x - x.mean(0)) / x.std(0)
    mlp = nn.Sequential(nn.Linear(13, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 3))
    return Problem("wine, 13 columns", train(mlp, x[:120], y[:120], 5e-3, 150, 120), x, y, 120, None, 20)


def digits() -> Problem:
    """Return a small convolutional network on images of 8 × 8 pixels, in 12 cells."""
    data = load_digits()
    x = torch.tensor(data.images).float()[:, None] / 16
    y = torch.tensor(data.target)
    cells = torch.arange(8)[:, None] // 2 * 3 + torch.arange(8) * 3 // 8
    cnn = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(256, 10)),
    )
    model = train(cnn, x[:1400], y[:1400], 3e-3, 15, 32)
    return Problem("digits, 12 cells", model, x, y, 1400, ab.Players.segments(cells[None]), 60)


def compare(problem: Problem, quick: bool) -> Row:
    """Learn with the default call and with sweeps, and compare times and losses."""
    few = ab.LearningOptions(steps=4, rows_per_step=2**9) if quick else None
    swept = ab.LearningOptions(polish=True)
    if quick:
        swept = ab.LearningOptions(polish=True, steps=2, samples=4, rows_per_comparison=2**8)
    x = problem.x[: problem.train]
    y = problem.y[: problem.train]
    row: Row = {"problem": problem.name}
    ways: dict[str, dict[str, Any]] = {"default": {"options": few}}
    ways["sweeps"] = {"loss": "interactions", "options": swept}
    limit: float | None = None
    for name, settings in ways.items():
        began = time.perf_counter()
        began_cpu = time.process_time()
        learned = ab.learn_baseline(problem.model, x, y, players=problem.players, seconds=limit, **settings)
        limit = LIMIT * (time.perf_counter() - began)
        row |= {
            f"{name}, CPU s": time.process_time() - began_cpu,
            f"{name}, held-out loss": problem.loss(learned.values),
        }
    row["mean, held-out loss"] = problem.loss(x.mean(0))
    ratio = float(row["sweeps, CPU s"]) / float(row["default, CPU s"])  # type: ignore[arg-type]
    lower = float(row["default, held-out loss"]) <= float(row["sweeps, held-out loss"])  # type: ignore[arg-type]
    quick_enough = float(row["default, CPU s"]) < problem.seconds_goal  # type: ignore[arg-type]
    goal = f"under {problem.seconds_goal:g} s, {verdict(quick_enough)}"
    return row | {"times faster": ratio, "goals": f"{goal}; {GOAL:g} times, {verdict(ratio >= GOAL and lower)}"}


def main() -> None:
    """Measure, print and write."""
    chosen = options(__doc__, "few steps on one problem, some seconds").parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    machine = describe_machine()
    rows = [compare(make(), chosen.quick) for make in ((wine,) if chosen.quick else (wine, digits))]
    note = (
        "CPU seconds of one thread. Losses: the default loss on samples that were not learned from, lower is better."
    )
    table = Table("The default call against sweeps", note, rows)
    print_table(table)
    write("learning", "Learning: speed", machine, [table], chosen)


if __name__ == "__main__":
    main()
