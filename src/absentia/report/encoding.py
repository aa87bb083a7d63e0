"""How numbers and images are stored in the report."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

from absentia.results import written

# The images of a section have about this many bytes before compression. Their sides have this many pixels at most,
# and are not reduced below this many.
_ALL_BYTES, _LARGEST_SIDE, _SMALLEST_SIDE = 1_500_000, 128, 16


def numbers(values: Shaped[Tensor, " *shape"], digits: int = 6) -> Any:
    """Convert a tensor to nested lists of rounded numbers to draw; NaN and infinity become None."""

    def short(value: float) -> float | None:
        value = float(f"{value:.{digits}g}")
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e15 else value

    return _each(short, values.detach().cpu().tolist())


def texts(values: Shaped[Tensor, " *shape"], digits: int = 4, *, plus: bool = False) -> Any:
    """Convert a tensor to nested lists of numbers as they are shown."""
    return _each(lambda value: written(value, digits, plus=plus), values.detach().cpu().tolist())


def _each(change: Callable[[float], Any], values: Any) -> Any:
    return [_each(change, value) for value in values] if isinstance(values, list) else change(values)


@dataclass(frozen=True)
class ImageScale:
    """The range of values and the size in pixels that all images of a section share."""

    low: float
    high: float
    height: int
    width: int

    @classmethod
    def of(cls, images: Iterable[Shaped[Tensor, "channels height width"]], count: int) -> ImageScale:
        """Return the scale that fits these images, of which the page will hold ``count``."""
        low, high, channels, height, width = math.inf, -math.inf, 1, 1, 1
        for image in images:  # one by one: a copy of all in double precision may not fit into the memory
            channels, height, width = image.shape
            finite = image[torch.isfinite(image)]
            if len(finite):
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        side = math.sqrt(_ALL_BYTES / (channels * max(count, 1)))
        most = int(min(max(side, _SMALLEST_SIDE), _LARGEST_SIDE))
        factor = min(1.0, most / max(height, width))
        low, high = (low, high) if low <= high else (0.0, 1.0)
        return cls(low, high, max(1, round(height * factor)), max(1, round(width * factor)))

    def address(self, image: Shaped[Tensor, "channels height width"]) -> str:
        """Return an image as a PNG in a data address."""
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


def png(pixels: UInt8[Tensor, "height width channels"]) -> str:
    """Encode pixels of one channel (grey) or three (red, green, blue) as a PNG in a data address."""
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    lines = b"".join(b"\x00" + row.numpy().tobytes() for row in pixels)  # each line begins with its filter: none
    file = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")):
        file += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return "data:image/png;base64," + base64.b64encode(file).decode()
