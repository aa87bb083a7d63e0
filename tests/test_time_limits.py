"""Time limits hold to within one batch of the model: of audits, of learning, here and at workers."""

import math
import pickle
import time

import joblib
import pytest
import torch

import absentia as ab
from absentia import models
from absentia.models import BatchRunner, OutOfTime, TimeLimit

METHODS = {"zero": 0.0, "half": 0.5, "mean": "mean"}


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Slow:
    """A model that takes a while for each batch, and counts those that begin after its deadline."""

    def __init__(self, seconds, pause=0.05, per_row=0.0):
        self.deadline = time.perf_counter() + seconds + 0.01  # the limit itself begins a moment later
        self.pause = pause
        self.per_row = per_row
        self.calls = 0
        self.late = 0

    def __call__(self, rows):
        self.calls += 1
        self.late += time.perf_counter() > self.deadline
        time.sleep(self.pause + self.per_row * len(rows))
        return rows.prod(1) + rows.sum(1)


def slow_numpy(model):
    """Hide the gradient of a model."""
    return ab.from_numpy(lambda rows: model(torch.from_numpy(rows)).numpy())


@pytest.mark.parametrize("pace", [{"pause": 0.05}, {"pause": 0.0, "per_row": 0.002}], ids=["by call", "by row"])
@pytest.mark.parametrize("players", [4, 14])
def test_an_audit_starts_at_most_one_batch_after_its_limit(players, pace):
    model = Slow(2.0, **pace)
    found = ab.audit(model, randn(40, players), None, METHODS, seconds=2.0)
    assert model.late <= 1
    assert found.record.stopped == "time limit of 2 s"
    assert len(found.curve.prior) > 0
    assert "the audit ended early (time limit of 2 s)" in repr(found)


def test_an_audit_without_time_for_a_first_step_says_how_long_it_takes():
    model = Slow(0.2, pause=0.15)
    with pytest.raises(
        ab.AbsentiaError, match=r"seconds must be about [\d.]+ or more for this model. Got 0.2 instead"
    ):
        ab.audit(model, randn(40, 4), None, METHODS, seconds=0.2)
    assert model.late == 0


def test_a_limit_that_ends_before_the_samples_are_read_says_how_long_it_takes():
    def model(rows):
        time.sleep(0.05)
        return torch.stack([rows.sum(1), rows.prod(1)], dim=1)

    for work in (ab.audit, ab.learn_baseline):
        with pytest.raises(ab.AbsentiaError, match="seconds must be about"):
            work(model, randn(2000, 4), seconds=0.06)


LOSSES = ["faithful", "interactions"]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gradient", [True, False], ids=["gradient", "black box"])
@pytest.mark.parametrize("players", [4, 14])
def test_learning_starts_at_most_one_batch_after_its_limit(players, gradient, loss):
    slow = Slow(3.0)
    model = slow if gradient else slow_numpy(slow)
    learned = ab.learn_baseline(model, randn(60, players), loss=loss, seconds=3.0)
    assert slow.late <= 1
    assert not learned.converged
    assert "the limit of 3 s is reached" in learned.record.stopped
    assert learned.record.chosen
    assert "0 of 0" not in repr(learned)
