"""Models of trees explained by the public functions, against enumeration of the model's own outputs and shap."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import shap
import shapiq
import torch
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import absentia as ab
import tree_rows
from absentia.evaluation.leaf_values import LeafValues, NotFromLeaves
from absentia.solvers.leaves import sums_over_leaves

COLUMNS = 6
RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(300, COLUMNS))
TWO = (ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2] > 0).astype(int)
THREE = TWO + (ROWS[:, 3] > 0.5)
NUMBERS = ROWS[:, 0] * ROWS[:, 1] + np.maximum(ROWS[:, 2], ROWS[:, 3])

MEAN = ab.Baseline(ROWS.mean(0))
SEVERAL = ab.Marginal(torch.from_numpy(ROWS[:7]))
GROUPS = ab.Players.groups({"a": [0, 3], "b": [1, 2], "c": [4]}, COLUMNS)

# A model, and the readout with which its value is a sum over leaves.
SUMS: dict[str, tuple[Any, Any]] = {
    "LightGBM of two classes": (lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(ROWS, TWO), None),
    "LightGBM of three classes": (
        lightgbm.LGBMClassifier(n_estimators=9, verbose=-1).fit(ROWS, THREE),
        ab.Logit([0, 1, 2]),
    ),
    "XGBoost of two classes": (xgboost.XGBClassifier(n_estimators=20, max_depth=4).fit(ROWS, TWO), ab.LogOdds(0)),
    "XGBoost regression": (xgboost.XGBRegressor(n_estimators=20, max_depth=4).fit(ROWS, NUMBERS), None),
    "gradient boosting": (GradientBoostingClassifier(n_estimators=10).fit(ROWS, TWO), ab.Logit(1)),
    "histogram boosting": (HistGradientBoostingClassifier(max_iter=10).fit(ROWS, TWO), None),
    "random forest": (RandomForestRegressor(10, max_depth=5).fit(ROWS, NUMBERS), None),
    "extra trees": (ExtraTreesRegressor(10, max_depth=5).fit(ROWS, NUMBERS), None),
    "probabilities of a forest": (
        RandomForestClassifier(10, max_depth=4).fit(ROWS, THREE),
        ab.Probability([0, 1, 2]),
    ),
    "one tree": (DecisionTreeClassifier(max_depth=4, random_state=0).fit(ROWS, THREE), None),
    "pipeline": (make_pipeline(StandardScaler(), RandomForestRegressor(5, max_depth=4)).fit(ROWS, NUMBERS), None),
}
FOREST = IsolationForest(n_estimators=20, random_state=0).fit(ROWS)
SUMS["isolation forest"] = (FOREST, ab.MeanDepth(FOREST))


def enumerated(game: ab.MaskedModel) -> ab.ValueTable:
    """Evaluate the model itself on all masked inputs."""
    return ab.ValueTable(game.evaluator.table(game.fill).values, game.names)


def close(values: torch.Tensor, expected: torch.Tensor) -> bool:
    """Return whether values agree up to the single precision in which some libraries add leaves up."""
    return torch.allclose(values, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("absence", [MEAN, SEVERAL], ids=["mean", "marginal"])
@pytest.mark.parametrize("players", [None, GROUPS], ids=["columns", "groups"])
@pytest.mark.parametrize("name", SUMS)
def test_all_results_are_those_of_enumeration(name: str, players: ab.Players | None, absence: Any) -> None:
    model, readout = SUMS[name]
    game = ab.MaskedModel(model, ROWS[:3], absence=absence, readout=readout, players=players)
    leaves = sums_over_leaves(game)
    assert leaves is not None
    table = enumerated(game)
    terms = ab.interactions(game)
    assert not terms.is_full
    every = ab.coalitions.enumerate_coalitions(len(game.names))
    assert close(terms.predict(every), table.values)
    assert close(ab.shapley(game).values, ab.shapley(table).values)
    assert close(ab.banzhaf(game).values, ab.banzhaf(table).values)
    assert close(ab.order_shapley(game).values, ab.order_shapley(table).values)
    assert close(ab.index(game, "Banzhaf").values, ab.banzhaf(table).values)
    assert close(game(every), table.values)


@pytest.mark.parametrize("name", ["SII", "k-SII", "STII", "FSII", "BII", "FBII"])
def test_indices_are_those_of_enumeration(name: str) -> None:
    model, _ = SUMS["LightGBM of two classes"]
    game = ab.MaskedModel(model, ROWS[:2], absence=MEAN)
    from_leaves = ab.index(game, name, order=2)
    from_table = ab.index(enumerated(game), name, order=2)
    for sample in range(2):
        numbers = {term.players: term.effect for term in from_leaves.top(99, sample)}
        for term in from_table.top(99, sample):
            assert numbers.get(term.players, 0.0) == pytest.approx(term.effect, abs=1e-5)


@pytest.mark.parametrize("name", ["LightGBM of two classes", "XGBoost regression", "random forest"])
def test_shapley_values_are_shap_s_interventional_ones(name: str) -> None:
    model, _ = SUMS[name]
    background = ROWS[:20]
    explainer = shap.TreeExplainer(model, background, feature_perturbation="interventional")
    expected = torch.from_numpy(np.asarray(explainer.shap_values(ROWS[:5], check_additivity=False))).double()
    readout = ab.LogOdds(1) if name.startswith("LightGBM") else ab.Output(0)
    game = ab.MaskedModel(model, ROWS[:5], absence=ab.Marginal(torch.from_numpy(background)), readout=readout)
    assert close(ab.shapley(game).values, expected)


def test_an_explanation_of_sixty_columns_is_exact() -> None:
    rows = RANDOM.normal(size=(400, 60))
    target = 3 * rows[:, 0] * rows[:, 1] + rows[:, 2:9].sum(1)
    model = lightgbm.LGBMRegressor(n_estimators=60, verbose=-1).fit(rows, target)
    explanation = ab.explain(model, rows[:3], absence="mean", data=rows)
    assert explanation.record.exact
    assert explanation.record.evaluations == 0
    assert "sums over the leaves of 60 trees" in explanation.record.notes[0]
    assert float(explanation.efficiency_gap.abs().max()) < 1e-12
    np.testing.assert_allclose(explanation.outputs, model.predict(rows[:3]))
    effects = explanation.interactions
    assert effects is not None
    total = torch.zeros(3, dtype=torch.float64).index_add(0, effects.owners, effects.effects)
    assert torch.allclose(total, explanation.outputs)
    mean = rows.mean(0)
    corners = np.stack([mean, mean, mean, mean])
    corners[[1, 3], 0] = rows[0, 0]
    corners[[2, 3], 1] = rows[0, 1]
    expected = model.predict(corners) @ [1, -1, -1, 1]  # the interaction of the first two columns by its definition
    pairs = {term.players: term.effect for term in effects.top(10_000)}
    assert pairs.get(("x0", "x1"), 0.0) == pytest.approx(expected)
    assert expected != 0


def test_values_that_are_no_sums_are_computed_from_leaves() -> None:
    model, _ = SUMS["LightGBM of three classes"]
    game = ab.MaskedModel(model, ROWS[:3], absence=MEAN)
    assert isinstance(game.leaf_values, LeafValues)
    assert game.leaf_values.weights is None
    assert close(ab.value_table(game).values, enumerated(game).values)


@pytest.mark.slow
def test_sampled_values_say_which_readout_would_be_exact() -> None:
    rows = RANDOM.normal(size=(200, 30))
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(rows, rows[:, 0] > 0)
    notes = ab.explain(forest, rows[:1], absence="mean", data=rows, evaluations=200).record.notes
    assert any(
        "With readout=Probability(y), all results are exact for any number of players" in note for note in notes
    )
    exact = ab.explain(forest, rows[:1], absence="mean", data=rows, readout=ab.Probability(1))
    assert exact.record.exact
    assert exact.interactions is not None


def test_one_hot_codes_of_a_category_belong_to_its_player() -> None:
    frame = pd.DataFrame({"city": RANDOM.choice(["Rome", "Milan", "Bari"], 200), "area": ROWS[:200, 0]})
    target = frame["area"] * (frame["city"] == "Rome") - (frame["city"] == "Bari")
    codes = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    model = make_pipeline(codes, RandomForestRegressor(5, max_depth=4, random_state=0)).fit(frame, target)
    table = ab.interop.EncodedTable.of(frame)
    game = ab.MaskedModel(
        ab.interop.from_estimator(model, table),
        table.rows[:4],
        absence=ab.Marginal(table.rows),
        players=table.players,
    )
    assert sums_over_leaves(game) is not None
    assert close(ab.interactions(game).predict(ab.coalitions.enumerate_coalitions(2)), enumerated(game).values)


def test_a_step_that_mixes_columns_is_run_and_said() -> None:
    model = make_pipeline(PCA(4), RandomForestRegressor(5, max_depth=4)).fit(ROWS, NUMBERS)
    explanation = ab.explain(model, ROWS[:2], absence=MEAN)
    assert explanation.record.evaluations == 2 * 2**COLUMNS
    assert any("a step before its trees mixes columns" in note for note in explanation.record.notes)


def test_a_model_that_predicts_otherwise_than_its_trees_is_run_and_said() -> None:
    model = RandomForestRegressor(5, max_depth=4).fit(ROWS, NUMBERS)
    by_trees = model.predict
    model.predict = lambda rows: by_trees(rows) + 0.01 * rows[:, 0]
    game = ab.MaskedModel(model, ROWS[:2], absence=MEAN)
    assert isinstance(game.leaf_values, NotFromLeaves)
    explanation = ab.explain(model, ROWS[:2], absence=MEAN)
    assert any("give other outputs than the model" in note for note in explanation.record.notes)
    np.testing.assert_allclose(explanation.outputs, model.predict(ROWS[:2]))


@pytest.mark.slow
def test_low_orders_stay_exact_where_all_are_too_many() -> None:
    model, _ = SUMS["LightGBM of two classes"]
    game = ab.MaskedModel(model, ROWS[:2], absence=MEAN)
    leaves = sums_over_leaves(game)
    assert leaves is not None
    every = leaves.terms()
    few = leaves.terms(most_terms=100, enumerate_up_to=0)
    assert few.highest_order is not None
    assert f"Interactions of more than {few.highest_order} players are left out" in few.notes[0]
    listed = {(term.players, round(term.effect, 9)) for term in few.top(999)}
    expected = {(t.players, round(t.effect, 9)) for t in every.top(999) if len(t.players) <= few.highest_order}
    assert listed == expected
    for use in (few.shapley, few.sparsity, lambda: ab.index(few, "SII")):
        with pytest.raises(ab.AbsentiaError, match="hold all sets that have an effect"):
            use()


def test_few_columns_are_enumerated_where_expanding_takes_too_long() -> None:
    model, _ = SUMS["LightGBM of two classes"]
    game = ab.MaskedModel(model, ROWS[:2], absence=MEAN)
    leaves = sums_over_leaves(game)
    assert leaves is not None
    enumerated_terms = leaves.terms(most_terms=100)
    assert enumerated_terms.is_full
    every = ab.coalitions.enumerate_coalitions(COLUMNS)
    assert close(enumerated_terms.predict(every), leaves.terms().predict(every))


class Squared(ab.Output):
    """A readout that is not a sum over leaves, though its parent is."""

    def __call__(self, output: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
        return super().__call__(output, sample) ** 2


def test_a_readout_of_the_users_own_is_not_taken_for_its_parent() -> None:
    model, _ = SUMS["random forest"]
    game = ab.MaskedModel(model, ROWS[:2], absence=MEAN, readout=Squared(0))
    assert sums_over_leaves(game) is None
    explanation = ab.explain(model, ROWS[:2], absence=MEAN, readout=Squared(0))
    np.testing.assert_allclose(explanation.outputs, model.predict(ROWS[:2]) ** 2)


def test_products_of_columns_before_the_trees_are_noticed() -> None:
    flags = (RANDOM.random((1000, 4)) < 0.12).astype(float)
    target = 5 * flags[:, 0] * flags[:, 1] + flags[:, 2]
    products = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    model = make_pipeline(products, GradientBoostingRegressor(n_estimators=10)).fit(flags, target)
    explanation = ab.explain(model, np.zeros((1, 4)), absence=ab.Marginal(torch.from_numpy(flags[:300])))
    assert float(explanation.base_values[0]) == pytest.approx(model.predict(flags[:300]).mean())


class Capped(RandomForestRegressor):
    """A forest that predicts otherwise only for large values."""

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return np.minimum(super().predict(rows), 1.0)


def test_a_forest_that_predicts_in_its_own_way_is_run() -> None:
    model = Capped(5, max_depth=4).fit(ROWS, NUMBERS)
    explanation = ab.explain(model, ROWS, absence=MEAN)
    np.testing.assert_allclose(explanation.outputs, model.predict(ROWS))
    assert any("Capped has its own predict" in note for note in explanation.record.notes)


def test_an_infinite_base_score_is_run() -> None:
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(ROWS, np.ones(len(ROWS))), 3)
    explanation = ab.explain(booster, ROWS[:2], 1, absence=MEAN)
    assert bool(explanation.outputs.isfinite().all())


@pytest.mark.parametrize("kind", [VotingRegressor, StackingRegressor])
def test_ensembles_of_ensembles_are_run(kind: Any) -> None:
    members = [("a", RandomForestRegressor(3, max_depth=3)), ("b", DecisionTreeRegressor(max_depth=3))]
    model = kind(members).fit(ROWS, NUMBERS)
    explanation = ab.explain(model, ROWS[:2], absence=MEAN)
    np.testing.assert_allclose(explanation.outputs, model.predict(ROWS[:2]))


def test_a_vote_of_classifiers_is_run() -> None:
    members = [("a", RandomForestClassifier(3)), ("b", GradientBoostingClassifier(n_estimators=3))]
    model = VotingClassifier(members, voting="soft").fit(ROWS, TWO)
    assert ab.explain(model, ROWS[:2], absence=MEAN).record.evaluations > 0


def test_a_game_can_be_pickled_after_its_use() -> None:
    model, _ = SUMS["LightGBM of two classes"]
    game = ab.MaskedModel(model, ROWS[:2], absence=MEAN)
    values = ab.shapley(game).values
    assert torch.equal(ab.shapley(pickle.loads(pickle.dumps(game))).values, values)


def test_a_booster_of_another_number_of_columns_is_refused() -> None:
    model, _ = SUMS["XGBoost regression"]
    with pytest.raises(ab.AbsentiaError, match="columns"):
        ab.explain(model, ROWS[:2, :4], absence=0.0)


def test_a_forest_of_lightgbm_is_read_by_its_means() -> None:
    settings = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6, "feature_fraction": 0.8}
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, **settings).fit(ROWS, TWO)
    explanation = ab.explain(model, ROWS[:3], 1, absence=MEAN)
    assert explanation.record.evaluations == 0
    chances = model.predict_proba(ROWS[:3])[:, 1]
    np.testing.assert_allclose(explanation.outputs, np.log(chances / (1 - chances)), rtol=1e-6)


def test_the_best_model_of_a_search_is_explained_from_its_leaves() -> None:
    search = GridSearchCV(RandomForestRegressor(3), {"max_depth": [2, 3]}, cv=2).fit(ROWS, NUMBERS)
    explanation = ab.explain(search, ROWS[:2], absence=MEAN)
    assert explanation.record.evaluations == 0
    np.testing.assert_allclose(explanation.outputs, search.predict(ROWS[:2]))


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (CalibratedClassifierCV(RandomForestClassifier(3, max_depth=3), cv=2), TWO),
        (VotingRegressor([("a", RandomForestRegressor(3, max_depth=3))]), NUMBERS),
        (AdaBoostRegressor(n_estimators=3), NUMBERS),
    ],
    ids=["calibrated", "vote", "AdaBoost"],
)
def test_why_trees_within_another_model_are_not_read_is_said(model: Any, target: np.ndarray) -> None:
    notes = ab.explain(model.fit(ROWS, target), ROWS[:2], absence=MEAN).record.notes
    assert any(f"the trees within a {type(model).__name__} are not read" in note for note in notes)


def test_stand_ins_that_depend_on_the_coalition_are_said() -> None:
    model, _ = SUMS["random forest"]
    for absence in ("gaussian", "neighbours"):
        notes = ab.explain(model, ROWS[:2], absence=absence, data=ROWS).record.notes
        assert any("what stands in for absent columns depends on those that are present" in note for note in notes)


def test_values_that_are_no_sums_name_the_exact_readout() -> None:
    model, _ = SUMS["LightGBM of three classes"]
    notes = ab.explain(model, ROWS[:2], absence=MEAN).record.notes
    assert any("With readout=Logit(y), all results are exact" in note for note in notes)


COUNTS = np.floor(np.exp(ROWS[:, 0] / 2) * 3)
OF_COUNTS = {
    "XGBoost": xgboost.XGBRegressor(objective="count:poisson", n_estimators=10, max_depth=3),
    "LightGBM Poisson": lightgbm.LGBMRegressor(objective="poisson", n_estimators=10, verbose=-1),
    "LightGBM Tweedie": lightgbm.LGBMRegressor(objective="tweedie", n_estimators=10, verbose=-1),
    "histogram": HistGradientBoostingRegressor(loss="poisson", max_iter=10),
}


@pytest.mark.parametrize("name", OF_COUNTS)
def test_models_of_counts_are_valued_from_leaves(name: str) -> None:
    model = OF_COUNTS[name].fit(ROWS, COUNTS)
    explanation = ab.explain(model, ROWS[:3], absence=MEAN)
    assert any("With readout=LogOutput(), all results are exact" in note for note in explanation.record.notes)
    np.testing.assert_allclose(explanation.outputs, model.predict(ROWS[:3]), rtol=1e-5)
    game = ab.MaskedModel(model, ROWS[:3], absence=MEAN)
    assert isinstance(game.leaf_values, LeafValues)
    assert close(ab.value_table(game).values, enumerated(game).values)
    of_logarithm = ab.MaskedModel(model, ROWS[:3], absence=SEVERAL, readout=ab.LogOutput())
    assert sums_over_leaves(of_logarithm) is not None
    assert close(ab.shapley(of_logarithm).values, ab.shapley(enumerated(of_logarithm)).values)


@pytest.mark.parametrize("name", ["SII", "k-SII", "STII", "FSII", "BII", "FBII"])
def test_indices_are_there_where_interactions_are_left_out(name: str) -> None:
    rows = RANDOM.normal(size=(300, 30))
    target = rows[:, 0] * rows[:, 1] + rows[:, :8].sum(1)
    model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1).fit(rows, target)
    game = ab.MaskedModel(model, rows[:2], absence=ab.Marginal(torch.from_numpy(rows[5:9])))
    leaves = sums_over_leaves(game)
    assert leaves is not None
    from_leaves = ab.index(game, name, order=3)
    listed = ab.index(leaves.terms(), name, order=3)
    for sample in range(2):
        numbers = {term.players: term.effect for term in listed.top(10**6, sample)}
        for term in from_leaves.top(10**6, sample):
            assert numbers.pop(term.players) == pytest.approx(term.effect, abs=1e-9)
        assert all(abs(effect) < 1e-9 for effect in numbers.values())
    assert torch.allclose(from_leaves.base_values, listed.base_values)


# Columns of the tables of random boosters. The last ones hold categories.
NUMERIC = 4
CATEGORIES = {4: 5, 5: 3}
INDICES = ["SII", "k-SII", "STII", "FSII", "BII", "FBII"]
SEEDS = st.integers(0, 2**32 - 1)


def table_with_gaps(random: np.random.Generator, *, categorical: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with missing values, the last columns categories if asked for, and targets that depend on all."""
    rows = tree_rows.table(random, 120, COLUMNS, missing=0.2)
    if categorical:
        rows = tree_rows.with_categories(rows, random, CATEGORIES)
    filled = np.nan_to_num(rows, nan=1.5)
    products = filled[:, 0] * filled[:, 4] + filled[:, 1] * filled[:, 5]
    return rows, products + filled[:, 2] * (filled[:, 4] == 2) + (filled[:, 5] == 1) * np.isnan(rows[:, 3])


