"""What models return: logits of one or several columns, objects, dicts and tuples."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

import absentia as ab
from absentia import AbsentiaError, from_numpy
from absentia.models.outputs import read_output
from absentia.runtime.batches import BatchRunner

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 1, 1, 0, 1, 0])


def linear():
    torch.manual_seed(0)
    return nn.Linear(4, 1)


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
    with pytest.raises(ab.AbsentiaError, match="y must be left out for a regression"):
        ab.audit(one, X, 100 * targets[:, 0], {"zero": 0.0})


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


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (lambda rows: rows.sum(), r"model must return one row for each of the 4 input rows. Got shape \(\)"),
        (lambda rows: rows[:3], "model must return one row for each of the 4 input rows"),
        (lambda rows: [], "model must return a tensor. Got list"),
        (lambda rows: {"a": rows, "b": rows}, r"a dict with one or with 'logits'. Got \['a', 'b'\]"),
        (lambda rows: rows.argmax(1), "model must return floating-point numbers. Got torch.int64"),
    ],
)
def test_outputs_of_the_wrong_kind_get_a_sentence(model, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        BatchRunner(model, 16)(torch.zeros(4, 2))


def test_logits_are_found_in_a_dict():
    output, key = read_output({"logits": torch.zeros(1, 2), "hidden": torch.ones(1, 8)})
    assert (output.tolist(), key) == ([[0.0, 0.0]], "logits")


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (lambda rows: rows.sum(1) + 1j, "complex numbers"),
        (lambda rows: np.ma.masked_less(rows.sum(1), 9), "a masked array"),
    ],
)
def test_complex_and_missing_outputs_are_refused(answer, got):
    with pytest.raises(AbsentiaError, match=f"model must return real numbers, none of them missing. Got {got}"):
        from_numpy(answer)(torch.ones(2, 3))
