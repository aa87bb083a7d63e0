"""The trees of scikit-learn's histogram gradient boosting predict as it does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from absentia.trees.ensemble import UnreadableTreesError
from absentia.trees.reading import Link, read_trees
from tree_rows import assert_read, edge_rows, table, targets, with_categories

RANDOM = np.random.default_rng(0)
X = table(RANDOM, 150)
NUMBERS = targets(X, RANDOM, 0)
THREE = targets(X, RANDOM, 3)
FEW = {"max_iter": 5, "min_samples_leaf": 3, "max_leaf_nodes": 8, "early_stopping": False}
SEEDS = st.integers(0, 2**32 - 1)


def check(model, random=RANDOM, infinite=True):
    """Check a model on rows at its thresholds."""
    rows = edge_rows(read_trees(model).ensemble, random, infinite=infinite, fractions=False)
    return assert_read(model, rows)


@pytest.mark.slow
@given(SEEDS, st.sampled_from([0, 2, 3, 5]), st.booleans(), st.sampled_from([0.0, 0.1]))
def test_reading_predicts_as_scikit_learn(seed, classes, rounded, missing):
    random = np.random.default_rng(seed)
    x = table(random, rounded=rounded, missing=missing)
    x[random.random(x.shape) < 0.02] = np.inf
    x[random.random(x.shape) < 0.02] = -np.inf
    y = targets(np.where(np.isinf(x), 1.0, x), random, classes)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    reading = check(kind(**FEW).fit(x, y, sample_weight=random.random(len(x))), random)
    assert reading.ensemble.outputs == (classes if classes > 2 else 1)
    assert reading.link is (Link.LOG_ODDS_OR_LOGITS if classes else Link.IDENTITY)


@given(SEEDS, st.sampled_from([0, 3]), st.sampled_from([1, 3]), st.sampled_from([0.0, 0.1]))
def test_categories_as_numbers(seed, classes, step, missing):
    random = np.random.default_rng(seed)
    x = with_categories(table(random, 150, missing=missing), random, {1: 9, 3: 3})
    x[:, 3] *= step  # not every number up to the largest category is one
    y = targets(x, random, classes) + 2 * (x[:, 1] == 4) * (classes == 0)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = kind(**FEW, categorical_features=[1, 3]).fit(x, y)
    check(model, random, infinite=False)  # scikit-learn refuses infinite categories


def test_many_categories():
    x = np.stack([RANDOM.permutation(np.arange(600) % 250), RANDOM.normal(size=600)], 1).astype(float)
    y = RANDOM.normal(size=250)[x[:, 0].astype(int)] + x[:, 1]
    model = HistGradientBoostingRegressor(**FEW, categorical_features=[0]).fit(x, y)
    assert_read(model, np.concatenate([x, [[np.nan, 0], [255, 0], [256, 0], [300, 0]]]))


def test_categories_of_pandas_are_read_by_their_sorted_order():
    x = with_categories(X, RANDOM, {1: 4, 3: 7})
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    for column, letters in (("b", "wxyz"), ("d", "abcdefg")):
        codes = frame[column].fillna(-1).astype(int)
        frame[column] = pd.Categorical.from_codes(codes, list(letters))
    y = NUMBERS + 2 * (x[:, 1] == 1)
    model = HistGradientBoostingRegressor(**FEW, categorical_features="from_dtype").fit(frame, y)
    reading = assert_read(model, x, frame)
    np.testing.assert_array_equal(reading.rows_of(frame), x)
    np.testing.assert_array_equal(reading.rows_of(x), x)
    assert reading.columns == ("a", "b", "c", "d")
    assert reading.ensemble.categorical[1]


def test_categories_of_pandas_that_are_numbers_stay_so():
    x = with_categories(X, RANDOM, {1: 4})
    x[:, 1] *= 3
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"]).astype({"b": "category"})
    y = NUMBERS + 2 * (x[:, 1] == 3)
    model = HistGradientBoostingRegressor(**FEW, categorical_features="from_dtype").fit(frame, y)
    reading = assert_read(model, x, frame)
    np.testing.assert_array_equal(reading.rows_of(frame), x)


@pytest.mark.parametrize("wrong", [-3.0, 0.5, 1e9])
def test_categories_that_are_not_numbered_from_zero_cannot_be_read(wrong):
    x = with_categories(table(RANDOM, 150), RANDOM, {1: 9})
    x[x[:, 1] == 4, 1] = wrong
    model = HistGradientBoostingRegressor(**FEW, categorical_features=[1]).fit(x, NUMBERS + (x[:, 1] == wrong))
    with pytest.raises(UnreadableTreesError, match="whole numbers from 0"):
        read_trees(model)


@pytest.mark.parametrize(
    ("loss", "link"),
    [
        ("squared_error", Link.IDENTITY),
        ("absolute_error", Link.IDENTITY),
        ("quantile", Link.IDENTITY),
        ("poisson", Link.LOG),
        ("gamma", Link.LOG),
    ],
)
def test_losses_have_their_link(loss, link):
    settings = {"quantile": 0.8} if loss == "quantile" else {}
    model = HistGradientBoostingRegressor(**FEW, loss=loss, **settings).fit(X, np.exp(NUMBERS))
    assert check(model).link is link


def test_early_stopping_and_stumps():
    model = HistGradientBoostingClassifier(early_stopping=True, n_iter_no_change=2, learning_rate=0.8).fit(X, THREE)
    assert len(check(model).ensemble.roots) == 3 * model.n_iter_ < 300
    check(HistGradientBoostingRegressor(max_iter=4, max_depth=1).fit(X, NUMBERS))
    check(HistGradientBoostingRegressor(max_iter=2).fit(X, np.full(len(X), 2.5)))


def test_unfitted_and_unknown_forms():
    assert read_trees(HistGradientBoostingClassifier()) is None
    model = HistGradientBoostingRegressor(**FEW).fit(X, NUMBERS)
    del model._baseline_prediction
    with pytest.raises(UnreadableTreesError, match=r"unknown form \(AttributeError"):
        read_trees(model)
    other = HistGradientBoostingRegressor(**FEW).fit(X, NUMBERS)
    other.loss = "new"
    with pytest.raises(UnreadableTreesError, match="loss 'new'"):
        read_trees(other)
