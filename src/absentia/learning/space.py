"""The values that a baseline may take: bounds, entries that share a value, held entries and categories."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.data import (
    QUANTILES,
    Array,
    as_tensor,
    known_deviation,
    known_least,
    known_mean,
    known_most,
    known_quantiles,
)
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players

Bounds: TypeAlias = Literal["range"] | float | tuple[float | Tensor, float | Tensor]
Rows: TypeAlias = Float[Tensor, "rows entries"]
Points: TypeAlias = Float[Tensor, "rows parameters"]

# One baseline for each owner. An owner is all samples, the samples of a class, or a single sample.
Baselines: TypeAlias = Float[Tensor, "owners entries"]

# One number for each owner.
Owners: TypeAlias = Float[Tensor, " owners"]

# The coordinate of entries that keep the value of the start.
HELD = -1

# The maximum number of values for quantiles: torch.quantile accepts at most 16 million.
_MOST_FOR_QUANTILES = 10**6

# The least range of a parameter that is divided by.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Space:
    """Baselines as coordinates: first parameters, which are numbers in [0, 1] within bounds, then choices.

    A choice sets the entries of a category, or of its one-hot code, to one of several rows of values.
    """

    low: Float[Tensor, " parameters"]
    high: Float[Tensor, " parameters"]
    coordinate: Int[Tensor, " entries"]  # the coordinate that sets each entry, or −1 for held entries
    choices: tuple[Tensor, ...]  # the rows of each choice, of shape (rows, entries of the choice)
    data: Rows

    def __len__(self) -> int:
        return len(self.low) + len(self.choices)

    @property
    def free(self) -> Bool[Tensor, " entries"]:
        """Which entries are set by a parameter."""
        return (self.coordinate != HELD) & (self.coordinate < len(self.low))

    def entries(self, coordinate: int) -> Int[Tensor, " entries"]:
        """Return the entries that a coordinate sets."""
        return (self.coordinate == coordinate).nonzero().flatten()

    def quantiles(self, parameter: int) -> Float[Tensor, " levels"]:
        """Return quantiles of the data of all entries that share a parameter, within the bounds."""
        values = self.data[:, self.coordinate == parameter].flatten().double()
        stride = 1 + len(values) // _MOST_FOR_QUANTILES
        quantiles = known_quantiles(values[::stride], torch.tensor(QUANTILES).double())
        return quantiles.clamp(self.low[parameter], self.high[parameter])

    def gather(self, baseline: Rows) -> Points:
        """Sum the entries of each parameter, such as those of a gradient."""
        sums = baseline.new_zeros(len(baseline), len(self.low))
        return sums.index_add(1, self.coordinate[self.free], baseline[:, self.free])

    def point(self, baseline: Rows) -> Points:
        """Return a baseline's parameters; entries that share one are averaged."""
        entries_per_parameter = self.gather(torch.ones_like(baseline[:1]))
        mean = self.gather(baseline) / entries_per_parameter
        return ((mean - self.low) / (self.high - self.low).clamp_min(_TINY)).clamp(0, 1)

    def place(self, point: Points, held: Rows) -> Rows:
        """Return the baseline with these parameters; ``held`` provides the entries that are held or chosen."""
        values = self.low + point * (self.high - self.low)
        baseline = held.clone()
        baseline[:, self.free] = values[:, self.coordinate[self.free]]
        return baseline


def make_space(data: Rows, players: Players, bounds: object, tie: Array | None, held: Array | None) -> Space:
    """Make the space of baselines; entries that no player owns are always present and therefore held."""
    fixed = _fixed_entries(players, held)
    _check_known_values(data[:, ~fixed])
    low, high = entry_bounds(data, bounds)
    categories = _free_categories(players, fixed)
    for group in players.categorical:
        fixed[torch.tensor(group)] = True

    if tie is None:
        tie_labels = torch.arange(data.shape[1])
    else:
        tie_labels = _flat("tie", tie, players).long()
    ties, parameters = torch.unique(tie_labels[~fixed], return_inverse=True)

    coordinate = torch.full_like(tie_labels, HELD)
    coordinate[~fixed] = parameters
    for number, entries in enumerate(categories):
        coordinate[entries] = len(ties) + number

    # Entries that share a value are bound by all of their ranges.
    lower = torch.full(ties.shape, -torch.inf).double().scatter_reduce(0, parameters, low[~fixed], "amax")
    upper = torch.full(ties.shape, torch.inf).double().scatter_reduce(0, parameters, high[~fixed], "amin")
    choices = tuple(torch.unique(data[:, entries], dim=0).double() for entries in categories)
    return Space(lower, torch.maximum(lower, upper), coordinate, choices, data)


