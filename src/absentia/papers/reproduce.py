"""The reproduction: which experiments there are, and running one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

from absentia.errors import wrong
from absentia.papers import (
    known_baselines,
    masking_methods,
    shapley_tables,
    tabular_audits,
    tabular_baselines,
    tree_baselines,
)
from absentia.papers.results import ResultTable, write_results

Experiment: TypeAlias = Callable[["Options"], list[ResultTable]]


@dataclass(frozen=True)
class Options:
    """What can be chosen of an experiment; what does not apply to one is passed over."""

    seed: int = 0
    workers: int | None = None
    count: int | None = None
    generated: bool = False
    epochs: int | None = None  # of the published schedule


EXPERIMENTS: dict[str, Experiment] = {
    "functions": lambda o: known_baselines.synthetic(o.count, o.seed, o.workers, o.generated),
    "tsang": lambda o: known_baselines.tsang(o.seed, o.workers),
    "shapley": lambda o: [
        *shapley_tables.addition_multiplication_table(o.count, o.seed, o.workers),
        *shapley_tables.worked_tables(),
    ],
    "census": lambda o: [
        *tabular_baselines.tabular_table("census", o.seed, o.epochs),
        *tabular_baselines.starts_table("census", o.seed),
        *tree_baselines.trees_table(o.seed),
    ],
    "credit": lambda o: [
        *tabular_baselines.tabular_table("credit", o.seed, o.epochs),
        *tabular_baselines.starts_table("credit", o.seed),
    ],
    "audits": lambda o: tabular_audits.audit_tables(o.seed),
    "mnist": lambda o: masking_methods.masking_tables("mnist", o.seed),
    "cifar10": lambda o: masking_methods.masking_tables("cifar10", o.seed),
}


def run(name: str, folder: Path, options: Options, console: Console | None = None) -> Path:
    """Run an experiment, show its tables and write them."""
    if name not in EXPERIMENTS:
        raise wrong("experiment", f"be one of {', '.join(EXPERIMENTS)}", repr(name))
    tables = EXPERIMENTS[name](options)
    console = console or Console()
    for table in tables:
        table.show(console)
    command = f"absentia reproduce {name}" + (" --generated" if options.generated else "")
    command += "" if options.count is None else f" --count {options.count}"
    command += "" if options.epochs is None else f" --epochs {options.epochs}"
    stem = name + ("-generated" if options.generated else "")
    path = write_results(folder, stem, f"{command} --seed {options.seed}", tables)
    console.print(f"Written to [bold]{path}[/bold]")
    return path
