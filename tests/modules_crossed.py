"""Count what one call of the library runs through: ``python tests/modules_crossed.py``.

Explaining one sample, auditing one sample, and learning from a few are traced: modules, calls of functions, checks
and conversions of what users pass, and calls of the model itself. Absences are traced as instances and as words.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import absentia as ab

ROOT = Path(ab.__file__).parent

# Comprehensions and generator expressions have frames of their own, but nobody reads them as calls.
NOT_CALLS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class CountingModel(nn.Module):
    """A small classifier that counts its calls and their rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.calls = 0
        self.rows = 0

    def forward(self, rows: Tensor) -> Tensor:
        self.calls += 1
        self.rows += len(rows)
        return self.layers(rows)


# What checks or converts the arguments of a call. Nothing is to be checked or converted twice.
CHECKS = ("encode_inputs", "as_model", "check_columns", "check_rows", "as_tensor", "class_numbers", "check_samples")


@dataclass(frozen=True)
class Walk:
    """What ran during a call: modules of the library, and how often each of its functions, by name, was called.

    A function that yields counts once for each value.
    """

    modules: frozenset[str]
    functions: Counter[str]

    @property
    def frames(self) -> int:
        """The calls of functions within the library."""
        return self.functions.total()


def trace(call: Callable[[], object]) -> Walk:
    """Return the walk of a call."""
    modules: set[str] = set()
    functions: Counter[str] = Counter()

    def note(frame, event, argument):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)):
            return
        modules.add(str(Path(code.co_filename).relative_to(ROOT)))
        if code.co_name not in NOT_CALLS:
            functions[code.co_name] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(frozenset(modules), functions)


def calls(model: nn.Module) -> dict[str, Callable[[], object]]:
    """Return the calls that most users make, on one sample, or on a table to learn from."""
    table = torch.rand(12, 4, generator=torch.Generator().manual_seed(0))
    sample = table[:1]
    labels = torch.arange(12) % 3
    label = labels[:1]
    baseline = ab.Baseline.mean(table)
    methods = {"mean": baseline, "zero": ab.Baseline(0.0)}
    words = ["mean", "median", "zero", "marginal"]
    options = ab.LearningOptions(steps=2, rows_per_comparison=256)
    return {
        "explain": lambda: ab.explain(model, sample, label, absence=baseline),
        "learn": lambda: ab.learn_baseline(model, table, labels, options=options),
        "audit": lambda: ab.audit(model, sample, label, methods, data=table, draws=2),
        "explain, word": lambda: ab.explain(model, sample, label, absence="mean", data=table),
        "audit, words": lambda: ab.audit(model, sample, label, words, data=table, draws=2),
    }


def measure(name: str) -> tuple[Walk, CountingModel]:
    """Trace one of the calls, on a model of its own; return the walk and the model with its counts."""
    torch.manual_seed(0)
    model = CountingModel()
    return trace(calls(model)[name]), model


def main() -> None:
    """Print a table of the calls, and the modules that each crosses."""
    columns = ["call", "modules", "frames", *CHECKS, "calls of the model", "rows of the model"]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    walks = {name: measure(name) for name in calls(CountingModel())}
    for name, (walk, model) in walks.items():
        checks = [walk.functions[check] for check in CHECKS]
        counts = (len(walk.modules), walk.frames, *checks, model.calls, model.rows)
        print(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |")
    for name, (walk, _) in walks.items():
        print(f"\n{name}: {', '.join(sorted(walk.modules))}")


if __name__ == "__main__":
    main()
