import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia import AbsentiaError, Players, from_numpy
from absentia.coalitions import enumerate_coalitions
from absentia.evaluation import Evaluator
from absentia.learning import LearningOptions, learn_baseline
from absentia.learning.close_calls import settle
from absentia.learning.paper_objective import PARTS, PaperObjective
from absentia.learning.penalties import Penalty
from absentia.learning.sample_draws import WeightedSamples, balanced_order, draw_samples, shares_of
from absentia.learning.search import Search
from absentia.learning.space import make_space
from absentia.learning.sweeps import SearchPlan
from absentia.runtime.limits import TimeLimit
from absentia.task import Task
from known_games import mlp
from small_learning import learn


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 3))
def test_a_balanced_order_holds_every_sample_once(rows, entries, seed):
    x = torch.randn(rows, entries, generator=seeded(seed))
    assert sorted(balanced_order(x, even(rows), seeded(seed)).tolist()) == list(range(rows))


def test_the_first_samples_of_a_balanced_order_have_nearly_the_mean_of_all():
    x = (torch.rand(500, 8, generator=seeded()) < 0.3).double()
    random = torch.randperm(500, generator=seeded(1))
    order = balanced_order(x, even(500), seeded(1))
    for first in (16, 64):
        off = [(x[rows[:first]].mean(0) - x.mean(0)).abs().max().item() for rows in (order, random)]
        assert off[0] < 0.5 * off[1]


def test_opposites_follow_each_other():
    half = (torch.rand(50, 9, generator=seeded()) < 0.5).double()
    order = balanced_order(torch.cat([half, 1 - half]), even(100), seeded(2))
    x = torch.cat([half, 1 - half])[order]
    assert torch.equal(x[0::2], 1 - x[1::2])


def test_weighted_samples_are_balanced_by_their_weights():
    x = torch.randn(400, 3, generator=seeded()).double()
    weights = torch.rand(400, generator=seeded(1)).double() + 0.1
    order = balanced_order(x, weights, seeded(2))[:100]
    mean = (weights[:, None] * x).sum(0) / weights.sum()
    found = (weights[order, None] * x[order]).sum(0) / weights[order].sum()
    plain = (weights[:100, None] * x[:100]).sum(0) / weights[:100].sum()
    assert (found - mean).abs().max() < 0.3 * (plain - mean).abs().max()


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 3))
def test_no_sample_is_chosen_twice_and_as_many_as_asked(samples, count, seed):
    shares = shares_of(torch.randn(samples, generator=seeded(seed)) ** 5)
    chosen = draw_samples(shares, count, seeded(seed))
    assert len(set(chosen.rows.tolist())) == len(chosen.rows) == min(count, samples)


def test_chosen_samples_estimate_the_mean_without_bias_and_more_closely_where_few_matter():
    outputs = torch.zeros(2000).double()
    outputs[:10] = torch.arange(1, 11).double()
    shares = shares_of(outputs)
    estimates, even_ones = [], []
    for seed in range(300):
        chosen = draw_samples(shares, 100, seeded(seed))
        estimates.append((chosen.weights * outputs[chosen.rows]).sum() / chosen.weights.sum())
        even_ones.append(outputs[torch.randperm(2000, generator=seeded(seed))[:100]].mean())
    estimates, even_ones = torch.stack(estimates), torch.stack(even_ones)
    assert abs(estimates.mean() - outputs.mean()) < 4 * estimates.std() / 300**0.5 + 1e-3 * outputs.mean()
    assert estimates.std() < 0.2 * even_ones.std()


@pytest.mark.parametrize("count", [50, 1800])
def test_drawn_samples_estimate_the_mean_without_bias_however_many_are_drawn(count):
    outputs = torch.rand(2000, generator=seeded()).double() ** 8
    drawn = [draw_samples(shares_of(outputs), count, seeded(seed)) for seed in range(200)]
    found = torch.stack([(one.weights * outputs[one.rows]).sum() / one.weights.sum() for one in drawn])
    assert abs(found.mean() - outputs.mean()) < 4 * found.std() / 200**0.5 + 1e-4


def test_weights_count_in_a_loss_and_its_gradient():
    objective = make_run().objective
    plan, baseline = objective.penalty.exact_plan(), torch.full((1, 4), 0.2).double()
    rows, weights = torch.tensor([3, 5]), torch.tensor([1.0, 3.0]).double()
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


