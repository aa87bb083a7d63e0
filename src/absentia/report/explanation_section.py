"""The section of an explanation: samples with their attributions, interactions and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from jaxtyping import Shaped
from torch import Tensor

from absentia.explanation import Explanation
from absentia.players import Players
from absentia.plots.drawable import (
    ShownValue,
    answer,
    base_and_output,
    has_errors,
    largest_and_others,
    ranked_values,
)
from absentia.report.pixels import ImageScale
from absentia.report.section import Section
from absentia.report.shown_interactions import curve_counts, interactions_by_sample, largest_order
from absentia.report.shown_numbers import numbers, texts
from absentia.text import count_of, written, written_alike

MOST_SAMPLES = 200
_MOST_VALUES = 100_000  # of all samples: fewer samples are shown if they have very many players
_MOST_BARS = 20  # players in a chart
_MOST_ROWS = 200  # players in a table


def explanation_section(explanation: Explanation) -> Section:
    """Return the section of an explanation."""
    names = explanation.names
    total = explanation.samples
    shown = min(total, MOST_SAMPLES, max(1, _MOST_VALUES // len(names)))
    samples = [_sample(explanation, number) for number in range(shown)]
    data: dict[str, Any] = {
        "names": list(names),
        "samples": samples,
        "text": _is_text(explanation.players),
        "single": explanation.players.single.tolist(),
    }
    if total > 1:
        data["overall"] = _overall(explanation)
    if explanation.interactions is not None:
        for sample, interactions in zip(
            samples, interactions_by_sample(explanation.interactions, shown), strict=True
        ):
            sample |= interactions
        data["largestOrder"] = largest_order(explanation.interactions)
        if "curve" in samples[0]:
            data["counts"] = curve_counts(len(names))
    if explanation.players.is_image:
        data["picture"] = _add_images(samples, explanation)
    heading = f"Explanation of {count_of(total, 'sample')}, {len(names)} players"
    return Section("explanation", heading, samples[0]["answer"], explanation, data)


def _is_text(players: Players) -> bool:
    """Return whether the players are tokens, given by their numbers or their embeddings."""
    has_embedding = len(players.shape) == 2 and not players.is_image
    return players.integer or has_embedding


def _overall(explanation: Explanation) -> list[dict[str, Any]]:
    """Return the players with the largest mean |value| over all samples, to draw and to show."""
    attribution = explanation.shapley
    means = attribution.values.abs().mean(0)
    errors = attribution.errors.mean(0)
    rows = []
    for shown in ranked_values(attribution, None)[:_MOST_BARS]:
        row = {"player": shown.player, "value": numbers(means[shown.player]), "shown": shown.value}
        if shown.error:
            row |= {"error": numbers(errors[shown.player], digits=2), "shownError": shown.error}
        rows.append(row)
    return rows


def _sample(explanation: Explanation, number: int) -> dict[str, Any]:
    """Return the numbers of one sample: to draw, and as they are shown."""
    attribution = explanation.shapley
    name = explanation.sample_name(number)
    base_text, output_text = base_and_output(explanation, number)
    values = attribution.values[number]
    bars, others = largest_and_others(values, _MOST_BARS)
    data: dict[str, Any] = {
        "choice": f"{name}: {output_text}",
        "answer": f"{name[0].upper()}{name[1:]}: {answer(explanation, number)}",
        "ends": [base_text, output_text],
        "output": numbers(explanation.outputs[number]),
        "base": numbers(explanation.base_values[number]),
        "values": numbers(values),
        "ranked": _ranked_rows(ranked_values(attribution, number)[:_MOST_ROWS]),
        "bars": len(bars),
        "most": written_alike(values.abs().tolist())[int(values.abs().argmax())],
    }
    if others:
        rest = float(values[others].sum())
        data["others"] = {"count": len(others), "value": float(f"{rest:.6g}"), "shown": written(rest, 4, plus=True)}
    if has_errors(attribution):
        data["errors"] = numbers(attribution.errors[number], digits=2)
    if explanation.order_shapley is not None:
        by_order = explanation.order_shapley.values[number]
        data["orders"] = {"values": numbers(by_order, digits=3), "texts": texts(by_order, 3, plus=True)}
    if not explanation.players.is_image:
        data["inputs"] = _entry_texts(explanation.players, explanation.x, number)
        if explanation.stand_ins is not None:
            data["standIns"] = _entry_texts(explanation.players, explanation.stand_ins, number)
    return data


def _ranked_rows(ranked: Sequence[ShownValue]) -> list[list[Any]]:
    """Return the players and their values as shown, with the errors that are known."""
    return [[shown.player, shown.value, *([shown.error] if shown.error else [])] for shown in ranked]


def _entry_texts(players: Players, rows: Shaped[Tensor, "samples *entries"], number: int) -> list[str]:
    """Return the entries of the players in one row, as they are shown."""
    (entries,) = players.texts(rows[number : number + 1])
    return entries


def _add_images(samples: list[dict[str, Any]], explanation: Explanation) -> dict[str, Any]:
    """Add images of inputs and stand-ins to the samples; return their size and the player of each pixel."""
    count = len(samples)
    height, width = explanation.players.shape[-2:]
    images = {"image": explanation.x[:count].reshape(count, -1, height, width)}
    if explanation.stand_ins is not None:
        images["standIn"] = explanation.stand_ins[:count].reshape(count, -1, height, width)
    scale = ImageScale.of(chain.from_iterable(images.values()), count=len(images) * count)
    for number, sample in enumerate(samples):
        for name, rows in images.items():
            sample[name] = scale.address(rows[number])
    picture: dict[str, Any] = {"width": scale.width, "height": scale.height, "shrunk": ""}
    if (scale.height, scale.width) != (height, width):
        picture["shrunk"] = f"{scale.height} × {scale.width} of {height} × {width} pixels"
    labels = explanation.players.labels.reshape(-1, height, width)
    if bool((labels == labels[:1]).all()):  # otherwise a pixel has several players
        picture["labels"] = scale.labels(labels[0])
    return picture
