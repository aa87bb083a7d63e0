"""The values that a baseline may take: starts, bounds, entries that share a value, entries held, categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.arrays import Array, as_tensor
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players

Start: TypeAlias = Literal["zero", "mean", "median"] | float | Array
Bounds: TypeAlias = Literal["range"] | float | tuple[float | Tensor, float | Tensor]
HELD = -1


@dataclass(frozen=True, eq=False)
class Choice:
    """Entries that take one of several rows of values together: a category, or its one-hot code."""

    entries: Int[Tensor, " entries"]
    rows: Float[Tensor, "choices entries"]


@dataclass(frozen=True, eq=False)
class Space:
    """Baselines as points: a number in [0, 1] for each free parameter, and a row for each choice.

    ``parameter`` maps each entry to the parameter that sets it, or to −1 where it is held or chosen.
    """

    low: Float[Tensor, " parameters"]
    high: Float[Tensor, " parameters"]
    parameter: Int[Tensor, " entries"]
    choices: tuple[Choice, ...]
    quantiles: Float[Tensor, "levels parameters"]  # of the data, within the bounds: values worth a try

    def point(self, baseline: Float[Tensor, "rows entries"]) -> Float[Tensor, "rows parameters"]:
        """Read a baseline's parameters, in units of their range."""
        mean = self.gather(baseline) / self.counts
        width = (self.high - self.low).clamp_min(1e-300)
        return ((mean - self.low) / width).clamp(0, 1)

    def place(
        self, point: Float[Tensor, "rows parameters"], held: Float[Tensor, "rows entries"]
    ) -> Float[Tensor, "rows entries"]:
        """Write parameters into a baseline; held and chosen entries stay."""
        values = self.low + point * (self.high - self.low)
        values = torch.cat([values, values.new_zeros(len(values), 1)], dim=1)
        return torch.where(self.parameter == HELD, held, values[:, self.parameter])

    def gather(self, entries: Float[Tensor, "rows entries"]) -> Float[Tensor, "rows parameters"]:
        """Add up what belongs to each parameter, such as a gradient."""
        free = (self.parameter != HELD).nonzero().flatten()
        sums = entries.new_zeros(len(entries), len(self.low))
        return sums.index_add(1, self.parameter[free], entries[:, free])

    @property
    def counts(self) -> Float[Tensor, " parameters"]:
        """How many entries each parameter sets."""
        return torch.bincount(self.parameter[self.parameter != HELD], minlength=len(self.low)).double()


def make_space(
    data: Float[Tensor, "rows entries"],
    players: Players,
    bounds: object,
    tie: Array | None,
    held: Array | None,
    categorical: Sequence[int | Sequence[int]],
) -> Space:
    """Lay the space out; entries that no player owns are always present, and so held."""
    low, high = entry_bounds(data, bounds)
    group = torch.arange(data.shape[1]) if tie is None else _flat(tie, players, "tie").long()
    fixed = torch.zeros(data.shape[1], dtype=torch.bool) if held is None else _flat(held, players, "held").bool()
    fixed = fixed | (players.labels.flatten() == ALWAYS_PRESENT)
    choices = []
    for item in categorical:
        entries = torch.tensor([item] if isinstance(item, int) else list(item))
        if not (int(entries.min()) >= 0 and int(entries.max()) < data.shape[1]):
            raise wrong("categorical", f"name columns from 0 to {data.shape[1] - 1}", item)
        if not fixed[entries].any():
            choices.append(Choice(entries, torch.unique(data[:, entries], dim=0)))
        fixed[entries] = True
    _, numbers = torch.unique(group[~fixed], return_inverse=True)
    parameter = torch.full_like(group, HELD)
    parameter[~fixed] = numbers
    count = int(numbers.max()) + 1 if len(numbers) else 0
    lower = torch.full((count,), -torch.inf).double().scatter_reduce(0, numbers, low[~fixed], "amax")
    upper = torch.full((count,), torch.inf).double().scatter_reduce(0, numbers, high[~fixed], "amin")
    quantiles = _data_quantiles(data, parameter, count)
    return Space(lower, torch.maximum(lower, upper), parameter, tuple(choices), quantiles.clamp(lower, upper))


