"""Data that users pass: tensors, classes, ranges, quantiles, white noise and seeds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from absentia.errors import AbsentiaError, wrong

Array: TypeAlias = Tensor | np.ndarray
# Samples as users hold them: an array, a DataFrame, nested lists. `as_tensor` refuses anything else.
Table: TypeAlias = Any
# Classes as users hold them: numbers or names, one or one for each sample.
Classes: TypeAlias = Any
Rows: TypeAlias = Shaped[Tensor, "rows *entries"]
# Columns of categories by their numbers, or groups of columns that code one category together.
Categorical: TypeAlias = Sequence[int | Sequence[int]]
Scales: TypeAlias = tuple[Float[Tensor, " *scales"], Float[Tensor, " *scales"]]

# The levels at which the distribution of an entry is summarised.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_STREAMS = (Iterator, IterableDataset, DataLoader)  # of samples, which have no array of their own
_MOST_ROWS_FOR_QUANTILES = 4096
_ROWS_AT_A_TIME = 4096
_NAMES_SHOWN = 10  # of classes, in an error


def as_tensor(name: str, value: Any) -> Tensor:
    """Convert a tensor, an array, a DataFrame or nested lists of numbers to a tensor."""
    if isinstance(value, Tensor) and (value.layout is not torch.strided or value.is_meta or value.is_quantized):
        raise wrong(name, "hold its numbers in memory, all of them", f"a {value.layout} tensor on {value.device}")
    if isinstance(value, Tensor) and not value.is_complex():
        return value
    then = "Join its samples first, with torch.stack or torch.cat." if isinstance(value, _STREAMS) else ""
    refused = wrong(name, "be a tensor, an array or a table of numbers", type(value).__name__, then)
    try:
        # torch cannot read a DataFrame, which converts itself.
        array = value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise refused from error
    if array.dtype.kind == "c" or np.ma.isMaskedArray(value):
        got = "complex numbers" if array.dtype.kind == "c" else "masked values"
        raise wrong(name, "hold real numbers, none of them missing", got)
    frame = isinstance(getattr(value, "columns", None), Iterable)
    if frame and (array.dtype.kind not in "biuf" or not np.isfinite(array).all()):
        array = _read_columns(name, value)
    kind, size = array.dtype.kind, array.dtype.itemsize
    native: Any = array.dtype.newbyteorder("=")
    if kind in "uf" and size > (1 if kind == "u" else 8):  # types that torch lacks, or hardly computes with
        native = np.float64 if size >= 8 else np.int64
    try:
        return torch.as_tensor(np.require(array, native, ["C", "W"]))  # copies reversed and read-only arrays
    except (TypeError, ValueError) as error:
        raise refused from error


def _read_columns(name: str, frame: Any) -> np.ndarray:
    """Convert the columns of a DataFrame one by one; raise an error that names one with text or missing values."""
    columns = []
    for number, label in enumerate(frame.columns):
        column = frame.iloc[:, number]
        if getattr(column.dtype, "kind", "") in ("m", "M"):
            then = "Convert times first, for example to days since a date."
            raise wrong(name, "hold numbers", f"{column.iloc[0]!r} in column {label!r}", then)
        try:
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            then = "Encode text and categories as numbers first: absentia.interop.EncodedTable.of(frame) does."
            raise wrong(name, "hold numbers", f"{column.iloc[0]!r} in column {label!r}", then) from error
        if not np.isfinite(values).all():
            row = int((~np.isfinite(values)).argmax())
            got = f"{values[row]} in column {label!r}, row {frame.index[row]!r}"
            raise wrong(name, "be finite", got, "Fill missing values in, or leave out such rows.")
        columns.append(values)
    return np.stack(columns, axis=1)


def check_rows(data: Table, least: int = 1, name: str = "data", kind: str = "row", columns: Any = None) -> Tensor:
    """Convert data of shape (rows, …) to a tensor; raise an error for other columns, no rows, or infinite numbers."""
    check_columns(name, getattr(data, "columns", None), columns)
    data = as_tensor(name, data)
    data = data.byte() if data.dtype == torch.bool else data
    if data.ndim < 2 or len(data) < least or data.numel() == 0:
        must = f"have at least {f'one {kind}' if least == 1 else f'{least} {kind}s'}, of shape ({kind}s, …)"
        then = f"Pass {name}[None] for one {kind}." if data.ndim == 1 and len(data) else ""
        raise wrong(name, must, f"shape {tuple(data.shape)}", then)
    finite = torch.isfinite(data).flatten(1)
    if not bool(finite.all()):
        row, entry = (~finite).nonzero()[0].tolist()
        raise wrong(name, "be finite", f"{data.flatten(1)[row, entry].item()} in {kind} {row}, entry {entry}")
    return data


def check_columns(name: str, columns: Any, wanted: Any) -> None:
    """Raise an error for columns of x that are not the fit's, in their order, or of data that are not those of x."""
    found, right = ([*map(str, names)] if isinstance(names, Iterable) else [] for names in (columns, wanted))
    if found and right and found != right:
        others = (f"{a!r} in the place of {b!r}" for a, b in zip(found, right, strict=False) if a != b)
        got = next(others, f"{len(found)} columns rather than {len(right)}")
        raise wrong(name, f"have the columns of {'the fit' if name == 'x' else 'x'}, in their order", got)


