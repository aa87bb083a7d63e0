"""Logits are told from probabilities."""

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia.runtime.batches import BatchRunner
from absentia.runtime.readings import returns_probabilities

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 1, 1, 0, 1, 0])


def linear():
    torch.manual_seed(0)
    return nn.Linear(4, 1)


class Squeezed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = linear()

    def forward(self, rows):
        return torch.sigmoid(self.layer(rows)).squeeze(1).clamp(1e-6, 1 - 1e-6)


ONE_PROBABILITY = {
    "a last layer": nn.Sequential(linear(), nn.Sigmoid()),
    "a function in a module": Squeezed(),
    "a function": lambda rows: rows.sum(1).sigmoid(),
    "one column of a softmax": lambda rows: rows.softmax(1)[:, 1],
    "numpy": ab.from_numpy(lambda rows: 1 / (1 + np.exp(-rows.sum(1)))),
    "no gradient": lambda rows: torch.from_numpy(1 / (1 + np.exp(-rows.detach().numpy().sum(1)))),
}


@pytest.mark.parametrize("model", ONE_PROBABILITY.values(), ids=ONE_PROBABILITY)
@pytest.mark.parametrize("readout", [None, ab.LogOdds(Y), ab.Probability(Y)])
def test_probabilities_of_one_column_are_not_read_as_logits(model, readout):
    with pytest.raises(ab.AbsentiaError, match=r"Got probabilities from 0 to 1 in one column instead.*torch.logit"):
        ab.explain(model, X, Y if readout is None else None, readout=readout, absence=0.0)
    assert ab.explain(model, X, absence=0.0, readout=ab.Output(0)).outputs.max() <= 1


def test_the_logit_of_a_probability_gives_the_true_log_odds():
    layer = linear()
    model = nn.Sequential(layer, nn.Sigmoid())
    found = ab.explain(lambda rows: torch.logit(model(rows)), X, Y, absence=0.0)
    expected = layer(X)[:, 0].detach().double() * (2 * Y - 1)
    assert torch.allclose(found.outputs, expected, atol=1e-5)


def test_logits_are_logits_whatever_their_values():
    assert not returns_probabilities(BatchRunner(linear(), 8), X, linear()(X))
    small = nn.Sequential(nn.Linear(4, 3), nn.Sigmoid(), nn.Linear(3, 1))
    nn.init.constant_(small[2].weight, 0.1)
    nn.init.constant_(small[2].bias, 0.3)
    assert 0 < small(X).min() < small(X).max() < 1
    assert not returns_probabilities(BatchRunner(small, 8), X, small(X))
    assert ab.explain(small, X, Y, absence=0.0).record.readout.startswith("log-odds")
    by_numpy = ab.from_numpy(lambda rows: 0 * rows[:, 0] + 0.5, probabilities=False)
    assert not returns_probabilities(BatchRunner(by_numpy, 8), X, by_numpy(X))


NORMAL_ROWS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def ensemble(*layers):
    return lambda rows: torch.stack([layer(rows).sigmoid() for layer in layers])


FIRST, SECOND = nn.Linear(4, 1), nn.Linear(4, 1)
SEVERAL = nn.Linear(4, 3)


@pytest.mark.parametrize(
    "model",
    [
        lambda rows: ensemble(FIRST, SECOND)(rows).mean(0),
        lambda rows: (FIRST(rows).sigmoid() + SECOND(rows).sigmoid()) / 2,
        lambda rows: 1 - FIRST(rows).sigmoid(),
        lambda rows: SEVERAL(rows).softmax(1)[:, [1]],
        lambda rows: nn.functional.logsigmoid(FIRST(rows)).exp(),
        nn.Sequential(SEVERAL, nn.Sigmoid()),  # of several labels
        nn.Sequential(SEVERAL, nn.Softmax(1)),
        ab.from_numpy(lambda rows: np.full((len(rows), 4), 0.25)),
    ],
)
def test_probabilities_are_not_read_as_logits_after_other_operations(model):
    for settings in ({"y": 1}, {"readout": ab.Probability(1)}):
        with pytest.raises(ab.AbsentiaError, match=r"model must return logits for this readout. Got probabilities"):
            ab.explain(model, NORMAL_ROWS, absence=0.0, **settings)


def test_sums_of_logits_remain_logits():
    nn.init.constant_(FIRST.weight, 0.01)
    nn.init.constant_(FIRST.bias, 0.2)
    for model in (lambda rows: (FIRST(rows) + FIRST(rows)) / 2, lambda rows: FIRST(rows) * rows.softmax(1)[:, :1]):
        assert ab.explain(model, NORMAL_ROWS, 1, absence=0.0).record.readout == "log-odds of class 1"
