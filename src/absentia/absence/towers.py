"""Layers from masked inputs to features, and from features back to inputs: flat ones, and convolutions for images."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from absentia.absence.networks import mlp

# Images of more pixels are cut into patches, which convolutions see beside each other; smaller ones are flat rows.
_MOST_FLAT_PIXELS = 256
_PATCHES_PER_SIDE = 8


def choose_patch(shape: tuple[int, ...]) -> int:
    """Choose the side of the patches that an image is cut into; 0 for inputs that are taken as flat rows.

    >>> choose_patch((12,)), choose_patch((1, 8, 8)), choose_patch((1, 28, 28)), choose_patch((3, 32, 32))
    (0, 0, 4, 4)
    """
    if len(shape) != 3 or shape[1] * shape[2] <= _MOST_FLAT_PIXELS:
        return 0
    return -(-max(shape[1:]) // _PATCHES_PER_SIDE)


def features_shape(shape: tuple[int, ...], hidden: int, patch: int) -> tuple[int, ...]:
    """Tell the shape of one row's features.

    >>> features_shape((12,), 64, 0), features_shape((1, 28, 30), 48, 4)
    ((64,), (48, 7, 8))
    """
    return (hidden, -(-shape[1] // patch), -(-shape[2] // patch)) if patch else (hidden,)


def tower(shape: tuple[int, ...], hidden: int, patch: int) -> nn.Sequential:
    """Build layers from what `Standardise` reads to features."""
    if patch:
        _, rows, columns = features_shape(shape, hidden, patch)
        beyond = (0, columns * patch - shape[2], 0, rows * patch - shape[1])
        first = nn.Conv2d(shape[0] + 1, hidden, patch, stride=patch)
        return nn.Sequential(nn.ZeroPad2d(beyond), first, Residual(hidden), Residual(hidden))
    inputs = (shape[0] + 1) * shape[1] * shape[2] if len(shape) == 3 else 2 * math.prod(shape)
    return nn.Sequential(nn.Flatten(), mlp((inputs, hidden, hidden)), nn.SiLU())


class Residual(nn.Module):
    """A convolution that changes what is there, rather than replace it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.change = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(1, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 1),
        )

    def forward(self, features: Float[Tensor, "rows channels height width"]) -> Tensor:
        """Add the change."""
        changed: Tensor = features + self.change(features)
        return changed


class FlatDecoder(nn.Module):
    """Layers from a latent and features to two numbers for each entry of a row."""

    def __init__(self, shape: tuple[int, ...], latent: int, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        self.layers = mlp((latent + hidden, hidden, hidden, 2 * math.prod(shape)))

    def forward(self, latent: Float[Tensor, "rows latent"], features: Float[Tensor, "rows hidden"]) -> Tensor:
        """Give the numbers, (rows, 2, *entries)."""
        numbers: Tensor = self.layers(torch.cat([latent, features], dim=1))
        return numbers.view(-1, 2, *self.shape)


class ImageDecoder(nn.Module):
    """Layers from a latent and the features of patches to two numbers for each entry of an image."""

    def __init__(self, shape: tuple[int, ...], latent: int, hidden: int, patch: int) -> None:
        super().__init__()
        self.shape = shape
        features = features_shape(shape, hidden, patch)
        # The latent speaks to every patch in its own way.
        self.spread = nn.Sequential(nn.Linear(latent, math.prod(features)), nn.Unflatten(1, features))
        last = nn.Conv2d(hidden, 2 * shape[0] * patch**2, 1)
        self.layers = nn.Sequential(Residual(hidden), Residual(hidden), last, nn.PixelShuffle(patch))

    def forward(self, latent: Float[Tensor, "rows latent"], features: Tensor) -> Tensor:
        """Give the numbers, (rows, 2, *entries)."""
        channels, height, width = self.shape
        numbers: Tensor = self.layers(features + self.spread(latent))
        return numbers[..., :height, :width].unflatten(1, (2, channels))


def decoder(shape: tuple[int, ...], latent: int, hidden: int, patch: int) -> nn.Module:
    """Build layers from a latent and features to two numbers for each entry."""
    return ImageDecoder(shape, latent, hidden, patch) if patch else FlatDecoder(shape, latent, hidden)
