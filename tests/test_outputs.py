"""What models return: probabilities in one column, numbers of a regression, objects, dicts, tuples, votes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import absentia as ab
from absentia.models.adapters import as_model
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
    assert not returns_probabilities(linear(), X, linear()(X))
    small = nn.Sequential(nn.Linear(4, 3), nn.Sigmoid(), nn.Linear(3, 1))
    nn.init.constant_(small[2].weight, 0.1)
    nn.init.constant_(small[2].bias, 0.3)
    assert 0 < small(X).min() < small(X).max() < 1
    assert not returns_probabilities(small, X, small(X))
    assert ab.explain(small, X, Y, absence=0.0).record.readout.startswith("log-odds")
    by_numpy = ab.from_numpy(lambda rows: 0 * rows[:, 0] + 0.5, probabilities=False)
    assert not returns_probabilities(by_numpy, X, by_numpy(X))


def test_regressions_are_explained_one_output_at_a_time():
    targets = np.stack([X.sum(1), X.prod(1)], axis=1)
    two = LinearRegression().fit(X.numpy(), targets)
    with pytest.raises(ab.AbsentiaError, match=r"readout must be Output\(i\) for a regression with 2 outputs"):
        ab.explain(ab.interop.from_estimator(two), X, absence=0.0)
    found = ab.explain(two, X, absence=0.0, readout=ab.Output(0)).outputs
    assert torch.allclose(found, X.sum(1).double(), atol=1e-4)
    one = LinearRegression().fit(X.numpy(), targets[:, 0])
    assert ab.explain(one, X, absence=0.0).record.readout == "the output as it is"
    with pytest.raises(ab.AbsentiaError, match="y must be left out for a regression"):
        ab.explain(one, X, Y, absence=0.0)


@pytest.mark.parametrize(
    ("wrap", "place"),
    [
        (lambda logits: SimpleNamespace(logits=logits, loss=None), "'logits'"),
        (lambda logits: {"logits": logits, "hidden": logits + 1}, "'logits'"),
        (lambda logits: {"scores": logits, "name": "a"}, "'scores'"),
        (lambda logits: (logits, logits + 1), "0"),
    ],
    ids=["object", "dict with logits", "dict with one tensor", "tuple"],
)
def test_logits_are_found_in_what_a_model_returns(wrap, place):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = linear()

        def forward(self, rows):
            return wrap(self.layer(rows))

    model = Wrapped()
    explanation = ab.explain(model, X, Y, absence="mean", data=X)
    assert torch.equal(
        explanation.shapley.values, ab.explain(model.layer, X, Y, absence="mean", data=X).shapley.values
    )
    assert explanation.record.readout.endswith(f"; from {place} of the model's output")
    learned = ab.learn_baseline(model, X, Y, options=ab.LearningOptions(steps=2, rows_per_step=64))
    audit = ab.audit(model, X, Y, {"learned": learned}, draws=1)
    assert audit.columns()["score"].isfinite().all()
    assert ab.train_surrogate(model, X, epochs=1, progress=False) is not None


VOTES = {
    "forest": (RandomForestClassifier(25, random_state=0), 1 / 27),
    "pruned forest": (RandomForestClassifier(25, min_samples_leaf=40, random_state=0), None),
    "pipeline": (make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)), 1 / 12),
    "tree": (DecisionTreeClassifier(random_state=0), 1 / 3),
    "neighbours": (KNeighborsClassifier(5), 1 / 7),
}


@pytest.mark.parametrize(("estimator", "least"), VOTES.values(), ids=VOTES)
def test_log_odds_of_votes_are_bounded_by_their_number(estimator, least):
    x = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    estimator.fit(x, y)
    given, model = estimator.predict_proba(x), as_model(estimator)
    if least is not None:
        assert model.least == pytest.approx(least)
    assert 0 < model.least < given[given > 0].min()
    explanation = ab.explain(estimator, x[:20], y[:20], absence="mean", data=x)
    assert explanation.interactions.effects.isfinite().all()
    assert f"probabilities of 0 and 1 are read as {model.least:.2g}" in explanation.record.readout
    inner = (given > 0) & (given < 1)  # all other probabilities are as they were
    assert np.allclose(model(torch.from_numpy(x)).exp().numpy()[inner], given[inner])


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, AdaBoostClassifier])
def test_other_ensembles_have_no_such_bound(kind):
    x = np.random.default_rng(0).normal(size=(100, 3))
    estimator = kind(n_estimators=5, random_state=0).fit(x, x[:, 0] > 0)
    assert as_model(estimator).least == 0
    assert "are read as" not in ab.explain(estimator, x[:2], absence=0.0).record.readout


def test_a_probability_of_0_is_read_as_the_least_number_of_its_type():
    model = ab.from_numpy(lambda rows: np.stack([rows[:, 0] * 0, rows[:, 0] * 0 + 1], axis=1), probabilities=True)
    assert model(torch.zeros(1, 2, dtype=torch.float64))[0, 0] == pytest.approx(np.log(2.0**-1022))
    assert model(torch.zeros(1, 2, dtype=torch.float32))[0, 0] == pytest.approx(np.log(2.0**-126))
    one = ab.from_numpy(lambda rows: rows[:, 0], probabilities=True)
    found = one(torch.tensor([[0.0], [1e-30], [1.0]]).double())
    assert found.tolist() == pytest.approx([-708.4, -69.08, 36.74], 1e-3)
