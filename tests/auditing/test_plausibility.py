"""How far masked samples are from the data."""

import pytest
import torch

import absentia as ab
from absentia.auditing.plausibility import compare_with_data, measure_distances
from absentia.data import data_range


def test_a_token_that_does_not_occur_is_not_outside_a_range():
    tokens = torch.randint(1, 9, (30, 4), generator=torch.Generator().manual_seed(0))
    players = ab.Players.tokens(["not", "a", "bad", "film"])
    weights = torch.linspace(-1, 1, 10)
    found = ab.audit(lambda rows: weights[rows].sum(1), tokens, None, {"mask": ab.Baseline(9)}, players=players)
    assert not found.plausibility.outside.any()
    assert not any("outside the data's range" in warning for warning in found.warnings)


def test_a_number_that_does_not_occur_is_outside_the_range():
    x = torch.rand(30, 4, generator=torch.Generator().manual_seed(0))
    found = ab.audit(lambda rows: rows.prod(1), x, None, {"nine": 9.0})
    assert found.plausibility.outside.all()
    assert any("outside the data's range" in warning for warning in found.warnings)


def test_distances_are_to_the_nearest_row_in_standard_units():
    data = torch.cartesian_prod(torch.arange(5.0), torch.arange(5.0)) * torch.tensor([1.0, 100.0])
    distance, note = measure_distances(data, seed=0)
    assert note == ""
    assert distance(data[:1] + torch.tensor([0.0, -200.0])) == pytest.approx(2)  # a step of the grid is the usual one
    assert distance(data[:1] + torch.tensor([-1.0, 0.0])) == pytest.approx(1)
    assert measure_distances(torch.ones(9, 2), 0) == (
        None,
        "Distances to the data were not measured: most of its rows are repeated.",
    )
    assert "more than 20,000 entries" in measure_distances(torch.zeros(3, 20_001), 0)[1]
    assert "only 2 rows" in measure_distances(torch.zeros(2, 2), 0)[1]


def test_a_player_is_outside_if_any_of_its_entries_is():
    players = ab.Players.groups({"a": [0, 1], "b": [2]}, 4)
    masked = [None, torch.tensor([[[0.5, 2.0, 0.5, 9.0]]])]
    data = torch.tensor([[0.0] * 4, [1.0] * 4])
    found, note = compare_with_data(masked, data, data_range(data), players, 0)
    assert found.outside.tolist() == [[False, False], [True, False]]
    assert "only 2 rows" in note
