"""Samples that are images, as PNG files inside the page."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

# All pictures of a section together have about so many bytes before compression; none is larger than a side of so
# many pixels, nor made smaller than that.
_ALL_BYTES, _LARGEST, _SMALLEST = 1_500_000, 128, 16


@dataclass(frozen=True)
class Scale:
    """How values become shades, and of how many pixels a picture is made; one for all pictures of a section."""

    low: float
    high: float
    height: int
    width: int

    def picture(self, image: Shaped[Tensor, "channels height width"]) -> str:
        """Make one image a PNG in a data address."""
        shrunk = shrink(image.detach().cpu().double(), self.height, self.width)
        shades = (shrunk - self.low) / max(self.high - self.low, 1e-12)
        pixels = (shades.clamp(0, 1).nan_to_num() * 255).round().to(torch.uint8)
        return png(pixels.permute(1, 2, 0))


def is_image(shape: tuple[int, ...]) -> bool:
    """Tell whether samples of a shape can be looked at: one channel or three, and more than a line of pixels.

    >>> is_image((1, 28, 28)), is_image((3, 32, 32)), is_image((12,)), is_image((5, 8, 8))
    (True, True, False, False)
    """
    return len(shape) == 3 and shape[0] in (1, 3) and min(shape[1:]) > 1


def common_scale(images: Shaped[Tensor, "images channels height width"], pictures: int | None = None) -> Scale:
    """Fit shades to the values of all images, and sizes to the number of pictures that the page will hold.

    >>> common_scale(torch.tensor([0.0, 4.0]).view(1, 1, 1, 2).expand(1, 1, 2, 2))
    Scale(low=0.0, high=4.0, height=2, width=2)
    """
    count, channels, height, width = images.shape
    side = math.sqrt(_ALL_BYTES / (channels * max(pictures or count, 1)))
    most = int(min(max(side, _SMALLEST), _LARGEST))
    factor = min(1.0, most / max(height, width))
    size = max(1, round(height * factor)), max(1, round(width * factor))
    finite = images[torch.isfinite(images)].double()
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return Scale(low, high, *size)


def shrink(
    image: Float[Tensor, "channels height width"], height: int, width: int
) -> Float[Tensor, "channels {height} {width}"]:
    """Average pixels until the image has a smaller size."""
    if image.shape[1:] == (height, width):
        return image
    return torch.nn.functional.adaptive_avg_pool2d(image, (height, width))


def shrink_labels(labels: Int[Tensor, "height width"], height: int, width: int) -> Int[Tensor, "{height} {width}"]:
    """Pick the label in the middle of each pixel of a smaller map."""
    rows = ((torch.arange(height) + 0.5) * labels.shape[0] / height).long()
    columns = ((torch.arange(width) + 0.5) * labels.shape[1] / width).long()
    return labels[rows][:, columns]


def png(pixels: UInt8[Tensor, "height width channels"]) -> str:
    """Encode pixels of one channel (grey) or three (red, green, blue) as a PNG in a data address.

    >>> png(torch.zeros(1, 1, 1, dtype=torch.uint8))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2}[channels]
    rows = pixels.contiguous().numpy().reshape(height, -1)
    lines = b"".join(b"\x00" + row.tobytes() for row in rows)  # each line begins with its filter: none
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    file = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)
    return "data:image/png;base64," + base64.b64encode(file).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
