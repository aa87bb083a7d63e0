"""A user's data as they are in the file: tables, arrays or images, with the column or key that holds the target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from absentia.errors import wrong
from absentia.loading.array_files import read_arrays
from absentia.loading.image_folders import read_images
from absentia.loading.table_files import read_table

TABLES = (".csv", ".tsv", ".parquet", ".pq")
ARRAYS = (".npz", ".npy")


@dataclass(frozen=True, eq=False)
class RawData:
    """Rows as they are in the file, a DataFrame or an array, and their targets, where there are any."""

    inputs: Any
    target: np.ndarray | None
    class_names: tuple[str, ...] | None = None  # of folders, which are classes: what the target's numbers stand for


def read_data(
    source: str | Path,
    target: str | None = None,
    *,
    argument: str = "data",
    drop: tuple[str, ...] = (),
    rows: int | None = None,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
    needs_target: bool = True,
) -> RawData:
    """Read CSV, Parquet, npz (``file.npz:key`` for another array than x), npy, or a folder of images.

    ``target`` names the column or the array of the targets; a folder's are its subfolders, and an npz file's y where
    it has one. ``rows`` reads no more than so many. ``drop`` leaves columns of a table out; ``size`` (height, width)
    and ``channels`` (1 or 3) are those that images are brought to. Without ``needs_target`` there may be none.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "data.npz"
    >>> np.savez(path, x=np.zeros((4, 2)), y=np.array([0, 1, 1, 0]))
    >>> read_data(path, rows=3).target
    array([0, 1, 1])
    """
    if rows is not None and rows < 1:
        raise wrong("rows", "be at least 1", rows)
    path, key = _split_key(str(source))
    suffix = path.suffix.lower()
    if not path.exists():
        raise wrong(argument, "name a file or a folder that exists", path)
    if path.is_dir():
        if target is not None and needs_target:
            raise wrong("target", "be left out for a folder of images, whose subfolders are the classes", target)
        return RawData(*read_images(path, argument, rows, size, channels))
    if size is not None or channels is not None:
        raise wrong("size and channels", "be left out where the data are no folder of images", path)
    if suffix in TABLES:
        inputs, found = read_table(path, argument, target, drop, needs_target)
    elif suffix in ARRAYS:
        if drop:
            raise wrong("drop", "be left out where the data are no table", ", ".join(drop))
        inputs, found = read_arrays(path, argument, key, target, needs_target)
    else:
        must = f"be a folder of images or a file of one of these kinds: {', '.join(TABLES + ARRAYS)}"
        raise wrong(argument, must, path)
    return RawData(inputs[:rows], None if found is None else found[:rows])


def _split_key(source: str) -> tuple[Path, str | None]:
    """Take ``file.npz:key`` apart."""
    head, colon, key = source.rpartition(":")
    return (Path(head), key) if colon and head.lower().endswith(".npz") else (Path(source), None)
