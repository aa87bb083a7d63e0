"""The trees of LightGBM predict as it does."""

import copy

import lightgbm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from absentia.trees.ensemble import UnreadableTreesError
from absentia.trees.reading import Link, read_trees, verify
from tree_rows import assert_read, edge_rows, table, targets, with_categories

RANDOM = np.random.default_rng(0)
X = table(RANDOM, 150)
NUMBERS = targets(X, RANDOM, 0)
TWO = targets(X, RANDOM, 2)
THREE = targets(X, RANDOM, 3)
FEW = {"n_estimators": 6, "num_leaves": 7, "min_child_samples": 3, "n_jobs": 1, "verbose": -1}
FOREST = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
SEEDS = st.integers(0, 2**32 - 1)


def check(model, random=RANDOM, **settings):
    """Check a model on rows at its thresholds."""
    rows = edge_rows(read_trees(model).ensemble, random, **settings)
    return assert_read(model, rows)


@pytest.mark.slow
@given(
    SEEDS,
    st.sampled_from([0, 2, 3, 5]),
    st.integers(2, 12),
    st.sampled_from([{}, {"boosting_type": "dart", "drop_rate": 0.5}, FOREST, {"extra_trees": True}]),
    st.sampled_from([{}, {"use_missing": False}, {"zero_as_missing": True}]),
    st.booleans(),
    st.sampled_from([0.0, 0.1]),
)
def test_reading_predicts_as_lightgbm(seed, classes, leaves, boosting, missing_values, rounded, missing):
    random = np.random.default_rng(seed)
    x = table(random, 120, missing=missing, rounded=rounded)
    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    settings = {**FEW, "num_leaves": leaves, "random_state": seed % 1000, **boosting, **missing_values}
    model = kind(**settings).fit(x, targets(x, random, classes), sample_weight=random.random(len(x)) + 0.5)
    for fitted in (model, model.booster_):
        reading = check(fitted, random)
        assert reading.ensemble.outputs == (classes if classes > 2 else 1)
        assert reading.link is (Link.LOG_ODDS_OR_LOGITS if classes else Link.IDENTITY)
        assert reading.columns == ()


@pytest.mark.slow
@given(SEEDS, st.sampled_from([1.0, 1e-34, 1e-36]))
def test_zeros_that_stand_for_missing_values(seed, scale):
    random = np.random.default_rng(seed)
    x = table(random, 120, rounded=True) * scale
    x[random.random(x.shape) < 0.3] = 0
    model = lightgbm.LGBMRegressor(**FEW, zero_as_missing=True, learning_rate=1.0)
    check(model.fit(x, targets(x / scale, random, 0)), random)


@pytest.mark.slow
@given(SEEDS, st.sampled_from([0, 3]), st.integers(1, 8))
def test_categories_as_numbers(seed, classes, one_hot):
    random = np.random.default_rng(seed)
    x = with_categories(table(random, 150), random, {0: 9, 2: 3})
    y = (x[:, 0] % 3 == 1) * 1 + (classes > 0) * (x[:, 2] == 1) + (classes == 0) * targets(x, random, 0)
    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    settings = {"max_cat_to_onehot": one_hot, "min_data_per_group": 5, "cat_smooth": 1}
    model = kind(**FEW, **settings).fit(x, y, categorical_feature=[0, 2])
    check(model, random)


