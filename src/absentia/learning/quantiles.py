"""How the data is distributed, entry by entry: what a learned value is looked at beside."""

from __future__ import annotations

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

# From the least value of an entry over its quarters to the largest.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
# The least and the largest are of all rows; what lies between is of so many, evenly spaced.
_MOST_ROWS = 4096


def data_quantiles(data: Shaped[Tensor, "rows *shape"]) -> Float[Tensor, "quantiles *shape"]:
    """Take the quantiles of each entry over the rows.

    >>> data_quantiles(torch.arange(21.0)[:, None]).flatten().tolist()
    [0.0, 1.0, 5.0, 10.0, 15.0, 19.0, 20.0]
    """
    some = data[:: 1 + (len(data) - 1) // _MOST_ROWS].double()
    # One column at a time would be slow and all at once may be too much for torch.quantile.
    parts = [
        torch.quantile(part, torch.tensor(QUANTILES, dtype=torch.float64, device=part.device), dim=0)
        for part in some.flatten(1).split(1024, dim=1)
    ]
    found = torch.cat(parts, dim=1).unflatten(1, data.shape[1:])
    found[0], found[-1] = data.amin(0).double(), data.amax(0).double()
    return found.cpu()
