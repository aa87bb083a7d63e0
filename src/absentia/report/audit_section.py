"""Audits on the page: the verdict, the figures that answer three questions, agreement, and a table of all figures."""

from __future__ import annotations

from typing import Any

import torch

from absentia.audit import Audit, CrossAudit
from absentia.plots.look import looks_of
from absentia.report.section import Section, numbers, texts
from absentia.results import count_of, with_error, written

_MOST_DOTS = 400  # samples whose R is drawn, evenly picked
_CHARTS = ("evidence", "strength", "R", "distance")
_PERCENT, _WHOLE = ("removed", "low_orders"), ("evaluations", "players_outside")


def audit_section(audit: Audit) -> Section:
    """Return the section of an audit; absences are in its order, the recommended one first."""
    order, columns = torch.tensor(audit.order), audit.columns()
    methods = [audit.methods[number] for number in order]
    looks = [(look["color"], look["marker"]) for look in looks_of(methods)]
    figures = {key: _figure(key, columns, order.tolist()) for key in columns if not key.endswith("_error")}
    unmasked, curve = audit.removal.unmasked, audit.curve
    per_sample = audit.removal.per_sample[order]
    step = -(-max(per_sample.shape[1], 1) // _MOST_DOTS)
    nothing = torch.full((len(methods),), torch.nan)
    facts = {
        "methods": methods,
        "figures": figures,
        "sentences": audit.verdict[1:] or methods,
        "unmasked": with_error(*(float(part) for part in unmasked)),
        "prior": written(float(curve.prior.mean())),
    }
    data: dict[str, Any] = {
        "methods": methods,
        "looks": looks,
        "recommended": audit.recommended is not None,
        "charts": {
            key: {
                "values": numbers(columns[key][order].double()),
                "errors": numbers(columns.get(f"{key}_error", nothing)[order], digits=3),
                "texts": figures[key],
            }
            for key in _CHARTS
        },
        "unmasked": numbers(unmasked.value),
        "perSample": numbers(per_sample[:, ::step], digits=3),
        "unit": curve.unit,
        "sizes": numbers(curve.sizes),
        "scores": texts(curve.scores.mean(1)[order], 3),
        "prior": numbers(curve.prior.mean()),
        "orders": texts(audit.companions.order_profile().value[order], 3),
        "agreement": texts(audit.companions.agreement()[order][:, order], 2),
    }
    heading = f"Audit of {len(methods)} absences on {count_of(audit.record.samples, 'sample')}"
    return Section("audit", heading, audit.verdict[0], audit, facts, data)


def _figure(key: str, columns: dict[str, Any], order: list[int]) -> list[str]:
    """Return a figure of each absence as it is shown."""
    if key in _WHOLE:
        return [f"{columns[key][number]:,.0f}" for number in order]
    if key == "agreement":  # with as many digits as that of two absences
        return [written(float(columns[key][number]), 2) for number in order]
    factor, nothing = 100 if key in _PERCENT else 1, torch.full_like(columns[key].double(), torch.nan)
    pair = columns[key], columns.get(f"{key}_error", nothing)
    return [with_error(*(factor * float(part[number]) for part in pair)) for number in order]


def cross_section(cross: CrossAudit) -> Section:
    """Return the section of a cross audit: a table."""
    pairs = zip(cross.R.tolist(), cross.errors.tolist(), strict=True)
    cells = [[with_error(*pair) for pair in zip(*rows, strict=True)] for rows in pairs]
    sentence = (
        "R of every absence (column) against every reference (row): 0 is the level of white noise, and lower is "
        "better. Values in brackets compare an absence with itself and have no meaning."
    )
    heading = f"Cross audit of {len(cross.methods)} absences"
    return Section("cross", heading, sentence, cross, {"cells": cells}, data={})
