import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import AbsentiaError, Baseline, MaskedModel, order_shapley
from absentia.coalitions import coalition_numbers, enumerate_coalitions
from absentia.evaluation import Evaluator
from absentia.learning.assessment import Assessment
from absentia.learning.order_fit import order_shapley_weights
from absentia.learning.paper_objective import PARTS, PaperObjective
from absentia.learning.penalties import Penalty, count_orders
from absentia.learning.sample_draws import WeightedSamples, balanced_order, draw_samples, shares_of
from absentia.task import Task
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
    exact = order_shapley(game, orders=range(8)).values[0]
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


def test_coalitions_are_exact_up_to_the_bounds_and_not_beyond():
    assert Penalty("shapley", 8, 8, per_sample=0).exact  # 2⁸ are few, whatever the budget
    assert not Penalty("shapley", 9, 9, per_sample=511).exact
    assert Penalty("shapley", 9, 9, per_sample=512).exact
    assert Penalty("marginal", 9, 4, per_sample=0).exact  # 1 + 9 + 36 + 84 + 126
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
    plan = Penalty("marginal", 40, 5).plan(3, evaluations, seeded())
    assert plan.coalitions.shape == (3, walks * 6, 40)


@pytest.mark.parametrize("loss", ["marginal", "interactions"])
def test_two_samples_share_their_coalitions_and_no_more_than_two(loss):
    coalitions = Penalty(loss, 30, 12).plan(5, 192, seeded()).coalitions
    assert len(coalitions) == 5
    assert torch.equal(coalitions[0], coalitions[1])
    assert torch.equal(coalitions[2], coalitions[3])
    assert not torch.equal(coalitions[1], coalitions[2])
    assert not torch.equal(coalitions[3], coalitions[4])


def test_walks_of_a_sample_are_weighed_alike():
    """By hand: two walks of one player each have benefits 1 and 3; Σᵢ E is the number of players times their mean."""
    penalty = Penalty("marginal", 4, 1)
    plan = penalty.walks(2, 2, seeded())
    values = torch.tensor([[0.0, 1.0, 5.0, 2.0], [1.0, 1.0, 1.0, 2.0]])
    assert plan.penalty(values).tolist() == [4 * 2.0, 4 * 0.5]


def cubes_of(players, orders, cubes, cube=None, samples=1):
    plan = Penalty("interactions", players, orders, cube=cube).subcubes(samples, cubes * 2 ** (cube or 6), seeded())
    return plan.coalitions.view(samples, cubes, -1, players)


def test_cubes_and_their_contexts_are_drawn_uniformly():
    players, orders, cubes = 9, 5, 6000
    found = cubes_of(players, orders, cubes, cube=2)[0]
    context, varying = found.all(1), found.any(1) & ~found.all(1)
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
        plan = Penalty("interactions", 20, 10).plan(2, evaluations, seeded())
        assert plan.coalitions.shape == (2, 64 * cubes, 20)


def test_cubes_hold_their_coalitions_in_counting_order():
    cube = cubes_of(12, 8, 1, cube=3)[0, 0]
    inside = (cube.any(0) & ~cube.all(0)).nonzero().flatten()
    assert {tuple(row) for row in cube[:, inside].tolist()} == {tuple(r) for r in enumerate_coalitions(3).tolist()}
    assert cube.sum(1).diff().tolist() == enumerate_coalitions(3).sum(1).diff().tolist()


def test_shapley_values_within_cubes_are_means_over_them_and_sums_over_components():
    penalty = Penalty("shapley", players=7, orders=5, cube=2)
    plan = penalty.subcubes(2, 3 * 4, seeded())
    values = torch.randn(2, 12, 2, generator=seeded(1)).double()
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


