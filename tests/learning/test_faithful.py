"""The default loss of learning: its terms by brute force, its gradient, and what learning by it returns."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import LearningOptions, Players, learn_baseline
from absentia.coalitions import coalition_sizes, enumerate_coalitions
from absentia.data import data_range
from absentia.evaluation import Evaluator
from absentia.learning.faithful import FaithfulObjective, Weights, _cube_and_batch
from absentia.readouts import Score
from absentia.task import Task
from known_games import mlp
from seeded_draws import generator, randn
from small_classifiers import QUICK, classifier

WEIGHTS = Weights(1.0, 0.3)


def objective_of(evaluator, rows, weights, owner=None):
    """Return the objective of an evaluator's samples; by default, one baseline is learned for all of them."""
    x = evaluator.x
    if owner is None:
        owner = torch.zeros(len(x), dtype=torch.int64)
    return FaithfulObjective(
        evaluator, owner, seed=0, rows=rows, weights=weights, mean=x.mean(0), within=data_range(x)
    )


def make(players=4, rows=2**8, weights=WEIGHTS, owner=None):
    """Return the objective of a small classifier on 40 samples of three classes."""
    task = Task(classifier(players), randn(40, players), torch.arange(40) % 3)
    return objective_of(Evaluator(task), rows, weights, owner)


def test_concision_and_scores_are_those_of_the_whole_tables():
    objective = make()
    evaluator = objective.evaluator
    baseline = 0.3 * randn(1, 4, seed=1)
    batch = objective.draw(objective.learned, generator())
    rows = batch.rows
    concision, score, empty, noise, noise_at_mean = objective.figures(baseline, batch)[:, 0].tolist()
    tables = evaluator.table(ab.Baseline(baseline[0]).bind(evaluator.x)).values
    effects = ab.moebius(tables[rows])[:, 1:].abs().sum(1)
    assert concision == pytest.approx(effects.mean().item())
    numbers = (batch.scored.long() * 2 ** torch.arange(4)).sum(-1)
    expected = torch.nn.functional.softplus(-tables[batch.scored_rows[:, None], numbers])
    assert score == pytest.approx(expected.mean().item())
    assert objective.score.classes is not None
    prior = Score(evaluator.readout, tables[:, -1]).prior[batch.empty[1]].mean()
    assert empty == pytest.approx((losses_at_nothing(tables, batch.empty[1]) - prior).item())
    assert noise == pytest.approx(strength_against_noise(evaluator, batch, baseline))
    assert noise_at_mean == pytest.approx(strength_against_noise(evaluator, batch, evaluator.x.mean(0, keepdim=True)))


def strength_against_noise(evaluator, batch, baseline):
    """Return the mean Σ|U| of a baseline as the sample, where the batch's noise stands in."""
    count = len(batch.references)
    fill = ab.OwnBaselines(batch.references).bind(baseline.expand(count, -1))
    table = evaluator.table(fill, samples=batch.rows[:count])
    return ab.moebius(table.values)[:, 1:].abs().sum(1).mean().item()


def losses_at_nothing(tables, rows):
    """Return the mean loss of some samples without any player."""
    return torch.nn.functional.softplus(-tables[rows, 0]).mean()


def test_the_loss_adds_up_its_terms_and_noise_counts_beyond_that_of_the_mean_alone():
    objective = make(weights=Weights(2.0, 0.5))
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


@pytest.mark.slow
def test_cubes_and_drawn_sizes_estimate_the_whole_tables():
    """A game without interactions above order 1 has the same effects in every cube."""
    players = 10
    x = randn(64, players)
    slopes = torch.arange(1.0, players + 1).double()
    evaluator = Evaluator(Task(lambda rows: rows @ slopes, x))
    objective = objective_of(evaluator, 2**6, Weights(1.0, 0.0))
    assert objective.cube < players

    draws = 200
    baseline = torch.zeros(1, players).double()
    batches = [objective.draw(objective.learned, generator(seed)) for seed in range(draws)]
    figures = torch.stack([objective.figures(baseline, batch)[:2, 0] for batch in batches])
    concision, score = figures.mean(0)
    concision_error, score_error = figures.std(0) / draws**0.5

    exact_concision = (x[objective.learned] * slopes).abs().sum(1).mean() * objective.cube / players
    assert abs(concision - exact_concision) < 4 * concision_error
    tables = evaluator.table(ab.Baseline(0.0).bind(x)).values[objective.learned]
    scores = objective.score(tables, objective.learned)
    sizes = coalition_sizes(players)
    exact_score = torch.stack([scores[:, sizes == size].mean() for size in range(players + 1)]).mean()
    assert abs(score - exact_score) < 4 * score_error


@pytest.mark.parametrize("players", [4, 9])
@pytest.mark.parametrize("share", ["all", "class"])
def test_the_gradient_is_that_of_finite_differences(players, share):
    owners = {"all": None, "class": torch.arange(40) % 3}
    objective = make(players=players, rows=2**7, owner=owners[share])
    baseline = 0.5 * randn(objective.owners, players, seed=2)
    slope, loss = objective.gradient(baseline, 1, 0)
    batch = objective.draw(objective.learned, ab.data.seeded(0, 1, 0))
    direction = randn(*baseline.shape, seed=3)
    step = 1e-6

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
    objective = objective_of(Evaluator(Task(model, x, torch.arange(8) % 2)), 2**7, Weights(1.0, 0.0))
    assert objective.source.recompute is expected


