"""Learning ends in time, by a callback or on an interrupt."""

import pytest
import torch

import absentia as ab
from absentia import LearningOptions, learn_baseline
from seeded_draws import normal_rows, randn
from slow_models import Slow, without_gradient
from small_classifiers import classifier, slow_model


@pytest.mark.parametrize("loss", ["faithful", "interactions"])
@pytest.mark.parametrize("gradient", [True, False], ids=["gradient", "black box"])
@pytest.mark.parametrize("players", [4, 14])
def test_learning_starts_at_most_one_batch_after_its_limit(players, gradient, loss, clock):
    slow = Slow(clock, 3.0)
    model = slow if gradient else without_gradient(slow)
    learned = ab.learn_baseline(model, normal_rows(60, players), loss=loss, seconds=3.0)
    assert slow.late <= 1
    assert not learned.converged
    assert "the limit of 3 s is reached" in learned.record.stopped
    assert learned.record.chosen
    assert "0 of 0" not in repr(learned)


def test_a_time_limit_ends_learning_with_the_values_so_far(clock):
    x = randn(60, 4)
    model = slow_model(clock, classifier(), seconds_per_call=0.008)
    options = LearningOptions(steps=10_000, rows_per_step=2**8)
    learned = learn_baseline(model, x, torch.arange(60) % 3, seconds=1.5, options=options)
    assert learned.seconds < 1.6
    assert not learned.converged
    assert "limit of 1.5 s is reached after" in learned.record.stopped


@pytest.mark.parametrize("start", ["best", "median"])
def test_a_limit_that_is_reached_at_once_returns_a_usual_baseline(start):
    learned = learn_baseline(classifier(), randn(60, 4), torch.arange(60) % 3, start=start, seconds=1e-6)
    chosen = "mean" if start == "best" else start
    assert learned.record.stopped.startswith("the limit of 1e-06 s is reached before any baseline was compared")
    assert learned.record.chosen == chosen
    assert repr(learned).startswith(f"There was no time to compare baselines: this is the {chosen}.\n")


def test_a_callback_sees_every_step_and_may_end_learning():
    seen = []

    def stop(step):
        seen.append(step)
        return step.step == 5

    options = LearningOptions(steps=12, rows_per_step=2**8, callback=stop)
    learned = learn_baseline(classifier(), randn(40, 4), torch.arange(40) % 3, options=options)
    assert [one.step for one in seen] == [1, 2, 3, 4, 5]
    assert all(one.steps == 12 and one.loss > 0 and one.seconds_left >= 0 for one in seen)
    assert learned.record.stopped.startswith("the callback returned True after 5 of 12 steps")


def test_an_interrupt_keeps_the_values_so_far():
    def interrupt(step):
        if step.step == 7:
            raise KeyboardInterrupt

    options = LearningOptions(steps=12, rows_per_step=2**8, callback=interrupt)
    learned = learn_baseline(classifier(), randn(40, 4), torch.arange(40) % 3, options=options)
    assert learned.record.stopped.startswith("interrupted after 7 of 12 steps")
    assert not learned.converged