def weights_by_definition(coalitions, values, players, orders):
    """A quadratic by ridge regression, and differences of means of its residuals, as loops."""
    rows = [[int(present) for present in row] for row in coalitions.tolist()]
    pairs = [(i, j) for i in range(players) for j in range(i + 1, players)]
    design = torch.tensor([[1.0, *row, *(row[i] * row[j] for i, j in pairs)] for row in rows]).double()
    # Ridge regression is least squares with a row for each penalised coefficient.
    extra = torch.eye(design.shape[1]).double()[1:] * (1e-3 * len(rows)) ** 0.5
    both, zeros = torch.cat([design, extra]), torch.zeros(len(extra)).double()
    fit = torch.linalg.lstsq(both, torch.cat([values, zeros])[:, None]).solution[:, 0]
    residual = (values - design @ fit).tolist()
    found = []
    for order in range(orders):
        for player in range(players):
            linked = sum(float(fit[1 + players + k]) for k, pair in enumerate(pairs) if player in pair)
            value = float(fit[1 + player]) + (order / (players - 1) * linked if players > 1 else 0.0)
            having = [r for r, row in zip(residual, rows, strict=True) if row[player] and sum(row) == order + 1]
            lacking = [r for r, row in zip(residual, rows, strict=True) if not row[player] and sum(row) == order]
            if having and lacking:
                value += sum(having) / len(having) - sum(lacking) / len(lacking)
            found.append(value)
    return found


@pytest.mark.parametrize(
    ("players", "orders", "evaluations"), [(1, 1, 5), (5, 3, 14), (5, 5, 32), (6, 2, 9), (8, 4, 60)]
)
def test_drawn_order_wise_values_are_a_fit_and_the_means_of_its_residuals(players, orders, evaluations):
    coalitions, weights = order_shapley_weights(players, orders, evaluations, seeded())
    values = torch.randn(len(coalitions), generator=seeded(1)).double()
    expected = weights_by_definition(coalitions, values, players, orders)
    assert weights.shape == (orders * players, len(coalitions))
    assert (weights @ values).tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_drawn_penalty_is_the_strength_of_the_order_wise_values():
    penalty = Penalty("shapley", 20, 3)
    plan = penalty.plan(4, 300, seeded())
    coalitions, weights = order_shapley_weights(20, 3, 300, seeded())
    assert torch.equal(plan.coalitions, coalitions)
    values = torch.randn(2, len(coalitions), 2, generator=seeded(1))
    expected = [sum((weights @ one[:, part].double()).abs().sum().item() for part in range(2)) for one in values]
    assert plan.penalty(values).tolist() == pytest.approx(expected, rel=1e-4)
    assert plan.of(slice(0, 1)) is plan  # the same coalitions serve all samples


def test_small_sizes_are_listed_and_the_others_drawn_equally_often():
    coalitions, _ = order_shapley_weights(20, 6, 640, seeded())
    assert len(torch.unique(coalitions, dim=0)) == len(coalitions) <= 640
    counts = Counter(coalitions.sum(1).tolist())
    assert (counts[0], counts[1]) == (1, 20)
    # The rest is shared by the sizes 2 … 6. Draws of pairs repeat, and what they leave goes to the others.
    assert set(counts) == set(range(7))
    assert 80 < counts[2] <= (640 - 21) // 5
    assert all((640 - 21) // 5 <= counts[size] <= 150 for size in range(4, 7))
    assert sum(counts.values()) >= 620


def test_every_size_is_drawn_however_few_the_evaluations():
    coalitions, _ = order_shapley_weights(9, 4, 1, seeded(2))
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


def test_shares_of_samples_are_half_even_and_half_by_distance_from_the_median():
    outputs = torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 7.0], [1.0, 1.0]])
    # Medians 1 and 1: distances 1, 0, 1 + 6 and 0.
    expected = [(1 / 4 + part / 8) / 2 for part in (1, 0, 7, 0)]
    assert shares_of(outputs).tolist() == pytest.approx(expected)
    for same in (torch.full((5,), 3.0), torch.tensor([0.0, 1.0, torch.inf, 2.0, 3.0])):
        assert shares_of(same).tolist() == pytest.approx([0.2] * 5)


def test_samples_are_drawn_as_often_as_their_shares_and_weighed_by_the_inverse():
    shares = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05]).double()
    chance = torch.tensor(
        [1.0, 0.9, 0.45, 0.3, 0.15]
    ).double()  # three times the shares; what exceeds 1 is shared out
    chance[1:] *= 2 / chance[1:].sum()
    chance = torch.cat([torch.ones(2).double(), chance[2:] / chance[2:].sum()])
    counts = torch.zeros(5)
    for seed in range(900):
        rows, weights = draw_samples(shares, 3, seeded(seed))
        counts[rows] += 1
        inverse = 1 / chance[rows]
        assert torch.allclose(weights, inverse / inverse.mean(), rtol=1e-6)
    assert torch.allclose(counts / 900, chance.float(), atol=0.06)
    assert len(draw_samples(shares, 9, seeded()).rows) == 5


