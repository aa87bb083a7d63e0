"""Audits of slow models: what they take is said first, and without a limit they evaluate what fits a minute."""

import math
import sys

import pytest
import torch

import absentia as ab
from seeded_draws import normal_rows

METHODS = {"zero": 0.0, "half": 0.5}


@pytest.fixture(autouse=True)
def _without_a_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


def audit(clock, per_row, players=6, **settings):
    def model(rows):
        clock.advance(per_row * len(rows))
        return rows.prod(1) + rows.sum(1)

    return ab.audit(model, normal_rows(200, players), None, METHODS, draws=2, **settings)


def note_on_rows(found):
    notes = [note for note in found.record.notes if note.startswith("The model takes long")]
    return notes[0] if notes else None


@pytest.mark.slow
def test_a_slow_model_is_audited_by_the_rows_that_fit_a_minute(clock, capsys):
    began = clock.now
    found = audit(clock, 0.005)
    assert clock.now - began < 66
    assert 5000 < found.record.evaluations <= 8192
    assert "audit(…, evaluations=8192) repeats this" in note_on_rows(found)
    repeated = audit(clock, 0.0, evaluations=8192)
    assert note_on_rows(repeated) is None
    assert torch.equal(found.curve.scores, repeated.curve.scores)
    assert torch.equal(found.companions.strengths, repeated.companions.strengths)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0].startswith("absentia: auditing takes about ")


@pytest.mark.slow
def test_the_smallest_plan_is_repeated_by_its_rows(clock):
    found = audit(clock, 1.0)
    assert f"evaluations={found.record.evaluations}) repeats this" in note_on_rows(found)
    assert torch.equal(found.curve.scores, audit(clock, 0.0, evaluations=found.record.evaluations).curve.scores)


def test_the_usual_rows_stand_while_they_take_no_more_than_a_few_minutes(clock, capsys):
    usual = audit(clock, 0.0)
    assert capsys.readouterr().err == ""
    slower = audit(clock, 200 / usual.record.evaluations)
    assert slower.record.evaluations == usual.record.evaluations
    assert slower.record.rows_seen <= usual.record.rows_seen + 8
    assert note_on_rows(slower) is None
    said = capsys.readouterr().err.splitlines()[0]
    assert "auditing takes about 3 min by" in said
    assert said.endswith("evaluations=… or seconds=… make it shorter.")


def test_a_time_limit_or_none_leaves_the_rows_as_they_are(clock, capsys):
    usual = audit(clock, 0.0)
    unlimited = audit(clock, 0.005, seconds=math.inf)
    assert unlimited.record.evaluations == usual.record.evaluations
    capsys.readouterr()
    limited = audit(clock, 0.005, seconds=30)
    assert limited.record.stopped == "time limit of 30 s"
    assert note_on_rows(limited) is None
    assert "the limit of 30 s ends it with what is measured by then." in capsys.readouterr().err
