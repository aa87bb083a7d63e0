"""The reproduction: which experiments there are, and running one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

from absentia.errors import wrong
from absentia.papers import known_baselines, shapley_tables
from absentia.papers.results import ResultTable, write_results

Experiment: TypeAlias = Callable[["Options"], list[ResultTable]]


class Options:
    """What can be chosen of an experiment."""

    def __init__(self, seed: int, workers: int | None, count: int | None, generated: bool) -> None:
        self.seed, self.workers, self.count, self.generated = seed, workers, count, generated


EXPERIMENTS: dict[str, Experiment] = {
    "functions": lambda o: known_baselines.synthetic(o.count, o.seed, o.workers, o.generated),
    "tsang": lambda o: known_baselines.tsang(o.seed, o.workers),
    "shapley": lambda o: [
        *shapley_tables.addition_multiplication_table(o.count, o.seed, o.workers),
        *shapley_tables.worked_tables(),
    ],
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
    stem = name + ("-generated" if options.generated else "")
    path = write_results(folder, stem, f"{command} --seed {options.seed}", tables)
    console.print(f"Written to [bold]{path}[/bold]")
    return path
