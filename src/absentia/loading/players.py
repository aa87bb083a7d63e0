"""Players from a word: columns, a grid, tokens, a label map in a file, or groups of columns in a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from absentia.errors import wrong
from absentia.loading.python_objects import describe
from absentia.loading.samples import Samples
from absentia.loading.trust import check_file
from absentia.optional import require
from absentia.players import Players

# What marks a pixel of no segment where labels can't be negative, as in maps of most benchmarks.
VOID = 255


def load_players(word: str | None, samples: Samples, tokens: bool = False) -> Players:
    """Make players by ``features``, ``grid:7x7``, ``tokens``, a label map (.npy, .npz, .csv, .png), or a JSON file.

    Left out, every column of a table is a player, and every place where the model takes ``tokens``. In a label map −1
    marks what is always present, in a PNG 255.

    >>> import torch
    >>> images = Samples(torch.zeros(5, 1, 8, 8), None, torch.zeros(5, 1, 8, 8), True, None, None, None)
    >>> load_players("grid:2x2", images)
    Players(4 of shape (1, 8, 8): r0c0, r0c1, r1c0, r1c1)
    """
    shape = tuple(samples.x.shape[1:])
    if tokens and word not in (None, "tokens"):
        raise wrong("players", "be tokens for a model that takes whole numbers only", word)
    word = "tokens" if tokens else word
    if word is None or word == "features":
        if len(shape) != 1:
            then = "Say --players grid:4x4, or name a file with a map of labels."
            raise wrong("players", f"be given for samples of shape {shape}", word or "none", then)
        return Players.features(shape[0] if samples.coding is None else list(samples.coding.columns))
    if word == "tokens":
        if len(shape) not in (1, 2):
            raise wrong("players", f"be other than tokens for samples of shape {shape}", word)
        return Players.tokens(shape[0], shape[1] if len(shape) == 2 else None)
    if word.startswith("grid:") or word == "grid":
        return _grid(word, shape)
    path = Path(word.removeprefix("groups:"))
    if path.suffix.lower() == ".json":
        return _groups(check_file("players", path), samples, shape)
    if path.suffix.lower() in (".npy", ".npz", ".csv", ".png"):
        return _segments(check_file("players", path), shape)
    must = "be features, grid:7x7, tokens, or a file (.npy, .npz, .csv or .png of labels, .json of groups)"
    raise wrong("players", must, repr(word))


def parse_size(argument: str, word: str) -> tuple[int, int]:
    """Read two whole numbers, as in 7x7.

    >>> parse_size("size", "28x32")
    (28, 32)
    """
    parts = word.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise wrong(argument, "be two numbers, height and width, as in 7x7", repr(word))
    return int(parts[0]), int(parts[1])


def _grid(word: str, shape: tuple[int, ...]) -> Players:
    cells = parse_size("players", word.removeprefix("grid").removeprefix(":"))
    if len(shape) != 3:
        raise wrong("players", f"be other than a grid for samples of shape {shape}", word)
    return Players.grid((shape[0], shape[1], shape[2]), cells)


def _groups(path: Path, samples: Samples, shape: tuple[int, ...]) -> Players:
    try:
        groups = json.loads(path.read_text())
    except ValueError as error:
        raise wrong("players", f"be a JSON file, {path}", describe(error)) from error
    if not isinstance(groups, dict) or not groups or not all(isinstance(one, list) for one in groups.values()):
        must = 'map names to lists of columns, as in {"size": ["width", "height"]}'
        raise wrong("players", must, f"something else in {path}")
    if len(shape) != 1:
        raise wrong("players", f"be other than groups of columns for samples of shape {shape}", path)
    return Players.groups(groups, shape[0] if samples.coding is None else list(samples.coding.columns))


def _segments(path: Path, shape: tuple[int, ...]) -> Players:
    labels = _labels(path)
    if labels.shape == shape:
        return Players.segments(labels)
    if len(shape) == 3 and labels.shape == shape[1:]:
        return Players.segments(labels, channels=shape[0])
    raise wrong("players", f"have the shape of one sample, {shape}", f"a map of shape {labels.shape} in {path}")


def _labels(path: Path) -> np.ndarray:
    suffix = path.suffix.lower()
    try:
        if suffix == ".png":
            with require("PIL.Image", "images").open(path) as image:
                found: Any = np.array(image)
        elif suffix == ".csv":
            found = np.loadtxt(path, delimiter=",")
        else:
            found = np.load(path, allow_pickle=False)
            found = found[found.files[0]] if hasattr(found, "files") else found
    except (OSError, ValueError, IndexError) as error:
        raise wrong("players", f"be a file of labels that can be read, {path}", describe(error)) from error
    if found.dtype.kind not in "iuf" or not np.array_equal(found, np.round(found)):
        raise wrong("players", f"hold whole numbers, the labels, {path}", f"{found.dtype} values")
    labels: np.ndarray = found.astype(np.int64)
    return np.where(labels == VOID, -1, labels) if suffix == ".png" else labels
