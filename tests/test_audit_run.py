"""How an audit runs: the masking curve by hand, budgets, early ends, and what it shows meanwhile."""

import itertools
import math
import sys

import pytest
import torch

import absentia as ab
from absentia.absences import StandIns
from absentia.auditing.plan import Games, MethodRows, Plan
from known_games import mlp

RUN = sys.modules["absentia.auditing.audit_run"]
METHODS = {"zero": ab.Baseline(0.0), "half": ab.Baseline(0.5)}


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


class OwnModel:
    """An absence that brings its own model, which reads NaN as 0."""

    def bind(self, x):
        return StandIns(x, torch.full_like(x[:1], math.nan)[None])

    def instead_of(self, model):
        return lambda rows: model(rows.nan_to_num(0.0))


def two_blobs(samples=200, entries=4):
    """Two classes, told apart by the sign of all entries, and a model that knows: logits ± their sum."""
    y = torch.arange(samples) % 2
    x = (2 * y[:, None] - 1) + 0.5 * randn(samples, entries)
    return x, y, lambda rows: torch.stack([-rows.sum(1), rows.sum(1)], 1)


def test_the_score_by_size_converges_to_that_of_all_coalitions():
    x, y, model = two_blobs(400)
    found = ab.audit(model, x, y, {"b": ab.Baseline(0.2)}, draws=1)
    table = ab.value_table(ab.MaskedModel(model, x, y, absence=ab.Baseline(0.2))).values
    losses = torch.nn.functional.softplus(-table)
    sizes = ab.enumerate_coalitions(4).sum(1)
    by_size = torch.stack([losses[:, sizes == size].mean(1) for size in range(5)], 1)
    error = found.curve.scores[0].std(0) / 20
    assert bool(((found.curve.scores[0].mean(0) - by_size.mean(0)).abs() <= 4 * error).all())
    assert torch.allclose(found.curve.scores[0][:, [0, 4]], by_size[:, [0, 4]])
    score = found.curve.score
    assert float((score.value - by_size.mean()).abs()) < 4 * float(score.error)


def test_methods_are_compared_on_the_same_coalitions():
    x, y, model = two_blobs(50)
    found = ab.audit(model, x, y, {"b": 0.2, "again": ab.Baseline(0.2)}, draws=1)
    assert torch.equal(found.curve.scores[0], found.curve.scores[1])


def test_sizes_of_many_players_are_spread_from_nobody_to_all():
    found = ab.audit(lambda rows: rows.mean(1), randn(20, 196), None, {"b": 0.1}, draws=1, max_players=4)
    sizes = found.curve.sizes.tolist()
    assert sizes[0] == 0
    assert sizes[-1] == 196
    assert len(sizes) == len(set(sizes)) == 33
    assert {after - before for before, after in itertools.pairwise(sizes)} <= {6, 7}


def test_a_surrogate_is_a_floor_and_entries_that_stay_are_no_leak():
    x, y, model = two_blobs()
    found = ab.audit(model, x, y, {"own": OwnModel(), "b": 0.2}, draws=1)
    assert found.recommended == "b"
    assert found.verdict[-1].startswith("own explains another model: its score, ")
    alone = ab.audit(model, x, y, {"own": OwnModel()}, draws=1)
    assert alone.recommended is None
    assert repr(alone).startswith("Use none of these: own explains another model")
    shown = ab.Players.groups({"a": [0], "b": [1]}, 4)
    kept = ab.audit(model, x, y, {"zero": 0.0}, players=shown, draws=1)
    assert float(kept.leak.value) > 0.5
    assert "leak" not in kept.verdict[0]
    assert kept.recommended == "zero"


