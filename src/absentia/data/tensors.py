"""Arrays and tables that users pass, as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from absentia.errors import AbsentiaError, wrong

Array: TypeAlias = Tensor | np.ndarray

# Samples as users pass them: an array, a DataFrame or nested lists. `as_tensor` rejects anything else.
Table: TypeAlias = Any

Rows: TypeAlias = Shaped[Tensor, "rows *entries"]

# Streams of samples, which are not held in an array.
_STREAMS = (Iterator, IterableDataset, DataLoader)


def as_tensor(name: str, value: Any, *, missing: bool = False) -> Tensor:
    """Convert a tensor, an array, a DataFrame or nested lists of numbers to a tensor.

    A DataFrame with infinite or missing values is refused, because its columns can be named here; with ``missing``,
    missing values become NaN.
    """
    if isinstance(value, Tensor):
        _check_tensor(name, value)
        return value
    try:
        array = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise _not_numbers(name, value) from error
    if array.dtype.kind == "c":
        raise _not_real(name, "complex numbers")
    if np.ma.isMaskedArray(value):
        raise _not_real(name, "masked values")
    is_frame = isinstance(getattr(value, "columns", None), Iterable)
    if is_frame and (array.dtype.kind not in "biuf" or not np.isfinite(array).all()):
        array = _read_columns(name, value, missing)
    try:
        # Reversed and read-only arrays are copied, because torch cannot use them.
        return torch.as_tensor(np.require(array, _type_for_torch(array.dtype), ["C", "W"]))
    except (TypeError, ValueError) as error:
        raise _not_numbers(name, value) from error


def _check_tensor(name: str, tensor: Tensor) -> None:
    """Raise an error for a tensor that does not hold all its numbers in memory, or holds complex ones."""
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_quantized:
        raise wrong(name, "hold all its numbers in memory", f"a {tensor.layout} tensor on {tensor.device}")
    if tensor.is_complex():
        raise _not_real(name, "complex numbers")


def _not_numbers(name: str, value: Any) -> AbsentiaError:
    """Return the error for a value that is not an array or a table of numbers."""
    then = ""
    if isinstance(value, _STREAMS):
        then = "Join its samples first, with torch.stack or torch.cat."
    return wrong(name, "be a tensor, an array or a table of numbers", type(value).__name__, then)


def _not_real(name: str, got: str) -> AbsentiaError:
    """Return the error for numbers that are complex or missing."""
    return wrong(name, "hold real numbers, none of them missing", got)


def _type_for_torch(dtype: np.dtype[Any]) -> Any:
    """Return the dtype to convert an array to: its own, unless torch lacks it or hardly supports it."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.float64
    if dtype.kind == "u" and dtype.itemsize >= 8:  # int64 can't hold its largest numbers
        return np.float64
    if dtype.kind == "u" and dtype.itemsize > 1:
        return np.int64
    return dtype.newbyteorder("=")


def _read_columns(name: str, frame: Any, missing: bool) -> np.ndarray:
    """Convert the columns of a DataFrame one by one; errors name the column with text or missing values."""
    columns = []
    for number, label in enumerate(frame.columns):
        column = frame.iloc[:, number]
        if getattr(column.dtype, "kind", "") in ("m", "M"):
            then = "Convert times first, for example to days since a date."
            raise wrong(name, "hold numbers", f"{column.iloc[0]!r} in column {label!r}", then)
        try:
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            then = (
                "Encode text and categories as numbers first: absentia.interop.EncodedTable.of(frame) does. To have "
                "them encoded for you, pass an estimator as the model, x as a DataFrame, and an absence by a word "
                "such as 'median', or as Marginal(frame)."
            )
            raise wrong(name, "hold numbers", f"{column.iloc[0]!r} in column {label!r}", then) from error
        refused = ~np.isfinite(values)
        if missing:
            refused &= ~np.isnan(values)
        if refused.any():
            row = int(refused.argmax())
            got = f"{values[row]} in column {label!r}, row {frame.index[row]!r}"
            raise wrong(name, "be finite", got, "Fill in missing values, or leave out such rows.")
        columns.append(values)
    return np.stack(columns, axis=1)


def check_rows(
    data: Table,
    least: int = 1,
    name: str = "data",
    kind: str = "row",
    columns: Any = None,
    *,
    missing: bool = False,
) -> Tensor:
    """Convert data of shape (rows, …) to a tensor; raise an error for wrong columns, no rows, or infinite numbers.

    Missing values, NaN, are refused unless ``missing``.
    """
    check_columns(name, getattr(data, "columns", None), columns)
    return check_numbers(as_tensor(name, data, missing=missing), least, name, kind, missing=missing)


def check_numbers(rows: Tensor, least: int, name: str, kind: str, *, missing: bool) -> Tensor:
    """Return a tensor of shape (rows, …), booleans as numbers; raise an error for no rows or infinite numbers."""
    if rows.dtype == torch.bool:
        rows = rows.byte()
    if rows.ndim < 2 or len(rows) < least or rows.numel() == 0:
        raise _too_few_rows(rows, least, name, kind)
    accepted = torch.isfinite(rows).flatten(1)
    if missing:
        accepted |= rows.isnan().flatten(1)
    if not bool(accepted.all()):
        row, entry = (~accepted).nonzero()[0].tolist()
        raise wrong(name, "be finite", f"{rows.flatten(1)[row, entry].item()} in {kind} {row}, entry {entry}")
    return rows


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows that have been converted and checked. They take the place of data that a user passes."""

    rows: Rows


def read_rows(data: Table | CheckedRows, least: int = 1) -> Rows:
    """Return data as rows, in which values may be missing: checked rows as they are, and all others after a check."""
    if not isinstance(data, CheckedRows):
        return check_rows(data, least, missing=True)
    if len(data.rows) < least:
        raise _too_few_rows(data.rows, least, "data", "row")
    return data.rows


def _too_few_rows(rows: Tensor, least: int, name: str, kind: str) -> AbsentiaError:
    """Return the error for data with too few rows, or without an axis for them."""
    count = f"one {kind}" if least == 1 else f"{least} {kind}s"
    then = ""
    if rows.ndim == 1 and len(rows):
        then = f"Pass {name}[None] for one {kind}."
    return wrong(name, f"have at least {count}, of shape ({kind}s, …)", f"shape {tuple(rows.shape)}", then)


def check_columns(name: str, columns: Any, wanted: Any) -> None:
    """Raise an error if the columns of x differ from those of the fit, or the columns of data from those of x."""
    names = _column_names(columns)
    wanted_names = _column_names(wanted)
    if not names or not wanted_names or as_in_lightgbm(names) == as_in_lightgbm(wanted_names):
        return
    got = f"{len(names)} columns rather than {len(wanted_names)}"
    for column, wanted_column in zip(names, wanted_names, strict=False):
        if column != wanted_column:
            got = f"{column!r} in place of {wanted_column!r}"
            break
    owner = "the fit" if name == "x" else "x"
    raise wrong(name, f"have the columns of {owner}, in their order", got)


def as_in_lightgbm(names: list[str]) -> list[str]:
    """Return the names as LightGBM keeps them, with underscores in place of spaces."""
    return [name.replace(" ", "_") for name in names]


def _column_names(columns: Any) -> list[str]:
    """Return the names of columns as text; empty for data without columns."""
    if not isinstance(columns, Iterable):
        return []
    return [str(column) for column in columns]
