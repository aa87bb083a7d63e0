"""A learned baseline in words and tables: for the terminal, for notebooks, and as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from absentia.learning.quantiles import QUANTILES
from absentia.notebook import html_result, html_table

if TYPE_CHECKING:
    from absentia.learning.learned import LearnedBaseline, LearningRecord

_SHARED = {"all": "all samples", "class": "each class", "sample": "each sample"}
_MOST_ROWS_SHOWN = 20


def title(learned: LearnedBaseline) -> str:
    """Say what it is."""
    return f"LearnedBaseline of shape {tuple(learned.values.shape)}, one for {_SHARED[learned.share]}"


def facts(learned: LearnedBaseline) -> dict[str, str]:
    """Say how it was found, what that took, and how far to trust it."""
    record = learned.record
    how = "exact" if record.exact else "sampled"
    found = {
        "loss": f"{learned.loss:.5g} ({record.loss}, {how}, orders up to {record.orders})",
        "converged": f"{'yes' if record.converged else 'no'}: {record.stopped}",
        "starts": _describe_starts(record),
        "cost": f"{record.evaluations:,} evaluations, {record.seconds:.1f} s",
    }
    if record.undetermined:
        found["undetermined"] = f"{', '.join(record.undetermined)}; the start's values were kept"
    return found


def baseline_text(learned: LearnedBaseline) -> str:
    """Lay it out for the terminal."""
    return "\n".join([title(learned), *(f"  {name:<12}  {text}" for name, text in facts(learned).items())])


def baseline_html(learned: LearnedBaseline) -> str:
    """Lay it out for a notebook: the first values, beside where half of the data lies."""
    columns = baseline_columns(learned)
    shown = {name: cells for name, cells in columns.items() if name not in ("5 %", "95 %")}
    rows = [[_cell(cell) for cell in row] for row in zip(*shown.values(), strict=True)]
    notes = [f"… and {len(rows) - _MOST_ROWS_SHOWN:,} more values"] if len(rows) > _MOST_ROWS_SHOWN else []
    table = html_table(list(shown), rows[:_MOST_ROWS_SHOWN])
    return html_result(title(learned), facts(learned), table, notes=notes)


def baseline_columns(learned: LearnedBaseline) -> dict[str, Sequence[Any]]:
    """List the values as columns, a row for each entry (of each class or sample), beside the data's quantiles."""
    own = learned.share != "all"
    values = learned.values.flatten(1) if own else learned.values.reshape(1, -1)
    owners, entries = values.shape
    columns: dict[str, Sequence[Any]] = {}
    if own:
        whose = torch.arange(owners) if learned.classes is None else learned.classes
        columns[learned.share] = whose.repeat_interleave(entries).tolist()
    names = _player_names(learned, entries)
    undetermined = [name in learned.record.undetermined for name in names]
    columns["entry"] = list(range(entries)) * owners
    columns["player"] = names * owners
    columns["value"] = values.flatten().tolist()
    quantiles = _quantiles(learned.quantiles, entries)
    for share, row in zip(QUANTILES, quantiles.tolist(), strict=True):
        columns[f"{share:.0%}".replace("%", " %")] = row * owners
    columns["undetermined"] = undetermined * owners
    return columns


def _player_names(learned: LearnedBaseline, entries: int) -> list[str]:
    """Name the player of each entry; those of baselines saved before labels were kept, where each has one entry."""
    if learned.labels is None:
        return list(learned.names) if len(learned.names) == entries else ["?"] * entries
    named = [*learned.names, "always present"]  # which label −1 indexes
    return [named[label] for label in learned.labels.flatten().tolist()]


def _quantiles(found: Tensor | None, entries: int) -> Tensor:
    return torch.full((len(QUANTILES), entries), math.nan) if found is None else found.flatten(1)


def _cell(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _describe_starts(record: LearningRecord) -> str:
    named = ", ".join(record.starts) or "none"
    return named if len(record.starts) < 2 else f"{named}: ended within {record.spread:.2%} of each other"
