"""Types of arguments are checked where users call; numbers of other libraries are numbers."""

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
from torch.utils.data import TensorDataset

import absentia as ab
from absentia import AbsentiaError
from absentia.absences.words import named_absence
from absentia.data import as_tensor, seeded

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
            "game must be a game such as MaskedModel(…) or ValueTable(values). Got 3",
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
PLAYERS, EFFECTS = ab.Players.features(3), ab.harsanyi(ab.ValueTable(torch.rand(2, 8)))
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


def test_loading_an_imputer_draws_nothing(tmp_path):
    ab.train_imputer(X, epochs=1, progress=False).save(tmp_path / "imputer")
    before = torch.get_rng_state()
    ab.load(tmp_path / "imputer")
    assert torch.equal(torch.get_rng_state(), before)


def test_an_error_of_the_users_own_is_passed_on_as_it_is():
    class Failing:
        samples, names = 1, ("a", "b")

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


def test_numbers_of_numpy_are_absences_and_places_of_the_output():
    model = nn.Linear(3, 2)
    found = ab.explain(model, X, absence=np.float32(0.5), readout=ab.Output(np.int64(1)))
    assert torch.equal(found.outputs, ab.explain(model, X, absence=0.5, readout=ab.Output(1)).outputs)
    for number in (0.5, np.float32(0.5), torch.tensor(0.5)):  # as in a mapping of absences
        assert repr(named_absence(number)) == "Baseline(0.5)"
    assert repr(named_absence(np.str_("zero"))) == "Baseline(0)"


ARRAY = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    "array",
    [
        ARRAY[::-1, ::-1],
        ARRAY.astype(">f4"),
        ARRAY.astype(">i2"),
        ARRAY.astype(np.longdouble),
        ARRAY.astype("uint16"),
        ARRAY.astype("uint64"),
        ARRAY.astype("float16"),
        ARRAY.T,
        pd.DataFrame(ARRAY).convert_dtypes(),
        pd.DataFrame(ARRAY.astype("uint32")),
    ],
)
def test_arrays_of_any_layout_keep_their_numbers(array):
    expected = np.asarray(array, dtype=np.float64).tolist()
    assert as_tensor("x", array).tolist() == expected
    assert (
        ab.Baseline.median(array).values.tolist() == np.sort(np.array(expected), 0)[(len(expected) - 1) // 2].tolist()
    )


def scripted(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).eval()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TorchScript by torch
@pytest.mark.parametrize("compiled", [torch.jit.script, lambda model: torch.jit.freeze(torch.jit.script(model))])
def test_torchscript_is_a_model(compiled):
    model = compiled(scripted())
    expected = ab.explain(scripted(), X, absence=0.0).interactions.effects
    assert torch.allclose(ab.explain(model, X, absence=0.0).interactions.effects, expected, atol=1e-6)
    assert ab.learn_baseline(model, X, options=ab.LearningOptions(steps=1)).values.shape == (3,)
    with pytest.raises(AbsentiaError, match=r"model must be an nn.Module for the features of a layer"):
        ab.MaskedModel(model, X, absence=0.0, readout=ab.Features("0"))


def test_networks_that_end_in_a_rectifier_are_explained():
    torch.manual_seed(0)
    for model in (nn.Sequential(nn.Linear(10, 2), nn.ReLU()), nn.Sequential(nn.Linear(10, 2))):
        x = torch.rand(2, 10)
        found = ab.explain(model, x, absence=0.25, readout=ab.Output(1), batch_size=64)
        slow = ab.explain(lambda rows, model=model: model(rows), x, absence=0.25, readout=ab.Output(1))
        assert torch.allclose(found.interactions.effects, slow.interactions.effects, atol=1e-5)


def test_what_was_computed_in_inference_mode_does_not_break_learning():
    model = nn.Linear(3, 2)
    with torch.inference_mode():
        x = torch.rand(8, 3)
        ab.explain(model, x, 0, absence=0.0)
    for loss in ("faithful", "interactions", "shapley", "marginal"):
        found = ab.learn_baseline(model, x, [0, 1] * 4, loss=loss, options=ab.LearningOptions(steps=1))
        assert found.values.isfinite().all()


def test_class_names_are_different_and_of_any_kind_of_list(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    names = np.array(["no", "yes"])
    assert ab.LogOdds("yes", names).y == ab.LogOdds("yes", pd.Series(names)).y == 1
    with pytest.raises(AbsentiaError, match=r"class_names must name each class once. Got"):
        ab.LogOdds("no", ["no", "no"])


def test_a_dataset_without_classes_and_rows_of_low_precision_are_learned_from():
    options = ab.LearningOptions(steps=1)
    assert ab.learn_baseline(nn.Linear(3, 1), TensorDataset(X), options=options).values.shape == (3,)
    model = nn.Linear(3, 1).bfloat16()
    assert ab.learn_baseline(model, X.bfloat16(), options=options).values.isfinite().all()


def test_trained_absences_do_not_depend_on_torchs_default_type():
    def train():
        imputer = ab.train_imputer(X, epochs=1, progress=False)
        surrogate = ab.train_surrogate(total, X, epochs=1, progress=False, network=nn.Linear(6, 1))
        model = nn.Linear(3, 1)
        return [ab.explain(model, X.to(model.weight), absence=one).outputs for one in (imputer, surrogate)]

    torch.manual_seed(0)
    usual = train()
    try:
        torch.set_default_dtype(torch.float64)
        assert [one.shape for one in train()] == [one.shape for one in usual]
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_network_that_is_given_for_a_surrogate_is_not_changed():
    network = nn.Linear(6, 1).double()
    ab.train_surrogate(total, X, epochs=1, progress=False, network=network)
    assert network.weight.dtype == torch.float64


def test_a_covariance_of_too_many_entries_gets_a_sentence():
    with pytest.raises(
        AbsentiaError, match=r"data must have at most 8,192 entries in a row. Got 150,528 instead. Use an"
    ):
        ab.GaussianConditional(torch.zeros(2, 3, 224, 224))


def test_any_whole_number_is_a_seed():
    draws = [torch.rand(3, generator=seeded(seed)).tolist() for seed in (2**80, -(2**80), 2**63, -1, 0)]
    assert len({tuple(one) for one in draws}) == 5


def test_a_tensor_where_numbers_may_be_listed_keeps_its_gradient():
    values = torch.zeros(3, requires_grad=True)
    assert ab.Baseline(values).values is values


def test_a_failed_check_leaves_the_random_state_as_it_was(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    before = random.getstate()
    for names in (np.array(1), 3):
        with pytest.raises(AbsentiaError, match="class_names must be"):
            ab.explain(total, X, absence=0.0, class_names=names)
        assert random.getstate() == before
