"""Explanations on the page: for each sample its Shapley values, interactions, images or inputs."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.explanation import Explanation
from absentia.players import ALWAYS_PRESENT, Players
from absentia.plots.drawable import sample_name
from absentia.report.kept_effects import KEPT, KEPT_UP_TO_EACH_ORDER, curve_counts, summarise
from absentia.report.section import ImageScale, Section, numbers, run_settings
from absentia.results import count_of, written

# The page shows this many samples at most, and fewer if they have very many players.
MOST_SAMPLES, _MOST_VALUES = 200, 100_000
_FEW_ENTRIES = 4  # the entries of a player are shown if it has no more of them


def explanation_section(explanation: Explanation) -> Section:
    """Return the section of an explanation."""
    record, names, interactions = explanation.record, explanation.names, explanation.interactions
    total = len(explanation.outputs)
    shown = min(total, MOST_SAMPLES, max(1, _MOST_VALUES // len(names)))
    samples = [_sample(explanation, number) for number in range(shown)]
    data: dict[str, Any] = {"names": list(names), "readout": record.readout, "samples": samples}
    if total > 1:
        data["overall"] = numbers(explanation.shapley.values.abs().mean(0))
    if interactions is not None:
        for sample, found in zip(samples, summarise(interactions, shown), strict=True):
            sample |= found
        data["counts"] = curve_counts(len(names))
    data |= _pictures(explanation, samples) if explanation.players.is_image else _inputs(explanation, samples)
    how = "exact, from all coalitions" if record.exact else "sampled, with standard errors"
    return Section(
        "explanation",
        f"Explanation of {count_of(total, 'sample')}, {len(names)} players",
        (f"Value: {record.readout}; {how}. Absence: {record.absence}.",),
        facts={
            "choices": [_choice(explanation, number) for number in range(shown)],
            "image": "picture" in data,
            "shrunk": data.get("picture", {}).get("shrunk", ""),
            "exact": interactions is not None,
            "orders": len(names),
            "curve": "curve" in samples[0],
            "several": total > 1,
            "trimmed": _trimmed(explanation, shown),
            "notes": record.notes,
            "settings": [
                ("Value", record.readout),
                ("Absence", record.absence),
                ("Estimate", "exact, from all coalitions" if record.exact else "from coalitions drawn by order"),
                *run_settings(record),
            ],
        },
        data=data,
    )


def _sample(explanation: Explanation, number: int) -> dict[str, Any]:
    """Return the numbers of one sample."""
    attribution = explanation.shapley
    found = {
        "output": numbers(explanation.outputs[number]),
        "base": numbers(explanation.base_values[number]),
        "values": numbers(attribution.values[number]),
    }
    if bool(attribution.errors.any()):
        found["errors"] = numbers(attribution.errors[number], digits=2)
    if explanation.order_shapley is not None:
        found["orders"] = numbers(explanation.order_shapley[number], digits=3)
    return found


def _choice(explanation: Explanation, number: int) -> str:
    """Return the text of a sample in the list to choose from."""
    return f"{sample_name(explanation, number)}: {written(float(explanation.outputs[number]))}"


def _inputs(explanation: Explanation, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Add inputs and stand-ins to the samples; return the stand-ins if all samples share them."""
    players, stand_ins = explanation.players, explanation.stand_ins
    for sample, row in zip(samples, explanation.x, strict=False):
        sample["inputs"] = entries_of_players(row, players)
    if stand_ins is None:
        return {}
    if bool((stand_ins[: len(samples)] == stand_ins[:1]).all()):
        return {"standIns": entries_of_players(stand_ins[0], players)}
    for sample, row in zip(samples, stand_ins, strict=False):
        sample["standIns"] = entries_of_players(row, players)
    return {}


def _pictures(explanation: Explanation, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Add images of inputs and stand-ins to the samples; return their size and the player of each pixel."""
    found = {"image": explanation.x, "standIn": explanation.stand_ins}
    height, width = explanation.players.shape[-2:]
    images = {
        name: rows[: len(samples)].reshape(len(samples), -1, height, width).double()
        for name, rows in found.items()
        if rows is not None
    }
    scale = ImageScale.of(torch.cat(list(images.values())))
    for number, sample in enumerate(samples):
        sample |= {name: scale.address(rows[number]) for name, rows in images.items()}
    size = f"{scale.height} × {scale.width} of {height} × {width} pixels"
    shared: dict[str, Any] = {"width": scale.width, "height": scale.height}
    shared["shrunk"] = size if (scale.height, scale.width) != (height, width) else ""
    labels = explanation.players.labels.reshape(-1, height, width)
    if bool((labels == labels[:1]).all()):  # otherwise a pixel has several players
        shared["labels"] = scale.labels(labels[0])
    return {"picture": shared}


def entries_of_players(row: Shaped[Tensor, " *entries"], players: Players) -> list[Any]:
    """Return the entries of each player: a number, a few numbers, or None for many.

    >>> entries_of_players(torch.tensor([1.0, 2.0, 3.0]), Players.groups({"a": [0, 2], "b": [1]}, 3))
    [[1, 3], 2]
    """
    labels = players.labels.flatten().cpu()
    sizes = torch.bincount(labels[labels != ALWAYS_PRESENT], minlength=len(players)).tolist()
    found: list[Any] = [[] if size <= _FEW_ENTRIES else None for size in sizes]
    for label, value in zip(labels.tolist(), numbers(row.flatten()), strict=True):
        if label != ALWAYS_PRESENT and found[label] is not None:
            found[label].append(value)
    return [one[0] if one is not None and len(one) == 1 else one for one in found]


def _trimmed(explanation: Explanation, shown: int) -> list[str]:
    """Return sentences about what the page leaves out."""
    total, found = len(explanation.outputs), []
    if shown < total:
        found.append(f"The page holds the first {shown:,} of {total:,} samples.")
    effects = 2 ** len(explanation.names) - 1
    if explanation.interactions is not None and effects > KEPT:
        found.append(
            f"It holds the {KEPT} strongest of {effects:,} interactions of each sample, and "
            f"the {KEPT_UP_TO_EACH_ORDER} strongest up to each order."
        )
    return found
