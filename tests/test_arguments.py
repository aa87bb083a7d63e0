"""Types of arguments are checked where users call, and numbers of other libraries are accepted."""

import inspect
import pickle
import random
import re

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.arguments import _in_words, checked

X = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))


def total(rows):
    return rows.sum(1)


FOUND = ab.explain(total, X, absence=0.0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: ab.explain(total, X, absence=0.0, evaluations="many"),
            "evaluations must be a whole number or None. Got 'many' instead.",
        ),
        (lambda: ab.explain(total, X, absence=0.0, seed=0.5), "seed must be a whole number. Got 0.5 instead."),
        (lambda: ab.explain(total, X, absence=0.0, batch_size=1.5), "batch_size must be a whole number. Got 1.5"),
        (lambda: ab.Marginal(X, draws=2.5), "draws must be a whole number. Got 2.5 instead."),
        (lambda: ab.Blur("wide"), "sigma must be a number. Got 'wide' instead."),
        (lambda: ab.Players.grid((1, 4, 4), 2), "cells must be a list of whole numbers. Got 2 instead."),
        (lambda: ab.Players.grid((1, "a", 4), (2, 2)), "shape must be a list of whole numbers"),
        (lambda: ab.Players.groups([0], 3), "groups must be a mapping. Got [0] instead."),
        (
            lambda: ab.Players.tokens(2, embedding=2**70),
            "embedding must lie within ±2^63. Got 1180591620717411303424",
        ),
        (lambda: ab.Players.tokens(10**6, embedding=10**6), "This takes more memory than there is: 7,450.6 GiB. Use"),
        (
            lambda: ab.shapley(3, evaluations=99),
            "game must be a game such as MaskedModel(…) or ValueTable(values) or Terms. Got 3",
        ),
        (lambda: ab.moebius([1.0, 2.0]), "values must be a tensor. Got [1.0, 2.0] instead."),
        (lambda: ab.Baseline.median(X, 3), "categorical must be a list of columns. Got 3 instead."),
        (lambda: ab.load(3), "path must be text or a path. Got 3 instead."),
        (lambda: FOUND.save(3), "path must be text or a path. Got 3 instead."),
        (lambda: FOUND.save(""), "path must name a file. Got ., which is a folder or a device"),
        (lambda: FOUND.save("a\0b"), "a\0b can't be written: embedded null"),
        (lambda: FOUND.save("a" * 5000), "path must have a name of at most 220 bytes. Got 5000"),
        (lambda: ab.Audit.load(None), "path must be text or a path. Got None instead."),
        (lambda: ab.load("a" * 5000), "path must name a file that exists. Got aaaa"),
        (lambda: ab.Explanation.load("a\0b"), "path must name a file that exists. Got a\0b"),
        (lambda: ab.LearningOptions(steps="few"), "steps must be a whole number or None. Got 'few' instead."),
        (
            lambda: ab.explain(total, X, absence=0.0, class_names=np.array(1)),  # which beartype itself fails on
            "class_names must be a list of texts or None. Got array(1) instead.",
        ),
        (
            lambda: ab.explain(total, X, absence=0.0, readout=3),
            "readout must be a readout such as LogOdds(y) or None. Got 3 instead.",
        ),
        (
            lambda: ab.learn_baseline(total, X, options=3),
            "options must be options such as LearningOptions(steps=50) or None. Got 3 instead.",
        ),
        (lambda: ab.moebius(torch.zeros(4).to_sparse()), "values must hold its numbers in memory, all of them. Got"),
        # What functions say themselves comes first.
        (
            lambda: ab.explain(total, X, absence=0.0, players=3),
            "players must be Players.features(names) or None. Got 3",
        ),
        (
            lambda: ab.explain(total, X, absence=[0.0]),
            "absence must be an absence such as Baseline(0.0), a number or",
        ),
        (lambda: ab.Noise(kind="pink"), "kind must be 'uniform' or 'normal'. Got 'pink' instead."),
        (lambda: ab.from_numpy("predict"), "predict must be a callable such as estimator.predict_proba. Got str"),
        (lambda: ab.value_table([1.0, 2.0]), "game must be a game such as MaskedModel(…) or ValueTable(values). Got"),
        (lambda: ab.learn_baseline(total, X, loss="least"), "loss must be 'faithful', 'interactions', 'shapley' or"),
        (
            lambda: ab.explain(lambda rows: rows @ torch.ones(4), X, absence=0.0),
            "The model fails on torch.float32 samples of shape (3,): RuntimeError: ",
        ),
    ],
)
def test_an_argument_of_another_type_gets_a_sentence(call, sentence, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users have no checks of types by the tests
    with pytest.raises(AbsentiaError, match=re.escape(sentence)):
        call()


AUDIT = ab.audit(total, X, absences=["zero"], draws=1)
PLAYERS = ab.Players.features(3)
EFFECTS = ab.harsanyi(ab.ValueTable(torch.rand(2, 8)))
FRAME = pd.DataFrame({"a": ["x", "y"], "b": [0.5, 1.5]})
TABLE = ab.interop.EncodedTable.of(FRAME)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: PLAYERS.named_values(nn.Linear(3, 3)),
            "x must be a tensor, an array or a table of numbers",
        ),
        (lambda: PLAYERS.sums(torch.zeros(5)), "x must have samples of the players' shape (3,). Got ()"),
        (lambda: PLAYERS.texts(torch.zeros(2, 4)), "x must have samples of the players' shape (3,). Got (4,)"),
        (lambda: PLAYERS.means(torch.zeros(2, 3).to(torch.complex64)), "x must hold real numbers"),
        (
            lambda: EFFECTS.reconstruct(keep=torch.ones(1, 3).bool()),
            "keep must have the shape of the effects",
        ),
        (lambda: FOUND.shapley.ranked(9), "sample must lie between -6 and 5. Got 9 instead."),
        (lambda: FOUND.sample_name(9), "sample must lie between -6 and 5. Got 9 instead."),
        (
            lambda: ab.Logit(0)(torch.zeros(2, 3), torch.arange(6)),
            "output must be (rows, classes) of 6 rows",
        ),
        (lambda: ab.Logit(0)(torch.zeros(2, 3, 4), torch.arange(2)), "output must be (rows, classes) of 2 rows. Got"),
        (lambda: TABLE.encode(X), "frame must have the columns a, b. Got none named 'a' instead."),
        (lambda: TABLE.numbers(AUDIT), "frame must have the columns a, b. Got none named 'a' instead."),
        (lambda: TABLE.decode(torch.zeros(2, 3)), "rows must have 2 columns. Got shape (2, 3) instead."),
        (
            lambda: ab.Baseline.mean(AUDIT),
            "data must be a tensor, an array or a table of numbers. Got Audit",
        ),
        (
            lambda: ab.interop.shap_masker(0.0, PLAYERS, X)(np.ones(0), X[0].numpy()),
            "coalitions must be boolean of shape (coalitions, 3). Got torch.bool of shape (1, 0)",
        ),
        (lambda: ab.plots.learning_history([0]), "learned must be a LearnedBaseline, which learn_baseline returns"),
        (
            lambda: ab.plots.new_figure(-1),
            "the figure must have 1 to 99 columns, a ratio for each",
        ),
        (lambda: ab.plots.new_figure(1, width=-0.5), "the figure must have 1 to 99 columns"),
        (lambda: ab.plots.new_figure(2, ratios=(1, 2, 3)), "the figure must have 1 to 99 columns"),
        (lambda: ab.plots.new_figure(2**31), "the figure must have 1 to 99 columns"),
        (
            lambda: ab.Evaluator(ab.Task(total, X)).table(ab.Baseline(0.0).bind(X), players=ab.Players.features(2)),
            "x must have samples of the players' shape (2,). Got (3,)",
        ),
    ],
)
def test_a_method_with_an_argument_that_does_not_fit_gets_a_sentence(call, sentence, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(AbsentiaError, match=re.escape(sentence)):
        call()


def test_a_network_in_the_place_of_inputs_is_not_converted(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    network = nn.Linear(3, 3)
    for method in (PLAYERS.means, PLAYERS.entry_values, PLAYERS.named_values):
        with pytest.raises(AbsentiaError):
            method(network)
    assert network.weight.dtype == torch.float32


def test_an_error_of_the_users_own_is_passed_on_as_it_is():
    class Failing:
        samples = 1
        names = ("a", "b")

        def __call__(self, coalitions):
            raise KeyError("not here")

    with pytest.raises(KeyError, match="not here"):
        ab.shapley(Failing())


class Late:
    """A model that fails on its second call."""

    calls = 0

    def __call__(self, rows):
        self.calls += 1
        if self.calls > 1:
            raise KeyError("my bug")
        return rows.sum(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ab.explain(Late(), X, absence=0),
        lambda: ab.explain(Late(), X, absence=0, seed=2**80),
        lambda: ab.audit(Late(), X, absences=["zero"], seconds=5),
        lambda: ab.audit(Late(), X, absences={"zero": 0}),
        lambda: ab.learn_baseline(Late(), X, seconds=5),
        lambda: ab.learn_baseline(Late(), X, bounds=(0, 1)),
        lambda: ab.learn_baseline(Late(), X, bounds=3),
    ],
)
def test_whole_numbers_are_not_blamed_for_an_error_of_the_users_own(call, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(KeyError, match="my bug"):
        call()


def test_what_is_public_can_be_pickled_and_keeps_its_signature():
    assert pickle.loads(pickle.dumps(ab.explain)) is ab.explain
    assert list(inspect.signature(ab.explain).parameters)[:3] == ["model", "x", "y"]
    assert ab.explain.__doc__.startswith("Explain the model's output")


@pytest.mark.parametrize("number", [np.int64(3), np.uint8(3), 3.0, np.float32(3)])
def test_whole_numbers_of_any_type_are_numbers(number):
    assert len(ab.Players.features(number)) == 3
    assert ab.Marginal(X, draws=number).bind(X).draws == 3
    assert ab.ValueTable([0.0, 1.0], evaluations=np.int64(2**60 + 1)).evaluations == 2**60 + 1
    again, once = (ab.explain(total, X, absence=0.5, seed=one).shapley.values for one in (number, 3))
    assert torch.equal(again, once)


def test_messages_name_no_hint_that_only_the_source_knows():
    for hint in ("Table | None", "Classes", "Readout | None", "TimeLimit | None", "Samples", "Array | None", "bool"):
        words = _in_words(hint)
        for name in re.findall(r"\w+", hint.removesuffix(" | None")):
            assert name not in words.split(), words


def test_truth_values_are_blamed_only_where_whole_numbers_are_wanted():
    @checked
    def fail(count: int = 0, points: bool = False, either: int | bool = 0) -> None:
        raise KeyError("my bug")

    with pytest.raises(AbsentiaError, match=r"count must be a whole number. Got True instead."):
        fail(count=True)
    for arguments in ({"points": True}, {"either": True}):
        with pytest.raises(KeyError, match="my bug"):
            fail(**arguments)


def test_a_failed_check_leaves_the_random_state_as_it_was(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    before = random.getstate()
    for names in (np.array(1), 3):
        with pytest.raises(AbsentiaError, match="class_names must be"):
            ab.explain(total, X, absence=0.0, class_names=names)
        assert random.getstate() == before
