"""Samples that are images, as matplotlib draws them: which samples are, their pixels, the owners of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CHANNELS = (1, 3)


def is_image(labels: Int[Tensor, " *entries"]) -> bool:
    """Tell whether players are areas of an image, (channels, height, width) with 1 or 3 channels or (height, width).

    Entries on two axes whose players are whole rows are tokens with their embedding.

    >>> is_image(torch.arange(4).reshape(1, 2, 2)), is_image(torch.tensor([[0, 0], [1, 1]]))
    (True, False)
    """
    if labels.ndim == 3:
        return labels.shape[0] in _CHANNELS
    return labels.ndim == 2 and not bool((labels == labels[:, :1]).all())


def owners(labels: Int[Tensor, " *entries"]) -> Int[Tensor, "height width"]:
    """Tell the player of each pixel; where channels have several, that of the first.

    >>> owners(torch.arange(4).reshape(1, 2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    return labels if labels.ndim == 2 else labels[0]


def value_range(*images: Shaped[Tensor, " *entries"]) -> tuple[float, float]:
    """Find the range that images are drawn in: 0 to 1 where they lie in it, their own otherwise.

    >>> value_range(torch.tensor([0.2, 0.9])), value_range(torch.tensor([-1.0, 3.0]))
    ((0.0, 1.0), (-1.0, 3.0))
    """
    low, high = (min(float(one.min()) for one in images), max(float(one.max()) for one in images))
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def draw_image(axes: Axes, image: Shaped[Tensor, " *entries"], within: tuple[float, float], title: str) -> Any:
    """Draw an image, grey where it has one channel, without ticks."""
    low, high = within
    scaled = ((image.detach().cpu().double() - low) / max(high - low, 1e-12)).clamp(0, 1)
    if scaled.ndim == 3 and scaled.shape[0] == 3:
        drawn = axes.imshow(scaled.permute(1, 2, 0).numpy(), interpolation="nearest")
    else:
        flat = scaled[0] if scaled.ndim == 3 else scaled
        drawn = axes.imshow(flat.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    clear(axes, title)
    return drawn


def clear(axes: Axes, title: str) -> None:
    """Take ticks away, frame the picture, and name it."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#999999")
    axes.set_title(title, fontsize=10)


def spread(values: Float[Tensor, " players"], labels: Int[Tensor, " *entries"]) -> Float[Tensor, "height width"]:
    """Give every pixel the value of the player that it belongs to; NaN where it is always present.

    >>> spread(torch.tensor([1.0, 2.0]), torch.tensor([[0, 1], [1, -1]])).tolist()
    [[1.0, 2.0], [2.0, nan]]
    """
    return torch.cat([values.double(), torch.tensor([torch.nan]).double()])[owners(labels)]
