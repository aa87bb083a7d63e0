"""Any model as a function of rows, and where and in which type it runs."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

import absentia as ab
from absentia import AbsentiaError, from_numpy
from absentia.models.adapters import as_model, placement
from absentia.models.outputs import are_probabilities
from fitted_table import CLASSES, FITTED, SWAPPED, TRAINING_TABLE
from known_games import mlp

SIX_ROWS = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))


def scripted(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).eval()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TorchScript by torch
@pytest.mark.parametrize("compiled", [torch.jit.script, lambda model: torch.jit.freeze(torch.jit.script(model))])
def test_torchscript_is_a_model(compiled):
    model = compiled(scripted())
    expected = ab.explain(scripted(), SIX_ROWS, absence=0.0).interactions.effects
    assert torch.allclose(ab.explain(model, SIX_ROWS, absence=0.0).interactions.effects, expected, atol=1e-6)
    assert ab.learn_baseline(model, SIX_ROWS, options=ab.LearningOptions(steps=1)).values.shape == (3,)
    with pytest.raises(AbsentiaError, match=r"model must be an nn.Module for the features of a layer"):
        ab.MaskedModel(model, SIX_ROWS, absence=0.0, readout=ab.Features("0"))


def test_what_predicts_is_wrapped_and_rows_of_probabilities_are_known():
    class Estimator:
        def predict(self, rows):
            return rows.sum(1)

    assert as_model(Estimator())(torch.ones(2, 3)).tolist() == [3.0, 3.0]
    assert are_probabilities(torch.tensor([[0.3, 0.7]]))
    assert not are_probabilities(torch.tensor([[0.3, 0.9]]))


def test_placement_is_the_models():
    assert placement(mlp(3), torch.zeros(1, 3)) == (torch.device("cpu"), torch.float64)
    assert placement(lambda rows: rows, torch.zeros(1, dtype=torch.float16))[1] == torch.float16
    assert placement(lambda rows: rows, torch.zeros(1, dtype=torch.int64))[1] == torch.float32


def test_integers_that_single_precision_would_round_are_doubles():
    times = 1_700_000_000 + torch.arange(4)[:, None]
    found = ab.explain(from_numpy(lambda rows: rows[:, 0] - 1.7e9), times, absence=0.0)
    assert found.outputs.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert placement(lambda rows: rows, times)[1] == torch.float64
    assert placement(nn.Linear(1, 1), times)[1] == torch.float32


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_network_is_explained():
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    found, expected = (
        ab.explain(one, torch.ones(2, 3), absence=0.0).outputs
        for one in (torch.compile(network, backend="eager"), network)
    )
    assert torch.allclose(found, expected)


NORMAL_ROWS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ab.explain(FITTED, SWAPPED[:2], 1, absence=0.0),
        lambda: ab.explain(FITTED, SWAPPED.iloc[0], 1, absence=0.0),
        lambda: ab.explain(FITTED, TRAINING_TABLE[:2].rename(columns={"b": "z"}), 1, absence=0.0),
        lambda: ab.MaskedModel(FITTED, SWAPPED[:2], 1, absence=0.0),
        lambda: ab.audit(FITTED, SWAPPED, CLASSES, ["mean"]),
        lambda: ab.learn_baseline(FITTED, SWAPPED, CLASSES, options=ab.LearningOptions(steps=1)),
    ],
)
def test_columns_are_those_of_the_fit(call):
    with pytest.raises(ab.AbsentiaError, match=r"x must have the columns of the fit, in their order. Got '[bz]'"):
        call()


def test_integers_keep_their_digits():
    rows = np.array([[16_000_001, 16_000_003], [16_000_000, 16_000_009]])
    made = LinearRegression().fit(rows / 1e6, rows.sum(1))
    found = ab.explain(ab.from_numpy(lambda x: x.sum(1)), rows, absence="mean", data=rows)
    assert found.base_values.tolist() == [rows.mean(0).sum()] * 2
    assert made.coef_.shape == (2,)

    class Total(nn.Module):
        def forward(self, x):
            return x.sum(1)

    assert ab.explain(Total(), [[2**24 + 1, 2**25 + 3]], absence=0.0).outputs.tolist() == [2**24 + 2**25 + 4]


def test_the_type_is_that_of_most_weights():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1).double())
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            return self.layer(x) * self.scale.float()

    assert ab.explain(Mixed(), NORMAL_ROWS, absence=0.0).samples == 6
