"""Samples in the form that a model takes: rows of numbers, class numbers, and what else is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from absentia.arrays import as_tensor
from absentia.errors import wrong
from absentia.interop import EncodedTable
from absentia.loading.coding import Coding, encode_frames
from absentia.loading.models import LoadedModel
from absentia.loading.raw_data import RawData
from absentia.loading.targets import class_numbers
from absentia.optional import require


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples and their classes, and the background that absences are made from, all in the form the model takes."""

    x: Shaped[Tensor, "samples *entries"]
    y: Int[Tensor, " samples"] | None
    background: Shaped[Tensor, "rows *entries"]
    background_is_data: bool  # whether the samples themselves are in the background
    coding: Coding | None  # of tables
    table: EncodedTable | None  # of tables with categories
    classes: tuple[Any, ...] | None  # names, in the order of the model's outputs
    notes: tuple[str, ...] = ()

    @property
    def categorical(self) -> list[int]:
        """The numbers of columns that hold codes of categories."""
        return [] if self.coding is None else self.coding.categorical

    def draw(self, count: int | None, seed: int) -> Int[Tensor, " drawn"]:
        """Draw samples by seed, as `learn_baseline` does; all of them, in their order, where there are no more."""
        if count is not None and count < 1:
            raise wrong("samples", "be at least 1", count)
        if count is None or count >= len(self.x):
            return torch.arange(len(self.x))
        return torch.randperm(len(self.x), generator=torch.Generator().manual_seed(seed))[:count]

    def pick(self, numbers: Sequence[int]) -> Int[Tensor, " picked"]:
        """Take samples by their numbers, from 0."""
        for number in numbers:
            if not 0 <= number < len(self.x):
                raise wrong("sample", f"lie between 0 and {len(self.x) - 1}", number)
        if len(set(numbers)) < len(numbers):
            raise wrong("sample", "name each sample once", ", ".join(map(str, numbers)))
        return torch.tensor(list(numbers))


def make_samples(
    data: RawData,
    model: LoadedModel,
    background: RawData | None = None,
    *,
    classes: Sequence[str] | None = None,
    known: Coding | None = None,
) -> Samples:
    """Bring data, and a background where there is one, into the form that the model takes.

    Columns come in the order of an estimator's fit, or in that of ``known``, a saved result's. Text is coded for
    estimators, and refused for others. ``classes`` names the classes in the order of the model's outputs.

    >>> data = RawData(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(["no", "yes"]))
    >>> make_samples(data, LoadedModel(torch.nn.Linear(2, 2)), classes=["no", "yes"]).y
    tensor([0, 1])
    """
    sources = [data] if background is None else [data, background]
    notes: list[str] = []
    if hasattr(data.inputs, "columns"):
        x, rows, coding, table = _tables([one.inputs for one in sources], model, known, notes)
    else:
        tensors = [as_tensor("data", one.inputs) for one in sources]
        x, rows, coding, table = tensors[0], tensors[-1], None, None
    if rows.shape[1:] != x.shape[1:]:
        must = f"hold rows of the samples' shape {tuple(x.shape[1:])}"
        raise wrong("background", must, tuple(rows.shape[1:]))
    named = tuple(classes) if classes else model.classes
    y, note = _classes(data, model, named)
    names = named or data.class_names
    return Samples(x, y, rows, background is None, coding, table, names, tuple(n for n in (*notes, note) if n))


def _classes(data: RawData, model: LoadedModel, names: tuple[Any, ...] | None) -> tuple[Tensor | None, str]:
    if data.target is None or (model.is_estimator and model.classes is None):  # a regressor has no classes
        return None, ""
    folders = data.class_names
    if folders is None:
        return class_numbers(data.target, names)
    if names is not None:
        return class_numbers(np.array(folders)[data.target], names)
    if all(name.isdecimal() for name in folders):  # the classes' own numbers
        return class_numbers(np.array([int(name) for name in folders])[data.target], None)
    shown = ", ".join(f"{number} is {name}" for number, name in enumerate(folders[:6]))
    return torch.as_tensor(data.target), f"Classes are subfolders by name: {shown}."


def _tables(
    frames: list[Any], model: LoadedModel, known: Coding | None, notes: list[str]
) -> tuple[Tensor, Tensor, Coding, EncodedTable | None]:
    """Code tables alike: the samples first, the background last."""
    if not all(hasattr(frame, "columns") for frame in frames):
        raise wrong("background", "be a table like the data", "arrays or images")
    wanted = model.columns or (known.columns if known is not None else tuple(frames[0].columns))
    frames = [
        _choose_columns(frame, wanted, name, notes)
        for frame, name in zip(frames, ("data", "background"), strict=False)
    ]
    text = [column for column in wanted if any(_is_text(frame[column], model.is_estimator) for frame in frames)]
    if text and not model.is_estimator:
        then = "Code it as numbers in the way that the model was trained with, or drop it by --drop."
        raise wrong("data", "hold numbers for a model that is no estimator or pipeline", f"text in {text[0]!r}", then)
    coded = {*text, *(known.categories if known is not None else ())}
    for frame in frames:
        _check_missing(frame, coded)
    if not coded:
        rows = [torch.from_numpy(frame.to_numpy(dtype=np.float64).copy()) for frame in frames]
        return rows[0], rows[-1], Coding(wanted, {}), None
    table = encode_frames(frames, known)
    rows = [table.encode(frame) for frame in frames]
    return rows[0], rows[-1], Coding(table.columns, dict(table.categories)), table


def _choose_columns(frame: Any, wanted: tuple[str, ...], argument: str, notes: list[str]) -> Any:
    missing = [column for column in wanted if column not in frame.columns]
    if missing:
        shown = ", ".join(wanted[:12]) + (", …" if len(wanted) > 12 else "")
        raise wrong(argument, f"have the columns {shown}", f"none named {missing[0]!r}")
    extra = [column for column in frame.columns if column not in wanted]
    if extra and argument == "data":
        notes.append(f"Columns that the model does not take are passed over: {', '.join(extra[:8])}.")
    return frame[list(wanted)]


def _is_text(column: Any, for_estimator: bool) -> bool:
    """Tell categories from numbers; booleans are numbers to a network, and categories to a pipeline."""
    types = require("pandas", "tables").api.types
    return (for_estimator and types.is_bool_dtype(column)) or not types.is_numeric_dtype(column)


def _check_missing(frame: Any, coded: set[str]) -> None:
    """Refuse numbers that are missing or infinite; a missing category is a category too."""
    for column in frame.columns:
        if column in coded:
            continue
        bad = ~np.isfinite(frame[column].to_numpy(dtype=np.float64, na_value=np.nan))
        if bad.any():
            got = f"{int(bad.sum())} missing or infinite, the first in row {int(bad.argmax())}"
            then = "Fill them in, drop these rows, or drop the column by --drop."
            raise wrong("data", f"have a number in every row of column {column!r}", got, then)
