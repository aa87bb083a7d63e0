"""Estimators and pipelines of scikit-learn are models, and tables with categories become rows of numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import absentia as ab
from absentia import interop
from peer_cases import assert_asks_for, brute_force, normal


def made_up(rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": draw.integers(18, 80, rows),
            "city": draw.choice(["Bern", "Oslo", "Rome"], rows),
            "income": draw.normal(3.0, 1.0, rows),
            "member": draw.random(rows) < 0.5,
            "grade": pd.Categorical(draw.choice(["low", "high"], rows), categories=["low", "mid", "high"]),
        }
    )
    score = (frame.city == "Oslo") * 2.0 + frame.income - 3.0 + (frame.grade == "high") * 1.0 - frame.member
    return frame, (score + draw.normal(size=rows) > 0.5).to_numpy().astype(int)


def pipeline(frame: pd.DataFrame, y: np.ndarray) -> Pipeline:
    steps = ColumnTransformer(
        [
            ("categories", OneHotEncoder(), ["city", "member", "grade"]),
            ("numbers", StandardScaler(), ["age", "income"]),
        ]
    )
    return Pipeline([("columns", steps), ("classifier", LogisticRegression())]).fit(frame, y)


def test_a_pipeline_with_categories_is_explained_by_its_raw_columns() -> None:
    frame, y = made_up()
    fitted = pipeline(frame, y)
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(fitted, table)
    x = table.rows[:4]
    other = table.rows[60]
    ours = ab.shapley(ab.MaskedModel(model, x, 1, players=table.players, absence=ab.Baseline(other)))
    assert ours.names == tuple(frame.columns)

    def log_odds(sample: int, members: tuple[int, ...]) -> float:  # by frames alone
        mixed = frame.iloc[[60]].copy()
        for member in members:
            mixed[frame.columns[member]] = frame[frame.columns[member]].iloc[[sample]].to_numpy()
        mixed = mixed.astype(frame.dtypes.to_dict())
        return float(fitted.decision_function(mixed)[0])

    asked: dict[frozenset[int], float] = {}
    for members in itertools.chain.from_iterable(itertools.combinations(range(5), size) for size in range(6)):
        asked[frozenset(members)] = log_odds(2, members)
    brute = brute_force(lambda members: asked[frozenset(members)], 5)
    np.testing.assert_allclose(ours.values[2], brute, atol=1e-9)
    assert np.abs(brute[1]) + np.abs(brute[2]) > 0.1


def test_a_frame_of_numbers_keeps_the_names_of_its_rows() -> None:
    frame, y = made_up()
    named = frame.set_axis([f"person {number}" for number in range(len(frame))])
    table = interop.EncodedTable.of(named)
    numbers = table.numbers(named.iloc[[7, 3]])
    np.testing.assert_array_equal(numbers.to_numpy(), table.rows[[7, 3]])
    model = interop.from_estimator(pipeline(frame, y), table)
    found = ab.explain(model, numbers, absence="marginal", data=table.rows, players=table.players)
    assert found.record.rows == ("person 7", "person 3")
    assert found.sample_name(1) == "row person 3"
    shown = set(found.to_frame()["stand_in"][[isinstance(one, str) for one in found.to_frame()["stand_in"]]])
    assert shown == {"varies"}  # the mean of several categories is none


def test_columns_come_in_the_order_of_the_fit() -> None:
    frame, y = made_up()
    fitted = LogisticRegression().fit(frame[["income", "age"]], y)
    plain = interop.from_estimator(fitted)
    np.testing.assert_allclose(
        plain(torch.from_numpy(frame[["income", "age"]].to_numpy())).exp(),
        fitted.predict_proba(frame[["income", "age"]]),
    )
    shuffled = interop.EncodedTable.of(frame[["age", "income"]])
    np.testing.assert_allclose(interop.from_estimator(fitted, shuffled)(shuffled.rows), plain(shuffled.rows.flip(1)))
    with pytest.raises(ab.AbsentiaError, match="none named 'income'"):
        interop.from_estimator(fitted, interop.EncodedTable.of(frame[["age"]]))
    with pytest.raises(ab.AbsentiaError, match="the 2 columns of the fit"):
        plain(torch.zeros(1, 3))


def test_estimators_give_what_says_most() -> None:
    x = normal(40, 2, seed=1).numpy()
    y = np.arange(40) % 2
    rows = torch.from_numpy(x)
    bayes = GaussianNB().fit(x, y)
    np.testing.assert_allclose(interop.from_estimator(bayes)(rows), bayes.predict_log_proba(x), atol=1e-9)
    raw = interop.from_estimator(bayes, probabilities=False)
    np.testing.assert_allclose(raw(rows), bayes.predict_proba(x))
    machine = LinearSVC().fit(x, y)
    np.testing.assert_allclose(interop.from_estimator(machine)(rows), machine.decision_function(x))
    line = LinearRegression().fit(x, x @ [2.0, -1.0])
    ours = ab.shapley(ab.MaskedModel(interop.from_estimator(line), rows[:3], absence=ab.Baseline(0.5)))
    np.testing.assert_allclose(ours.values, (x[:3] - 0.5) * [2.0, -1.0], atol=1e-9)
    with pytest.raises(ab.AbsentiaError, match="have predict_proba"):
        interop.from_estimator(object())


def test_a_classifier_that_only_names_classes_is_refused() -> None:
    class Names:
        classes_ = (0, 1)

        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.zeros(len(rows))

    with pytest.raises(ab.AbsentiaError, match="one that only predicts classes"):
        interop.from_estimator(Names())


def test_tables_are_coded_and_decoded() -> None:
    frame, _ = made_up()
    frame.loc[3, "city"] = None
    table = interop.EncodedTable.of(frame)
    assert table.categorical == [1, 3, 4]
    assert table.categories["grade"] == ("low", "mid", "high")
    assert len(table.categories["city"]) == 4
    pd.testing.assert_frame_equal(table.decode(table.rows), frame.astype({"age": float}))
    assert torch.equal(table.encode(frame[frame.columns[::-1]]), table.rows)


def test_tables_refuse_what_is_no_category() -> None:
    frame, y = made_up()
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(pipeline(frame, y), table)
    with pytest.raises(ab.AbsentiaError, match=r"column 'city' must hold the numbers 0 … 2 .* such as median"):
        ab.value_table(ab.MaskedModel(model, table.rows[:1], 1, absence=ab.Baseline.mean(table.rows)))
    median = ab.Baseline.median(table.rows, categorical=table.categorical)
    assert ab.value_table(ab.MaskedModel(model, table.rows[:1], 1, absence=median)).values.isfinite().all()
    with pytest.raises(
        ab.AbsentiaError,
        match=r"known categories. Got 'Nice' in row 0 instead. Known categories are Bern, Oslo, Rome",
    ):
        table.encode(frame.assign(city="Nice"))
    with pytest.raises(ab.AbsentiaError, match="none named 'age'"):
        table.encode(frame[["city"]])
    with pytest.raises(ab.AbsentiaError, match="times in 'when'"):
        interop.EncodedTable.of(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(ab.AbsentiaError, match="with names, each once"):
        interop.EncodedTable.of(pd.DataFrame([[1.0, 2.0]]))


@pytest.mark.slow
def test_audits_of_categories_take_noise_from_rows() -> None:
    frame, y = made_up()
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(pipeline(frame, y), table)
    settings = {"data": table.rows, "players": table.players, "draws": 2}
    audit = ab.audit(model, table.rows[:20], y[:20], categorical=table.categorical, **settings)
    assert audit.methods == ("median", "mode", "marginal", "neighbours")
    assert audit.columns()["R"].isfinite().all()
    known = ab.audit(model, table.rows[:20], y[:20], **settings)
    assert torch.equal(known.R.value, audit.R.value)  # the players carry it
    with pytest.raises(ab.AbsentiaError, match=r"categorical must name columns from 0 to 4. Got 5 instead."):
        ab.audit(model, table.rows[:20], y[:20], categorical=[5], **settings)
    with pytest.raises(ab.AbsentiaError, match=r"categorical must agree with the players, .* Got \[1, 2\] instead"):
        ab.audit(model, table.rows[:20], y[:20], categorical=[[1, 2]], **settings)


def test_the_recommended_word_is_explained_as_it_was_audited() -> None:
    frame, y = made_up()
    frame["city"] = np.where(np.arange(120) < 50, "Bern", np.where(np.arange(120) < 80, "Oslo", "Rome"))
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(pipeline(frame, y), table)
    median = ab.Baseline.median(table.rows, categorical=table.categorical)
    settings = {"data": table.rows, "players": table.players}
    words = ab.audit(model, table.rows[:20], y[:20], ["median"], categorical=table.categorical, **settings)
    values = ab.audit(model, table.rows[:20], y[:20], {"median": median}, categorical=table.categorical, **settings)
    assert torch.equal(words.R.value, values.R.value)
    found = ab.explain(model, table.rows[:2], y[:2], absence="median", **settings)
    assert torch.equal(found.stand_ins, median.values.expand(2, -1))
    assert table.decode(found.stand_ins)["city"].tolist() == ["Bern", "Bern"]  # the median of the codes is Oslo


def test_a_model_that_decodes_a_table_knows_its_categories() -> None:
    frame, y = made_up()
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(pipeline(frame, y), table)
    game = ab.MaskedModel(model, table.numbers(frame)[:2], 1, absence="median", data=table.numbers(frame))
    assert game.players.categorical == table.players.categorical == ((1,), (3,), (4,))
    with pytest.raises(
        ab.AbsentiaError, match=r"absence must keep to the categories of the table's categorical columns. Got noise"
    ):
        ab.explain(model, table.rows[:2], 1, absence="noise", data=table.rows)
    mean = ab.explain(model, table.rows[:2], 1, absence="mean", data=table.rows)
    most_frequent = table.rows[:, [1, 3, 4]].mode(0).values
    torch.testing.assert_close(mean.stand_ins[0, [1, 3, 4]], most_frequent)
    torch.testing.assert_close(mean.stand_ins[0, [0, 2]], table.rows[:, [0, 2]].mean(0))
    with pytest.raises(ab.AbsentiaError, match="rows must have 5 columns"):
        ab.explain(model, table.rows[:2, :3], 1, absence=0.0)


@pytest.mark.slow
def test_the_loss_of_a_baseline_with_categories_is_measured() -> None:
    frame, y = made_up()
    table = interop.EncodedTable.of(frame)
    model = interop.from_estimator(pipeline(frame, y), table)
    options = ab.LearningOptions(rows_per_step=256)
    losses = {
        word: ab.baseline_loss(
            model, table.rows, y, absence=word, players=table.players, categorical=table.categorical, options=options
        )
        for word in ("median", "mode")
    }
    assert 0 < losses["median"] < losses["mode"]


def test_a_missing_pandas_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": [1.0]})
    assert_asks_for("pandas", "sklearn", monkeypatch, lambda: interop.EncodedTable.of(frame))