def test_rare_samples_that_matter_are_learned_from():
    """Of 4,096 inputs one in 256 has all eight of the product's entries high: an even draw of 16 would miss them."""
    x = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * 12)
    evaluator = Evaluator(Task(lambda rows: rows[:, :8].prod(1), x))
    penalty = Penalty("marginal", 12, 12, per_sample=2**12)
    objective = PaperObjective(evaluator, penalty, torch.zeros(len(x), dtype=torch.int64), seed=0, rows=2**16)
    rows, weights = objective.compared
    rare = x[rows, :8].prod(1) == 1
    assert len(rows) == 16
    assert 6 <= int(rare.sum()) <= 10
    assert bool((weights[rare] < weights[~rare].min()).all())  # they are drawn too often, and weigh less


def test_close_calls_are_those_within_the_share_the_closest_first():
    run = make_run()
    space = run.space
    low, high = space.low[None], space.high[None]
    target = low + 0.01 * (high - low)

    def looks(baseline):
        yield 1 + ((baseline - target) / (high - low)).abs().sum(1)

    run.comparer.looks = looks
    run.sweeps.sweep_once(target, 0.015, torch.arange(4), wide=True)
    calls = run.state.close_calls
    run.state.close_calls = None
    assert len(calls) == 4  # the lower ends; the neighbours at 1.5 % do not count
    assert (calls.isnan().sum(1) == 3).all()
    apart = torch.where(calls.isnan(), 0.0, (calls - target) / (high - low)).abs().sum(1)
    assert torch.allclose(apart, torch.full((4,), 0.01).double())
    run.sweeps.sweep_once(target, 0.01, torch.arange(4), wide=False)
    assert run.state.close_calls is None


def test_close_calls_are_settled_on_all_samples():
    run = make_run(samples=64, rows=2**8)
    assert len(run.objective.compared.rows) < 64
    everyone, plan = alike(torch.arange(64)), run.objective.plan
    baseline = run.sweeps.sweep_while_it_helps(torch.zeros(1, 4).double())
    calls = run.state.close_calls
    assert len(calls)
    settled = settle(run.objective, baseline, calls)
    losses = [run.objective.losses(torch.where(one.isnan(), baseline, one), everyone, plan) for one in calls]
    before, after = (run.objective.losses(one, everyone, plan) for one in (baseline, settled))
    assert after <= min(before, *losses)


