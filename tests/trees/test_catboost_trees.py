"""The trees of CatBoost, where it is installed, predict as it does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.trees.ensemble import UnreadableTreesError
from absentia.trees.reading import Link, read_trees
from tree_rows import assert_read, edge_rows, table, targets

catboost = pytest.importorskip("catboost")

RANDOM = np.random.default_rng(0)
X = table(RANDOM, 150)
NUMBERS = targets(X, RANDOM, 0)
TWO = targets(X, RANDOM, 2)
THREE = targets(X, RANDOM, 3)
FEW = {"iterations": 5, "verbose": False, "allow_writing_files": False, "thread_count": 1}
SEEDS = st.integers(0, 2**31 - 1)


def check(model, random=RANDOM, missing=True):
    """Check a model on rows at its thresholds."""
    rows = edge_rows(read_trees(model).ensemble, random, missing=missing)
    return assert_read(model, rows)


@pytest.mark.slow
@given(
    SEEDS,
    st.sampled_from([0, 2, 3, 5]),
    st.integers(1, 4),
    st.sampled_from(["SymmetricTree", "Depthwise", "Lossguide"]),
    st.sampled_from(["Min", "Max"]),
)
def test_reading_predicts_as_catboost(seed, classes, depth, policy, nan_mode):
    random = np.random.default_rng(seed)
    x = table(random)
    kind = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
    model = kind(**FEW, depth=depth, grow_policy=policy, nan_mode=nan_mode, random_seed=seed)
    reading = check(model.fit(x, targets(x, random, classes)), random)
    assert reading.ensemble.outputs == (classes if classes > 2 else 1)
    assert reading.link is (Link.LOG_ODDS_OR_LOGITS if classes else Link.IDENTITY)
    assert reading.columns == ()


@pytest.mark.parametrize(
    ("loss", "link"),
    [
        ("RMSE", Link.IDENTITY),
        ("MAE", Link.IDENTITY),
        ("Quantile:alpha=0.8", Link.IDENTITY),
        ("Huber:delta=1", Link.IDENTITY),
        ("Poisson", Link.OTHER),
        ("Tweedie:variance_power=1.5", Link.OTHER),
        ("LogLinQuantile", Link.OTHER),
        ("RMSEWithUncertainty", Link.OTHER),
    ],
)
def test_losses_of_regressors_have_their_link(loss, link):
    model = catboost.CatBoostRegressor(**FEW, loss_function=loss).fit(X, np.exp(NUMBERS))
    reading = check(model)
    assert reading.link is link
    if link is Link.IDENTITY:
        np.testing.assert_allclose(reading.ensemble.predict(X)[:, 0], model.predict(X), rtol=1e-12)


def test_other_models():
    ova = catboost.CatBoostClassifier(**FEW, loss_function="MultiClassOneVsAll").fit(X, THREE)
    assert check(ova).link is Link.SCORES
    plain = catboost.CatBoost({**FEW, "loss_function": "Logloss"}).fit(X, TWO)
    assert check(plain).link is Link.LOG_ODDS_OR_LOGITS
    assert check(catboost.CatBoost({**FEW, "loss_function": "RMSE"}).fit(X, NUMBERS)).link is Link.IDENTITY
    stopped = catboost.CatBoostClassifier(**{**FEW, "iterations": 100}, learning_rate=0.9)
    stopped.fit(X[:100], TWO[:100], eval_set=(X[100:], TWO[100:]), early_stopping_rounds=3)
    assert len(check(stopped).ensemble.roots) == stopped.tree_count_ < 100
    several = catboost.CatBoostRegressor(**FEW, loss_function="MultiRMSE").fit(X, np.stack([NUMBERS, TWO], 1))
    assert check(several).ensemble.outputs == 2
    several.set_scale_and_bias(0.5, [1.0, 2.0])
    check(several)
    assert read_trees(catboost.CatBoostClassifier()) is None
    assert read_trees(catboost.CatBoostRegressor()) is None
    assert read_trees(catboost.CatBoost()) is None


def test_names_and_categories():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    assert check(catboost.CatBoostRegressor(**FEW).fit(frame, NUMBERS)).columns == ("a", "b", "c", "d")
    frame["b"] = np.where(frame["b"] > 0, "yes", "no")
    model = catboost.CatBoostRegressor(**FEW, cat_features=["b"]).fit(frame, NUMBERS + (frame["b"] == "yes"))
    with pytest.raises(UnreadableTreesError, match="hashes"):
        read_trees(model)


@pytest.mark.parametrize(("loss", "y"), [("Logloss", TWO), ("MultiClass", THREE), ("MultiClassOneVsAll", THREE)])
def test_a_plain_model_of_classes_is_explained_as_the_classifier(loss, y):
    settings = {**FEW, "loss_function": loss, "random_seed": 0, "learning_rate": 0.5}
    plain = catboost.CatBoost(settings).fit(X, y)
    classifier = catboost.CatBoostClassifier(**settings).fit(X, y)
    rows = np.nan_to_num(X[:5])
    of_plain, of_classifier = (
        ab.explain(model, rows, 1, absence=0.0, readout=ab.Logit(1)) for model in (plain, classifier)
    )
    assert of_plain.record.evaluations == 0
    assert of_classifier.outputs.abs().max() > 0.1
    np.testing.assert_allclose(of_plain.outputs, of_classifier.outputs)
    np.testing.assert_allclose(of_plain.shapley.values, of_classifier.shapley.values)
    if loss == "Logloss":
        np.testing.assert_allclose(ab.explain(plain, rows, 1, absence=0.0).outputs, plain.predict(rows))
