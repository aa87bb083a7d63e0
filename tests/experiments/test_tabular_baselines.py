import itertools

import pytest
import torch

import absentia as ab
from experiments import tabular_baselines as experiment
from experiments import tree_baselines
from experiments.datasets import TabularData
from experiments.networks import mlp
from experiments.published_schedule import bernoulli_contexts, published_schedule
from experiments.tabular_baselines import (
    compare,
    compare_starts,
    compared_loss,
    learn,
    measure,
    reconstruction_r2,
)
from experiments.tree_baselines import compare_trees


def toy(rows=200):
    """Four columns, one of them of three categories; the class depends on products."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, 4, generator=generator)
    x[:, 3] = torch.randint(0, 3, (rows,), generator=generator).float()
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    mean = x.mean(0)
    std = x.std(0, correction=0)
    x = (x - mean) / std
    half = rows // 2
    names = ("a", "b", "c", "d")
    return TabularData("toy", names, x[:half], y[:half], x[half:], y[half:], (3,), ("no", "yes"), mean, std)


MODEL = mlp((4, 8, 2), seed=0)


@pytest.fixture
def _quick(monkeypatch):
    """Compare on few rows: these tests are about the tables, not about how good the baselines are."""
    monkeypatch.setattr(experiment, "ROWS_PER_COMPARISON", 2**11)
    monkeypatch.setattr(tree_baselines, "ROWS_PER_COMPARISON", 2**9)
    monkeypatch.setattr(experiment, "SOBOL_STARTS", 1)


def test_the_published_schedule_counts_what_the_model_sees():
    data = toy()
    seen = []

    def model(rows):
        if rows.requires_grad:  # the check of the readout has no gradient
            seen.append(len(rows))
        return MODEL(rows)

    found = published_schedule(model, data.x_train, data.y_train, 2, 0.01, 0, samples=6, draws=5, batch=4)
    assert found.evaluations == sum(seen) == 4 * 2 * 5 * 2 * 6 * 2  # n · λ · T · 2 · samples · epochs
    assert len(found.losses) == 2
    assert found.seconds > 0


def test_the_published_schedule_lowers_its_loss_within_its_box():
    data = toy()
    found = published_schedule(MODEL, data.x_train, data.y_train, 6, 0.1, 0, samples=40, draws=20, batch=10)
    assert found.losses[-1] < found.losses[0]
    mean = data.x_train.double().mean(0)
    spread = data.x_train.double().std(0, correction=0)
    assert ((found.baseline - mean).abs() <= 0.3 * spread + 1e-9).all()
    ours, theirs = (compared_loss(MODEL, data, "shapley", b, 0, ab.LearningOptions()) for b in (found.baseline, mean))
    assert ours < theirs


def test_a_high_rate_ends_on_the_edge_of_a_given_box():
    data = toy()
    found = published_schedule(MODEL, data.x_train, data.y_train, 1, 100.0, 0, box=0.1, samples=8, draws=2)
    mean = data.x_train.double().mean(0)
    spread = data.x_train.double().std(0, correction=0)
    assert ((found.baseline - mean).abs() / spread).max().item() == pytest.approx(0.1)


def test_the_published_schedule_refuses_no_epochs():
    data = toy()
    with pytest.raises(ab.AbsentiaError, match="epochs must be at least 1"):
        published_schedule(MODEL, data.x_train, data.y_train, 0, 0.1, 0)


def test_contexts_lack_their_player_and_hold_others_with_probability_m_over_n():
    players, orders, draws = 4, 2, 4000
    generator = torch.Generator().manual_seed(0)
    drawn = bernoulli_contexts(1, players, orders, draws, generator)[0].view(2, players, orders, draws, players)
    for player, order in itertools.product(range(players), range(orders)):
        without, having = drawn[:, player, order]
        assert not without[:, player].any()
        assert having[:, player].all()
        others = torch.arange(players) != player
        assert torch.equal(without[:, others], having[:, others])
        assert without[:, others].double().mean().item() == pytest.approx(order / players, abs=0.02)


def test_r2_is_1_with_all_effects_and_agrees_with_a_sum_over_subsets():
    values = torch.randn(2, 16, generator=torch.Generator().manual_seed(0)).double()
    found = ab.harsanyi(ab.ValueTable(values))
    assert reconstruction_r2(found, 15).tolist() == pytest.approx([1.0, 1.0])
    for row, r2 in enumerate(reconstruction_r2(found, 5).tolist()):
        effects = found.effects[row].tolist()
        kept = sorted(range(1, 16), key=lambda number: -abs(effects[number]))[:5]
        rebuilt = [effects[0] + sum(effects[t] for t in kept if t & s == t) for s in range(16)]
        true = values[row].tolist()
        left = sum((a - b) ** 2 for a, b in zip(rebuilt, true, strict=True))
        total = sum((a - sum(true) / 16) ** 2 for a in true)
        assert r2 == pytest.approx(1 - left / total)


def test_r2_of_constant_values_is_1():
    assert reconstruction_r2(ab.harsanyi(ab.ValueTable([3.0, 3.0, 3.0, 3.0])), 1).tolist() == [1.0]


def test_what_remains_agrees_with_the_definitions():
    data = toy()
    x = data.x_test[:5]
    y = data.y_test[:5]
    found = measure(MODEL, x, y, torch.zeros(4))
    table = ab.value_table(ab.MaskedModel(MODEL, x, y, absence=ab.Baseline(0.0)))
    effects = ab.moebius(table.values)
    sizes = torch.tensor([bin(number).count("1") for number in range(16)])
    assert found.strength == pytest.approx(effects[:, 1:].abs().sum(1).mean().item())
    assert found.low_orders == pytest.approx(effects[:, (sizes >= 1) & (sizes <= 2)].abs().sum(1).mean().item())
    assert found.shapley == pytest.approx(ab.order_shapley(table, [0, 1, 2]).values.abs().sum((1, 2)).mean().item())
    assert found.marginal == pytest.approx(ab.order_marginals(table, [0, 1, 2]).values.sum((1, 2)).mean().item())
    assert found.empty == pytest.approx(table.values[:, 0].mean().item())


def test_the_loss_compared_is_that_of_learning():
    data = toy()
    options = ab.LearningOptions(steps=10, samples=32)
    learned = learn(MODEL, data, 0, options, loss="shapley", bounds=0.3)
    found = compared_loss(MODEL, data, "shapley", learned.values, 0, options)
    assert found == pytest.approx(learned.loss, rel=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("_quick")
def test_the_table_has_a_row_for_every_baseline_and_a_verdict_for_every_goal():
    figures, (table, goals) = compare(MODEL, toy(), 0, 1, 16, 8, draws=4, learned_from=16, steps=5)
    assert figures["evaluations of the schedule"] == 4 * 2 * 4 * 2 * 16
    assert figures["seconds of an epoch"] > 0
    learned = [f"learned, {loss}" for loss in experiment.LOSSES]
    labels = [
        "zero (raw)",
        "mean",
        "median",
        "published schedule",
        *learned,
        "learned, interactions",
        experiment.FRUGAL,
    ]
    assert [row[0] for row in table.rows] == labels
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.rows[1][3] == table.rows[3][4] == "1.000"
    assert table.rows[3][11] == f"{4 * 2 * 4 * 2 * 16:,}"
    assert "1 of the paper's 1,000 epochs" in table.note
    assert len(goals.rows) == 3 * 4 + 1
    assert {row[3] for row in goals.rows} <= {"met", "missed"}


@pytest.mark.slow
@pytest.mark.usefixtures("_quick")
def test_starts_are_compared_each_for_itself():
    spread, table = compare_starts(MODEL, toy(), 0, 8, learned_from=16, steps=5)
    starts = ["0 (standardised)", "mean", "median, within the box", "Sobol 1"]
    assert [row[0] for row in table.rows] == starts
    assert "0.0%" in [row[2] for row in table.rows]
    assert 0 <= spread < 1


@pytest.mark.slow
@pytest.mark.usefixtures("_quick")
def test_trees_are_learned_without_a_gradient():
    pytest.importorskip("sklearn")
    (table,) = compare_trees(toy(), 0, 8, learned_from=8, iterations=5).tables
    assert [row[0] for row in table.rows] == ["zero (raw)", "mean", "median", "learned, interactions"]
