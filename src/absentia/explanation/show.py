"""An explanation in words and tables: for the terminal, for notebooks, and as columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from absentia.notebook import html_result, html_table
from absentia.players import ALWAYS_PRESENT, Players
from absentia.plots import Explained, name_of_set
from absentia.wording import count_of

_MOST_SHOWN = 8


def explanation_text(explanation: Explained) -> str:
    """Say what was explained, how, and what came of it; figures of the first sample."""
    names, interactions = explanation.names, explanation.interactions
    lines = [_title(explanation), *_aligned(list(_facts(explanation).items()), 2)]
    lines.append(f"  {explanation.shapley.kind}:")
    lines += _aligned([(names[i], text) for i, text in _ranked(explanation, 0)[:_MOST_SHOWN]], 4)
    if len(names) > _MOST_SHOWN:
        lines.append(f"    … and {len(names) - _MOST_SHOWN} more players")
    if interactions is not None:
        lines.append("  strongest interactions:")
        top = interactions.top(5)
        lines += _aligned([(name_of_set(found.players), f"{found.effect:+.4g}") for found in top], 4)
    notes = [f"Note: {note}" for note in explanation.record.notes]
    lines += [textwrap.fill(note, 118, initial_indent="  ", subsequent_indent="    ") for note in notes]
    return "\n".join(lines)


def explanation_html(explanation: Explained) -> str:
    """Lay the same out for a notebook."""
    names, interactions = explanation.names, explanation.interactions
    ranked = _ranked(explanation, 0)
    parts = [html_table(["player", explanation.shapley.kind], [[names[i], text] for i, text in ranked[:20]])]
    if interactions is not None:
        top = [[name_of_set(found.players), f"{found.effect:+.4g}"] for found in interactions.top(10)]
        parts.append(html_table(["strongest interactions", "effect"], top))
    notes = list(explanation.record.notes)
    if len(names) > 20:
        notes.insert(0, f"… and {len(names) - 20} more players")
    return html_result(_title(explanation), _facts(explanation), *parts, notes=notes)


def explanation_columns(explanation: Explained) -> dict[str, Sequence[Any]]:
    """List the figures as columns, a row for each sample and player."""
    values, errors = explanation.shapley.values, explanation.shapley.errors
    samples, players = values.shape
    order = values.abs().argsort(dim=1, descending=True, stable=True)
    ranks = torch.empty_like(order).scatter_(1, order, torch.arange(1, players + 1).expand_as(order))
    return {
        "sample": torch.arange(samples).repeat_interleave(players).tolist(),
        "player": list(explanation.names) * samples,
        "value": values.flatten().tolist(),
        "error": errors.flatten().tolist(),
        "rank": ranks.flatten().tolist(),
        "input": _entries(explanation.x, explanation.players).flatten().tolist(),
        "stand_in": _entries(explanation.stand_ins, explanation.players, samples).flatten().tolist(),
    }


def _entries(inputs: Tensor | None, players: Players, samples: int = 0) -> Tensor:
    """Take the value of each player's entry; NaN where it has several, or there are no inputs."""
    count = samples if inputs is None else len(inputs)
    found = torch.full((count, len(players)), math.nan, dtype=torch.float64)
    labels = players.labels.flatten()
    owned = labels != ALWAYS_PRESENT
    single = (torch.bincount(labels[owned], minlength=len(players)) == 1)[labels.clamp_min(0)] & owned
    if inputs is not None:
        found[:, labels[single]] = inputs.flatten(1)[:, single].double()
    return found


def _title(explanation: Explained) -> str:
    samples = len(explanation.outputs)
    count = count_of(samples, "sample")
    return f"Explanation of {count}, {len(explanation.names)} players; value: {explanation.record.readout}"


def _facts(explanation: Explained) -> dict[str, str]:
    record = explanation.record
    how = "exact" if record.exact else f"sampled, seed {record.seed}"
    base, output = float(explanation.base_values[0]), float(explanation.outputs[0])
    where = "" if len(explanation.outputs) == 1 else "of sample 0, "
    return {
        "absence": record.absence,
        "cost": f"{record.evaluations:,} evaluations, {record.seconds:.1f} s; {how}",
        "value": f"{where}{base:.4g} with all players absent, {output:.4g} with all present",
    }


def _ranked(explanation: Explained, sample: int) -> list[tuple[int, str]]:
    """Write a sample's values out with their errors, the largest first."""
    values, errors = explanation.shapley.values[sample], explanation.shapley.errors
    ranked = values.abs().argsort(dim=0, descending=True, stable=True).tolist()
    if not bool(errors.any()):
        return [(i, f"{values[i]:+.4g}") for i in ranked]
    return [(i, f"{values[i]:+.4g} ± {errors[sample, i]:.2g}") for i in ranked]


def _aligned(cells: Sequence[tuple[str, str]], indent: int) -> list[str]:
    width = max((len(name) for name, _ in cells), default=0)
    return [f"{' ' * indent}{name:<{width}}  {text}" for name, text in cells]
