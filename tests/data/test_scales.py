"""Scales of entries and channels."""

import torch

from absentia.data import data_range, least_and_most, mean_and_deviation


def test_scales_are_those_of_entries_or_of_an_images_channels():
    table = torch.tensor([[0.0, 5.0], [2.0, 5.0]])
    assert [part.tolist() for part in mean_and_deviation(table)] == [[1.0, 5.0], [1.0, 0.0]]
    assert [part.tolist() for part in least_and_most(table)] == [[0.0, 5.0], [2.0, 5.0]]
    assert mean_and_deviation(torch.zeros(10, 3, 8, 8))[0].shape == (3, 1, 1)
    assert data_range(torch.zeros(10, 3, 8, 8)).high.shape == (3, 8, 8)
