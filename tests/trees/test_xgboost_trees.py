"""The trees of XGBoost predict as it does."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import xgboost
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
FEW = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}
SEEDS = st.integers(0, 2**32 - 1)


def check(model, random=RANDOM, **settings):
    """Check a model on rows at its thresholds."""
    rows = edge_rows(read_trees(model).ensemble, random, **settings)
    return assert_read(model, rows, precision=np.float32)


@pytest.mark.slow
@given(
    SEEDS,
    st.sampled_from([0, 2, 3, 5]),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from(["gbtree", "dart"]),
    st.booleans(),
    st.sampled_from(["hist", "exact", "approx"]),
)
def test_reading_predicts_as_xgboost(seed, classes, depth, parallel, booster, rounded, method):
    random = np.random.default_rng(seed)
    x = table(random, rounded=rounded)
    kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
    settings = {"rate_drop": 0.4} if booster == "dart" else {}
    model = kind(
        n_estimators=4,
        max_depth=depth,
        num_parallel_tree=parallel,
        booster=booster,
        tree_method=method,
        gamma=0.1,  # trees are pruned
        learning_rate=0.7,
        subsample=0.8,
        n_jobs=1,
        **settings,
    ).fit(x, targets(x, random, classes), sample_weight=random.random(len(x)))
    for fitted in (model, model.get_booster()):
        reading = check(fitted, random)
        assert reading.ensemble.outputs == (classes if classes > 2 else 1)
        assert reading.link is (Link.LOG_ODDS_OR_LOGITS if classes else Link.IDENTITY)
        assert reading.columns == ()


@pytest.mark.slow
@given(SEEDS, st.sampled_from([0, 3]), st.integers(1, 8))
def test_categories_as_numbers(seed, classes, one_hot):
    random = np.random.default_rng(seed)
    x = with_categories(table(random, 150), random, {0: 9, 2: 3})
    y = targets(x, random, classes)
    kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
    types = ["c", "q", "c", "q"]
    model = kind(
        **FEW, enable_categorical=True, feature_types=types, max_cat_to_onehot=one_hot, tree_method="hist"
    ).fit(x, y)
    check(model, random)


def test_categories_of_pandas_are_read_by_their_codes():
    x = with_categories(X, RANDOM, {0: 4, 2: 7})
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    for column, letters in (("a", "wxyz"), ("c", "abcdefg")):
        codes = frame[column].fillna(-1).astype(int)
        frame[column] = pd.Categorical.from_codes(codes, list(letters))
    model = xgboost.XGBRegressor(**FEW, enable_categorical=True).fit(frame, targets(x, RANDOM, 0))
    reading = assert_read(model, x, frame, np.float32)
    np.testing.assert_array_equal(reading.rows_of(frame), x)
    np.testing.assert_array_equal(reading.rows_of(x), x)
    assert reading.columns == ("a", "b", "c", "d")
    assert reading.ensemble.categorical.any()


@pytest.mark.parametrize(
    ("objective", "of_regressor", "of_booster"),
    [
        ("reg:squarederror", Link.IDENTITY, Link.IDENTITY),
        ("reg:squaredlogerror", Link.IDENTITY, Link.IDENTITY),
        ("reg:absoluteerror", Link.IDENTITY, Link.IDENTITY),
        ("reg:pseudohubererror", Link.IDENTITY, Link.IDENTITY),
        ("reg:logistic", Link.OTHER, Link.OTHER),
        ("reg:gamma", Link.LOG, Link.LOG),
        ("reg:tweedie", Link.LOG, Link.LOG),
        ("count:poisson", Link.LOG, Link.LOG),
        ("survival:cox", Link.LOG, Link.LOG),
        ("binary:logistic", Link.OTHER, Link.LOG_ODDS_OR_LOGITS),
        ("binary:logitraw", Link.IDENTITY, Link.LOG_ODDS_OR_LOGITS),
        ("binary:hinge", Link.OTHER, Link.SCORES),
    ],
)
@pytest.mark.parametrize("base", [None, 0.3])
def test_losses_have_their_base_score_and_link(objective, of_regressor, of_booster, base):
    needs_shares = "log" in objective or "hinge" in objective
    y = TWO if needs_shares else np.exp(NUMBERS)
    model = xgboost.XGBRegressor(**FEW, objective=objective, base_score=base).fit(X, y)
    reading = check(model)
    assert reading.link is of_regressor
    if of_regressor is Link.IDENTITY:
        np.testing.assert_allclose(reading.ensemble.predict(X)[:, 0], model.predict(X), rtol=1e-4, atol=1e-5)
    if of_regressor is Link.LOG:
        np.testing.assert_allclose(np.exp(reading.ensemble.predict(X)[:, 0]), model.predict(X), rtol=1e-4)
    assert check(model.get_booster()).link is of_booster


def test_survival_times():
    data = xgboost.DMatrix(X)
    data.set_float_info("label_lower_bound", np.exp(NUMBERS))
    data.set_float_info("label_upper_bound", np.exp(NUMBERS) + 1)
    booster = xgboost.train({"objective": "survival:aft", "max_depth": 3}, data, 4)
    reading = check(booster)
    assert reading.link is Link.LOG
    np.testing.assert_allclose(np.exp(reading.ensemble.predict(X)[:, 0]), booster.inplace_predict(X), rtol=1e-4)


def test_classifiers_read_by_their_margins_have_scores_or_logits():
    hinge = xgboost.XGBClassifier(**FEW, objective="binary:hinge").fit(X, TWO)
    assert check(hinge).link is Link.SCORES

    def own_loss(truth, predicted):
        shares = 1 / (1 + np.exp(-predicted))
        return shares - truth, shares * (1 - shares)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = xgboost.XGBClassifier(**FEW, objective=own_loss).fit(X, TWO)
    assert check(own).link is Link.SCORES
    labels = xgboost.train({"objective": "multi:softmax", "num_class": 3}, xgboost.DMatrix(X, THREE), 3)
    assert check(labels).link is Link.LOG_ODDS_OR_LOGITS


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_several_targets(strategy):
    y = np.stack([NUMBERS, TWO, X[:, 1] > 0], 1).astype(float)
    model = xgboost.XGBRegressor(**FEW, multi_strategy=strategy, tree_method="hist").fit(X, y)
    reading = check(model)
    assert reading.ensemble.outputs == 3
    assert reading.link is Link.IDENTITY
    labels = xgboost.XGBClassifier(**FEW).fit(X, y[:, 1:].astype(int))
    assert check(labels).link is Link.OTHER  # one class each, rather than logits of the same classes


def test_quantiles_have_an_output_each():
    model = xgboost.XGBRegressor(**FEW, objective="reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9])
    assert check(model.fit(X, NUMBERS)).ensemble.outputs == 3


def test_ranking():
    model = xgboost.XGBRanker(**FEW).fit(X, TWO, qid=np.repeat(np.arange(15), 10))
    assert check(model).link is Link.IDENTITY


def test_random_forests():
    for y in (TWO, THREE):
        model = xgboost.XGBRFClassifier(n_estimators=7, max_depth=4, n_jobs=1).fit(X, y)
        assert len(check(model).ensemble.roots) == 7 * (1 if y is TWO else 3)
    assert check(xgboost.XGBRFRegressor(n_estimators=7, n_jobs=1).fit(X, NUMBERS)).link is Link.IDENTITY


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_estimators_stop_at_the_best_iteration_and_boosters_do_not(y, booster):
    model = xgboost.XGBClassifier(
        n_estimators=60, early_stopping_rounds=3, learning_rate=0.9, num_parallel_tree=2, booster=booster
    )
    model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)
    by_iteration = 2 * (1 if y is TWO else 3)
    reading = check(model)
    assert len(reading.ensemble.roots) == (model.best_iteration + 1) * by_iteration
    whole = check(model.get_booster())
    assert len(whole.ensemble.roots) == model.get_booster().num_boosted_rounds() * by_iteration
    assert len(whole.ensemble.roots) > len(reading.ensemble.roots)


@pytest.mark.slow
@given(SEEDS, st.sampled_from([0.0, -0.5, 0.3, -999.0, 1.0]))
def test_a_number_may_stand_for_missing_values(seed, missing):
    random = np.random.default_rng(seed)
    x = np.nan_to_num(table(random, 120, missing=0.3, rounded=True), nan=missing)
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=4, missing=missing, n_jobs=1)
    model.fit(x, targets(x, random, 0))
    rows = edge_rows(read_trees(model).ensemble, random, infinite=False)
    single = np.float32(missing)
    beside = [single, np.nextafter(single, np.float32(9)), np.nextafter(single, np.float32(-9999))]
    rows[::3] = random.choice(np.array(beside, float), rows[::3].shape)
    assert_read(model, rows, precision=np.float32)


def test_trees_of_a_single_leaf_and_stumps():
    constant = xgboost.XGBRegressor(n_estimators=3).fit(X, np.full(len(X), 2.5))
    assert (check(constant).ensemble.nodes.column < 0).all()
    check(xgboost.XGBClassifier(n_estimators=5, max_depth=1).fit(X, THREE))


def test_pruned_trees_leave_no_deleted_nodes():
    data = xgboost.DMatrix(X, NUMBERS)
    grown = xgboost.train({"max_depth": 5, "tree_method": "exact"}, data, 3)
    settings = {"process_type": "update", "updater": "prune", "gamma": 2.0, "max_depth": 5, "verbosity": 0}
    pruned = xgboost.train(settings, data, 3, xgb_model=grown)
    saved = json.loads(bytes(pruned.save_raw("json")))["learner"]["gradient_booster"]["model"]["trees"]
    leaves = check(pruned).ensemble.nodes.leaf
    assert len(leaves) == sum(int(tree["tree_param"]["num_nodes"]) - deleted(tree) for tree in saved)
    assert any(deleted(tree) for tree in saved)


def deleted(tree):
    return int(tree["tree_param"]["num_deleted"])


def test_linear_boosters_and_unfitted_models_are_not_trees():
    linear = xgboost.XGBClassifier(n_estimators=2, booster="gblinear", updater="coord_descent")
    assert read_trees(linear) is None
    linear.fit(np.nan_to_num(X), TWO)
    assert read_trees(linear) is None
    assert read_trees(linear.get_booster()) is None
    assert read_trees(xgboost.XGBRegressor()) is None


class Damaged(xgboost.Booster):
    """A booster whose saved form is changed."""

    def __init__(self, booster, change):
        super().__init__()
        self.load_model(booster.save_raw("ubj"))
        self.change = change

    def save_raw(self, raw_format="ubj"):
        saved = json.loads(bytes(super().save_raw("json")))
        self.change(saved["learner"])
        return bytearray(json.dumps(saved).encode())


def trees_of(learner):
    return learner["gradient_booster"]["model"]["trees"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda learner: learner.pop("gradient_booster"), r"unknown form \(KeyError: 'gradient_booster'"),
        (lambda learner: trees_of(learner)[0].pop("left_children"), r"unknown form \(KeyError: 'left_children'"),
        (lambda learner: trees_of(learner)[0]["right_children"].__setitem__(0, 9999), r"unknown form \(IndexError"),
        (lambda learner: trees_of(learner)[0]["right_children"].__setitem__(0, 0), "leads back to itself"),
        (lambda learner: learner["gradient_booster"]["model"]["tree_info"].pop(), r"unknown form \(ValueError"),
        (lambda learner: trees_of(learner)[0]["split_indices"].__setitem__(0, 17), "one of 4 columns"),
        (lambda learner: learner["objective"].update(name="reg:new"), "loss reg:new is not known"),
        (lambda learner: trees_of(learner).clear() or [], "unknown form|at least one tree"),
    ],
)
def test_damaged_trees_have_a_clear_error(change, message):
    booster = xgboost.train({"max_depth": 3}, xgboost.DMatrix(X, NUMBERS), 2)
    with pytest.raises(UnreadableTreesError, match=message):
        read_trees(Damaged(booster, change))


def test_changed_leaves_are_noticed():
    booster = xgboost.train({"max_depth": 3}, xgboost.DMatrix(X, NUMBERS), 2)

    def change(learner):
        tree = trees_of(learner)[0]
        tree["split_conditions"][tree["left_children"].index(-1)] += 1.0

    message = verify(read_trees(Damaged(booster, change)), X)
    assert message.startswith("The trees and the model disagree on ")


def test_categories_with_a_number_for_missing_values_cannot_be_read():
    x = np.nan_to_num(with_categories(X, RANDOM, {0: 9}), nan=-1)
    y = NUMBERS + 3 * (x[:, 0] % 2)
    model = xgboost.XGBRegressor(**FEW, missing=-1, enable_categorical=True, feature_types=["c", "q", "q", "q"]).fit(
        x, y
    )
    with pytest.raises(UnreadableTreesError, match="if -1 stands for missing values"):
        read_trees(model)
