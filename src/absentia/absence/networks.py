"""Networks on masked inputs, in which absent entries are NaN: how they read them, and the default ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Standardise(nn.Module):
    """Read masked inputs: standardised values, 0 where absent, and beside them what is present.

    A row of a table becomes twice as long; an image gets one more plane, the share of channels present in a pixel.

    >>> read = Standardise((2,), torch.tensor([1.0, 0.0]), torch.tensor([2.0, 0.0]))
    >>> read(torch.tensor([[2.0, torch.nan]]))
    tensor([[0.5000, 0.0000, 1.0000, 0.0000]])
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...], mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", mean.float())
        self.register_buffer("scale", torch.where(deviation > 0, deviation, 1.0).float())

    def standardised(self, rows: Float[Tensor, "rows *entries"]) -> Float[Tensor, "rows *entries"]:
        """Give the values in units of the data's deviations from its mean."""
        return (rows - self.mean) / self.scale

    def code(self, values: Tensor, present: Tensor) -> Tensor:
        """Put presence beside standardised values."""
        if len(self.shape) == 3:
            return torch.cat([values, present.to(values).mean(1, keepdim=True)], dim=1)
        return torch.cat([values.flatten(1), present.flatten(1).to(values)], dim=1)

    def forward(self, rows: Float[Tensor, "rows *entries"]) -> Tensor:
        """Read the rows."""
        present = ~rows.isnan()
        return self.code(torch.where(present, self.standardised(rows), 0.0), present)


def mlp(widths: Sequence[int]) -> nn.Sequential:
    """Build linear layers of these widths with a smooth rectifier between them.

    >>> [type(layer).__name__ for layer in mlp((3, 5, 2))]
    ['Linear', 'SiLU', 'Linear']
    """
    layers: list[nn.Module] = []
    for width, following in pairwise(widths):
        layers += [nn.Linear(width, following), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def default_network(shape: tuple[int, ...], outputs: int, seed: int) -> nn.Sequential:
    """Build the default network on what `Standardise` gives: convolutions for images, linear layers otherwise.

    >>> default_network((12,), 2, seed=0)[0]
    Linear(in_features=24, out_features=256, bias=True)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if len(shape) != 3:
            return mlp((2 * math.prod(shape), 256, 256, 256, outputs))
        channels, height, width = shape
        quarter = -(-height // 4) * -(-width // 4)
        return nn.Sequential(
            nn.Conv2d(channels + 1, 32, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(32, 48, 3, padding=1, stride=2),
            nn.SiLU(),
            nn.Conv2d(48, 64, 3, padding=1, stride=2),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(64 * quarter, 128),
            nn.SiLU(),
            nn.Linear(128, outputs),
        )
