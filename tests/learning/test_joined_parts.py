"""Baselines of classes and samples are learned in parts."""

from dataclasses import replace

import joblib
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import LearningOptions, learn_baseline
from absentia.learning import learner
from absentia.learning.learning_problem import make_objective, make_problem
from absentia.learning.space import make_space
from seeded_draws import generator
from small_classifiers import classes_of_three, slow_model

X = torch.randn(37, 8, generator=torch.Generator().manual_seed(0))


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))


def learned_by_parts(**options):
    y = network()(X).argmax(1)
    few = ab.LearningOptions(steps=6, rows_per_step=256, **options)
    by_class = ab.learn_baseline(network(), X, y, share="class", options=few)
    return by_class, ab.learn_baseline(network(), X[:20], y[:20], share="sample", loss="marginal", options=few)


@pytest.mark.slow
def test_workers_learn_the_baselines_of_classes_and_samples_as_one_process_does():
    torch.set_num_threads(1)  # as many as a worker has: sums of several threads differ by rounding errors
    alone = learned_by_parts()
    with joblib.parallel_config("loky", n_jobs=2):
        together = learned_by_parts()
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one.values, other.values)
        assert torch.equal(one.history, other.history)
        assert replace(one.record, seconds=0.0) == replace(other.record, seconds=0.0)
    assert [one.values.shape for one in alone] == [(3, 8), (20, 8)]
    assert alone[0].classes.tolist() == [0, 1, 2]


@pytest.mark.slow
def test_each_part_learns_for_its_own_classes_and_is_scored_on_all(monkeypatch):
    model, x, y = classes_of_three()
    learn = learner._learn_part
    parts = []
    monkeypatch.setattr(learner, "_learn_part", lambda *given: parts.append((given, learn(*given))) or parts[-1][1])
    whole = learn_baseline(model, x, y, share="class", options=LearningOptions(steps=3, rows_per_step=2**8))
    problems = [given[3] for given, _ in parts]
    found = [part.baseline for _, part in parts]
    order = {tuple(row): number for number, row in enumerate(x.tolist())}
    drawn = [order[tuple(row)] for row in problems[0].evaluator.x.tolist()]
    for number, problem in enumerate(problems):
        assert torch.equal(problem.owner, torch.where(y[drawn] == number, 0, -1))
        objective = make_objective(problem, x.mean(0), make_space(x, problem.evaluator.players, "range", None, None))
        assert not objective.for_all
        assert bool((problem.numbers[torch.cat([objective.learned, objective.aside])] == number).all())
        batch = objective.draw(objective.learned, generator())
        assert bool((problem.numbers[batch.rows] == number).all())
        assert set(problem.numbers[batch.empty[1]].tolist()) == {0, 1, 2}
        judged = next(objective._fixed(objective.aside, 1000, "judged"))
        assert set(problem.numbers[judged.empty[1]].tolist()) == {0, 1, 2}
        assert torch.equal(whole.values[number], found[number].values[0])
    assert whole.classes.tolist() == [0, 1, 2]
    assert whole.record.evaluations == sum(one.evaluations for one in found)
    assert whole.record.kept_aside == sum(one.record.kept_aside for one in found) == 9
    assert whole.loss == pytest.approx(sum(one.loss for one in found) / 3)
    for name, loss in whole.record.compared.items():
        assert loss == pytest.approx(sum(one.record.compared[name] for one in found) / 3)
    assert whole.record.chosen == min(whole.record.compared, key=whole.record.compared.get)


def test_many_samples_are_learned_in_even_parts_of_at_most_sixteen():
    model, x, _ = classes_of_three()
    options = LearningOptions(steps=1, rows_per_step=2**8)
    for count, expected in ((1, [1]), (3, [1, 1, 1]), (10, [3, 3, 2, 2]), (48, [12] * 4), (70, [14] * 5)):
        rows = torch.cat([x, x])[:count] + torch.arange(count)[:, None]
        problem = make_problem(model, rows, None, loss="faithful", share="sample", seed=0, options=options)
        parts = problem.parts()
        assert [int(part.owner.max()) + 1 for part in parts] == expected
        owned = torch.stack([part.owner >= 0 for part in parts])
        assert bool((owned.sum(0) == 1).all())
        assert {part.rows for part in parts} == {1 / min(4, len(expected))}


def test_what_ends_one_part_ends_all_of_them():
    model, x, y = classes_of_three()
    told = []

    def stop(step):
        told.append(step.step)
        return len(told) == 2

    options = LearningOptions(steps=12, rows_per_step=2**8, callback=stop)
    learned = learn_baseline(model, x, y, share="class", options=options)
    assert told == [1, 2]
    assert learned.record.stopped.startswith("the callback returned True after 2 of 12 steps")
    assert not learned.converged
    assert learned.values.shape == (3, 4)
    usual = torch.stack([x.mean(0), x.median(0).values, torch.zeros(4)])
    for row in learned.values[1:]:  # of classes whose turn did not come
        assert bool((row - usual).abs().amax(1).min() < 1e-6)


@pytest.mark.slow
def test_parts_share_the_time_and_their_histories_follow_each_other(monkeypatch, clock):
    model, x, y = classes_of_three()
    model = slow_model(clock, model, seconds_per_call=0.006)
    learn = learner._learn_part
    found = []
    monkeypatch.setattr(
        learner, "_learn_part", lambda *given: found.append((given[-1], learn(*given))) or found[-1][1]
    )
    options = LearningOptions(steps=10**6, rows_per_step=2**8)
    learned = learn_baseline(model, x, y, share="class", seconds=3.0, options=options)
    learned_parts = [part.baseline for _, part in found]
    assert all(0.3 < limit.seconds <= 1.0 for limit, _ in found)
    assert all("the limit of" in part.record.stopped and len(part.history) > 3 for part in learned_parts)
    assert "the limit of" in learned.record.stopped
    assert len(learned.history) == sum(len(part.history) for part in learned_parts)
    assert bool((learned.history[:, 0].diff() >= 0).all())
    assert learned.evaluations >= int(learned.history[-1, 0])
