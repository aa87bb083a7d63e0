import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import AbsentiaError, Baseline, MaskedModel, order_shapley
from absentia.coalitions import coalition_numbers, enumerate_coalitions
from absentia.learning.penalties import Penalty, count_orders, order_shapley_weights
from known_games import harsanyi_by_definition, marginal_benefits_by_order, mlp


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def oracle(loss, orders, values):
    """The penalties written out, for one list of 2ⁿ values."""
    if loss == "interactions":
        effects = harsanyi_by_definition(values)
        return sum(abs(u) for k, u in enumerate(effects) if 1 <= k.bit_count() <= orders)
    transform = abs if loss == "marginal" else lambda benefit: benefit
    by_order = marginal_benefits_by_order(values, transform)
    return sum(abs(value) for row in by_order[:orders] for value in row)


@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
@pytest.mark.parametrize("orders", [1, 3, 5])
def test_exact_penalties_are_their_definitions(loss, orders):
    table = torch.randn(3, 32, generator=seeded()).double()
    plan = Penalty(loss, players=5, orders=orders).plan(3, 1, seeded())
    assert plan.coalitions.sum(1).max() == orders  # nothing larger is evaluated
    found = plan.penalty(table[:, coalition_numbers(plan.coalitions)])
    assert found.tolist() == pytest.approx([oracle(loss, orders, row) for row in table.tolist()])


@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
def test_vectors_count_by_the_sum_of_their_components(loss):
    tables = torch.randn(2, 16, 3, generator=seeded()).double()
    plan = Penalty(loss, players=4, orders=2).exact_plan()
    together = plan.penalty(tables[:, coalition_numbers(plan.coalitions)])
    parts = [plan.penalty(tables[:, coalition_numbers(plan.coalitions), k]) for k in range(3)]
    assert torch.allclose(together, sum(parts))


def walks_of(players, length, walks):
    coalitions = Penalty("marginal", players, length).walks(1, walks, seeded()).coalitions
    return coalitions.view(walks, length + 1, players)


@given(st.integers(1, 8), st.data())
def test_walks_add_one_player_a_step(players, data):
    length = data.draw(st.integers(1, players))
    coalitions = walks_of(players, length, walks=5)
    assert not coalitions[:, 0].any()
    assert coalitions.sum(-1).tolist() == [list(range(length + 1))] * 5
    assert not (coalitions[:, :-1] & ~coalitions[:, 1:]).any()


def test_walks_visit_contexts_uniformly():
    coalitions = walks_of(4, 3, walks=12_000)
    added = (coalitions[:, 3] & ~coalitions[:, 2]).int().argmax(-1)
    pairs = Counter(zip(added.tolist(), coalition_numbers(coalitions[:, 2]).tolist(), strict=True))
    assert len(pairs) == 4 * math.comb(3, 2)
    expected = 12_000 / 12
    assert sum((count - expected) ** 2 / expected for count in pairs.values()) < 31.3  # 0.999 quantile, 11 degrees


def test_walks_are_unbiased_and_converge():
    table = torch.randn(1, 2**6, generator=seeded()).double()
    penalty = Penalty("marginal", players=6, orders=3)
    exact = oracle("marginal", 3, table[0].tolist())
    errors = []
    for walks in (50, 5000):
        estimates = []
        for seed in range(10):
            plan = penalty.walks(1, walks, seeded(seed))
            estimates.append(plan.penalty(table[:, coalition_numbers(plan.coalitions[0])]).item())
        errors.append(abs(sum(estimates) / 10 - exact) / exact)
    assert errors[1] < 0.01
    assert errors[1] < errors[0] + 0.01


def test_detours_are_counted_by_hand():
    # Three players, all-or-nothing: from 0 to 0 and on to 1 is no longer than the straight way. Then player 0 alone
    # changes the value.
    plan = Penalty("marginal", players=3, orders=3).detours()
    numbers = coalition_numbers(plan.coalitions)
    product = torch.tensor([[0.0, 0, 0, 0, 0, 0, 0, 1]])
    there_and_back = torch.tensor([[0.0, 0, 0, 0, 0, 0, 2, 0]])  # v(N∖0) = 2, which only player 0's stand-in does
    assert plan.penalty(product[:, numbers]).tolist() == [0.0]
    assert plan.penalty(there_and_back[:, numbers]).tolist() == [4.0]
    assert plan.penalty(torch.stack([product, there_and_back], -1)[:, numbers]).tolist() == [4.0]


def test_walks_of_vectors_are_the_sum_of_their_components():
    tables = torch.randn(1, 2**5, 2, generator=seeded()).double()
    plan = Penalty("marginal", 5, 3).walks(1, 20, seeded())
    numbers = coalition_numbers(plan.coalitions[0])
    parts = [plan.penalty(tables[:, numbers, k]) for k in range(2)]
    assert torch.allclose(plan.penalty(tables[:, numbers]), sum(parts))


def test_a_subcube_of_all_players_has_the_shapley_values_of_the_whole_game():
    penalty = Penalty("shapley", players=4, orders=4, cube=4)
    table = torch.randn(3, 2**4, 2, generator=seeded()).double()
    whole, cube = penalty.exact_plan(), penalty.subcubes(1, 16, seeded())
    values = [table[:, coalition_numbers(coalitions)] for coalitions in (whole.coalitions, cube.coalitions[0])]
    assert torch.allclose(whole.penalty(values[0]), cube.penalty(values[1]))


