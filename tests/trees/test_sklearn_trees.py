"""The trees and forests of scikit-learn, and boosting by them, predict as it does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from absentia.trees.ensemble import UnreadableTreesError
from absentia.trees.reading import Link, read_trees, verify
from tree_rows import assert_read, edge_rows, table, targets

RANDOM = np.random.default_rng(0)
X = table(RANDOM, 150, missing=0)
NUMBERS = targets(X, RANDOM, 0)
TWO = targets(X, RANDOM, 2)
THREE = targets(X, RANDOM, 3)
SEEDS = st.integers(0, 2**32 - 1)


def check(model, random=RANDOM, missing=False):
    """Check a model on rows at its thresholds; scikit-learn refuses infinite values."""
    rows = edge_rows(read_trees(model).ensemble, random, missing=missing, infinite=False)
    return assert_read(model, rows)


SINGLE = {
    "tree": (DecisionTreeClassifier, DecisionTreeRegressor),
    "extra tree": (ExtraTreeClassifier, ExtraTreeRegressor),
}
FORESTS = {
    "random forest": (RandomForestClassifier, RandomForestRegressor),
    "extra trees": (ExtraTreesClassifier, ExtraTreesRegressor),
    "bagging": (BaggingClassifier, BaggingRegressor),
}


@given(SEEDS, st.sampled_from(sorted(SINGLE | FORESTS)), st.integers(0, 4), st.booleans(), st.booleans())
def test_reading_predicts_as_scikit_learn(seed, kind, classes, missing, rounded):
    random = np.random.default_rng(seed)
    x = table(random, missing=0.1 if missing else 0, rounded=rounded)
    classifier, regressor = (SINGLE | FORESTS)[kind]
    settings = {"random_state": seed} if kind in SINGLE else {"random_state": seed, "n_estimators": 6}
    model = (classifier if classes else regressor)(**settings)
    model.fit(x, targets(x, random, classes), sample_weight=random.random(len(x)))
    reading = check(model, random, missing)
    assert reading.ensemble.outputs == max(classes, 1)
    assert reading.link is (Link.PROBABILITIES if classes else Link.IDENTITY)


@pytest.mark.parametrize("settings", [{"max_leaf_nodes": 6}, {"max_depth": 1}, {"max_depth": 4, "ccp_alpha": 0.01}])
def test_other_ways_to_grow(settings):
    check(DecisionTreeRegressor(**settings).fit(X, NUMBERS))
    check(RandomForestClassifier(5, **settings).fit(X, THREE))
    check(RandomForestRegressor(5, criterion="poisson", **settings).fit(X, np.exp(NUMBERS)))
    check(ExtraTreesRegressor(5, criterion="absolute_error", **settings).fit(X, NUMBERS))
    check(RandomForestClassifier(5, monotonic_cst=[1, 0, 0, -1], **settings).fit(X, TWO))


def test_trees_of_a_single_leaf():
    reading = check(DecisionTreeRegressor().fit(X, np.full(len(X), 2.5)))
    assert (reading.ensemble.nodes.column < 0).all()
    check(RandomForestClassifier(3).fit(X, np.zeros(len(X), int)))


@pytest.mark.parametrize(
    "model", [DecisionTreeRegressor(max_depth=4), RandomForestRegressor(5), ExtraTreesRegressor(5)]
)
def test_several_targets(model):
    reading = check(model.fit(X, np.stack([NUMBERS, TWO, THREE], 1)))
    assert reading.ensemble.outputs == 3
    assert reading.link is Link.IDENTITY


def test_several_targets_of_classes_cannot_be_read():
    model = RandomForestClassifier(3).fit(X, np.stack([TWO, THREE], 1))
    with pytest.raises(UnreadableTreesError, match=r"one target\. Got 2"):
        read_trees(model)


@given(SEEDS, st.integers(0, 4), st.booleans(), st.booleans())
def test_bagging_of_some_columns_and_few_rows(seed, classes, repeated, few):
    random = np.random.default_rng(seed)
    x = table(random, missing=0)
    settings = {"max_features": 3, "bootstrap_features": repeated, "random_state": seed, "n_estimators": 5}
    settings["max_samples"] = 3 if few else 0.7  # with three rows, trees know only some classes
    model = (BaggingClassifier if classes else BaggingRegressor)(**settings)
    check(model.fit(x, targets(x, random, classes)), random)


def test_bagging_of_other_models_is_not_read():
    assert read_trees(BaggingClassifier(LogisticRegression(), 3).fit(X, TWO)) is None
    assert read_trees(BaggingClassifier(DecisionTreeRegressor(), 3).fit(X, TWO)) is None


@given(SEEDS, st.sampled_from([0, 2, 3, 5]), st.integers(1, 4), st.sampled_from([None, "zero"]))
def test_gradient_boosting(seed, classes, depth, init):
    random = np.random.default_rng(seed)
    x = table(random, missing=0)
    kind = GradientBoostingClassifier if classes else GradientBoostingRegressor
    model = kind(n_estimators=5, max_depth=depth, learning_rate=0.5, subsample=0.8, init=init, random_state=seed)
    reading = check(model.fit(x, targets(x, random, classes)), random)
    assert reading.ensemble.outputs == (classes if classes > 2 else 1)
    assert reading.link is (Link.LOG_ODDS_OR_LOGITS if classes else Link.IDENTITY)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_losses_of_gradient_boosting_regressors(loss):
    assert check(GradientBoostingRegressor(n_estimators=5, loss=loss).fit(X, NUMBERS)).link is Link.IDENTITY


def test_other_starts_of_gradient_boosting():
    check(GradientBoostingClassifier(n_estimators=5, loss="exponential").fit(X, TWO))
    check(GradientBoostingRegressor(n_estimators=5, init=DummyRegressor(strategy="median")).fit(X, NUMBERS))
    early = GradientBoostingClassifier(n_estimators=100, n_iter_no_change=3, random_state=0).fit(X, THREE)
    assert len(check(early).ensemble.roots) == 3 * early.n_estimators_ < 300
    for model in (
        GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, NUMBERS),
        GradientBoostingClassifier(n_estimators=2, init=DummyClassifier(strategy="stratified")).fit(X, TWO),
    ):
        with pytest.raises(UnreadableTreesError, match=r"must start from a constant\. Got "):
            read_trees(model)


@given(SEEDS, st.sampled_from([1.0, 2, 3]), st.sampled_from([1, 2, 3, 40, "auto"]))
def test_isolation_forests(seed, features, samples):
    random = np.random.default_rng(seed)
    x = table(random, missing=0)
    model = IsolationForest(n_estimators=8, max_features=features, max_samples=samples, random_state=seed)
    reading = check(model.fit(x), random)
    assert reading.link is Link.MEAN_DEPTH
    assert reading.ensemble.outputs == 1


def test_names_of_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    for model in (
        DecisionTreeRegressor().fit(frame, NUMBERS),
        RandomForestClassifier(3).fit(frame, THREE),
        GradientBoostingClassifier(n_estimators=3).fit(frame, TWO),
    ):
        reading = read_trees(model)
        assert reading.columns == ("a", "b", "c", "d")
        assert verify(reading, X, frame) is None
        assert verify(reading, X) is None


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        RandomForestRegressor(),
        GradientBoostingClassifier(),
        IsolationForest(),
        BaggingClassifier(),
    ],
)
def test_unfitted_models_are_not_read(model):
    assert read_trees(model) is None


def test_unknown_forms_have_a_clear_error():
    model = RandomForestRegressor(3).fit(X, NUMBERS)
    del model.n_features_in_
    with pytest.raises(UnreadableTreesError, match=r"unknown form \(AttributeError"):
        read_trees(model)
