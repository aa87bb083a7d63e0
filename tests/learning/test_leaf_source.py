"""Values for learning from leaves: equal to the model's, whole sums of interactions, and the learning they allow."""

import lightgbm
import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import absentia as ab
from absentia.coalitions import enumerate_coalitions
from absentia.data import data_range, seeded
from absentia.evaluation import Evaluator
from absentia.learning.faithful import FaithfulObjective, Weights
from absentia.learning.leaf_source import LeafSource, leaf_source
from absentia.learning.level_losses import LevelLosses
from absentia.learning.value_sources import EvaluatedValues
from absentia.task import Task
from small_boosters import THREE, TWO, X, lgb, xgb

ROWS = torch.tensor(X)
QUICK = ab.LearningOptions(rows_per_step=2**8, samples=32)
# A search that runs the model, where only its record matters.
SHORTEST = ab.LearningOptions(rows_per_step=2**7, rows_per_comparison=2**8, samples=4, steps=1)


def objectives(model, y, owner=None, always_present=False, noise=0.6):
    """The default loss of one batch by the model and by its leaves."""
    labels = torch.tensor([0, 1, -1, 2]) if always_present else torch.arange(4)
    players = ab.Players(labels, tuple(f"x{number}" for number in range(int(labels.max()) + 1)))
    evaluator = Evaluator(Task(model, ROWS, y, players=players))
    owner = torch.zeros(len(X), dtype=torch.int64) if owner is None else owner
    mean = ROWS.mean(0)
    source = leaf_source(evaluator, mean)
    assert isinstance(source, LeafSource)
    settings = (owner, 0, 2**8, Weights(4.0, noise), mean, data_range(ROWS))
    by_model = FaithfulObjective(evaluator, *settings, EvaluatedValues(evaluator))
    return by_model, FaithfulObjective(evaluator, *settings, source)


def same_batch(by_leaves, batch):
    """The batch with white noise as codes."""
    batch = batch._replace(references=by_leaves.source.encode(batch.references))
    states = by_leaves.mean.expand_as(batch.references)
    return batch._replace(usual=by_leaves._strength_in_noise(states, batch))


@pytest.mark.parametrize("booster", [lgb, xgb])
@pytest.mark.parametrize("always_present", [False, True])
def test_figures_of_leaves_are_those_of_the_model(booster, always_present):
    by_model, by_leaves = objectives(booster(), torch.tensor(TWO), always_present=always_present)
    assert by_leaves.source.sums_are_exact
    batch = by_model.draw(by_model.learned, seeded(1))
    assert batch.coalitions.shape[-2] == 2**by_model.players
    baseline = ROWS[7:8]
    found = by_leaves.figures(baseline, same_batch(by_leaves, batch))
    assert torch.allclose(found, by_model.figures(baseline, batch), rtol=1e-5)


def test_figures_of_values_that_are_no_sums_are_those_of_the_model():
    by_model, by_leaves = objectives(lgb(THREE), torch.tensor(THREE))
    assert not by_leaves.source.sums_are_exact
    assert "not a sum over leaves" in by_leaves.source.notes[0]
    batch = by_model.draw(by_model.learned, seeded(1))
    found = by_leaves.figures(ROWS[7:8], same_batch(by_leaves, batch))
    assert torch.allclose(found, by_model.figures(ROWS[7:8], batch), rtol=1e-5)
    assert torch.allclose(by_leaves.scales, by_model.scales, rtol=1e-5)


@pytest.mark.parametrize("share", ["all", "class"])
@pytest.mark.parametrize("noise", [0.6, 0.0])
@pytest.mark.parametrize("always_present", [False, True])
def test_losses_of_levels_are_those_of_the_candidates_one_by_one(share, noise, always_present):
    owner = torch.tensor(TWO) if share == "class" else None
    _, objective = objectives(lgb(), torch.tensor(TWO), owner, always_present, noise)
    candidates = ROWS[: objective.owners, None].repeat(1, 9, 1)
    candidates[:, :, 1] = torch.linspace(-2, 2, 9)
    level_losses = LevelLosses(objective, objective.source, ROWS[: objective.owners])
    assert torch.allclose(level_losses.losses(candidates), one_by_one(objective, candidates), rtol=1e-9)
    # What is kept follows the search, to baselines that differ in several columns at once.
    moved = candidates[:, 7].clone()
    moved[:, 3] = ROWS[20 : 20 + objective.owners, 3]
    level_losses.move_to(moved)
    candidates = moved[:, None].repeat(1, 9, 1)
    candidates[:, :, 2] = torch.linspace(-2, 2, 9)
    assert torch.allclose(level_losses.losses(candidates), one_by_one(objective, candidates), rtol=1e-9)