def test_categories_of_pandas_are_read_by_their_codes():
    x = with_categories(X, RANDOM, {0: 4, 2: 7})
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    for column, letters in (("a", "wxyz"), ("c", "abcdefg")):
        codes = frame[column].fillna(-1).astype(int)
        frame[column] = pd.Categorical.from_codes(codes, list(letters))
    settings = {"min_data_per_group": 5, "cat_smooth": 1}
    model = lightgbm.LGBMRegressor(**FEW, **settings).fit(frame, NUMBERS + 2 * (x[:, 0] == 1))
    reading = assert_read(model, x, frame)
    np.testing.assert_array_equal(reading.rows_of(frame), x)
    np.testing.assert_array_equal(reading.rows_of(x), x)
    assert reading.columns == ("a", "b", "c", "d")
    assert reading.ensemble.categorical.any()
    assert verify(reading, x) is None  # codes as numbers
    frame["a"] = frame["a"].cat.reorder_categories(list("zyxw"))
    np.testing.assert_array_equal(reading.rows_of(frame), x)
    with pytest.raises(UnreadableTreesError, match="must have 2 columns of categories"):
        reading.rows_of(frame.astype({"b": "category"}))


@pytest.mark.parametrize(
    ("objective", "of_regressor", "of_booster"),
    [
        ("regression", Link.IDENTITY, Link.IDENTITY),
        ("regression_l1", Link.IDENTITY, Link.IDENTITY),
        ("huber", Link.IDENTITY, Link.IDENTITY),
        ("fair", Link.IDENTITY, Link.IDENTITY),
        ("quantile", Link.IDENTITY, Link.IDENTITY),
        ("mape", Link.IDENTITY, Link.IDENTITY),
        ("poisson", Link.LOG, Link.LOG),
        ("gamma", Link.LOG, Link.LOG),
        ("tweedie", Link.LOG, Link.LOG),
        ("cross_entropy", Link.OTHER, Link.LOG_ODDS_OR_LOGITS),
        ("cross_entropy_lambda", Link.OTHER, Link.OTHER),
        ("binary", Link.OTHER, Link.LOG_ODDS_OR_LOGITS),
    ],
)
@pytest.mark.parametrize("boosting", [{}, FOREST], ids=["boosted", "forest"])
def test_losses_have_their_link(objective, of_regressor, of_booster, boosting):
    needs_shares = objective in ("binary", "cross_entropy", "cross_entropy_lambda")
    y = TWO if needs_shares else np.exp(NUMBERS) + 1
    model = lightgbm.LGBMRegressor(**FEW, **boosting, objective=objective).fit(X, y)
    reading = check(model)
    assert reading.link is of_regressor
    if of_regressor is Link.IDENTITY:
        np.testing.assert_allclose(reading.ensemble.predict(X)[:, 0], model.predict(X), rtol=1e-12)
    if of_regressor is Link.LOG:
        np.testing.assert_allclose(np.exp(reading.ensemble.predict(X)[:, 0]), model.predict(X), rtol=1e-9)
    assert check(model.booster_).link is of_booster


def test_roots_are_squared_in_predictions():
    assert check(lightgbm.LGBMRegressor(**FEW, reg_sqrt=True).fit(X, NUMBERS)).link is Link.OTHER


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_raw_outputs_of_a_random_forest_give_its_probabilities(y):
    model = lightgbm.LGBMClassifier(**FEW, **FOREST).fit(X, y)
    raw = check(model).ensemble.predict(X)
    logits = np.concatenate([np.zeros_like(raw), raw], axis=1) if y is TWO else raw
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(shares, model.predict_proba(X), rtol=1e-9)


def test_other_losses_of_classifiers():
    ova = lightgbm.LGBMClassifier(**FEW, objective="multiclassova").fit(X, THREE)
    assert check(ova).link is Link.SCORES
    assert check(ova.booster_).link is Link.SCORES
    steep = lightgbm.LGBMClassifier(**FEW, sigmoid=2.0).fit(X, TWO)
    assert check(steep).link is Link.LOG_ODDS_OR_LOGITS

    def own_loss(truth, predicted):
        shares = 1 / (1 + np.exp(-predicted))
        return shares - truth, shares * (1 - shares)

    assert check(lightgbm.LGBMClassifier(**FEW, objective=own_loss).fit(X, TWO)).link is Link.SCORES
    assert check(lightgbm.LGBMRegressor(**FEW, objective=own_loss).fit(X, TWO)).link is Link.IDENTITY