def test_plans_keep_to_their_rows_or_to_the_least():
    methods = [MethodRows(draws) for draws in (1, 1, 1, 10, 100)]
    whole = Plan.of(200, 16, 16, 5, 16, methods, states=7)
    assert whole.own == Games(200, 1, 16)
    assert whole.removal == Games(200, 5, 16)
    assert whole.within(whole.rows) == whole
    for power in range(17, 34):
        plan = whole.within(2**power)
        assert plan.rows <= 2**power
        assert plan.rows > 2**power / 4 or plan == whole
        assert plan.empty_samples >= plan.samples >= max(plan.own.samples, plan.removal.samples) >= 16
    least = whole.within(1)
    assert least.own == Games(16, 1, 4)
    assert least.removal == Games(16, 2, 4)
    assert least.samples == least.empty_samples == 16
    assert Plan.of(10_000, 784, 784, 5, 16, methods[:1], 3).own == Games(500, 1, 12)


def test_draws_are_saved_after_samples_and_sizes():
    whole = Plan.of(200, 30, 30, 5, 16, [MethodRows(1), MethodRows(100)], states=4)
    for power in range(14, 26):
        plan = whole.within(2**power)
        if plan.curve_draws < 100:
            assert plan.samples < 64
            assert plan.sizes == 8
    assert whole.within(2**25).curve_draws >= 100
    assert whole.within(2**14).curve_draws < 100


def test_a_budget_is_kept_and_noted():
    x, y = randn(100, 10), torch.arange(100) % 2
    seen = []

    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = mlp(10, 2)

        def forward(self, rows):
            seen.append(len(rows))
            return self.net(rows)

    found = ab.audit(Counts(), x, y, METHODS, evaluations=60_000, draws=3)
    assert 20_000 < found.record.evaluations <= 60_000
    assert sum(seen) < 60_000 * 1.1  # and some to measure the time
    assert found.record.given == 100
    assert any(note.startswith("Length is measured on") for note in found.record.notes)
    assert found.companions.shapley.shape[1] < found.curve.scores.shape[1]
    assert found.samples.tolist() != list(range(len(found.samples)))
    # Each part uses the first of the audited samples.
    some = found.samples[: found.companions.empty.shape[1]]
    assert torch.allclose(found.companions.full[0, :, 0], ab.LogOdds(y)(Counts().net(x), torch.arange(100))[some])
    with pytest.raises(ab.AbsentiaError, match=r"evaluations must be at least 2,850 for these absences. Got 5"):
        ab.audit(mlp(10, 2), x, y, METHODS, evaluations=5)


@pytest.mark.slow
def test_a_seed_fixes_the_samples_and_coalitions_of_a_small_budget():
    x, y, model = two_blobs(200, 6)
    first, again, other = (ab.audit(model, x, y, METHODS, evaluations=9_000, seed=seed) for seed in (1, 1, 2))
    for name, values in first.columns().items():
        if name != "seconds":
            assert torch.equal(values.nan_to_num(9), again.columns()[name].nan_to_num(9)), name
    assert not torch.equal(first.samples, other.samples)
    assert not torch.equal(first.curve.scores, other.curve.scores)


def test_many_samples_are_drawn():
    x, y, model = two_blobs(700, 3)
    found = ab.audit(model, x, y, METHODS, draws=1)
    assert found.curve.scores.shape == (2, 500, 4)
    assert "on 500 of 700 samples" in repr(found)


class StopsAfter(torch.nn.Module):
    """A model that is interrupted, or gets slow, after so many rows."""

    def __init__(self, rows, action):
        super().__init__()
        self.net, self.left, self.action = mlp(6, 2), rows, action

    def forward(self, rows):
        self.left -= len(rows)
        if self.left < 0:
            self.action(self)
        return self.net(rows)


