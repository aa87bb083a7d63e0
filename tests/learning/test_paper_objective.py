"""The paper's objective: looks, gradients and how many rows they take."""

import pytest
import torch

from absentia import Baseline, MaskedModel
from absentia.evaluation import Evaluator
from absentia.learning.paper_objective import PARTS, PaperObjective
from absentia.learning.penalties import Penalty
from absentia.learning.sample_draws import WeightedSamples, shares_of
from absentia.task import Task
from known_games import mlp
from seeded_draws import generator
from small_searches import alike, make_run


def test_weights_count_in_a_loss_and_its_gradient():
    objective = make_run().objective
    plan = objective.penalty.exact_plan()
    baseline = torch.full((1, 4), 0.2).double()
    rows = torch.tensor([3, 5])
    weights = torch.tensor([1.0, 3.0]).double()
    alone = [objective.losses(baseline, alike(rows[i : i + 1]), plan) for i in range(2)]
    assert torch.allclose(
        objective.losses(baseline, WeightedSamples(rows, weights), plan), (alone[0] + 3 * alone[1]) / 4
    )
    slopes = []
    for chosen in (alike(rows[:1]), alike(rows[1:]), WeightedSamples(rows, weights)):
        leaf = baseline.clone().requires_grad_()
        found = objective.losses(leaf, chosen, plan)
        slopes.append(leaf.grad)
    assert torch.allclose(found, (alone[0] + 3 * alone[1]) / 4)
    assert torch.allclose(slopes[2], (slopes[0] + 3 * slopes[1]) / 4)


def objective_of(samples=64, players=4, rows=2**12, penalty=None, owner=None, seed=0):
    x = torch.randn(samples, players, generator=generator()).double()
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
    assert count == {"marginal": drawn // 9 * 9, "interactions": drawn // 64 * 64}.get(loss, count)
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
    baselines = torch.randn(3, 3, generator=generator(1)).double()
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
    assert objective.evaluations == 6 * 8 + 6 * (8 + objective._draw_walks(6, generator()).coalitions.shape[1] + 5)
    assert loss > float(found.mean())


def test_many_samples_are_evaluated_in_blocks_with_the_same_result():
    penalty = Penalty("interactions", 10, 10)
    objective = objective_of(samples=80, players=10, rows=2**17, penalty=penalty)
    everyone = WeightedSamples(torch.arange(80), torch.rand(80, generator=generator(1)).double())
    leaf = torch.zeros(1, 10).double().requires_grad_()
    found = objective.losses(leaf, everyone, objective.plan)  # 80 · 1024 rows
    parts = []
    slope = torch.zeros(1, 10).double()
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

    looks = list(objective.running_assessments(baseline))
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
    looks = objective.running_assessments(torch.zeros(1, 4).double())
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
    baseline = torch.randn(1, players, generator=generator(3)).double()
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


def test_an_objective_without_ties_evaluates_its_penalty_alone():
    x = torch.randn(9, 4, generator=generator()).double()
    owner = torch.zeros(9, dtype=torch.int64)
    evaluator = Evaluator(Task(mlp(4), x))
    plain = PaperObjective(evaluator, Penalty("shapley", 4, 2), owner, 0, 2**12, ties=False)
    with_ties = PaperObjective(evaluator, Penalty("shapley", 4, 2), owner, 0, 2**12)
    assert not plain.decides_ties
    assert with_ties.decides_ties
    assert plain.settings != with_ties.settings  # a checkpoint of one is not resumed by the other
    baseline = torch.full((1, 4), 0.4).double()
    before = plain.evaluations
    look = list(plain.running_assessments(baseline))[-1]
    assert torch.equal(look.losses, look.penalties)
    assert torch.allclose(look.penalties, list(with_ties.running_assessments(baseline))[-1].penalties)
    coalitions = plain.penalty.exact_plan().rows_per_sample
    assert plain.evaluations - before == 9 * coalitions
    _, loss = plain.gradient(baseline, 1, 1)
    assert plain.evaluations - before == 2 * 9 * coalitions
    penalties = [penalty_of(plain, row, baseline[0], plain.plan) for row in range(9)]
    assert loss == pytest.approx(sum(penalties) / 9)


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
