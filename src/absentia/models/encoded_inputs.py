"""Tables of text, booleans and categories, encoded for a model that decodes them.

Every public function that takes a model and samples calls `encode_inputs` first. What follows sees numbers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from absentia.data import Table, has_categories, is_frame, is_numeric
from absentia.errors import require, wrong
from absentia.models.adapters import estimator_of
from absentia.models.arrays import NumpyModel
from absentia.models.estimators import wrap_estimator
from absentia.models.fitted_categories import category_columns, fitted_categories
from absentia.models.model import Model
from absentia.players import MISSING, Players, category_name
from absentia.tables import EncodedTable, as_in_table, check_frame, listed

# The most categories that an error lists.
_CATEGORIES_SHOWN = 6

_BOOLEAN_NAMES = {category_name(False), category_name(True), MISSING}


@dataclass(frozen=True, eq=False)
class EncodedInputs:
    """A model, samples and data, with text, booleans and categories as numbers that the model decodes."""

    model: Any
    x: Table
    data: Table | None
    trial_rows: int = 0  # rows that the model saw, to find out whether it knows the categories


def encode_inputs(
    model: Any,
    x: Table,
    data: Table | None = None,
    absences: Iterable[object] = (),
    players: Players | None = None,
) -> EncodedInputs:
    """Encode DataFrames with columns that are not numbers, for an estimator; return other inputs as they are.

    Categories are those that the model was fitted on, if it stores them, or else those of the data, the samples and
    the ``absences`` together: of learned ones, and of backgrounds that are DataFrames. Columns are put into the order
    of the fit, unless there are ``players``, who know the columns of x by their numbers.
    """
    if isinstance(model, NumpyModel) and model.table is not None:
        return EncodedInputs(model, _numbers_of("x", x, model.table), _numbers_of("data", data, model.table))
    absences = list(absences)
    tables: dict[str, Any] = {"data": data, "x": x, **_backgrounds(absences)}
    frames = {name: table for name, table in tables.items() if is_frame(table)}
    estimator = estimator_of(model)
    if estimator is None or "x" not in frames:
        return EncodedInputs(model, x, data)
    learned = _names_of_categories(absences)
    if not any(has_categories(frame) or _lacks_any_of(frame, learned) for frame in frames.values()):
        return EncodedInputs(model, x, data)
    table = encode_frames(estimator, frames, learned)
    if players is not None:
        table = replace(table, columns=tuple(str(column) for column in x.columns))
    encoded = wrap_estimator(estimator, table)
    trial_rows = 0
    for name, frame in frames.items():
        tables[name] = table.numbers(frame)
        trial_rows += check_categories(encoded, table, table.encode(frame), name)
    return EncodedInputs(encoded, tables["x"], tables["data"], trial_rows)


def encode_frames(
    estimator: Any, frames: Mapping[str, Any], learned: Mapping[str, Sequence[str]] | None = None
) -> EncodedTable:
    """Return an empty table for frames with the columns of an estimator's fit.

    ``learned`` are the names of the categories of each column that absences were learned with. The frames need not
    hold them: a few rows to explain rarely hold every category, or lack one.
    """
    learned = learned or {}
    columns = _columns_of_fit(estimator, frames)
    for frame in frames.values():
        check_frame(frame)
    kinds = _kinds_of_columns(estimator, columns, frames, learned)
    fitted = fitted_categories(estimator, kinds.candidates)
    categories: dict[str, tuple[Any, ...]] = {}
    dtypes: dict[str, Any] = {}
    for column in kinds.encoded:
        parts = [frame[column] for frame in frames.values()]
        learned_names = learned.get(column, ())
        if column in fitted:
            _check_known(column, frames, fitted[column])
            known = list(fitted[column])
        else:
            known = _known_categories(parts, [name for name in learned_names if name != MISSING])
        is_category = column in fitted or column in kinds.fitted_as_category
        dtypes[column] = _dtype_of(parts, known, is_category)
        has_gaps = MISSING in learned_names or any(bool(part.isna().any()) for part in parts)
        categories[column] = (*known, np.nan) if has_gaps else tuple(known)
    return EncodedTable(torch.empty(0, len(columns)), tuple(columns), categories, dtypes)


@dataclass(frozen=True)
class _ColumnKinds:
    """Which columns do not hold numbers, in the order of the fit."""

    encoded: list[str]
    candidates: list[str]  # the encoded columns, without boolean ones
    fitted_as_category: list[str]  # the columns that a booster was fitted to as categories


def _kinds_of_columns(
    estimator: Any, columns: Sequence[str], frames: Mapping[str, Any], learned: Mapping[str, Sequence[str]]
) -> _ColumnKinds:
    """Return which columns do not hold numbers.

    A column without any known value may hold anything: the fit or a learned absence decides.
    """
    with_text = [column for column in columns if not all(is_numeric(frame[column]) for frame in frames.values())]
    text_columns = [column for column in with_text if not _is_boolean(column, frames)]
    empty = [column for column in columns if column not in text_columns and _is_empty(column, frames)]
    undecided = empty
    if learned:
        undecided = [column for column in empty if _names_text(learned.get(column, ()))]
    fitted_as_category = category_columns(estimator, text_columns, undecided)
    empty_of_categories = [column for column in empty if column in fitted_as_category or column in learned]
    encoded = {*with_text, *empty_of_categories}
    candidates = {*text_columns, *fitted_as_category}
    return _ColumnKinds(
        [column for column in columns if column in encoded],
        [column for column in columns if column in candidates],
        fitted_as_category,
    )


def as_fitted_categories(estimator: Any, frame: Any, argument: str) -> Any:
    """Return a frame with the categories that a booster was fitted on, where it has text, as files do."""
    columns = [column for column in frame.columns if not is_numeric(frame[column])]
    candidates = [column for column in columns if not _is_boolean(column, {argument: frame})]
    dtypes: dict[str, Any] = {
        column: "category" for column in category_columns(estimator, candidates) if column in columns
    }
    for column, known in fitted_categories(estimator, candidates).items():
        _check_known(column, {argument: frame}, known)
        dtypes[column] = require("pandas", "sklearn").CategoricalDtype(list(known))
    return frame.astype(dtypes)


def check_categories(model: Model, table: EncodedTable, rows: Tensor, argument: str = "x") -> int:
    """Raise an error for a category that an estimator rejects, as most do if it was not in the data of the fit.

    Return the number of rows that the model saw.
    """
    trials_by_column = {number: _trials(rows, number) for number in table.categorical}
    if not trials_by_column:
        return 0
    all_trials = torch.cat(list(trials_by_column.values()))
    if not isinstance(_try(model, all_trials), Exception):
        return len(all_trials)
    for number, trials in trials_by_column.items():
        answers = [_try(model, trial[None]) for trial in trials]
        is_taken = [not isinstance(answer, Exception) for answer in answers]
        # If all fail, another column of the first row may be at fault.
        if all(is_taken) or not any(is_taken):
            continue
        rejected = is_taken.index(False)
        code = int(trials[rejected, number])
        row = int((rows[:, number] == code).nonzero()[0])
        column = table.columns[number]
        categories = table.categories[column]
        taken = [categories[int(trial[number])] for trial, taken in zip(trials, is_taken, strict=True) if taken]
        must = f"hold categories of column {column!r} that the model knows"
        got = f"{categories[code]!r} in row {row} ({_described(answers[rejected])})"
        then = f"Drop such rows. The model knows {listed(taken, _CATEGORIES_SHOWN)}."
        raise wrong(argument, must, got, then)
    return 2 * len(all_trials)


def _trials(rows: Tensor, number: int) -> Tensor:
    """Return the first row with each category that a column holds."""
    codes = rows[:, number].unique()
    trials = rows[:1].repeat(len(codes), 1)
    trials[:, number] = codes
    return trials


def _try(model: Model, rows: Tensor) -> Any:
    """Return what a model returns, or the error that it raises."""
    try:
        return model(rows)
    except Exception as error:
        return error


def _described(error: Exception) -> str:
    """Return an error in one line."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def _names_text(names: Sequence[str]) -> bool:
    """Return whether these names of categories are others than those of booleans."""
    return not _BOOLEAN_NAMES.issuperset(names)


