"""Order-wise values from drawn coalitions: their mean, convergence and errors, and walks by their definition."""

import itertools

import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Baseline, MaskedModel, order_marginals, order_shapley
from absentia.coalitions import enumerate_coalitions
from absentia.data import seeded
from absentia.solvers.evaluated_pairs import evaluate_pairs
from absentia.solvers.order_wise import Benefits, WalkPlan, order_shapley_of_pairs, orders_shown
from known_games import mlp

PLAYERS = 9
SAMPLES = 3 * torch.randn(2, PLAYERS, generator=torch.Generator().manual_seed(0)).double()
TABLE = ab.value_table(MaskedModel(mlp(PLAYERS, hidden=24), SAMPLES, absence=Baseline(0.1)))
EXACT = order_shapley(TABLE)
EXACT_STRENGTHS = order_marginals(TABLE)


def covered(runs, exact):
    """The share of values within two standard errors, of all runs."""
    inside = [(run.values - exact.values).abs() <= 2 * run.errors + 1e-9 for run in runs]
    return float(torch.stack(inside).double().mean())


def root_mean_square(runs, exact):
    return float(torch.stack([run.values - exact.values for run in runs]).square().mean().sqrt())


def test_sampled_order_wise_values_come_near_the_exact_ones_with_honest_errors():
    few = [order_shapley(TABLE, evaluations=100, seed=seed) for seed in range(3)]
    many = [order_shapley(TABLE, evaluations=300, seed=seed) for seed in range(3)]
    assert root_mean_square(many, EXACT) < 0.7 * root_mean_square(few, EXACT)
    assert root_mean_square(many, EXACT) < 0.15 * float(EXACT.values.std())
    assert covered(few + many, EXACT) > 0.88
    stated = torch.stack([run.errors for run in many]).square().mean().sqrt()
    assert stated < 3 * root_mean_square(many, EXACT)


def test_their_mean_is_the_shapley_value_of_the_same_process():
    by_order = order_shapley(TABLE, evaluations=120, seed=3)
    shapley = ab.shapley(TABLE, evaluations=120, method="process", seed=3)
    torch.testing.assert_close(by_order.mean().values, shapley.values, atol=1e-9, rtol=1e-9)
    assert by_order.mean().errors.isnan().all()
    torch.testing.assert_close(by_order.values.mean(1).sum(1), TABLE.values[:, -1] - TABLE.values[:, 0])


def test_single_coalitions_that_were_drawn_are_known():
    by_order = order_shapley(TABLE, orders=[0, PLAYERS - 1], evaluations=200)
    # All pairs of one player against the others are drawn, so what each adds to ∅ and to the others is known.
    torch.testing.assert_close(by_order.values, EXACT.values[:, [0, PLAYERS - 1]], atol=1e-4, rtol=1e-4)
    assert (by_order.errors < 0.01 * EXACT.values.std()).all()


def test_some_orders_are_those_of_all():
    every = order_shapley(TABLE, evaluations=120)
    some = order_shapley(TABLE, orders=[4, 1], evaluations=120)
    assert some.orders == (4, 1)
    torch.testing.assert_close(some.errors, every.at(4, 1).errors)
    apart = (some.values - every.at(4, 1).values).abs()
    assert (apart <= some.errors).all()  # only all orders together have a known mean


def test_drawn_pairs_can_be_used_again():
    values = evaluate_pairs(TABLE, 80, seeded(0))
    again = order_shapley_of_pairs(values, TABLE, 0)
    torch.testing.assert_close(again.values, order_shapley(TABLE, evaluations=162).values)
    assert again.evaluations == 2 * 162


def test_a_constant_game_has_no_order_wise_values():
    game = MaskedModel(lambda rows: 0 * rows.sum(1) + 3, torch.ones(1, 30), absence=0.0)
    by_order = order_shapley(game, evaluations=150)
    assert (by_order.values == 0).all()


def test_enough_evaluations_give_exact_values():
    assert torch.equal(order_shapley(TABLE, evaluations=2**PLAYERS).values, EXACT.values)
    assert torch.equal(order_marginals(TABLE, evaluations=2**PLAYERS).values, EXACT_STRENGTHS.values)


