"""Budgets fit the time that they were chosen for, and say how they were chosen."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.budgets import MINUTE, Budget, BudgetReason, Work, choose_budget, smaller_budget
from absentia.evaluation.rounding import MOST_MEASURED
from absentia.solvers.paired_draws import MIN_COALITIONS_PER_PLAYER
from known_games import mlp

SHARE_OF_LIMIT = 0.8


def budget_of(players, seconds_per_row, *, draws=1, samples=1, **more):
    return choose_budget(Work(players, draws, samples, seconds_per_row), **more)


def largest_power_that_fits(work, seconds):
    """Look for it one by one."""
    power = 1
    while 2 * power * work.samples * work.draws * work.seconds_per_row <= seconds:
        power *= 2
    return power


def test_all_coalitions_are_evaluated_where_they_fit_a_minute():
    fits = 0.9 * MINUTE / 2**14
    assert budget_of(14, fits) == Budget(Work(14, 1, 1, fits), BudgetReason.ALL)
    assert budget_of(14, 1.2 * MINUTE / 2**14).evaluations == 2**13
    assert budget_of(24, 1e-6).evaluations is None


def test_draws_and_samples_count():
    fits = 0.9 * MINUTE / 2**14
    two_samples = budget_of(14, fits, samples=2)
    assert (two_samples.reason, two_samples.evaluations) == (BudgetReason.MINUTE, 2**13)
    two_draws = budget_of(14, fits, draws=2)
    assert (two_draws.evaluations, two_draws.coalitions) == (2**14, 2**13)
    assert two_draws.seconds == two_samples.seconds == pytest.approx(0.9 * MINUTE)


@given(
    players=st.integers(5, 24),
    draws=st.integers(1, 20),
    samples=st.integers(1, 200),
    seconds_per_row=st.floats(1e-7, 10),
    seconds=st.none() | st.floats(0.01, 1e5),
)
def test_a_budget_by_time_is_the_largest_power_of_two_that_fits(players, draws, samples, seconds_per_row, seconds):
    work = Work(players, draws, samples, seconds_per_row)
    budget = choose_budget(work, seconds=seconds)
    time = MINUTE if seconds is None else SHARE_OF_LIMIT * seconds
    seconds_of_all = (2**players + MOST_MEASURED) * draws * samples * seconds_per_row
    if seconds_of_all <= time:
        assert budget.reason is BudgetReason.ALL
        return
    fewest = MIN_COALITIONS_PER_PLAYER * players + 2
    most = max(work.usual_coalitions, 2**13) if seconds is None else work.most_coalitions
    expected = max(fewest, min(largest_power_that_fits(work, time), largest_power_below(most)))
    if expected >= 2**players:
        assert budget.evaluations is None
        return
    assert budget.coalitions == expected
    assert budget.evaluations == expected * draws
    assert budget.reason is (BudgetReason.MINUTE if seconds is None else BudgetReason.LIMIT)
    assert budget.seconds <= time or expected == fewest
    assert choose_budget(work, evaluations=budget.evaluations).coalitions == expected


def largest_power_below(number):
    return 2 ** math.floor(math.log2(number))


def test_players_beyond_the_bound_have_the_usual_number_of_coalitions_if_that_fits_a_minute():
    for players, coalitions in [(25, 4096), (255, 4096), (784, 16 * 784), (5000, 80_000)]:
        budget = budget_of(players, 0.9 * MINUTE / coalitions, draws=3, samples=1, max_players=24)
        assert budget.evaluations < 3 * coalitions  # three draws take three minutes
        budget = budget_of(players, 0.3 * MINUTE / coalitions, draws=3)
        assert (budget.reason, budget.evaluations) == (BudgetReason.PLAYERS, 3 * coalitions)
        assert not budget.how_to_repeat
    slow = budget_of(30, 2 * MINUTE / 4096)
    assert (slow.reason, slow.evaluations) == (BudgetReason.MINUTE, 2048)
    assert slow.why == "30 players are too many for all 2^30 coalitions"
    assert "evaluations=2048) repeats this" in slow.how_to_repeat


def test_more_time_gives_more_coalitions_up_to_a_bound():
    assert budget_of(30, 1e-3, seconds=20).evaluations == 2**13
    assert budget_of(30, 1e-3, seconds=40).evaluations == 2**14
    assert budget_of(30, 1e-6, seconds=1e6).evaluations == 2**16
    assert budget_of(30, 1e-3, seconds=40, spent=20).evaluations == 2**13


def test_without_a_limit_everything_fits():
    assert budget_of(20, 1.0, seconds=math.inf).evaluations is None
    assert budget_of(30, 1.0, seconds=math.inf).evaluations == 4096


def test_the_users_number_decides():
    for seconds_per_row in (0.0, 1.0):
        budget = budget_of(18, seconds_per_row, evaluations=5000)
        assert (budget.reason, budget.evaluations) == (BudgetReason.EVALUATIONS, 5000)
        assert not budget.how_to_repeat
        assert budget_of(18, seconds_per_row, evaluations=2**18).evaluations is None
        assert budget_of(18, seconds_per_row, draws=2, evaluations=2**18).coalitions == 2**17


def test_a_lower_bound_on_players_draws_unless_all_coalitions_are_no_more():
    assert budget_of(14, 0.0, max_players=13).reason is BudgetReason.PLAYERS
    assert budget_of(5, 0.0, max_players=4).evaluations is None


def test_few_players_have_all_coalitions_because_drawn_ones_would_be_as_many():
    assert budget_of(4, 100.0).evaluations is None
    assert budget_of(5, 100.0).evaluations == 22


def test_a_budget_after_one_that_took_too_long_fits_the_rest():
    budget = budget_of(18, 0.01, seconds=100)
    smaller = smaller_budget(budget, 10.0, seconds_per_row=0.05)
    assert smaller.coalitions == 128
    assert smaller.seconds <= 10
    assert smaller.reason is BudgetReason.LIMIT
    assert smaller.why == "To end within 100 s"
    assert smaller_budget(budget, 10.0, seconds_per_row=0.0).coalitions == 512


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        (budget_of(18, 1e-5), ""),
        (
            budget_of(12, 0.005),
            "explaining takes about 21 s by all 4,096 coalitions.",
        ),
        (
            budget_of(18, 0.005),
            "explaining takes about 41 s by 8,192 coalitions, with errors usually below 0.3 % of the values' range; "
            "all 262,144 would take about 22 min.",
        ),
        (
            budget_of(18, 0.005, evaluations=2**18),
            "explaining takes about 22 min by all 262,144 coalitions; about 41 s by 8,192, with errors usually "
            "below 0.3 % of the values' range (evaluations=8192).",
        ),
        (
            budget_of(18, 0.005, draws=2, evaluations=40_000),
            "explaining takes about 3 min by 20,000 coalitions, with errors usually below 0.2 % of the values' "
            "range, besides those of the absence's draws; about 41 s by 4,096, with errors usually below 0.5 % of "
            "the values' range, besides those of the absence's draws (evaluations=8192).",
        ),
        (
            budget_of(10, 0.005, samples=10),
            "explaining takes about 52 s by all 1,024 coalitions of each of 10 samples.",
        ),
        (
            budget_of(64, 0.005, samples=2),
            "explaining takes about 41 s by 4,096 coalitions of each of 2 samples, with errors usually below 2 % of "
            "the values' range.",
        ),
    ],
)
def test_long_work_is_announced_in_plain_words(budget, sentence):
    assert budget.announcement == sentence


@pytest.mark.slow
@pytest.mark.parametrize("per_player", [10, 40, 400])
@pytest.mark.parametrize("method", ["process", "leverage"])
def test_announced_errors_are_usually_kept(per_player, method):
    players = 16
    coalitions = per_player * players
    announced = budget_of(players, 1.0).work.usual_error(coalitions)
    kept = []
    for seed in range(5):
        x = 2 * torch.randn(1, players, generator=torch.Generator().manual_seed(seed)).double()
        game = ab.MaskedModel(mlp(players, hidden=24), x, absence=0.0)
        found = ab.shapley(game, evaluations=coalitions, method=method, seed=seed)
        size = float(found.values.max() - found.values.min())
        kept.append(float(found.errors.max()) <= announced * size)
    assert sum(kept) >= 4


def test_budgets_leave_time_for_fits():
    def fit(coalitions):
        return coalitions / 100

    work = Work(18, 1, 1, seconds_per_row=0.005, fit=fit)
    budget = choose_budget(work)
    assert budget.evaluations == 2**11  # 10 s and a fit of 20 s; twice as many would need 61 s
    assert work.seconds_with_fits(budget.coalitions) <= MINUTE


def test_fits_are_left_out_where_they_would_take_most_of_the_time():
    work = Work(30, 1, 1, seconds_per_row=1e-4, fit=lambda coalitions: 20.0 + coalitions)
    assert choose_budget(work, seconds=30.0).coalitions == largest_power_below(work.most_coalitions)
