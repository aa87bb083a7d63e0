"""Count the modules of the library that one call runs through: ``python tests/modules_crossed.py``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import absentia as ab

ROOT = Path(ab.__file__).parent


def crossed(call: Callable[[], object]) -> set[str]:
    """Return the modules in which a function ran during a call."""
    seen: set[str] = set()

    def trace(frame, event, argument):
        path = frame.f_code.co_filename
        if path.startswith(str(ROOT)):
            seen.add(str(Path(path).relative_to(ROOT)))

    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def calls() -> dict[str, Callable[[], object]]:
    """Return the three calls that most users make, on a small network and table."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = torch.rand(12, 4), torch.arange(12) % 3
    baseline = ab.Baseline.mean(x)
    options = ab.LearningOptions(steps=2, rows_per_comparison=256)
    return {
        "explain": lambda: ab.explain(model, x, y, absence=baseline),
        "learn": lambda: ab.learn_baseline(model, x, y, options=options),
        "audit": lambda: ab.audit(model, x, y, {"mean": baseline, "zero": ab.Baseline(0.0)}, draws=2),
    }


if __name__ == "__main__":
    for name, call in calls().items():
        found = sorted(crossed(call))
        print(f"{name}: {len(found)} modules: {', '.join(found)}")
