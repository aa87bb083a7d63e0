"""How an audit runs: early ends, time limits, and what it shows meanwhile."""

import math
import sys

import pytest
import torch

import absentia as ab
from absentia.auditing.measuring import CurveStep, GamesStep, RemovalStep
from absentia.runtime.limits import OutOfTime
from audited_cases import METHODS
from known_games import mlp
from seeded_draws import normal_rows, randn
from slow_models import Slow

RUN = sys.modules["absentia.auditing.audit_run"]


class StopsAfter(torch.nn.Module):
    """A model that is interrupted, or gets slow, after so many rows."""

    def __init__(self, rows, action):
        super().__init__()
        self.net = mlp(6, 2)
        self.left = rows
        self.action = action

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
    x = randn(40, 6)
    y = torch.arange(40) % 2
    rows = {"curve": 500, "games": 2000, "removal": 12_000}[reached]
    settings = {"draws": 3, "seed": 1}
    model = StopsAfter(rows, interrupt)
    monkeypatch.setattr("absentia.task.rows_per_batch", lambda *_: 16)
    found = ab.audit(model, x, y, METHODS, **settings)
    whole = ab.audit(mlp(6, 2), x, y, METHODS, **settings)
    assert found.record.stopped == "interrupted"
    assert "Note: the audit ended early (interrupted)" in repr(found)
    scores = found.curve.scores
    games = found.companions.strengths
    draws = found.removal.masked
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
    with pytest.raises(ab.AbsentiaError, match="model must return the same output for the same sample"):
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


LIMITED = {"zero": 0.0, "half": 0.5, "mean": "mean"}
PACES = {"by call": {"pause": 0.05}, "by row": {"pause": 0.0, "per_row": 0.002}}


@pytest.mark.slow
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("players", [4, 14])
def test_an_audit_starts_at_most_one_batch_after_its_limit(players, pace, clock):
    model = Slow(clock, 3.0, **PACES[pace])
    found = ab.audit(model, normal_rows(40, players), None, LIMITED, seconds=3.0)
    assert model.late <= 1
    assert found.record.stopped == "time limit of 3 s"
    assert len(found.fully_masked.prior) > 0
    assert "the audit ended early (time limit of 3 s)" in repr(found)


def test_an_audit_without_time_for_a_first_step_says_how_long_it_takes(clock):
    model = Slow(clock, 0.2, pause=0.15)
    message = r"seconds must be about [\d.]+ or more for this model. Got 0.2 instead"
    with pytest.raises(ab.AbsentiaError, match=message):
        ab.audit(model, normal_rows(40, 4), None, LIMITED, seconds=0.2)
    assert model.late == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cut_off", "missing"), [(CurveStep, "score, length, R"), (GamesStep, "length, R"), (RemovalStep, "R")]
)
def test_an_audit_that_is_cut_off_says_what_is_missing_and_can_be_shown(cut_off, missing, monkeypatch, tmp_path):
    def run_out_of_time(*_given):
        raise OutOfTime(100)

    monkeypatch.setattr(cut_off, "measure", run_out_of_time)
    x = normal_rows(40, 4)
    found = ab.audit(
        lambda rows: torch.stack([rows.sum(1), rows.prod(1)], dim=1),
        x,
        (x.sum(1) > 0).long(),
        LIMITED,
        seconds=100,
    )
    note = f"the audit ended early (time limit of 100 s); not measured: {missing}."
    assert note in repr(found).replace("\n  ", " ")
    assert not found.leak.value.isnan().any()
    assert (found.recommended is None) == (cut_off is CurveStep)
    found.save(tmp_path / "audit.absentia")
    assert repr(ab.load(tmp_path / "audit.absentia")) == repr(found)
    found.plot(tmp_path / "audit.png")
    ab.write_report([found], tmp_path / "report.html")


def test_an_absence_that_an_audit_learns_leaves_time_to_audit_it(clock):
    model = Slow(clock, 4.0, pause=0.02)
    x = normal_rows(40, 4)
    found = ab.audit(model, x, None, ["mean", "learned"], data=normal_rows(60, 4, seed=1), seconds=4.0)
    assert model.late <= 1
    assert not found.leak.value.isnan().any()
