"""Samples, targets and categories from tables."""

import numpy as np
import pandas as pd
import pytest
import torch

from absentia import AbsentiaError
from absentia.cli.raw_data import RawData
from absentia.cli.sample_files import make_samples
from absentia.cli.trial_runs import fit_model
from census_tables import LEVELS, as_categories, boosters, census
from command_tables import CLASSES, NETWORK, ROWS, fitted, samples, table_frame, write_images


def numbers(target, classes=()):
    return make_samples(RawData(ROWS[: len(target)], np.array(target)), NETWORK, classes=classes).y.tolist()


def test_targets_are_numbered_in_the_order_of_the_model_or_refused():
    assert numbers([True, False]) == [1, 0]
    assert numbers([2.0, 0.0]) == [2, 0]
    assert numbers([7, 3], ["3", "7"]) == [1, 0]
    with pytest.raises(AbsentiaError, match="--classes no,yes"):
        numbers(["yes", "no"])
    with pytest.raises(AbsentiaError, match=r"target must hold classes of the model: no, yes. Got 'maybe'"):
        numbers(["maybe"], ["no", "yes"])


def test_rows_are_named_by_a_column_or_by_their_files(folder):
    frame = pd.read_csv("data.csv")
    frame.index = [f"r{number}" for number in range(len(frame))]
    frame.to_csv("indexed.csv")
    found = samples("indexed.csv")
    assert found.table.columns == ("a", "b", "c")
    assert found.names[7] == "r7"
    assert found.x[7].tolist() == pytest.approx(ROWS[7].tolist())
    assert samples(index="b").table.columns == ("a", "c")
    write_images(folder / "pets")
    pets = samples("pets", None)
    assert (pets.names[4], pets.classes[int(pets.y[4])]) == ("dog/1.png", "dog")


class CountedName(str):
    """A column's name that counts how often it is compared."""

    compared = 0

    def __str__(self):
        return self

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class WideEstimator:
    def __init__(self, columns):
        self.feature_names_in_ = columns

    def predict(self, rows):
        return np.zeros(len(rows))


def test_columns_are_found_in_linear_time():
    columns = [f"c{number}" for number in range(500)]
    model = WideEstimator([CountedName(name) for name in columns])
    found = make_samples(RawData(pd.DataFrame(np.ones((2, 500)), columns=columns), None), model)
    assert found.table.columns == tuple(columns)
    assert CountedName.compared < 20 * 500


def test_samples_are_named_or_drawn():
    data = make_samples(RawData(ROWS, CLASSES), NETWORK)
    assert data.choose([5, 2], 1, seed=3).tolist() == [5, 2]
    drawn = torch.randperm(40, generator=torch.Generator().manual_seed(3))[:7]
    assert data.choose((), 7, seed=3).tolist() == drawn.tolist()
    assert data.choose((), 400, seed=3).tolist() == list(range(40))


def test_categories_reach_a_pipeline_as_they_were(folder):
    frame = table_frame()
    pipeline = fitted()
    frame[["new", "kind", "c", "city", "b", "a"]].to_csv("table.csv", index=False)  # another order of the columns
    found = samples("table.csv", "kind", pipeline)
    assert found.table.columns == ("a", "b", "c", "city", "new")
    assert found.table.categorical == [3, 4]
    assert found.classes == ("no", "yes")
    assert found.y.tolist() == CLASSES.tolist()
    model, _ = fit_model(pipeline, found.x, found.table)
    expected = pipeline.predict_log_proba(frame.drop(columns="kind"))
    np.testing.assert_allclose(model(found.x).numpy(), expected)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "histogram"])
def test_text_reaches_boosters_as_the_categories_of_their_fit(folder, name):
    frame, y = census(gaps=True)
    model = boosters(frame, y)[name]
    frame.assign(rich=y).to_csv("people.csv", index=False)
    found = samples("people.csv", "rich", model)
    fit, _ = fit_model(model, found.x, found.table)
    expected = model.predict_proba(as_categories(frame))[:, 1]
    np.testing.assert_allclose(fit(found.x).softmax(1)[:, 1], expected, atol=1e-4)
    assert found.table.categories["level"][:3] == tuple(LEVELS) or name == "histogram"
    frame.assign(rich=y, work="pilot").to_csv("others.csv", index=False)
    if name != "histogram":
        with pytest.raises(AbsentiaError, match=r"categories of column 'work' that the model knows\. Got 'pilot'"):
            samples("others.csv", "rich", model)


def test_other_tables_are_coded_as_the_saved_one_was(folder):
    frame = table_frame()
    loaded = fitted()
    frame.to_csv("table.csv", index=False)
    frame[frame["city"] != "Bern"].to_csv("fewer.csv", index=False)
    whole = samples("table.csv", "kind", loaded)
    alone = samples("fewer.csv", "kind", loaded)
    alike = samples("fewer.csv", "kind", loaded, **whole.coding)
    kept = torch.tensor((frame["city"] != "Bern").tolist())
    torch.testing.assert_close(alike.x, whole.x[kept])
    assert not torch.equal(alone.x, alike.x)  # which is what would go wrong
    with_background = samples("fewer.csv", "kind", loaded, background="table.csv")
    torch.testing.assert_close(with_background.x, whole.x[kept])
    torch.testing.assert_close(with_background.background, whole.x)
    with pytest.raises(AbsentiaError, match="column 'city' must hold known categories"):
        samples("table.csv", "kind", loaded, **alone.coding)
    numbers = whole.coding["coding"] | {"categories": {"city": ["Bern", "Oslo", "Rome"]}}
    with pytest.raises(AbsentiaError, match="column 'new' must hold numbers, as it did when the absence was saved"):
        samples("table.csv", "kind", loaded, coding=numbers)


def test_values_between_categories_are_refused(folder):
    table_frame().to_csv("table.csv", index=False)
    loaded = fitted()
    found = samples("table.csv", "kind", loaded)
    noisy = found.x.clone()
    noisy[:, 3] = 1.4
    with pytest.raises(AbsentiaError, match="hold the numbers 0 … 2 of its categories"):
        fit_model(loaded, found.x, found.table)[0](noisy)


def test_columns_that_the_model_does_not_take_are_ignored_and_missing_ones_named(folder):
    from sklearn.linear_model import LogisticRegression

    frame = pd.read_csv("data.csv")
    model = LogisticRegression().fit(frame[["c", "a"]], frame["kind"])
    found = samples(model=model)
    np.testing.assert_allclose(found.x.numpy(), ROWS[:, [2, 0]])
    assert "ignored: b" in found.notes[0]
    with pytest.raises(AbsentiaError, match=r"data must have the columns c, a\. Got none named 'c'"):
        samples(model=model, drop=("c",))


def test_a_regression_has_no_classes(folder):
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(ROWS[:, :2], ROWS[:, 2])
    assert samples(target="c", model=model, drop=("kind",)).y is None
    assert "no classes" in samples(target="c").notes[0]
