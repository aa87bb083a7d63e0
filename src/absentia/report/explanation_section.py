"""Explanations on the page: sample by sample, Shapley values, interactions, pictures and inputs."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.explanation import Explanation
from absentia.players import ALWAYS_PRESENT, Players
from absentia.report.numbers import plain, written
from absentia.report.pictures import common_scale, is_image, shrink_labels
from absentia.report.section import Section
from absentia.report.strongest import KEPT, KEPT_UP_TO_EACH_ORDER, curve_counts, summarise
from absentia.wording import count_of

# The page shows so many samples at most, and fewer where they have very many players.
MOST_SAMPLES, _MOST_VALUES = 200, 100_000
# The entries of a player are written out where it has no more of them.
_FEW_ENTRIES = 4


def explanation_section(explanation: Explanation) -> Section:
    """Make an explanation ready for the page."""
    record, names = explanation.record, explanation.names
    total = len(explanation.outputs)
    shown = min(total, MOST_SAMPLES, max(1, _MOST_VALUES // len(names)))
    samples = [_sample(explanation, number) for number in range(shown)]
    data: dict[str, Any] = {"names": list(names), "readout": record.readout, "samples": samples}
    if total > 1:
        data["overall"] = plain(explanation.shapley.values.abs().mean(0))
    if explanation.interactions is not None:
        for sample, found in zip(samples, summarise(explanation.interactions, shown), strict=True):
            sample |= found
        data["counts"] = curve_counts(len(names))
    data |= _inputs(explanation, samples)
    count = count_of(total, "sample")
    how = "exact, from all coalitions" if record.exact else "sampled, with standard errors"
    return Section(
        "explanation",
        f"Explanation of {count}, {len(names)} players",
        (f"Value: {record.readout}; {how}. Absence: {record.absence}.",),
        facts={
            "choices": [_choice(explanation, number) for number in range(shown)],
            "image": "picture" in data,
            "shrunk": data.get("picture", {}).get("shrunk", ""),
            "exact": explanation.interactions is not None,
            "orders": len(names),
            "curve": "curve" in samples[0],
            "several": total > 1,
            "trimmed": _trimmed(explanation, shown),
            "notes": record.notes,
            "settings": _settings(explanation),
        },
        data=data,
    )


def _sample(explanation: Explanation, number: int) -> dict[str, Any]:
    attribution = explanation.shapley
    found = {
        "output": plain(explanation.outputs[number]),
        "base": plain(explanation.base_values[number]),
        "values": plain(attribution.values[number]),
    }
    if bool(attribution.errors.any()):
        found["errors"] = plain(attribution.errors[number], digits=2)
    if explanation.order_shapley is not None:
        found["orders"] = plain(explanation.order_shapley[number], digits=3)
    return found


def _choice(explanation: Explanation, number: int) -> str:
    """Word a sample in the list to choose from."""
    kind = "" if explanation.y is None else f", class {int(explanation.y[number])}"
    return f"{number}{kind}: {written(float(explanation.outputs[number]), 3)}"


def _inputs(explanation: Explanation, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Add inputs and stand-ins to the samples, as pictures or as numbers; return what all samples share."""
    x, stand_ins = explanation.x[: len(samples)], explanation.stand_ins
    stand_ins = None if stand_ins is None else stand_ins[: len(samples)]
    alike = stand_ins is not None and bool((stand_ins == stand_ins[:1]).all())
    shared: dict[str, Any] = {}
    if is_image(explanation.players.shape):
        return _pictures(explanation.players, x, stand_ins, samples)
    for sample, row in zip(samples, x, strict=True):
        sample["inputs"] = entries_of_players(row, explanation.players)
    if stand_ins is None:
        return shared
    if alike:
        return shared | {"standIns": entries_of_players(stand_ins[0], explanation.players)}
    for sample, row in zip(samples, stand_ins, strict=True):
        sample["standIns"] = entries_of_players(row, explanation.players)
    return shared


def _pictures(
    players: Players,
    x: Shaped[Tensor, "samples channels height width"],
    stand_ins: Shaped[Tensor, "samples channels height width"] | None,
    samples: list[dict[str, Any]],
) -> dict[str, Any]:
    everything = x if stand_ins is None else torch.cat([x, stand_ins.to(x)])
    scale = common_scale(everything, len(everything))
    size = f"{scale.height} × {scale.width} of {x.shape[2]} × {x.shape[3]} pixels"
    shared = {
        "width": scale.width,
        "height": scale.height,
        "shrunk": size if (scale.height, scale.width) != tuple(x.shape[2:]) else "",
    }
    for number, sample in enumerate(samples):
        sample["image"] = scale.picture(x[number])
        if stand_ins is not None:
            sample["standIn"] = scale.picture(stand_ins[number])
    if bool((players.labels == players.labels[:1]).all()):  # players that differ by channel have no one place
        shared["labels"] = shrink_labels(players.labels[0].cpu(), scale.height, scale.width).flatten().tolist()
    return {"picture": shared}


def entries_of_players(row: Shaped[Tensor, " *entries"], players: Players) -> list[Any]:
    """List each player's entries: a number, a few, or None where they are many.

    >>> entries_of_players(torch.tensor([1.0, 2.0, 3.0]), Players.groups({"a": [0, 2], "b": [1]}, 3))
    [[1, 3], 2]
    """
    labels, values = players.labels.flatten().cpu(), row.detach().flatten().cpu()
    sizes = torch.bincount(labels[labels != ALWAYS_PRESENT], minlength=len(players)).tolist()
    numbers = plain(values)
    found: list[Any] = [[] if size <= _FEW_ENTRIES else None for size in sizes]
    for label, value in zip(labels.tolist(), numbers, strict=True):
        if label != ALWAYS_PRESENT and found[label] is not None:
            found[label].append(value)
    return [one[0] if one is not None and len(one) == 1 else one for one in found]


def _trimmed(explanation: Explanation, shown: int) -> list[str]:
    """Say what the page leaves out."""
    total, found = len(explanation.outputs), []
    if shown < total:
        found.append(f"The page holds the first {shown:,} of {total:,} samples.")
    if explanation.interactions is not None and 2 ** len(explanation.names) - 1 > KEPT:
        found.append(
            f"It holds the {KEPT} strongest of {2 ** len(explanation.names) - 1:,} interactions of each sample, and "
            f"the {KEPT_UP_TO_EACH_ORDER} strongest up to each order."
        )
    return found


def _settings(explanation: Explanation) -> list[tuple[str, str]]:
    record = explanation.record
    return [
        ("Value", record.readout),
        ("Absence", record.absence),
        ("Method", "all coalitions, exact" if record.exact else "coalitions drawn by order"),
        ("Cost", f"{record.evaluations:,} evaluations of the model, {record.seconds:.1f} s"),
        ("Seed", str(record.seed)),
        ("Versions", f"absentia {record.version}, torch {record.torch_version}"),
    ]
