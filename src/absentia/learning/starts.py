"""The baselines from which a search starts, and the usual baselines with which it is compared."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.data import Array, known_mean, known_median, most_frequent
from absentia.errors import wrong
from absentia.learning.space import Baselines, Rows, Space, spread_over_entries

Start: TypeAlias = Literal["best", "zero", "mean", "median"] | float | Array
NamedBaselines: TypeAlias = Mapping[str, Baselines]

# The usual baseline from which only the paper's losses start.
MIDDLE = "the middle"

# How far a start may lie outside of the bounds: as a share of their range, and of the value itself.
_SLACK_OF_RANGE = 1e-6
_SLACK_OF_VALUE = 1e-9


def named_starts(start: object, data: Rows, space: Space, owners: int) -> dict[str, Baselines]:
    """Return the baselines to start from, by name."""
    several = start if isinstance(start, list | tuple) else [start]
    if not several:
        raise wrong("start", "hold at least one start", "none")
    starts = {}
    for number, single in enumerate(several):
        baseline = start_baseline(single, data, space)
        starts[_start_name(single, number)] = baseline.expand(owners, -1).clone()
    return starts


def _start_name(start: object, number: int) -> str:
    """Name a start: by its word or number, or by its place among the starts."""
    if isinstance(start, int | float):
        return f"{start:g}"
    if isinstance(start, str):
        return start
    return f"given {number}"


def usual_baselines(data: Rows, space: Space, held: Baselines) -> dict[str, Baselines]:
    """Return the usual baselines within the bounds; ``held`` provides the entries that are held or chosen."""
    names = ["mean", "median"]
    zero_is_allowed = bool(((space.low <= 0) & (space.high >= 0)).all())
    if zero_is_allowed:
        names.append("zero")
    points = {name: space.point(start_baseline(name, data, space)[None]) for name in names}
    points[MIDDLE] = torch.full((1, len(space.low)), 0.5).double()
    return {name: space.place(point.expand(len(held), -1), held) for name, point in points.items()}


def start_baseline(start: object, data: Rows, space: Space) -> Float[Tensor, " entries"]:
    """Return the baseline of a start, within the bounds; categories start at the most frequent one."""
    values = _start_values(start, data)
    for number in range(len(space.low), len(space)):
        entries = space.entries(number)
        values[entries] = most_frequent(data[:, entries]).double()
    free = space.free.nonzero().flatten()
    low = space.low[space.coordinate[free]]
    high = space.high[space.coordinate[free]]
    if not isinstance(start, str) or start == "zero":  # the mean and the median are moved into the bounds
        _check_within_bounds(values, free, low, high)
    values[free] = values[free].clamp(low, high)
    # Entries that share a value start at their mean.
    return space.place(space.point(values[None]), values[None])[0]


def _start_values(start: object, data: Rows) -> Float[Tensor, " entries"]:
    """Return the values that a word, a number or an array stands for."""
    if not isinstance(start, str):
        return spread_over_entries("start", start, data.shape[1]).clone()
    if start == "mean":
        return known_mean(data, torch.float64)
    if start == "median":
        return known_median(data).double()
    if start == "zero":
        return torch.zeros(data.shape[1]).double()
    raise wrong("start", "be 'zero', 'mean', 'median', a number, a tensor, or a list of these", repr(start))


def _check_within_bounds(values: Tensor, free: Int[Tensor, " free"], low: Tensor, high: Tensor) -> None:
    """Raise an error if a free value lies outside of its bounds."""
    slack = _SLACK_OF_RANGE * (high - low) + _SLACK_OF_VALUE * values[free].abs()
    outside = (values[free] < low - slack) | (values[free] > high + slack)
    if outside.any():
        where = int(outside.int().argmax())
        got = f"{values[free[where]]:g} in entry {int(free[where])}"
        raise wrong("start", f"lie within the bounds, {low[where]:g} to {high[where]:g}", got)