def test_subcubes_are_the_effects_of_the_game_over_their_context():
    players = 14
    penalty = Penalty("interactions", players, orders=players)
    assert not penalty.exact
    plan = penalty.plan(2, 256, seeded())
    assert plan.coalitions.shape == (2, 256, players)
    table = torch.randn(2, 2**players, generator=seeded(1)).double()
    values = torch.stack([table[s, coalition_numbers(plan.coalitions[s])] for s in range(2)])
    found = plan.penalty(values)
    for sample in range(2):
        cubes = values[sample].view(4, 64)
        strength = [sum(abs(u) for u in harsanyi_by_definition(cube.tolist())[1:]) for cube in cubes]
        assert found[sample].item() == pytest.approx(sum(strength) / 4)
        for cube in plan.coalitions[sample].view(4, 64, players):
            varying = cube.any(0) & ~cube.all(0)
            assert int(varying.sum()) == 6
            assert len(torch.unique(cube, dim=0)) == 64


def test_cubes_of_one_player_are_marginal_benefits_in_expectation():
    players = 5
    table = torch.randn(1, 2**players, generator=seeded(1)).double()
    plan = Penalty("interactions", players, players, cube=1).plan(1, 2 * 20_000, seeded())
    found = plan.penalty(table[:, coalition_numbers(plan.coalitions[0])])
    # All orders alike, of one player drawn; the whole penalty adds up n players and n orders.
    whole = Penalty("marginal", players, players).exact_plan().penalty(table)
    assert found.item() == pytest.approx(whole.item() / players**2, rel=0.02)


@pytest.mark.parametrize(("cube", "orders"), [(None, 5), (2, 3), (4, 5)])
def test_the_scale_is_that_of_a_linear_game_beside_its_marginal_benefits(cube, orders):
    players, slopes = 5, torch.tensor([1.0, -2.0, 0.5, 3.0, -1.0]).double()
    table = (enumerate_coalitions(players).double() @ slopes)[None]
    penalty = Penalty("interactions", players, orders, cube=cube)
    plan = penalty.plan(1, 2**16, seeded())
    coalitions = plan.coalitions if plan.coalitions.ndim == 2 else plan.coalitions[0]
    found = plan.penalty(table[:, coalition_numbers(coalitions)])
    marginal = Penalty("marginal", players, players).exact_plan().penalty(table)
    assert found.item() == pytest.approx(penalty.scale * marginal.item(), rel=0.02)


def test_a_cube_is_never_exact():
    assert Penalty("interactions", 5, 5).exact
    assert not Penalty("interactions", 5, 5, cube=3).exact


def test_subcubes_stay_within_the_orders():
    plan = Penalty("interactions", 20, orders=8).plan(1, 64 * 50, seeded())
    assert plan.coalitions.sum(-1).max() <= 8


def test_drawn_order_wise_values_are_exact_for_pairs_and_close_for_more():
    players, orders = 16, 4
    coalitions, weights = order_shapley_weights(players, orders, 600, seeded())
    generator = seeded(2)
    alone, pairs = (
        torch.randn(players, generator=generator).double(),
        torch.randn(players, players, generator=generator).double(),
    )
    pairs = pairs + pairs.T
    pairs.fill_diagonal_(0)

    def game(rows):
        return rows @ alone + ((rows @ pairs) * rows).sum(1) / 2

    found = (weights @ game(coalitions.double())).view(orders, players)
    expected = torch.stack([alone + m / (players - 1) * pairs.sum(1) for m in range(orders)])
    assert torch.allclose(found, expected, atol=0.2)
    assert (found - expected).norm() / expected.norm() < 0.02


def test_drawn_order_wise_values_come_close_on_a_network():
    game = MaskedModel(mlp(16, hidden=24), torch.randn(1, 16).double(), absence=Baseline(0.0))
    exact = order_shapley(game, orders=range(8))[0]
    coalitions, weights = order_shapley_weights(16, 8, 800, seeded())
    found = (weights @ game(coalitions)[0]).view(8, 16)
    assert (found - exact).norm() / exact.norm() < 0.1


def test_a_plan_can_be_cut_to_some_samples():
    plan = Penalty("marginal", 20, 5).plan(4, 60, seeded())
    part = plan.of(torch.tensor([2, 0]))
    assert torch.equal(part.coalitions, plan.coalitions[[2, 0]])


@pytest.mark.parametrize(("orders", "expected"), [(0.5, 6), (1.0, 11), (3, 3), (0.01, 1)])
def test_orders_are_a_share_or_a_number(orders, expected):
    assert count_orders(orders, 11) == expected


@pytest.mark.parametrize("orders", [0, 12, 1.5, -0.5])
def test_impossible_orders_are_refused(orders):
    with pytest.raises(AbsentiaError, match="orders must be a share between 0 and 1, or a number from 1 to 11"):
        count_orders(orders, 11)


def test_few_coalitions_are_evaluated_all_and_many_are_not():
    assert Penalty("interactions", 12, 12).exact
    assert not Penalty("interactions", 13, 13).exact
    assert Penalty("shapley", 12, 6).exact
    assert not Penalty("shapley", 13, 7).exact
    assert not Penalty("shapley", 12, 6, per_sample=2**10).exact
    assert Penalty("shapley", 8, 8, per_sample=2).exact


def test_a_low_order_of_many_players_is_drawn_without_a_table_of_all_coalitions():
    assert Penalty("shapley", 16, 2).exact
    for loss in ("shapley", "marginal", "interactions"):
        penalty = Penalty(loss, 40, 2)
        assert not penalty.exact
        plan = penalty.plan(2, 100, seeded())
        assert plan.coalitions.shape[-1] == 40
        assert plan.coalitions.sum(-1).max() == 2


def test_all_orders_of_many_players_can_be_fitted():
    coalitions, weights = order_shapley_weights(15, 15, 400, seeded())
    slopes = torch.arange(1.0, 16.0).double()
    found = (weights @ (coalitions.double() @ slopes)).view(15, 15)
    assert (found - slopes).norm() / slopes.expand(15, 15).norm() < 0.02
