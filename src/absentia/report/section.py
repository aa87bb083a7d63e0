"""A section of the report, and how numbers and images are stored in it."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

# The images of a section have about this many bytes before compression. Their sides have this many pixels at most,
# and are not reduced below this many.
_ALL_BYTES, _LARGEST_SIDE, _SMALLEST_SIDE = 1_500_000, 128, 16


@dataclass(frozen=True)
class Section:
    """One result, prepared for the page."""

    kind: Literal["explanation", "audit", "cross", "baseline"]  # selects the template and the script
    heading: str
    lead: tuple[str, ...]  # the first sentences
    facts: Mapping[str, Any]  # what the template shows; it escapes text
    data: Mapping[str, Any]  # what the script draws, as JSON


def run_settings(record: Any) -> list[tuple[str, str]]:
    """Return the rows of settings that all results have: cost, seed and versions."""
    return [
        ("Cost", f"{record.evaluations:,} evaluations of the model, {record.seconds:.1f} s"),
        ("Seed", str(record.seed)),
        ("Versions", f"absentia {record.version}, torch {record.torch_version}"),
    ]


def numbers(values: Shaped[Tensor, " *shape"], digits: int = 6) -> Any:
    """Convert a tensor to nested lists of rounded numbers for JSON; NaN and infinity become None."""
    if not values.is_floating_point():
        return values.detach().cpu().tolist()

    def short(value: float) -> float | None:
        value = float(f"{value:.{digits}g}")
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e15 else value

    flat = np.array([short(value) for value in values.detach().cpu().flatten().tolist()], dtype=object)
    return flat.reshape(tuple(values.shape)).tolist()


@dataclass(frozen=True)
class ImageScale:
    """The range of values and the size in pixels that all images of a section share."""

    low: float
    high: float
    height: int
    width: int

    @classmethod
    def of(cls, images: Shaped[Tensor, "images channels height width"], count: int | None = None) -> ImageScale:
        """Return the scale that fits these images, and the number of images that the page will hold."""
        total, channels, height, width = images.shape
        side = math.sqrt(_ALL_BYTES / (channels * max(count or total, 1)))
        most = int(min(max(side, _SMALLEST_SIDE), _LARGEST_SIDE))
        factor = min(1.0, most / max(height, width))
        finite = images[torch.isfinite(images)].double()
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
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
        found: list[int] = labels.cpu()[rows][:, columns].flatten().tolist()
        return found


def png(pixels: UInt8[Tensor, "height width channels"]) -> str:
    """Encode pixels of one channel (grey) or three (red, green, blue) as a PNG in a data address."""
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    lines = b"".join(b"\x00" + row.numpy().tobytes() for row in pixels)  # each line begins with its filter: none
    file = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")):
        file += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return "data:image/png;base64," + base64.b64encode(file).decode()
