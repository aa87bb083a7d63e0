"""Shapley values of more pairs than a process can hold, beside those of all coalitions."""

import pytest
import torch

import absentia as ab
from absentia.data import seeded
from absentia.solvers import process_residuals
from absentia.solvers.paired_draws import evaluate_pairs
from absentia.solvers.process_residuals import process_shapley_of_any
from absentia.solvers.sampled_shapley import regression_shapley
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
