"""Models are recognised by their classes, and readings are compared with them."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import AdaBoostRegressor, RandomForestClassifier, RandomTreesEmbedding
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from absentia.trees.ensemble import UnreadableTreesError
from absentia.trees.reading import Link, TreeReading, read_trees, verify
from tree_rows import table, targets

RANDOM = np.random.default_rng(0)
X = table(RANDOM, 100, missing=0)
NUMBERS = targets(X, RANDOM, 0)


@pytest.mark.parametrize(
    "model",
    [
        None,
        len,
        X,
        LinearRegression().fit(X, NUMBERS),
        make_pipeline(StandardScaler(), DecisionTreeRegressor()).fit(X, NUMBERS),
        AdaBoostRegressor(n_estimators=2).fit(X, NUMBERS),
        RandomTreesEmbedding(2).fit(X),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_not_trees(model):
    assert read_trees(model) is None


def test_a_subclass_is_read_as_its_parent():
    class Own(RandomForestClassifier):
        pass

    reading = read_trees(Own(3).fit(X, NUMBERS > 0))
    assert reading.link is Link.PROBABILITIES
    assert verify(reading, X) is None


def test_a_class_of_another_package_is_not_taken_for_one_of_a_library():
    class Booster:
        pass

    assert read_trees(Booster()) is None


def test_a_difference_is_told_in_a_sentence():
    first = DecisionTreeRegressor(max_depth=2).fit(X, NUMBERS)
    other = DecisionTreeRegressor(max_depth=2).fit(X, -NUMBERS)
    reading = read_trees(first)
    mixed = TreeReading(reading.ensemble, (), reading.link, other.predict)
    own = first.predict(X)[0]
    assert verify(mixed, X) == (
        "The trees and the model disagree on 100 of 100 rows: "
        f"{own:.8g} instead of {other.predict(X)[0]:.8g} for row 0."
    )
    several = TreeReading(reading.ensemble, (), reading.link, lambda data: np.zeros((len(data), 3)))
    assert verify(several, X) == "The trees give outputs of shape (100, 1), and the model (100, 3)."
    unknown = TreeReading(reading.ensemble, (), reading.link, lambda data: np.full(len(data), np.nan))
    assert "instead of nan" in verify(unknown, X)


def test_rows_with_other_columns_have_a_clear_error():
    for model in (DecisionTreeRegressor().fit(X, NUMBERS), xgboost.XGBRegressor(n_estimators=2).fit(X, NUMBERS)):
        reading = read_trees(model)
        for rows in (X[:, :3], np.concatenate([X, X], axis=1), X[0]):
            with pytest.raises(UnreadableTreesError, match="the 4 columns of the trees"):
                verify(reading, rows)


def test_rows_are_compared_in_the_form_that_the_model_takes():
    frame = pd.DataFrame(X, columns=list("abcd"))
    reading = read_trees(DecisionTreeRegressor().fit(frame, NUMBERS))
    assert verify(reading, X, frame) is None
    assert verify(reading, X, frame[::-1]) is not None


def test_a_reading_can_be_pickled():
    reading = pickle.loads(pickle.dumps(read_trees(DecisionTreeRegressor().fit(X, NUMBERS))))
    assert verify(reading, X) is None


@pytest.mark.slow
def test_no_library_of_trees_is_imported():
    code = (
        "import sys, absentia.trees.reading; "
        "sys.exit(any(name in sys.modules for name in ('xgboost', 'lightgbm', 'sklearn', 'catboost')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
