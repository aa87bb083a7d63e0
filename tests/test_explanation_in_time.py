"""Explanations of slow models: what they take is estimated first, and fits the time."""

import math
import sys

import joblib
import pytest
import torch
from sklearn.ensemble import RandomForestRegressor

import absentia as ab
from seeded_draws import randn
from slow_models import Slow

BY_TIME = "Their number was chosen by the time that the model takes"


@pytest.fixture(autouse=True)
def _without_a_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


class Counting:
    """A model that takes a time for each row, and counts rows."""

    def __init__(self, clock, per_row, per_batch=0.0):
        self.clock = clock
        self.per_row = per_row
        self.per_batch = per_batch
        self.rows = 0
        self.deadline = math.inf
        self.late = 0

    def __call__(self, rows):
        if self.clock.now > self.deadline:
            self.late += 1
        self.rows += len(rows)
        self.clock.advance(self.per_batch + self.per_row * len(rows))
        return rows.prod(1) + rows.sum(1)


def explain(model, players=14, samples=1, **settings):
    return ab.explain(model, randn(samples, players), absence=0.0, **settings)


@pytest.fixture(autouse=True)
def _fits_take_no_time(monkeypatch):
    monkeypatch.setattr("absentia.solvers.cost_of_fits.operations_per_second", lambda: 1e15)


def test_a_slow_model_is_explained_by_the_coalitions_that_fit_a_minute(clock):
    model = Counting(clock, per_row=0.05)
    began = clock.now
    found = explain(model)
    assert 30 < clock.now - began < 66
    assert not found.record.exact
    assert found.record.evaluations == 1024
    why, repeat, *methods = found.record.notes
    assert "Gaussian process" in methods[0]
    assert why.startswith("All 16,384 coalitions would take about 14 min: values are estimated from 1,024 coal")
    assert repeat == f"{BY_TIME}: explain(…, evaluations=1024) repeats this."
    assert found.record.rows_seen == found.shapley.rows_seen == model.rows


@pytest.mark.slow
def test_the_number_of_evaluations_repeats_a_result_of_any_speed(clock):
    slow = explain(Counting(clock, per_row=0.05))
    repeated = explain(Counting(clock, per_row=1e-6), evaluations=slow.record.evaluations)
    assert torch.equal(slow.shapley.values, repeated.shapley.values)
    assert torch.equal(slow.shapley.errors, repeated.shapley.errors)
    assert repeated.record.notes[0].startswith("As requested")
    assert not any(BY_TIME in note for note in repeated.record.notes)


def test_a_fast_model_runs_no_row_for_an_estimate(clock, capsys):
    model = Counting(clock, per_row=1e-5)
    found = explain(model)
    assert found.record.exact
    assert model.rows == 2**14 + 2  # the trial
    assert capsys.readouterr() == ("", "")


def test_a_model_whose_first_run_is_slow_is_timed_again(clock):
    model = Counting(clock, per_row=1e-5)

    def slow_at_first(rows):
        if model.rows == 0:
            clock.advance(20)
        return model(rows)

    assert explain(slow_at_first).record.exact


def test_calls_that_take_long_whatever_they_hold_do_not_make_rows_slow(clock):
    found = explain(Counting(clock, per_row=0.0, per_batch=1.0), batch_size=1024)
    assert found.record.exact


@pytest.mark.slow
def test_no_model_is_timed_with_a_single_row(clock):
    sizes = []

    def model(rows):
        sizes.append(len(rows))
        clock.advance(0.05 * len(rows))
        return rows.prod(1) + rows.sum(1)

    assert explain(model).record.evaluations == 1024
    assert min(sizes) == 2


@pytest.mark.slow
def test_all_samples_and_draws_count(clock):
    one = explain(Counting(clock, per_row=0.05))
    four = explain(Counting(clock, per_row=0.05), samples=4)
    assert four.record.evaluations == one.record.evaluations  # of all samples
    background = ab.Marginal(randn(4, 14, seed=1))
    drawn = ab.explain(Counting(clock, per_row=0.05), randn(1, 14), absence=background)
    assert drawn.record.evaluations == one.record.evaluations
    assert "from 256 coalitions of each sample" in drawn.record.notes[0]
    assert "evaluations=1024) repeats" in drawn.record.notes[1]


@pytest.mark.slow
def test_the_usual_number_for_many_players_shrinks_for_a_slow_model(clock):
    found = explain(Counting(clock, per_row=0.05), players=30)
    assert found.record.evaluations == 1024
    assert found.record.notes[0].startswith("30 players are too many for all 2^30 coalitions")
    assert BY_TIME in found.record.notes[1]


def test_stand_ins_that_depend_on_the_coalition_are_timed_too(clock):
    model = Counting(clock, per_row=0.05)
    conditional = ab.GaussianConditional(randn(200, 14), draws=2)
    found = ab.explain(model, randn(1, 14), absence=conditional)
    assert found.record.evaluations == 1024
    assert found.record.rows_seen == model.rows


@pytest.mark.slow
def test_what_the_work_takes_is_said_before_it_begins(clock, capsys):
    explain(Counting(clock, per_row=0.05))
    out, err = capsys.readouterr()
    first = err.splitlines()[0]
    errors = "errors usually below 1 % of the values' range"
    expected = f"explaining takes about 51 s by 1,024 coalitions, with {errors}; all 16,384 would take about 14 min."
    assert first == f"absentia: {expected}"
    assert out == ""
    explain(Counting(clock, per_row=0.01), evaluations=2**14)
    out, err = capsys.readouterr()
    first, *lines = err.splitlines()
    assert "about 3 min by all 16,384 coalitions; about 41 s by 4,096" in first
    assert out == ""
    assert all(line.startswith("absentia: evaluating coalitions: ") for line in lines)
    assert 4 <= len(lines) <= 6  # of 164 seconds: after ten, and then every thirty


