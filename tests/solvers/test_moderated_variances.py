"""Variances of few repeats: against those of many, and for players whose rare large effects were not drawn."""

import pytest
import torch

from absentia import Baseline, MaskedModel, shapley
from absentia.solvers.moderated_variances import moderated
from known_games import mlp

PLAYERS = 10
GAME = MaskedModel(
    mlp(PLAYERS, hidden=24),
    3 * torch.randn(2, PLAYERS, generator=torch.Generator().manual_seed(0)).double(),
    absence=Baseline(0.1),
)


def test_many_repeats_keep_their_own_variances():
    variances = torch.tensor([1.0, 9.0])
    torch.testing.assert_close(moderated(variances, torch.tensor(5.0), 10_000), variances, rtol=1e-3, atol=2e-3)


def test_no_variance_at_all_stays_none():
    assert (moderated(torch.zeros(3), torch.zeros(3), 2) == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "evaluations"), [("antithetic", 40), ("permutation", 40), ("permutation", 60)])
def test_intervals_of_few_orders_contain_the_values(method, evaluations):
    """40 evaluations are two antithetic pairs of orders, whose own deviations would cover two thirds."""
    exact = shapley(GAME).values
    runs = [shapley(GAME, evaluations=evaluations, method=method, seed=seed) for seed in range(60)]
    covered = torch.stack([(run.values - exact).abs() <= 1.96 * run.errors for run in runs])
    assert 0.92 < float(covered.double().mean()) < 0.985
