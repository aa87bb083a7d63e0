import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import AbsentiaError, Baseline, MaskedModel, learn_baseline
from absentia.learning.checkpoint import Checkpoint
from absentia.learning.objective import Objective
from absentia.learning.penalties import Penalty
from absentia.learning.run import PARTS, TIE_WEIGHT, Run
from absentia.learning.samples import balanced_order
from absentia.learning.space import make_space
from known_games import mlp


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 3))
def test_a_balanced_order_holds_every_sample_once(rows, entries, seed):
    x = torch.randn(rows, entries, generator=seeded(seed))
    assert sorted(balanced_order(x, seeded(seed)).tolist()) == list(range(rows))


def test_the_first_samples_of_a_balanced_order_have_nearly_the_mean_of_all():
    x = (torch.rand(500, 8, generator=seeded()) < 0.3).double()
    random = torch.randperm(500, generator=seeded(1))
    order = balanced_order(x, seeded(1))
    for first in (16, 64):
        off = [(x[rows[:first]].mean(0) - x.mean(0)).abs().max().item() for rows in (order, random)]
        assert off[0] < 0.5 * off[1]


def test_opposites_follow_each_other():
    half = (torch.rand(50, 9, generator=seeded()) < 0.5).double()
    order = balanced_order(torch.cat([half, 1 - half]), seeded(2))
    x = torch.cat([half, 1 - half])[order]
    assert torch.equal(x[0::2], 1 - x[1::2])


def make_run(samples=64, players=4, evaluations=2**12):
    model, x = mlp(players, 2), torch.randn(samples, players, generator=seeded()).double()
    game = MaskedModel(model, x, absence=Baseline(0.0))
    penalty = Penalty("interactions", players, players)
    objective = Objective(game, penalty, torch.zeros(samples, dtype=torch.int64))
    space = make_space(x, game.players, "range", None, None, ())
    return Run(objective, space, 0, 0.1, 0, Checkpoint.open(None, ""), evaluations)


def test_the_last_look_is_the_loss_on_all_samples():
    run = make_run()
    baseline = torch.full((1, 4), 0.3).double()
    looks = list(run.looks(baseline))
    objective = run.objective
    ties = objective.losses(baseline, run.walked, run.walks) + objective.losses(baseline, run.detoured, run.detours)
    whole = objective.losses(baseline, run.compared, run.plan) + TIE_WEIGHT * ties
    assert len(looks) == len(PARTS)
    assert torch.allclose(looks[-1], whole)
    assert not torch.allclose(looks[0], whole)


def test_a_look_that_is_given_up_costs_a_part_and_is_not_remembered():
    run = make_run()
    looks = run.looks(torch.full((1, 4), 0.3).double())
    next(looks)
    first = run.objective.evaluations
    assert run.best is None
    list(looks)
    assert run.best is not None
    assert run.objective.evaluations > 8 * first


def test_kinks_are_found_closely():
    delta = torch.tensor([0.74, 0.68]).double()
    x = (torch.rand(256, 2, generator=seeded()) < 0.7).double()
    learned = learn_baseline(lambda rows: 5 * (rows - delta).prod(1), x, start=0.5, steps=12, samples=None)
    assert torch.allclose(learned.values, delta, atol=0.003)


def test_fewer_evaluations_are_spent_where_told():
    x = torch.randn(256, 5, generator=seeded()).double()
    model = mlp(5, 2)
    costs = [learn_baseline(model, x, steps=2, evaluations=2**exponent).evaluations for exponent in (9, 13)]
    assert 3 * costs[0] < costs[1]
    with pytest.raises(AbsentiaError, match="evaluations must be at least 256"):
        learn_baseline(model, x, evaluations=10)