def _lacks_any_of(frame: Any, columns: Iterable[str]) -> bool:
    """Return whether all values of some of these columns are missing in a frame."""
    return any(column in frame.columns and bool(frame[column].isna().all()) for column in columns)


def _is_empty(column: str, frames: Mapping[str, Any]) -> bool:
    """Return whether a column has no value in any frame."""
    return all(bool(frame[column].isna().all()) for frame in frames.values())


def _numbers_of(name: str, table: Table, encoded: EncodedTable) -> Table:
    """Return a frame as the numbers of a table that the model decodes; anything else as it is."""
    if not is_frame(table) or not has_categories(table):
        return table
    return encoded.numbers(table)


def _columns_of_fit(estimator: Any, frames: Mapping[str, Any]) -> list[str]:
    """Return the columns in the order of the fit, or else of x; raise an error for frames with other columns."""
    names = [str(name) for name in getattr(estimator, "feature_names_in_", frames["x"].columns)]
    fitted = as_in_table(names, [str(column) for column in frames["x"].columns])
    for name, frame in frames.items():
        columns = [str(column) for column in frame.columns]
        missing = [column for column in fitted if column not in columns]
        if missing:
            raise wrong(name, f"have the columns of the fit, {listed(fitted)}", f"none named {missing[0]!r}")
        unknown = [column for column in columns if column not in fitted]
        if unknown:
            then = f"Drop it: {name}.drop(columns={unknown!r})."
            raise wrong(name, f"have the columns of the fit, {listed(fitted)}", f"also {unknown[0]!r}", then)
    return fitted