@pytest.mark.parametrize("entries", [1, 4])
def test_every_second_sample_of_a_balanced_order_is_the_one_that_balances_best(entries):
    x = torch.randn(30, entries, 1, generator=seeded()).double()
    x = torch.cat([x, torch.full((30, 1, 1), 5.0).double()], dim=1)  # an entry that never changes
    weights = torch.rand(30, generator=seeded(1)).double() + 0.2
    order = balanced_order(x, weights, seeded(2)).tolist()
    rows = x[:, :entries, 0]
    mean = (weights[:, None] * rows).sum(0) / weights.sum()
    spread = ((weights[:, None] * (rows - mean) ** 2).sum(0) / weights.sum()).sqrt()
    steps = weights[:, None] * (rows - mean) / spread
    waiting = torch.randperm(30, generator=seeded(2)).tolist()
    for place, chosen in enumerate(order):
        lengths = {one: float((steps[order[:place]].sum(0) + steps[one]).norm()) for one in waiting}
        assert chosen == (min(lengths, key=lengths.get) if place % 2 else waiting[0])
        waiting.remove(chosen)


def test_wide_samples_are_balanced_by_some_of_their_entries():
    half = torch.randn(20, 2500, generator=seeded())
    x = torch.cat([half, -half])
    order = balanced_order(x, torch.ones(40).double(), seeded(1))
    assert torch.equal(x[order[::2]], -x[order[1::2]])


def test_the_better_of_two_is_chosen_for_each_owner():
    first = Assessment(
        torch.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.0, 5, 2])
    )
    second = Assessment(
        torch.tensor([[5.0, 6.0], [7.0, 8.0], [9.0, 9.0]]), torch.tensor([0.4, 0.5, 0.6]), torch.tensor([2.0, 4, 2])
    )
    assert first.or_better(None) is first
    best = first.or_better(second)
    assert best.baseline.tolist() == [[1.0, 2.0], [7.0, 8.0], [9.0, 9.0]]  # a tie goes to the other one
    assert best.penalties.tolist() == pytest.approx([0.1, 0.5, 0.6])
    assert best.losses.tolist() == [1.0, 4.0, 2.0]


def objective_of(samples=64, players=4, rows=2**12, penalty=None, owner=None, seed=0):
    x = torch.randn(samples, players, generator=seeded()).double()
    owner = torch.zeros(samples, dtype=torch.int64) if owner is None else owner
    return PaperObjective(
        Evaluator(Task(mlp(players), x)), penalty or Penalty("interactions", players, players), owner, seed, rows
    )


def penalty_of(objective, row, baseline, plan):
    """The penalty of one sample, by a game of its own."""
    evaluator = objective.evaluator
    game = MaskedModel(evaluator.model, evaluator.x[row][None], absence=Baseline(baseline))
    return plan.penalty(game(plan.coalitions if plan.coalitions.ndim == 2 else plan.coalitions[0])).item()


@pytest.mark.parametrize(("rows", "compared"), [(2**12, 64), (2**10, 64), (2**9, 32), (2**7, 8), (1, 8)])
def test_as_many_samples_are_compared_as_the_rows_allow_and_eight_at_least(rows, compared):
    objective = objective_of(rows=rows)
    assert len(objective.compared.rows) == compared
    assert objective.parts == (PARTS if compared >= 32 else (1.0,))
    assert objective.evaluations == 64  # the output of each sample, by which they are drawn


