"""Tables of measurements, which every benchmark prints and writes together with the machine and the command."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import rich.console
import rich.table
import torch

HERE = Path(__file__).parent

Cell: TypeAlias = str | int | float | None
Row: TypeAlias = dict[str, Cell]


@dataclass(frozen=True)
class Table:
    """One part of the results: rows of named cells under a title."""

    title: str
    note: str
    rows: list[Row]


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def describe_machine() -> dict[str, str]:
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    packages = ("absentia", "torch", "numpy", "shapiq", "shap", "captum")
    return {
        "CPU": f"{cpu}, {os.cpu_count()} cores, {torch.get_num_threads()} torch threads",
        "load when the run began": f"{os.getloadavg()[0]:.2f}",
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in packages),
    }


def show(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if 100 <= abs(cell) < math.inf else f"{cell:.3g}"
    return str(cell)


def to_markdown(title: str, command: str, machine: dict[str, str], tables: Sequence[Table]) -> str:
    lines = [f"# {title}", "", f"Written by `{command}`; not to be edited.", ""]
    lines += [f"- {name}: {text}" for name, text in machine.items()]
    for table in tables:
        columns = list(table.rows[0])
        lines += ["", f"## {table.title}", "", table.note, ""]
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(show(row[column]) for column in columns) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def print_table(table: Table) -> None:
    shown = rich.table.Table(*table.rows[0], title=table.title, caption=table.note)
    for row in table.rows:
        shown.add_row(*(show(cell) for cell in row.values()))
    rich.console.Console(width=None if sys.stdout.isatty() else 140).print(shown)


def options(description: str | None, quick: str) -> argparse.ArgumentParser:
    """Read the options of every benchmark: whether to be quick, and where to write."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{quick}; writes only to --output")
    parser.add_argument("--output", type=Path, help=f"the folder to write to (default: {HERE.name}/results)")
    return parser


def write(
    name: str, title: str, machine: dict[str, str], tables: Sequence[Table], chosen: argparse.Namespace
) -> None:
    """Write name.md and name.json if the options ask for it."""
    folder = chosen.output or (None if chosen.quick else HERE / "results")
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", f"{HERE.name}/{name}.py", *sys.argv[1:]])
    (folder / f"{name}.md").write_text(to_markdown(title, command, machine, tables))
    record = {"command": command, "machine": machine, "tables": [asdict(table) for table in tables]}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