def test_ranking():
    model = lightgbm.LGBMRanker(**FEW).fit(X, TWO, group=[10] * 15)
    assert check(model).link is Link.IDENTITY


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_trees_end_at_the_best_iteration(y):
    settings = {"objective": "multiclass", "num_class": y.max() + 1, "min_data_in_leaf": 3, "verbose": -1}
    data = lightgbm.Dataset(X[:100], y[:100])
    stop = lightgbm.early_stopping(3, verbose=False)
    evaluated = lightgbm.Dataset(X[100:], y[100:], reference=data)
    # Without this setting, LightGBM forgets the later trees.
    booster = lightgbm.train(
        {**settings, "learning_rate": 0.5},
        data,
        80,
        [evaluated],
        callbacks=[stop],
        keep_training_booster=True,
    )
    assert booster.current_iteration() > booster.best_iteration > 0
    assert len(check(booster).ensemble.roots) == booster.best_iteration * (y.max() + 1)


def test_trees_of_a_single_leaf_and_stumps():
    constant = lightgbm.LGBMRegressor(**FEW).fit(X, np.full(len(X), 2.5))
    assert (check(constant).ensemble.nodes.column < 0).all()
    check(lightgbm.LGBMClassifier(**{**FEW, "num_leaves": 2}).fit(X, THREE))


def test_names_of_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    reading = read_trees(lightgbm.LGBMRegressor(**FEW).fit(frame, NUMBERS))
    assert reading.columns == ("a", "b", "c", "d")
    assert verify(reading, X, frame) is None
    assert verify(reading, X) is None


def test_linear_trees_cannot_be_read():
    model = lightgbm.LGBMRegressor(**FEW, linear_tree=True).fit(X, NUMBERS)
    with pytest.raises(UnreadableTreesError, match="linear trees are functions"):
        read_trees(model)
    assert read_trees(lightgbm.LGBMRegressor()) is None


class Damaged(lightgbm.Booster):
    """A booster whose dump is changed."""

    def __init__(self, booster, change):
        super().__init__(model_str=booster.model_to_string())
        self.change = change

    def dump_model(self, *arguments, **settings):
        dump = copy.deepcopy(super().dump_model(*arguments, **settings))
        self.change(dump)
        return dump


def root(dump):
    return dump["tree_info"][0]["tree_structure"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda dump: dump.pop("tree_info"), r"unknown form \(KeyError: 'tree_info'"),
        (lambda dump: root(dump).pop("left_child"), r"unknown form \(KeyError: 'left_child'"),
        (lambda dump: root(dump).update(left_child={}), r"unknown form \(KeyError: 'leaf_value'"),
        (lambda dump: root(dump).update(left_child=3), r"unknown form \(TypeError"),
        (lambda dump: root(dump).update(threshold="none"), r"unknown form \(ValueError"),
        (lambda dump: root(dump).update(decision_type=">"), "splits by '>' are not known"),
        (lambda dump: root(dump).update(missing_type="One"), "type 'One' are not known"),
        (lambda dump: root(dump).update(split_feature=17), "one of 4 columns"),
        (lambda dump: dump["tree_info"].clear(), "at least one tree"),
    ],
)
def test_damaged_trees_have_a_clear_error(change, message):
    booster = lightgbm.LGBMRegressor(**FEW).fit(X, NUMBERS).booster_
    with pytest.raises(UnreadableTreesError, match=message):
        read_trees(Damaged(booster, change))


def test_changed_leaves_are_noticed():
    booster = lightgbm.LGBMRegressor(**{**FEW, "num_leaves": 2}).fit(X, NUMBERS).booster_
    damaged = Damaged(booster, lambda dump: root(dump)["left_child"].update(leaf_value=5.0))
    assert verify(read_trees(damaged), X).startswith("The trees and the model disagree on ")
