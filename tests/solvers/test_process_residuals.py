"""Shapley values of more pairs than a process can hold, beside those of all coalitions."""

import pytest
import torch

import absentia as ab
from absentia.coalitions import enumerate_coalitions
from absentia.data import seeded
from absentia.solvers import process_residuals
from absentia.solvers.evaluated_pairs import evaluate_pairs
from absentia.solvers.process_residuals import process_shapley_of_any
from absentia.solvers.shapley_methods import regression_shapley
from known_games import mlp


@pytest.mark.slow
def test_a_process_of_some_pairs_and_a_regression_of_the_others(monkeypatch):
    monkeypatch.setattr(process_residuals, "MOST_PAIRS_OF_PROCESS", 500)
    monkeypatch.setattr(process_residuals, "FITTED_PAIRS", 400)
    game = ab.MaskedModel(mlp(15, hidden=24), 3 * torch.ones(1, 15).double(), absence=ab.Baseline(0.1))
    exact = ab.shapley(game).values
    own, by_regression, scores = [], [], []
    for seed in range(5):
        drawn = evaluate_pairs(game, 1600, seeded(seed))
        found = process_shapley_of_any(drawn, seed)
        torch.testing.assert_close(found.values.sum(1), drawn.full - drawn.empty)
        own.append((found.values - exact).square().mean())
        by_regression.append((regression_shapley(drawn, seed).values - exact).square().mean())
        scores.append((found.values - exact) / found.errors)
    assert float(torch.stack(own).mean()) < 0.9 * float(torch.stack(by_regression).mean())
    assert float((torch.stack(scores).abs() <= 1.96).double().mean()) > 0.8


def test_errors_hold_where_coalitions_have_noise_of_their_own(monkeypatch):
    monkeypatch.setattr(process_residuals, "MOST_PAIRS_OF_PROCESS", 300)
    monkeypatch.setattr(process_residuals, "FITTED_PAIRS", 200)
    generator = torch.Generator().manual_seed(0)
    coalitions = enumerate_coalitions(11).double()
    apart, stated = [], []
    for seed in range(6):
        smooth = (coalitions @ torch.randn(11, generator=generator).double()).tanh()
        table = ab.ValueTable(smooth + 0.1 * torch.randn(2**11, generator=generator).double())
        found = process_shapley_of_any(evaluate_pairs(table, 500, seeded(seed)), seed)
        apart.append((found.values - ab.shapley(table).values).square())
        stated.append(found.errors.square())
    ratio = (torch.stack(stated).mean() / torch.stack(apart).mean()).sqrt()
    assert 0.75 < ratio < 1.33


def test_a_sum_over_the_players_is_exact(monkeypatch):
    monkeypatch.setattr(process_residuals, "MOST_PAIRS_OF_PROCESS", 300)
    monkeypatch.setattr(process_residuals, "FITTED_PAIRS", 200)
    weights = torch.randn(11, generator=torch.Generator().manual_seed(0)).double()
    table = ab.ValueTable(enumerate_coalitions(11).double() @ weights)
    found = process_shapley_of_any(evaluate_pairs(table, 500, seeded(0)), 0)
    torch.testing.assert_close(found.values[0], weights, rtol=0, atol=1e-10)