@pytest.mark.slow
def test_a_time_limit_decides_on_the_number(clock):
    began = clock.now
    found = explain(Counting(clock, per_row=0.01), seconds=20)
    assert clock.now - began < 20
    assert found.record.evaluations == 1024
    assert found.record.notes[0].startswith("To end within 20 s: values are estimated from 1,024 coalitions")
    assert BY_TIME in found.record.notes[1]
    assert explain(Counting(clock, per_row=0.01), seconds=300).record.exact


def test_without_a_limit_all_coalitions_are_evaluated(clock):
    assert explain(Counting(clock, per_row=0.01), players=13, seconds=math.inf).record.exact


class InterruptedAfter(Counting):
    """A slow model during whose evaluation the user presses Ctrl-C once."""

    def __init__(self, clock, rows):
        super().__init__(clock, per_row=0.1)
        self.left = rows

    def __call__(self, rows):
        self.left -= len(rows)
        if self.left < 0:
            self.left = math.inf
            raise KeyboardInterrupt
        return super().__call__(rows)


class SlowsDown(Counting):
    """A model that becomes slower while it is explained."""

    def __call__(self, rows):
        if self.rows > 300:
            self.per_row = 0.03
        return super().__call__(rows)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"evaluations": 4096}, {"players": 30}], ids=["drawn", "requested", "many"])
def test_a_model_that_becomes_slower_is_explained_by_fewer_coalitions(settings, clock):
    model = SlowsDown(clock, per_row=0.01)
    model.deadline = clock.now + 60.2
    found = explain(model, seconds=60, **settings)
    assert model.late <= 1  # the check that the model is still the same
    assert found.record.evaluations < 512
    assert found.record.notes[0].startswith("To end within 60 s: values are estimated from ")
    assert f"evaluations={found.record.evaluations}) repeats" in found.record.notes[1]
    assert found.record.rows_seen == model.rows
    again = explain(Counting(clock, 0.0), evaluations=found.record.evaluations, players=settings.get("players", 14))
    assert torch.equal(again.shapley.values, found.shapley.values)


def test_an_interrupted_explanation_keeps_what_was_evaluated(tmp_path, clock):
    model = InterruptedAfter(clock, rows=400)
    x = randn(1, 30)
    explanation = ab.explain(model, x, absence=0.0, evaluations=1000, batch_size=16)
    assert explanation.record.is_interrupted
    assert explanation.record.notes[0] == "1,000 coalitions of each sample were to be evaluated."
    assert "Interrupted: values are estimated from the " in explanation.record.notes[1]
    assert 200 < explanation.record.evaluations < 400
    assert float(explanation.efficiency_gap.abs().max()) < 1e-6
    assert explanation.interactions is not None
    explanation.save(tmp_path / "interrupted.absentia")
    assert ab.load(tmp_path / "interrupted.absentia").record.is_interrupted


def test_exact_results_that_take_too_long_become_sampled_ones(clock):
    found = explain(SlowsDown(clock, per_row=0.01), players=12, seconds=60)
    assert not found.record.exact
    assert found.record.notes[0].startswith("To end within 60 s")


@pytest.mark.parametrize("per_row", [0.5, 10.0])
def test_a_limit_without_time_for_any_result_says_how_long_it_takes(per_row, clock):
    model = Counting(clock, per_row)
    began = clock.now
    with pytest.raises(ab.AbsentiaError, match=r"seconds must be about \d+ or more for this model. Got 10 instead"):
        explain(model, seconds=10)
    assert clock.now - began < 40  # the trial, and some to measure the time
    with pytest.raises(ab.AbsentiaError, match="seconds must be a positive number"):
        explain(model, seconds=0)


def test_a_limit_that_a_model_outlasts_twice_says_how_long_it_takes(clock):
    class Stops(Counting):
        def __call__(self, rows):
            if self.rows > 300:
                self.per_row = 10.0
            return super().__call__(rows)

    with pytest.raises(ab.AbsentiaError, match="seconds must be about"):
        explain(Stops(clock, per_row=0.01), seconds=20)


def test_trees_read_from_leaves_are_exact_and_run_no_row_for_an_estimate(clock):
    x = randn(60, 20)
    forest = RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0).fit(x, x.sum(1))
    rows = []
    predict = forest.predict

    def slow(inputs):
        rows.append(len(inputs))
        clock.advance(1.0 * len(inputs))
        return predict(inputs)

    forest.predict = slow
    found = ab.explain(forest, x[:1], absence=0.0, seconds=1000)
    assert found.record.exact
    assert found.record.evaluations == 0
    assert found.record.rows_seen == sum(rows)


@pytest.mark.slow
def test_workers_share_the_samples_of_an_estimate(clock):
    with joblib.parallel_config("threading", n_jobs=2):
        found = explain(Slow(clock, math.inf, pause=0.0, per_row=0.05), samples=4)
    alone = explain(Slow(clock, math.inf, pause=0.0, per_row=0.05), samples=4)
    assert found.record.evaluations == 2 * alone.record.evaluations