def one_by_one(objective, candidates):
    """The losses of candidates as the objective computes them for each."""
    losses = [list(objective.running_assessments(level))[-1].losses for level in candidates.unbind(1)]
    return torch.stack(losses, dim=1)


def test_losses_of_levels_do_not_depend_on_what_is_kept(monkeypatch):
    _, objective = objectives(lgb(), torch.tensor(TWO))
    kept = LevelLosses(objective, objective.source, ROWS[:1])
    monkeypatch.setattr("absentia.learning.followed_pairs._MOST_KEPT_BYTES", 0)
    computed_again = LevelLosses(objective, objective.source, ROWS[:1])
    for row in (3, 4, 5):
        for level_losses in (kept, computed_again):
            level_losses.move_to(ROWS[row : row + 1])
    candidates = ROWS[None, 10:20]
    assert torch.allclose(kept.losses(candidates), computed_again.losses(candidates), rtol=1e-12)


def test_sums_are_exact_beyond_the_players_of_tables():
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 20))
    model = lightgbm.LGBMRegressor(n_estimators=15, num_leaves=6, verbose=-1, n_jobs=1)
    model.fit(x, x[:, 0] * x[:, 1] + x.sum(1))
    evaluator = Evaluator(Task(model, torch.tensor(x)))
    source = leaf_source(evaluator, torch.zeros(20).double())
    codes = source.encode(evaluator.x[:3])
    numbers = torch.arange(3)
    found = source.strength(codes, codes.roll(1, 0), torch.zeros(0, 20, dtype=torch.bool), numbers)
    every = enumerate_coalitions(20)
    table = source.values(codes[:1], codes[2:], every, numbers[:1])
    assert float(found[0]) == pytest.approx(float(ab.moebius(table)[0, 1:].abs().sum()), rel=1e-9)


@pytest.mark.slow
def test_learned_values_are_no_worse_than_those_of_the_black_box():
    model = lgb()
    learned = ab.learn_baseline(model, X, TWO)
    searched = ab.learn_baseline(as_black_box(model), X, TWO)
    assert learned.record.trees == 20
    assert learned.record.evaluations == 0
    assert "values from the leaves of 20 trees" in repr(learned)
    assert searched.record.trees == 0
    assert 10 * learned.record.rows_seen < searched.record.rows_seen
    fresh = np.random.default_rng(1).normal(size=(200, 4))
    classes = model.predict(fresh)

    def loss(baseline):
        return ab.baseline_loss(model, fresh, classes, absence=ab.Baseline(baseline.values))

    assert loss(learned) <= 1.02 * loss(searched)
    assert learned.loss <= min(learned.record.compared.values())


def as_black_box(model):
    """The same model as a function, whose trees cannot be read."""
    return ab.from_numpy(model.predict_proba, probabilities=True)


@pytest.mark.slow
def test_the_loss_of_given_values_does_not_depend_on_the_way():
    model = lgb()
    options = ab.LearningOptions(rows_per_step=2**13)
    by_leaves = ab.baseline_loss(model, X, TWO, absence="median", options=options)
    by_model = ab.baseline_loss(as_black_box(model), X, TWO, absence="median", options=options)
    assert by_leaves == pytest.approx(by_model, rel=0.05)  # other samples are drawn


@pytest.mark.slow
@pytest.mark.parametrize("share", ["all", "class", "sample"])
def test_learning_from_leaves_is_reproducible(share):
    samples = slice(0, 12 if share == "sample" else None)
    results = [
        ab.learn_baseline(lgb(), X[samples], TWO[samples], share=share, seed=3, options=QUICK) for _ in range(2)
    ]
    assert torch.equal(results[0].values, results[1].values)
    assert results[0].loss == results[1].loss
    assert results[0].record.trees == 20


