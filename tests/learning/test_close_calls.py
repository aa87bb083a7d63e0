"""Values that are nearly as good as the best are compared on all samples."""

import pytest
import torch

from absentia import Players
from absentia.coalitions import enumerate_coalitions
from absentia.evaluation import Evaluator
from absentia.learning.close_calls import settle
from absentia.learning.paper_objective import PaperObjective
from absentia.learning.penalties import Penalty
from absentia.learning.space import make_space
from absentia.task import Task
from small_searches import alike, make_run, sweeping


def test_close_calls_are_those_within_the_share_the_closest_first():
    run = make_run()
    space = run.space
    low = space.low[None]
    high = space.high[None]
    target = low + 0.01 * (high - low)

    def running_losses(baseline):
        yield 1 + ((baseline - target) / (high - low)).abs().sum(1)

    run.comparer.running_losses = running_losses
    run.sweeps.sweep_once(target, 0.015, torch.arange(4), wide=True)
    calls = run.state.close_calls
    run.state.close_calls = None
    assert len(calls) == 4  # the lower ends; the neighbours at 1.5 % do not count
    assert (calls.isnan().sum(1) == 3).all()
    apart = torch.where(calls.isnan(), 0.0, (calls - target) / (high - low)).abs().sum(1)
    assert torch.allclose(apart, torch.full((4,), 0.01).double())
    run.sweeps.sweep_once(target, 0.01, torch.arange(4), wide=False)
    assert run.state.close_calls is None


@pytest.mark.slow
def test_close_calls_are_settled_on_all_samples():
    run = make_run(samples=64, rows=2**8)
    assert len(run.objective.compared.rows) < 64
    everyone = alike(torch.arange(64))
    plan = run.objective.plan
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
    low = torch.zeros(1, players).double()
    call = torch.full((1, players), torch.nan).double()
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
    run.comparer.running_losses = lambda _: [torch.ones(1).double()]
    run.sweeps.sweep_once(x[:1], 0.1, torch.arange(1), wide=True)
    assert {tuple(call.tolist()) for call in run.state.close_calls} == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}