def random_lightgbm(random: np.random.Generator, rows: np.ndarray, target: np.ndarray, *, categorical: bool) -> Any:
    """Fit a LightGBM regressor with settings drawn at random."""
    settings = {
        "n_estimators": int(random.integers(2, 9)),
        "num_leaves": int(random.integers(2, 16)),
        "max_cat_to_onehot": int(random.integers(1, 6)),
        "learning_rate": 0.5,
    }
    model = lightgbm.LGBMRegressor(
        **settings, min_child_samples=3, min_data_per_group=5, cat_smooth=1, n_jobs=1, verbose=-1
    )
    columns = list(CATEGORIES) if categorical else "auto"
    return model.fit(rows, target, categorical_feature=columns)


def random_xgboost(random: np.random.Generator, rows: np.ndarray, target: np.ndarray, *, categorical: bool) -> Any:
    """Fit an XGBoost regressor with settings drawn at random."""
    settings = {
        "n_estimators": int(random.integers(2, 9)),
        "max_depth": int(random.integers(1, 6)),
        "max_cat_to_onehot": int(random.integers(1, 6)),
        "learning_rate": 0.5,
    }
    types = ["q"] * COLUMNS
    if categorical:
        types = ["c" if column in CATEGORIES else "q" for column in range(COLUMNS)]
    model = xgboost.XGBRegressor(**settings, n_jobs=1, enable_categorical=True, feature_types=types)
    return model.fit(rows, target)


