"""Guesses at minima between the points of a profile come close to them."""

import pytest
import torch

from absentia.learning.closer_points import closer_points

POINTS = torch.tensor([-1.0, -0.85, -0.47, 0.0, 0.1, 0.5, 0.6, 0.9, 1.0]).double()


@pytest.mark.parametrize("loss", [lambda x: (x.square() - 0.25).abs(), lambda x: (x.square() - 0.25).square()])
def test_a_second_minimum_is_found(loss):
    points = POINTS
    for _ in range(4):
        points = torch.cat([points, closer_points(points, loss(points), learned=0.5)]).sort().values
    below_zero = points[points < 0]
    assert float(below_zero[loss(below_zero).argmin()]) == pytest.approx(-0.5, abs=0.01)
    assert len(points) <= len(POINTS) + 8


def test_the_minimum_at_the_learned_value_and_bounds_are_left_alone():
    assert len(closer_points(POINTS, (POINTS - 0.45).abs(), learned=0.47)) == 0
    assert len(closer_points(POINTS, -POINTS, learned=1.0)) == 0