def entry_bounds(data: Tensor, bounds: object) -> tuple[Tensor, Tensor]:
    """Give the box: the data's range, mean ± k standard deviations, or as told."""
    if bounds == "range":
        return data.amin(0), data.amax(0)
    if isinstance(bounds, int | float) and not isinstance(bounds, bool):
        if bounds <= 0:
            raise wrong("bounds", "be a positive number of standard deviations", bounds)
        mean, spread = data.mean(0), bounds * data.std(0, correction=0)
        return mean - spread, mean + spread
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise wrong("bounds", "be 'range', a number of standard deviations, or a pair (low, high)", repr(bounds))
    low, high = (_entries("bounds", end, data.shape[1]) for end in bounds)
    if (low > high).any():
        raise wrong(
            "bounds", "have low ≤ high in every entry", f"low > high in entry {int((low > high).int().argmax())}"
        )
    outside = ((data < low) | (data > high)).all(0)
    if outside.any():
        entry = int(outside.int().argmax())
        got = f"data from {data[:, entry].min():g} to {data[:, entry].max():g} in entry {entry}"
        raise wrong("bounds", f"overlap the data, here {low[entry]:g} to {high[entry]:g}", got)
    return low, high


def start_baseline(start: object, data: Tensor, space: Space) -> Float[Tensor, " entries"]:
    """Turn a start into a baseline within the bounds; categories start at the most frequent one."""
    if isinstance(start, str):
        values = {"zero": torch.zeros_like(data[0]), "mean": data.mean(0), "median": data.median(0).values}.get(start)
        if values is None:
            raise wrong("start", "be 'zero', 'mean', 'median', a number, a tensor, or a list of these", repr(start))
    else:
        values = _entries("start", start, data.shape[1])
    values = values.clone()
    for choice in space.choices:
        rows, counts = torch.unique(data[:, choice.entries], dim=0, return_counts=True)
        values[choice.entries] = rows[counts.argmax()]
    free = (space.parameter != HELD).nonzero().flatten()
    low, high = space.low[space.parameter[free]], space.high[space.parameter[free]]
    slack = 1e-6 * (high - low) + 1e-9 * values[free].abs()
    outside = (values[free] < low - slack) | (values[free] > high + slack)
    if outside.any() and (not isinstance(start, str) or start == "zero"):
        where = int(outside.int().argmax())
        got = f"{values[free[where]]:g} in entry {int(free[where])}"
        raise wrong("start", f"lie within the bounds, {low[where]:g} to {high[where]:g}", got)
    values[free] = values[free].clamp(low, high)
    # Entries that share a value start at their mean.
    return space.place(space.point(values[None]), values[None])[0]


def _data_quantiles(data: Tensor, parameter: Tensor, count: int) -> Tensor:
    """Take quantiles of the data for each parameter, over all entries that share it."""
    levels = torch.tensor([0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]).double()
    quantiles = torch.empty(len(levels), count).double()
    for number in range(count):
        values = data[:, parameter == number].flatten()
        # torch.quantile takes 16 million numbers at most.
        quantiles[:, number] = torch.quantile(values[:: 1 + len(values) // 10**6], levels)
    return quantiles


def _entries(name: str, value: object, count: int) -> Float[Tensor, " entries"]:
    """Spread one number, or one for each entry, over the entries."""
    values = as_tensor(name, value).double().flatten()
    if len(values) not in (1, count):
        raise wrong(name, f"hold one number, or one for each of the {count} entries", f"{len(values)}")
    return values.expand(count)


def _flat(labels: Array, players: Players, name: str) -> Tensor:
    labels = as_tensor(name, labels)
    if tuple(labels.shape) != players.shape:
        raise wrong(name, f"have the shape of one sample, {players.shape}", f"shape {tuple(labels.shape)}")
    return labels.flatten()
