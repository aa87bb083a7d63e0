"""The figures of an audit as a table for the terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

from jaxtyping import Shaped
from torch import Tensor

# The columns that are shown: their heads, the figures, and what they are multiplied by.
_COLUMNS = (
    ("R", "R", 1),
    ("removed %", "removed", 100),
    ("Σ|U|", "strength", 1),
    ("salient", "salient", 1),
    ("terms", "terms", 1),
    ("low orders %", "low_orders", 100),
    ("v(∅)", "empty_value", 1),
    ("agreement", "agreement", 1),
)


def text_table(
    names: Sequence[str], columns: Mapping[str, Shaped[Tensor, " methods"]], order: Sequence[int]
) -> list[str]:
    r"""Lay figures out in lines, a method each, in a given order; errors stand beside them.

    >>> import torch
    >>> figures = {key: torch.tensor([0.5]) for _, key, _ in _COLUMNS}
    >>> print("\n".join(text_table(["zero"], figures, [0])))
          R    removed %  Σ|U|  salient  terms  low orders %  v(∅)  agreement
    zero  0.5  50         0.5   0.5      0.5    50            0.5   0.5
    """
    return align(table_cells(names, columns, order))


def table_cells(
    names: Sequence[str], columns: Mapping[str, Shaped[Tensor, " methods"]], order: Sequence[int]
) -> list[list[str]]:
    """Write the cells of that table, heads first."""
    rows = [["", *(head for head, _, _ in _COLUMNS)]]
    for number in order:
        cells = [
            with_error(
                factor * float(columns[key][number]),
                factor * float(columns[f"{key}_error"][number]) if f"{key}_error" in columns else math.nan,
            )
            for _, key, factor in _COLUMNS
        ]
        rows.append([names[number], *cells])
    return rows


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Pad cells so that columns stand below each other.

    >>> align([["", "R"], ["zero", "1"]])
    ['      R', 'zero  1']
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def with_error(value: float, error: float) -> str:
    """Write a figure with its error, both to the error's second digit; without one, to three digits.

    >>> with_error(0.12345, 0.0234), with_error(1234.5, 200.0), with_error(2.0, math.nan), with_error(math.nan, 1.0)
    ('0.123 ± 0.023', '1230 ± 200', '2', '–')
    """
    if math.isnan(value):
        return "–"
    if math.isnan(error):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    if error == 0:
        return f"{value:.4g} ± 0"
    decimals = 1 - math.floor(math.log10(error))
    if decimals <= 0:
        return f"{round(value, decimals):.0f} ± {round(error, decimals):.0f}"
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def fold(line: str, width: int = 118) -> str:
    """Break a sentence that is too long for the terminal; what follows is indented. Tables are left alone.

    >>> print(fold("  one two three", width=9))
      one two
        three
    """
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return line if "  " in line.strip() else textwrap.fill(line, width, subsequent_indent=indent)
