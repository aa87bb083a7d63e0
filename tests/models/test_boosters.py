"""Boosters are read by their margins."""

import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

import absentia as ab
from absentia.interop import EncodedTable, from_estimator
from absentia.models.adapters import as_model
from absentia.models.estimators import wrap_estimator
from small_boosters import GENERATOR, THREE, TWO, X, gb, lgb, note, outputs, xgb

DIFFER = "margins differ from predict_proba: probabilities are read"


def hist(y=TWO, **settings):
    return HistGradientBoostingClassifier(max_iter=20, random_state=0, **settings).fit(X, y)


def margins_of(model, rows=X[:40]):
    """What each library documents as the margin."""
    if isinstance(model, xgboost.XGBClassifier):
        return model.predict(rows, output_margin=True)
    if isinstance(model, lightgbm.LGBMClassifier):
        return model.predict(rows, raw_score=True)
    return model.decision_function(rows)


@pytest.fixture(scope="module")
def saturating():
    """A booster whose margins reach hundreds, by few steps that are far too long."""
    return xgb(n_estimators=3, learning_rate=80.0)


def test_a_saturating_row_reads_as_its_margin_by_both_faces_of_xgboost(saturating):
    margins = saturating.predict(X[:40], output_margin=True)
    assert np.abs(margins).max() > 100
    assert np.isin(saturating.predict_proba(X[:40]), (0, 1)).any()
    np.testing.assert_allclose(outputs(saturating), margins, rtol=1e-7)
    np.testing.assert_allclose(outputs(saturating.get_booster()), margins, rtol=1e-7)


def test_margins_of_xgboost_round_as_single_precision_does(saturating):
    evaluator = ab.Evaluator(ab.Task(saturating, torch.from_numpy(X), readout=ab.LogOdds(1)))
    assert evaluator.task.probe.dtype == torch.float32
    table = evaluator.table(ab.Baseline(0.0).bind(evaluator.x[:2]), samples=torch.arange(2))
    largest = table.values.abs().amax(1)
    assert (table.noise >= largest * torch.finfo(torch.float32).eps).all()


@pytest.mark.parametrize("make", [xgb, lgb, gb, hist])
def test_log_odds_are_the_margins(make):
    model = make()
    np.testing.assert_allclose(outputs(model), margins_of(model), rtol=0, atol=1e-6)
    np.testing.assert_allclose(outputs(model, readout=ab.LogOdds(0)), -margins_of(model), rtol=0, atol=1e-6)
    several = make(THREE)
    logits = torch.from_numpy(margins_of(several)).double()
    for number in range(3):
        p = several.predict_proba(X[:40])[:, number].astype(float)
        found = outputs(several, readout=ab.LogOdds(number))
        np.testing.assert_allclose(found, ab.LogOdds(number)(logits, torch.arange(40)), rtol=0, atol=2e-6)
        np.testing.assert_allclose(found, np.log(p / (1 - p)), rtol=0, atol=1e-4)  # no p here is near 0 or 1
        np.testing.assert_allclose(outputs(several, readout=ab.Probability(number)), p, rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [xgb, lgb, gb, hist])
def test_a_binary_booster_still_has_an_output_for_each_class(make):
    model = make()
    found = from_estimator(model)(torch.from_numpy(X[:5]))
    assert found.shape == (5, 2)
    np.testing.assert_allclose(found.softmax(1), model.predict_proba(X[:5]), atol=1e-6)
    assert note(model).startswith("log-odds of the class predicted on the full sample (")
    raw = from_estimator(model, probabilities=False)(torch.from_numpy(X[:5]))
    np.testing.assert_allclose(raw, model.predict_proba(X[:5]))


@pytest.mark.parametrize("make", [lgb, gb, hist])
def test_log_odds_do_not_end_where_probabilities_of_double_precision_do(make):
    model = make(learning_rate=30.0)
    margins = margins_of(model)
    assert np.abs(margins).max() > 37  # beyond which 1 − p is 0
    np.testing.assert_allclose(outputs(model), margins, rtol=1e-12)


def test_the_exponential_loss_has_half_of_the_log_odds():
    model = gb(loss="exponential")
    np.testing.assert_allclose(outputs(model), 2 * model.decision_function(X[:40]), rtol=1e-12)
    assert DIFFER not in note(model)


def test_the_factor_of_lightgbm_is_part_of_the_log_odds():
    model = lgb(sigmoid=2.0)
    np.testing.assert_allclose(outputs(model), 2 * model.predict(X[:40], raw_score=True), rtol=1e-12)
    np.testing.assert_allclose(outputs(model.booster_), 2 * model.predict(X[:40], raw_score=True), rtol=1e-12)
    assert DIFFER not in note(model)


