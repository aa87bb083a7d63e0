"""The section of a learned baseline: its values compared with the data, and how it was learned."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import torch

from absentia.learning import LearnedBaseline
from absentia.plots.learned_entries import MEDIAN, Finding, baselines_by_owner, entries_of, owner_names, players_of
from absentia.plots.look import LOOKS
from absentia.report.pixels import ImageScale
from absentia.report.section import Section
from absentia.report.shown_numbers import numbers, texts
from absentia.text import written

_MOST_OWNERS = 50  # classes or samples whose baselines are shown
_MOST_ENTRIES = 200  # entries shown of each baseline
_MOST_CHECKS = 300  # points in the history of the loss


def baseline_section(learned: LearnedBaseline) -> Section:
    """Return the section of a learned baseline."""
    data = _images(learned) if players_of(learned).is_image else _entries(learned)
    data["colour"] = LOOKS["learned"].colour
    data["loss"] = learned.record.loss
    data["history"] = _history(learned)
    data["owners"] = owner_names(learned)[:_MOST_OWNERS]
    owners = "all samples" if learned.share == "all" else f"each {learned.share}"
    return Section("baseline", f"Baseline learned for {owners}", _answer(learned), learned, data)


def _answer(learned: LearnedBaseline) -> str:
    """Say how the search ended, and at which loss."""
    record = learned.record
    ended = "converged" if record.converged else "did not converge"
    loss = "not measured"
    if not math.isnan(learned.loss):
        loss = f"{written(learned.loss, 4)} ({record.loss}, orders up to {record.orders})"
    return f"{learned.outcome} The search {ended}: {record.stopped}. Loss: {loss}.".strip()


def _entries(learned: LearnedBaseline) -> dict[str, Any]:
    """Return the first entries of the baselines, and the quantiles of the data."""
    entries = entries_of(learned, _MOST_ENTRIES, _MOST_OWNERS)
    data: dict[str, Any] = {
        "names": entries.names,
        "values": numbers(entries.values),
        "texts": entries.texts,
        "doubts": [[finding.doubt for finding in findings] for findings in entries.findings],
        "ranges": [[_range_of(finding) for finding in findings] for findings in entries.findings],
        "minima": [[numbers(torch.tensor(finding.minima)) for finding in findings] for findings in entries.findings],
    }
    if entries.quantiles is not None:
        data["quantiles"] = numbers(entries.quantiles.T)
        data["levels"] = texts(entries.quantiles.T)
    return data


def _range_of(finding: Finding) -> list[float | None]:
    """Return the ends of the range in which the loss is as low; None if there is no range."""
    if not finding.has_range:
        return [None, None]
    ends: list[float | None] = numbers(torch.tensor([finding.low, finding.high]))
    return ends


def _images(learned: LearnedBaseline) -> dict[str, Any]:
    """Return images of the baselines and of the median of the data."""
    baselines = [image[None].flatten(0, -3) for image in baselines_by_owner(learned)[:_MOST_OWNERS]]
    if learned.quantiles is None:
        scale = ImageScale.of(baselines, count=len(baselines))
        return {"images": [scale.address(image) for image in baselines]}
    levels = [image[None].flatten(0, -3) for image in learned.quantiles]
    scale = ImageScale.of(chain(baselines, levels), count=len(baselines) + 1)
    return {"images": [scale.address(image) for image in baselines], "median": scale.address(levels[MEDIAN])}


def _history(learned: LearnedBaseline) -> list[list[Any]]:
    """Return evenly spaced checks of the loss, including the first and the last: cost, loss, and both as shown."""
    checks = len(learned.history)
    places = torch.linspace(0, checks - 1, min(checks, _MOST_CHECKS)).round().long()
    history = []
    for evaluations, loss in learned.history[places].unbind():
        text = f"{evaluations:,.0f} evaluations: {written(float(loss), 4)}"
        history.append([numbers(evaluations), numbers(loss), text])
    return history
