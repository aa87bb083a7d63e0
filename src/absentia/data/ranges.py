"""The range of each entry, and white noise within it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from absentia.data.categories import column_groups
from absentia.data.gaps import has_gaps
from absentia.data.scales import least_and_most
from absentia.data.tensors import Rows

# Values may lie outside a range by this share of its width.
_TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class DataRange:
    """The smallest and the largest value of each entry, and rows for entries that only take certain values."""

    low: Float[Tensor, " *entries"]
    high: Float[Tensor, " *entries"]
    rows: Rows | None = None
    from_rows: Bool[Tensor, " *entries"] | None = None  # which entries take values of rows only, such as categories
    missing: Bool[Tensor, " *entries"] | None = None  # which entries are missing in some rows; None if none are

    def holds(self, values: Shaped[Tensor, "*rows"]) -> Bool[Tensor, "*rows"]:
        """Return which values lie within the range, with a tolerance of 1 % of its width."""
        slack = _TOLERANCE * (self.high - self.low)
        within = (values >= self.low - slack) & (values <= self.high + slack)
        if self.missing is None:
            return within
        return within | (values.isnan() & self.missing)


def data_range(data: Rows, categorical: Iterable[Any] = ()) -> DataRange:
    """Return the range of each entry of a table, or of each channel of images; categories keep values of rows."""
    low, high = least_and_most(data)
    shape = data.shape[1:]
    from_rows = torch.zeros(data[0].numel(), dtype=torch.bool)
    for columns in column_groups(categorical, len(from_rows)):
        from_rows[columns] = True
    missing = data.isnan().any(0) if has_gaps(data) else None
    return DataRange(low.expand(shape), high.expand(shape), data, from_rows.reshape(shape), missing)


def white_noise(within: DataRange, like: Rows, generator: torch.Generator) -> Rows:
    """Draw every entry uniformly within the range, shaped like ``like``; integers include both ends."""
    share = torch.rand(like.shape, generator=generator, dtype=torch.float64).to(like.device)
    low = within.low.to(like.device)
    width = (within.high - within.low).to(like.device)
    if like.is_floating_point():
        above = width * share
    else:
        above = ((width + 1) * share).floor()
    noise = (low + above).to(like.dtype)
    if within.rows is None or within.from_rows is None or not bool(within.from_rows.any()):
        return noise
    # Entries such as categories take the values of a random row instead.
    numbers = torch.randint(len(within.rows), (len(like),), generator=generator)
    drawn_rows = within.rows[numbers.to(within.rows.device)]
    return torch.where(within.from_rows.to(like.device), drawn_rows.to(like), noise)
