"""How a table became numbers: its columns, and the categories of those that hold text; kept with results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from absentia.errors import wrong
from absentia.interop import EncodedTable
from absentia.optional import require


@dataclass(frozen=True)
class Coding:
    """The columns of a table in the model's order, and the categories of those that are coded, in theirs.

    A result that holds codes, such as a learned baseline, means nothing without it: it is written beside the result,
    and other tables are then coded alike.

    >>> Coding.read({"columns": ["city"], "categories": {"city": ["Bern", "Oslo"]}})
    Coding(columns=('city',), categories={'city': ('Bern', 'Oslo')})
    """

    columns: tuple[str, ...]
    categories: dict[str, tuple[Any, ...]]

    @classmethod
    def read(cls, header: Mapping[str, Any]) -> Coding:
        """Take it from a file's header."""
        categories = {column: tuple(values) for column, values in header["categories"].items()}
        return cls(tuple(header["columns"]), categories)

    def to_header(self) -> dict[str, Any]:
        """Write it for a file's header."""
        return {"columns": list(self.columns), "categories": {name: list(v) for name, v in self.categories.items()}}

    @property
    def categorical(self) -> list[int]:
        """The numbers of the coded columns."""
        return [number for number, column in enumerate(self.columns) if column in self.categories]


def encode_frames(frames: Sequence[Any], known: Coding | None) -> EncodedTable:
    """Code frames by the categories that are known, or by all that occur in any of them."""
    pandas = require("pandas", "tables")
    first = frames[0]
    if known is None or not known.categories:
        return EncodedTable.of(pandas.concat(frames, ignore_index=True) if len(frames) > 1 else first)
    text = [column for column in EncodedTable.of(first).categories if column not in known.categories]
    if text:
        raise wrong(f"column {text[0]!r}", "hold numbers, as it did when the absence was saved", "text")
    dtypes = {column: first[column].dtype for column in known.categories}
    empty = EncodedTable(torch.zeros(0, len(known.columns)).double(), known.columns, known.categories, dtypes)
    return EncodedTable(empty.encode(first), known.columns, known.categories, dtypes)
