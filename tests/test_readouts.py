import math

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError, Features, Logit, LogOdds, Margin, Output, Probability, Readout
from absentia.readouts import Score, default_readout

LOGITS = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
WHOSE = torch.tensor([0, 0, 1, 1, 2])
Y = [3, 0, 2]


@pytest.mark.parametrize("readout", [LogOdds(1), Logit(1), Margin(1), Probability(1), Output(1), Features("0")])
def test_all_are_readouts_that_describe_themselves(readout):
    assert isinstance(readout, Readout)
    assert str(readout)
    assert "object at" not in str(readout)


def test_log_odds_are_the_logarithm_of_the_odds():
    p = LOGITS.softmax(1)[torch.arange(5), torch.tensor([3, 3, 0, 0, 2])]
    assert torch.allclose(LogOdds(Y)(LOGITS, WHOSE), torch.log(p / (1 - p)))
    assert torch.allclose(Probability(Y)(LOGITS, WHOSE), p)
    assert torch.equal(Logit(Y)(LOGITS, WHOSE), LOGITS[torch.arange(5), torch.tensor([3, 3, 0, 0, 2])])


def test_log_odds_are_stable_where_the_probability_rounds_to_one():
    logits = torch.tensor([[200.0, 0.0, -50.0]])
    assert logits.softmax(1)[0, 0] == 1
    assert LogOdds(0)(logits, torch.tensor([0])).item() == pytest.approx(200.0)
    assert LogOdds(2)(logits, torch.tensor([0])).item() == pytest.approx(-250.0)


def test_log_odds_have_finite_gradients():
    logits = torch.tensor([[300.0, 0.0, 0.0]], requires_grad=True)
    LogOdds(0)(logits, torch.tensor([0])).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[0].tolist() == [1.0, -0.5, -0.5]


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_a_single_logit_speaks_for_class_one(shape):
    logits = torch.tensor([2.0, -1.0, 0.5]).reshape(shape)
    whose = torch.tensor([0, 1, 1])
    for readout in (LogOdds([1, 0]), Logit([1, 0])):
        assert readout(logits, whose).tolist() == [2.0, 1.0, -0.5]
    assert torch.allclose(Probability([1, 0])(logits, whose), torch.tensor([2.0, 1.0, -0.5]).sigmoid())


def test_output_takes_a_number_by_its_index():
    output = torch.arange(24.0).reshape(2, 3, 4)
    assert Output((1, 2))(output, torch.tensor([0, 0])).tolist() == [6.0, 18.0]
    assert Output(0)(torch.tensor([1.0, 2.0]), torch.tensor([0, 0])).tolist() == [1.0, 2.0]
    held = Output(0)
    object.__setattr__(held, "index", torch.tensor(1))  # as if it were not checked
    held.check(LOGITS, samples=5)
    assert torch.equal(held(LOGITS, WHOSE), LOGITS[:, 1])


@pytest.mark.parametrize(
    ("output", "y", "kind", "note"),
    [
        (torch.randn(3), None, Output, "the output as it is"),
        (torch.randn(3, 1), None, Output, "the output as it is"),
        (torch.randn(3, 1), [0, 1, 1], LogOdds, "log-odds of each sample's class (0, 1, 1)"),
        (torch.randn(3, 4), 2, LogOdds, "log-odds of class 2"),
        (torch.eye(3), None, LogOdds, "log-odds of the class predicted on the full sample (0, 1, 2)"),
    ],
)
def test_the_default_follows_the_output_and_says_what_it_is(output, y, kind, note):
    readout, said = default_readout(output, y)
    assert type(readout) is kind
    assert str(said) == note


