"""Checks of coalitions and of their values."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from absentia.coalitions import coalition_members
from absentia.errors import wrong


def check_coalitions(coalitions: Tensor, players: int, samples: int | None = None) -> None:
    """Raise an error if coalitions have the wrong type or shape; with ``samples``, each sample may have its own."""
    shared = coalitions.ndim == 2
    one_for_each_sample = samples is not None and coalitions.ndim == 3 and len(coalitions) == samples
    if coalitions.dtype == torch.bool and (shared or one_for_each_sample) and coalitions.shape[-1] == players:
        return
    expected = f"be boolean of shape (coalitions, {players})"
    if samples is not None:
        expected += f" or ({samples}, coalitions, {players})"
    raise wrong("coalitions", expected, f"{coalitions.dtype} of shape {tuple(coalitions.shape)}")


def check_finite(values: Tensor, samples: Tensor, coalitions: Tensor | int, argument: str = "model") -> None:
    """Raise an error if a value is not finite; ``coalitions`` holds the coalitions, or the number of the first."""
    # The sum is a quick check, but a sum of finite values may overflow: then every value is checked.
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
    if not math.isinf(value):
        raise wrong("model", "give finite values", got)
    then = "Probabilities of 0 and 1 have infinite log-odds: use readout=Probability(y) to explain these."
    then_in_commands = "Probabilities of 0 and 1 have infinite log-odds: use --readout probability to explain these."
    raise wrong("model", "give finite values", got, then, then_in_commands)
