"""Explanations on the page: for each sample its Shapley values, what is kept of 2ⁿ effects, images or inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.coalitions import coalition_sizes
from absentia.data import blocks
from absentia.explanation import Explanation
from absentia.interactions import Interactions
from absentia.players import ALWAYS_PRESENT, Players
from absentia.plots.drawable import sample_name
from absentia.report.section import ImageScale, Section, numbers, run_settings
from absentia.results import count_of, written

# The page shows this many samples at most, and fewer if they have very many players.
MOST_SAMPLES, _MOST_VALUES = 200, 100_000
_FEW_ENTRIES = 4  # the entries of a player are shown if it has no more of them
# The page keeps this many of the strongest effects of a sample, and this many of those up to each order.
KEPT, KEPT_UP_TO_EACH_ORDER = 50, 15
# Coalitions that are processed at once, and up to which sparsity curves are computed.
_AT_A_TIME, _MOST_REBUILT = 2**17, 2**26


def explanation_section(explanation: Explanation) -> Section:
    """Return the section of an explanation."""
    record, names, interactions = explanation.record, explanation.names, explanation.interactions
    total, effects = len(explanation.outputs), 2 ** len(names) - 1
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
            "choices": [
                f"{sample_name(explanation, number)}: {written(float(explanation.outputs[number]))}"
                for number in range(shown)
            ],
            "image": "picture" in data,
            "shrunk": data.get("picture", {}).get("shrunk", ""),
            "exact": interactions is not None,
            "orders": len(names),
            "curve": "curve" in samples[0],
            "several": total > 1,
            "trimmed": f"{shown:,} of {total:,}" if shown < total else "",
            "kept": interactions is not None and effects > KEPT and f"{KEPT} strongest of {effects:,} interactions",
            "low": KEPT_UP_TO_EACH_ORDER,
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
    output, base = (written(float(values[number])) for values in (explanation.outputs, explanation.base_values))
    found = {
        "reading": f"v(N) = {output} with all players present, v(∅) = {base} with all absent.",
        "output": numbers(explanation.outputs[number]),
        "base": numbers(explanation.base_values[number]),
        "values": numbers(attribution.values[number]),
    }
    if bool(attribution.errors.any()):
        found["errors"] = numbers(attribution.errors[number], digits=2)
    if explanation.order_shapley is not None:
        found["orders"] = numbers(explanation.order_shapley[number], digits=3)
    return found


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
    """Return the entries of each player: a number, a few numbers, or None for many."""
    labels = players.labels.flatten().cpu()
    sizes = torch.bincount(labels[labels != ALWAYS_PRESENT], minlength=len(players)).tolist()
    found: list[Any] = [[] if size <= _FEW_ENTRIES else None for size in sizes]
    for label, value in zip(labels.tolist(), numbers(row.flatten()), strict=True):
        if label != ALWAYS_PRESENT and found[label] is not None:
            found[label].append(value)
    return [one[0] if one is not None and len(one) == 1 else one for one in found]


def summarise(interactions: Interactions, samples: int) -> Iterator[dict[str, Any]]:
    """Yield the kept effects, the strength by order and the sparsity curve of each of the first samples."""
    players = len(interactions.names)
    for few in blocks(samples, max(1, _AT_A_TIME >> players)):
        effects, noise = interactions.effects[few].detach().cpu(), interactions.noise[few].cpu()
        part = replace(interactions, effects=effects, noise=noise)
        profile, measurable = part.by_order().strength, part.measurable
        curve = sparsity_curve(part) if samples * 2**players <= _MOST_REBUILT else None
        for row, kept in enumerate(strongest(effects)):
            pairs = zip(kept.tolist(), numbers(effects[row, kept], digits=3), strict=True)
            sure = measurable[row, kept].tolist()
            # A third entry marks an effect within rounding error.
            shown = [[*pair] if certain else [*pair, 1] for pair, certain in zip(pairs, sure, strict=True)]
            found = {"effects": shown, "profile": numbers(profile[row, 1:])}
            yield found if curve is None else found | {"curve": numbers(curve[row], digits=3)}


def strongest(effects: Float[Tensor, "samples coalitions"]) -> list[Int[Tensor, " kept"]]:
    """Return the numbers of the coalitions to keep, the strongest effect first, without v(∅)."""
    strength = effects.abs()
    sizes = coalition_sizes(effects.shape[1].bit_length() - 1)
    kept = [strength[:, 1:].topk(min(KEPT, effects.shape[1] - 1)).indices + 1]
    best = torch.empty(len(effects), 0, dtype=torch.int64)
    for order in range(1, int(sizes.max()) + 1):
        own = (sizes == order).nonzero()[:, 0]
        first = strength[:, own].topk(min(KEPT_UP_TO_EACH_ORDER, len(own))).indices
        best = torch.cat([best, own[first]], dim=1)
        ranked = strength.gather(1, best).topk(min(KEPT_UP_TO_EACH_ORDER, best.shape[1])).indices
        best = best.gather(1, ranked)
        kept.append(best)
    rows = [row.unique() for row in torch.cat(kept, dim=1)]
    return [row[one[row].argsort(descending=True)] for one, row in zip(strength, rows, strict=True)]


def curve_counts(players: int) -> list[int]:
    """Return the numbers of effects at which a sparsity curve has points."""
    return [2**power for power in range(players)] + [2**players - 1]


def sparsity_curve(interactions: Interactions) -> Float[Tensor, "samples counts"]:
    """Return the error of values rebuilt from the strongest effects, for each of `curve_counts`; NaN if constant."""
    strength = interactions.effects.abs()
    strength[:, 0] = torch.inf
    ranked = strength.sort(1, descending=True).values
    values = interactions.reconstruct()
    spread = values.std(1, correction=0)
    spread = torch.where(spread > interactions.noise, spread, torch.nan)
    errors = [
        (interactions.reconstruct(keep=strength >= ranked[:, count, None]) - values).square_().mean(1).sqrt_()
        for count in curve_counts(len(interactions.names))
    ]
    return torch.stack(errors, dim=1) / spread[:, None]
