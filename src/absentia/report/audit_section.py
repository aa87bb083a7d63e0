"""Audits on the page: the verdict, the figures that answer three questions, agreement, and a table of all figures."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from absentia.audit import Audit, CrossAudit
from absentia.plots.look import looks_of
from absentia.report.section import Section, numbers, texts
from absentia.results import count_of, with_error

_MOST_DOTS = 400  # samples whose R is drawn, evenly picked
_CHARTS = ("evidence", "strength", "R", "distance")
_PERCENT, _WHOLE = ("removed", "low_orders"), ("evaluations", "players_outside")


def audit_section(audit: Audit) -> Section:
    """Return the section of an audit; absences are in its order, the recommended one first."""
    order, curve = torch.tensor(audit.order), audit.curve
    methods = [audit.methods[number] for number in order]
    columns = {key: values[order].double() for key, values in audit.columns().items()}
    nothing = torch.full((len(methods),), torch.nan)
    pairs = {key: (columns[key], columns.get(f"{key}_error", nothing)) for key in columns if "_error" not in key}
    per_sample = audit.removal.per_sample[order]
    step = -(-max(per_sample.shape[1], 1) // _MOST_DOTS)
    data: dict[str, Any] = {
        "methods": methods,
        "looks": [(look["color"], look["marker"]) for look in looks_of(methods)],
        "recommended": audit.recommended is not None,
        "figures": {key: _texts(key, *pair) for key, pair in pairs.items()},
        "values": {key: numbers(pairs[key][0]) for key in _CHARTS},
        "errors": {key: numbers(pairs[key][1], digits=3) for key in _CHARTS},
        "unmasked": numbers(audit.removal.unmasked.value),
        "perSample": numbers(per_sample[:, ::step], digits=3),
        "unit": curve.unit,
        "sizes": numbers(curve.sizes),
        "scores": texts(curve.scores.mean(1)[order], 3),
        "prior": numbers(curve.prior.mean()),
        "orders": texts(audit.companions.order_profile().value[order], 3),
        "agreement": texts(audit.companions.agreement()[order][:, order], 2),
    }
    heading = f"Audit of {len(methods)} absences on {count_of(audit.record.samples, 'sample')}"
    return Section("audit", heading, audit.verdict[0], audit, data)


def _texts(key: str, values: Tensor, errors: Tensor) -> list[str]:
    """Return a figure of each absence as it is shown."""
    if key in _WHOLE:
        return [f"{value:,.0f}" for value in values.tolist()]
    if key == "agreement":
        return texts(values, 2)  # with as many digits as that of two absences
    factor = 100 if key in _PERCENT else 1
    return [with_error(*pair) for pair in (factor * torch.stack([values, errors], dim=1)).tolist()]


def cross_section(cross: CrossAudit) -> Section:
    """Return the section of a cross audit: a table."""
    sentence = (
        "R of every absence (column) against every reference (row): 0 is the level of white noise, and lower is "
        "better. Values in brackets compare an absence with itself and have no meaning."
    )
    return Section("cross", f"Cross audit of {len(cross.methods)} absences", sentence, cross, data={})
