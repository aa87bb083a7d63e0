"""An absence that takes absent entries from the rows of the data that are nearest in the present entries."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, field

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import ConditionalFill, Fill, Samples, check_shape, check_whole
from absentia.arguments import checked
from absentia.data import Table, blocks, check_number, mean_and_deviation, read_rows, seeded

# Distances from all rows are held for as many coalitions as take 64 MiB.
_NUMBERS_AT_A_TIME = 2**23
# Differences from the rows are processed in several steps. Blocks of 1 MiB stay in the cache between them.
_NUMBERS_IN_CACHE = 2**17


@checked
@dataclass(frozen=True, eq=False)
class NearestNeighbours:
    """The rows of the data that are nearest to the sample in its present entries.

    The distance is the sum of squared differences over the present entries. For tokens, it is the number of present
    positions with a different token. Rows at equal distances are taken in a random order, and so are all rows when
    nothing is present. A missing value is one standard deviation away from known values, and 0 from missing ones. A
    sample that is part of the data is its own nearest row, so nothing of it is removed. Leave such samples out of the
    data.

    Parameters
    ----------
    data : array of shape (rows, …)
    neighbours : int, default 10
        The number of nearest rows, over which a game averages.
    standardise : bool, default True
        Whether to divide differences by the standard deviation of each entry, or of each channel for images.
    seed : int, default 0

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
    gap: Tensor = field(init=False)  # how far a missing value is from a known one, after weighting

    def __post_init__(self, data: Table) -> None:
        rows = read_rows(data)
        check_number("neighbours", self.neighbours, 1, len(rows))
        order = torch.randperm(len(rows), generator=seeded(self.seed)).to(rows.device)
        _, deviation = mean_and_deviation(rows)
        if self.standardise:
            weight = torch.where(deviation > 0, 1 / deviation, 0.0)
        else:
            weight = torch.ones_like(deviation)
        # A frozen dataclass does not let its own attributes be assigned.
        object.__setattr__(self, "rows", rows[order])
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "gap", torch.where(deviation > 0, weight * deviation, 1.0))

    def __repr__(self) -> str:
        units = "standardised" if self.standardise else "as they are"
        return f"NearestNeighbours({self.neighbours} of {len(self.rows)} rows, {units})"

    def bind(self, x: Samples) -> Fill:
        """Convert the data to the dtype and device of the samples."""
        check_shape("data", self.rows.shape[1:], x)
        check_whole("data", self.rows, x)
        search = _Search(self.rows.to(x), self.weight.to(x), self.gap.to(x))
        return ConditionalFill(x, tuple(range(self.neighbours)), search.nearest_rows)


@dataclass(frozen=True, eq=False)
class _Search:
    """Rows to search among, in the type and on the device of the samples."""

    rows: Shaped[Tensor, "rows *entries"]
    weight: Tensor
    gap: Tensor

    def nearest_rows(self, x: Tensor, presence: Tensor, ranks: list[int]) -> Tensor:
        """Return the rows of these ranks by distance, for each coalition of each sample."""
        present = presence.flatten(2)
        nearest = x.new_empty(len(x), present.shape[1], len(ranks), *x.shape[1:])
        # Entries that are present in the same coalitions, such as those of one player, form a group to save products.
        groups = [coalitions.unique(dim=1, return_inverse=True) for coalitions in present]
        for number, sample in enumerate(x):
            shared = len(groups) == 1
            coalitions, group_of_entry = groups[0] if shared else groups[number]
            differences = self._differences(sample, group_of_entry)
            for block in blocks(len(coalitions), max(1, _NUMBERS_AT_A_TIME // len(self.rows))):
                numbers = _nearest(coalitions[block], differences, max(ranks) + 1)
                nearest[number, block] = self.rows[numbers[:, ranks]]
        return nearest

    def _differences(self, sample: Tensor, group: Tensor) -> Float[Tensor, "groups rows"]:
        """Return the squared differences of one sample from all rows, summed over each group of entries."""
        member = torch.nn.functional.one_hot(group).double()
        parts = []
        for rows in self.rows.split(max(1, _NUMBERS_IN_CACHE // sample.numel())):
            apart = self._apart(rows, sample)
            squares = apart.flatten(1).double().square_()  # in double precision, because squares may be large
            parts.append(squares @ member)
        return torch.cat(parts).T

    def _apart(self, rows: Tensor, sample: Tensor) -> Tensor:
        """Return the weighted differences of one sample from rows."""
        if not sample.is_floating_point():
            return rows != sample
        apart = (rows - sample).mul_(self.weight)
        undefined = apart.isnan()
        if bool(undefined.any()):
            both_missing = rows.isnan() & sample.isnan()
            apart = torch.where(undefined, self.gap, apart)
            apart = torch.where(both_missing, 0.0, apart)
        return apart


def _nearest(
    coalitions: Bool[Tensor, "coalitions groups"], differences: Float[Tensor, "groups rows"], count: int
) -> Int[Tensor, "coalitions count"]:
    """Return the numbers of the nearest rows, nearest first; ties go to the first rows."""
    # The last bits of a product depend on its shape. In single precision, equal distances compare equal.
    distances = (coalitions.double() @ differences).float()
    # The bits of positive floats sort like the floats, so distance and row number can form one key.
    order = torch.arange(differences.shape[1], device=differences.device)
    keys = (distances.view(torch.int32).long() << 32) + order
    return keys.topk(count, dim=1, largest=False).indices
