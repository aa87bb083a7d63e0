"""Closer points at minima of a profile that lie away from the learned value.

A minimum between points may be as low as the learned value although no point shows it. Its place is guessed from the
points around it: by a parabola, for smooth losses, and by the crossing of two lines, for sums of absolute values.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

# The maximum number of minima of a profile that are looked at more closely: the lowest.
_MOST_MINIMA = 2

# Guesses closer to a point than this share of the range of the points are left out.
_CLOSE = 1e-3


def closer_points(
    points: Float[Tensor, " points"], excess: Float[Tensor, " points"], learned: float
) -> Float[Tensor, " closer"]:
    """Return values near minima at which the loss may be lower than at the points.

    >>> points = torch.tensor([-1.0, -0.6, -0.2, 0.2, 0.5, 1.0]).double()
    >>> closer_points(points, (points.abs() - 0.5).abs(), learned=0.5)
    tensor([-0.5333], dtype=torch.float64)
    """
    places = points.tolist()
    heights = excess.tolist()
    minima = [place for place in range(1, len(places) - 1) if _is_minimum_elsewhere(places, heights, place, learned)]
    lowest = sorted(minima, key=heights.__getitem__)[:_MOST_MINIMA]
    width = places[-1] - places[0]
    guesses: list[float] = []
    for place in lowest:
        for guess in (_crossing(places, heights, place), _vertex(places, heights, place)):
            known = [*places, *guesses]
            if guess is not None and min(abs(guess - value) for value in known) > _CLOSE * width:
                guesses.append(guess)
    return torch.tensor(sorted(guesses)).double()


def _is_minimum_elsewhere(places: list[float], heights: list[float], place: int, learned: float) -> bool:
    """Return whether a point is lower than its neighbours, and the learned value does not lie between these."""
    is_lowest = heights[place - 1] > heights[place] < heights[place + 1]
    return is_lowest and not places[place - 1] <= learned <= places[place + 1]


def _vertex(places: list[float], heights: list[float], place: int) -> float | None:
    """Return the vertex of the parabola through a point and its neighbours, or None if it is at the point."""
    before = places[place - 1] - places[place]
    after = places[place + 1] - places[place]
    rise_before = (heights[place - 1] - heights[place]) / before
    rise_after = (heights[place + 1] - heights[place]) / after
    curvature = (rise_after - rise_before) / (after - before)
    if curvature <= 0:
        return None
    return places[place] - (rise_after - curvature * after) / (2 * curvature)


def _crossing(places: list[float], heights: list[float], place: int) -> float | None:
    """Return where the lines of both sides cross, or None if they do not cross at a minimum.

    The lowest point belongs to one of the sides: to that with which the lines cross lower.
    """
    crossings = [
        _cross(places, heights, (place - 1, place), (place + 1, place + 2)),
        _cross(places, heights, (place - 2, place - 1), (place, place + 1)),
    ]
    inside = [
        crossing
        for crossing in crossings
        if crossing is not None and places[place - 1] < crossing.place < places[place + 1]
    ]
    if not inside:
        return None
    return min(inside, key=lambda crossing: crossing.height).place


class _Crossing(NamedTuple):
    """Where two lines cross."""

    place: float
    height: float


def _cross(
    places: list[float], heights: list[float], first: tuple[int, int], second: tuple[int, int]
) -> _Crossing | None:
    """Return where the lines through two pairs of points cross; None if they do not fall towards each other."""
    if first[0] < 0 or second[1] >= len(places):
        return None
    slope_before = _slope(places, heights, first)
    slope_after = _slope(places, heights, second)
    if not slope_before < 0 < slope_after:
        return None
    at_zero_before = heights[first[0]] - slope_before * places[first[0]]
    at_zero_after = heights[second[0]] - slope_after * places[second[0]]
    place = (at_zero_before - at_zero_after) / (slope_after - slope_before)
    return _Crossing(place, at_zero_before + slope_before * place)


def _slope(places: list[float], heights: list[float], pair: tuple[int, int]) -> float:
    """Return the slope of the line through two points."""
    first, second = pair
    return (heights[second] - heights[first]) / (places[second] - places[first])
