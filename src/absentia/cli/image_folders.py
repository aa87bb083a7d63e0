"""Folders of images, whose subfolders are the classes."""

from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from absentia.cli.file_checks import reading
from absentia.cli.raw_data import RawData
from absentia.errors import require, wrong

# The endings of images' names.
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")

# The modes of pillow without colours.
GREY_MODES = ("1", "L", "I", "I;16", "F", "LA")

# The modes with 16 bits, which pillow would clip at 255 when it converts them.
_MODES_OF_16_BITS = ("I", "I;16")


def read_images(
    folder: Path, argument: str, rows: int | None, size: tuple[int, int] | None, channels: int | None
) -> RawData:
    """Read images as (samples, channels, height, width) with pixels from 0 to 1. Subfolders are the classes."""
    if channels not in (None, 1, 3):
        raise wrong("channels", "be 1 for grey or 3 for colours", channels)
    require("PIL", "images")
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir() and _images_in(path))
    groups = [_images_in(folder / name) for name in classes] or [_images_in(folder)]
    if classes and _images_in(folder):
        raise wrong(argument, "hold images in subfolders or in itself, not both", folder)
    if not any(groups):
        raise wrong(argument, f"hold images ({', '.join(IMAGES)})", f"none in {folder}")
    # With fewer rows, take the first images of each class in turn.
    chosen = sorted([path for path in chain.from_iterable(zip_longest(*groups)) if path is not None][:rows])
    images = [_read_image(path, argument, size) for path in chosen]
    if channels is None:
        channels = 1 if all(image.mode in GREY_MODES for image in images) else 3
    with reading(argument, "hold images of one size", folder, "Use --size to resize them, as in --size 224x224."):
        pixels = np.stack([_pixels(image, channels) for image in images])
    target = np.array([path.parent.name for path in chosen])
    names = [str(path.relative_to(folder)) for path in chosen]
    if all(name.isdecimal() for name in classes):  # folders that are named by class numbers, or none
        return RawData(pixels, target.astype(np.int64) if classes else None, names=names)
    return RawData(pixels, target, tuple(classes), names)


def _read_image(path: Path, argument: str, size: tuple[int, int] | None) -> Any:
    """Read an image, resized to a height and a width if these are given."""
    pillow = require("PIL.Image", "images")
    with reading(argument, "hold images that can be read", path), pillow.open(path) as image:
        if size is None:
            return image.copy()
        height, width = size
        return image.resize((width, height))


def _images_in(folder: Path) -> list[Path]:
    """Return the images of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES and path.is_file())


def _pixels(image: Any, channels: int) -> np.ndarray:
    """Convert an image to numbers from 0 to 1."""
    if image.mode in _MODES_OF_16_BITS:
        return np.repeat(np.asarray(image, dtype=np.float32)[None] / 65535, channels, axis=0)
    if channels == 1:
        return np.asarray(image.convert("L"), dtype=np.float32)[None] / 255
    return np.asarray(image.convert("RGB"), dtype=np.float32).transpose(2, 0, 1) / 255
