"""Time limits hold to within one batch."""

import math
import pickle

import joblib
import pytest
import torch

import absentia as ab
from absentia import AbsentiaError
from absentia.runtime.limits import TimeLimit
from seeded_draws import normal_rows
from slow_models import SlowAtWorkers


def test_a_time_limit_counts_down(clock):
    limit = TimeLimit(10)
    clock.advance(4)
    assert limit.left == pytest.approx(6, abs=0.01)
    assert not limit.is_reached
    clock.advance(6)
    assert limit.is_reached
    assert TimeLimit().left == float("inf")
    for wrong in (0, -1, "10"):
        with pytest.raises(AbsentiaError, match="seconds must be a positive number"):
            TimeLimit(wrong)


LIMITED = {"zero": 0.0, "half": 0.5, "mean": "mean"}


@pytest.mark.parametrize("work", [ab.audit, ab.learn_baseline])
def test_a_limit_that_ends_before_the_samples_are_read_says_how_long_it_takes(work, clock):
    def model(rows):
        clock.advance(0.05)
        return torch.stack([rows.sum(1), rows.prod(1)], dim=1)

    with pytest.raises(ab.AbsentiaError, match="seconds must be about"):
        work(model, normal_rows(2000, 4), seconds=0.06)


@pytest.mark.parametrize("work", ["audit", "learn"])
def test_workers_start_at_most_one_batch_each_after_the_limit(work, tmp_path, clock):
    late = tmp_path / "late"
    late.touch()
    with joblib.parallel_config("threading", n_jobs=2):
        model = SlowAtWorkers(clock, 3.0, late)
        if work == "audit":
            found = ab.audit(model, normal_rows(40, 14), None, LIMITED, seconds=3.0)
            assert found.record.stopped == "time limit of 3 s"
        else:
            learned = ab.learn_baseline(model, normal_rows(60, 4), torch.arange(60) % 2, share="class", seconds=3.0)
            assert "is reached" in learned.record.stopped
    assert len(late.read_text().splitlines()) <= 2 + 1


def test_a_copy_of_a_limit_has_the_same_deadline_in_a_process_with_another_counter(clock, monkeypatch):
    limit = TimeLimit(10)
    clock.advance(4)
    packed = pickle.dumps(limit)
    endless = pickle.dumps(TimeLimit())
    monkeypatch.setattr("time.perf_counter", lambda: clock.read() + 1000)
    assert pickle.loads(packed).left == pytest.approx(6, abs=0.01)
    assert pickle.loads(endless).left == math.inf


def test_batches_that_take_long_do_not_grow():
    limit = TimeLimit(10)
    limit.note_batch(rows=16, seconds=1.0)
    assert limit.rows_of_a_batch(300) == 16