@pytest.mark.slow
def test_values_are_those_of_the_data_or_of_a_usual_baseline():
    learned = ab.learn_baseline(lgb(), X, TWO)
    for column, value in enumerate(learned.values.tolist()):
        usual = [X[:, column].mean(), np.median(X[:, column]), float(torch.tensor(X[:, column]).median()), 0.0]
        assert np.isclose(X[:, column], value).any() or np.isclose(usual, value).any()


def test_columns_that_no_tree_uses_are_undetermined():
    x = np.column_stack([X, np.random.default_rng(0).normal(size=len(X))])
    model = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1).fit(x, TWO)
    unused = np.flatnonzero(model.feature_importances_ == 0)
    learned = ab.learn_baseline(model, x, TWO)
    assert set(unused) <= set(np.flatnonzero(learned.undetermined))


def test_categories_take_values_of_the_data():
    x = X.copy()
    x[:, 3] = (3 * X[:, 3]).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=5, verbose=-1, n_jobs=1).fit(x, TWO)
    learned = ab.learn_baseline(model, x, TWO, categorical=[3])
    assert learned.record.trees == 10
    assert float(learned.values[3]) in x[:, 3]


def test_a_pipeline_is_searched_by_what_its_trees_see():
    booster = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=5, verbose=-1, n_jobs=1)
    model = make_pipeline(StandardScaler(), booster).fit(X, TWO)
    learned = ab.learn_baseline(model, X, TWO)
    assert learned.record.trees == 10
    assert learned.loss <= min(learned.record.compared.values())


@pytest.mark.slow
def test_forests_are_valued_from_the_leaves_that_coalitions_reach():
    forest = RandomForestClassifier(n_estimators=8, max_depth=4, random_state=0, n_jobs=1).fit(X, TWO)
    learned = ab.learn_baseline(forest, X, TWO, options=QUICK)
    assert learned.record.trees == 8
    assert "readout=Probability(y)" in learned.record.notes[0]
    assert learned.record.notes[0] in repr(learned)


def test_trees_that_differ_from_the_model_are_not_used(monkeypatch):
    monkeypatch.setattr("absentia.evaluation.leaf_values._largest_difference", lambda *_: 2.0)
    learned = ab.learn_baseline(lgb(), X, TWO, options=SHORTEST)
    assert learned.record.trees == 0
    assert "give other outputs than the model" in learned.record.notes[0]
    assert learned.evaluations > 0


@pytest.mark.slow
def test_leaves_are_not_used_without_compiled_loops(monkeypatch):
    monkeypatch.setattr("absentia.learning.leaf_source.is_compiled", lambda: False)
    learned = ab.learn_baseline(lgb(), X, TWO, options=SHORTEST)
    assert learned.record.trees == 0
    assert "numba" in learned.record.notes[0]


@pytest.mark.slow
def test_too_many_interactions_are_measured_on_drawn_players(monkeypatch):
    monkeypatch.setattr("absentia.learning.leaf_source._MOST_SETS", 1)
    learned = ab.learn_baseline(lgb(), X, TWO, options=QUICK)
    assert learned.record.trees == 20
    assert "too many interactions" in learned.record.notes[0]


def test_a_time_limit_and_ctrl_c_end_the_search_with_the_best_values(monkeypatch):
    from absentia.learning.level_losses import LevelLosses as Losses

    compute = Losses.losses
    calls = []

    def interrupted(self, candidates):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return compute(self, candidates)

    monkeypatch.setattr(Losses, "losses", interrupted)
    learned = ab.learn_baseline(lgb(), X, TWO)
    assert not learned.converged
    assert "interrupted" in learned.record.stopped
    assert learned.loss <= min(learned.record.compared.values())


@pytest.mark.slow
def test_a_checkpoint_resumes_and_the_result_is_saved(tmp_path):
    options = ab.LearningOptions(checkpoint=tmp_path / "search.safetensors")
    first = ab.learn_baseline(lgb(), X, TWO, options=options)
    again = ab.learn_baseline(lgb(), X, TWO, options=options)
    assert torch.equal(first.values, again.values)
    first.save(tmp_path / "baseline.safetensors")
    loaded = ab.LearnedBaseline.load(tmp_path / "baseline.safetensors")
    assert loaded.record == first.record