def interrupt(model):
    model.left = math.inf  # once
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("reached", ["curve", "games", "removal"])
def test_what_is_done_is_kept_on_an_interruption(reached, monkeypatch):
    monkeypatch.setattr(RUN, "_STEPS", 10**9)  # steps as small as can be
    x, y = randn(40, 6), torch.arange(40) % 2
    rows = {"curve": 500, "games": 2000, "removal": 12_000}[reached]
    settings = {"draws": 3, "seed": 1}
    model = StopsAfter(rows, interrupt)
    monkeypatch.setattr("absentia.task.rows_per_batch", lambda *_: 16)
    found = ab.audit(model, x, y, METHODS, **settings)
    whole = ab.audit(mlp(6, 2), x, y, METHODS, **settings)
    assert found.record.stopped == "interrupted"
    assert "Note: the audit ended early (interrupted)" in repr(found)
    scores, games, draws = found.curve.scores, found.companions.strengths, found.removal.masked
    assert torch.allclose(scores, whole.curve.scores[:, : scores.shape[1]])
    assert torch.allclose(games, whole.companions.strengths[:, : games.shape[1]])
    assert torch.allclose(draws, whole.removal.masked[:, : draws.shape[1], : draws.shape[2]])
    assert (0 < scores.shape[1] < 40) == (reached == "curve")
    assert (0 < games.shape[1] < 40) == (reached == "games")
    assert (draws.shape[1] > 0) == (reached == "removal")
    assert found.recommended in METHODS
    assert math.isnan(float(found.columns()["R"][0])) == (reached != "removal")
    found.plot()


def test_an_interruption_before_anything_is_measured_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        ab.audit(StopsAfter(60, interrupt), randn(40, 6), torch.arange(40) % 2, METHODS)


def test_a_time_limit_keeps_what_is_done(monkeypatch, tmp_path, clock):
    monkeypatch.setattr("absentia.task.rows_per_batch", lambda *_: 16)
    model = StopsAfter(1200, lambda _: clock.advance(0.02))
    began = clock.now
    found = ab.audit(model, randn(40, 6), torch.arange(40) % 2, METHODS, seconds=0.3)
    assert clock.now - began < 0.3 + 2 * 0.02  # a batch may be under way, and the model is run once more at the end
    assert found.record.stopped == "time limit of 0.3 s"
    assert found.recommended in METHODS
    found.save(tmp_path / "part")
    loaded = ab.Audit.load(tmp_path / "part")
    assert repr(loaded) == repr(found)
    assert loaded.recommended == found.recommended
    with pytest.raises(ab.AbsentiaError, match="seconds must be a positive number"):
        ab.audit(model, randn(40, 6), seconds=0)


@pytest.mark.parametrize("ending", ["time limit", "interruption"])
def test_an_audit_that_ends_early_checks_that_the_model_is_the_same(ending, monkeypatch, clock):
    monkeypatch.setattr("absentia.task.rows_per_batch", lambda *_: 16)
    monkeypatch.setattr(RUN, "_STEPS", 10**9)

    def change_and_end(model):
        torch.nn.init.ones_(model.net[-1].bias)
        if ending == "interruption":
            interrupt(model)
        clock.advance(0.02)

    model = StopsAfter(500, change_and_end)
    with pytest.raises(ab.AbsentiaError, match="model must return the same for the same sample"):
        ab.audit(model, randn(40, 6), None, METHODS, readout=ab.Output(0), seconds=1.0)


def test_the_bar_tells_rows_and_time(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, *arguments):
            shown.append(arguments)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, rows):
            shown.append(rows)

    monkeypatch.setattr(RUN, "progress", Bar)
    found = ab.audit(mlp(4), randn(20, 4), None, METHODS)
    total, title, unit = shown[0]
    assert title.startswith("auditing, about ")
    assert title.endswith(" s")
    assert unit == "row"
    assert sum(shown[1:]) == total == found.record.evaluations


def test_values_that_do_not_vary_predict_nothing():
    few = ab.audit(mlp(3), randn(1, 3), None, METHODS, data=randn(9, 3), draws=1)
    assert few.recommended is None
    assert few.verdict == ("No recommendation: there are too few samples: pass at least 5.",)
    same = ab.audit(mlp(3), randn(1, 3).expand(9, -1), None, METHODS, data=randn(9, 3), draws=1)
    assert same.verdict == ("No recommendation: v(N) does not vary, so that there is nothing to predict.",)
    assert math.isnan(same.confidence)
