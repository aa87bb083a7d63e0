"""Estimators of scikit-learn: probabilities, votes and scores."""

import numpy as np
import pandas as pd
import pytest
import torch
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import Perceptron, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import absentia as ab
from absentia.models.adapters import as_model
from absentia.readout_notes import ReadoutNote, Subject
from fitted_table import CLASSES, TRAINING_TABLE, log_odds
from small_boosters import THREE, TWO, X, lgb, note, outputs, own_loss, xgb

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
    given = estimator.predict_proba(x)
    model = as_model(estimator)
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


SCORES = {
    "SVC": lambda: SVC().fit(X, TWO),
    "LinearSVC": lambda: LinearSVC().fit(X, TWO),
    "SGD": lambda: SGDClassifier(loss="hinge", random_state=0).fit(X, TWO),
    "ridge": lambda: RidgeClassifier().fit(X, TWO),
    "perceptron": lambda: Perceptron(random_state=0).fit(X, TWO),
    "several": lambda: LinearSVC().fit(X, THREE),
    "pipeline": lambda: make_pipeline(StandardScaler(), LinearSVC()).fit(X, TWO),
    "XGBoost hinge": lambda: xgb(objective="binary:hinge"),
    "XGBoost hinge Booster": lambda: xgb(objective="binary:hinge").get_booster(),
    "XGBoost own": lambda: xgb(objective=own_loss),
    "LightGBM own": lambda: lgb(objective=own_loss),
    "LightGBM ova": lambda: lgb(THREE, objective="multiclassova"),
    "LightGBM ova Booster": lambda: lgb(THREE, objective="multiclassova").booster_,
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_that_are_no_log_odds_are_named_scores(name):
    model = SCORES[name]()
    y = TWO[:40]
    explanation = ab.explain(model, X[:40], y, absence=0.0)
    assert explanation.record.readout.startswith("score of each sample's class (")
    assert explanation.record.values[0].startswith("score of ")
    for kind in (ab.LogOdds, ab.Probability):
        with pytest.raises(ab.AbsentiaError, match=r"Got scores instead\. Use readout=Margin\(y\)"):
            ab.explain(model, X[:40], readout=kind(y), absence=0.0)


def test_margins_are_the_scores_as_they_are():
    machine = LinearSVC().fit(X, TWO)
    scores = machine.decision_function(X[:40])
    np.testing.assert_allclose(outputs(machine, readout=ab.Margin(1)), scores)
    np.testing.assert_allclose(outputs(machine, readout=ab.Margin(0)), -scores)
    several = LinearSVC().fit(X, THREE)
    for number in range(3):
        found = outputs(several, readout=ab.Margin(number))
        np.testing.assert_allclose(found, several.decision_function(X[:40])[:, number])
    own = lgb(objective=own_loss)
    np.testing.assert_allclose(outputs(own, readout=ab.Margin(1)), own.predict(X[:40], raw_score=True))
    hinge = xgb(objective="binary:hinge")
    by_xgboost = hinge.predict(X[:40], output_margin=True)  # XGBoost adds leaves up in single precision
    np.testing.assert_allclose(outputs(hinge, readout=ab.Margin(1)), by_xgboost, rtol=1e-5)


def test_scores_without_classes_given():
    labels = np.where(TWO == 1, "yes", "no")
    assert note(LinearSVC().fit(X, labels)) == "score of class yes"
    assert note(LinearSVC().fit(X, THREE)).startswith("score of the class predicted on the full sample (")
    assert note(IsolationForest(n_estimators=3, random_state=0).fit(X)) == "the output as it is"
    assert note(xgb().get_booster()) == "log-odds of class 1"
    score = ReadoutNote(Subject.OWN_CLASSES, "score", classes=("0",))
    assert score.is_same_kind(ReadoutNote(Subject.PREDICTED_CLASSES, "score", classes=("1",)))
    assert not score.is_same_kind(ReadoutNote(Subject.OWN_CLASSES, "log-odds", classes=("0",)))


@pytest.mark.slow
def test_a_baseline_is_learned_for_scores():
    machine = LinearSVC().fit(X, TWO)
    options = ab.LearningOptions(samples=32, steps=3)
    learned = ab.learn_baseline(machine, X, readout=ab.Margin(TWO), options=options)
    assert learned.record.readout.startswith("score of each sample's class (")
    explained = ab.explain(machine, X[:3], TWO[:3], absence=learned)
    assert not [line for line in explained.record.notes if "another value" in line]


@pytest.mark.parametrize("combine", ["stacking", "voting by weight"])
def test_probabilities_of_weighted_trees_are_not_taken_for_shares(combine):
    trees = [("a", DecisionTreeClassifier(random_state=0)), ("b", ExtraTreeClassifier(random_state=0))]
    weighted = VotingClassifier(trees, voting="soft", weights=[1, 999])
    made = (StackingClassifier(trees) if combine == "stacking" else weighted).fit(TRAINING_TABLE, CLASSES)
    others = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 2)), columns=["a", "b"])
    rows = others[~np.isin(made.predict_proba(others), (0, 1)).any(1)][:5]  # on which the trees do not agree
    assert len(rows) == 5
    assert np.allclose(ab.explain(made, rows, 1, absence=0.0).outputs.numpy(), log_odds(made, rows))


