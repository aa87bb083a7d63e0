"""What the players of a sample are like, in one number and one text for each: for pictures that show them by name."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.players import ALWAYS_PRESENT, Players

_MOST_ENTRIES_SHOWN = 4


def player_means(x: Shaped[Tensor, "samples *entries"], players: Players) -> Float[Tensor, "samples players"]:
    """Average the entries of each player; a player of one entry has that entry's value.

    >>> player_means(torch.tensor([[1.0, 5.0, 3.0]]), Players.groups({"a": [0, 2], "b": [1]}, features=3))
    tensor([[2., 5.]], dtype=torch.float64)
    """
    labels = players.labels.flatten()
    owned = labels != ALWAYS_PRESENT
    rows = x.detach().cpu().double().flatten(1)[:, owned]
    sums = rows.new_zeros(len(rows), len(players)).index_add_(1, labels[owned], rows)
    return sums / torch.bincount(labels[owned], minlength=len(players))


def player_texts(x: Shaped[Tensor, "samples *entries"], players: Players) -> np.ndarray | None:
    """Write the entries of each player out, or their mean where they are many; nothing where each has only one.

    >>> player_texts(torch.tensor([[1.0, 5.0, 3.5]]), Players.groups({"a": [0, 2], "b": [1]}, features=3)).tolist()
    [['1, 3.5', '5']]
    """
    labels = players.labels.flatten()
    owned = [(labels == player).nonzero().flatten() for player in range(len(players))]
    if all(len(entries) == 1 for entries in owned):
        return None
    rows = x.detach().cpu().flatten(1)
    texts = np.empty((len(rows), len(players)), dtype=object)
    for player, entries in enumerate(owned):
        for sample, row in enumerate(rows[:, entries]):
            texts[sample, player] = _text(row)
    return texts


def _text(entries: Tensor) -> str:
    if len(entries) <= _MOST_ENTRIES_SHOWN:
        return ", ".join(f"{entry:.4g}" for entry in entries.tolist())
    return f"mean {entries.double().mean().item():.3g} of {len(entries)}"
