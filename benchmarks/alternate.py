"""Compare the speed of two versions of the library, row by row of the benchmarks, in alternating runs.

    git worktree add ../before COMMIT                      # or: git archive COMMIT | tar -x -C ../before
    python benchmarks/alternate.py ../before .             # some hours; writes results/alternate.md and .json
    python benchmarks/alternate.py ../before . --quick --runs 2 --output DIR     # a smoke test of a minute

The benchmarks of this checkout run with either version, in turns, and each round starts with the other version.
Figures in which less is better are compared: times, peak memory, and ratios to bare forward passes. For every row,
the ratio of the second version to the first is computed within each round. The table has the geometric mean of these
ratios and its interval of 95 % by Student's t over the rounds.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, TypeAlias

from scipy.stats import t as student

from result_tables import HERE, Row, Table, describe_machine, options, print_table, verdict, write

GOAL = 1.05  # the upper end of no interval is to lie above

BENCHMARKS = ("exact", "learning")

# The columns of each table that say what a row measures, and those in which less is better.
KEYS = ("players", "samples", "model", "task", "peer", "problem")
COSTS = (
    "absentia, ms",
    "ratio of minima",
    "absentia, s",
    "transform, ms",
    "peak extra memory, MB",
    "default, CPU s",
)

# A row of a table by the benchmark, the table's title, the cells that say what is measured, and the column.
RowName: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class Version:
    """A checkout of the library."""

    name: str
    sources: Path

    def run(self, benchmark: str, quick: bool) -> dict[RowName, float]:
        """Run a benchmark of this checkout with the library of that one; return its figures."""
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(HERE / f"{benchmark}.py"), "--output", folder]
            if quick:
                command.append("--quick")
            paths = os.pathsep.join([str(self.sources), str(HERE.parent)])
            environment = os.environ | {"PYTHONPATH": paths}
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            tables = json.loads((Path(folder) / f"{benchmark}.json").read_text())["tables"]
        return read_figures(benchmark, tables)


def read_figures(benchmark: str, tables: Sequence[Mapping[str, Any]]) -> dict[RowName, float]:
    """Return the figures in which less is better, by the name of their row."""
    figures: dict[RowName, float] = {}
    for table in tables:
        for row in table["rows"]:
            measured = ", ".join(f"{key} {row[key]}" for key in KEYS if row.get(key) is not None)
            for column in COSTS:
                if row.get(column) is not None:
                    figures[benchmark, table["title"], measured, column] = row[column]
    return figures


def find_sources(checkout: str) -> Path:
    """Return the folder of a checkout that holds the package; raise an error if there is none."""
    sources = Path(checkout).resolve() / "src"
    if not (sources / "absentia" / "__init__.py").exists():
        raise SystemExit(f"A checkout must hold src/absentia. Got {checkout} instead.")
    return sources


def check_version(version: Version) -> None:
    """Raise an error unless a process with this path imports the package from this checkout."""
    command = [sys.executable, "-c", "import absentia; print(absentia.__file__)"]
    environment = os.environ | {"PYTHONPATH": str(version.sources)}
    imported = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()
    if not Path(imported).is_relative_to(version.sources):
        raise SystemExit(f"{version.name} must be imported from {version.sources}. Got {imported} instead.")


def ratio_with_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of the ratios of pairs, and the ends of its interval of 95 %.

    >>> ratio, low, high = ratio_with_interval([1.0, 2.0, 4.0], [2.0, 4.0, 8.0])
    >>> round(ratio, 6), round(low, 6), round(high, 6)
    (2.0, 2.0, 2.0)
    """
    logarithms = [math.log(late / early) for early, late in zip(before, after, strict=True)]
    centre = mean(logarithms)
    quantile = float(student.ppf(0.975, len(logarithms) - 1))
    margin = quantile * stdev(logarithms) / math.sqrt(len(logarithms))
    return math.exp(centre), math.exp(centre - margin), math.exp(centre + margin)


def alternate(
    versions: Sequence[Version], benchmarks: Sequence[str], runs: int, quick: bool
) -> dict[RowName, tuple[list[float], list[float]]]:
    """Return the figures of both versions by row, one from each round."""
    figures: dict[RowName, tuple[list[float], list[float]]] = {}
    for number in range(runs):
        order = [0, 1] if number % 2 == 0 else [1, 0]
        for benchmark in benchmarks:
            for which in order:
                print(f"round {number + 1} of {runs}: {benchmark}, {versions[which].name}", file=sys.stderr)
                for name, figure in versions[which].run(benchmark, quick).items():
                    figures.setdefault(name, ([], []))[which].append(figure)
    return figures


def compare(name: RowName, before: Sequence[float], after: Sequence[float]) -> Row:
    """Return the row of a table that compares both versions."""
    benchmark, title, measured, column = name
    ratio, low, high = ratio_with_interval(before, after)
    return {
        "benchmark": benchmark,
        "table": title,
        "row": measured,
        "figure": column,
        "before": mean(before),
        "after": mean(after),
        "ratio": ratio,
        "low": low,
        "high": high,
        "goal": f"high ≤ {GOAL}",
        "verdict": verdict(high <= GOAL),
    }


def main() -> None:
    """Run both versions in turns, print and write."""
    parser = options(__doc__, "small cases, a minute")
    parser.add_argument("before", help="the checkout to compare with")
    parser.add_argument("after", help="the checkout that is compared")
    parser.add_argument("--runs", type=int, default=10, help="rounds, at least 2 (default: 10)")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, help="the benchmarks to run")
    chosen = parser.parse_args()
    if chosen.runs < 2:
        parser.error("--runs must be at least 2, because the interval is over rounds.")
    machine = describe_machine()
    versions = [Version("before", find_sources(chosen.before)), Version("after", find_sources(chosen.after))]
    for version in versions:
        check_version(version)
    figures = alternate(versions, chosen.only, chosen.runs, chosen.quick)
    rows = [compare(name, *both) for name, both in figures.items()]
    note = f"{chosen.runs} rounds. The ratio is that of the second version to the first; below 1 it is faster."
    table = Table("The second version against the first", note, rows)
    print_table(table)
    write("alternate", "Speed of two versions", machine, [table], chosen)


if __name__ == "__main__":
    main()
