"""The sections of audits: the figures of absences beside each other, and how sure the answer is."""

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

_MOST_DOTS = 400  # samples whose R is drawn, evenly picked
_LEAST_SHARE = 0.005  # of resamples that an absence wins, from which it is named
_CHARTS = ("leak", "invention", "score", "length", "distance", "R", "strength")  # figures that are drawn
_PERCENT = ("removed", "low_orders", "wins")  # figures that are shares
_WHOLE = ("evaluations", "players_outside")  # figures that are counts


def audit_section(audit: Audit) -> Section:
    """Return the section of an audit; absences are in its order, the recommended one first."""
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
    """Return the points of a line for each absence, to draw and to show."""
    return {"values": numbers(values, digits=3), "texts": texts(values, 3)}


def _scores(audit: Audit, order: Int[Tensor, " methods"]) -> dict[str, Any]:
    """Return the scores of masked samples by size, and the scores without inventions if they are known."""
    scores = audit.curve.scores.mean(1)
    data = {"scores": _line(scores[order])}
    if audit.curve.inventions is not None:
        data["recalibrated"] = _line((scores - audit.curve.inventions)[order])
    return data


def _removal_by_sample(audit: Audit, order: Int[Tensor, " methods"]) -> list[list[float | None]]:
    """Return R of each absence for evenly picked samples."""
    ratios = audit.removal.ratios[order].mean(-1)
    step = math.ceil(max(ratios.shape[1], 1) / _MOST_DOTS)
    picked: list[list[float | None]] = numbers(ratios[:, ::step], digits=3)
    return picked


def how_sure(audit: Audit) -> str:
    """Say in which share of resamples the answer is the same, or which absences are level; nothing if not judged."""
    if math.isnan(audit.confidence):
        return ""
    if audit.judgement.clear:
        return _sentence_on_others(audit)
    return _sentence_on_level(audit)


def _winners(audit: Audit) -> list[int]:
    """Return the numbers of the answers that win resamples, the most frequent first."""
    shares = audit.judgement.shares
    by_share = sorted(range(len(shares)), key=lambda number: -shares[number])
    return [number for number in by_share if shares[number] >= _LEAST_SHARE]


def _name_of_answer(audit: Audit, number: int) -> str:
    """Return the name of an answer: an absence, or “none” for the last number, where no absence is recommended."""
    return (*audit.methods, "none")[number]


def _sentence_on_others(audit: Audit) -> str:
    """Say how often the answer is the same, and what the others are."""
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
    if audit.judgement.samples_needed:
        return f"{sentence} About {audit.judgement.samples_needed} times as many samples would tell them apart."
    return f"{sentence} More samples would not tell them apart."


def _least_leak(audit: Audit) -> Float[Tensor, ""]:
    """Return the least leak that counts; NaN if it was not measured, or if entries that stay present may tell."""
    if audit.fully_masked is None or not audit.curve.all_absent:
        return torch.tensor(torch.nan)
    return PRACTICAL_LEAK * audit.fully_masked.prior.nanmean()


def _figures(columns: Mapping[str, Shaped[Tensor, " methods"]]) -> dict[str, list[str]]:
    """Return the figures of each absence as they are shown, by name, with their errors."""
    figures = {}
    for key, values in columns.items():
        if not key.endswith("_error"):
            errors = columns.get(f"{key}_error", torch.full_like(values, torch.nan))
            figures[key] = _texts_of_figure(key, values, errors)
    return figures


def _texts_of_figure(key: str, values: Tensor, errors: Tensor) -> list[str]:
    """Return a figure of each absence as it is shown."""
    if key in _WHOLE:
        return [f"{value:,.0f}" for value in values.tolist()]
    if key == "agreement":
        written_values: list[str] = texts(values, 2)  # with as many digits as the table of agreement
        return written_values
    factor = 100 if key in _PERCENT else 1
    pairs = zip((factor * values).tolist(), (factor * errors).tolist(), strict=True)
    return [with_error(value, error) for value, error in pairs]


def _whiskers(key: str, columns: Mapping[str, Shaped[Tensor, " methods"]]) -> list[Any]:
    """Return the ends of two standard errors around a figure of each absence: all lower ones, all upper ones."""
    values = columns[key]
    errors = columns.get(f"{key}_error", torch.zeros_like(values))
    ends = two_errors_of_length(values, errors) if key == "length" else two_errors(values, errors)
    return [numbers(end) for end in ends]


def cross_section(cross: CrossAudit) -> Section:
    """Return the section of a cross audit: a table."""
    sentence = "R of every absence (column) against every reference (row): 0 is that of white noise; lower is better."
    return Section("cross", f"Cross audit of {len(cross.methods)} absences", sentence, cross, data={})
