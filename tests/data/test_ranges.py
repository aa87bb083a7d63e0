"""The range of data, and white noise within it."""

import torch

from absentia.data import data_range, seeded, white_noise


def test_white_noise_fills_the_range_and_integers_include_both_ends():
    within = data_range(torch.tensor([[0.0, -2.0], [1.0, 3.0]]))
    noise = white_noise(within, torch.zeros(4000, 2), seeded(0))
    assert bool(within.holds(noise).all())
    assert torch.allclose(noise.mean(0), torch.tensor([0.5, 0.5]), atol=0.1)
    tokens = white_noise(within, torch.zeros(4000, 2, dtype=torch.int64), seeded(0))
    assert tokens[:, 1].unique().tolist() == [-2, -1, 0, 1, 2, 3]


def test_white_noise_has_the_categories_of_drawn_rows():
    rows = torch.tensor([[0.0, -2.0, 7.0], [1.0, 3.0, 8.0]])
    noise = white_noise(data_range(rows, categorical=[[1, 2]]), torch.zeros(400, 3), seeded(0))
    assert noise[:, 1:].unique(dim=0).tolist() == rows[:, 1:].tolist()
    assert len(noise[:, 0].unique()) > 300
