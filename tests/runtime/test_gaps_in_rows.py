"""Tables with gaps are explained, audited and learned from if the model takes missing values."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import absentia as ab
from absentia import interop, plots
from census_tables import as_categories, boosters, census, pipeline

FRAME, Y = census(gaps=True)
CODED = as_categories(FRAME)
PLAIN = FRAME.astype({"hours": float, "level": object})
BOOSTERS = boosters(FRAME, Y)
PIPELINE = pipeline(FRAME, Y)
NUMBERS = CODED[["age", "hours"]].astype(float)
FOREST = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(NUMBERS, Y)
QUICK = ab.LearningOptions(samples=20, rows_per_step=256)
GAPPY = ["person 0", "person 3", "person 2", "person 5"]  # each lacks another column


def log_odds(model, frame):
    probabilities = model.predict_proba(frame)
    return np.log(probabilities[:, 1]) - np.log(probabilities[:, 0])


@pytest.mark.parametrize("name", BOOSTERS)
def test_the_value_of_a_sample_with_gaps_is_the_models(name):
    explanation = ab.explain(BOOSTERS[name], CODED.loc[GAPPY], 1, absence="median", data=CODED)
    np.testing.assert_allclose(explanation.outputs, log_odds(BOOSTERS[name], CODED.loc[GAPPY]), atol=1e-4)
    filled = CODED.loc[GAPPY].copy()
    for column in ("age", "hours"):
        filled[column] = FRAME[column].astype(float).quantile(0.5, interpolation="lower")
    for column in ("work", "level", "member"):
        filled[column] = pd.Series([CODED[column].mode()[0]] * 4, index=GAPPY, dtype=CODED[column].dtype)
    np.testing.assert_allclose(explanation.base_values, log_odds(BOOSTERS[name], filled), atol=1e-4)


@pytest.mark.parametrize("name", BOOSTERS)
def test_missing_values_are_an_absence_of_models_that_take_them(name):
    model = BOOSTERS[name]
    explanation = ab.explain(model, CODED[:3], 1, absence="missing")
    gone = CODED[:1].copy()
    gone[["age", "hours"]] = np.nan
    gone["member"] = gone["member"].astype(float) * np.nan
    for column in ("work", "level"):
        gone[column] = pd.Series([np.nan], index=gone.index, dtype=CODED[column].dtype)
    np.testing.assert_allclose(explanation.base_values, np.repeat(log_odds(model, gone), 3), atol=1e-4)
    by_value = ab.explain(model, CODED[:3], 1, absence=ab.Baseline(math.nan))
    torch.testing.assert_close(by_value.shapley.values, explanation.shapley.values)
    assert explanation.record.absence == "Baseline(missing)"
    assert set(explanation.to_frame()["stand_in"]) == {"missing"}


@pytest.mark.slow
def test_missing_values_are_shown_in_words(tmp_path: Path):
    explanation = ab.explain(BOOSTERS["lightgbm"], CODED.loc[GAPPY], 1, absence="mean", data=CODED)
    shown = explanation.to_frame().set_index(["row", "player"])["input"]
    assert shown["person 0", "age"] == "missing"
    assert shown["person 3", "work"] == "missing"
    assert shown["person 5", "level"] == "missing"
    assert shown["person 2", "hours"] == "missing"
    for name in ("overview", "waterfall", "bars", "beeswarm"):
        explanation.plot(kind=name)
    swarm = plots.beeswarm(explanation)
    assert swarm.axes[-1].get_ylabel() == "input (grey: missing)"
    ticks = [tick.get_text() for tick in plots.scatter(explanation, "age").axes[0].get_xticklabels()]
    assert "missing" in ticks
    ticks = [tick.get_text() for tick in plots.scatter(explanation, "level").axes[0].get_xticklabels()]
    assert ticks == ["none", "school", "college", "missing"]
    ab.write_report([explanation], tmp_path / "report.html")
    assert "missing" in (tmp_path / "report.html").read_text()
    explanation.save(tmp_path / "one.absentia")
    again = ab.load(tmp_path / "one.absentia")
    pd.testing.assert_frame_equal(again.to_frame(), explanation.to_frame())


@pytest.mark.parametrize(
    "word",
    ["mean", "median", "mode", "marginal", "neighbours", "missing", pytest.param("learned", marks=pytest.mark.slow)],
)
def test_absences_leave_gaps_out(word):
    explanation = ab.explain(FOREST, NUMBERS.loc[GAPPY], 1, absence=word, data=NUMBERS[:40])
    assert explanation.shapley.values.isfinite().all()
    if word == "mean":
        np.testing.assert_allclose(explanation.stand_ins[0], NUMBERS[:40].mean())
    if word in ("mean", "median", "mode", "learned"):
        assert explanation.stand_ins.isfinite().all()


def test_a_gaussian_refuses_gaps():
    with pytest.raises(
        ab.AbsentiaError, match=r"data must have no missing values for GaussianConditional. Got NaN in row"
    ):
        ab.explain(FOREST, NUMBERS[1:2], 1, absence="gaussian", data=NUMBERS)
    complete = NUMBERS.dropna()
    with pytest.raises(ab.AbsentiaError, match=r"x must have no missing values for GaussianConditional. .* Use mean"):
        ab.explain(FOREST, NUMBERS[:1], 1, absence="gaussian", data=complete)


def test_the_nearest_rows_lack_the_same_entries():
    data = torch.tensor([[math.nan, 1.0], [0.0, 2.0], [4.0, 3.0]])
    absence = ab.NearestNeighbours(data, neighbours=1)
    fill = absence.bind(torch.tensor([[math.nan, 9.0], [3.0, 9.0]]))
    found = fill(slice(None), torch.tensor([[[True, False]]]))[:, 0, 0]
    assert found[0, 0].isnan()
    assert found[0, 1] == 1.0
    assert found[1].tolist() == [3.0, 3.0]


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOSTERS)
def test_audits_take_gaps_and_try_missing_values(name):
    audit = ab.audit(BOOSTERS[name], CODED[:30], Y[:30], data=CODED[30:], draws=1)
    assert audit.methods == ("median", "mode", "marginal", "neighbours", "missing")
    assert audit.plausibility.distance.isfinite().all()
    assert audit.columns()["R"].isfinite().all()
    usual = ab.audit(FOREST, NUMBERS[:30], Y[:30], data=NUMBERS[30:], draws=1)
    assert usual.methods == ("zero", "mean", "median", "marginal", "missing")


@pytest.mark.slow
def test_stand_ins_that_the_data_never_lacks_leave_its_range():
    complete = NUMBERS.dropna()
    audit = ab.audit(FOREST, complete[:30], Y[:30], ["mean", "missing"], data=complete, draws=1)
    assert audit.plausibility.outside.tolist() == [[False, False], [True, True]]
    with_gaps = ab.audit(FOREST, complete[:30], Y[:30], ["mean", "missing"], data=NUMBERS, draws=1)
    assert with_gaps.plausibility.outside.tolist() == [[False, False], [False, False]]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["faithful", "shapley"])
def test_baselines_are_learned_from_tables_with_gaps(loss, tmp_path: Path):
    learned = ab.learn_baseline(BOOSTERS["lightgbm"], CODED, Y, loss=loss, options=QUICK)
    assert learned.values.isfinite().all()
    shown = learned.to_frame().set_index("player")
    assert shown.loc["level", "value"] in ("none", "school", "college", "missing")
    assert shown.loc["age", "0 %"] == FRAME["age"].min()
    learned.plot(tmp_path / "learned.png")
    learned.save(tmp_path / "learned.absentia")
    again = ab.load(tmp_path / "learned.absentia")
    one = ab.explain(BOOSTERS["lightgbm"], CODED[:2], Y[:2], absence=learned)
    other = ab.explain(BOOSTERS["lightgbm"], CODED[:2], Y[:2], absence=again)
    torch.testing.assert_close(one.shapley.values, other.shapley.values)
    ab.write_report([learned], tmp_path / "report.html")


def test_a_pipeline_that_fills_gaps_in_takes_them():
    explanation = ab.explain(PIPELINE, PLAIN.loc[GAPPY], 1, absence="missing")
    np.testing.assert_allclose(explanation.outputs, log_odds(PIPELINE, PLAIN.loc[GAPPY]), atol=1e-6)


@pytest.mark.slow
def test_models_that_take_no_gaps_say_so():
    line = LogisticRegression().fit(NUMBERS.fillna(0), Y)
    with pytest.raises(
        ab.AbsentiaError,
        match=r"x must be finite. Got nan in column 'age', row 'person 0' instead. "
        r"The model does not take it \(ValueError: Input X contains NaN.\). Fill in",
    ):
        ab.explain(line, NUMBERS.loc[GAPPY], 1, absence=0.0)
    with pytest.raises(ab.AbsentiaError, match=r"data must be finite. Got nan in column 'age', row 'person 0'"):
        ab.explain(line, NUMBERS[1:2], 1, absence="mean", data=NUMBERS)
    with pytest.raises(ab.AbsentiaError, match=r"absence must have stand-ins that the model takes. Got missing"):
        ab.explain(line, NUMBERS[1:2], 1, absence="missing")
    assert "missing" not in ab.audit(line, NUMBERS.dropna()[:30], Y[:30], draws=1).methods
    with pytest.raises(ab.AbsentiaError, match=r"x must be finite. Got nan in column 'age', row 'person 0'"):
        ab.explain(lambda rows: rows.nan_to_num().sum(1), NUMBERS.loc[GAPPY], absence=0.0)
    with pytest.raises(ab.AbsentiaError, match=r"x must be finite. Got nan in column 'age', row 'person 0'"):
        ab.learn_baseline(lambda rows: rows.sum(1), NUMBERS)
    with pytest.raises(ab.AbsentiaError, match=r"stand-ins that the model takes. .* \(it runs on tensors\)"):
        ab.explain(torch.nn.Linear(2, 1), [[1.0, 2.0]], absence=ab.Baseline(math.nan))
    with pytest.raises(ab.AbsentiaError, match=r"x must be finite. Got inf in column 'age', row 'person 1'"):
        ab.explain(FOREST, NUMBERS[1:2].assign(age=math.inf), 1, absence=0.0)


def test_arrays_may_have_gaps_too():
    rows = NUMBERS.to_numpy()
    forest = RandomForestClassifier(5, min_samples_leaf=5, random_state=0).fit(rows, Y)
    explanation = ab.explain(forest, rows[:2], 1, absence="mean", data=rows)
    assert explanation.to_frame()["input"][0] == "missing"
    service = ab.from_numpy(lambda rows: np.nan_to_num(rows).sum(1))
    assert ab.explain(service, np.array([[math.nan, 2.0]]), absence=1.0).shapley.values.tolist() == [[-1.0, 1.0]]


def test_a_column_that_is_always_missing_is_not_learned():
    with pytest.raises(
        ab.AbsentiaError, match=r"x must have a known value of each entry to learn from. Got none of entry 0"
    ):
        ab.learn_baseline(FOREST, NUMBERS.assign(age=math.nan), Y, options=QUICK)
    explanation = ab.explain(
        FOREST, NUMBERS[:2].assign(age=math.nan), 1, absence="mean", data=NUMBERS.assign(age=math.nan)
    )
    assert explanation.record.absence.endswith("1 missing)")


MISSING_CATEGORIES = {"work": "missing", "level": "missing"}
KNOWN_CATEGORIES = {"work": "teacher", "level": "college"}


@cache
def learned_of(name: str) -> ab.LearnedBaseline:
    """Learn a little: what the tests need is the names of the categories, not the values."""
    return ab.learn_baseline(*_model_and_table(name), Y, options=ab.LearningOptions(samples=8, steps=1))


def learned_with(name: str, categories: dict[str, str]) -> ab.LearnedBaseline:
    """Return a learned baseline with these categories in place of those that learning chose."""
    # The table decides the names of the categories, not the model.
    learned = learned_of("pipeline" if name == "pipeline" else "histogram")
    values = learned.values.clone()
    for column, category in categories.items():
        entry = learned.players.names.index(column)
        values[entry] = learned.players.categories[entry].index(category)
    return replace(learned, values=values)


def _model_and_table(name: str) -> tuple[Any, pd.DataFrame]:
    if name == "pipeline":
        return PIPELINE, PLAIN
    return BOOSTERS[name], CODED


def base_value_by_hand(name: str, learned: ab.LearnedBaseline) -> np.ndarray:
    """Compute the value of the stand-ins alone from a frame."""
    model, table = _model_and_table(name)
    row = table[:1].copy()
    for entry, column in enumerate(table.columns):
        names = learned.players.categories[entry]
        value = learned.values[entry].item()
        if names:
            value = {"missing": np.nan, "False": False, "True": True}.get(names[int(value)], names[int(value)])
        dtype = table[column].dtype if names else float
        row[column] = pd.Series([value], index=row.index, dtype=dtype)
    return log_odds(model, row)


@pytest.mark.parametrize(
    "name",
    [
        "histogram",
        pytest.param("lightgbm", marks=pytest.mark.slow),
        pytest.param("xgboost", marks=pytest.mark.slow),
        pytest.param("pipeline", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("categories", [MISSING_CATEGORIES, KNOWN_CATEGORIES], ids=["missing", "known"])
def test_explained_rows_need_not_hold_the_categories_of_a_learned_baseline(name, categories):
    model, table = _model_and_table(name)
    learned = learned_with(name, categories)
    complete = table[(table["work"] == "clerk") & (table["level"] == "none")][:2]
    with_own_categories = complete.copy()
    for column in ("work", "level"):
        if isinstance(complete[column].dtype, pd.CategoricalDtype):
            with_own_categories[column] = complete[column].cat.remove_unused_categories()
    no_work = complete.assign(work=np.nan)
    no_text = no_work.assign(level=None)
    for rows in (complete, with_own_categories, no_work, no_text):
        explanation = ab.explain(model, rows, 1, absence=learned)
        shown = explanation.to_frame().set_index("player")["stand_in"]
        assert set(shown["work"]) == {categories["work"]}
        assert set(shown["level"]) == {categories["level"]}
        np.testing.assert_allclose(
            explanation.base_values, np.repeat(base_value_by_hand(name, learned), 2), atol=1e-4
        )


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_column_without_any_value_is_one_of_categories_if_the_fit_says_so(name):
    rows = CODED[1:3].assign(work=np.nan)
    if name != "lightgbm":  # which knows only how many of its columns hold categories
        rows = rows.assign(age=np.nan)
    of_the_dtype = rows.astype({"work": CODED["work"].dtype})
    explanation = ab.explain(BOOSTERS[name], rows, 1, absence="missing")
    np.testing.assert_allclose(explanation.outputs, log_odds(BOOSTERS[name], of_the_dtype), atol=1e-4)


def test_categories_of_numbers_are_known_by_name():
    draw = np.random.default_rng(0)
    floor = pd.Categorical(draw.integers(1, 4, 120))
    frame = pd.DataFrame({"floor": floor, "rooms": draw.integers(1, 6, 120).astype(float)})
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=5, min_samples_leaf=5)
    model.fit(frame, frame["floor"].astype(float) * 2 + frame["rooms"])
    learned = ab.learn_baseline(model, frame, options=ab.LearningOptions(samples=8, steps=1))
    third = replace(learned, values=torch.tensor([2.0, 4.0], dtype=torch.float64))
    first_floor = frame[frame["floor"] == 1][:1]
    alone = first_floor.assign(floor=first_floor["floor"].cat.remove_unused_categories())
    by_hand = model.predict(frame[frame["floor"] == 3][:1].assign(rooms=4.0))
    np.testing.assert_allclose(ab.explain(model, alone, absence=third).base_values, by_hand)


def test_a_table_of_ones_own_needs_no_missing_category():
    complete = CODED.dropna()
    table = interop.EncodedTable.of(complete)
    model = interop.from_estimator(BOOSTERS["histogram"], table=table)
    learned = learned_with("histogram", MISSING_CATEGORIES)
    explanation = ab.explain(model, table.rows[:2], 1, absence=learned, players=table.players)
    np.testing.assert_allclose(
        explanation.base_values, np.repeat(base_value_by_hand("histogram", learned), 2), atol=1e-4
    )
