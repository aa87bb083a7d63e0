"""Tables that pandas reads: CSV, TSV and Parquet."""

import warnings
from pathlib import Path
from typing import Any

from absentia.cli.file_checks import reading
from absentia.cli.raw_data import RawData
from absentia.errors import require, wrong
from absentia.tables import listed

PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *PARQUET)


def read_table(path: Path, argument: str, target: str | None, drop: tuple[str, ...], index: str | None) -> RawData:
    """Read a table with pandas. Separate the target and the names of the rows, and drop columns."""
    frame, first_column_is_index = _read_frame(path, argument)
    if first_column_is_index and index is None:
        index = frame.columns[0]
    if argument != "data":  # a background may lack these columns
        target = target if target in frame.columns else None
        index = index if index in frame.columns else None
    named_columns = [*(("drop", column) for column in drop), ("target", target), ("index", index)]
    for option, column in named_columns:
        if column is not None and column not in frame.columns:
            raise wrong(option, f"name a column of the table: {listed(frame.columns)}", repr(column))
    names = [] if index is None else frame[index].astype(str).tolist()
    inputs = frame.drop(columns=[column for _, column in named_columns if column is not None])
    if inputs.empty:
        must = "hold at least one row, and one column besides the target, the index and the dropped ones"
        raise wrong(argument, must, f"{len(inputs)} rows and {inputs.shape[1]} columns in {path}")
    return RawData(inputs, None if target is None else _target(frame[target], target), names=names)


def _read_frame(path: Path, argument: str) -> tuple[Any, bool]:
    """Read a frame whose columns are unique; return also whether its first column has no name, as an index has."""
    pandas = require("pandas", "tables")
    suffix = path.suffix.lower()
    is_parquet = suffix in PARQUET
    if is_parquet:
        require("pyarrow", "parquet")
    separator = "\t" if suffix == ".tsv" else ","
    with reading(argument, "be a table that pandas can read", path), warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)  # raised for rows longer than the header
        if is_parquet:
            frame = pandas.read_parquet(path)
        else:
            frame = pandas.read_csv(path, sep=separator, index_col=False)  # otherwise long rows would name rows
    frame.columns = frame.columns.astype(str)
    header = frame.columns
    if not is_parquet:  # pandas renames columns that occur twice or have no name
        first_line = pandas.read_csv(path, sep=separator, header=None, nrows=1, dtype=str, na_filter=False)
        header = pandas.Index(first_line.iloc[0])
    repeated = [repr(name) for name in header[header.duplicated()].unique()]
    if repeated:
        then = "Rename the columns, so that --drop and --target can tell them apart."
        raise wrong(argument, "have each column once", f"{', '.join(repeated[:6])} more than once in {path}", then)
    # pandas writes the names of rows to a first column without a name.
    return frame, list(header[:1]) == [""]


def _target(column: Any, name: str) -> Any:
    """Return the targets as an array; raise an error for missing ones."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise wrong("target", f"have no missing values in column {name!r}", f"one in row {int(missing.argmax())}")
    return column.to_numpy()


def likely_targets(data: RawData) -> str:
    """Suggest columns that may hold classes if no target is named: text or whole numbers, few of them distinct."""
    if data.target is not None or not hasattr(data.inputs, "columns"):
        return ""
    discrete = data.inputs.select_dtypes(exclude="floating")
    counts = discrete.nunique()
    candidates = counts[counts <= min(20, len(discrete) // 2)].index
    return f" Was --target forgotten? It could name {listed(candidates, 6)}." if len(candidates) else ""