def _fixed_entries(players: Players, held: Array | None) -> Bool[Tensor, " entries"]:
    """Return which entries are always present or held by the user."""
    always_present = players.labels.flatten() == ALWAYS_PRESENT
    if held is None:
        return always_present
    return always_present | _flat("held", held, players).bool()


def _free_categories(players: Players, fixed: Bool[Tensor, " entries"]) -> list[Tensor]:
    """Return the entries of each category of which none is fixed, nor part of a category before it."""
    taken = fixed.clone()
    categories: list[Tensor] = []
    for group in players.categorical:
        entries = torch.tensor(group)
        if not taken[entries].any():
            categories.append(entries)
        taken[entries] = True
    return categories


def _check_known_values(data: Rows) -> None:
    """Raise an error for an entry without a known value, which has no range to search in."""
    unknown = data.isnan().all(0)
    if unknown.any():
        then = "Leave out the column, or make it always present with Players.groups."
        got = f"none of entry {int(unknown.int().argmax())}"
        raise wrong("x", "have a known value of each entry to learn from", got, then)


def entry_bounds(data: Rows, bounds: object) -> tuple[Tensor, Tensor]:
    """Return the bounds of each entry: the data's range, mean ± k standard deviations, or the user's pair."""
    if isinstance(bounds, str) and bounds == "range":
        return known_least(data)[0].double(), known_most(data)[0].double()
    if isinstance(bounds, int | float) and not isinstance(bounds, bool):
        return _bounds_by_deviation(data, bounds)
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise wrong("bounds", "be 'range', a number of standard deviations, or a pair (low, high)", repr(bounds))
    return _bounds_by_pair(data, bounds)


def _bounds_by_deviation(data: Rows, deviations: float) -> tuple[Tensor, Tensor]:
    """Return mean ± k standard deviations of each entry."""
    if deviations <= 0:
        raise wrong("bounds", "be a positive number of standard deviations", deviations)
    mean = known_mean(data, torch.float64)
    distance = deviations * known_deviation(data)
    return mean - distance, mean + distance


def _bounds_by_pair(data: Rows, bounds: tuple[object, object]) -> tuple[Tensor, Tensor]:
    """Return the user's bounds of each entry, which must overlap the data."""
    low = spread_over_entries("bounds", bounds[0], data.shape[1])
    high = spread_over_entries("bounds", bounds[1], data.shape[1])
    reversed_ends = low > high
    if reversed_ends.any():
        entry = int(reversed_ends.int().argmax())
        raise wrong("bounds", "have low ≤ high in every entry", f"low > high in entry {entry}")
    outside = ~((data >= low) & (data <= high)).any(0)
    if outside.any():
        entry = int(outside.int().argmax())
        least = float(known_least(data)[0, entry])
        most = float(known_most(data)[0, entry])
        got = f"data from {least:g} to {most:g} in entry {entry}"
        raise wrong("bounds", f"overlap the data, here {low[entry]:g} to {high[entry]:g}", got)
    return low, high


def describe_bounds(bounds: object) -> str:
    """Describe the bounds within which values are learned."""
    if isinstance(bounds, str):
        return bounds
    if not isinstance(bounds, tuple):
        return f"mean ± {bounds:g} sd"
    if all(isinstance(end, int | float) for end in bounds):
        return f"{bounds[0]:g} to {bounds[1]:g}"
    return "given"


def spread_over_entries(name: str, value: object, count: int) -> Float[Tensor, " entries"]:
    """Spread one number, or one for each entry, over the entries."""
    values = as_tensor(name, value).double().flatten()
    if len(values) not in (1, count):
        raise wrong(name, f"hold one number, or one for each of the {count} entries", f"{len(values)}")
    return values.expand(count)


def _flat(name: str, labels: Array, players: Players) -> Tensor:
    """Flatten labels of the shape of one sample."""
    labels = as_tensor(name, labels)
    if tuple(labels.shape) != players.shape:
        raise wrong(name, f"have the shape of one sample, {players.shape}", f"shape {tuple(labels.shape)}")
    return labels.flatten()
