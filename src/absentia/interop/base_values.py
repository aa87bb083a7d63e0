"""The value of the empty coalition, v(∅), which peers call base value or baseline value and attributions lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.arrays import Array, as_tensor
from absentia.errors import wrong
from absentia.game import Game

# v(∅) as a number for all samples or one for each; or the game, which is then asked.
BaseValues: TypeAlias = Game | float | Sequence[float] | Array


def empty_values(given: BaseValues, samples: int) -> Float[Tensor, " samples"]:
    """Take v(∅) as given, or ask the game for it.

    >>> import absentia as ab
    >>> empty_values(ab.ValueTable([[2.0, 3.0], [4.0, 6.0]]), samples=2)
    tensor([2., 4.], dtype=torch.float64)
    >>> empty_values(0.5, samples=2)
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    if isinstance(given, Game):
        values = given(torch.zeros(1, len(given.names), dtype=torch.bool))[:, 0]
    else:
        values = as_tensor("base_values", given)
    if values.ndim > 1 or (values.ndim == 1 and len(values) not in (1, samples)):
        must = f"be the game, one number, or one for each of the {samples} samples"
        raise wrong("base_values", must, f"shape {tuple(values.shape)}")
    return values.detach().cpu().double().expand(samples).clone()


def check_sample(sample: int, samples: int) -> None:
    """Refuse the number of a sample that is not there."""
    if not 0 <= sample < samples:
        raise wrong("sample", f"lie between 0 and {samples - 1}", sample)