def test_neighbours_within_a_radius_have_no_number():
    made = RadiusNeighborsClassifier(radius=9.0).fit(TRAINING_TABLE, CLASSES)
    assert np.allclose(
        ab.explain(made, TRAINING_TABLE[:2], 1, absence=0.0).outputs.numpy(), log_odds(made, TRAINING_TABLE[:2])
    )


def test_scores_of_pairs_of_classes_are_refused():
    classes = np.arange(200) % 3
    with pytest.raises(ab.AbsentiaError, match=r"estimator must have one score for each class"):
        ab.explain(
            SVC(decision_function_shape="ovo").fit(TRAINING_TABLE, classes), TRAINING_TABLE[:1], 1, absence=0.0
        )
    ab.explain(SVC().fit(TRAINING_TABLE, classes), TRAINING_TABLE[:1], 1, absence=0.0)


def test_columns_with_spaces_are_those_that_lightgbm_names_with_underscores():
    frame = pd.DataFrame(X, columns=["mean radius", "b", "c", "d"])
    model = LGBMClassifier(n_estimators=3, verbose=-1).fit(frame, TWO)
    assert ab.explain(model, frame[:2], absence="mean", data=frame).names == tuple(frame.columns)
    with pytest.raises(ab.AbsentiaError, match="have the columns of the fit"):
        ab.explain(model, frame[["b", "mean radius", "c", "d"]][:2], absence=0.0)


class WithoutClasses:
    """A regressor that has an empty list of classes, as CatBoost's."""

    classes_ = np.array([])

    def fit(self, x, y):
        return self

    def predict(self, x):
        return np.asarray(x).sum(1)


def test_a_regressor_may_have_an_empty_list_of_classes():
    x = np.random.default_rng(0).normal(size=(3, 4))
    explanation = ab.explain(WithoutClasses(), x, absence="zero")
    np.testing.assert_allclose(explanation.shapley.values.numpy(), x, atol=1e-6)


@pytest.mark.parametrize("columns", [3, 5])
@pytest.mark.parametrize("booster", [lambda: xgb().get_booster(), lambda: lgb().booster_])
def test_a_booster_names_the_columns_of_its_fit(booster, columns):
    with pytest.raises(ab.AbsentiaError, match=rf"x must have the 4 columns of the fit\. Got shape \({columns},\)"):
        ab.explain(booster(), np.zeros((2, columns)), 1, absence="zero")


TARGETS = np.stack([TWO, THREE], axis=1)
OF_TWO_TARGETS = [RandomForestClassifier(3), DecisionTreeClassifier(), KNeighborsClassifier()]


@pytest.mark.parametrize("estimator", OF_TWO_TARGETS, ids=lambda estimator: type(estimator).__name__)
def test_a_classifier_of_several_targets_is_explained_one_at_a_time(estimator):
    estimator.fit(X, TARGETS)
    with pytest.raises(
        ab.AbsentiaError, match=r"estimator must have one output.*Got 2 outputs.*one output at a time"
    ):
        ab.explain(estimator, X[:2], absence=0.0)
    with pytest.raises(ab.AbsentiaError, match=r"a list of 2 outputs of different shapes.*one output at a time"):
        ab.explain(ab.from_numpy(estimator.predict_proba, probabilities=True), X[:2], absence=0.0)
    # What the messages say to do.
    of_second = ab.from_numpy(lambda rows: estimator.predict_proba(rows)[1], probabilities=True)
    assert ab.explain(of_second, X[:2], absence=0.0, readout=ab.LogOdds(2)).outputs.shape == (2,)
