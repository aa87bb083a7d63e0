"""Quantiles of the entries of data."""

import numpy as np
import pytest
import torch

from absentia.data import QUANTILES, data_quantiles
from seeded_draws import randn


def test_quantiles_are_those_of_each_entry():
    assert data_quantiles(torch.arange(21.0)[:, None]).flatten().tolist() == [0.0, 1.0, 5.0, 10.0, 15.0, 19.0, 20.0]


@pytest.mark.parametrize("rows", [1, 2, 101])
def test_quantiles_are_those_of_numpy(rows):
    found = data_quantiles(randn(rows, 2, 3))
    assert np.allclose(found, np.quantile(randn(rows, 2, 3).numpy(), QUANTILES, axis=0))


def test_quantiles_of_many_rows_and_entries_keep_the_ends():
    many = torch.rand(4_200, 1030, generator=torch.Generator().manual_seed(0))
    found = data_quantiles(many)
    assert torch.equal(found[0].float(), many.amin(0))
    assert torch.equal(found[-1].float(), many.amax(0))
    assert torch.allclose(found[3], torch.full((1030,), 0.5).double(), atol=0.05)
