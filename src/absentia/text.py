"""Formatted numbers, and tables in text and HTML."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape

# The styles of a table, its head and its cells: inline, because notebooks drop style sheets.
_TABLE = "border-collapse:collapse;font-size:90%;margin:0.3em 0"

_HEAD = "text-align:left;padding:0.15em 0.8em 0.15em 0;border-bottom:1px solid #999"

_CELL = "text-align:left;padding:0.15em 0.8em 0.15em 0;vertical-align:top"


# Numbers below this are written in full, others with an exponent.
_WRITTEN_IN_FULL = 1e6

# An error below this share of its value is written as 0.
_NO_ERROR = 1e-6

# Times below this many seconds are written with one digit, ...
_SHORT_SECONDS = 1.0

# ... others in the first of these units of which there are fewer than its maximum, or else in days.
_UNITS_OF_TIME = (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48))
_DAY = 86_400


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where needed: 1,200 samples."""
    ending = "" if number == 1 else "s"
    return f"{number:,} {noun}{ending}"


def _true_minus(text: str) -> str:
    """Return a formatted number with a minus sign in place of the hyphen."""
    return text.replace("-", "−")


def written(value: float, digits: int = 3, *, plus: bool = False) -> str:
    """Write a number for a reader: rounded to digits, in full up to a million, with a true minus sign."""
    if not math.isfinite(value):
        return "–"
    sign = "+" if plus else ""
    form = ".0f" if 10**digits <= abs(value) < _WRITTEN_IN_FULL else f".{digits}g"
    return _true_minus(format(value, f"{sign}{form}"))


def written_alike(values: Sequence[float], digits: int = 4, *, plus: bool = False) -> list[str]:
    """Write numbers for a reader to the same decimal place: the digits of the largest; less than that is 0."""
    largest = max((abs(value) for value in values), default=0.0)
    decimals = digits - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
    rounded = [round(value, decimals) for value in values]
    while decimals > 0 and all(round(value, decimals - 1) == value for value in rounded):
        decimals -= 1
    sign = "+" if plus else ""
    needs_no_exponent = 0 <= decimals <= digits + 2
    texts = []
    for value in rounded:
        if value == 0:
            texts.append("0")
        elif needs_no_exponent:
            texts.append(_true_minus(format(value, f"{sign}.{decimals}f")))
        else:
            texts.append(written(value, digits, plus=plus))
    return texts


def percent(share: float) -> str:
    """Write a share as a whole percentage."""
    return f"{100 * share:.0f} %"


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it: 40 s, 34 min, 5 h, 12 days.

    >>> duration(40.4), duration(2040), duration(7e5)
    ('40 s', '34 min', '8 days')
    """
    if not math.isfinite(seconds):
        return "–"
    if seconds < _SHORT_SECONDS:
        return f"{seconds:.1g} s"
    for unit, length, most in _UNITS_OF_TIME:
        if seconds < most * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / _DAY:,.0f} days"


def with_error(value: float, error: float) -> str:
    """Write a figure and its error to the error's second digit; an error below a millionth is written as 0."""
    if math.isnan(value) or math.isnan(error):
        return written(value)
    if error <= _NO_ERROR * abs(value):
        return f"{written(value, 4)} ± 0"
    decimals = 1 - math.floor(math.log10(error))
    shown_decimals = max(decimals, 0)
    value_text = f"{round(value, decimals):.{shown_decimals}f}"
    error_text = f"{round(error, decimals):.{shown_decimals}f}"
    return _true_minus(f"{value_text} ± {error_text}")


def align(rows: Sequence[Sequence[str]], indent: int = 0) -> list[str]:
    """Pad cells so that columns line up."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(" " * indent + "  ".join(cells).rstrip())
    return lines


def fold(line: str, width: int = 118) -> str:
    """Wrap a long sentence and indent what follows."""
    indent = len(line) - len(line.lstrip()) + 2
    return textwrap.fill(line, width, subsequent_indent=" " * indent)


def html_table(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table of cells, which are escaped."""
    lines = []
    if heads:
        lines.append("".join(f'<th style="{_HEAD}">{escape(str(cell))}</th>' for cell in heads))
    lines += ["".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="{_TABLE}">{body}</table>'


def html_result(
    title: str, facts: Mapping[str, object], *tables: Sequence[Sequence[object]], notes: Sequence[str] = ()
) -> str:
    """Join a title, named facts, tables of rows, the first of which holds the heads, and notes."""
    parts = [f"<strong>{escape(title)}</strong>"]
    if facts:
        parts.append(html_table([], list(facts.items())))
    parts += [html_table(heads, rows) for heads, *rows in tables]
    parts += [f'<p style="margin:0.2em 0">{escape(note)}</p>' for note in notes]
    return f"<div>{''.join(parts)}</div>"
