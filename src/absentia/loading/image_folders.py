"""Folders of images: flat, or with one subfolder for each class."""

from __future__ import annotations

from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from absentia.errors import wrong
from absentia.loading.python_objects import describe
from absentia.optional import require

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
GREY_MODES = ("1", "L", "I", "I;16", "F", "LA")


def read_images(
    folder: Path, argument: str, rows: int | None, size: tuple[int, int] | None, channels: int | None
) -> tuple[np.ndarray, np.ndarray | None, tuple[str, ...] | None]:
    """Read images as (samples, channels, height, width), pixels from 0 to 1; classes are subfolders, by name.

    With ``rows`` the first images of each class are taken, in turn.
    """
    if channels not in (None, 1, 3):
        raise wrong("channels", "be 1 for grey or 3 for colours", channels)
    require("PIL", "images")
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir() and _images(path))
    groups = [_images(folder / name) for name in classes] or [_images(folder)]
    if classes and _images(folder):
        raise wrong(argument, "hold images in subfolders, or itself, not both", folder)
    if not any(groups):
        raise wrong(argument, f"hold images ({', '.join(SUFFIXES)})", f"none in {folder}")
    chosen = sorted(_first(groups, rows))
    images = [_open(path, argument, size) for path in chosen]
    if channels is None:
        channels = 1 if all(image.mode in GREY_MODES for image in images) else 3
    pixels = [_pixels(image, channels) for image in images]
    for path, image in zip(chosen, pixels, strict=True):
        if image.shape != pixels[0].shape:
            shapes = f"{image.shape[1]} × {image.shape[2]} for {path.name}"
            must = f"hold images of one size, {pixels[0].shape[1]} × {pixels[0].shape[2]}"
            raise wrong(argument, must, shapes, "Say --size to bring them to one, as in --size 224x224.")
    target = np.array([classes.index(path.parent.name) for path in chosen]) if classes else None
    return np.stack(pixels), target, tuple(classes) if classes else None


def _images(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())


def _first(groups: list[list[Path]], rows: int | None) -> list[Path]:
    """Take images of all classes in turn, so that few images are of many classes."""
    in_turn = chain.from_iterable(zip_longest(*groups))
    return [path for path in in_turn if path is not None][:rows]


def _open(path: Path, argument: str, size: tuple[int, int] | None) -> Any:
    image_module = require("PIL.Image", "images")
    try:
        with image_module.open(path) as image:
            image.load()
            return image.copy() if size is None else image.resize((size[1], size[0]))
    except Exception as error:
        raise wrong(argument, f"hold images that can be read, {path}", describe(error)) from error


def _pixels(image: Any, channels: int) -> np.ndarray:
    """Take an image's pixels as numbers from 0 to 1."""
    if image.mode in ("I", "I;16"):  # 16 bits, which pillow would cut off at 255
        grey = np.asarray(image, dtype=np.float32)[None] / 65535
        return grey if channels == 1 else np.repeat(grey, 3, axis=0)
    array = np.asarray(image.convert("L" if channels == 1 else "RGB"), dtype=np.float32) / 255
    return array[None] if channels == 1 else array.transpose(2, 0, 1)
