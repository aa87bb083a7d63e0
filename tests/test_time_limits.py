"""Time limits hold to within one batch of the model: of audits, of learning, here and at workers."""

import math
import pickle

import joblib
import pytest
import torch

import absentia as ab
from absentia.auditing.measuring import CurveStep, GamesStep, RemovalStep
from absentia.evaluation import Evaluator
from absentia.runtime.batches import BatchRunner
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.threads import quickest_threads
from absentia.task import Task

METHODS = {"zero": 0.0, "half": 0.5, "mean": "mean"}
PACES = {"by call": {"pause": 0.05}, "by row": {"pause": 0.0, "per_row": 0.002}}


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Slow:
    """A model that takes a while for each batch, and counts those that begin after its deadline."""

    def __init__(self, clock, seconds, pause=0.05, per_row=0.0):
        self.clock = clock
        self.deadline = clock.now + seconds + 0.01  # the limit itself begins a moment later
        self.pause = pause
        self.per_row = per_row
        self.late = 0

    def __call__(self, rows):
        if self.clock.now > self.deadline:
            self.late += 1
        self.clock.advance(self.pause + self.per_row * len(rows))
        return rows.prod(1) + rows.sum(1)


def without_gradient(model):
    return ab.from_numpy(lambda rows: model(torch.from_numpy(rows)).numpy())


@pytest.mark.slow
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("players", [4, 14])
def test_an_audit_starts_at_most_one_batch_after_its_limit(players, pace, clock):
    model = Slow(clock, 3.0, **PACES[pace])
    found = ab.audit(model, randn(40, players), None, METHODS, seconds=3.0)
    assert model.late <= 1
    assert found.record.stopped == "time limit of 3 s"
    assert len(found.fully_masked.prior) > 0
    assert "the audit ended early (time limit of 3 s)" in repr(found)


def test_an_audit_without_time_for_a_first_step_says_how_long_it_takes(clock):
    model = Slow(clock, 0.2, pause=0.15)
    message = r"seconds must be about [\d.]+ or more for this model. Got 0.2 instead"
    with pytest.raises(ab.AbsentiaError, match=message):
        ab.audit(model, randn(40, 4), None, METHODS, seconds=0.2)
    assert model.late == 0


@pytest.mark.parametrize("work", [ab.audit, ab.learn_baseline])
def test_a_limit_that_ends_before_the_samples_are_read_says_how_long_it_takes(work, clock):
    def model(rows):
        clock.advance(0.05)
        return torch.stack([rows.sum(1), rows.prod(1)], dim=1)

    with pytest.raises(ab.AbsentiaError, match="seconds must be about"):
        work(model, randn(2000, 4), seconds=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cut_off", "missing"), [(CurveStep, "score, length, R"), (GamesStep, "length, R"), (RemovalStep, "R")]
)
def test_an_audit_that_is_cut_off_says_what_is_missing_and_can_be_shown(cut_off, missing, monkeypatch, tmp_path):
    def run_out_of_time(*_given):
        raise OutOfTime

    monkeypatch.setattr(cut_off, "measure", run_out_of_time)
    x = randn(40, 4)
    found = ab.audit(
        lambda rows: torch.stack([rows.sum(1), rows.prod(1)], dim=1),
        x,
        (x.sum(1) > 0).long(),
        METHODS,
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
    x = randn(40, 4)
    found = ab.audit(model, x, None, ["mean", "learned"], data=randn(60, 4, seed=1), seconds=4.0)
    assert model.late <= 1
    assert not found.leak.value.isnan().any()


@pytest.mark.parametrize("loss", ["faithful", "interactions"])
@pytest.mark.parametrize("gradient", [True, False], ids=["gradient", "black box"])
@pytest.mark.parametrize("players", [4, 14])
def test_learning_starts_at_most_one_batch_after_its_limit(players, gradient, loss, clock):
    slow = Slow(clock, 3.0)
    model = slow if gradient else without_gradient(slow)
    learned = ab.learn_baseline(model, randn(60, players), loss=loss, seconds=3.0)
    assert slow.late <= 1
    assert not learned.converged
    assert "the limit of 3 s is reached" in learned.record.stopped
    assert learned.record.chosen
    assert "0 of 0" not in repr(learned)


class SlowAtWorkers:
    """A model that notes in a file each batch that begins after its deadline. Workers run copies of it."""

    def __init__(self, clock, seconds, path):
        self.clock = clock
        self.deadline = clock.now + seconds + 0.01
        self.path = path

    def __call__(self, rows):
        if self.clock.now > self.deadline:
            with self.path.open("a") as file:
                file.write("late\n")
        self.clock.advance(0.05)
        return rows.prod(1) + rows.sum(1)


@pytest.mark.parametrize("work", ["audit", "learn"])
def test_workers_start_at_most_one_batch_each_after_the_limit(work, tmp_path, clock):
    late = tmp_path / "late"
    late.touch()
    with joblib.parallel_config("threading", n_jobs=2):
        model = SlowAtWorkers(clock, 3.0, late)
        if work == "audit":
            found = ab.audit(model, randn(40, 14), None, METHODS, seconds=3.0)
            assert found.record.stopped == "time limit of 3 s"
        else:
            learned = ab.learn_baseline(model, randn(60, 4), torch.arange(60) % 2, share="class", seconds=3.0)
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


def test_batches_are_small_at_first_and_grow_while_they_are_quick(clock):
    sizes = []

    def model(rows):
        sizes.append(len(rows))
        return rows.sum(1)

    BatchRunner(model, 300, TimeLimit(100))(randn(1000, 2))
    assert sizes == [16, 64, 256, 300, 300, 64]
    sizes.clear()
    BatchRunner(model, 300, TimeLimit())(randn(1000, 2))
    assert sizes == [300, 300, 300, 100]


def test_batches_that_take_long_do_not_grow():
    limit = TimeLimit(10)
    limit.note_batch(rows=16, seconds=1.0)
    assert limit.rows_of_a_batch(300) == 16


def test_work_ends_between_two_batches(clock):
    limit = TimeLimit(100)
    calls = []

    def model(rows):
        calls.append(len(rows))
        clock.advance(60)
        return rows.sum(1)

    with pytest.raises(OutOfTime):
        BatchRunner(model, 16, limit)(randn(100, 2))
    assert calls == [16, 16]


def test_tables_and_values_end_between_two_batches(clock):
    evaluator = Evaluator(Task(lambda rows: rows.sum(1), randn(4, 6), limit=TimeLimit(100)))
    fill = ab.Baseline(0.0).bind(evaluator.x)
    clock.advance(100)
    with pytest.raises(OutOfTime):
        evaluator.table(fill)
    with pytest.raises(OutOfTime):
        evaluator.values(fill, torch.ones(3, 6).bool())


def test_threads_are_not_timed_if_that_would_take_too_much_of_the_time(clock):
    torch.set_num_threads(2)
    calls = []

    def work():
        calls.append(1)
        clock.advance(0.02)

    with quickest_threads(work, torch.device("cpu"), TimeLimit(0.1)):
        pass
    assert len(calls) == 1
