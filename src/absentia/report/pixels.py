"""Images inside the page: small PNG files on a common scale."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

_ALL_BYTES = 1_500_000  # approximate size of all images of a section before compression
_LARGEST_SIDE = 128  # pixels
_SMALLEST_SIDE = 16  # pixels; sides are not reduced below this

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_COLOUR_TYPES = {1: 0, 3: 2}  # by the number of channels: grey, or red, green and blue
_BITS_PER_CHANNEL = 8


class ImageScale(NamedTuple):
    """The range of values and the size in pixels that all images of a section share."""

    low: float
    high: float
    height: int
    width: int

    @classmethod
    def of(cls, images: Iterable[Shaped[Tensor, "channels height width"]], count: int) -> ImageScale:
        """Return the common scale of these images, of which the page will hold ``count``."""
        low = math.inf
        high = -math.inf
        shape: tuple[int, ...] = (1, 1, 1)
        for image in images:  # one by one, because a copy of all in double precision may not fit into memory
            shape = image.shape
            finite = image[torch.isfinite(image)]
            if len(finite):
                low = min(low, float(finite.min()))
                high = max(high, float(finite.max()))
        if low > high:  # no value is finite
            low = 0.0
            high = 1.0
        channels, height, width = shape
        factor = min(1.0, _longest_side(channels, count) / max(height, width))
        return cls(low, high, max(1, round(height * factor)), max(1, round(width * factor)))

    def address(self, image: Shaped[Tensor, "channels height width"]) -> str:
        """Return an image as a PNG in a data URL."""
        small: Float[Tensor, "channels height width"] = image.detach().cpu().double()
        if small.shape[1:] != (self.height, self.width):
            small = torch.nn.functional.adaptive_avg_pool2d(small, (self.height, self.width))
        shades = (small - self.low) / max(self.high - self.low, 1e-12)
        return png((shades.clamp(0, 1).nan_to_num() * 255).round().to(torch.uint8).permute(1, 2, 0))

    def labels(self, labels: Int[Tensor, "height width"]) -> list[int]:
        """Return the label at the middle of each pixel, row by row."""
        rows = ((torch.arange(self.height) + 0.5) * labels.shape[0] / self.height).long()
        columns = ((torch.arange(self.width) + 0.5) * labels.shape[1] / self.width).long()
        return labels.cpu()[rows][:, columns].flatten().tolist()


def _longest_side(channels: int, count: int) -> int:
    """Return how many pixels the longest side of an image may have if a section holds this many images."""
    side = math.sqrt(_ALL_BYTES / (channels * max(count, 1)))
    return int(min(max(side, _SMALLEST_SIDE), _LARGEST_SIDE))


def png(pixels: UInt8[Tensor, "height width channels"]) -> str:
    """Encode pixels of one channel (grey) or three (red, green, blue) as a PNG in a data URL."""
    height, width, channels = pixels.shape
    colour_type = _PNG_COLOUR_TYPES[channels]
    header = struct.pack(">IIBBBBB", width, height, _BITS_PER_CHANNEL, colour_type, 0, 0, 0)
    lines = b"".join(
        b"\x00" + row.numpy().tobytes() for row in pixels
    )  # each line begins with its filter type: 0, none
    file = _PNG_SIGNATURE
    file += _png_chunk(b"IHDR", header)
    file += _png_chunk(b"IDAT", zlib.compress(lines, 9))
    file += _png_chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(file).decode()


def _png_chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG file: its length, its type, its content and a checksum."""
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