def class_numbers(y: Classes, labels: Sequence[Any] = (), name: str = "y") -> Int[Tensor, " *samples"]:
    """Convert classes to numbers: names, or an estimator's own numbers, by their place in ``labels``."""
    y, labels = as_tensor(name, y) if isinstance(y, Tensor) else y, list(labels)
    if len(set(map(str, labels))) < len(labels):
        raise wrong("class_names", "name each class once", labels)
    text = holds_text(y)
    plain = y.detach().cpu() if isinstance(y, Tensor) else y.to_numpy() if hasattr(y, "to_numpy") else y
    array = np.asarray(plain, dtype=object)  # also of lists that have no common shape
    if array.ndim > 1:
        raise wrong(name, "be one class number or one for each sample", f"shape {array.shape}")
    if text and not labels:
        raise order_unknown(y, name)
    numeric = bool(labels) and not any(isinstance(one, str) or not isinstance(one, Hashable) for one in labels)
    if text or numeric:
        number_of = {label if numeric else str(label): number for number, label in enumerate(labels)}
        given = [label if numeric else str(label) for label in array.reshape(-1).tolist()]
        unknown = [label for label in given if not isinstance(label, Hashable) or label not in number_of]
        if unknown:
            raise wrong(name, f"hold classes of the model: {', '.join(map(str, labels))}", repr(unknown[0]))
        return torch.tensor([number_of[label] for label in given]).reshape(array.shape)
    target = as_tensor(name, y)
    if not bool(target.isfinite().all()) or not torch.equal(target.double(), target.double().round()):
        raise wrong(name, "hold class numbers", f"{target.dtype} values", "Leave y out for a regression.")
    return target.long()


def each_class(classes: Int[Tensor, " *samples"], samples: int) -> Int[Tensor, " samples"]:
    """Return one class number for each sample, given those or one for all."""
    if classes.ndim == 1 and len(classes) != samples:
        raise wrong("y", f"hold one class for each of the {samples} samples", f"{len(classes)}")
    return classes.cpu().expand(samples).clone()


def holds_text(y: Classes) -> bool:
    """Return whether classes are given by their names rather than by numbers."""
    if isinstance(y, Tensor | int | float):
        return False
    try:
        array = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    except ValueError:  # of no common shape
        return False
    return array.dtype.kind in "UOS" and any(isinstance(label, str) for label in array.reshape(-1).tolist())


def order_unknown(y: Classes, name: str = "y", option: str = "class_names") -> AbsentiaError:
    """Return the error for names of classes whose order nobody knows; it lists the names, for the user to order."""
    values = y.to_numpy() if hasattr(y, "to_numpy") else y
    labels = np.asarray(values, dtype=object).reshape(-1).tolist()
    found = sorted({str(label) for label in labels})
    shown = ", ".join(repr(label) for label in found[:_NAMES_SHOWN])
    if len(found) > _NAMES_SHOWN:
        shown += ", …"
    then = f"Pass {option}=[{shown}] in the order of the model's outputs."
    return AbsentiaError(f"{name} holds names of classes, but the model does not know their order. {then}")


def check_number(name: str, number: float | None, least: float, most: float = math.inf) -> None:
    """Raise an error for a number outside a range, to which its ends belong; None is no number."""
    if number is not None and not least <= number <= most:
        raise wrong(name, f"be at least {least}" if most == math.inf else f"lie between {least} and {most}", number)


def column_groups(categorical: Iterable[Any], entries: int) -> list[list[int]]:
    """Return groups of column numbers, one for each category; raise an error for columns that do not fit."""
    groups = [list(item) if isinstance(item, Iterable) else [item] for item in categorical]
    numbers = [one for group in groups for one in group]
    for number, one in enumerate(numbers):
        if one not in range(entries):
            raise wrong("categorical", f"name columns from 0 to {entries - 1}", one)
        if one in numbers[:number]:
            raise wrong("categorical", "name each column once", f"column {one} twice")
    return [[int(one) for one in group] for group in groups]


