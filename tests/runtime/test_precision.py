"""Models run in double precision."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from absentia.runtime.modes import evaluation_mode
from absentia.runtime.precision import in_double
from known_games import cnn, mlp


class Sequences(nn.Module):
    """Layers with weights in lists, fused functions, constants, and types of their own."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 8, batch_first=True)
        self.gru = nn.GRU(8, 8, batch_first=True)
        self.attend = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.scale = torch.linspace(0.5, 1.5, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, rows):
        after_lstm, _ = self.lstm(rows[..., None])
        after_gru, _ = self.gru(after_lstm)
        hidden = self.attend(after_gru) * self.scale.to(rows.dtype)
        hidden = self.norm(hidden).float().exp().type_as(hidden)
        outputs = torch.zeros(len(rows), 2, dtype=self.norm.weight.dtype)
        outputs[:, 0] = hidden.mean((1, 2))
        outputs[:, 1].add_(nn.functional.softmax(hidden, -1, dtype=torch.float32).amax((1, 2)))
        return outputs


@pytest.mark.parametrize("lower", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("model", "shape"), [(mlp(6), (6,)), (cnn(), (1, 8, 8)), (Sequences(), (6,))])
def test_a_model_runs_in_double_precision_and_keeps_its_weights(model, shape, lower):
    model = deepcopy(model).to(lower).eval()
    rows = torch.rand(5, *shape).to(lower)
    before = deepcopy(model.state_dict())
    with evaluation_mode(model):
        outputs = in_double(model, rows)
        lower_outputs = model(rows)
        assert outputs.dtype == torch.float64
        assert 0 < float((outputs - lower_outputs).abs().max()) < 30 * torch.finfo(lower).eps
        if not isinstance(model, Sequences):  # which has types of its own
            assert torch.equal(outputs, deepcopy(model).double()(rows.double()))
    after = model.state_dict()
    assert all(torch.equal(weights, after[name]) for name, weights in before.items())
    assert lower_outputs.dtype == lower


def test_a_compiled_model_is_not_compiled_once_more():
    compiled = torch.compile(nn.Linear(2, 1), backend="eager")
    assert in_double(lambda rows: compiled(rows), torch.zeros(3, 2)).dtype == torch.float32
