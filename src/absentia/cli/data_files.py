"""The data that --data and --background name: a table, arrays or a folder of images."""

from dataclasses import replace
from pathlib import Path

from absentia.cli.array_files import ARRAYS, read_arrays
from absentia.cli.image_folders import read_images
from absentia.cli.raw_data import RawData
from absentia.cli.table_files import TABLES, read_table
from absentia.errors import wrong


def read_data(
    source: str | Path,
    target: str | None = None,
    *,
    argument: str = "data",
    drop: tuple[str, ...] = (),
    index: str | None = None,
    rows: int | None = None,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
) -> RawData:
    """Read a table, arrays or a folder of images, and the targets, which a background may lack."""
    head, _, key = str(source).rpartition(":")
    has_key = head.lower().endswith(".npz")
    path = Path(head if has_key else source)
    suffix = path.suffix.lower()
    if not path.is_file() and not path.is_dir():
        raise wrong(argument, "name a file or a folder that exists", path)
    for option, columns in (("drop", ", ".join(drop)), ("index", index)):
        if columns and suffix not in TABLES:
            raise wrong(option, "be left out if the data are not a table", columns)
    if path.is_dir():
        if target is not None and argument == "data":
            raise wrong("target", "be left out for a folder of images, whose subfolders are the classes", target)
        return read_images(path, argument, rows, size, channels)
    if size is not None or channels is not None:
        raise wrong("size and channels", "be left out if the data are not a folder of images", path)
    if suffix in TABLES:
        data = read_table(path, argument, target, drop, index)
    elif suffix in ARRAYS:
        data = read_arrays(path, argument, key if has_key else None, target)
    else:
        raise wrong(argument, f"be a folder of images, or one of {', '.join(TABLES + ARRAYS)}", path)
    first_targets = None if data.target is None else data.target[:rows]
    return replace(data, inputs=data.inputs[:rows], target=first_targets)
