"""Audits on the page: the verdict, R with its errors, strength by order, agreement, and a table of all figures."""

from __future__ import annotations

from typing import Any

import torch

from absentia.audit import Audit, CrossAudit
from absentia.report.section import Section, numbers, run_settings
from absentia.results import count_of, with_error

_MOST_DOTS = 400  # samples whose R is drawn, evenly picked

# The figures of an absence: the name in `Audit.columns`, the head, a factor, and the meaning.
FIGURES = (
    (
        "evidence",
        "evidence",
        1,
        "score of fully masked samples less the prior's; below 0 it leaks, above 0 it invents",
    ),
    ("score", "score", 1, "score of masked samples over all sizes of coalitions; lower is better"),
    ("R", "R", 1, "effects that masking leaves or adds, compared with white noise; lower is better"),
    ("removed", "removed %", 100, "share of the signal that is removed: 1 − R / (R of unmasked samples)"),
    ("strength", "Σ|U|", 1, "strength of all interactions in the game of this absence"),
    ("salient", "salient", 1, "number of salient interactions in that game"),
    ("terms", "terms", 1, "number of interactions that reproduce all values of that game within 5 %"),
    ("low_orders", "low orders %", 100, "share of the strength at orders up to half the number of players"),
    ("empty_value", "v(∅)", 1, "value with all players absent"),
    ("agreement", "agreement", 1, "mean rank correlation of the Shapley values with those of the other absences"),
    ("distance", "distance", 1, "distance of masked samples from the data, relative to that of its own rows"),
    ("players_outside", "outside", 1, "number of players whose stand-ins lie outside the range of the data"),
    ("evaluations", "evaluations", 1, "number of rows that the model evaluated for this absence"),
    ("seconds", "seconds", 1, "time that this took"),
)


def audit_section(audit: Audit) -> Section:
    """Return the section of an audit."""
    record, order = audit.record, audit.order
    games = "all coalitions of the region" if record.exact else f"drawn games of {record.game_players} players"
    return Section(
        "audit",
        f"Audit of {len(order)} absences on {count_of(record.samples, 'sample')}",
        audit.verdict,
        facts={
            "warnings": audit.warnings,
            "notes": record.notes,
            "methods": [audit.methods[number] for number in order],
            "unmasked": with_error(*(float(part) for part in audit.removal.unmasked)),
            "heads": [(head, meaning) for _, head, _, meaning in FIGURES],
            "rows": _rows(audit),
            "threshold": record.threshold,
            "settings": [
                *((f"Absence “{name}”", record.absences[name]) for name in audit.methods if name in record.absences),
                ("Value", record.readout),
                ("Reference", f"{record.reference}, {count_of(record.draws, 'draw')}"),
                ("Region", f"{', '.join(audit.region)} ({len(audit.region)} of {len(audit.players)} players)"),
                ("Games", games),
                ("Salient", record.threshold),
                *run_settings(record),
            ],
        },
        data=_data(audit),
    )


def _data(audit: Audit) -> dict[str, Any]:
    """Return what is drawn; absences are in their order, those without an R last."""
    order = sorted(audit.order, key=lambda number: bool(audit.R.value[number].isnan()))
    index = torch.tensor(order)
    per_sample = audit.removal.per_sample[index]
    step = -(-max(per_sample.shape[1], 1) // _MOST_DOTS)
    return {
        "methods": [audit.methods[number] for number in order],
        "measured": int((~audit.R.value.isnan()).sum()),
        "R": numbers(audit.R.value[index]),
        "errors": numbers(audit.R.error[index], digits=3),
        "unmasked": numbers(audit.removal.unmasked.value),
        "perSample": numbers(per_sample[:, ::step], digits=3),
        "orders": numbers(audit.companions.order_profile().value[index]),
        "agreement": numbers(audit.companions.agreement()[index][:, index], digits=3),
    }


def _rows(audit: Audit) -> list[tuple[str, list[str]]]:
    """Return the name of each absence with its figures."""
    columns = audit.columns()
    nothing = torch.full((len(audit.methods),), torch.nan)
    rows = []
    for number in audit.order:
        cells = []
        for key, _, factor, _ in FIGURES:
            value = factor * float(columns[key][number])
            error = factor * float(columns.get(f"{key}_error", nothing)[number])
            whole = key in ("evaluations", "players_outside")
            cells.append(f"{value:,.0f}" if whole else with_error(value, error))
        rows.append((audit.methods[number], cells))
    return rows


def cross_section(cross: CrossAudit) -> Section:
    """Return the section of a cross audit: a table."""
    record, rows = cross.record, []
    for row, reference in enumerate(cross.references):
        figures = zip(cross.R[row].tolist(), cross.errors[row].tolist(), strict=True)
        cells = [with_error(*figure) for figure in figures]
        if row > 0:  # white noise comes first, then the absences themselves
            cells[row - 1] = f"({cells[row - 1]})"
        rows.append((reference if row else "white noise", cells))
    return Section(
        "cross",
        f"Cross audit of {len(cross.methods)} absences",
        (
            "R of every absence (column) against every reference (row): 0 is the level of white noise, and lower is "
            "better. Values in brackets compare an absence with itself and have no meaning.",
        ),
        facts={
            "methods": cross.methods,
            "rows": rows,
            "notes": record.notes,
            "settings": [
                ("Value", record.readout),
                ("Samples", f"{record.samples:,}, {count_of(record.draws, 'draw')}"),
                ("Region", ", ".join(record.region)),
                *run_settings(record),
            ],
        },
        data={},
    )
