"""What to call a player in a picture of one sample: its name, with its value where it has only one."""

from __future__ import annotations

from absentia.players import ALWAYS_PRESENT
from absentia.plots.explained import Explained
from absentia.plots.look import shorten


def player_labels(explanation: Explained, sample: int) -> list[str]:
    """Write each player's name, and the value of its entry where it has a single one that is not a token.

    >>> import torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> player_labels(explanation, sample=0)
    ['x0 = 2', 'x1 = 3']
    """
    players, row = explanation.players, explanation.x[sample].flatten()
    names = [shorten(name) for name in players.names]
    owners = players.labels.flatten()
    counts = owners[owners != ALWAYS_PRESENT].bincount(minlength=len(players))
    if players.integer or len(players.shape) > 1:
        return names
    for entry, player in enumerate(owners.tolist()):
        if player != ALWAYS_PRESENT and counts[player] == 1:
            value = f"{float(row[entry]):.4g}".replace("-", "−")
            names[player] = f"{names[player]} = {value}"
    return names
