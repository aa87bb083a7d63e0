"""The output of a layer."""

import pytest
import torch
from torch import nn

from absentia import AbsentiaError
from absentia.models.layers import layer_output
from known_games import mlp


def test_the_output_of_a_layer():
    model = mlp(3)
    rows = torch.randn(4, 3, dtype=torch.float64)
    assert torch.equal(layer_output(model, "3")(rows), model[:4](rows))
    assert not model[3]._forward_hooks
    with pytest.raises(AbsentiaError, match=r"layer must be one of 0, 1, 2, 3, 4. Got 'last'"):
        layer_output(model, "last")
    with pytest.raises(AbsentiaError, match=r"model must be an nn.Module"):
        layer_output(lambda rows: rows, "0")


def test_the_output_of_a_layer_is_not_what_a_later_layer_makes_of_it():
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True))
    rows = torch.randn(4, 3)
    assert torch.equal(layer_output(model, "0")(rows), model[0](rows))
