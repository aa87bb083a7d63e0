"""The explanations that the plots of every kind draw."""

import pytest
import torch

import absentia as ab
from drawn_results import explain
from known_games import cnn
from seeded_draws import randn


@pytest.fixture(scope="module")
def six():
    return explain(6)


@pytest.fixture(scope="module")
def sampled():
    return explain(30, evaluations=130)


@pytest.fixture(scope="module")
def pictured():
    players = ab.Players.grid((1, 6, 6), cells=(3, 3), only=[(0, 0), (0, 1), (1, 1), (2, 2)])
    x = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(0)).double()
    return ab.explain(cnn(), x, [0, 1], players=players, absence=ab.Baseline(0.5))


@pytest.fixture(scope="module")
def many():
    """Forty samples of three players; the first two have one entry each."""
    players = ab.Players.groups({"a": [0], "b": [1], "pair": [2, 3]}, features=4)
    weights = torch.tensor([3.0, -1.0, 0.5, 0.5]).double()
    return ab.explain(lambda rows: rows @ weights, randn(40, 4), players=players, absence=ab.Baseline(0.25))