@pytest.mark.parametrize("objective", ["cross_entropy", "xentropy"])
def test_cross_entropy_of_lightgbm_is_logistic(objective):
    model = lgb(objective=objective)
    np.testing.assert_allclose(outputs(model), model.predict(X[:40], raw_score=True), rtol=1e-12)
    np.testing.assert_allclose(outputs(model.booster_), model.predict(X[:40], raw_score=True), rtol=1e-12)
    assert note(model.booster_) == "log-odds of class 1"


def test_losses_without_probabilities_of_their_own_are_read_by_margins():
    raw = xgb(objective="binary:logitraw")
    for face in (raw, raw.get_booster()):
        np.testing.assert_allclose(outputs(face), raw.predict(X[:40], output_margin=True), rtol=0, atol=1e-6)
    labels = xgb(THREE, objective="multi:softmax")
    p = labels.predict_proba(X[:40])[:, 1].astype(float)
    for face in (labels, labels.get_booster()):
        np.testing.assert_allclose(outputs(face), np.log(p / (1 - p)), rtol=0, atol=1e-4)


def test_boosters_by_their_own_face_with_names_of_columns():
    names = list("abcd")
    frame = pd.DataFrame(X, columns=names)
    plain = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, TWO, feature_names=names), 20)
    margins = plain.predict(xgboost.DMatrix(X[:40], feature_names=names), output_margin=True)
    np.testing.assert_allclose(outputs(plain, frame), margins, rtol=0, atol=1e-6)
    settings = {"objective": "multiclass", "num_class": 3, "verbose": -1}
    several = lightgbm.train(settings, lightgbm.Dataset(frame, THREE), 20)
    logits = torch.from_numpy(several.predict(frame[:40], raw_score=True))
    found = ab.explain(several, frame[:40], 2, absence=0.0).outputs
    np.testing.assert_allclose(found, ab.LogOdds(2)(logits, torch.arange(40)), rtol=0, atol=1e-9)
    loaded = lightgbm.Booster(model_str=lgb(sigmoid=2.0).booster_.model_to_string())
    np.testing.assert_allclose(outputs(loaded), 2 * loaded.predict(X[:40], raw_score=True), rtol=1e-12)


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_early_stopping_leaves_the_same_trees_for_margins_and_probabilities(package):
    fresh = GENERATOR.permutation(TWO)  # noise: the best iteration is an early one
    if package == "xgboost":
        model = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=3, n_jobs=1)
        model.fit(X, TWO, eval_set=[(X, fresh)], verbose=False)
        assert model.best_iteration < 50
        margins = model.predict(X[:40], output_margin=True)
    else:
        model = lightgbm.LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1)
        callbacks = [lightgbm.early_stopping(3, verbose=False)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, TWO, eval_set=[(X, fresh)], callbacks=callbacks)
        assert model.best_iteration_ < 50
        margins = model.predict(X[:40], raw_score=True)
    p = model.predict_proba(X[:40])[:, 1].astype(float)
    np.testing.assert_allclose(outputs(model), margins, rtol=0, atol=1e-6)
    np.testing.assert_allclose(outputs(model), np.log(p / (1 - p)), rtol=0, atol=1e-4)
    assert DIFFER not in note(model)


@pytest.mark.parametrize("make", [xgb, lgb, gb, hist])
def test_pipelines_are_read_by_the_margins_of_their_last_step(make):
    wider = np.column_stack([X[:, 0] * 1000, X[:, 1:]])
    last = make().__class__(**make().get_params())
    inner = make_pipeline(FunctionTransformer(), last)
    model = make_pipeline(StandardScaler(), "passthrough", inner).fit(pd.DataFrame(wider, columns=list("abcd")), TWO)
    margins = margins_of(last, StandardScaler().fit(wider).transform(wider[:40]))
    found = ab.explain(model, pd.DataFrame(wider[:40], columns=list("abcd")), readout=ab.LogOdds(1), absence=0.0)
    np.testing.assert_allclose(found.outputs, margins, rtol=0, atol=1e-6)
    assert as_model(model).margins


def test_decoded_tables_reach_the_margins():
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down")})
    table = EncodedTable.of(frame)
    codes = FunctionTransformer(lambda rows: rows.assign(kind=(rows["kind"] == "up").astype(float)))
    model = make_pipeline(codes, xgboost.XGBClassifier(n_estimators=10, n_jobs=1)).fit(frame, TWO)
    found = outputs(from_estimator(model, table), table.rows.numpy())
    margins = model[-1].predict(model[:-1].transform(frame[:40]), output_margin=True)
    np.testing.assert_allclose(found, margins, rtol=0, atol=1e-6)


