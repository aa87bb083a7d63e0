"""A blur as an absence: the image without its detail."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from absentia.absences.protocol import Fill, Samples, StandIns
from absentia.errors import wrong


@dataclass(frozen=True)
class Blur:
    """The image itself, blurred by a Gaussian that is mirrored at the border.

    It takes inputs of shape (…, height, width) and blurs each channel on its own.

    Parameters
    ----------
    sigma : float
        The standard deviation of the Gaussian, in pixels.

    Examples
    --------
    >>> dot = torch.zeros(1, 1, 3, 3)
    >>> dot[..., 1, 1] = 1.0
    >>> all_absent = torch.zeros(1, 1, 1, 3, 3, dtype=torch.bool)
    >>> Blur(0.5).bind(dot)(slice(None), all_absent).round(decimals=2).squeeze()
    tensor([[0.0500, 0.1700, 0.0500],
            [0.1700, 0.6200, 0.1700],
            [0.0500, 0.1700, 0.0500]])
    """

    sigma: float

    def __post_init__(self) -> None:
        if not self.sigma > 0 or math.isinf(self.sigma):
            raise wrong("sigma", "be a positive number of pixels", self.sigma)

    def bind(self, x: Samples) -> Fill:
        """Blur the samples."""
        if x.ndim < 3 or not x.is_floating_point():
            expected = "be images of shape (samples, …, height, width) in floating point for Blur"
            raise wrong("x", expected, f"{x.dtype} of shape {tuple(x.shape)}")
        rows, columns = (_blur_matrix(length, self.sigma).to(x) for length in x.shape[-2:])
        return StandIns(x, (rows @ x @ columns.T)[:, None])


def _blur_matrix(length: int, sigma: float) -> Tensor:
    """Return the blur along one axis as a matrix: row j holds the weights of all pixels in the blurred pixel j."""
    radius = math.ceil(4 * sigma)
    offsets = torch.arange(-radius, radius + 1)
    weights = torch.exp(-0.5 * (offsets / sigma).double() ** 2)
    weights /= weights.sum()
    # Mirror at the border without repeating the edge pixel: indices fold with period 2(length − 1).
    period = max(1, 2 * (length - 1))
    folded = (torch.arange(length)[:, None] + offsets) % period
    folded = torch.where(folded < length, folded, period - folded)
    return torch.zeros(length, length, dtype=torch.float64).scatter_add(1, folded, weights.expand(length, -1))