@pytest.mark.parametrize(
    ("loss", "rows", "drawn"),
    [
        *(("shapley", 2**10, 1024), ("shapley", 64 * 1500, 1500), ("shapley", 2**20, 2048)),
        *(("marginal", 2**8, 64), ("marginal", 64 * 500, 500), ("marginal", 2**20, 1024)),
        *(("interactions", 2**8, 64), ("interactions", 64 * 512, 512), ("interactions", 2**20, 1024)),
    ],
)
def test_coalitions_of_a_comparison_lie_between_the_least_and_the_most(loss, rows, drawn):
    objective = objective_of(players=14, rows=rows, penalty=Penalty(loss, 14, 7))
    count = objective.plan.coalitions.shape[-2]
    assert count == {"marginal": drawn // 8 * 8, "interactions": drawn // 64 * 64}.get(loss, count)
    assert 0.9 * drawn <= count <= drawn
    assert len(objective.compared.rows) == min(64, max(8, rows // count))


@pytest.mark.parametrize(
    ("rows", "walkers", "walks", "detours"), [(2**12, 64, 1, 64), (2**14, 64, 6, 64), (2**8, 6, 1, 10), (8, 1, 1, 1)]
)
def test_an_eighth_of_the_rows_goes_to_walks_and_a_quarter_to_detours(rows, walkers, walks, detours):
    objective = objective_of(rows=rows)
    assert len(objective.walked.rows) == walkers == min(64, max(1, rows // 8 // 5))
    assert objective.walks.coalitions.shape == (walkers, walks * 5, 4)
    assert len(objective.detoured.rows) == detours == min(64, max(1, rows // 4 // 6))


def test_a_walk_costs_a_row_more_than_there_are_players_and_a_detour_two():
    objective = objective_of(players=5, rows=2**9)
    assert len(objective.walked.rows) == 2**9 // 8 // 6
    assert len(objective.detoured.rows) == 2**9 // 4 // 7


def test_what_an_objective_tells():
    objective = objective_of(penalty=Penalty("marginal", 4, 2))
    assert objective.record == {"exact": True, "orders": 2}
    assert objective.rows_per_step == 0
    assert objective.tie_weight == 0.01
    assert objective_of().tie_weight == 0.01 / 4
    assert objective.walks.coalitions.sum(-1).max() == 4  # ties are decided on all orders


def test_samples_are_compared_by_their_outputs_and_no_more_than_thousands():
    objective = objective_of(samples=5000, players=2, rows=2**17)
    assert len(objective.compared.rows) == 4096
    outputs = objective.evaluator.model(objective.evaluator.x)[:, 0]
    assert torch.allclose(objective.shares, shares_of(outputs.detach()))


def test_each_owner_has_the_mean_of_its_own_samples():
    owner = torch.tensor([0, 2, 0, 2, 2, 0])
    objective = objective_of(samples=6, players=3, rows=2**6, owner=owner)
    assert objective.owners == 3
    assert objective.compared.rows.tolist() == list(range(6))
    assert objective.compared.weights.tolist() == [1.0] * 6
    assert objective.parts == (1.0,)
    assert objective.shares.tolist() == pytest.approx([1 / 6] * 6)
    assert objective.evaluations == 0
    baselines = torch.randn(3, 3, generator=seeded(1)).double()
    plan = objective.penalty.exact_plan()
    found = objective.losses(baselines, objective.compared, plan)
    assert objective.evaluations == 6 * 8
    for number in (0, 2):
        penalties = [penalty_of(objective, row, baselines[number], plan) for row in range(6) if owner[row] == number]
        assert found[number].item() == pytest.approx(sum(penalties) / 3)
    assert found[1] == 0  # without samples of its own
    slope, loss = objective.gradient(baselines, 1, 1)
    assert slope[1].abs().max() == 0
    assert slope[[0, 2]].abs().min() > 0
    assert objective.evaluations == 6 * 8 + 6 * (8 + objective._draw_walks(6, seeded()).coalitions.shape[1] + 5)
    assert loss > float(found.mean())


def test_many_samples_are_evaluated_in_blocks_with_the_same_result():
    penalty = Penalty("interactions", 10, 10)
    objective = objective_of(samples=80, players=10, rows=2**17, penalty=penalty)
    everyone = WeightedSamples(torch.arange(80), torch.rand(80, generator=seeded(1)).double())
    leaf = torch.zeros(1, 10).double().requires_grad_()
    found = objective.losses(leaf, everyone, objective.plan)  # 80 · 1024 rows
    parts, slope = [], torch.zeros(1, 10).double()
    for row in range(80):
        one = torch.zeros(1, 10).double().requires_grad_()
        parts.append(
            objective.losses(one, WeightedSamples(torch.tensor([row]), torch.ones(1).double()), objective.plan)
        )
        slope += one.grad * everyone.weights[row] / everyone.weights.sum()
    assert found.item() == pytest.approx(float((torch.cat(parts) * everyone.weights).sum() / everyone.weights.sum()))
    assert torch.allclose(leaf.grad, slope)


def test_every_look_is_the_loss_on_the_first_part_of_each_kind():
    objective = objective_of(penalty=Penalty("marginal", 4, 2))
    baseline = torch.full((1, 4), 0.3).double()

    def mean_of_first(chosen, plan, share):
        first = slice(0, max(1, round(share * len(chosen.rows))))
        return objective.losses(baseline, WeightedSamples(chosen.rows[first], chosen.weights[first]), plan.of(first))

    looks = list(objective.looks(baseline))
    assert len(looks) == 3
    for share, look in zip((1 / 16, 1 / 4, 1), looks, strict=True):
        penalty = mean_of_first(objective.compared, objective.plan, share)
        ties = mean_of_first(objective.walked, objective.walks, share)
        ties = ties + mean_of_first(objective.detoured, objective.detours, share)
        assert torch.allclose(look.penalties, penalty)
        assert torch.allclose(look.losses, penalty + 0.01 * ties)
        assert torch.equal(look.baseline, baseline)


def test_looks_at_fewer_samples_than_parts_take_one_at_least():
    objective = objective_of(rows=2**9)  # 32 compared, 12 walked
    assert objective.parts == PARTS
    before = objective.evaluations
    looks = objective.looks(torch.zeros(1, 4).double())
    next(looks)
    assert objective.evaluations - before == 2 * 16 + 1 * 5 + 1 * 6
    list(looks)
    assert (
        objective.evaluations - before == 32 * 16 + len(objective.walked.rows) * 5 + len(objective.detoured.rows) * 6
    )


@pytest.mark.parametrize(
    ("loss", "players"), [("interactions", 4), ("shapley", 4), ("marginal", 14), ("interactions", 14)]
)
def test_the_gradient_is_that_of_the_loss_beside_it(loss, players):
    objective = objective_of(samples=12, players=players, rows=2**11, penalty=Penalty(loss, players, players // 2))
    baseline = torch.randn(1, players, generator=seeded(3)).double()
    slope, loss = objective.gradient(baseline, 1, 2)
    for entry in range(0, players, 3):
        step = torch.zeros(1, players).double()
        step[0, entry] = 1e-6
        ends = [objective.gradient(baseline + sign * step, 1, 2)[1] for sign in (1, -1)]
        assert slope[0, entry].item() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-6)
    assert not baseline.requires_grad
    assert objective.gradient(baseline, 1, 2)[1] == loss
    assert objective.gradient(baseline, 1, 3)[1] != loss
    assert objective.gradient(baseline, 2, 2)[1] != loss


def test_without_ties_the_loss_of_a_step_on_all_samples_is_the_mean_penalty():
    objective = objective_of(samples=9, rows=2**12)
    objective.tie_weight = 0.0
    baseline = torch.full((1, 4), 0.4).double()
    slope, loss = objective.gradient(baseline, 1, 1)
    penalties = [penalty_of(objective, row, baseline[0], objective.plan) for row in range(9)]
    assert loss == pytest.approx(sum(penalties) / 9)
    leaf = baseline.clone().requires_grad_()
    objective.losses(leaf, WeightedSamples(torch.arange(9), torch.ones(9).double()), objective.plan)
    assert torch.allclose(slope, leaf.grad)


@pytest.mark.parametrize(
    ("players", "rows", "batch", "coalitions"),
    [(4, 2**11, 32, 16), (4, 2**7, 4, 16), (4, 2**20, 64, 16), (14, 2**14, 8, 512), (14, 1, 4, 512)],
)
def test_a_step_takes_a_quarter_of_the_rows_and_four_samples_at_least(players, rows, batch, coalitions):
    objective = objective_of(players=players, rows=rows, penalty=Penalty("interactions", players, players))
    before = objective.evaluations
    objective.gradient(torch.zeros(1, players).double(), 1, 1)
    walks = max(1, objective.walk_count // batch) * (players + 1)
    assert objective.evaluations - before == batch * (coalitions + walks + players + 2)
