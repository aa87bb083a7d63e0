"""The distribution of each entry, summarised by quantiles."""

from __future__ import annotations

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.data.gaps import known_least, known_most, known_quantiles

# The levels at which the distribution of an entry is summarised.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)

# Quantiles between the ends are those of about this many rows, evenly spaced.
_MOST_ROWS = 4096

# torch.quantile takes a limited number of values at once.
_ENTRIES_AT_A_TIME = 1024


def data_quantiles(data: Shaped[Tensor, "rows *shape"]) -> Float[Tensor, "quantiles *shape"]:
    """Return the quantiles of each entry: the ends of all rows, the others of `QUANTILES` of at most 4,096 rows."""
    step = 1 + (len(data) - 1) // _MOST_ROWS
    rows = data[::step].double().flatten(1)
    levels = torch.tensor(QUANTILES, dtype=torch.float64, device=data.device)
    parts = [known_quantiles(part, levels) for part in rows.split(_ENTRIES_AT_A_TIME, dim=1)]
    quantiles = torch.cat(parts, dim=1).unflatten(1, data.shape[1:])
    quantiles[0] = known_least(data)[0].double()
    quantiles[-1] = known_most(data)[0].double()
    return quantiles.cpu()
