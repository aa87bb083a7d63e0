"""The nearest rows of the data as an absence: what occurs together with the present entries."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, field

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import ConditionalFill, Fill, Samples, check_shape, check_whole
from absentia.data import Table, blocks, check_rows, mean_and_deviation, seeded
from absentia.errors import wrong

# Distances from all rows are held for as many coalitions as take 64 MiB in double precision.
_NUMBERS_AT_A_TIME = 2**23
# Differences from the rows go through several steps, which find them in cache: 1 MiB.
_NUMBERS_IN_CACHE = 2**17


@dataclass(frozen=True, eq=False)
class NearestNeighbours:
    """The rows of the data that are nearest to the sample in its present entries.

    The distance is the sum of squared differences over the present entries; for tokens, the number of present places
    with another token. Rows at equal distances, as all are when nothing is present, come in a random order. A sample
    that is itself among the data is its own nearest row, and nothing of it is removed: leave it out of the data.

    Parameters
    ----------
    data : array of shape (rows, …)
        The rows to choose from.
    neighbours : int, default 10
        The number of nearest rows; a game averages over them.
    standardise : bool, default True
        Whether differences are in units of the entry's standard deviation (for images, the channel's).
    seed : int, default 0
        The seed of the order of rows at equal distances.

    Examples
    --------
    >>> data = torch.tensor([[0.0, 1.0], [1.0, 2.0], [5.0, 3.0]])
    >>> absence = NearestNeighbours(data, neighbours=2)
    >>> absence
    NearestNeighbours(2 of 3 rows, standardised)
    >>> absence.bind(torch.tensor([[4.0, 9.0]]))(slice(None), torch.tensor([[[True, False]]])).tolist()
    [[[[4.0, 3.0], [4.0, 2.0]]]]
    """

    data: InitVar[Table]
    _: KW_ONLY
    neighbours: int = 10
    standardise: bool = True
    seed: int = 0
    rows: Shaped[Tensor, "rows *entries"] = field(init=False)  # those at equal distances are taken in this order
    weight: Tensor = field(init=False)  # broadcasts over entries; 0 where an entry never changes

    def __post_init__(self, data: Table) -> None:
        rows = check_rows(data)
        if not 1 <= self.neighbours <= len(rows):
            raise wrong("neighbours", f"lie between 1 and the data's {len(rows)} rows", self.neighbours)
        order = torch.randperm(len(rows), generator=seeded(self.seed)).to(rows.device)
        _, deviation = mean_and_deviation(rows)
        weight = torch.where(deviation > 0, 1 / deviation, 0.0) if self.standardise else torch.ones_like(deviation)
        vars(self).update(rows=rows[order], weight=weight)

    def __repr__(self) -> str:
        units = "standardised" if self.standardise else "as they are"
        return f"NearestNeighbours({self.neighbours} of {len(self.rows)} rows, {units})"

    def bind(self, x: Samples) -> Fill:
        """Put the data beside the samples."""
        check_shape("data", self.rows.shape[1:], x)
        check_whole("data", self.rows, x)
        rows, weight = self.rows.to(x), self.weight.to(x)

        def nearest_rows(x: Tensor, presence: Tensor, ranks: list[int]) -> Tensor:
            flat = presence.flatten(2)
            out = x.new_empty(len(x), flat.shape[1], len(ranks), *x.shape[1:])
            shared = _merge(flat[0]) if len(flat) == 1 else None
            for number, sample in enumerate(x):
                merged, group = shared or _merge(flat[number])
                apart = _differences(rows, weight, sample, group, merged.shape[1])
                for some in blocks(len(merged), max(1, _NUMBERS_AT_A_TIME // len(rows))):
                    # The last bits of a product depend on its shape; in single precision equal distances are equal.
                    distances = (merged[some] @ apart).float()
                    out[number, some] = rows[_nearest(distances, max(ranks) + 1)[:, ranks]]
            return out

        return ConditionalFill(x, tuple(range(self.neighbours)), nearest_rows)


def _differences(
    rows: Tensor, weight: Tensor, sample: Tensor, group: Tensor, groups: int
) -> Float[Tensor, "groups rows"]:
    """Return the squared differences of one sample from all rows, summed over each group of entries."""
    member = torch.nn.functional.one_hot(group, groups).double()
    parts = []
    for some in rows.split(max(1, _NUMBERS_IN_CACHE // sample.numel())):
        apart = (some - sample).mul_(weight).square_() if sample.is_floating_point() else some != sample
        parts.append(apart.flatten(1).double() @ member)
    return torch.cat(parts).T


def _merge(
    presence: Bool[Tensor, "coalitions flat"],
) -> tuple[Float[Tensor, "coalitions groups"], Int[Tensor, " flat"]]:
    """Merge entries that are present in the same coalitions, as a player's are: distances then take fewer products.

    They are found by sums of a random 62-bit number for each coalition. These are equal for equal entries, and for
    others with a probability of 2⁻⁶².
    """
    codes = torch.randint(2**62, (len(presence), 1), generator=seeded(0)).to(presence.device)
    _, group = (presence * codes).sum(0).unique(return_inverse=True)
    member = torch.zeros(int(group.max()) + 1, dtype=torch.int64, device=group.device)
    member[group] = torch.arange(len(group), device=group.device)
    return presence[:, member].double(), group


def _nearest(distances: Float[Tensor, "coalitions rows"], count: int) -> Int[Tensor, "coalitions nearest"]:
    """Return the rows at the least distances, nearest first; among equal ones those that come first."""
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
