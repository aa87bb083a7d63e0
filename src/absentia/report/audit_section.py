"""Audits on the page: the verdict, R with its errors, strength by order, agreement, and every figure in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from absentia.audit import Audit, CrossAudit
from absentia.audit.text import with_error
from absentia.audit.verdict import ranking
from absentia.report.numbers import plain
from absentia.report.section import Section
from absentia.wording import count_of

# R of so many samples, evenly picked, is drawn for a method.
_MOST_DOTS = 400

# What is told of every method: its name in `Audit.columns`, its head, what it is multiplied by, what it is.
FIGURES = (
    ("R", "R", 1, "the effects that masking leaves or adds, above those of white noise; the less, the better"),
    ("removed", "removed %", 100, "the share of the signal that is gone: 1 − R/(R of unmasked samples)"),
    ("strength", "Σ|U|", 1, "the strength of all interactions in the method's own game"),
    ("salient", "salient", 1, "how many interactions are salient in it"),
    ("terms", "terms", 1, "how few interactions rebuild all of its values to 5 %"),
    ("low_orders", "low orders %", 100, "the share of its strength at orders up to half the players"),
    ("empty_value", "v(∅)", 1, "the value with all players absent"),
    ("agreement", "agreement", 1, "the mean rank correlation of its Shapley values with the other methods'"),
    ("distance", "distance", 1, "how far masked samples lie from the data, over how far its own rows do"),
    ("players_outside", "outside", 1, "the number of players whose stand-ins leave the data's range"),
    ("evaluations", "evaluations", 1, "how many rows the model evaluated for the method"),
    ("seconds", "seconds", 1, "how long that took"),
)


def audit_section(audit: Audit) -> Section:
    """Make an audit ready for the page."""
    ranked = ranking(audit.removal)
    order = ranked + [number for number in range(len(audit.methods)) if number not in ranked]
    names = [audit.methods[number] for number in order]
    samples = audit.record.samples
    count = count_of(samples, "sample")
    return Section(
        "audit",
        f"Audit of {len(names)} absences on {count}",
        audit.verdict,
        facts={
            "warnings": audit.warnings,
            "notes": audit.record.notes,
            "methods": names,
            "unmasked": with_error(*(float(part) for part in audit.removal.unmasked)).replace("-", "−"),
            "heads": [(head, meaning) for _, head, _, meaning in FIGURES],
            "rows": _rows(audit, order),
            "threshold": audit.record.threshold,
            "settings": _settings(audit),
        },
        data=_data(audit, order, len(ranked)),
    )


def _data(audit: Audit, order: Sequence[int], measured: int) -> dict[str, Any]:
    """List what is drawn; methods in their order, those without an R last."""
    index = torch.tensor(order)
    per_sample = audit.removal.per_sample[index]
    step = -(-max(per_sample.shape[1], 1) // _MOST_DOTS)
    return {
        "methods": [audit.methods[number] for number in order],
        "measured": measured,
        "R": plain(audit.R.value[index]),
        "errors": plain(audit.R.error[index], digits=3),
        "unmasked": plain(audit.removal.unmasked.value),
        "perSample": plain(per_sample[:, ::step], digits=3),
        "orders": plain(audit.companions.order_profile().value[index]),
        "agreement": plain(audit.companions.agreement()[index][:, index], digits=3),
    }


def _rows(audit: Audit, order: Sequence[int]) -> list[tuple[str, list[str]]]:
    """Write the figures of each method out."""
    columns = audit.columns()
    rows = []
    for number in order:
        cells = []
        for key, _, factor, _ in FIGURES:
            value = factor * float(columns[key][number])
            error = columns.get(f"{key}_error")
            cells.append(_cell(key, value, float("nan") if error is None else factor * float(error[number])))
        rows.append((audit.methods[number], cells))
    return rows


def _cell(key: str, value: float, error: float) -> str:
    text = f"{value:,.0f}" if key in ("evaluations", "players_outside") else with_error(value, error)
    return text.replace("-", "−")


def _settings(audit: Audit) -> list[tuple[str, str]]:
    record = audit.record
    total = sum(record.costs.values(), record.shared_cost)
    games = "all coalitions of the region" if record.exact else f"drawn games of {record.game_players} players"
    return [
        *((f"Method “{name}”", record.absences[name]) for name in audit.methods if name in record.absences),
        ("Value", record.readout),
        ("Reference", f"{record.reference}, {count_of(record.draws, 'draw')}"),
        ("Region", f"{', '.join(audit.region)} ({len(audit.region)} of {len(audit.players)} players)"),
        ("Games", games),
        ("Salient", record.threshold),
        ("Cost", f"{total.evaluations:,} evaluations of the model, {total.seconds:.1f} s"),
        ("Seed", str(record.seed)),
        ("Versions", f"absentia {record.version}, torch {record.torch_version}"),
    ]


def cross_section(cross: CrossAudit) -> Section:
    """Make a cross audit ready for the page: a table."""
    record, rows = cross.record, []
    for row, reference in enumerate(cross.references):
        figures = zip(cross.R[row].tolist(), cross.errors[row].tolist(), strict=True)
        cells = [with_error(value, error).replace("-", "−") for value, error in figures]
        own = row - 1  # white noise comes first; what a method says of itself means nothing
        cells = [f"({cell})" if column == own else cell for column, cell in enumerate(cells)]
        rows.append(("white noise" if row == 0 else reference, cells))
    return Section(
        "cross",
        f"Cross audit of {len(cross.methods)} absences",
        (
            "R of every method (a column) against every reference (a row): 0 at the level of white noise; the less, "
            "the better. In brackets, what a method says of itself, which means nothing.",
        ),
        facts={
            "methods": cross.methods,
            "rows": rows,
            "notes": record.notes,
            "settings": [
                ("Value", record.readout),
                ("Samples", f"{record.samples:,}, {count_of(record.draws, 'draw')}"),
                ("Region", ", ".join(record.region)),
                ("Cost", f"{record.evaluations:,} evaluations of the model, {record.seconds:.1f} s"),
                ("Seed", str(record.seed)),
                ("Versions", f"absentia {record.version}, torch {record.torch_version}"),
            ],
        },
        data={},
    )
