"""Numbers in words, and tables in text and HTML."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape

_TABLE = "border-collapse:collapse;font-size:90%;margin:0.3em 0"

_HEAD = "text-align:left;padding:0.15em 0.8em 0.15em 0;border-bottom:1px solid #999"

_CELL = "text-align:left;padding:0.15em 0.8em 0.15em 0;vertical-align:top"


def count_of(number: int, what: str) -> str:
    """Return a number with its noun, in the plural where needed: 1,200 samples."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def written(value: float, digits: int = 3, *, plus: bool = False) -> str:
    """Write a number for a reader: rounded to digits, in full up to a million, with a true minus sign."""
    if not math.isfinite(value):
        return "–"
    form = ".0f" if 10**digits <= abs(value) < 1e6 else f".{digits}g"
    return format(value, f"{'+' if plus else ''}{form}").replace("-", "−")


def written_alike(values: Sequence[float], digits: int = 4, *, plus: bool = False) -> list[str]:
    """Write numbers for a reader to the same decimal place: the digits of the largest; less than that is 0."""
    most = max((abs(value) for value in values), default=0.0)
    decimals = digits - 1 - math.floor(math.log10(most)) if most > 0 else 0
    rounded = [round(value, decimals) for value in values]
    while decimals > 0 and all(round(value, decimals - 1) == value for value in rounded):
        decimals -= 1
    plain, sign = 0 <= decimals <= digits + 2, "+" if plus else ""
    texts = [format(one, f"{sign}.{decimals}f") if plain else written(one, digits, plus=plus) for one in rounded]
    return [text.replace("-", "−") if one else "0" for one, text in zip(rounded, texts, strict=True)]


def percent(share: float) -> str:
    """Write a share as a whole number of hundredths."""
    return f"{100 * share:.0f} %"


def with_error(value: float, error: float) -> str:
    """Write a figure and its error to the error's second digit; an error below a millionth is written as 0."""
    if math.isnan(value) or math.isnan(error):
        return written(value)
    if error <= 1e-6 * abs(value):
        return f"{written(value, 4)} ± 0"
    decimals = 1 - math.floor(math.log10(error))
    return " ± ".join(f"{round(part, decimals):.{max(decimals, 0)}f}" for part in (value, error)).replace("-", "−")


def align(rows: Sequence[Sequence[str]], indent: int = 0) -> list[str]:
    """Pad cells so that columns line up."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [" " * indent + line for line in lines]


def fold(line: str, width: int = 118) -> str:
    """Wrap a long sentence and indent what follows; leave lines of a table as they are."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return line if "  " in line.strip() else textwrap.fill(line, width, subsequent_indent=indent)


def html_table(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table of cells, which are escaped."""
    head = "".join(f'<th style="{_HEAD}">{escape(str(cell))}</th>' for cell in heads)
    lines = ["".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="{_TABLE}">' + (f"<tr>{head}</tr>" if heads else "") + f"{body}</table>"


def html_result(
    title: str, facts: Mapping[str, object], *tables: Sequence[Sequence[object]], notes: Sequence[str] = ()
) -> str:
    """Join a title, named facts, tables of rows, the first of which holds the heads, and notes."""
    shown = html_table([], list(facts.items())) if facts else ""
    parts = [html_table(heads, rows) for heads, *rows in tables]
    said = "".join(f'<p style="margin:0.2em 0">{escape(note)}</p>' for note in notes)
    return f"<div><strong>{escape(title)}</strong>{shown}{''.join(parts)}{said}</div>"
