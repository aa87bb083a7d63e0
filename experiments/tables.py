"""Tables of results: printed in the terminal, and written as Markdown and JSON."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table as RichTable

from absentia import __version__

LONG_NOTE = 600  # characters
HOW = "How it was measured"


@dataclass
class ResultTable:
    """A table with a title, a note on how it was measured, and rows of cells."""

    title: str
    columns: Sequence[str]
    note: str = ""
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """Add a row; format numbers first."""
        self.rows.append([str(cell) for cell in cells])

    def show(self, console: Console) -> None:
        """Print it."""
        table = RichTable(*self.columns)
        for row in self.rows:
            table.add_row(*row)
        console.print("", f"[bold]{self.title}[/bold]", table, self.note, sep="\n")

    @property
    def sentences(self) -> list[str]:
        """The sentences of a long note, which is a list that readers open; of a short one, none.

        >>> ResultTable("", (), "Short. It is read at once.").sentences
        []
        """
        return re.split(r"(?<=\.) (?=[A-Z])", self.note) if len(self.note) > LONG_NOTE else []

    def markdown(self, level: int = 2) -> str:
        """Format it as Markdown, below a heading of this level; a long note follows the table, folded."""
        lines = [f"{'#' * level} {self.title}", "", *([] if self.sentences else [self.note, ""])]
        lines += [markdown_line(self.columns), "|" + "---|" * len(self.columns)]
        lines += [markdown_line(row) for row in self.rows]
        if self.sentences:
            items = [f"- {sentence}" for sentence in self.sentences]
            lines += ["", f"<details><summary>{HOW}</summary>", "", *items, "", "</details>"]
        return "\n".join(lines) + "\n"


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return a mean and its standard error.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    numbers = torch.tensor(values, dtype=torch.float64)
    return float(numbers.mean()), float(numbers.std(correction=min(1, len(values) - 1))) / len(values) ** 0.5


def plus_minus(value: float, error: float | None, form: str = ".3g") -> str:
    """Write a figure with its standard error, if there is one.

    >>> plus_minus(0.2, 0.0312), plus_minus(0.2, None), plus_minus(99.5, 0.25, ".1f")
    ('0.2 ± 0.031', '0.2', '99.5 ± 0.2')
    """
    if error is None:
        return f"{value:{form}}"
    of_error = form if form.endswith("f") else ".2g"
    return f"{value:{form}} ± {error:{of_error}}"


def markdown_line(cells: Sequence[str]) -> str:
    r"""Format a row of a table in Markdown.

    >>> markdown_line(["a", "|U|"])
    '| a | \\|U\\| |'
    """
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write_results(folder: Path, name: str, command: str, tables: Sequence[ResultTable]) -> Path:
    """Write tables to ``name``.md and ``name``.json in a folder, and return the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    head = [
        f"# Reproduction: {name}",
        "",
        f"Written by `{command}`; not to be edited. absentia {__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {torch.get_num_threads()} threads.",
        "",
    ]
    path = folder / f"{name}.md"
    path.write_text("\n".join(head) + "\n" + "\n".join(table.markdown() for table in tables))
    content = [{"title": t.title, "note": t.note, "columns": list(t.columns), "rows": t.rows} for t in tables]
    (folder / f"{name}.json").write_text(
        json.dumps({"command": command, "tables": content}, indent=1, ensure_ascii=False)
    )
    return path
