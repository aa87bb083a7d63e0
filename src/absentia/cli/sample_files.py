"""Samples, their classes and the background, converted to numbers that the model accepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from absentia.cli.model_files import is_estimator
from absentia.cli.raw_data import RawData
from absentia.data import as_tensor, class_numbers, holds_text, seeded
from absentia.errors import require, wrong
from absentia.models.adapters import as_model, labels_of
from absentia.models.encoded_inputs import as_fitted_categories
from absentia.tables import EncodedTable, listed

# The options that the two tables come from.
NAMES = ("data", "background")

# The table of arrays and images, which have no columns.
NO_TABLE = EncodedTable(torch.empty(0, 0), (), {}, {})

# The most classes that notes and errors list.
_CLASSES_SHOWN = 6

# The most columns that notes list.
_COLUMNS_SHOWN = 8


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
        if not self.table.columns:
            return {}
        return {"coding": {"columns": self.table.columns, "categories": self.table.categories}}

    def choose(self, numbers: Sequence[int], count: int | None, seed: int) -> Int[Tensor, " chosen"]:
        """Return the named rows of samples, or else ``count`` that are drawn, or all."""
        for number in numbers:
            if not 0 <= number < len(self.x) or numbers.count(number) > 1:
                raise wrong("sample", f"be a row from 0 to {len(self.x) - 1}, each named once", number)
        if numbers or count is None or count >= len(self.x):
            return torch.tensor(numbers or range(len(self.x)))
        return torch.randperm(len(self.x), generator=seeded(seed))[:count]


def make_samples(
    data: RawData, model: Any, background: RawData | None = None, classes: Sequence[str] = (), coding: Any = None
) -> Samples:
    """Convert data and background for the model, with the columns of an estimator or of a saved ``coding``."""
    labels = labels_of(as_model(model))
    notes: list[str] = []
    names = tuple(classes) or labels or data.folders
    is_regressor = is_estimator(model) and not labels
    y = None
    if data.target is not None and not is_regressor:
        y = _class_numbers(data.target, names, notes)
    if data.folders and names == data.folders:
        shown = ", ".join(f"{number} is {name}" for number, name in enumerate(names[:_CLASSES_SHOWN]))
        notes.append(f"Classes are subfolders by name: {shown}.")
    sources = [data.inputs]
    if background is not None:
        sources.append(background.inputs)
    if hasattr(data.inputs, "columns"):
        rows, table = _code_tables(sources, model, coding, notes)
    else:
        rows = [as_tensor("data", source) for source in sources]
        table = NO_TABLE
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
        shown = sorted({str(value) for value in target.tolist()})[:_CLASSES_SHOWN]
        then = f"Use --classes {','.join(shown)}, in the order of the model's outputs."
        raise wrong("target", "hold class numbers, or names that --classes puts in order", ", ".join(shown), then)
    if target.dtype.kind == "f" and not np.array_equal(target, np.round(target)):
        notes.append("The target holds no classes. The output of the model is explained as it is.")
        return None
    return class_numbers(target, name="target")


def _code_tables(
    frames: list[Any], model: Any, coding: Mapping[str, Any] | None, notes: list[str]
) -> tuple[Sequence[Tensor], EncodedTable]:
    """Convert the tables of samples and background to numbers in the same way."""
    wanted = _wanted_columns(frames, model, coding)
    extra = frames[0].columns.difference(wanted, sort=False)
    if len(extra):
        notes.append(f"Columns that the model does not take are ignored: {listed(extra, _COLUMNS_SHOWN)}.")
    whole = require("pandas", "tables").concat(frames, ignore_index=True)[wanted]
    if is_estimator(model):
        whole = as_fitted_categories(model, whole, "data")
    flags = () if is_estimator(model) else whole.select_dtypes("bool").columns
    table = EncodedTable.of(whole.astype(dict.fromkeys(flags, float)))  # booleans are numbers for a network
    if table.categories and not is_estimator(model):
        then = "Code it as numbers in the way that the model was trained with, or drop it with --drop."
        got = f"text in {next(iter(table.categories))!r}"
        raise wrong("data", "hold numbers for a model that is not an estimator", got, then)
    if coding is not None:
        table = _coded_alike(table, whole, coding)
    incomplete = [column for column in table.categories if whole[column].isna().any()]
    if incomplete:
        notes.append(f"Missing values are a category of their own in {listed(incomplete, _COLUMNS_SHOWN)}.")
    missing = is_estimator(model)  # which may take missing values
    pairs = zip(NAMES, frames, strict=False)
    rows = [as_tensor(name, table.numbers(frame), missing=missing) for name, frame in pairs]
    return rows, table


def _wanted_columns(frames: list[Any], model: Any, coding: Mapping[str, Any] | None) -> list[str]:
    """Return the columns that the model takes, or raise an error for a table that lacks one of them."""
    if not all(hasattr(frame, "columns") for frame in frames):
        raise wrong("background", "be a table like the data", "arrays or images")
    usual = frames[0].columns if coding is None else coding["columns"]
    wanted = [str(name) for name in getattr(model, "feature_names_in_", usual)]
    for frame, argument in zip(frames, NAMES, strict=False):
        missing = [column for column in wanted if column not in frame.columns]
        if missing:
            raise wrong(argument, f"have the columns {listed(wanted)}", f"none named {missing[0]!r}")
    return wanted


def _coded_alike(table: EncodedTable, frame: Any, coding: Mapping[str, Any]) -> EncodedTable:
    """Return a table with the columns and categories that were saved with an absence."""
    categories = {column: tuple(values) for column, values in coding["categories"].items()}
    new_columns = [column for column in table.categories if column not in categories]
    if new_columns:
        raise wrong(f"column {new_columns[0]!r}", "hold numbers, as it did when the absence was saved", "text")
    dtypes = {column: frame[column].dtype for column in categories}
    return replace(table, columns=tuple(coding["columns"]), categories=categories, dtypes=dtypes)
