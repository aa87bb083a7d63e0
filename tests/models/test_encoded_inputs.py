"""DataFrames of text, categories and booleans go into every public function as they are."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import absentia as ab
from absentia.models.encoded_inputs import encode_inputs
from census_tables import LEVELS, as_categories, boosters, census, pipeline

FRAME, Y = census()
CODED = as_categories(FRAME)
BOOSTERS = boosters(FRAME, Y)
QUICK = ab.LearningOptions(samples=20, rows_per_step=256)


def log_odds(model: Any, frame: pd.DataFrame) -> np.ndarray:
    probabilities = model.predict_proba(frame)
    values: np.ndarray = np.log(probabilities[:, 1]) - np.log(probabilities[:, 0])
    return values


def masked_by_hand(model: Any, frame: pd.DataFrame, sample: int, stand_in: int) -> np.ndarray:
    """Compute the values of all coalitions by frames alone."""
    rows = []
    for members in itertools.product([False, True], repeat=frame.shape[1]):
        # The first player varies fastest.
        present = members[::-1]
        cells = [frame.iloc[[sample if there else stand_in], [number]] for number, there in enumerate(present)]
        rows.append(pd.concat([cell.reset_index(drop=True) for cell in cells], axis=1))
    return log_odds(model, pd.concat(rows, ignore_index=True).astype(frame.dtypes.to_dict()))


@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_of_pandas_categories_are_explained_as_they_predict(name: str) -> None:
    model = BOOSTERS[name]
    game = ab.MaskedModel(model, CODED[:3], 1, absence="marginal", data=CODED[40:41])
    expected = masked_by_hand(model, CODED, 2, 40)
    np.testing.assert_allclose(ab.value_table(game).values[2], expected, atol=1e-4)
    assert np.ptp(expected) > 0.5


def test_a_pipeline_of_text_is_explained_by_its_raw_columns() -> None:
    plain = FRAME.astype({"hours": float, "level": object})
    model = pipeline(FRAME, Y)
    game = ab.MaskedModel(model, plain[:3], 1, absence="marginal", data=plain[40:41])
    np.testing.assert_allclose(ab.value_table(game).values[2], masked_by_hand(model, plain, 2, 40), atol=1e-6)


@pytest.mark.parametrize("name", BOOSTERS)
def test_categories_are_shown_by_name(name: str) -> None:
    explanation = ab.explain(BOOSTERS[name], CODED[:2], Y[:2], absence="mean", data=CODED)
    shown = explanation.to_frame()
    assert shown["player"].tolist() == list(FRAME.columns) * 2
    first = shown[shown["row"] == "person 0"].set_index("player")
    assert first.loc["work", "input"] == FRAME["work"].iloc[0]
    assert first.loc["member", "input"] == str(FRAME["member"].iloc[0])
    assert first.loc["level", "stand_in"] == FRAME["level"].mode()[0]
    assert first.loc["age", "stand_in"] == pytest.approx(FRAME["age"].mean())
    assert first.loc["hours", "stand_in"] == pytest.approx(FRAME["hours"].mean())


@pytest.mark.parametrize("name", BOOSTERS)
def test_columns_may_come_in_any_order_and_a_row_as_a_series(name: str) -> None:
    model = BOOSTERS[name]
    expected = ab.explain(model, CODED[:1], 1, absence="median", data=CODED)
    shuffled = ab.explain(model, CODED[CODED.columns[::-1]][:1], 1, absence="median", data=CODED[CODED.columns[::-1]])
    row = ab.explain(model, CODED.iloc[0], 1, absence="median", data=CODED)
    for other in (shuffled, row):
        assert other.names == expected.names
        torch.testing.assert_close(other.shapley.values, expected.shapley.values)
        assert other.players.texts(other.x) == expected.players.texts(expected.x)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_codes_are_those_of_the_booster_whatever_the_order_of_categories(name: str) -> None:
    model = BOOSTERS[name]
    other_order = CODED.assign(level=CODED["level"].cat.reorder_categories(LEVELS[::-1]))
    few = other_order[:2].assign(level=other_order["level"][:2].cat.remove_unused_categories())
    expected = ab.explain(model, CODED[:2], 1, absence="median", data=CODED)
    found = ab.explain(model, few, 1, absence="median", data=other_order)
    torch.testing.assert_close(found.shapley.values, expected.shapley.values)
    torch.testing.assert_close(found.x, expected.x)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_category_that_a_booster_does_not_know_is_named(name: str) -> None:
    unknown = CODED[:3].assign(work=pd.Categorical(["clerk", "pilot", "clerk"]))
    with pytest.raises(
        ab.AbsentiaError,
        match=r"x must hold categories of column 'work' that the model knows. Got 'pilot' in row 1 instead. "
        r"The model knows clerk, farmer, teacher.",
    ):
        ab.explain(BOOSTERS[name], unknown, 1, absence="median", data=CODED)


def test_a_category_that_a_pipeline_refuses_is_named() -> None:
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(FRAME[["work", "member"]], Y)
    unknown = FRAME[["work", "member"]][:3].assign(work=["clerk", "pilot", "clerk"])
    with pytest.raises(
        ab.AbsentiaError,
        match=r"x must hold categories of column 'work' that the model knows. Got 'pilot' in row 1 "
        r"\(ValueError: Found unknown .* The model knows clerk.",
    ):
        ab.explain(model, unknown, 1, absence="mode", data=FRAME[["work", "member"]])


def test_columns_of_the_fit_are_asked_for() -> None:
    model = BOOSTERS["lightgbm"]
    with pytest.raises(ab.AbsentiaError, match=r"x must have the columns of the fit, .* none named 'hours'"):
        ab.explain(model, CODED[["age", "work", "level", "member"]], 1, absence=0.0)
    with pytest.raises(
        ab.AbsentiaError, match=r"x must have the columns of the fit, .* Got also 'target' .* Drop it"
    ):
        ab.explain(model, CODED.assign(target=Y), 1, absence=0.0)
    with pytest.raises(ab.AbsentiaError, match="times in 'level'"):
        ab.explain(model, CODED.assign(level=pd.Timestamp("2020-01-01")), 1, absence=0.0)


def test_a_model_that_takes_no_frame_asks_for_numbers() -> None:
    with pytest.raises(
        ab.AbsentiaError, match=r"x must hold numbers. Got 'clerk' in column 'work'|x must hold numbers"
    ):
        ab.explain(lambda rows: rows.sum(1), FRAME[:2], absence=0.0)
    flags = pd.DataFrame({"a": [True, False], "b": [1.5, 2.5]})
    assert ab.explain(lambda rows: rows.sum(1), flags, absence=0.0).x.tolist() == [[1.0, 1.5], [0.0, 2.5]]


def test_objects_that_are_numbers_stay_numbers() -> None:
    frame = pd.DataFrame({"a": pd.Series([1, 2.5, 3, 4], dtype=object), "b": ["x", "y", "x", "y"]})
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(frame, [0, 1, 0, 1])
    inputs = encode_inputs(model, frame)
    assert inputs.model.table.categories == {"b": ("x", "y")}
    assert inputs.x.to_numpy().tolist() == [[1, 0], [2.5, 1], [3, 0], [4, 1]]


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOSTERS)
def test_audits_and_learning_take_such_tables(name: str) -> None:
    model = BOOSTERS[name]
    audit = ab.audit(model, CODED[:30], Y[:30], data=CODED[30:], draws=1)
    assert {"median", "mode", "marginal", "neighbours"} <= set(audit.methods)
    assert audit.players == tuple(FRAME.columns)
    learned = ab.learn_baseline(model, CODED, Y, options=QUICK)
    assert learned.players.categories[2] == tuple(LEVELS)
    assert learned.values[2] in (0, 1, 2)
    assert ab.explain(model, CODED[:2], Y[:2], absence=learned).stand_ins.shape == (2, 5)


@pytest.mark.slow
def test_learned_categories_are_known_by_name() -> None:
    model = pipeline(FRAME, Y)
    plain = FRAME.astype({"hours": float, "level": object})
    learned = ab.learn_baseline(model, plain, Y, options=QUICK)
    work = learned.players.categories[1][int(learned.values[1])]
    others = plain[plain["work"] != work][:2]  # their own codes would be others
    shown = ab.explain(model, others, 1, absence=learned).to_frame().set_index("player")
    assert (shown.loc["work", "stand_in"] == work).all()
    fewer = learned.coded_for({1: ("pilot", work), 2: learned.players.categories[2]})
    assert fewer.values[1] == 1
    with pytest.raises(ab.AbsentiaError, match=f"know the category '{work}' of 'work'"):
        learned.coded_for({1: ("pilot",)})


@pytest.mark.slow
def test_a_word_has_the_same_stand_ins_in_explanations_and_audits() -> None:
    model = BOOSTERS["lightgbm"]
    game = ab.MaskedModel(model, CODED[:5], 1, absence="mean", data=CODED)
    explanation = ab.explain(model, CODED[:5], 1, absence="mean", data=CODED)
    torch.testing.assert_close(explanation.stand_ins[:1], game.fill.values[0])
    by_word = ab.audit(model, CODED[:20], Y[:20], ["mean"], data=CODED, draws=1)
    by_values = ab.audit(
        model, CODED[:20], Y[:20], {"mean": ab.Baseline(explanation.stand_ins[0])}, data=CODED, draws=1
    )
    torch.testing.assert_close(by_word.R.value, by_values.R.value)


def test_players_know_columns_by_their_place_in_x() -> None:
    model = BOOSTERS["lightgbm"]
    shuffled = CODED[CODED.columns[::-1]]
    groups = {"person": ["age", "member"], "job": ["work", "hours", "level"]}
    of_shuffled = ab.Players.groups(groups, list(shuffled.columns))
    of_fit = ab.Players.groups(groups, list(CODED.columns))
    found = ab.explain(model, shuffled[:2], 1, absence="median", data=shuffled, players=of_shuffled)
    expected = ab.explain(model, CODED[:2], 1, absence="median", data=CODED, players=of_fit)
    torch.testing.assert_close(found.shapley.values, expected.shapley.values, rtol=1e-4, atol=1e-4)


def test_names_with_spaces_are_those_of_lightgbm() -> None:
    import lightgbm

    spaced = CODED.rename(columns={"work": "kind of work", "age": "age in years"})
    model = lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1).fit(spaced, Y)
    assert ab.explain(model, spaced[:1], 1, absence="median", data=spaced).names == tuple(spaced.columns)


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_background_may_hold_categories(name: str) -> None:
    model = BOOSTERS[name]
    rows = CODED[40:45]
    game = ab.MaskedModel(model, CODED[:3], 1, absence=ab.Marginal(rows))
    by_word = ab.MaskedModel(model, CODED[:3], 1, absence="marginal", data=rows)
    torch.testing.assert_close(ab.value_table(game).values, ab.value_table(by_word).values)
    one = ab.explain(model, CODED[:3], 1, absence=ab.Marginal(CODED[40:41]))
    np.testing.assert_allclose(
        one.interactions.predict(ab.coalitions.enumerate_coalitions(5))[2],
        masked_by_hand(model, CODED, 2, 40),
        atol=1e-4,
    )


def test_categories_of_a_background_are_known_though_no_sample_has_them() -> None:
    plain = FRAME.astype({"hours": float, "level": object})
    model = pipeline(FRAME, Y)
    is_clerk = plain["work"] == "clerk"
    same = plain[is_clerk][:3]
    others = plain[~is_clerk][:4]
    shuffled = others[others.columns[::-1]]
    game = ab.MaskedModel(model, same, 1, absence=ab.Marginal(shuffled))
    by_word = ab.MaskedModel(model, same, 1, absence="marginal", data=others)
    torch.testing.assert_close(ab.value_table(game).values, ab.value_table(by_word).values)
    audit = ab.audit(
        model, plain[:20], 1, absences={"rows": ab.Marginal(others), "others": ab.Marginal(plain[20:30])}
    )
    assert list(audit.record.absences) == ["rows", "others"]


def test_a_background_of_categories_needs_an_estimator() -> None:
    with pytest.raises(ab.AbsentiaError, match=r"background must hold numbers.*an estimator as the model"):
        ab.explain(lambda rows: rows.sum(1), np.zeros((2, FRAME.shape[1])), absence=ab.Marginal(CODED[:5]))
    assert repr(ab.Marginal(CODED[:5], draws=2)) == "Marginal(2 of 5 rows)"


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_rows_of_numbers_for_a_booster_of_categories_are_refused(name: str) -> None:
    model = BOOSTERS[name]
    numbers = np.zeros((2, FRAME.shape[1]))
    with pytest.raises(ab.AbsentiaError, match=r"x must be a DataFrame with the categories.*Pass a DataFrame"):
        ab.explain(model, numbers, absence=0.0)
    with pytest.raises(ab.AbsentiaError, match=r"x must be a DataFrame with the categories.*Pass a DataFrame"):
        ab.explain(model, pd.DataFrame(numbers, columns=FRAME.columns), absence=0.0)
