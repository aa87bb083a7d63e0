"""Learned baselines on the page: values beside quantiles of the data, the history of the loss, and settings."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.learning import LearnedBaseline
from absentia.plots.drawable import owner_names, players_of
from absentia.plots.look import LOOKS
from absentia.report.section import ImageScale, Section, numbers, texts
from absentia.results import written

# The page shows at most this many baselines, entries and checks of the loss.
_MOST_OWNERS, _MOST_ENTRIES, _MOST_CHECKS = 50, 200, 300
_MEDIAN = 3  # the row of the quantiles
_SHARED_BY = {"all": "all samples", "class": "each class", "sample": "each sample"}


def baseline_section(learned: LearnedBaseline) -> Section:
    """Return the section of a learned baseline."""
    record = learned.record
    values = (learned.values[None] if learned.share == "all" else learned.values)[:_MOST_OWNERS]
    shown = _pictures(learned, values) if players_of(learned).is_image else _entries(learned, values)
    how = "converged" if record.converged else "did not converge"
    loss = f"{written(learned.loss, 4)} ({record.loss}, orders up to {record.orders})"
    heading, sentence = f"Baseline learned for {_SHARED_BY[learned.share]}", f"The search {how}: {record.stopped}."
    checks = torch.linspace(0, len(learned.history) - 1, min(len(learned.history), _MOST_CHECKS)).round().long()
    history = [
        [*numbers(row), f"{row[0]:,.0f} evaluations: {written(float(row[1]), 4)}"] for row in learned.history[checks]
    ]
    data = shown | {"colour": LOOKS["learned"][0], "loss": record.loss, "history": history}
    data["owners"] = owner_names(learned)[:_MOST_OWNERS]
    return Section("baseline", heading, f"{sentence} Loss: {loss}.", learned, data)


def _entries(learned: LearnedBaseline, values: Shaped[Tensor, "owners *entries"]) -> dict[str, Any]:
    """Return the names and values of entries, and quantiles of the data."""
    players, undetermined = players_of(learned), set(learned.record.undetermined)
    kept = values.flatten(1)[:, :_MOST_ENTRIES]
    found = {
        "names": players.entry_names()[:_MOST_ENTRIES],
        "values": numbers(kept),
        "texts": texts(kept),
        "undetermined": [name in undetermined for name in players.owner_names()[:_MOST_ENTRIES]],
    }
    if learned.quantiles is not None:
        levels = learned.quantiles.flatten(1)[:, :_MOST_ENTRIES].T
        found |= {"quantiles": numbers(levels), "levels": texts(levels)}
    return found


def _pictures(learned: LearnedBaseline, values: Shaped[Tensor, "owners *entries"]) -> dict[str, Any]:
    """Return images of the baselines, and of the median of the data."""
    owners, data = (
        [image[None].flatten(0, -3) for image in rows]
        for rows in (values, () if learned.quantiles is None else learned.quantiles)
    )
    scale = ImageScale.of(chain(owners, data), count=len(owners) + bool(data))
    found: dict[str, Any] = {"images": [scale.address(image) for image in owners]}
    return found | {"median": scale.address(data[_MEDIAN])} if data else found
