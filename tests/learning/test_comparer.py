"""Looks at a baseline that may be given up early."""

import pytest
import torch

from absentia import AbsentiaError
from absentia.learning.paper_objective import PARTS
from known_games import mlp
from seeded_draws import generator
from small_learning import learn
from small_searches import make_run


def test_the_last_look_is_the_loss_on_all_samples():
    run = make_run()
    baseline = torch.full((1, 4), 0.3).double()
    looks = list(run.comparer.running_losses(baseline))
    objective = on = run.objective
    ties = objective.losses(baseline, on.walked, on.walks) + objective.losses(baseline, on.detoured, on.detours)
    whole = objective.losses(baseline, on.compared, on.plan) + on.tie_weight * ties
    assert len(looks) == len(PARTS)
    assert torch.allclose(looks[-1], whole)
    assert not torch.allclose(looks[0], whole)


def test_a_look_that_is_given_up_costs_a_part_and_is_not_remembered():
    run = make_run()
    looks = run.comparer.running_losses(torch.full((1, 4), 0.3).double())
    next(looks)
    first = run.objective.evaluations
    assert run.comparer.best is None
    list(looks)
    assert run.comparer.best is not None
    assert run.objective.evaluations > 8 * first


@pytest.mark.slow
def test_fewer_rows_in_a_comparison_are_fewer_evaluations():
    x = torch.randn(256, 5, generator=generator()).double()
    model = mlp(5, 2)
    costs = [learn(model, x, steps=2, rows_per_comparison=2**exponent).evaluations for exponent in (9, 12)]
    assert 3 * costs[0] < costs[1]
    with pytest.raises(AbsentiaError, match="rows_per_comparison must be at least 256"):
        learn(model, x, rows_per_comparison=10)
