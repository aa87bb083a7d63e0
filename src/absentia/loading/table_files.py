"""Tables: CSV and Parquet files, read by pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from absentia.errors import wrong
from absentia.loading.python_objects import describe
from absentia.optional import require


def read_table(
    path: Path, argument: str, target: str | None, drop: tuple[str, ...], needs_target: bool
) -> tuple[Any, np.ndarray | None]:
    """Read a table, and take the target's column out of it, and those to drop."""
    frame = _read(path, argument)
    frame.columns = [str(column) for column in frame.columns]
    twice = frame.columns[frame.columns.duplicated()].tolist()
    if twice:
        raise wrong(argument, "have columns with names of their own", f"{twice[0]!r} twice")
    if len(frame) == 0:
        raise wrong(argument, "hold at least one row", f"none in {path}")
    for column in drop:
        _check_column("drop", column, frame)
    found = None
    if target is not None and (needs_target or target in frame.columns):
        _check_column("target", target, frame)
        if bool(frame[target].isna().any()):
            row = int(frame[target].isna().to_numpy().argmax())
            raise wrong("target", f"have no missing values in column {target!r}", f"one in row {row}")
        found = frame[target].to_numpy()
    left = frame.drop(columns=[*drop, *([target] if found is not None else [])])
    if left.shape[1] == 0:
        raise wrong(argument, "have columns beside the target and those dropped", "none")
    return left, found


def _read(path: Path, argument: str) -> Any:
    pandas = require("pandas", "tables")
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        require("pyarrow", "parquet")
    try:
        if suffix in (".parquet", ".pq"):
            return pandas.read_parquet(path)
        return pandas.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
    except Exception as error:
        raise wrong(argument, f"be a table that pandas can read, {path}", describe(error)) from error


def _check_column(argument: str, column: str, frame: Any) -> None:
    if column not in frame.columns:
        names = frame.columns.tolist()
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        raise wrong(argument, f"name a column of the table: {shown}", repr(column))
