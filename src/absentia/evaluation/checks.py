"""Checks of coalitions and of their values."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from absentia.coalitions import coalition_members
from absentia.errors import wrong


def check_coalitions(coalitions: Tensor, players: int, samples: int | None = None) -> None:
    """Raise an error for coalitions of the wrong type or shape; with ``samples``, each sample may have its own."""
    shared = coalitions.ndim == 2
    own = samples is not None and coalitions.ndim == 3 and len(coalitions) == samples
    if coalitions.dtype == torch.bool and (shared or own) and coalitions.shape[-1] == players:
        return
    expected = f"be boolean of shape (coalitions, {players})"
    if samples is not None:
        expected += f" or ({samples}, coalitions, {players})"
    raise wrong("coalitions", expected, f"{coalitions.dtype} of shape {tuple(coalitions.shape)}")


def check_finite(values: Tensor, samples: Tensor, coalitions: Tensor | int, argument: str = "model") -> None:
    """Raise an error for values that are not finite; ``coalitions`` are theirs, or the number of the first one."""
    # The sum is the quick check; that of finite values may still overflow.
    if math.isfinite(values.detach().sum().item()) or bool(torch.isfinite(values).all()):
        return
    row, column = (~torch.isfinite(values)).nonzero()[0].tolist()[:2]
    if isinstance(coalitions, int):
        present = list(coalition_members(coalitions + column))
    else:
        present = coalitions[row, column].nonzero().flatten().tolist()
    value = values[row, column].flatten()[0].item()
    got = f"{value} for sample {int(samples[row])} with players {present} present"
    if argument != "model":
        raise wrong(argument, "be finite", got)
    then = ""
    if math.isinf(value):
        then = "Probabilities of 0 and 1 have infinite log-odds: use readout=Probability(y) to explain these."
    raise wrong("model", "give finite values", got, then)
