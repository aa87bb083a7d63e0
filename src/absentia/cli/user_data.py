"""Data of users: read from tables, arrays and folders of images, and brought into the form that a model takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from absentia.cli.model_files import is_estimator
from absentia.cli.output import reading
from absentia.data import as_tensor, class_numbers, holds_text, seeded
from absentia.errors import require, wrong
from absentia.interop.sklearn import EncodedTable, listed
from absentia.models import as_model, labels_of

PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *PARQUET)
ARRAYS = (".npz", ".npy")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
GREY_MODES = ("1", "L", "I", "I;16", "F", "LA")
NAMES = ("data", "background")
NO_TABLE = EncodedTable(torch.empty(0, 0), (), {}, {})  # of arrays and images


@dataclass(frozen=True, eq=False)
class RawData:
    """Rows as a file holds them, a DataFrame or an array, and their targets, if any."""

    inputs: Any
    target: np.ndarray | None
    folders: tuple[str, ...] = ()  # the names of subfolders, if they are the classes
    names: Sequence[str] = ()  # of the rows, if they have any


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
    if not path.exists():
        raise wrong(argument, "name a file or a folder that exists", path)
    for option, columns in (("drop", ", ".join(drop)), ("index", index)):
        if columns and suffix not in TABLES:
            raise wrong(option, "be left out if the data are not a table", columns)
    if path.is_dir():
        if target is not None and argument == "data":
            raise wrong("target", "be left out for a folder of images, whose subfolders are the classes", target)
        return _read_images(path, argument, rows, size, channels)
    if size is not None or channels is not None:
        raise wrong("size and channels", "be left out if the data are not a folder of images", path)
    if suffix in TABLES:
        found = _read_table(path, argument, target, drop, index)
    elif suffix in ARRAYS:
        found = _read_arrays(path, argument, key if has_key else None, target)
    else:
        raise wrong(argument, f"be a folder of images, or one of {', '.join(TABLES + ARRAYS)}", path)
    return replace(found, inputs=found.inputs[:rows], target=None if found.target is None else found.target[:rows])


def _read_table(path: Path, argument: str, target: str | None, drop: tuple[str, ...], index: str | None) -> RawData:
    """Read a table with pandas. Separate the target and the names of the rows, and drop columns."""
    pandas, suffix = require("pandas", "tables"), path.suffix.lower()
    if suffix in PARQUET:
        require("pyarrow", "parquet")
    separator = "\t" if suffix == ".tsv" else ","
    with reading(argument, "be a table that pandas can read", path):
        frame = pandas.read_parquet(path) if suffix in PARQUET else pandas.read_csv(path, sep=separator)
    header = frame.columns = frame.columns.astype(str)
    if suffix not in PARQUET:  # pandas renames columns that are there twice, or have no name
        first = pandas.read_csv(path, sep=separator, header=None, nrows=1, dtype=str, na_filter=False)
        header = pandas.Index(first.iloc[0])
    twice = [repr(name) for name in header[header.duplicated()].unique()]
    if twice:
        then = "Rename the columns, so that --drop and --target can tell them apart."
        raise wrong(argument, "have each column once", f"{', '.join(twice[:6])} more than once in {path}", then)
    if list(header[:1]) == [""] and index is None:  # so pandas writes the names of rows
        index = frame.columns[0]
    if argument != "data":
        target, index = (column if column in frame.columns else None for column in (target, index))
    for option, column in [*(("drop", one) for one in drop), ("target", target), ("index", index)]:
        if column is not None and column not in frame.columns:
            raise wrong(option, f"name a column of the table: {listed(frame.columns)}", repr(column))
    names = [] if index is None else frame[index].astype(str).tolist()
    left = frame.drop(columns=[*drop, *(column for column in (target, index) if column is not None)])
    if left.empty:
        must = "hold at least one row, and one column besides the target, the index and the dropped ones"
        raise wrong(argument, must, f"{len(left)} rows and {left.shape[1]} columns in {path}")
    if target is None:
        return RawData(left, None, names=names)
    missing = frame[target].isna().to_numpy()
    if missing.any():
        raise wrong("target", f"have no missing values in column {target!r}", f"one in row {int(missing.argmax())}")
    return RawData(left, frame[target].to_numpy(), names=names)


def likely_targets(data: RawData) -> str:
    """Say which columns may hold classes, if no target is given: text or whole numbers, with few different values."""
    if data.target is not None or not hasattr(data.inputs, "columns"):
        return ""
    whole = data.inputs.select_dtypes(exclude="floating")
    counts = whole.nunique()
    found = counts[counts <= min(20, len(whole) // 2)].index
    return f" Was --target forgotten? It could name {listed(found, 6)}." if len(found) else ""


def _read_arrays(path: Path, argument: str, key: str | None, target: str | None) -> RawData:
    """Read arrays of samples and targets. Nothing in the file is unpickled."""
    then = "Arrays of Python objects, which can run code, are not read."
    with reading(argument, "be a file of numpy arrays", path, then), path.open("rb") as file:
        found = np.load(file, allow_pickle=False)
        arrays: dict[str, np.ndarray] = dict(found) if isinstance(found, Mapping) else {"x": found}
    others = [name for name in arrays if name not in (target, "y")]
    usual = [name for name in ("x", "X") if name in arrays] or (others if len(others) == 1 else [])
    name = key or (usual[0] if usual else "none")
    for option, wanted in ((argument, name), ("target", target if argument == "data" else None)):
        if wanted is not None and wanted not in arrays:
            then = "Name the array of samples as in file.npz:key, and that of targets with --target."
            raise wrong(option, f"name an array of {path.name}: {', '.join(arrays)}", wanted, then)
    if target not in arrays:
        target = "y" if "y" in arrays and name != "y" else None
    inputs, classes = arrays[name], None if target is None else arrays[target]
    if inputs.ndim < 2 or inputs.size == 0 or inputs.dtype.kind not in "fiub":
        got = f"{inputs.dtype} of shape {inputs.shape} for {name!r}"
        raise wrong(argument, "hold samples, numbers of shape (samples, …)", got)
    if classes is not None and (classes.ndim != 1 or len(classes) != len(inputs)):
        raise wrong("target", f"hold one class for each of the {len(inputs)} samples", f"shape {classes.shape}")
    return RawData(inputs, classes)


def _read_images(
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
    images, pillow = [], require("PIL.Image", "images")
    for path in chosen:
        with reading(argument, "hold images that can be read", path), pillow.open(path) as image:
            images.append(image.copy() if size is None else image.resize(size[::-1]))
    if channels is None:
        channels = 1 if all(image.mode in GREY_MODES for image in images) else 3
    with reading(argument, "hold images of one size", folder, "Use --size to resize them, as in --size 224x224."):
        pixels = np.stack([_pixels(image, channels) for image in images])
    target = np.array([path.parent.name for path in chosen])
    names = [str(path.relative_to(folder)) for path in chosen]
    if all(name.isdecimal() for name in classes):  # folders that are named by class numbers, or none
        return RawData(pixels, target.astype(np.int64) if classes else None, names=names)
    return RawData(pixels, target, tuple(classes), names)


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES and path.is_file())


def _pixels(image: Any, channels: int) -> np.ndarray:
    """Convert an image to numbers from 0 to 1."""
    if image.mode in ("I", "I;16"):  # 16 bits, which pillow would clip at 255
        return np.repeat(np.asarray(image, dtype=np.float32)[None] / 65535, channels, axis=0)
    array = np.asarray(image.convert("L" if channels == 1 else "RGB"), dtype=np.float32) / 255
    return array[None] if channels == 1 else array.transpose(2, 0, 1)


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples, their classes, and the background that absences are made from, in the form the model takes."""

    x: Shaped[Tensor, "samples *entries"]
    y: Int[Tensor, " samples"] | None
    background: Shaped[Tensor, "rows *entries"]
    background_is_data: bool = True  # whether the samples themselves are the background
    table: EncodedTable = NO_TABLE  # the columns of a table, and the categories that are coded
    classes: tuple[Any, ...] = ()  # names in the order of the model's outputs, if they are known
    notes: tuple[str, ...] = ()
    names: Sequence[str] = ()  # of the rows, if they have any

    @property
    def coding(self) -> dict[str, Any]:
        """The columns and categories of a table, to save with results, so that other tables are coded alike."""
        columns, categories = self.table.columns, self.table.categories
        return {"coding": {"columns": columns, "categories": categories}} if columns else {}

    def choose(self, numbers: Sequence[int], count: int | None, seed: int) -> Int[Tensor, " chosen"]:
        """Return the named rows of samples, or else ``count`` that are drawn, or all."""
        bad = [one for one in numbers if not 0 <= one < len(self.x) or numbers.count(one) > 1]
        if bad:
            raise wrong("sample", f"be a row from 0 to {len(self.x) - 1}, each named once", bad[0])
        if numbers or count is None or count >= len(self.x):
            return torch.tensor(numbers or range(len(self.x)))
        return torch.randperm(len(self.x), generator=seeded(seed))[:count]


