"""Results as small tables for notebooks: HTML with its style inside, everything that comes from data escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_TABLE = "border-collapse:collapse;font-size:90%;margin:0.3em 0"
_HEAD = "text-align:left;padding:0.15em 0.8em 0.15em 0;border-bottom:1px solid #999"
_CELL = "text-align:left;padding:0.15em 0.8em 0.15em 0;vertical-align:top"


def html_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay cells out in an HTML table; what they hold is text, whatever it looks like.

    >>> "<b>" in html_table(["name"], [["<b>"]])
    False
    """
    head = "".join(f'<th style="{_HEAD}">{_safe(cell)}</th>' for cell in heads)
    lines = ["".join(f'<td style="{_CELL}">{_safe(cell)}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="{_TABLE}">' + (f"<tr>{head}</tr>" if heads else "") + f"{body}</table>"


def html_result(title: str, facts: Mapping[str, object], *parts: str, notes: Sequence[str] = ()) -> str:
    """Put a title, named facts, ready tables of `html_table` and notes together.

    >>> html_result("Audit", {}, notes=["a < b"])
    '<div><strong>Audit</strong><p style="margin:0.2em 0">a &lt; b</p></div>'
    """
    shown = html_table([], list(facts.items())) if facts else ""
    said = "".join(f'<p style="margin:0.2em 0">{_safe(note)}</p>' for note in notes)
    return f"<div><strong>{_safe(title)}</strong>{shown}{''.join(parts)}{said}</div>"


def _safe(cell: object) -> str:
    return escape(str(cell), quote=True)
