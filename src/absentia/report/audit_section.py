"""The sections of audits: the figures of all absences, and how certain the recommendation is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.auditing import Audit, CrossAudit
from absentia.auditing.verdict import PRACTICAL_LEAK
from absentia.plots.absence_plots import name_unit, two_errors, two_errors_of_length
from absentia.plots.look import looks_of
from absentia.report.section import Section
from absentia.report.shown_numbers import numbers, texts
from absentia.text import count_of, percent, with_error

_MOST_DOTS = 400  # evenly spaced samples whose R is drawn
_LEAST_SHARE = 0.005  # absences that win at least this share of resamples are named
_CHARTS = ("leak", "invention", "score", "length", "distance", "R", "strength")  # figures that have a chart
_PERCENT = ("removed", "low_orders", "wins")  # figures that are shares
_WHOLE = ("evaluations", "players_outside")  # figures that are counts


def audit_section(audit: Audit) -> Section:
    """Return the section of an audit, with absences in the audit's order, the recommended one first."""
    order = torch.tensor(audit.order)
    methods = [audit.methods[number] for number in order]
    columns = {key: values[order].double() for key, values in audit.columns().items()}
    agreement = audit.companions.agreement()[order][:, order]
    data: dict[str, Any] = {
        "methods": methods,
        "recommended": audit.recommended is not None,
        "sure": how_sure(audit),
        "looks": looks_of(methods),
        "unit": name_unit(audit.curve.unit),
        "figures": _figures(columns),
        "values": {key: numbers(columns[key]) for key in _CHARTS},
        "whiskers": {key: _whiskers(key, columns) for key in _CHARTS},
        "leakLimit": numbers(_least_leak(audit)),
        "inventionLimit": numbers(torch.tensor(audit.curve.limit)),
        "unmasked": numbers(audit.removal.unmasked.value),
        "perSample": _removal_by_sample(audit, order),
        "sizes": numbers(audit.curve.sizes),
        "prior": numbers(audit.curve.prior.nanmean()),
        "orders": _line(audit.companions.order_profile().value[order]),
        "agreement": {"values": numbers(agreement, digits=2), "texts": texts(agreement, 2)},
    }
    data |= _scores(audit, order)
    heading = f"Audit of {len(methods)} absences on {count_of(audit.record.samples, 'sample')}"
    return Section("audit", heading, audit.verdict[0], audit, data)


def _line(values: Float[Tensor, "methods points"]) -> dict[str, Any]:
    """Return the points of a line for each absence, as numbers and as texts."""
    return {"values": numbers(values, digits=3), "texts": texts(values, 3)}


def _scores(audit: Audit, order: Int[Tensor, " methods"]) -> dict[str, Any]:
    """Return the scores of masked samples by size, and the scores without inventions if known."""
    scores = audit.curve.scores.mean(1)
    data = {"scores": _line(scores[order])}
    if audit.curve.inventions is not None:
        data["recalibrated"] = _line((scores - audit.curve.inventions)[order])
    return data


def _removal_by_sample(audit: Audit, order: Int[Tensor, " methods"]) -> list[list[float | None]]:
    """Return R of each absence for evenly spaced samples."""
    ratios = audit.removal.ratios[order].mean(-1)
    step = math.ceil(max(ratios.shape[1], 1) / _MOST_DOTS)
    picked: list[list[float | None]] = numbers(ratios[:, ::step], digits=3)
    return picked


def how_sure(audit: Audit) -> str:
    """Say how often resamples agree, or which absences are level; return an empty text if this was not judged."""
    if math.isnan(audit.confidence):
        return ""
    if audit.judgement.clear:
        return _sentence_on_others(audit)
    return _sentence_on_level(audit)


def _winners(audit: Audit) -> list[int]:
    """Return the numbers of the answers that win resamples, most frequent first."""
    shares = audit.judgement.shares
    by_share = sorted(range(len(shares)), key=lambda number: -shares[number])
    return [number for number in by_share if shares[number] >= _LEAST_SHARE]


def _name_of_answer(audit: Audit, number: int) -> str:
    """Return the name of an answer: an absence, or “none” for the last number, which stands for no recommendation."""
    if number == len(audit.methods):
        return "none"
    return audit.methods[number]


def _sentence_on_others(audit: Audit) -> str:
    """Say how often resamples give the same answer, and name the other answers."""
    judgement = audit.judgement
    answer = len(audit.methods) if judgement.winner is None else judgement.winner
    others = [
        f"{_name_of_answer(audit, number)} {percent(judgement.shares[number])}"
        for number in _winners(audit)
        if number != answer
    ]
    sentence = f"The same answer in {percent(audit.confidence)} of resamples of the samples and draws."
    if others:
        return f"{sentence} In the others: {', '.join(others)}."
    return sentence


def _sentence_on_level(audit: Audit) -> str:
    """Name the absences that are level, and say how many samples would tell them apart."""
    shares = audit.judgement.shares
    wins = [f"{_name_of_answer(audit, number)} wins {percent(shares[number])}" for number in _winners(audit)]
    sentence = f"Level: of resamples of the samples and draws, {', '.join(wins)}."
    times = audit.judgement.times_the_samples
    if times is not None:
        return f"{sentence} About {times} times as many samples would tell them apart."
    return f"{sentence} More samples would not tell them apart."


def _least_leak(audit: Audit) -> Float[Tensor, ""]:
    """Return the smallest leak that counts; NaN if none was measured, or if entries that stay present may leak."""
    if audit.fully_masked is None or not audit.curve.all_absent:
        return torch.tensor(torch.nan)
    return PRACTICAL_LEAK * audit.fully_masked.prior.nanmean()


def _figures(columns: Mapping[str, Shaped[Tensor, " methods"]]) -> dict[str, list[str]]:
    """Return the figures of each absence by name, as shown with their errors."""
    figures = {}
    for key, values in columns.items():
        if not key.endswith("_error"):
            errors = columns.get(f"{key}_error", torch.full_like(values, torch.nan))
            figures[key] = _texts_of_figure(key, values, errors)
    return figures


def _texts_of_figure(key: str, values: Tensor, errors: Tensor) -> list[str]:
    """Return a figure of each absence as shown."""
    if key in _WHOLE:
        return [f"{value:,.0f}" for value in values.tolist()]
    if key == "agreement":
        written_values: list[str] = texts(values, 2)  # the same digits as in the table of agreement
        return written_values
    factor = 100 if key in _PERCENT else 1
    pairs = zip((factor * values).tolist(), (factor * errors).tolist(), strict=True)
    return [with_error(value, error) for value, error in pairs]


def _whiskers(key: str, columns: Mapping[str, Shaped[Tensor, " methods"]]) -> list[Any]:
    """Return a figure of each absence minus and plus two standard errors: all lower ends, then all upper ends."""
    values = columns[key]
    errors = columns.get(f"{key}_error", torch.zeros_like(values))
    ends = two_errors_of_length(values, errors) if key == "length" else two_errors(values, errors)
    return [numbers(end) for end in ends]


def cross_section(cross: CrossAudit) -> Section:
    """Return the section of a cross audit, which is a table."""
    sentence = "R of every absence (column) against every reference (row): 0 is that of white noise; lower is better."
    return Section("cross", f"Cross audit of {len(cross.methods)} absences", sentence, cross, data={})
