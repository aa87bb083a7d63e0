import pytest
import torch

import absentia as ab
from experiments import tabular_audits as experiment
from experiments.datasets import TabularData
from toy_data import table

WORK = experiment.Work(rows=6, draws=2, background=30, learned_from=16, steps=2)


def model(rows):
    """Log-odds that are the product of the two columns that decide the class."""
    score = 3 * rows[:, 0] * rows[:, 1]
    return torch.stack([-score / 2, score / 2], dim=1)


@pytest.mark.slow
def test_every_method_has_its_figures():
    found = experiment.tabulate("toy", experiment.compare(model, table(), WORK, seed=0))
    names = ["zero (raw)", "mean", "median", "marginal", "Gaussian", "neighbours", "learned"]
    assert [row[0] for row in found.rows] == names
    assert all(len(row) == len(found.columns) for row in found.rows)
    assert "6 test rows of toy, all 3 players masked; seed 0" in found.note
    figures = {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows}
    # The raw zero is 0 in these data, where a product has the single effect |3·x₀·x₁|, and v(∅) = 0.
    x, _ = experiment.held_out(table(), 6, 0)
    product = float((3 * x[:, 0] * x[:, 1]).abs().mean())
    assert float(figures["zero (raw)"]["Σ|U| of its own game"]) == pytest.approx(product, rel=1e-3)
    assert float(figures["zero (raw)"]["v(∅)"]) == 0
    assert float(figures["zero (raw)"]["salient"]) == 1


def test_the_background_is_drawn_by_the_seed_from_training_rows(monkeypatch):
    monkeypatch.setattr(experiment, "learn", lambda *_, **__: ab.Baseline(0.0))
    monkeypatch.setattr(ab, "NearestNeighbours", lambda rows, neighbours: rows)
    data = table()
    first, again, other = (experiment.methods(model, data, WORK, seed)["neighbours"] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len(first) == 30
    rows = {tuple(row) for row in data.x_train.tolist()}
    assert all(tuple(row) in rows for row in first.tolist())


@pytest.mark.slow
def test_many_players_are_audited_in_drawn_games(monkeypatch):
    x = torch.randn(60, 18, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    names = tuple(f"c{number}" for number in range(18))
    data = TabularData("wide", names, x[:50], y[:50], x[50:], y[50:], (), ("a", "b"), torch.zeros(18), torch.ones(18))
    monkeypatch.setattr(experiment, "learn", lambda *_, **__: ab.Baseline(0.0))
    found = experiment.compare(
        lambda rows: torch.stack([-rows.sum(1), rows.sum(1)], 1),
        data,
        experiment.Work(rows=2, draws=1, background=20),
        seed=0,
    )
    note = experiment.tabulate("wide", found).note
    assert "all 18 players masked, in drawn games of 12, one for each draw" in note


@pytest.mark.slow
def test_the_note_names_the_loss_and_the_baseline_that_learning_returned(monkeypatch):
    found = experiment.compare(model, table(), WORK, seed=0)
    assert "Learned: by the default loss, on training rows." in experiment.tabulate("toy", found).note
    monkeypatch.setattr(experiment, "learn", lambda _, data, *__: ab.Baseline.median(data.x_train))
    found = experiment.compare(model, table(), WORK, seed=0)
    assert "Its figures are those of the median, which learning returned." in experiment.tabulate("toy", found).note


def test_an_audit_is_no_claim_and_says_if_learning_returned_a_usual_baseline():
    figures = {"R of mean": 0.1, "strength of mean": 9.0, "R of median": 0.4, "strength of median": 2.0}
    found = experiment.judge({"toy": figures | {"R of learned": 0.4, "strength of learned": 2.0}})
    assert found.word == "no claim"
    assert "On toy, learning by the default loss returned the median" in found.reason
    assert "R of the learned values is 4.0 times that of the mean" in found.reason
    assert not experiment.judge({"toy": figures | {"R of learned": 0.05, "strength of learned": 1.0}}).reason
