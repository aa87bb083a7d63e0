"""Models that take and return NumPy arrays."""

import numpy as np
import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, from_numpy
from typechecker import unchecked


def test_numpy_callables_become_torch_ones():
    model = from_numpy(lambda rows: rows @ np.array([1.0, 2.0]))
    output = model(torch.tensor([[1.0, 1.0], [0.0, 3.0]], dtype=torch.float64))
    assert output.tolist() == [3.0, 6.0]


def test_probabilities_become_logits():
    p = np.array([[0.2, 0.8], [0.9, 0.1]])
    many = from_numpy(lambda rows: p, probabilities=True)(torch.zeros(2, 1))
    assert torch.allclose(many.softmax(1), torch.from_numpy(p))
    one = from_numpy(lambda rows: p[:, 1], probabilities=True)(torch.zeros(2, 1))
    assert torch.allclose(one.sigmoid(), torch.from_numpy(p[:, 1]))


def test_a_numpy_callable_of_the_wrong_length_is_refused():
    with pytest.raises(
        AbsentiaError, match=r"model must return one row for each of the 3 input rows. Got shape \(2,\)"
    ):
        from_numpy(lambda rows: rows[:2, 0])(torch.zeros(3, 1))
    with pytest.raises(AbsentiaError, match="predict must be a callable"):
        unchecked(from_numpy)("predict")


NORMAL_ROWS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


def test_probabilities_are_said_to_be_read_as_log_odds_and_lie_between_0_and_1():
    def predict(rows):
        return 1 / (1 + np.exp(-rows.sum(1)))

    found = ab.explain(ab.from_numpy(predict, probabilities=True), NORMAL_ROWS, absence=0.0)
    assert found.record.readout == "log-odds of class 1"
    assert torch.allclose(found.outputs.float(), NORMAL_ROWS.sum(1), atol=1e-4)
    with pytest.raises(ab.AbsentiaError, match=r"model must return probabilities .* Got numbers from [0-9.]+ to"):
        ab.explain(ab.from_numpy(lambda rows: 100 * predict(rows), probabilities=True), NORMAL_ROWS, absence=0.0)
