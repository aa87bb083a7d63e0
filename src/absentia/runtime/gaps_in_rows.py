"""Whether a model takes missing values: it is tried."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from absentia.data import Rows, has_gaps
from absentia.errors import AbsentiaError, wrong
from absentia.models.arrays import NumpyModel
from absentia.models.model import Model
from absentia.players import ALWAYS_PRESENT, Players
from absentia.runtime.batches import try_rows
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.row_count import RowCount


def check_gaps(
    model: Model, rows: Rows, argument: str, place: Callable[[int, int], str], row_count: RowCount
) -> None:
    """Raise an error for rows with missing values that the model does not take.

    ``place`` says where a value is, by the numbers of its row and its entry.
    """
    if not why_gaps_are_refused(model, rows, row_count):
        return
    missing = rows.isnan().flatten(1)
    for row in _rows_to_try(missing).tolist():
        why = _why_refused(model, rows[row : row + 1], row_count)
        if why:
            entry = int(missing[row].int().argmax())
            then = f"The model does not take it ({why}). Fill in missing values, or leave out such rows."
            raise wrong(argument, "be finite", f"nan in {place(row, entry)}", then)


def why_gaps_are_refused(model: Model, rows: Rows, row_count: RowCount) -> str:
    """Return why a model does not take the missing values of rows; "" if it does, or if there are none."""
    if not has_gaps(rows):
        return ""
    return _why_refused(model, rows[_rows_to_try(rows.isnan().flatten(1))], row_count)


def takes_missing(model: Model, rows: Rows, players: Players, row_count: RowCount) -> bool:
    """Return whether a model takes a row in which the entries of all players are missing."""
    if not rows.is_floating_point() or not isinstance(model, NumpyModel):
        return False
    owned = (players.labels != ALWAYS_PRESENT).to(rows.device)
    return not _why_refused(model, torch.where(owned, torch.nan, rows[-1:]), row_count)


def _why_refused(model: Model, rows: Rows, row_count: RowCount) -> str:
    """Return why a model does not take these rows, of which each has missing values; "" if it does."""
    if not isinstance(model, NumpyModel):
        return "it runs on tensors"
    try:
        with evaluation_mode(model):
            output, _, _ = try_rows(model, rows.clone(), row_count)
    except AbsentiaError as error:
        cause = error.__cause__ or error
        lines = str(cause).splitlines() or [""]
        return f"{type(cause).__name__}: {lines[0]}"
    if bool(output.isfinite().all()):
        return ""
    return "its output is not finite"


def _rows_to_try(missing: Tensor) -> Tensor:
    """Return the first row in which each entry is missing, and the row with the most missing values."""
    entries = missing.any(0).nonzero().flatten()
    first = missing[:, entries].int().argmax(0)
    most = missing.sum(1).argmax()
    return torch.cat([first, most[None]]).unique()
