"""The values that a baseline may take: starts, bounds, entries that share a value, entries held, categories."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.data import QUANTILES, Array, as_tensor, most_frequent
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players

Start: TypeAlias = Literal["best", "zero", "mean", "median"] | float | Array
Bounds: TypeAlias = Literal["range"] | float | tuple[float | Tensor, float | Tensor]
Rows: TypeAlias = Float[Tensor, "rows entries"]
Points: TypeAlias = Float[Tensor, "rows parameters"]
HELD = -1
_MOST_FOR_QUANTILES = 10**6  # numbers; torch.quantile takes 16 million at most


@dataclass(frozen=True, eq=False)
class Space:
    """Baselines as coordinates: parameters, which are numbers in [0, 1] within bounds, and then choices.

    A choice sets the entries of a category, or of its one-hot code, to one of several rows of values.
    """

    low: Float[Tensor, " parameters"]
    high: Float[Tensor, " parameters"]
    coordinate: Int[Tensor, " entries"]  # the coordinate that sets each entry, or −1 for entries that are held
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
        found = torch.quantile(values[:: 1 + len(values) // _MOST_FOR_QUANTILES], torch.tensor(QUANTILES).double())
        return found.clamp(self.low[parameter], self.high[parameter])

    def gather(self, baseline: Rows) -> Points:
        """Sum up the entries of each parameter, such as those of a gradient."""
        sums = baseline.new_zeros(len(baseline), len(self.low))
        return sums.index_add(1, self.coordinate[self.free], baseline[:, self.free])

    def point(self, baseline: Rows) -> Points:
        """Return a baseline's parameters; entries that share one are averaged."""
        mean = self.gather(baseline) / self.gather(torch.ones_like(baseline[:1]))
        return ((mean - self.low) / (self.high - self.low).clamp_min(1e-300)).clamp(0, 1)

    def place(self, point: Points, held: Rows) -> Rows:
        """Return the baseline with these parameters; entries that are held or chosen are those of ``held``."""
        baseline = held.clone()
        baseline[:, self.free] = (self.low + point * (self.high - self.low))[:, self.coordinate[self.free]]
        return baseline


def make_space(data: Rows, players: Players, bounds: object, tie: Array | None, held: Array | None) -> Space:
    """Make the space; entries that no player owns are always present, and so held; players know the categories."""
    low, high = entry_bounds(data, bounds)
    owner = torch.arange(data.shape[1]) if tie is None else _flat("tie", tie, players).long()
    fixed = players.labels.flatten() == ALWAYS_PRESENT
    if held is not None:
        fixed |= _flat("held", held, players).bool()
    chosen: list[Tensor] = []
    for group in players.categorical:
        entries = torch.tensor(group)
        if not fixed[entries].any():
            chosen.append(entries)
        fixed[entries] = True
    ties, numbers = torch.unique(owner[~fixed], return_inverse=True)
    coordinate = torch.full_like(owner, HELD)
    coordinate[~fixed] = numbers
    lower = torch.full(ties.shape, -torch.inf).double().scatter_reduce(0, numbers, low[~fixed], "amax")
    upper = torch.full(ties.shape, torch.inf).double().scatter_reduce(0, numbers, high[~fixed], "amin")
    for number, entries in enumerate(chosen):
        coordinate[entries] = len(ties) + number
    choices = tuple(torch.unique(data[:, entries], dim=0).double() for entries in chosen)
    return Space(lower, torch.maximum(lower, upper), coordinate, choices, data)


def entry_bounds(data: Rows, bounds: object) -> tuple[Tensor, Tensor]:
    """Return the bounds of each entry: the data's range, mean ± k standard deviations, or a given pair."""
    if isinstance(bounds, str) and bounds == "range":
        return data.amin(0).double(), data.amax(0).double()
    if isinstance(bounds, int | float) and not isinstance(bounds, bool):
        if bounds <= 0:
            raise wrong("bounds", "be a positive number of standard deviations", bounds)
        mean, spread = data.mean(0, dtype=torch.float64), bounds * data.double().std(0, correction=0)
        return mean - spread, mean + spread
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise wrong("bounds", "be 'range', a number of standard deviations, or a pair (low, high)", repr(bounds))
    low, high = (_spread("bounds", end, data.shape[1]) for end in bounds)
    if (low > high).any():
        got = f"low > high in entry {int((low > high).int().argmax())}"
        raise wrong("bounds", "have low ≤ high in every entry", got)
    outside = ((data < low) | (data > high)).all(0)
    if outside.any():
        entry = int(outside.int().argmax())
        got = f"data from {data[:, entry].min():g} to {data[:, entry].max():g} in entry {entry}"
        raise wrong("bounds", f"overlap the data, here {low[entry]:g} to {high[entry]:g}", got)
    return low, high


def start_baseline(start: object, data: Rows, space: Space) -> Float[Tensor, " entries"]:
    """Return the baseline of a start, within the bounds; categories start at the most frequent one."""
    if isinstance(start, str) and start == "mean":
        values = data.mean(0, dtype=torch.float64)
    elif isinstance(start, str) and start == "median":
        values = data.median(0).values.double()
    elif isinstance(start, str) and start != "zero":
        raise wrong("start", "be 'zero', 'mean', 'median', a number, a tensor, or a list of these", repr(start))
    else:
        values = _spread("start", 0.0 if isinstance(start, str) else start, data.shape[1]).clone()
    for number in range(len(space.low), len(space)):
        values[space.entries(number)] = most_frequent(data[:, space.entries(number)]).double()
    free = space.free.nonzero().flatten()
    low, high = space.low[space.coordinate[free]], space.high[space.coordinate[free]]
    slack = 1e-6 * (high - low) + 1e-9 * values[free].abs()
    outside = (values[free] < low - slack) | (values[free] > high + slack)
    if outside.any() and (not isinstance(start, str) or start == "zero"):
        where = int(outside.int().argmax())
        got = f"{values[free[where]]:g} in entry {int(free[where])}"
        raise wrong("start", f"lie within the bounds, {low[where]:g} to {high[where]:g}", got)
    values[free] = values[free].clamp(low, high)
    return space.place(space.point(values[None]), values[None])[0]  # entries that share a value start at their mean


def _spread(name: str, value: object, count: int) -> Float[Tensor, " entries"]:
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
