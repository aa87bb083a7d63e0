"""Absences on the page: the verdict and figures of audits, and learned values beside quantiles of the data."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.audit import Audit, CrossAudit
from absentia.learning import LearnedBaseline
from absentia.plots.drawable import owner_names, players_of
from absentia.plots.look import LOOKS, looks_of
from absentia.report.section import ImageScale, Section, numbers, texts
from absentia.results import count_of, with_error, written

_MOST_DOTS = 400  # samples whose R is drawn, evenly picked
_CHARTS = ("evidence", "strength", "R", "distance")
_PERCENT, _WHOLE = ("removed", "low_orders"), ("evaluations", "players_outside")
# The page shows at most this many baselines, entries and checks of the loss.
_MOST_OWNERS, _MOST_ENTRIES, _MOST_CHECKS = 50, 200, 300
_MEDIAN = 3  # the row of the quantiles
_SHARED_BY = {"all": "all samples", "class": "each class", "sample": "each sample"}


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


def baseline_section(learned: LearnedBaseline) -> Section:
    """Return the section of a learned baseline."""
    record = learned.record
    values = (learned.values[None] if learned.share == "all" else learned.values)[:_MOST_OWNERS]
    shown = _pictures(learned, values) if players_of(learned).is_image else _entries(learned, values)
    how = "converged" if record.converged else "did not converge"
    loss = f"{written(learned.loss, 4)} ({record.loss}, orders up to {record.orders})"
    heading, sentence = f"Baseline learned for {_SHARED_BY[learned.share]}", f"The search {how}: {record.stopped}."
    checks = torch.linspace(0, len(learned.history) - 1, min(len(learned.history), _MOST_CHECKS)).round().long()
    history = [
        [*numbers(row), f"{row[0]:,.0f} evaluations: {written(float(row[1]), 4)}"] for row in learned.history[checks]
    ]
    data = shown | {"colour": LOOKS["learned"][0], "loss": record.loss, "history": history}
    data["owners"] = owner_names(learned)[:_MOST_OWNERS]
    return Section("baseline", heading, f"{sentence} Loss: {loss}.", learned, data)


def _entries(learned: LearnedBaseline, values: Shaped[Tensor, "owners *entries"]) -> dict[str, Any]:
    """Return the names and values of entries, and quantiles of the data."""
    players, undetermined = players_of(learned), set(learned.record.undetermined)
    kept = values.flatten(1)[:, :_MOST_ENTRIES]
    found = {
        "names": players.entry_names()[:_MOST_ENTRIES],
        "values": numbers(kept),
        "texts": texts(kept),
        "undetermined": [name in undetermined for name in players.owner_names()[:_MOST_ENTRIES]],
    }
    if learned.quantiles is not None:
        levels = learned.quantiles.flatten(1)[:, :_MOST_ENTRIES].T
        found |= {"quantiles": numbers(levels), "levels": texts(levels)}
    return found


def _pictures(learned: LearnedBaseline, values: Shaped[Tensor, "owners *entries"]) -> dict[str, Any]:
    """Return images of the baselines, and of the median of the data."""
    owners, data = (
        [image[None].flatten(0, -3) for image in rows]
        for rows in (values, () if learned.quantiles is None else learned.quantiles)
    )
    scale = ImageScale.of(chain(owners, data), count=len(owners) + bool(data))
    found: dict[str, Any] = {"images": [scale.address(image) for image in owners]}
    return found | {"median": scale.address(data[_MEDIAN])} if data else found