def make_samples(
    data: RawData, model: Any, background: RawData | None = None, classes: Sequence[str] = (), coding: Any = None
) -> Samples:
    """Convert data and background to what the model takes, with columns as an estimator or a saved ``coding`` has."""
    labels = labels_of(as_model(model))
    notes: list[str] = []
    names = tuple(classes) or labels or data.folders
    is_regressor = is_estimator(model) and not labels
    y = None if is_regressor or data.target is None else _class_numbers(data.target, names, notes)
    if data.folders and names == data.folders:
        shown = ", ".join(f"{number} is {name}" for number, name in enumerate(names[:6]))
        notes.append(f"Classes are subfolders by name: {shown}.")
    sources, table = [data.inputs] if background is None else [data.inputs, background.inputs], NO_TABLE
    if hasattr(data.inputs, "columns"):
        rows, table = _code_tables(sources, model, coding, notes)
    else:
        rows = [as_tensor("data", one) for one in sources]
    if rows[-1].shape[1:] != rows[0].shape[1:]:
        must = f"hold rows of the samples' shape {tuple(rows[0].shape[1:])}"
        raise wrong("background", must, tuple(rows[-1].shape[1:]))
    return Samples(rows[0], y, rows[-1], background is None, table, names, tuple(notes), data.names)


