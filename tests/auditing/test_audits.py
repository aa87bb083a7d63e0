"""Audits as users call them: arguments, words, costs and mistakes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import absentia as ab
from absentia.learning.options import FAITHFUL
from audited_cases import METHODS, Keeps, OwnModel, samples
from known_games import cnn, mlp
from small_boosters import TWO, X
from typechecker import unchecked


@pytest.mark.slow
def test_an_audit_of_scores_is_a_share_of_their_variance():
    machine = LinearSVC().fit(X, TWO)
    by_class = ab.audit(machine, X, TWO, absences=["mean", "median"], data=X)
    assert by_class.curve.unit == "of the variance"
    # The classes of the samples tell no more than the score of one class for all of them does.
    of_one = ab.audit(machine, X, absences=["mean", "median"], readout=ab.Margin(1), data=X)
    torch.testing.assert_close(by_class.invention.value, of_one.invention.value)
    torch.testing.assert_close(by_class.leak.value, of_one.leak.value)
    assert by_class.recommended == of_one.recommended
    assert by_class.leak.value.tolist() == [0, 0]
    assert abs(float(by_class.invention.value[0])) < 0.05  # the mean's score is the mean score


def test_an_audit_of_scores_of_several_classes_takes_no_constant_for_a_leak():
    x, y = load_iris(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    audit = ab.audit(LinearSVC().fit(x, y), x, y, absences=["median", "zero"], data=x)
    assert audit.leak.value.tolist() == [0, 0]
    assert audit.recommended is not None


@pytest.mark.slow
def test_figures_do_not_depend_on_the_order_of_methods_or_on_other_methods():
    model = mlp(4)
    x = samples(6, 4)
    methods = {"zero": ab.Baseline(0.0), "rows": ab.Marginal(samples(20, 4, seed=1)), "keeps": Keeps()}
    one = ab.audit(model, x, None, methods, draws=3)
    other = ab.audit(model, x, None, dict(reversed(methods.items())), draws=3)
    alone = ab.audit(model, x, None, {"rows": methods["rows"]}, draws=3)
    for name, values in one.columns().items():
        if name not in ("seconds", "agreement", "wins"):
            assert torch.allclose(values, other.columns()[name].flip(0), equal_nan=True), name
            assert torch.allclose(values[1:2], alone.columns()[name], equal_nan=True), name


def test_a_seed_fixes_every_draw_and_more_draws_keep_the_first():
    model = mlp(4)
    x = samples(4, 4)
    first, again, other = (ab.audit(model, x, None, METHODS, draws=2, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.removal.masked, again.removal.masked)
    assert not torch.equal(first.removal.masked, other.removal.masked)
    more = ab.audit(model, x, None, METHODS, draws=4, seed=1)
    assert torch.equal(more.removal.masked[..., :2], first.removal.masked)
    assert not torch.equal(more.removal.noise[:, 0], more.removal.noise[:, 1])


def test_the_cost_is_what_the_model_saw(monkeypatch):
    seen = 0

    def model(rows):
        nonlocal seen
        seen += len(rows)
        return rows.prod(1)

    methods = {"zero": ab.Baseline(0.0), "rows": ab.Marginal(samples(40, 3, seed=1))}
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # else several numbers of threads are tried
    found = ab.audit(model, samples(5, 3), None, methods, draws=4)
    costs = {name: cost.evaluations for name, cost in found.record.costs.items()}
    # Each draw of R, the own game, a coalition of each size but the last, and ∅ once for all samples.
    assert costs == {"zero": 5 * (8 * (4 + 1) + 3) + 1, "rows": 5 * (8 * (4 + 40) + 3 * 40) + 40}
    # The samples' games and those of noise; whole samples beside ∅ and at the end of the curve.
    assert found.record.shared_cost.evaluations == 5 * (8 * 4 * 2 + 1 + 1)
    trials = 3 + 11 + 3  # of the evaluator, of the estimated time, and of the evaluator again
    assert seen == sum(costs.values()) + found.record.shared_cost.evaluations + trials
    assert found.record.evaluations == seen - trials
    assert not any("draws" in note for note in found.record.notes)


def test_images_tokens_frames_and_numpy_models_are_audited():
    pandas = pytest.importorskip("pandas")
    images = torch.rand(4, 1, 8, 8).double()
    grid = ab.Players.grid((1, 8, 8), cells=(2, 2))
    found = ab.audit(cnn(), images, [0, 1, 2, 0], {"blur": ab.Blur(1.0), "zero": ab.Baseline(0.0)}, players=grid)
    assert bool(torch.isfinite(found.R.value).all())
    assert "each sample's class" in found.record.readout

    embedding = torch.nn.Embedding(9, 3)
    tokens = torch.randint(0, 9, (5, 4))
    words = ab.Players.tokens(["not", "a", "bad", "film"])
    model = torch.nn.Sequential(embedding, torch.nn.Flatten(), torch.nn.Linear(12, 2))
    found = ab.audit(model, tokens, 1, {"pad": ab.Baseline(0)}, players=words, region=["not", "bad"])
    assert bool(torch.isfinite(found.R.value).all())
    assert any("tokens" in note for note in found.record.notes)

    frame = pandas.DataFrame(samples(6, 3).numpy(), columns=["age", "income", "debt"])
    model = ab.from_numpy(lambda rows: np.tanh(rows).prod(1))
    found = ab.audit(model, frame, None, METHODS, region=["debt", "age"], data=frame)
    assert found.players == ("age", "income", "debt")
    assert found.region == ("age", "debt")


def test_samples_that_the_model_does_not_respond_to_are_left_out():
    x = samples(6, 2)
    x[0] = -1.0
    data = samples(50, 2, seed=1)

    def model(rows):  # flat for the first sample's always-present entry
        return (rows[:, 0] * (rows[:, 1] > 0)).double()

    found = ab.audit(model, x, None, METHODS, region=[0], data=data)
    assert found.removal.kept.tolist() == [False] + [True] * 5
    assert found.removal.ratios.mean(-1).shape == (2, 5)
    assert "1 of 6 samples are left out of R: the model ignores their region." in found.notes_on_R


NONSENSE = {
    "an empty dict": ({"absences": {}}, "absences must be a mapping .* or a list .* Got {} instead"),
    "an empty list": ({"absences": []}, r"absences must be a mapping .* or a list .* Got \[\] instead"),
    "one word": ({"absences": "mean"}, "absences must be a mapping .* or a list .* Got 'mean' instead"),
    "one absence": ({"absences": ab.Baseline(0.0)}, "absences must be a mapping .* or a list .* Got Baseline"),
    "the same twice": ({"absences": ["mean", "mean"]}, "absences must have different names. Got 'mean' twice"),
    "y left out": ({"absences": None, "y": METHODS}, "Absences were passed in place of y.*absences=…"),
    "y left out of a list": ({"absences": None, "y": [ab.Baseline(0.0)]}, "Absences were passed in place of y"),
    "an unknown word": ({"absences": ["nothing"]}, "absence must be .*one of zero, mean.*Got 'nothing'"),
    "not an absence": (
        {"absences": {"zero": None}},
        "zero cannot be audited: absence must be an absence.*Got NoneType",
    ),
    "a truth value as absence": (
        {"absences": [True]},
        "True cannot be audited: absence must be an absence.*Got bool",
    ),
    "a class": ({"absences": {"blur": ab.Blur}}, "Got the class Blur instead. Call it."),
    "names that are the same as text": ({"absences": {1: 0.0, "1": 1.0}}, "have different names. Got '1' twice"),
    "an unknown player": ({"region": ["x0", "weight"]}, "region must hold players.*Got 'weight'"),
    "a player too far": ({"region": [4]}, "region must hold players.*Got 4"),
    "a truth value": ({"region": [True]}, "region must hold players.*Got True"),
    "an empty region": ({"region": []}, "region must name at least one player"),
    "a player twice": ({"region": ["x0", 0]}, "region must name each player once. Got 'x0' twice"),
    "one name": ({"region": "x0"}, r"region must be a list of players.*Pass \['x0'\]"),
    "no draws": ({"draws": 0}, "draws must be at least 1"),
    "too many players": ({"max_players": 30}, "max_players must lie between 1 and 24"),
    "a negative threshold": ({"tau": -1.0}, "tau must be at least 0"),
    "an unknown reference": (
        {"reference": "nothing"},
        "The reference cannot be used: absence must be .*Got 'nothing'",
    ),
    "no reference": ({"reference": None}, "The reference cannot be used: absence must be an absence"),
    "neighbours of the samples": ({"absences": ["neighbours"]}, "Each sample would be its own nearest row.*data=…"),
    "a reference with its own model": (
        {"reference": OwnModel()},
        "The reference cannot be used: It brings its own model",
    ),
    "other data": ({"data": torch.zeros(3, 5)}, "data must have rows of the shape of one sample"),
    "data with NaN": ({"data": torch.full((2, 4), math.nan)}, "data must be finite.*row 0"),
    "constant data": ({"data": torch.ones(5, 4)}, "data must vary in the region's entries"),
    "one sample without data": ({"x": samples(1, 4)}, "data must vary.*Pass data="),
    "a class that is not there": ({"y": 7}, "y must lie between 0 and 1"),
    "features": ({"readout": ab.Features("0")}, "readout must give one number for an audit"),
    "a misfit": ({"absences": {"b": ab.Baseline([1.0, 2.0])}}, "b cannot be audited: baseline must"),
    "a flat model": ({"model": lambda rows: rows[:, 0] * 0}, "The model does not respond to the region's players"),
    "infinite outputs": ({"model": lambda rows: rows[:, 0] / 0}, "model must give finite values"),
}


@pytest.mark.parametrize(("changes", "sentence"), NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_gets_a_sentence(changes, sentence):
    given_ = {"model": mlp(4), "x": samples(3, 4), "y": None, "absences": METHODS, "draws": 1} | changes
    with pytest.raises(ab.AbsentiaError, match=sentence):
        unchecked(ab.audit)(**given_)


@pytest.mark.slow
def test_the_usual_absences_are_audited_by_default():
    data = samples(50, 3, seed=1)
    found = ab.audit(mlp(3), samples(5, 3), draws=1, data=data)
    assert found.methods == ("zero", "mean", "median", "marginal", "gaussian")
    by_name = ab.audit(mlp(3), samples(5, 3), None, {"zero": 0.0, "mean": ab.Baseline.mean(data)}, draws=1, data=data)
    assert torch.equal(by_name.R.value, found.R.value[:2])
    images = torch.rand(4, 1, 8, 8).double()
    grid = ab.Players.grid((1, 8, 8), cells=(2, 2))
    assert "blur" in ab.audit(cnn(), images, [0, 1, 2, 0], players=grid, draws=1).methods


def test_absences_are_taken_by_word_number_and_list():
    x = samples(5, 3)
    data = samples(50, 3, seed=1)
    listed = ab.audit(mlp(3), x, None, ["mean", 0.5, ab.Baseline(0.1), "marginal:4"], draws=2, data=data)
    assert listed.methods == ("mean", "0.5", "Baseline(0.1)", "marginal:4")
    mapped = {"a": ab.Baseline.mean(data), "b": ab.Baseline(0.5), "c": 0.1, "d": ab.Marginal(data, draws=4)}
    named = ab.audit(mlp(3), x, None, mapped, draws=2, data=data)
    assert torch.equal(named.R.value, listed.R.value)
    assert named.record.absences["c"] == "Baseline(0.1)"
    word = ab.audit(mlp(3), x, None, ["mean"], draws=2, data=data, reference="mean")
    assert torch.equal(word.removal.masked, torch.zeros(1, 5, 2).double())
    assert word.record.reference == "mean"


class OneForEachClass:
    """An absence with one baseline for each class."""

    needs_classes = True

    def __init__(self, values):
        self.values = values

    def of(self, y):
        return ab.OwnBaselines(self.values[y])

    def bind(self, x):
        raise ab.AbsentiaError("Pick the classes first.")


def test_baselines_of_classes_are_audited_as_they_are_explained():
    x = samples(4, 3)
    y = ["no", "yes", "yes", "no"]
    baselines = samples(2, 3, seed=7)
    model = mlp(3, 2)
    method = OneForEachClass(baselines)
    options = {"class_names": ["no", "yes"], "draws": 2}
    found = ab.audit(model, x, y, {"class": method}, reference=method, **options)
    own = ab.OwnBaselines(baselines[torch.tensor([0, 1, 1, 0])])
    expected = ab.audit(model, x, y, {"class": own}, reference=own, **options)
    assert "yes" in found.record.readout
    assert torch.equal(found.removal.masked, torch.zeros(1, 4, 2).double())
    assert torch.equal(found.companions.shapley, expected.companions.shapley)
    assert torch.equal(found.R.value, expected.R.value)
    one_class = ab.audit(model, x, 1, {"class": method}, draws=1)
    assert torch.equal(one_class.R.value, ab.audit(model, x, 1, {"b": ab.Baseline(baselines[1])}, draws=1).R.value)
    # With a readout, y only chooses among the baselines.
    other = ab.audit(model, x, y, {"class": method}, readout=ab.Output(0), **options)
    assert torch.equal(other.R.value, ab.audit(model, x, None, {"own": own}, readout=ab.Output(0), draws=2).R.value)
    with pytest.raises(ab.AbsentiaError, match=r"y must hold one class for each of the 4 samples\. Got 3"):
        ab.audit(model, x, [0, 1, 1], {"class": method}, readout=ab.Output(0))
    with pytest.raises(ab.AbsentiaError, match="class cannot be audited: y must be given"):
        ab.audit(model, x, None, {"class": method})


@pytest.mark.slow
@pytest.mark.parametrize("own_data", [True, False])
def test_a_baseline_is_learned_by_word(own_data, monkeypatch):
    monkeypatch.setattr("absentia.learning.options.FAITHFUL", replace(FAITHFUL, steps=4))
    x = samples(24, 3)
    y = torch.arange(24) % 2
    data = None if own_data else samples(40, 3, seed=1)
    model = mlp(3, 2)
    found = ab.audit(model, x, y, ["learned", "mean"], data=data, draws=1)
    # The readout of the samples' classes fits the samples, and no other rows.
    learned = ab.learn_baseline(model, x, y) if own_data else ab.learn_baseline(model, data)
    expected = ab.audit(
        model, x, y, {"b": learned, "mean": ab.Baseline.mean(x if data is None else data)}, data=data, draws=1
    )
    assert found.methods == ("learned", "mean")
    assert torch.equal(found.R.value, expected.R.value)
    assert found.record.absences["learned"].startswith("LearnedBaseline")
