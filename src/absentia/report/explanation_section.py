"""The section of an explanation: samples with their attributions, interactions and pictures."""

from __future__ import annotations

from itertools import chain
from typing import Any

from jaxtyping import Shaped
from torch import Tensor

from absentia.explanation import Explanation
from absentia.players import Players
from absentia.plots.drawable import answer
from absentia.plots.strongest_sets import Ends
from absentia.report.pixels import ImageScale
from absentia.report.section import Section
from absentia.report.shown_interactions import add_interactions
from absentia.report.shown_values import count_shown, values_by_order, values_of_sample, values_overall
from absentia.text import count_of, written


def explanation_section(explanation: Explanation) -> Section:
    """Return the section of an explanation."""
    names = explanation.names
    total = explanation.samples
    shown = count_shown(total, len(names))
    samples = [_sample(explanation, number) for number in range(shown)]
    data: dict[str, Any] = {
        "names": list(names),
        "samples": samples,
        "text": _is_text(explanation.players),
        "single": explanation.players.single.tolist(),
    }
    if total > 1:
        data["overall"] = values_overall(explanation.shapley)
    if explanation.interactions is not None:
        add_interactions(data, explanation.interactions)
    if explanation.players.is_image:
        data["picture"] = _add_images(samples, explanation)
    data["estimate"] = _how_estimated(explanation)
    heading = f"Explanation of {count_of(total, 'sample')}, {len(names)} players"
    return Section("explanation", heading, samples[0]["answer"], explanation, data)


def _how_estimated(explanation: Explanation) -> str:
    """Say how the values were computed."""
    terms = explanation.interactions
    if terms is not None and not terms.is_full:
        quality = "exact" if explanation.record.exact else "estimated"
        return f"{quality}, from {count_of(len(terms.effects), 'listed set')} of players"
    if explanation.record.exact:
        return "exact, from all coalitions"
    return "from coalitions drawn by order, with standard errors"


def _is_text(players: Players) -> bool:
    """Return whether the players are tokens, either as token numbers or as embeddings."""
    has_embedding = len(players.shape) == 2 and not players.is_image
    return players.integer or has_embedding


def _sample(explanation: Explanation, number: int) -> dict[str, Any]:
    """Return the numbers of one sample, to draw and as shown."""
    name = explanation.sample_name(number)
    ends = Ends(base=float(explanation.base_values[number]), output=float(explanation.outputs[number]))
    data: dict[str, Any] = {
        "choice": f"{name}: {written(ends.output, 4)}",
        "answer": f"{name[0].upper()}{name[1:]}: {answer(explanation, number)}",
    }
    data |= values_of_sample(explanation.shapley, number, ends)
    if explanation.order_shapley is not None:
        data["orders"] = values_by_order(explanation.order_shapley, number)
    if not explanation.players.is_image:
        data["inputs"] = _entry_texts(explanation.players, explanation.x, number)
        if explanation.stand_ins is not None:
            data["standIns"] = _entry_texts(explanation.players, explanation.stand_ins, number)
    return data


def _entry_texts(players: Players, rows: Shaped[Tensor, "samples *entries"], number: int) -> list[str]:
    """Return the entries of the players in one row, as shown."""
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