def test_activations_that_are_computed_again_give_the_same_gradient():
    objective = make()
    baseline = 0.5 * randn(1, 4, seed=2)
    held, _ = objective.gradient(baseline, 1, 0)
    objective.source.recompute = True
    again, _ = objective.gradient(baseline, 1, 0)
    assert torch.allclose(held, again, rtol=1e-12)


@pytest.mark.slow
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
    x = torch.tensor(wine.data).double()
    x = (x - x.mean(0)) / x.std(0)
    y = torch.tensor(wine.target)
    order = torch.randperm(len(x), generator=generator())
    train = order[:120]
    test = order[120:]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(13, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 3)).double()
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x[train]), y[train]).backward()
        optimiser.step()
    learned = learn_baseline(model, x[train], y[train])
    assert learned.record.chosen == "learned"

    def loss(values):
        return ab.baseline_loss(model, x[test], y[test], absence=ab.Baseline(values))

    loss_of_usual = min(loss(x[train].mean(0)), loss(x[train].median(0).values))
    assert loss(learned.values) < 0.9 * loss_of_usual


@pytest.mark.slow
def test_concision_alone_finds_the_baseline_of_a_product():
    x = torch.rand(200, 3, generator=generator()).double()
    options = LearningOptions(evidence=0.0, noise=0.0, steps=100, rows_per_step=2**9)
    learned = learn_baseline(lambda rows: (rows - 0.25).prod(1), x, options=options)
    assert (learned.values - 0.25).abs().max() < 0.02


@pytest.mark.slow
def test_the_same_seed_gives_the_same_values():
    x = randn(40, 4)
    first = learn_baseline(mlp(4), x, options=QUICK, seed=0)
    again = learn_baseline(mlp(4), x, options=QUICK, seed=0)
    other_seed = learn_baseline(mlp(4), x, options=QUICK, seed=1)
    assert torch.equal(first.values, again.values)
    assert not torch.equal(first.values, other_seed.values)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "baselines"), [("class", 3), ("sample", 30)], ids=["class", "sample"])
def test_baselines_of_classes_and_samples_are_learned(share, baselines):
    x = randn(30, 4)
    y = torch.arange(30) % 3
    learned = learn_baseline(classifier(), x, y, share=share, options=QUICK)
    assert learned.values.shape == (baselines, 4)
    assert len(torch.unique(learned.values, dim=0)) > 1


@pytest.mark.slow
def test_black_boxes_and_categories_are_searched_without_a_gradient():
    categories = torch.randint(0, 3, (80, 1), generator=generator()).double()
    x = torch.cat([randn(80, 2), categories], 1)

    def predict(rows):
        assert np.isin(rows[:, 2], [0, 1, 2]).all(), "white noise makes no category"
        slope = np.where(rows[:, 2] == 2, 3.0, 1.0)
        return np.tanh(rows[:, 0] - 0.7) * slope + 0.1 * rows[:, 1]

    learned = learn_baseline(ab.from_numpy(predict), x, categorical=[2], options=QUICK)
    assert learned.values[2].item() in (0.0, 1.0, 2.0)
    assert learned.loss <= min(learned.record.compared["mean"], learned.record.compared["median"])
    assert learned.record.chosen == "learned"


@pytest.mark.slow
def test_images_have_one_value_for_each_pixel():
    x = torch.rand(30, 1, 4, 4, generator=generator())
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 2))
    model[0].weight.data.mul_(8)
    options = LearningOptions(evidence=0.0, noise=0.0, steps=60, rows_per_step=2**8)
    learned = learn_baseline(model, x, players=Players.grid((1, 4, 4), cells=(2, 2)), options=options)
    assert learned.record.chosen == "learned"
    assert len(torch.unique(learned.values)) > 4


def test_threads_modes_and_gradients_of_the_model_are_restored():
    model = classifier().train()
    threads = torch.get_num_threads()
    learn_baseline(model, randn(40, 4), torch.arange(40) % 3, options=QUICK)
    assert model.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert torch.get_num_threads() == threads


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
    options = {"steps": 1}
    if len(shape) > 1:
        options["rows_per_step"] = 64  # 2 GB if all were held
    script = LIMITED.format(shape=shape, players=players, layers=layers, options=options)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout) > 100


def test_all_coalitions_are_enumerated_if_they_are_few():
    batch = make().draw(torch.arange(40), generator())
    assert torch.equal(batch.coalitions, enumerate_coalitions(4))


@pytest.mark.parametrize(
    ("players", "owners", "expected"), [(10, 1, (10, 16)), (64, 1, (8, 64)), (64, 100, (7, 128))]
)
def test_tables_are_as_large_as_the_rows_of_a_step_allow(players, owners, expected):
    assert _cube_and_batch(players, 2**14, owners) == expected
