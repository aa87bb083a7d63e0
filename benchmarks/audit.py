"""Measure the overhead of an audit: the share of its time that is spent in the model's forward passes.

    python benchmarks/audit.py                          # a few minutes; writes results/audit.md and .json
    python benchmarks/audit.py --quick --output DIR     # a smoke test of a few seconds

An audit evaluates a model on all coalitions of samples, masked samples and noise, and computes effects from the
values. The forward passes are timed inside the model, so they exclude all work of absentia.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import absentia as ab
from result_tables import Row, Table, describe_machine, options, print_table, verdict, write

SHARE_GOAL = 0.85


@dataclass(frozen=True)
class Plan:
    """How large."""

    images: int
    cells: tuple[tuple[int, int], ...]  # the masked cells of a 7 × 7 grid
    draws: int


def rectangle(rows: range, columns: range) -> tuple[tuple[int, int], ...]:
    return tuple((row, column) for row in rows for column in columns)


FULL = Plan(images=20, cells=rectangle(range(2, 5), range(1, 5)), draws=5)
QUICK = Plan(images=3, cells=rectangle(range(3, 5), range(2, 4)), draws=2)


class TimedLeNet(nn.Module):
    """LeNet with random weights, which measures the time of its forward passes."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
        )
        self.seconds = 0.0
        self.rows = 0

    def forward(self, rows: Tensor) -> Tensor:
        """Run the layers, and time them."""
        began = time.perf_counter()
        output: Tensor = self.layers(rows)
        self.seconds += time.perf_counter() - began
        self.rows += len(rows)
        return output


def forward_share(plan: Plan) -> Table:
    """Audit five absences on random images, and compare the total time with the model's."""
    model = TimedLeNet()
    images = torch.rand(plan.images, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    absences: dict[str, ab.Absence] = {
        "zero": ab.Baseline(0.0),
        "mean": ab.Baseline.mean(images),
        "blur": ab.Blur(2.0),
        "marginal": ab.Marginal(images, draws=min(10, plan.images)),
        "half": ab.Baseline(0.5),
    }
    players = ab.Players.grid((1, 28, 28), cells=(7, 7), only=plan.cells)
    began = time.perf_counter()
    found = ab.audit(model, images, None, absences, players=players, draws=plan.draws, evaluations=10**12)  # all
    seconds = time.perf_counter() - began
    share = model.seconds / seconds
    row: Row = {
        "images": plan.images,
        "players": len(players),
        "absences": len(found.methods),
        "draws": plan.draws,
        "evaluations": f"{model.rows:,}",
        "forward passes, s": model.seconds,
        "audit, s": seconds,
        "share": share,
        "goal": f"≥ {SHARE_GOAL}",
        "verdict": verdict(share >= SHARE_GOAL),
    }
    note = (
        "A float32 LeNet with random weights, in a class of its own, on random images of 28 × 28 pixels; players are "
        "central cells of a 7 × 7 grid. audit: R with its companions, for zero, mean, blur, marginal and a constant."
    )
    return Table("The share of forward passes in an audit", note, [row])


def main() -> None:
    chosen = options(__doc__, "a small audit, a few seconds").parse_args()
    machine = describe_machine()
    table = forward_share(QUICK if chosen.quick else FULL)
    print_table(table)
    write("audit", "The audit: speed", machine, [table], chosen)


if __name__ == "__main__":
    main()
