"""Players from words and files: features, grids, tokens, maps of labels and groups of columns."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from absentia.cli.file_checks import check_file, reading
from absentia.cli.sample_files import Samples
from absentia.errors import require, wrong
from absentia.players import ALWAYS_PRESENT, Players

LABEL_MAPS = (".npy", ".npz", ".csv", ".png")
# Images hold no negative labels: this value marks pixels of no segment.
VOID = 255
# The default grid of an image has at most this many cells to a side.
_USUAL_CELLS = 4


def load_players(word: str | None, samples: Samples, tokens: bool = False) -> Players:
    """Make players from a word, a map of labels or a JSON file; with ``tokens`` the model takes integers only."""
    shape = tuple(samples.x.shape[1:])
    if tokens and word not in (None, "tokens"):
        raise wrong("players", "be tokens for a model that takes whole numbers only", word)
    word = "tokens" if tokens else word or _usual_word(shape)
    path = Path(word.removeprefix("groups:"))
    if word == "tokens" and len(shape) in (1, 2):
        return Players.tokens(shape[0], shape[1] if len(shape) == 2 else None)
    if word == "features" and len(shape) == 1:
        return Players.features(samples.table.columns or shape[0], samples.table.categories)
    if word.partition(":")[0] == "grid" and len(shape) == 3:
        return Players.grid((shape[0], shape[1], shape[2]), parse_size("players", word.removeprefix("grid:")))
    if path.suffix.lower() == ".json" and len(shape) == 1:
        return Players.groups(_read_groups(path), samples.table.columns or shape[0])
    if path.suffix.lower() in LABEL_MAPS:
        return _segments(check_file("players", path), shape)
    must = "be features, grid:7x7, tokens, or a file (.npy, .npz, .csv or .png of labels, .json of groups)"
    raise wrong("players", f"{must} that suits samples of shape {shape}", word)


def _usual_word(shape: tuple[int, ...]) -> str:
    """Return the word for the default players of samples of a shape."""
    if len(shape) == 3:
        return f"grid:{min(_USUAL_CELLS, shape[1])}x{min(_USUAL_CELLS, shape[2])}"
    return "features"


def _read_groups(path: Path) -> dict[str, list[Any]]:
    """Read groups of columns from a JSON object."""
    with reading("players", 'map names to lists of columns, as in {"size": ["width", "height"]}', path):
        pairs = json.loads(path.read_text(), object_pairs_hook=list)  # keeps names that occur twice
        groups = {str(name): list(columns) for name, columns in pairs}
        if len(groups) < len(pairs):
            raise wrong("players", "name each group once", ", ".join(name for name, _ in pairs))
    return groups


def parse_size(argument: str, word: str) -> tuple[int, int]:
    """Read two whole numbers, as in 7x7."""
    parts = word.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise wrong(argument, "be two numbers, height and width, as in 7x7", repr(word))
    return int(parts[0]), int(parts[1])


def _segments(path: Path, shape: tuple[int, ...]) -> Players:
    """Read a map of labels that has the shape of a sample, or of one channel."""
    with reading("players", "be a file of labels that can be read", path):
        values = _read_map(path)
    if values.dtype.kind not in "iuf" or not np.array_equal(values, np.round(values)):
        raise wrong("players", f"hold labels that are whole numbers, {path}", f"{values.dtype} values")
    labels = values.astype(np.int64)
    if path.suffix.lower() == ".png":
        labels[labels == VOID] = ALWAYS_PRESENT
    shape_of_channel = shape[1:] if len(shape) == 3 else shape
    if labels.shape not in (shape, shape_of_channel):
        raise wrong("players", f"have the shape of one sample, {shape}", f"a map of shape {labels.shape} in {path}")
    return Players.segments(np.broadcast_to(labels, shape))


def _read_map(path: Path) -> np.ndarray:
    """Read an image, a table of numbers, or the first of the arrays of a file."""
    suffix = path.suffix.lower()
    if suffix == ".png":
        with require("PIL.Image", "images").open(path) as image:
            return np.array(image)
    if suffix == ".csv":
        return np.loadtxt(path, delimiter=",")
    contents: Any = np.load(path, allow_pickle=False)
    array: np.ndarray = contents[contents.files[0]] if hasattr(contents, "files") else contents
    return array


def find_columns(word: str, samples: Samples) -> list[int]:
    """Return the numbers of the columns that a word lists, by name or number."""
    columns = samples.x[0].numel()
    numbers = {str(number): number for number in range(columns)}
    numbers |= {name: number for number, name in enumerate(samples.table.columns)}
    columns_of_word = []
    for part in word.split(","):
        if part not in numbers:
            raise wrong("categorical", f"name columns, or numbers from 0 to {columns - 1}", repr(part))
        columns_of_word.append(numbers[part])
    return columns_of_word