FITS = {"LightGBM": random_lightgbm, "XGBoost": random_xgboost}


def random_game(library: str, seed: int, *, categorical: bool = True) -> ab.MaskedModel:
    """Return the game of a random booster on two samples with missing values; some players hold several columns."""
    random = np.random.default_rng(seed)
    rows, target = table_with_gaps(random, categorical=categorical)
    model = FITS[library](random, rows, target, categorical=categorical)
    draws = int(random.integers(1, 5))
    players = GROUPS if random.integers(2) else None
    return ab.MaskedModel(model, rows[:2], absence=ab.Marginal(rows[10 : 10 + draws]), players=players)


def sets_of(terms: ab.Terms, sample: int) -> dict[tuple[str, ...], float]:
    """Return the effect of each set that is listed."""
    return {term.players: term.effect for term in terms.top(10**6, sample)}


@pytest.mark.slow
@settings(max_examples=12)
@given(st.sampled_from(list(FITS)), SEEDS)
def test_missing_values_and_categories_of_boosters_give_the_results_of_enumeration(library: str, seed: int) -> None:
    game = random_game(library, seed)
    leaves = sums_over_leaves(game)
    assert leaves is not None
    table = enumerated(game)
    every = ab.coalitions.enumerate_coalitions(len(game.names))
    assert close(leaves.terms(enumerate_up_to=0).predict(every), table.values)
    assert close(ab.shapley(game).values, ab.shapley(table).values)
    assert close(ab.order_shapley(game).values, ab.order_shapley(table).values)
    assert close(ab.banzhaf(game).values, ab.banzhaf(table).values)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.sampled_from(list(FITS)), SEEDS, st.sampled_from(INDICES), st.integers(1, 3))
