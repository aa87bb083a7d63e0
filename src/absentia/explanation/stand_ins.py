"""What an absence puts in when all players are absent, for people to see."""

from __future__ import annotations

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.absence import Absence, BringsModel
from absentia.inference import blocks
from absentia.players import Players

# So many numbers of stand-ins are made at a time, all draws of a few samples.
_NUMBERS_PER_BLOCK = 2**24


def empty_state(
    x: Shaped[Tensor, "samples *entries"], players: Players, absence: Absence
) -> Shaped[Tensor, "samples *entries"] | None:
    """Mask all players of every sample, and average over the draws; tokens, over which none exists, take the mode.

    Entries that are always present keep the sample's values. None where the absence brings its own model, which
    alone understands what it puts in.

    >>> import absentia as ab
    >>> background = torch.tensor([[0.0, 5.0], [1.0, 7.0]])
    >>> empty_state(torch.tensor([[9.0, 9.0]]), Players.groups({"first": [0]}, 2), ab.Marginal(background))
    tensor([[0.5000, 9.0000]])
    """
    if isinstance(absence, BringsModel):
        return None
    fill = absence.bind(x)
    nobody = players.presence(torch.zeros(1, 1, len(players), dtype=torch.bool, device=x.device))
    at_once = max(1, _NUMBERS_PER_BLOCK // (fill.draws * x[0].numel()))
    parts = []
    for samples in blocks(len(x), at_once):
        draws = fill(samples, nobody)[:, 0].detach()
        if draws.shape[1] == 1:
            parts.append(draws[:, 0])
        else:
            parts.append(draws.mean(1) if draws.is_floating_point() else draws.mode(1).values)
    return torch.cat(parts).cpu()
