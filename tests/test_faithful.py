"""The default loss of learning: its terms by brute force, its gradient, and what learning by it returns."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError, LearningOptions, Players, learn_baseline
from absentia.coalitions import coalition_sizes, enumerate_coalitions
from absentia.data import data_range
from absentia.evaluation import Evaluator
from absentia.learning import learner
from absentia.learning.faithful import FaithfulObjective, Weights, _cube_and_batch
from absentia.learning.learning_problem import make_objective, make_problem
from absentia.learning.samples import keep_aside
from absentia.learning.space import make_space
from absentia.readouts import Score
from absentia.task import Task
from known_games import mlp

QUICK = LearningOptions(steps=12, rows_per_step=2**8)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def classifier(entries=4, classes=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(entries, 16), nn.Tanh(), nn.Linear(16, classes)).double()


def make(samples=40, players=4, rows=2**8, weights=(1.0, 0.3), owner=None, readout=None, y=None):
    x, y = randn(samples, players), torch.arange(samples) % 3 if y is None and readout is None else y
    evaluator = Evaluator(Task(classifier(players), x, y, readout=readout))
    owner = torch.zeros(samples, dtype=torch.int64) if owner is None else owner
    return FaithfulObjective(
        evaluator, owner, seed=0, rows=rows, weights=Weights(*weights), mean=x.mean(0), within=data_range(x)
    )


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_concision_and_scores_are_those_of_the_whole_tables():
    objective = make()
    baseline, batch = 0.3 * randn(1, 4, seed=1), objective.draw(objective.learned, generator())
    concision, score, empty, noise, usual = objective.figures(baseline, batch)[:, 0].tolist()
    evaluator, rows = objective.evaluator, batch.rows
    tables = evaluator.table(ab.Baseline(baseline[0]).bind(evaluator.x)).values
    effects = ab.moebius(tables[rows])[:, 1:].abs().sum(1)
    assert concision == pytest.approx(effects.mean().item())
    numbers = (batch.scored.long() * 2 ** torch.arange(4)).sum(-1)
    expected = torch.nn.functional.softplus(-tables[batch.scored_rows[:, None], numbers])
    assert score == pytest.approx(expected.mean().item())
    assert objective.score.classes is not None
    prior = Score(evaluator.readout, tables[:, -1]).prior[batch.empty[1]].mean()
    assert empty == pytest.approx((losses_at_nothing(tables, batch.empty[1]) - prior).item())
    for found, state in ((noise, baseline), (usual, evaluator.x.mean(0, keepdim=True))):
        against = evaluator.table(
            ab.OwnBaselines(batch.references).bind(state.expand(len(batch.references), -1)),
            samples=rows[: len(batch.references)],
        )
        assert found == pytest.approx(ab.moebius(against.values)[:, 1:].abs().sum(1).mean().item())


def test_the_loss_adds_up_its_terms_and_noise_counts_beyond_that_of_the_mean_alone():
    objective = make(weights=(2.0, 0.5))
    concision, score, floor = objective.scales.tolist()
    assert 0 < floor <= 1
    at_mean = objective.figures(objective.mean, objective.draw(objective.learned, generator()))
    assert torch.equal(at_mean[3], at_mean[4])

    def loss(*figures):
        return objective.losses(torch.tensor(figures)[:, None].double()).item()

    assert loss(3 * concision, score, 0.2, 0.0, 1.0) == pytest.approx(3 + 2.0)
    assert loss(0.0, 0.0, 1.2, 0.0, 1.0) == pytest.approx(2.0 * 1.5)
    assert loss(0.0, 0.0, -5.0, 0.9 * floor * 7, 7.0) == 0
    assert loss(0.0, 0.0, 0.0, 3 * floor * 7, 7.0) == pytest.approx(0.5 * 2)


def losses_at_nothing(tables, rows):
    return torch.nn.functional.softplus(-tables[rows, 0]).mean()


def test_cubes_and_drawn_sizes_estimate_the_whole_tables():
    """A game without interactions above order 1 has the same effects in every cube."""
    x = randn(64, 10)
    weights = torch.arange(1.0, 11.0).double()
    evaluator = Evaluator(Task(lambda rows: rows @ weights, x))
    objective = FaithfulObjective(
        evaluator, torch.zeros(64, dtype=torch.int64), 0, 2**6, Weights(1.0, 0.0), x.mean(0), data_range(x)
    )
    assert objective.cube < 10
    found, baseline = [], torch.zeros(1, 10).double()
    for seed in range(200):
        batch = objective.draw(objective.learned, generator(seed))
        found.append(objective.figures(baseline, batch)[:2, 0])
    mean, error = torch.stack(found).mean(0), torch.stack(found).std(0) / 200**0.5
    exact = (x[objective.learned] * weights).abs().sum(1).mean() * objective.cube / 10
    assert abs(mean[0] - exact) < 4 * error[0]
    tables = evaluator.table(ab.Baseline(0.0).bind(x)).values[objective.learned]
    scores, sizes = objective.score(tables, objective.learned), coalition_sizes(10)
    exact = torch.stack([scores[:, sizes == size].mean() for size in range(11)]).mean()
    assert abs(mean[1] - exact) < 4 * error[1]


@pytest.mark.parametrize("players", [4, 9])
@pytest.mark.parametrize("share", ["all", "class"])
def test_the_gradient_is_that_of_finite_differences(players, share):
    owner = torch.arange(40) % 3 if share == "class" else None
    objective = make(players=players, rows=2**7, owner=owner)
    baseline = 0.5 * randn(objective.owners, players, seed=2)
    slope, loss = objective.gradient(baseline, 1, 0)
    batch = objective.draw(objective.learned, ab.data.seeded(0, 1, 0))
    direction, step = randn(*baseline.shape, seed=3), 1e-6

    def total(at):
        return objective.losses(objective.figures(at, batch)).sum().item()

    assert loss == pytest.approx(total(baseline) / objective.owners)
    difference = (total(baseline + step * direction) - total(baseline - step * direction)) / (2 * step)
    assert (slope * direction).sum().item() == pytest.approx(difference, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "inner", "expected"), [(2_000, 2_000, False), (600_000, 2, True)])
def test_activations_are_computed_again_where_rows_hold_much(width, inner, expected):
    """Weights are held once, however many rows there are: 16 MB of the first network, whose rows hold little."""
    x = torch.rand(8, 4, generator=generator())
    model = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, inner), nn.Tanh(), nn.Linear(inner, 2))
    evaluator = Evaluator(Task(model, x, torch.arange(8) % 2))
    objective = FaithfulObjective(
        evaluator, torch.zeros(8, dtype=torch.int64), 0, 2**7, Weights(1.0, 0.0), x.mean(0), data_range(x)
    )
    assert objective.recompute is expected


def test_activations_that_are_computed_again_give_the_same_gradient():
    objective = make()
    baseline = 0.5 * randn(1, 4, seed=2)
    held, _ = objective.gradient(baseline, 1, 0)
    objective.recompute = True
    again, _ = objective.gradient(baseline, 1, 0)
    assert torch.allclose(held, again, rtol=1e-12)


def test_a_fifth_of_each_owner_is_kept_aside():
    owner = torch.cat([torch.zeros(50), torch.ones(10), torch.full((3,), 2.0)]).long()
    learned, aside = keep_aside(owner, seed=0)
    assert owner[aside].bincount().tolist() == [10, 2, 3]  # of the few, all are used twice
    assert not set(learned[owner[learned] < 2].tolist()) & set(aside.tolist())


def test_the_result_is_the_best_of_all_candidates_on_the_samples_kept_aside():
    x = randn(60, 4)
    y = classifier()(x).argmax(1)
    learned = learn_baseline(classifier(), x, y, options=QUICK)
    record = learned.record
    assert set(record.compared) == {"learned", "mean", "median", "zero"}
    assert learned.loss == min(record.compared.values()) == record.compared[record.chosen]
    assert (record.kept_aside, record.loss, record.exact) == (12, "faithful", True)
    for name in ("mean", "median", "zero"):
        loss = ab.baseline_loss(classifier(), x, y, absence=name, options=QUICK)
        assert loss == pytest.approx(record.compared[name], rel=1e-6)
    assert "kept aside" in repr(learned)


@pytest.mark.slow
def test_learning_beats_the_usual_baselines_on_samples_it_did_not_see():
    """A network that is trained on wines, judged on others than those it learned its baseline from."""
    wine = pytest.importorskip("sklearn.datasets").load_wine()
    x, y = torch.tensor(wine.data).double(), torch.tensor(wine.target)
    x = (x - x.mean(0)) / x.std(0)
    order = torch.randperm(len(x), generator=generator())
    train, test = order[:120], order[120:]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(13, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 3)).double()
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x[train]), y[train]).backward()
        optimiser.step()
    learned = learn_baseline(model, x[train], y[train])
    assert learned.record.chosen == "learned"
    known = {"learned": learned.values, "mean": x[train].mean(0), "median": x[train].median(0).values}
    losses = {
        name: ab.baseline_loss(model, x[test], y[test], absence=ab.Baseline(values)) for name, values in known.items()
    }
    assert losses["learned"] < 0.9 * min(losses["mean"], losses["median"]), losses


def test_concision_alone_finds_the_baseline_of_a_product():
    x = torch.rand(200, 3, generator=generator()).double()
    options = LearningOptions(evidence=0.0, noise=0.0, steps=100, rows_per_step=2**9)
    learned = learn_baseline(lambda rows: (rows - 0.25).prod(1), x, options=options)
    assert (learned.values - 0.25).abs().max() < 0.02


@pytest.mark.slow
def test_the_same_seed_gives_the_same_values():
    x = randn(40, 4)
    first, again, other = (learn_baseline(mlp(4), x, options=QUICK, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.values, again.values)
    assert not torch.equal(first.values, other.values)


@pytest.mark.slow
@pytest.mark.parametrize("share", ["class", "sample"])
def test_baselines_of_classes_and_samples_are_learned(share):
    x = randn(30, 4)
    y = torch.arange(30) % 3
    learned = learn_baseline(classifier(), x, y, share=share, options=QUICK)
    assert learned.values.shape == ((3, 4) if share == "class" else (30, 4))
    assert len(torch.unique(learned.values, dim=0)) > 1


@pytest.mark.slow
def test_black_boxes_and_categories_are_searched_without_a_gradient():
    x = torch.cat([randn(80, 2), torch.randint(0, 3, (80, 1), generator=generator()).double()], 1)

    def predict(rows):
        assert np.isin(rows[:, 2], [0, 1, 2]).all(), "white noise makes no category"
        return np.tanh(rows[:, 0] - 0.7) * np.where(rows[:, 2] == 2, 3.0, 1.0) + 0.1 * rows[:, 1]

    learned = learn_baseline(ab.from_numpy(predict), x, categorical=[2], options=QUICK)
    assert learned.values[2].item() in (0.0, 1.0, 2.0)
    assert learned.loss <= min(learned.record.compared["mean"], learned.record.compared["median"])
    assert learned.record.chosen == "learned"


def test_images_have_one_value_for_each_pixel():
    x = torch.rand(30, 1, 4, 4, generator=generator())
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 2))
    model[0].weight.data.mul_(8)
    options = LearningOptions(evidence=0.0, noise=0.0, steps=60, rows_per_step=2**8)
    learned = learn_baseline(model, x, players=Players.grid((1, 4, 4), cells=(2, 2)), options=options)
    assert learned.record.chosen == "learned"
    assert len(torch.unique(learned.values)) > 4


def slow_model(clock, model, seconds_per_call):
    """Return a model that takes this long for each call, by the clock of the tests."""

    def run(rows):
        clock.advance(seconds_per_call)
        return model(rows)

    return run


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


@pytest.mark.slow
def test_a_checkpoint_is_resumed_to_the_same_values(tmp_path):
    x, y = randn(40, 4), torch.arange(40) % 3
    whole = learn_baseline(classifier(), x, y, options=QUICK)

    def fail(step):
        if step.step == 8:
            raise ZeroDivisionError

    kept = LearningOptions(steps=12, rows_per_step=2**8, checkpoint=tmp_path / "kept", callback=fail)
    with pytest.raises(ZeroDivisionError):
        learn_baseline(classifier(), x, y, options=kept)
    resumed = learn_baseline(
        classifier(), x, y, options=LearningOptions(steps=12, rows_per_step=2**8, checkpoint=tmp_path / "kept")
    )
    assert torch.allclose(resumed.values, whole.values, rtol=1e-12)


def test_threads_modes_and_gradients_of_the_model_are_restored():
    model, threads = classifier().train(), torch.get_num_threads()
    learn_baseline(model, randn(40, 4), torch.arange(40) % 3, options=QUICK)
    assert model.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("name", ["evidence", "noise", "rows_per_step"])
def test_weights_below_zero_get_a_sentence(name):
    with pytest.raises(AbsentiaError, match=f"{name} must be at least"):
        LearningOptions(**{name: -1})


LIMITED = """
import resource, sys, torch
from torch import nn
import absentia as ab
torch.set_num_threads(1)
shape, players = {shape}, {players}
x = torch.rand(10, *shape, generator=torch.Generator().manual_seed(0))
model = nn.Sequential({layers})
model(x[:2])
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 2**30, now + 2**30))
learned = ab.learn_baseline(model, x, torch.arange(10) % 2, players=players, options=ab.LearningOptions(**{options}))
print(learned.evaluations)
"""
CONVOLUTIONS = (
    "nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 8, 3, 8), nn.Flatten(), nn.Linear(8 * 28 * 28, 2)"
)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize(
    ("shape", "players", "layers"),
    [
        ((30,), "None", "nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2)"),
        ((64,), "None", "nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2)"),
        ((1000,), "None", "nn.Linear(1000, 32), nn.ReLU(), nn.Linear(32, 2)"),
        ((1, 28, 28), "ab.Players.grid((1, 28, 28), cells=(28, 28))", "nn.Flatten(), nn.Linear(784, 2)"),
        ((3, 224, 224), "ab.Players.grid((3, 224, 224), cells=(14, 14))", CONVOLUTIONS),
    ],
)
def test_memory_is_bounded_for_many_players_and_large_images(shape, players, layers):
    options = {"steps": 1} if len(shape) == 1 else {"steps": 1, "rows_per_step": 64}  # 2 GB if all were held
    script = LIMITED.format(shape=shape, players=players, layers=layers, options=options)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout) > 100


def test_all_coalitions_are_enumerated_if_they_are_few():
    batch = make().draw(torch.arange(40), generator())
    assert torch.equal(batch.coalitions, enumerate_coalitions(4))


def test_a_fifth_of_the_samples_is_kept_aside_or_all_if_they_are_few():
    assert [len(part) for part in keep_aside(torch.zeros(20, dtype=torch.int64), seed=0)] == [16, 4]
    assert [len(part) for part in keep_aside(torch.arange(3), seed=0)] == [3, 3]


@pytest.mark.parametrize(
    ("players", "owners", "expected"), [(10, 1, (10, 16)), (64, 1, (8, 64)), (64, 100, (7, 128))]
)
def test_tables_are_as_large_as_the_rows_of_a_step_allow(players, owners, expected):
    assert _cube_and_batch(players, 2**14, owners) == expected


def classes_of_three():
    """Return a model, samples and classes for a baseline of each of three classes, in three parts."""
    x = randn(48, 4)
    weights = randn(4, 3, seed=5)
    return (lambda rows: torch.tanh(rows) @ weights), x, torch.arange(48) % 3


def test_each_part_learns_for_its_own_classes_and_is_scored_on_all(monkeypatch):
    model, x, y = classes_of_three()
    learn, parts = learner._learn_part, []
    monkeypatch.setattr(learner, "_learn_part", lambda *given: parts.append((given, learn(*given))) or parts[-1][1])
    whole = learn_baseline(model, x, y, share="class", options=LearningOptions(steps=3, rows_per_step=2**8))
    problems, found = [given[3] for given, _ in parts], [part.baseline for _, part in parts]
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


def test_parts_share_the_time_and_their_histories_follow_each_other(monkeypatch, clock):
    model, x, y = classes_of_three()
    model = slow_model(clock, model, seconds_per_call=0.006)
    learn, found = learner._learn_part, []
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


@pytest.mark.slow
def test_each_part_goes_on_from_its_own_checkpoint(tmp_path):
    model, x, y = classes_of_three()
    told = []

    def fail(step):
        told.append(step)
        if len(told) == 15:  # in the second class, whose first five steps are kept
            raise RuntimeError

    plain = LearningOptions(steps=8, rows_per_step=2**8)
    whole = learn_baseline(model, x, y, share="class", options=plain)
    kept = replace(plain, checkpoint=tmp_path / "kept", callback=fail)
    with pytest.raises(RuntimeError):
        learn_baseline(model, x, y, share="class", options=kept)
    resumed = learn_baseline(
        model, x, y, share="class", options=replace(kept, callback=lambda step: told.append(step))
    )
    assert len(told) == 15 + 3 + 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "kept.1", "kept.2"]
    torch.testing.assert_close(resumed.values, whole.values, rtol=0, atol=1e-12)
    (tmp_path / "kept.1").rename(tmp_path / "kept")
    with pytest.raises(AbsentiaError, match="checkpoint must belong to the same model, data and settings"):
        learn_baseline(model, x, y, share="class", options=kept)
