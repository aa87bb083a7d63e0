"""The attributions that the page shows of each sample and of all samples: numbers to draw, and texts to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from absentia.attributions import Attribution, OrderAttribution
from absentia.plots.drawable import ShownValue, has_errors, largest_and_others, ranked_values
from absentia.plots.strongest_sets import Ends
from absentia.report.shown_numbers import numbers, texts
from absentia.text import written, written_alike

MOST_SAMPLES = 200
_MOST_VALUES = 100_000  # values of all samples; with very many players, fewer samples are shown
_MOST_BARS = 20  # players in a chart
_MOST_ROWS = 200  # players in a table


def count_shown(samples: int, players: int) -> int:
    """Return the number of samples that the page holds."""
    return min(samples, MOST_SAMPLES, max(1, _MOST_VALUES // players))


def values_of_sample(attribution: Attribution, number: int, ends: Ends) -> dict[str, Any]:
    """Return the values of the players of one sample, from v(∅) to v(N)."""
    values = attribution.values[number]
    bars, others = largest_and_others(values, _MOST_BARS)
    data: dict[str, Any] = {
        "ends": [written(ends.base, 4), written(ends.output, 4)],
        "output": numbers(torch.tensor(ends.output, dtype=torch.float64)),
        "base": numbers(torch.tensor(ends.base, dtype=torch.float64)),
        "values": numbers(values),
        "ranked": _ranked_rows(ranked_values(attribution, number)[:_MOST_ROWS]),
        "bars": len(bars),
        "most": written_alike(values.abs().tolist())[int(values.abs().argmax())],
    }
    if others:
        rest = float(values[others].sum())
        data["others"] = {"count": len(others), "value": float(f"{rest:.6g}"), "shown": written(rest, 4, plus=True)}
    undetermined = (~attribution.determined[number]).nonzero()[:, 0].tolist()
    if undetermined:
        data["undetermined"] = undetermined
    if has_errors(attribution):
        data["errors"] = numbers(attribution.errors[number], digits=2)
    return data


def _ranked_rows(ranked: Sequence[ShownValue]) -> list[list[Any]]:
    """Return the players and their values as shown, with their errors if known."""
    return [[shown.player, shown.value, *([shown.error] if shown.error else [])] for shown in ranked]


def values_by_order(by_order: OrderAttribution, number: int) -> dict[str, Any]:
    """Return the order-wise values of one sample, with their errors if they are estimated."""
    values = by_order.values[number]
    data: dict[str, Any] = {
        "orders": list(by_order.orders),
        "values": numbers(values, digits=3),
        "texts": texts(values, 3, plus=True),
    }
    if by_order.is_estimated:
        errors = by_order.errors[number]
        data["errors"] = numbers(errors, digits=2)
        data["errorTexts"] = texts(errors, 2)
        data["undetermined"] = [row.nonzero()[:, 0].tolist() for row in ~by_order.determined[number]]
    return data


def values_overall(attribution: Attribution) -> list[dict[str, Any]]:
    """Return the players with the largest mean |value| over all samples, to draw and to show."""
    means = attribution.values.abs().mean(0)
    errors = attribution.errors.mean(0)
    determined = attribution.determined_means
    rows = []
    for shown in ranked_values(attribution, None)[:_MOST_BARS]:
        row = {"player": shown.player, "value": numbers(means[shown.player]), "shown": shown.value}
        if shown.error:
            row |= {"error": numbers(errors[shown.player], digits=2), "shownError": shown.error}
        if not determined[shown.player]:
            row["unsure"] = True
        rows.append(row)
    return rows