def rare_pattern(x):
    """Fall by 1 where all but the last are high and the last is not, which alone counts as much high or low."""
    return -0.1 * x[:, -1] + (x[:, 0] + x[:, 1]) ** 1.5 - x[:, :-1].prod(1) * (1 - x[:, -1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", ["shapley", "marginal", "interactions"])
@pytest.mark.parametrize(("players", "exact"), [(6, True), (10, False)])
def test_true_ties_go_to_the_value_that_brings_about_no_pattern_of_its_own(players, exact, loss, dtype):
    x = enumerate_coalitions(players).to(dtype)
    penalty = Penalty(loss, players, players // 2 + 1, per_sample=0)
    owner = torch.zeros(len(x), dtype=torch.int64)
    # A seed that draws the last player into one of the few sub-cubes.
    objective = PaperObjective(Evaluator(Task(rare_pattern, x)), penalty, owner, seed=1, rows=8 * len(x))
    low, call = torch.zeros(1, players).double(), torch.full((1, players), torch.nan).double()
    high = low.clone()
    high[0, -1] = call[0, -1] = 1.0
    assert penalty.exact is exact
    assert torch.equal(settle(objective, low, call), high)
    call[0, -1] = 0.0
    assert torch.equal(settle(objective, high, call), high)


def test_close_calls_of_categories_are_whole_rows():
    x = torch.eye(3).double().repeat(20, 1)
    space = make_space(x, Players.features(["a", "b", "c"], categorical=[[0, 1, 2]]), "range", None, None)
    run = sweeping(make_run(players=3).objective, space)
    run.comparer.looks = lambda _: [torch.ones(1).double()]
    run.sweeps.sweep_once(x[:1], 0.1, torch.arange(1), wide=True)
    assert {tuple(call.tolist()) for call in run.state.close_calls} == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}


def test_a_search_over_categories_alone_is_kept_in_a_checkpoint(tmp_path):
    x = torch.eye(3).double().repeat(20, 1)
    options = {"categorical": [[0, 1, 2]], "rows_per_comparison": 2**9, "steps": 2, "checkpoint": tmp_path / "kept"}
    first, again = (learn(mlp(3, 2), x, **options) for _ in range(2))
    assert torch.equal(first.values, again.values)
    swept = learn(mlp(3, 2), x, categorical=[[0, 1, 2]], polish=False, rows_per_comparison=2**9, steps=2)
    assert torch.equal(swept.values, first.values)  # categories are swept over in any case


@pytest.mark.slow
def test_without_polish_learning_costs_less_and_says_so():
    x = torch.randn(64, 4, generator=seeded()).double()
    whole, short = (
        learn(mlp(4, 2), x, steps=10, rows_per_comparison=2**9, polish=polish) for polish in (True, False)
    )
    assert 2 * short.evaluations < whole.evaluations
    assert short.loss >= whole.loss
    assert not short.record.converged
    assert short.record.stopped == "the steps are done; they were not polished"
    boxed = learn(mlp(4, 2), x[:8], gradient=False, polish=False, rows_per_comparison=2**8)
    assert boxed.record.converged  # without a gradient all coordinates are swept over


def even(samples):
    return torch.ones(samples).double()


def alike(rows):
    return WeightedSamples(rows, even(len(rows)))


def sweeping(objective, space):
    """Make a run that sweeps over all coordinates."""
    return Search(objective, space, SearchPlan(steps=0, rate=0.1, polish=True), TimeLimit())


def make_run(samples=64, players=4, rows=2**12):
    x = torch.randn(samples, players, generator=seeded()).double()
    evaluator = Evaluator(Task(mlp(players, 2), x))
    penalty = Penalty("interactions", players, players)
    objective = PaperObjective(evaluator, penalty, torch.zeros(samples, dtype=torch.int64), seed=0, rows=rows)
    space = make_space(x, evaluator.players, "range", None, None)
    return sweeping(objective, space)


def test_the_last_look_is_the_loss_on_all_samples():
    run = make_run()
    baseline = torch.full((1, 4), 0.3).double()
    looks = list(run.comparer.looks(baseline))
    objective = on = run.objective
    ties = objective.losses(baseline, on.walked, on.walks) + objective.losses(baseline, on.detoured, on.detours)
    whole = objective.losses(baseline, on.compared, on.plan) + on.tie_weight * ties
    assert len(looks) == len(PARTS)
    assert torch.allclose(looks[-1], whole)
    assert not torch.allclose(looks[0], whole)


def test_a_look_that_is_given_up_costs_a_part_and_is_not_remembered():
    run = make_run()
    looks = run.comparer.looks(torch.full((1, 4), 0.3).double())
    next(looks)
    first = run.objective.evaluations
    assert run.comparer.best is None
    list(looks)
    assert run.comparer.best is not None
    assert run.objective.evaluations > 8 * first


def test_kinks_are_found_closely():
    delta = torch.tensor([0.74, 0.68]).double()
    x = (torch.rand(256, 2, generator=seeded()) < 0.7).double()
    learned = learn(lambda rows: 5 * (rows - delta).prod(1), x, start=0.5, steps=12, samples="all")
    assert torch.allclose(learned.values, delta, atol=0.003)


@pytest.mark.slow
def test_fewer_rows_in_a_comparison_are_fewer_evaluations():
    x = torch.randn(256, 5, generator=seeded()).double()
    model = mlp(5, 2)
    costs = [learn(model, x, steps=2, rows_per_comparison=2**exponent).evaluations for exponent in (9, 12)]
    assert 3 * costs[0] < costs[1]
    with pytest.raises(AbsentiaError, match="rows_per_comparison must be at least 256"):
        learn(model, x, rows_per_comparison=10)


def test_the_size_of_a_cube_is_checked():
    x = torch.rand(8, 3, generator=seeded()).double()
    with pytest.raises(AbsentiaError, match=r"cube must be a number of players from 1 to 3\. Got 4 instead"):
        learn(lambda rows: rows.prod(1), x, cube=4)
    with pytest.raises(AbsentiaError, match="cube must be left out for other losses than interactions"):
        learn(lambda rows: rows.prod(1), x, loss="marginal", cube=2)


def test_samples_far_from_the_median_are_drawn_more_often():
    assert shares_of(torch.tensor([0.0, 0.0, 0.0, 4.0])).tolist() == [0.125, 0.125, 0.125, 0.625]


def test_every_other_sample_of_a_balanced_order_evens_out_the_one_before():
    rows = torch.tensor([[0.0], [1.0], [1.0], [0.0], [0.0], [1.0]])
    assert balanced_order(rows, torch.ones(6).double(), torch.Generator().manual_seed(0)).tolist() == [
        2,
        3,
        5,
        0,
        1,
        4,
    ]


def test_a_search_without_a_gradient_does_not_count_steps():
    calls = []

    def model(rows):
        calls.append(len(rows))
        if len(calls) == 60:
            raise KeyboardInterrupt
        return rows.prod(1)

    x = torch.randn(60, 4, generator=seeded()).double()
    found = learn_baseline(from_numpy(model), x, options=LearningOptions(rows_per_step=2**8))
    assert found.record.stopped == (
        "interrupted while values were searched one by one, because the model has no gradient; "
        "these are the best values so far"
    )