def _class_numbers(target: np.ndarray, names: Sequence[Any], notes: list[str]) -> Tensor | None:
    """Convert targets to numbers in the order of the model's outputs."""
    if names:
        as_text = any(isinstance(name, str) for name in names)
        return class_numbers(target.astype(str) if as_text else target, names, "target")
    if holds_text(target):
        found = sorted({str(value) for value in target.tolist()})
        then = f"Use --classes {','.join(found[:6])}, in the order of the model's outputs."
        raise wrong("target", "hold class numbers, or names that --classes puts in order", ", ".join(found[:6]), then)
    if target.dtype.kind == "f" and not np.array_equal(target, np.round(target)):
        notes.append("The target holds no classes. The output of the model is explained as it is.")
        return None
    return class_numbers(target, name="target")


def _code_tables(
    frames: list[Any], model: Any, coding: Mapping[str, Any] | None, notes: list[str]
) -> tuple[Sequence[Tensor], EncodedTable]:
    """Convert the tables of samples and background to numbers in the same way."""
    if not all(hasattr(frame, "columns") for frame in frames):
        raise wrong("background", "be a table like the data", "arrays or images")
    usual = frames[0].columns if coding is None else coding["columns"]
    wanted = [str(name) for name in getattr(model, "feature_names_in_", usual)]
    for frame, argument in zip(frames, NAMES, strict=False):
        missing = [column for column in wanted if column not in frame.columns]
        if missing:
            raise wrong(argument, f"have the columns {listed(wanted)}", f"none named {missing[0]!r}")
    extra = frames[0].columns.difference(wanted, sort=False)
    if len(extra):
        notes.append(f"Columns that the model does not take are ignored: {listed(extra, 8)}.")
    whole = require("pandas", "tables").concat(frames, ignore_index=True)[wanted]
    flags = () if is_estimator(model) else whole.select_dtypes("bool").columns
    table = EncodedTable.of(whole.astype(dict.fromkeys(flags, float)))  # booleans are numbers for a network
    if table.categories and not is_estimator(model):
        then = "Code it as numbers in the way that the model was trained with, or drop it with --drop."
        got = f"text in {next(iter(table.categories))!r}"
        raise wrong("data", "hold numbers for a model that is not an estimator", got, then)
    if coding is not None:
        categories = {column: tuple(values) for column, values in coding["categories"].items()}
        new = [column for column in table.categories if column not in categories]
        if new:
            raise wrong(f"column {new[0]!r}", "hold numbers, as it did when the absence was saved", "text")
        dtypes = {column: whole[column].dtype for column in categories}
        table = replace(table, columns=tuple(coding["columns"]), categories=categories, dtypes=dtypes)
    empty = [column for column in table.categories if whole[column].isna().any()]
    if empty:
        notes.append(f"Missing values are a category of their own in {listed(empty, 8)}.")
    return [as_tensor(name, table.numbers(frame)) for name, frame in zip(NAMES, frames, strict=False)], table
