"""Explanations on the page: for each sample its Shapley values, what is kept of 2ⁿ effects, images or inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.coalitions import coalition_sizes
from absentia.data import blocks
from absentia.explanation import Explanation
from absentia.interactions import Interactions
from absentia.plots.drawable import answer, ends, largest_and_others, sample_name
from absentia.report.section import ImageScale, Section, numbers, texts
from absentia.results import count_of, written

# The page shows this many samples at most, and fewer if they have very many players.
MOST_SAMPLES, _MOST_VALUES = 200, 100_000
# The page keeps this many of the strongest effects of a sample, and this many of those up to each order.
KEPT, KEPT_UP_TO_EACH_ORDER = 50, 15
_MOST_BARS, _MOST_ROWS = 20, 200  # players in a chart and in a table
# Coalitions that are processed at once, and up to which sparsity curves are computed.
_AT_A_TIME, _MOST_REBUILT = 2**17, 2**22


def explanation_section(explanation: Explanation) -> Section:
    """Return the section of an explanation."""
    names, interactions, total = explanation.names, explanation.interactions, explanation.samples
    shown = min(total, MOST_SAMPLES, max(1, _MOST_VALUES // len(names)))
    samples = [_sample(explanation, number) for number in range(shown)]
    players = explanation.players
    text = players.integer or (len(players.shape) == 2 and not players.is_image)  # tokens, or their embedding
    data: dict[str, Any] = {"names": list(names), "samples": samples, "text": text}
    if total > 1:
        overall = explanation.shapley.values.abs().mean(0)
        data["overall"] = [[i, written(float(overall[i]), 4)] for i in largest_and_others(overall, _MOST_BARS)[0]]
    if interactions is not None:
        for sample, found in zip(samples, summarise(interactions, shown), strict=True):
            sample |= found
        data["counts"] = curve_counts(len(names))
        data["kept"] = (KEPT, KEPT_UP_TO_EACH_ORDER)
    if players.is_image:
        data["picture"] = _pictures(explanation, samples)
    heading = f"Explanation of {count_of(total, 'sample')}, {len(names)} players"
    return Section("explanation", heading, samples[0]["answer"], explanation, data)


def _sample(explanation: Explanation, number: int) -> dict[str, Any]:
    """Return the numbers of one sample: to draw, and as they are shown."""
    attribution, name, both = explanation.shapley, sample_name(explanation, number), ends(explanation, number)
    values = attribution.values[number]
    first, others = largest_and_others(values, _MOST_BARS)
    found = {
        "choice": f"{name}: {both[1]}",
        "answer": f"Sample {name}: {answer(explanation, number)}",
        "ends": both,
        "output": numbers(explanation.outputs[number]),
        "base": numbers(explanation.base_values[number]),
        "values": numbers(values),
        "ranked": attribution.ranked(number)[:_MOST_ROWS],
        "bars": len(first),
        "most": written(float(values.abs().max()), 2),
    }
    if others:
        rest = float(values[others].sum())
        found["others"] = [len(others), float(f"{rest:.6g}"), written(rest, 4, plus=True)]
    if bool(attribution.errors.any()):
        found["errors"] = numbers(attribution.errors[number], digits=2)
    if explanation.order_shapley is not None:
        found["orders"] = texts(explanation.order_shapley[number], 3, plus=True)
    for key, rows in {"inputs": explanation.x, "standIns": explanation.stand_ins}.items():
        if rows is not None and not explanation.players.is_image:
            (entries,) = explanation.players.texts(rows[number : number + 1])
            found[key] = [entry.replace("-", "−") for entry in entries]
    return found


def _pictures(explanation: Explanation, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Add images of inputs and stand-ins to the samples; return their size and the player of each pixel."""
    height, width = explanation.players.shape[-2:]
    given = {"image": explanation.x, "standIn": explanation.stand_ins}
    rows = {name: some[: len(samples)] for name, some in given.items() if some is not None}
    images = {name: some.reshape(len(samples), -1, height, width) for name, some in rows.items()}
    scale = ImageScale.of(chain.from_iterable(images.values()), count=len(images) * len(samples))
    for number, sample in enumerate(samples):
        sample |= {name: scale.address(some[number]) for name, some in images.items()}
    size = f"{scale.height} × {scale.width} of {height} × {width} pixels"
    shared: dict[str, Any] = {"width": scale.width, "height": scale.height}
    shared["shrunk"] = size if (scale.height, scale.width) != (height, width) else ""
    labels = explanation.players.labels.reshape(-1, height, width)
    if bool((labels == labels[:1]).all()):  # otherwise a pixel has several players
        shared["labels"] = scale.labels(labels[0])
    return shared


def summarise(interactions: Interactions, samples: int) -> Iterator[dict[str, Any]]:
    """Yield the kept effects, the strength by order and the sparsity curve of each of the first samples."""
    players = len(interactions.names)
    for few in blocks(samples, max(1, _AT_A_TIME >> players)):
        effects, noise = interactions.effects[few].detach().cpu(), interactions.noise[few].cpu()
        part = replace(interactions, effects=effects, noise=noise)
        shares, measurable = 100 * part.by_order().ratios, part.measurable
        curve = 100 * sparsity_curve(part) if samples * 2**players <= _MOST_REBUILT else None
        for row, kept in enumerate(strongest(effects)):
            pairs = zip(kept.tolist(), texts(effects[row, kept], plus=True), strict=True)
            sure = measurable[row, kept].tolist()
            # A third entry marks an effect within rounding error.
            shown = [[*pair] if certain else [*pair, 1] for pair, certain in zip(pairs, sure, strict=True)]
            found = {"effects": shown, "shares": texts(shares[row, 1:], 3)}
            yield found if curve is None else found | {"curve": texts(curve[row], 3)}


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