def most_frequent(rows: Shaped[Tensor, "rows entries"]) -> Shaped[Tensor, " entries"]:
    """Return the row that occurs most often."""
    found, counts = torch.unique(rows, dim=0, return_counts=True)
    return found[counts.argmax()]


def blocks(total: int, size: int) -> Iterator[slice]:
    """Split a range into slices of at most ``size``."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def seeded(seed: int, *path: object) -> torch.Generator:
    """Return the generator of a seed, or of the independent stream that a path below it names, in every process."""
    if not path and abs(seed) < 2**63:
        return torch.Generator().manual_seed(seed)
    digest = hashlib.blake2b(" ".join(map(str, (seed, *path))).encode(), digest_size=6).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))


def mean_and_deviation(rows: Rows) -> Scales:
    """Return means and standard deviations of each entry, or of each channel of images, in double precision."""
    mean = rows.mean(_axes(rows), keepdim=True, dtype=torch.float64)
    parts = rows.split(_ROWS_AT_A_TIME)  # a copy of all rows in double precision might not fit into memory
    total = sum((part.double() - mean).square_().sum(_axes(rows), keepdim=True) for part in parts)
    deviation = (total * (mean.numel() / rows.numel())).sqrt()
    # Equal numbers may differ from their mean by a rounding error.
    deviation[deviation <= 1e-12 * (1 + mean.abs())] = 0
    return mean[0], deviation[0]


def least_and_most(rows: Rows) -> Scales:
    """Return the least and the greatest value of each entry, or of each channel of images."""
    return rows.amin(_axes(rows), keepdim=True)[0].double(), rows.amax(_axes(rows), keepdim=True)[0].double()


def _axes(rows: Tensor) -> list[int]:
    """Return the axes that statistics are taken over: rows, and for images height and width."""
    return [0] if rows.ndim == 2 else [0, -2, -1]


@dataclass(frozen=True, eq=False)
class DataRange:
    """The least and the greatest value of each entry; and rows, for entries whose values are not all possible."""

    low: Float[Tensor, " *entries"]
    high: Float[Tensor, " *entries"]
    rows: Rows | None = None
    from_rows: Bool[Tensor, " *entries"] | None = None  # which entries have values of rows, such as categories

    def holds(self, values: Shaped[Tensor, "*rows"]) -> Bool[Tensor, "*rows"]:
        """Return which values lie within the range, with a tolerance of 1 % of its width."""
        slack = 0.01 * (self.high - self.low)
        return (values >= self.low - slack) & (values <= self.high + slack)


def data_range(data: Rows, categorical: Iterable[Any] = ()) -> DataRange:
    """Return the range of each entry of a table, or of each channel of images; categories have the values of rows."""
    (low, high), from_rows = least_and_most(data), torch.zeros(data[0].numel(), dtype=torch.bool)
    for columns in column_groups(categorical, len(from_rows)):
        from_rows[columns] = True
    shape = data.shape[1:]
    return DataRange(low.expand(shape), high.expand(shape), data, from_rows.reshape(shape))


def white_noise(within: DataRange, like: Rows, generator: torch.Generator) -> Rows:
    """Draw every entry uniformly within the range, in the shape and type of ``like``; integers include both ends."""
    share = torch.rand(like.shape, generator=generator, dtype=torch.float64).to(like.device)
    low, width = within.low.to(like.device), (within.high - within.low).to(like.device)
    above = width * share if like.is_floating_point() else ((width + 1) * share).floor()
    noise = (low + above).to(like.dtype)
    if within.rows is None or within.from_rows is None or not bool(within.from_rows.any()):
        return noise
    # Entries such as categories have the values of a drawn row instead.
    drawn = within.rows[torch.randint(len(within.rows), (len(like),), generator=generator).to(within.rows.device)]
    return torch.where(within.from_rows.to(like.device), drawn.to(like), noise)


def data_quantiles(data: Shaped[Tensor, "rows *shape"]) -> Float[Tensor, "quantiles *shape"]:
    """Return the quantiles of each entry: the ends of all rows, the others of `QUANTILES` of at most 4,096 rows."""
    some = data[:: 1 + (len(data) - 1) // _MOST_ROWS_FOR_QUANTILES].double()
    levels = torch.tensor(QUANTILES, dtype=torch.float64, device=data.device)
    # torch.quantile takes a limited number of values at once.
    parts = [torch.quantile(part, levels, dim=0) for part in some.flatten(1).split(1024, dim=1)]
    found = torch.cat(parts, dim=1).unflatten(1, data.shape[1:])
    found[0], found[-1] = data.amin(0).double(), data.amax(0).double()
    return found.cpu()
