"""Learned baselines on the page: values beside quantiles of the data, the history of the loss, and settings."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.learning import LearnedBaseline
from absentia.plots.drawable import owner_names, players_of
from absentia.report.section import ImageScale, Section, numbers, run_settings
from absentia.results import written

# The page shows at most this many baselines, entries, checks of the loss and undetermined players.
_MOST_OWNERS, _MOST_ENTRIES, _MOST_CHECKS, _MOST_NAMES = 50, 200, 300, 12
_LEVELS = ("least", "5 %", "25 %", "median", "75 %", "95 %", "largest")
_SHARED_BY = {"all": "all samples", "class": "each class", "sample": "each sample"}


def baseline_section(learned: LearnedBaseline) -> Section:
    """Return the section of a learned baseline."""
    record, players, compared = learned.record, players_of(learned), learned.quantiles is not None
    owners = learned.values[None] if learned.share == "all" else learned.values
    values = owners[:_MOST_OWNERS]
    shown = _pictures(learned, values) if players.is_image else _entries(learned, values)
    how = "exact" if record.exact else "sampled"
    spread = f"; they ended within {record.spread:.2%} of each other" if len(record.starts) > 1 else ""
    return Section(
        "baseline",
        f"Baseline learned for {_SHARED_BY[learned.share]}",
        tuple(_lead(learned)),
        facts={
            "owners": owner_names(learned)[:_MOST_OWNERS],
            "image": players.is_image,
            "heads": _LEVELS if compared else (),
            "baselines": f"{_MOST_OWNERS} of {len(owners):,}" if len(owners) > _MOST_OWNERS else "",
            "entries": f"{_MOST_ENTRIES} of {owners[0].numel():,}" if owners[0].numel() > _MOST_ENTRIES else "",
            "settings": [
                ("Loss", f"{record.loss}, {how}, orders up to {record.orders}"),
                ("Value", record.readout),
                ("Bounds", record.bounds),
                ("Starts", (", ".join(record.starts) or "none") + spread),
                ("Samples", f"{record.samples:,}"),
                *run_settings(record),
            ],
        },
        data=shown | {"loss": record.loss, "history": _history(learned.history)},
    )


def _lead(learned: LearnedBaseline) -> list[str]:
    """Return sentences about how the search ended."""
    record = learned.record
    how = "converged" if record.converged else "did not converge"
    loss = f"{written(learned.loss, 4)} ({record.loss}, orders up to {record.orders})"
    found = [f"The search {how}: {record.stopped}. Loss: {loss}."]
    if record.undetermined:
        more = " …" if len(record.undetermined) > _MOST_NAMES else ""
        names = ", ".join(record.undetermined[:_MOST_NAMES])
        found.append(f"These players do not affect the loss and keep their start values: {names}{more}.")
    return found


def _entries(learned: LearnedBaseline, values: Shaped[Tensor, "owners *entries"]) -> dict[str, Any]:
    """Return the names and values of entries, and quantiles of the data."""
    players, undetermined = players_of(learned), set(learned.record.undetermined)
    found = {
        "names": players.entry_names()[:_MOST_ENTRIES],
        "values": numbers(values.flatten(1)[:, :_MOST_ENTRIES]),
        "undetermined": [name in undetermined for name in players.owner_names()[:_MOST_ENTRIES]],
    }
    if learned.quantiles is not None:
        found["quantiles"] = numbers(learned.quantiles.flatten(1)[:, :_MOST_ENTRIES].T)
    return found


def _pictures(learned: LearnedBaseline, values: Shaped[Tensor, "owners *entries"]) -> dict[str, Any]:
    """Return images of the baselines, and of the median of the data."""
    data = [] if learned.quantiles is None else [learned.quantiles.double()]
    images = torch.cat([values.double(), *data])[:, None].flatten(1, -3)
    scale = ImageScale.of(images, count=len(values) + len(data))
    addresses = [scale.address(image) for image in images[: len(values)]]
    if not data:
        return {"images": addresses}
    return {"images": addresses, "median": scale.address(images[len(values) + _LEVELS.index("median")])}


def _history(history: Float[Tensor, "checks 2"]) -> list[list[float]]:
    """Return evenly spaced rows of the history, including the last."""
    step = -(-max(len(history), 1) // _MOST_CHECKS)
    kept = history[::step] if (len(history) - 1) % step == 0 else torch.cat([history[::step], history[-1:]])
    found: list[list[float]] = numbers(kept, digits=5)
    return found
