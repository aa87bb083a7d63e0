"""The nearest rows of the data as an absence: what occurs together with the present entries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absence.checks import check_rows, check_shape, check_whole
from absentia.absence.protocols import Fill
from absentia.absence.scales import mean_and_deviation
from absentia.arrays import Table
from absentia.errors import wrong
from absentia.inference import blocks

# Distances to all rows are held for so many coalitions: 64 MiB in double precision.
_NUMBERS_AT_A_TIME = 2**23
# Differences from the rows go through several steps, which find them in cache: 1 MiB.
_NUMBERS_IN_CACHE = 2**17


@dataclass(frozen=True, eq=False, init=False)
class NearestNeighbours:
    """The values of the ``neighbours`` rows of the data that are nearest to the sample in its present entries.

    Near means a small sum of squared differences over the present entries, in units of their standard deviation (of
    the channel's for images) unless ``standardise`` is off; for tokens, few present places with another token. Rows
    that are equally near, as all are when nothing is present, are taken in an order drawn by ``seed``. A sample that
    is itself among the data is its own nearest row, and nothing of it is removed: leave it out of the data.

    >>> data = torch.tensor([[0.0, 1.0], [1.0, 2.0], [5.0, 3.0]])
    >>> absence = NearestNeighbours(data, neighbours=2)
    >>> absence
    NearestNeighbours(2 of 3 rows, standardised)
    >>> absence.bind(torch.tensor([[4.0, 9.0]]))(slice(None), torch.tensor([[[True, False]]])).tolist()
    [[[[4.0, 3.0], [4.0, 2.0]]]]
    """

    data: Shaped[Tensor, "rows *entries"]  # in the order in which rows that are equally near are taken
    neighbours: int
    standardise: bool
    weight: Tensor  # broadcasts over entries; 0 where an entry never changes, and so can't tell rows apart

    def __init__(self, data: Table, *, neighbours: int = 10, standardise: bool = True, seed: int = 0) -> None:
        rows = check_rows(data)
        if not 1 <= neighbours <= len(rows):
            raise wrong("neighbours", f"lie between 1 and the data's {len(rows)} rows", neighbours)
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
        _, deviation = mean_and_deviation(rows)
        weight = torch.where(deviation > 0, 1 / deviation, 0.0) if standardise else torch.ones_like(deviation)
        object.__setattr__(self, "data", rows[order.to(rows.device)])
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "standardise", standardise)
        object.__setattr__(self, "weight", weight)

    def __repr__(self) -> str:
        units = "standardised" if self.standardise else "as they are"
        return f"NearestNeighbours({self.neighbours} of {len(self.data)} rows, {units})"

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Put the data beside the samples."""
        check_shape("data", self.data.shape[1:], x)
        check_whole("data", self.data, x)
        return NeighbourFill(x, self.data.to(x), self.weight.to(x), self.neighbours)


@dataclass(frozen=True, eq=False)
class NeighbourFill:
    """Samples whose absent entries are those of the nearest rows."""

    x: Shaped[Tensor, "samples *entries"]
    rows: Shaped[Tensor, "rows *entries"]
    weight: Shaped[Tensor, " *scales"]
    draws: int

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Find the nearest rows of each sample for each coalition."""
        x, flat = self.x[samples], presence.flatten(2)
        out = x.new_empty(len(x), presence.shape[1], self.draws, *x.shape[1:])
        shared = _merge(flat[0]) if len(flat) == 1 else None
        for number, sample in enumerate(x):
            merged, group = shared or _merge(flat[number])
            apart = self._differences(sample, group, merged.shape[1])
            for some in blocks(len(merged), max(1, _NUMBERS_AT_A_TIME // len(self.rows))):
                # The last bits of a product depend on its shape; in single precision equal distances are equal.
                distances = (merged[some] @ apart).float()
                out[number, some] = self.rows[_nearest(distances, self.draws)]
        return torch.where(presence.unsqueeze(2), x[:, None, None], out)

    def _differences(self, sample: Tensor, group: Tensor, groups: int) -> Float[Tensor, "groups rows"]:
        """Sum up the squared differences of one sample from all rows, over each group of entries."""
        member = torch.nn.functional.one_hot(group, groups).double()
        parts = []
        for some in self.rows.split(max(1, _NUMBERS_IN_CACHE // sample.numel())):
            apart = (some - sample).mul_(self.weight).square_() if sample.is_floating_point() else some != sample
            parts.append(apart.flatten(1).double() @ member)
        return torch.cat(parts).T


def _merge(
    presence: Bool[Tensor, "coalitions flat"],
) -> tuple[Float[Tensor, "coalitions groups"], Int[Tensor, " flat"]]:
    """Merge entries that are present in the same coalitions, as a player's are: distances then take fewer products.

    They are found by sums of a random 62-bit number for each coalition, which are equal for equal entries, and for
    others with a probability of 2⁻⁶².
    """
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(2**62, (len(presence), 1), generator=generator).to(presence.device)
    _, group = (presence * codes).sum(0).unique(return_inverse=True)
    member = torch.zeros(int(group.max()) + 1, dtype=torch.int64, device=group.device)
    member[group] = torch.arange(len(group), device=group.device)
    return presence[:, member].double(), group


def _nearest(distances: Float[Tensor, "coalitions rows"], count: int) -> Int[Tensor, "coalitions nearest"]:
    """Find the rows at the least distances, nearest first; of equal ones those that come first."""
    values, found = distances.topk(count, dim=1, largest=False)
    furthest = values[:, -1:]
    tied = ((distances <= furthest).sum(1) > count).nonzero().flatten()
    if len(tied):
        nearer = distances[tied] < furthest[tied]
        level = distances[tied] == furthest[tied]
        places = count - nearer.sum(1, keepdim=True)
        found[tied] = (nearer | level & (level.cumsum(1) <= places)).nonzero()[:, 1].view(-1, count)
    found = found.sort(dim=1).values
    return found.gather(1, distances.gather(1, found).argsort(dim=1, stable=True))
