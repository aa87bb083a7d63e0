"""Paths through the values of a player, along which the loss is profiled.

A player with one entry is moved along its values: the bounds, values in equal steps between them, and quantiles of
the data. Entries that share a value move together. A player with several entries is moved along quantile levels, the
same level for all its entries. A category takes its codes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.data import QUANTILES
from absentia.learning.space import HELD, Baselines, Space
from absentia.learning.value_profiles import ProfilePath, SkipReason
from absentia.players import Players

# Values in equal steps, the bounds among them, and more of them if the quantiles of the data are few.
_EVEN_VALUES = 5
_EVEN_VALUES_ALONE = 9

# Quantiles beside them.
_LEVELS_BETWEEN = (0.05, 0.25, 0.5, 0.75, 0.95)

# Values closer to each other than this share of the range are one.
_CLOSE = 0.01

# The maximum number of points of a path, such as codes of a category.
MOST_POINTS = 12


@dataclass(frozen=True, eq=False)
class Path:
    """The values that a player takes on its path, of its own entries."""

    kind: ProfilePath
    points: Float[Tensor, " points"]
    entries: Int[Tensor, " own"]
    values: Float[Tensor, "points own"]
    learned: Float[Tensor, " owners"]  # the learned value or code of each owner; NaN along levels
    reason: SkipReason | None = None

    def at(self, points: Float[Tensor, " points"]) -> Path:
        """Return a path of values with other points."""
        values = points[:, None].expand(-1, len(self.entries))
        return replace(self, points=points, values=values)

    def baselines(self, present: Baselines) -> Float[Tensor, "points owners entries"]:
        """Return the present baselines with the values of each point."""
        moved = present.repeat(len(self.points), 1, 1)
        moved[:, :, self.entries] = self.values[:, None].expand(-1, len(present), -1)
        return moved


def player_coordinates(space: Space, players: Players, player: int) -> list[int]:
    """Return the coordinates that set entries of a player and are free to change."""
    owned = space.coordinate[players.labels.flatten() == player].unique().tolist()
    return [coordinate for coordinate in owned if coordinate != HELD and _is_free(space, coordinate)]


def _is_free(space: Space, coordinate: int) -> bool:
    """Return whether a coordinate has more than one value."""
    parameters = len(space.low)
    if coordinate < parameters:
        return bool(space.high[coordinate] > space.low[coordinate])
    return len(space.choices[coordinate - parameters]) > 1


def player_path(space: Space, players: Players, player: int, present: Baselines) -> Path:
    """Return the path of a player through its values."""
    coordinates = player_coordinates(space, players, player)
    parameters = [coordinate for coordinate in coordinates if coordinate < len(space.low)]
    if not coordinates:
        return _no_path(present, SkipReason.FIXED)
    if len(coordinates) == 1 and parameters:
        return _path_of_parameter(space, coordinates[0], present)
    if len(coordinates) == 1:
        return _path_of_choice(space, coordinates[0], present)
    if parameters:
        return _path_of_levels(space, parameters, present)
    return _no_path(present, SkipReason.SEVERAL_CATEGORIES)


def _no_path(present: Baselines, reason: SkipReason) -> Path:
    """Return a path without points."""
    nothing = torch.zeros(0).double()
    unknown = torch.full((len(present),), torch.nan).double()
    return Path(ProfilePath.NONE, nothing, nothing.long(), torch.zeros(0, 0).double(), unknown, reason)


def _path_of_parameter(space: Space, parameter: int, present: Baselines) -> Path:
    """Return the path along the values of a parameter."""
    entries = space.entries(parameter)
    low = space.low[parameter]
    high = space.high[parameter]
    quantiles = space.quantiles(parameter)[torch.isin(torch.tensor(QUANTILES), torch.tensor(_LEVELS_BETWEEN))]
    points = _apart(_even(low, high, _EVEN_VALUES), quantiles, float(high - low))
    if len(points) < _EVEN_VALUES_ALONE:
        points = _apart(_even(low, high, _EVEN_VALUES_ALONE), quantiles, float(high - low))
    values = points[:, None].expand(-1, len(entries))
    return Path(ProfilePath.VALUES, points, entries, values, present[:, entries[0]].double())


def _even(low: Tensor, high: Tensor, count: int) -> Float[Tensor, " values"]:
    """Return values in equal steps from the lower to the upper bound."""
    return low + torch.linspace(0, 1, count).double() * (high - low)


def _apart(even: Tensor, quantiles: Tensor, width: float) -> Float[Tensor, " points"]:
    """Return all values, in ascending order, without quantiles that are close to another value."""
    kept = even.tolist()
    for quantile in quantiles.tolist():
        if min(abs(quantile - value) for value in kept) > _CLOSE * width:
            kept.append(quantile)
    return torch.tensor(sorted(kept)).double()


def _path_of_choice(space: Space, coordinate: int, present: Baselines) -> Path:
    """Return the path along the rows of a category: its codes if it has one entry, otherwise their numbers."""
    entries = space.entries(coordinate)
    rows = space.choices[coordinate - len(space.low)]
    codes = rows[:, 0] if len(entries) == 1 else torch.arange(len(rows)).double()
    own = present[:, entries].double()
    matches = (own[:, None] == rows[None]).all(2)
    learned = torch.where(matches.any(1), codes[matches.int().argmax(1)], torch.nan)
    tried = torch.linspace(0, len(rows) - 1, min(len(rows), MOST_POINTS)).round().long()
    return Path(ProfilePath.CODES, codes[tried], entries, rows[tried], learned)


def _path_of_levels(space: Space, parameters: list[int], present: Baselines) -> Path:
    """Return the path along quantile levels of all parameters of a player."""
    levels = torch.tensor(QUANTILES).double()
    entries = []
    values = []
    for parameter in parameters:
        own = space.entries(parameter)
        entries.append(own)
        values.append(space.quantiles(parameter)[:, None].expand(-1, len(own)))
    unknown = torch.full((len(present),), torch.nan).double()
    return Path(ProfilePath.LEVELS, levels, torch.cat(entries), torch.cat(values, dim=1), unknown)