@pytest.mark.parametrize(
    ("readout", "output", "sentence"),
    [
        (lambda: LogOdds(4), LOGITS, "y must lie between 0 and 3, the model's classes. Got 4"),
        (lambda: Logit(-1), LOGITS, "y must lie between 0 and 3, the model's classes. Got -1"),
        (lambda: LogOdds(2), LOGITS[:, :1], "y must lie between 0 and 1"),
        (lambda: Probability([0, 1]), LOGITS, "y must hold one class for each of the 5 samples. Got 2"),
        (lambda: LogOdds(1), LOGITS[:, :, None], r"model must return \(rows,\), \(rows, 1\) or \(rows, classes\)"),
        (lambda: Output(4), LOGITS, r"index must name one number of an output of shape \(4,\). Got 4"),
        (lambda: Output((0, 0)), LOGITS, r"index must name one number"),
        (lambda: Output(True), LOGITS, r"index must name one number .* Got True"),
        (lambda: LogOdds(np.array([0.5])), LOGITS, "y must hold class numbers"),
        (lambda: LogOdds(np.array([[1]])), LOGITS, "y must be one class number or one for each sample"),
    ],
)
def test_bad_input_gets_a_sentence(readout, output, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        readout().check(output, samples=5)


def test_an_output_of_several_axes_needs_a_readout():
    with pytest.raises(AbsentiaError, match="readout must be given"):
        default_readout(torch.zeros(2, 3, 4), None)


def test_the_score_of_log_odds_is_the_log_loss_of_the_class() -> None:
    logits = torch.randn(5, 3).double()
    y = torch.tensor([0, 1, 2, 1, 0])
    values = LogOdds(y)(logits, torch.arange(5))
    expected = torch.nn.functional.cross_entropy(logits, y, reduction="none")
    torch.testing.assert_close(Score(LogOdds(y), values)(values[:, None])[:, 0], expected)


def test_a_prediction_by_class_frequencies_scores_the_entropy() -> None:
    y = torch.tensor([0, 0, 0, 1])
    score = Score(LogOdds(y), torch.zeros(4).double())
    log_odds = torch.tensor([3.0, 3.0, 3.0, 1 / 3]).double().log()
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    torch.testing.assert_close(score(log_odds[:, None])[:, 0], score.prior)
    assert score.prior.mean().item() == pytest.approx(entropy)


def test_other_values_are_scored_by_their_squared_difference_to_the_full_value() -> None:
    full = torch.tensor([1.0, 2.0, 3.0, 6.0]).double()
    for readout in (Output(0), LogOdds(1)):  # one class for all samples is no class to predict
        score = Score(readout, full)
        assert score(full.mean().expand(4, 1)).mean().item() == pytest.approx(1.0)
        torch.testing.assert_close(score(full.mean().expand(4, 1))[:, 0], score.prior)
        torch.testing.assert_close(
            score(torch.zeros(1, 2).double(), torch.tensor([3])), torch.full((1, 2), 36 / 3.5).double()
        )


@pytest.mark.parametrize("output", [0.0, 1.0, -1e6])
def test_the_score_of_a_constant_output_has_a_finite_gradient(output) -> None:
    """The loss of learning multiplies the score by up to 4e12 before it is differentiated."""
    values = torch.full((3, 1), output).double().requires_grad_()
    (4e12 * Score(Output(0), torch.full((3,), output).double())(values).sum()).backward()
    assert values.grad.tolist() == [[0.0]] * 3


def test_descriptions_of_one_readout_are_of_the_same_kind_whatever_the_classes():
    _, predicted = default_readout(torch.eye(3), None)
    assert LogOdds([0, 1]).note.is_same_kind(predicted)
    assert not LogOdds(1).note.is_same_kind(Probability(1).note)


def test_the_score_of_even_odds_is_log_2():
    score = Score(LogOdds([0, 1, 1]), torch.tensor([2.0, 3.0, 1.0]))
    torch.testing.assert_close(score(torch.zeros(3, 1)), torch.full((3, 1), math.log(2)))


def test_names_of_classes_are_not_put_in_order_by_the_alphabet():
    output = torch.zeros(2, 2)
    y = ["spam", "ham"]
    sentence = r"y holds names of classes, .* Pass class_names=\['ham', 'spam'\] in the order of the model's outputs"
    with pytest.raises(AbsentiaError, match=sentence):
        default_readout(output, y)
    assert default_readout(output, y, ["spam", "ham"])[0].y.tolist() == [0, 1]
    with pytest.raises(AbsentiaError, match=r"Pass names=\['ham', 'spam'\] in the order"):
        LogOdds(y)


def test_class_names_are_different_and_of_any_kind_of_list(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    names = np.array(["no", "yes"])
    assert ab.LogOdds("yes", names).y == ab.LogOdds("yes", pd.Series(names)).y == 1
    with pytest.raises(AbsentiaError, match=r"class_names must name each class once. Got"):
        ab.LogOdds("no", ["no", "no"])


NORMAL_ROWS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


FIRST, SECOND = nn.Linear(4, 1), nn.Linear(4, 1)


def test_a_number_that_is_not_one_is_refused():
    class Column:
        def check(self, output, samples): ...

        def __call__(self, output, sample):
            return output[:, :1]

    with pytest.raises(
        ab.AbsentiaError, match=r"readout must return a tensor of one number .* Got Tensor of shape \(1, 1\)"
    ):
        ab.explain(FIRST, NORMAL_ROWS, absence=0.0, readout=Column())
