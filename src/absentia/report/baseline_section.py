"""Learned baselines on the page: their values beside the data's quantiles, the course of the search, its settings."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.learning import LearnedBaseline
from absentia.report.numbers import plain, written
from absentia.report.pictures import common_scale, is_image
from absentia.report.section import Section

# Baselines of each sample can be many, and samples can have many entries: the page shows so many of either.
_MOST_OWNERS, _MOST_ENTRIES = 50, 200
_MOST_CHECKS = 300
_WHOSE = {"all": "all samples", "class": "each class", "sample": "each sample"}
_LEVELS = ("least", "5 %", "25 %", "median", "75 %", "95 %", "most")
_MEDIAN = _LEVELS.index("median")


def baseline_section(learned: LearnedBaseline) -> Section:
    """Make a learned baseline ready for the page."""
    values = learned.values[None] if learned.share == "all" else learned.values[:_MOST_OWNERS]
    image = is_image(tuple(values.shape[1:]))
    shown = _pictures(learned, values) if image else _entries(learned, values)
    return Section(
        "baseline",
        f"Baseline learned for {_WHOSE[learned.share]}",
        tuple(_lead(learned)),
        facts={
            "owners": _owners(learned, len(values)),
            "image": image,
            "heads": _LEVELS if learned.quantiles is not None else (),
            "compared": learned.quantiles is not None,
            "trimmed": _trimmed(learned, len(values), image),
            "settings": _settings(learned),
        },
        data=shown | {"loss": learned.record.loss, "history": _history(learned.history)},
    )


def _lead(learned: LearnedBaseline) -> list[str]:
    record = learned.record
    how = "converged" if record.converged else "did not converge"
    found = [
        f"The search {how}: {record.stopped}. Loss: {written(learned.loss)} ({record.loss}, orders up to "
        f"{record.orders})."
    ]
    if record.undetermined:
        some = ", ".join(record.undetermined[:12]) + (" …" if len(record.undetermined) > 12 else "")
        found.append(f"Undetermined, and so left at the start's values: {some}.")
    return found


def _owners(learned: LearnedBaseline, shown: int) -> list[str]:
    """Name whose baseline each is; none where there is only one."""
    if learned.share == "all":
        return []
    if learned.classes is not None:
        return [f"class {number}" for number in learned.classes.tolist()[:shown]]
    return [f"sample {number}" for number in range(shown)]


def _entries(learned: LearnedBaseline, values: Shaped[Tensor, "owners *entries"]) -> dict[str, Any]:
    """List entries with their names, their values and the data's quantiles."""
    flat = values.flatten(1)[:, :_MOST_ENTRIES]
    found: dict[str, Any] = {"names": entry_names(learned)[:_MOST_ENTRIES], "values": plain(flat)}
    if learned.quantiles is not None:
        found["quantiles"] = plain(learned.quantiles.flatten(1)[:, :_MOST_ENTRIES].T)
    undetermined = set(learned.record.undetermined)
    owner_names = _player_of_each_entry(learned)[:_MOST_ENTRIES]
    return found | {"undetermined": [name in undetermined for name in owner_names]}


def entry_names(learned: LearnedBaseline) -> list[str]:
    """Name each entry by its player, and number it where the player has several."""
    players = _player_of_each_entry(learned)
    sizes, seen = Counter(players), Counter[str]()
    names = []
    for player in players:
        seen[player] += 1
        names.append(player if sizes[player] == 1 else f"{player} {seen[player]}")
    return names


def _player_of_each_entry(learned: LearnedBaseline) -> list[str]:
    """Tell each entry's player; entries that are always present have none, and say so."""
    size = learned.values.numel() if learned.share == "all" else learned.values[0].numel()
    if learned.labels is not None:
        labels = learned.labels.flatten().tolist()
        return [learned.names[label] if label >= 0 else "always present" for label in labels]
    return list(learned.names) if len(learned.names) == size else ["entry"] * size


def _pictures(learned: LearnedBaseline, values: Shaped[Tensor, "owners channels height width"]) -> dict[str, Any]:
    """Make baselines pictures, with the data's median beside them."""
    quantiles = learned.quantiles
    everything = values if quantiles is None else torch.cat([values.double(), quantiles.double()])
    scale = common_scale(everything, len(values) + 1)
    found: dict[str, Any] = {"images": [scale.picture(value) for value in values]}
    return found if quantiles is None else found | {"median": scale.picture(quantiles[_MEDIAN])}


def _history(history: Float[Tensor, "checks 2"]) -> list[list[float]]:
    """Thin the course of the search out; its last row stays."""
    step = -(-max(len(history), 1) // _MOST_CHECKS)
    kept = history[::step] if (len(history) - 1) % step == 0 else torch.cat([history[::step], history[-1:]])
    found: list[list[float]] = plain(kept, digits=5)
    return found


def _trimmed(learned: LearnedBaseline, shown: int, image: bool) -> list[str]:
    owners = 1 if learned.share == "all" else len(learned.values)
    entries = learned.values.numel() // owners
    found = []
    if shown < owners:
        found.append(f"The page holds the first {shown} of {owners:,} baselines.")
    if not image and entries > _MOST_ENTRIES:
        found.append(f"It shows the first {_MOST_ENTRIES} of {entries:,} entries.")
    return found


def _settings(learned: LearnedBaseline) -> list[tuple[str, str]]:
    record = learned.record
    starts = ", ".join(record.starts) or "none"
    spread = f"; they ended within {record.spread:.2%} of each other" if len(record.starts) > 1 else ""
    return [
        ("Loss", f"{record.loss}, {'exact' if record.exact else 'sampled'}, orders up to {record.orders}"),
        ("Bounds", record.bounds),
        ("Starts", starts + spread),
        ("Samples", f"{record.samples:,}"),
        ("Cost", f"{record.evaluations:,} evaluations of the model, {record.seconds:.1f} s"),
        ("Seed", str(record.seed)),
        ("Versions", f"absentia {record.version}, torch {record.torch_version}"),
    ]