def test_wrappers_keep_their_own_probabilities():
    model = CalibratedClassifierCV(gb(), cv=3).fit(X, TWO)
    assert not as_model(model).margins
    p = model.predict_proba(X[:40])[:, 1]
    np.testing.assert_allclose(outputs(model), np.log(p / (1 - p)))
    assert not as_model(LogisticRegression().fit(X, TWO)).margins


class Tempered(GradientBoostingClassifier):
    """A booster whose probabilities are not those of its margins."""

    def predict_proba(self, rows):
        p = 1 / (1 + np.exp(-0.3 * self.decision_function(rows)))
        return np.stack([1 - p, p], axis=1)


def test_margins_that_differ_from_probabilities_are_not_read():
    model = Tempered(n_estimators=20, random_state=0).fit(X, TWO)
    np.testing.assert_allclose(outputs(model), 0.3 * model.decision_function(X[:40]), rtol=1e-9)
    assert note(model, TWO[:40]).endswith(f"; {DIFFER}")
    assert DIFFER not in note(gb(), TWO[:40])


def test_the_means_of_a_random_forest_of_lightgbm_are_its_log_odds():
    model = lgb(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5)
    p = model.predict_proba(X[:40])[:, 1]
    np.testing.assert_allclose(outputs(model), np.log(p / (1 - p)), rtol=1e-9)
    assert DIFFER not in note(model)


def test_a_surrogate_imitates_what_was_confirmed():
    model = Tempered(n_estimators=20, random_state=0).fit(X, TWO)
    surrogate = ab.train_surrogate(model, X, epochs=1, progress=False)
    assert surrogate.classes
    assert surrogate.network.outputs == (2,)
    assert not ab.train_surrogate(LinearSVC().fit(X, THREE), X, epochs=1, progress=False).classes


@pytest.mark.parametrize("kind", [xgboost.XGBClassifier, lightgbm.LGBMClassifier])
def test_a_booster_that_was_not_fitted_fails_as_other_models_do(kind):
    with pytest.raises(ab.AbsentiaError, match=r"The model fails on .* NotFittedError"):
        ab.explain(kind(), X[:3], 1, absence=0.0)


class CatBoostClassifier:
    """What the documentation of CatBoost says of its classifier; the package need not be installed."""

    classes_ = (0, 1)

    def __init__(self, loss, slopes):
        self.loss = loss
        self.slopes = np.asarray(slopes)

    def is_fitted(self):
        return True

    def get_all_params(self):
        return {"loss_function": self.loss}

    def predict(self, rows, prediction_type="Class"):
        assert prediction_type == "RawFormulaVal"
        return np.asarray(rows) @ self.slopes

    def predict_proba(self, rows):
        margins = np.asarray(rows) @ self.slopes
        if margins.ndim == 2:
            return np.exp(margins) / np.exp(margins).sum(1, keepdims=True)
        p = (1 / (1 + np.exp(-margins))).astype(np.float32)
        return np.stack([1 - p, p], axis=1)


CatBoostClassifier.__module__ = "catboost.core"


def test_catboost_is_read_by_its_raw_formula():
    model = CatBoostClassifier("Logloss:border=0.5", [30.0, -20.0, 5.0, 1.0])
    np.testing.assert_allclose(outputs(model), X[:40] @ model.slopes, rtol=1e-12)
    several = CatBoostClassifier("MultiClass", np.eye(4)[:, :3])
    several.classes_ = (0, 1, 2)
    np.testing.assert_allclose(outputs(several, readout=ab.Logit(2)), X[:40, 2], rtol=1e-12)
    several.loss = "MultiClassOneVsAll"
    assert note(several, THREE[:40]).startswith("score of each sample's class (")
    several.loss = "a loss that is not known"
    assert not as_model(several).margins


class CatBoost(CatBoostClassifier):
    """A plain CatBoost model, which predicts its raw formula and no probabilities."""

    predict_proba = property()  # there is none

    def predict(self, rows, prediction_type="RawFormulaVal"):
        return super().predict(rows, prediction_type)


CatBoost.__module__ = "catboost.core"


def test_a_plain_catboost_model_of_classes_predicts_margins():
    model = CatBoost("Logloss", [30.0, -20.0, 5.0, 1.0])
    np.testing.assert_allclose(outputs(model), X[:40] @ model.slopes, rtol=1e-12)
    raw = wrap_estimator(model, probabilities=False)
    np.testing.assert_allclose(raw.predict(X[:5]), X[:5] @ model.slopes)
    assert raw.scores
    model.loss = "a loss that is not known"
    assert as_model(model).scores