def test_sampled_strengths_are_unbiased_with_honest_errors():
    runs = [order_marginals(TABLE, evaluations=400, seed=seed) for seed in range(40)]
    assert covered(runs, EXACT_STRENGTHS) > 0.88
    mean = torch.stack([run.values for run in runs]).mean(0)
    deviation = torch.stack([run.values for run in runs]).std(0) / 40**0.5
    assert ((mean - EXACT_STRENGTHS.values).abs() <= 4.5 * deviation + 1e-9).all()
    torch.testing.assert_close(runs[0].values[:, [0, -1]], EXACT_STRENGTHS.values[:, [0, -1]])


def test_strengths_that_no_walk_saw_are_not_called_known():
    """Contexts in which a conjunction of four players is complete are rare at low orders."""
    coalitions = enumerate_coalitions(11).double()
    table = ab.ValueTable(2 * coalitions[:, :4].prod(1) + coalitions[:, 4:10].sum(1))
    exact = order_marginals(table).values
    unseen = 0
    for seed in range(5):
        run = order_marginals(table, evaluations=800, seed=seed)
        assert (run.values - exact)[run.errors == 0].abs().max() < 1e-9
        unseen += int(((run.values == 0) & (exact > 0)).sum())
        assert (run.values[:, :, 10] == 0).all()  # a player that never adds anything
        assert (run.errors[:, :, 10] == 0).all()
    assert unseen > 0


def test_walks_of_all_orders_would_give_the_exact_strengths(monkeypatch):
    """With every order drawn once, strengths by walks are their definition."""
    table = ab.ValueTable(torch.randn(16, generator=torch.Generator().manual_seed(0)).double())
    first = [(0, *rest) for rest in itertools.permutations((1, 2, 3))]  # others are rotations of these
    ranks = torch.tensor(first).argsort(1).double()  # the order that sorts them is the drawn one
    monkeypatch.setattr(torch, "rand", lambda *_, **__: ranks)
    plan = WalkPlan(4, (0, 1, 2, 3))
    strengths = plan.evaluate(table, 6, 0).strengths(plan.are_known)
    torch.testing.assert_close(strengths.values, order_marginals(table).values)


def test_strengths_of_some_orders_need_fewer_evaluations():
    rounds = 4
    some = order_marginals(TABLE, orders=[5, 2], evaluations=rounds * PLAYERS * 4 + 2)
    assert some.orders == (5, 2)
    assert some.evaluations == 2 * (rounds * PLAYERS * 4 + 2)
    with pytest.raises(AbsentiaError, match=r"evaluations must be at least 146 for 9 orders of 9 players\..*fewer"):
        order_marginals(TABLE, evaluations=100)


def test_errors_count_the_draws_of_a_random_absence():
    """One order and one player: the draws alone make a difference."""
    by_group = torch.tensor([1.0, 2.0, 3.0, 6.0]).double().view(1, 4, 1, 1, 1).expand(1, 4, 3, 1, 1)
    strengths = Benefits(torch.full((4,), 0.25).double(), by_group).strengths(are_known=[False] * by_group.shape[3])
    assert float(strengths.values) == 3
    # The error of a mean of four: their deviation over the square root of four.
    torch.testing.assert_close(strengths.errors.flatten(), by_group[0, :, 0, 0, 0].std().view(1) / 2)


def test_many_players_get_some_orders_with_the_ends():
    shown = orders_shown(500)
    assert (shown[0], shown[-1]) == (0, 499)
    assert len(set(shown)) == len(shown) == 16
    assert orders_shown(64) == tuple(range(64))


@pytest.mark.parametrize("compute", [order_shapley, order_marginals])
def test_orders_and_budgets_are_checked(compute):
    with pytest.raises(AbsentiaError, match="orders must lie between 0 and 8"):
        compute(TABLE, orders=[9], evaluations=200)
    with pytest.raises(AbsentiaError, match="evaluations must be at least"):
        compute(TABLE, evaluations=20)
