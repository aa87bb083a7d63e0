"""Penalties against their definitions, exact and drawn."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import AbsentiaError, Baseline, MaskedModel, order_shapley
from absentia.coalitions import coalition_numbers, enumerate_coalitions
from absentia.learning.order_fit import order_shapley_weights
from absentia.learning.penalties import Penalty, count_orders
from known_games import harsanyi_by_definition, marginal_benefits_by_order, mlp
from seeded_draws import generator


def oracle(loss, orders, values):
    """The penalties written out, for one list of 2ⁿ values: orders of benefits begin at 0 and end with λ."""
    if loss == "interactions":
        effects = harsanyi_by_definition(values)
        return sum(abs(u) for k, u in enumerate(effects) if 1 <= k.bit_count() <= orders)
    transform = abs if loss == "marginal" else lambda benefit: benefit
    by_order = marginal_benefits_by_order(values, transform)
    return sum(abs(value) for row in by_order[: orders + 1] for value in row)


@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
@pytest.mark.parametrize("orders", [1, 3, 5])
def test_exact_penalties_are_their_definitions(loss, orders):
    table = torch.randn(3, 32, generator=generator()).double()
    plan = Penalty(loss, players=5, orders=orders).plan(3, 1, generator())
    larger = 0 if loss == "interactions" else 1  # a context of λ players has one more added
    assert plan.coalitions.sum(1).max() == min(5, orders + larger)  # nothing larger is evaluated
    found = plan.penalty(table[:, coalition_numbers(plan.coalitions)])
    assert found.tolist() == pytest.approx([oracle(loss, orders, row) for row in table.tolist()])


@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
def test_vectors_count_by_the_sum_of_their_components(loss):
    tables = torch.randn(2, 16, 3, generator=generator()).double()
    plan = Penalty(loss, players=4, orders=2).exact_plan()
    together = plan.penalty(tables[:, coalition_numbers(plan.coalitions)])
    parts = [plan.penalty(tables[:, coalition_numbers(plan.coalitions), k]) for k in range(3)]
    assert torch.allclose(together, sum(parts))


@pytest.mark.parametrize("loss", ["shapley", "marginal"])
def test_the_highest_order_is_penalised_too(loss):
    """By hand: v is 1 with all three players and 0 else, so that only order 2 has benefits: 1 for each player."""
    values = torch.tensor([[0.0, 0, 0, 0, 0, 0, 0, 1]])
    for orders, expected in ((1, 0.0), (2, 3.0), (3, 3.0)):
        plan = Penalty(loss, players=3, orders=orders).exact_plan()
        assert plan.penalty(values[:, coalition_numbers(plan.coalitions)]).tolist() == [expected]


def test_the_largest_coalition_is_a_context_of_the_highest_order_and_one_more_player():
    assert [Penalty("shapley", 5, orders).largest for orders in (1, 3, 4, 5)] == [2, 4, 5, 5]
    assert [Penalty("interactions", 5, orders).largest for orders in (1, 3, 4, 5)] == [1, 3, 4, 5]


def walks_of(players, length, walks):
    coalitions = Penalty("marginal", players, length).walks(1, walks, generator()).coalitions
    return coalitions.view(walks, min(length + 1, players) + 1, players)


@given(st.integers(1, 8), st.data())
def test_walks_add_one_player_a_step(players, data):
    length = data.draw(st.integers(1, players))
    coalitions = walks_of(players, length, walks=5)
    steps = min(length + 1, players)
    assert not coalitions[:, 0].any()
    assert coalitions.sum(-1).tolist() == [list(range(steps + 1))] * 5
    assert not (coalitions[:, :-1] & ~coalitions[:, 1:]).any()


def test_walks_visit_contexts_uniformly():
    coalitions = walks_of(4, 2, walks=12_000)
    added = (coalitions[:, 3] & ~coalitions[:, 2]).int().argmax(-1)
    pairs = Counter(zip(added.tolist(), coalition_numbers(coalitions[:, 2]).tolist(), strict=True))
    assert len(pairs) == 4 * math.comb(3, 2)
    expected = 12_000 / 12
    assert sum((count - expected) ** 2 / expected for count in pairs.values()) < 31.3  # 0.999 quantile, 11 degrees


def test_walks_are_unbiased_and_converge():
    table = torch.randn(1, 2**6, generator=generator()).double()
    penalty = Penalty("marginal", players=6, orders=3)
    exact = oracle("marginal", 3, table[0].tolist())
    errors = []
    for walks in (50, 5000):
        estimates = []
        for seed in range(10):
            plan = penalty.walks(1, walks, generator(seed))
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
    tables = torch.randn(1, 2**5, 2, generator=generator()).double()
    plan = Penalty("marginal", 5, 3).walks(1, 20, generator())
    numbers = coalition_numbers(plan.coalitions[0])
    parts = [plan.penalty(tables[:, numbers, k]) for k in range(2)]
    assert torch.allclose(plan.penalty(tables[:, numbers]), sum(parts))


def test_a_subcube_of_all_players_has_the_shapley_values_of_the_whole_game():
    penalty = Penalty("shapley", players=4, orders=4, cube=4)
    table = torch.randn(3, 2**4, 2, generator=generator()).double()
    whole = penalty.exact_plan()
    cube = penalty.subcubes(1, 16, generator())
    values = [table[:, coalition_numbers(coalitions)] for coalitions in (whole.coalitions, cube.coalitions[0])]
    assert torch.allclose(whole.penalty(values[0]), cube.penalty(values[1]))


def test_subcubes_are_the_effects_of_the_game_over_their_context():
    players = 14
    penalty = Penalty("interactions", players, orders=players)
    assert not penalty.exact
    plan = penalty.plan(2, 256, generator())
    assert plan.coalitions.shape == (2, 256, players)
    table = torch.randn(2, 2**players, generator=generator(1)).double()
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
    table = torch.randn(1, 2**players, generator=generator(1)).double()
    plan = Penalty("interactions", players, players, cube=1).plan(1, 2 * 20_000, generator())
    found = plan.penalty(table[:, coalition_numbers(plan.coalitions[0])])
    # All orders alike, of one player drawn; the whole penalty adds up n players and n orders.
    whole = Penalty("marginal", players, players).exact_plan().penalty(table)
    assert found.item() == pytest.approx(whole.item() / players**2, rel=0.02)


@pytest.mark.parametrize(("cube", "orders"), [(None, 5), (2, 3), (4, 5)])
def test_the_scale_is_that_of_a_linear_game_beside_its_marginal_benefits(cube, orders):
    players = 5
    slopes = torch.tensor([1.0, -2.0, 0.5, 3.0, -1.0]).double()
    table = (enumerate_coalitions(players).double() @ slopes)[None]
    penalty = Penalty("interactions", players, orders, cube=cube)
    plan = penalty.plan(1, 2**16, generator())
    coalitions = plan.coalitions if plan.coalitions.ndim == 2 else plan.coalitions[0]
    found = plan.penalty(table[:, coalition_numbers(coalitions)])
    marginal = Penalty("marginal", players, players).exact_plan().penalty(table)
    assert found.item() == pytest.approx(penalty.scale * marginal.item(), rel=0.02)


def test_a_cube_is_never_exact():
    assert Penalty("interactions", 5, 5).exact
    assert not Penalty("interactions", 5, 5, cube=3).exact


def test_subcubes_stay_within_the_orders():
    plan = Penalty("interactions", 20, orders=8).plan(1, 64 * 50, generator())
    assert plan.coalitions.sum(-1).max() <= 8


def test_drawn_order_wise_values_are_exact_for_pairs_and_close_for_more():
    players, orders = 16, 4
    coalitions, weights = order_shapley_weights(players, orders, 600, generator())
    of_the_game = generator(2)
    alone = torch.randn(players, generator=of_the_game).double()
    pairs = torch.randn(players, players, generator=of_the_game).double()
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
    exact = order_shapley(game, orders=range(8)).values[0]
    coalitions, weights = order_shapley_weights(16, 8, 800, generator())
    found = (weights @ game(coalitions)[0]).view(8, 16)
    assert (found - exact).norm() / exact.norm() < 0.1


def test_a_plan_can_be_cut_to_some_samples():
    plan = Penalty("marginal", 20, 5).plan(4, 60, generator())
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
        plan = penalty.plan(2, 100, generator())
        assert plan.coalitions.shape[-1] == 40
        assert plan.coalitions.sum(-1).max() == penalty.largest


def test_all_orders_of_many_players_can_be_fitted():
    coalitions, weights = order_shapley_weights(15, 15, 400, generator())
    slopes = torch.arange(1.0, 16.0).double()
    found = (weights @ (coalitions.double() @ slopes)).view(15, 15)
    assert (found - slopes).norm() / slopes.expand(15, 15).norm() < 0.02


def test_coalitions_are_exact_up_to_the_bounds_and_not_beyond():
    assert Penalty("shapley", 8, 8, per_sample=0).exact  # 2⁸ are few, whatever the budget
    assert not Penalty("shapley", 9, 9, per_sample=511).exact
    assert Penalty("shapley", 9, 9, per_sample=512).exact
    assert Penalty("marginal", 9, 3, per_sample=0).exact  # 1 + 9 + 36 + 84 + 126
    assert not Penalty("marginal", 9, 4, per_sample=0).exact
    assert Penalty("marginal", 16, 2).exact
    assert not Penalty("marginal", 17, 2).exact  # its table would have 2¹⁷ values
    assert Penalty("marginal", 17, 2, per_sample=2**17).exact
    assert Penalty("shapley", 5, 5, cube=3).exact  # cubes are for interactions
    assert Penalty("shapley", 5, 5).per_sample == 4096


def test_scales_of_losses():
    assert Penalty("shapley", 8, 4).scale == Penalty("marginal", 30, 4).scale == 1.0
    assert Penalty("interactions", 8, 4).scale == 1 / 8
    assert Penalty("interactions", 20, 10).scale == pytest.approx(6 / 20 / 20)
    assert Penalty("interactions", 20, 4).scale == pytest.approx(4 / 20 / 20)
    assert Penalty("interactions", 20, 10, cube=3).scale == pytest.approx(3 / 20 / 20)


@pytest.mark.parametrize(("evaluations", "walks"), [(1, 1), (5, 1), (6, 1), (11, 1), (12, 2), (60, 10)])
def test_walks_cost_no_more_than_asked_but_for_the_first(evaluations, walks):
    plan = Penalty("marginal", 40, 4).plan(3, evaluations, generator())
    assert plan.coalitions.shape == (3, walks * 6, 40)


@pytest.mark.parametrize("loss", ["marginal", "interactions"])
def test_two_samples_share_their_coalitions_and_no_more_than_two(loss):
    coalitions = Penalty(loss, 30, 12).plan(5, 192, generator()).coalitions
    assert len(coalitions) == 5
    assert torch.equal(coalitions[0], coalitions[1])
    assert torch.equal(coalitions[2], coalitions[3])
    assert not torch.equal(coalitions[1], coalitions[2])
    assert not torch.equal(coalitions[3], coalitions[4])


def test_walks_of_a_sample_are_weighed_alike():
    """By hand: two walks have benefits 1 and 0, and 3 and 0; Σᵢ E is the number of players times their mean."""
    penalty = Penalty("marginal", 4, 1)
    plan = penalty.walks(2, 2, generator())
    values = torch.tensor([[0.0, 1.0, 1.0, 5.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0, 2.0, 3.0]])
    assert plan.penalty(values).tolist() == [4 * 2.0, 4 * 1.0]


def cubes_of(players, orders, cubes, cube=None, samples=1):
    penalty = Penalty("interactions", players, orders, cube=cube)
    plan = penalty.subcubes(samples, cubes * 2 ** (cube or 6), generator())
    return plan.coalitions.view(samples, cubes, -1, players)


def test_cubes_and_their_contexts_are_drawn_uniformly():
    players, orders, cubes = 9, 5, 6000
    found = cubes_of(players, orders, cubes, cube=2)[0]
    context = found.all(1)
    varying = found.any(1) & ~found.all(1)
    assert (varying.sum(1) == 2).all()
    sizes = Counter(context.sum(1).tolist())
    assert set(sizes) == {0, 1, 2, 3}  # up to λ less the players of a cube
    assert sum((count - 1500) ** 2 / 1500 for count in sizes.values()) < 16.3  # the 0.999 quantile, 3 degrees
    pairs = Counter(coalition_numbers(varying).tolist())
    assert len(pairs) == 36
    expected = cubes / 36
    assert sum((count - expected) ** 2 / expected for count in pairs.values()) < 66.6  # 35 degrees
    present = context.double().mean(0)
    assert torch.allclose(present, torch.full_like(present, 1.5 / 9), atol=0.02)


def test_cubes_are_as_many_as_the_evaluations_allow():
    for evaluations, cubes in ((1, 1), (64, 1), (127, 1), (128, 2)):
        plan = Penalty("interactions", 20, 10).plan(2, evaluations, generator())
        assert plan.coalitions.shape == (2, 64 * cubes, 20)


def test_cubes_hold_their_coalitions_in_counting_order():
    cube = cubes_of(12, 8, 1, cube=3)[0, 0]
    inside = (cube.any(0) & ~cube.all(0)).nonzero().flatten()
    assert {tuple(row) for row in cube[:, inside].tolist()} == {tuple(r) for r in enumerate_coalitions(3).tolist()}
    assert cube.sum(1).diff().tolist() == enumerate_coalitions(3).sum(1).diff().tolist()


def test_shapley_values_within_cubes_are_means_over_them_and_sums_over_components():
    penalty = Penalty("shapley", players=7, orders=4, cube=2)
    plan = penalty.subcubes(2, 3 * 4, generator())
    values = torch.randn(2, 12, 2, generator=generator(1)).double()
    expected = [
        sum(oracle("shapley", 2, cube[:, part].tolist()) for cube in sample.view(3, 4, 2) for part in range(2)) / 3
        for sample in values
    ]
    assert plan.penalty(values).tolist() == pytest.approx(expected)


def test_detours_of_several_samples_are_each_their_own():
    plan = Penalty("marginal", players=2, orders=2).detours()
    assert plan.coalitions.int().tolist() == [[0, 0], [1, 1], [0, 1], [1, 0]]
    values = torch.tensor([[0.0, 1.0, 3.0, -1.0], [0.0, 4.0, 1.0, 2.0], [5.0, 1.0, 6.0, 1.0]])
    # |3 − 0| + |1 − 3| − |1 − 0| and |−1 − 0| + |1 + 1| − |1 − 0|; all between; |6 − 5| + |1 − 6| − |1 − 5|.
    assert plan.penalty(values).tolist() == [4.0 + 2.0, 0.0, 2.0]


def test_a_drawn_penalty_is_the_strength_of_the_order_wise_values():
    penalty = Penalty("shapley", 20, 3)
    plan = penalty.plan(4, 300, generator())
    coalitions, weights = order_shapley_weights(20, 4, 300, generator())  # the orders 0 … 3
    assert torch.equal(plan.coalitions, coalitions)
    values = torch.randn(2, len(coalitions), 2, generator=generator(1))
    expected = [sum((weights @ one[:, part].double()).abs().sum().item() for part in range(2)) for one in values]
    assert plan.penalty(values).tolist() == pytest.approx(expected, rel=1e-4)
    assert plan.of(slice(0, 1)) is plan  # the same coalitions serve all samples


def test_small_sizes_are_listed_and_the_others_drawn_equally_often():
    coalitions, _ = order_shapley_weights(20, 6, 640, generator())
    assert len(torch.unique(coalitions, dim=0)) == len(coalitions) <= 640
    counts = Counter(coalitions.sum(1).tolist())
    assert (counts[0], counts[1]) == (1, 20)
    # The rest is shared by the sizes 2 … 6. Draws of pairs repeat, and what they leave goes to the others.
    assert set(counts) == set(range(7))
    assert 80 < counts[2] <= (640 - 21) // 5
    assert all((640 - 21) // 5 <= counts[size] <= 150 for size in range(4, 7))
    assert sum(counts.values()) >= 620


def test_every_size_is_drawn_however_few_the_evaluations():
    coalitions, _ = order_shapley_weights(9, 4, 1, generator(2))
    counts = Counter(coalitions.sum(1).tolist())
    assert counts[0] == 1
    assert all(1 <= counts[size] <= 2 for size in range(1, 5))
    assert set(counts) == set(range(5))


@pytest.mark.parametrize(
    ("orders", "players", "expected"), [(1, 11, 1), (2.0, 11, 2), (11, 11, 11), (0.5, 4, 2), (1, 1, 1)]
)
def test_a_whole_number_of_orders_is_no_share(orders, players, expected):
    found = count_orders(orders, players)
    assert found == expected
    assert isinstance(found, int)


def test_no_orders_are_refused():
    for orders in (0.0, 12.0):
        with pytest.raises(AbsentiaError, match=rf"^orders must .* from 1 to 11\. Got {orders} instead\.$"):
            count_orders(orders, 11)