def test_indices_of_boosters_are_those_of_enumeration(library: str, seed: int, name: str, order: int) -> None:
    game = random_game(library, seed)
    assert sums_over_leaves(game) is not None
    table = enumerated(game)
    largest = float(table.values.abs().max())
    from_leaves = ab.index(game, name, order=order)
    from_table = ab.index(table, name, order=order)
    for sample in range(game.samples):
        numbers = sets_of(from_leaves, sample)
        for members, effect in sets_of(from_table, sample).items():
            assert numbers.pop(members, 0.0) == pytest.approx(effect, abs=1e-5 * largest)
        assert all(abs(effect) < 1e-5 * largest for effect in numbers.values())


@pytest.mark.slow
@settings(max_examples=12)
@given(st.sampled_from(list(FITS)), SEEDS)
def test_shapley_values_with_missing_values_are_shap_s(library: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, target = table_with_gaps(random, categorical=False)
    model = FITS[library](random, rows, target, categorical=False)
    background = rows[20:35]
    explainer = shap.TreeExplainer(model, background, feature_perturbation="interventional")
    expected = torch.from_numpy(np.asarray(explainer.shap_values(rows[:5], check_additivity=False))).double()
    game = ab.MaskedModel(model, rows[:5], absence=ab.Marginal(background))
    assert sums_over_leaves(game) is not None
    assert close(ab.shapley(game).values, expected)


@pytest.mark.parametrize("name", INDICES)
def test_indices_of_trees_are_those_of_shapiq(name: str) -> None:
    random = np.random.default_rng(3)
    rows, target = table_with_gaps(random, categorical=True)
    model = random_lightgbm(random, rows, target, categorical=True)
    sample, stand_in = rows[np.isnan(rows).sum(1).argsort()[-2:]]  # those with the most missing values

    def values(coalitions: np.ndarray) -> np.ndarray:
        present = np.atleast_2d(coalitions).astype(bool)
        predictions: np.ndarray = model.predict(np.where(present, sample, stand_in))
        return predictions

    theirs = shapiq.ExactComputer(values, n_players=COLUMNS)(name, order=3)
    game = ab.MaskedModel(model, sample[None], absence=ab.Baseline(stand_in))
    assert sums_over_leaves(game) is not None
    numbers = sets_of(ab.index(game, name, order=3), 0)
    compared = 0
    for size in (1, 2, 3):
        for members in itertools.combinations(range(COLUMNS), size):
            names = tuple(game.names[player] for player in members)
            assert numbers.pop(names, 0.0) == pytest.approx(theirs[members], abs=1e-9)
            compared += 1
    assert compared == 41
    assert set(numbers) <= {()}


class Damaged(lightgbm.Booster):
    """A booster that predicts as another one does, but whose export is changed."""

    def __init__(self, booster: lightgbm.Booster, damage: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__(model_str=booster.model_to_string())
        self.damage = damage

    def dump_model(self, *arguments: Any, **settings: Any) -> dict[str, Any]:
        dump: dict[str, Any] = copy.deepcopy(super().dump_model(*arguments, **settings))
        self.damage(dump["tree_info"][0]["tree_structure"])
        return dump


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda root: root.pop("left_child"), "stored in an unknown form (KeyError: 'left_child')"),
        (lambda root: root.update(split_feature=17), "must split one of 6 columns. Got column 17"),
        (
            lambda root: root.update(left_child=root["right_child"], right_child=root["left_child"]),
            "give other outputs than the model",
        ),
    ],
    ids=["a missing child", "a column that does not exist", "swapped children"],
)
def test_a_model_whose_export_is_damaged_is_run_and_said(damage: Callable[[dict[str, Any]], Any], why: str) -> None:
    booster = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(ROWS, NUMBERS).booster_
    explanation = ab.explain(Damaged(booster, damage), ROWS[:2], absence=MEAN)
    assert explanation.record.evaluations == 2 * 2**COLUMNS
    (note,) = (note for note in explanation.record.notes if why in note)
    assert "run on masked inputs" in note
    of_whole = ab.explain(booster, ROWS[:2], absence=MEAN)
    assert of_whole.record.evaluations == 0
    assert close(explanation.shapley.values, of_whole.shapley.values)


class Broken(RandomForestRegressor):
    """A forest that has lost a tree's nodes, so that it cannot be run either."""

    def predict(self, rows: np.ndarray) -> np.ndarray:
        raise ValueError("node array from the pickle has an incompatible dtype")


def test_a_damaged_model_that_cannot_be_run_has_a_clear_error() -> None:
    model = Broken(3, max_depth=3).fit(ROWS, NUMBERS)
    with pytest.raises(ab.AbsentiaError, match=r"The model fails on .* samples of shape \(6,\).*incompatible dtype"):
        ab.explain(model, ROWS[:2], absence=MEAN)