def _is_boolean(column: str, frames: Mapping[str, Any]) -> bool:
    """Return whether a column holds booleans in every frame."""
    return all(getattr(frame[column].dtype, "kind", "O") == "b" for frame in frames.values())


def _check_known(column: str, frames: Mapping[str, Any], known: Sequence[Any]) -> None:
    """Raise an error for a value that a booster was not fitted on: it would take it for another one, or for none."""
    for name, frame in frames.items():
        values = frame[column]
        is_unknown = (values.notna() & ~values.isin(known)).to_numpy()
        if is_unknown.any():
            row = int(is_unknown.argmax())
            must = f"hold categories of column {column!r} that the model knows"
            then = f"The model knows {listed(known, _CATEGORIES_SHOWN)}."
            raise wrong(name, must, f"{values.iloc[row]!r} in row {row}", then)


def _known_categories(parts: Sequence[Any], learned: Sequence[str]) -> list[Any]:
    """Return the categories of a column of all frames: pandas' own in their order, or else all values, sorted.

    ``learned`` are names of categories that absences were learned with.
    """
    with_order = [part.cat.categories.tolist() for part in parts if hasattr(part, "cat")]
    if with_order:
        known = dict.fromkeys(value for categories in with_order for value in categories)
        for part in parts:
            known |= dict.fromkeys(part.dropna().tolist())
        return _with_named(list(known), learned)
    if all(getattr(part.dtype, "kind", "O") == "b" for part in parts):
        return [False, True]
    pandas = require("pandas", "sklearn")
    present = pandas.concat([part.astype(object).dropna() for part in parts], ignore_index=True)
    if present.empty and learned and not _names_text(learned):
        return [False, True]
    values = pandas.Series(_with_named(present.tolist(), learned), dtype=object)
    categories: list[Any] = values.astype("category").cat.categories.tolist()
    return categories


def _with_named(values: list[Any], names: Sequence[str]) -> list[Any]:
    """Add the categories with these names that are not among the values yet, if all are text, or all are numbers."""
    types = {type(value) for value in values} or {str}
    if len(types) > 1 or not types <= {str, int, float}:
        return values
    (of_type,) = types
    known_names = {category_name(value) for value in values}
    named = [_category_named(name, of_type) for name in names if name not in known_names]
    return [*values, *(value for value in named if value is not None)]


def _category_named(name: str, of_type: type[str | int | float]) -> str | int | float | None:
    """Return the category of a type that has this name; None if there is none."""
    try:
        return of_type(name)
    except ValueError:
        return None


def _dtype_of(parts: Sequence[Any], known: Sequence[Any], is_category: bool) -> Any:
    """Return the dtype in which the model gets a column: that of the first frame in which it is not of numbers."""
    is_ordered = [bool(part.cat.ordered) for part in parts if hasattr(part, "cat")]
    if is_ordered or is_category:
        return require("pandas", "sklearn").CategoricalDtype(known, ordered=any(is_ordered))
    dtypes = [part.dtype for part in parts if not is_numeric(part)]
    if dtypes:
        return dtypes[0]
    return np.dtype(bool) if known == [False, True] else np.dtype(object)


def _backgrounds(absences: Iterable[object]) -> dict[str, Any]:
    """Return the DataFrames with categories that absences hold, by the names that errors give them."""
    held = [getattr(absence, "frame", None) for absence in absences]
    frames = [frame for frame in held if is_frame(frame)]
    if len(frames) == 1:
        return {"background": frames[0]}
    return {f"background {number}": frame for number, frame in enumerate(frames, start=1)}


def _names_of_categories(absences: Iterable[object]) -> dict[str, list[str]]:
    """Return the categories of each column that learned absences were made for."""
    names: dict[str, list[str]] = {}
    for absence in absences:
        players = getattr(absence, "players", None)
        if isinstance(players, Players) and players.categories:
            for column, categories in zip(players.names, players.categories, strict=True):
                if categories:
                    names.setdefault(column, []).extend(categories)
    return names
