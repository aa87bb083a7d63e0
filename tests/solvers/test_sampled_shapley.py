"""Sampled Shapley values by every method: exactness, convergence, honest errors, tolerances, and going on."""

import itertools

import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Baseline, Marginal, MaskedModel, ValueTable, shapley
from absentia.coalitions import enumerate_coalitions
from absentia.cube.likelihood import STAGES
from absentia.data import seeded
from absentia.solvers import evaluated_pairs, sampled_shapley
from absentia.solvers.evaluated_pairs import evaluate_pairs
from absentia.solvers.grouped_draws import error_of_draws
from absentia.solvers.paired_draws import draw_strata
from absentia.solvers.shapley_methods import METHODS, OfPairs, regression_shapley
from known_games import mlp

PLAYERS = 10
SAMPLES = 3 * torch.randn(2, PLAYERS, generator=torch.Generator().manual_seed(0)).double()
TABLE = ab.value_table(MaskedModel(mlp(PLAYERS, hidden=24), SAMPLES, absence=Baseline(0.1)))
EXACT = shapley(TABLE)


def root_mean_square(values):
    return float(torch.stack(list(values)).square().mean().sqrt())


@pytest.mark.parametrize("method", METHODS)
def test_values_add_up_and_come_near_the_exact_ones(method):
    few = [shapley(TABLE, evaluations=60, method=method, seed=seed) for seed in range(6)]
    many = [shapley(TABLE, evaluations=480, method=method, seed=seed) for seed in range(6)]
    differences = TABLE.values[:, -1] - TABLE.values[:, 0]
    for found in few + many:
        torch.testing.assert_close(found.values.sum(1), differences)
        assert found.method == method
    errors = [root_mean_square(found.values - EXACT.values for found in runs) for runs in (few, many)]
    assert errors[1] < 0.6 * errors[0]
    assert errors[1] < 0.15 * float(EXACT.values.std())


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_95_percent_contain_the_values_about_that_often(method):
    runs = [shapley(TABLE, evaluations=150, method=method, seed=seed) for seed in range(60)]
    covered = torch.stack([(run.values - EXACT.values).abs() <= 1.96 * run.errors for run in runs])
    assert 0.88 < float(covered.double().mean()) < 0.995


@pytest.mark.parametrize("other", ["leverage", "antithetic", "permutation"])
def test_the_process_has_smaller_errors_than_other_methods(other):
    errors = []
    for method in ("process", other):
        runs = [shapley(TABLE, evaluations=200, method=method, seed=seed) for seed in range(5)]
        errors.append(root_mean_square(run.values - EXACT.values for run in runs))
    assert errors[0] < 0.75 * errors[1]


@pytest.mark.parametrize("method", ["antithetic", "permutation"])
def test_the_mean_over_many_seeds_is_the_shapley_value(method):
    runs = [shapley(TABLE, evaluations=40, method=method, seed=seed).values for seed in range(200)]
    mean = torch.stack(runs).mean(0)
    deviation = torch.stack(runs).std(0) / 200**0.5
    assert ((mean - EXACT.values).abs() < 4.5 * deviation).all()


@pytest.mark.parametrize("method", ["antithetic", "permutation"])
def test_all_orders_together_would_give_the_exact_values(method, monkeypatch):
    """With every order drawn once, values by orders are the definition of the Shapley value."""
    from absentia.solvers import permutations

    table = ValueTable(torch.randn(16, generator=torch.Generator().manual_seed(0)).double())
    orders = list(itertools.permutations(range(4)))
    if method == "antithetic":
        orders = [order for forward in orders if forward < forward[::-1] for order in (forward, forward[::-1])]
        assert len(set(orders)) == 24
    monkeypatch.setattr(permutations, "_draw_orders", lambda *_: torch.tensor(orders))
    walks = permutations.evaluate_walks(table, 24, method == "antithetic", seeded(0))
    torch.testing.assert_close(permutations.permutation_shapley(walks).values, shapley(table).values)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_a_constant_game_has_no_values_and_no_errors(method):
    found = shapley(MaskedModel(lambda rows: 0 * rows.sum(1) + 3, torch.ones(1, 30), absence=0.0), evaluations=200)
    assert (found.values.abs() < 1e-9).all()
    assert (found.errors < 1e-9).all()


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_players_without_effect_and_duplicates_get_what_they_should(method):
    def model(rows):  # columns 0 and 1 count only together with column 2; column 29 does not count
        return (rows[:, 0] + rows[:, 1]) * rows[:, 2] + rows[:, 3:29].sum(1).tanh()

    game = MaskedModel(model, torch.ones(1, 30).double(), absence=0.0)
    found = shapley(game, evaluations=1200, method=method)
    assert abs(float(found.values[0, 29])) <= max(3 * float(found.errors[0, 29]), 1e-9)
    apart = float(found.values[0, 0] - found.values[0, 1])
    assert abs(apart) <= 4 * max(float(found.errors[0, :2].max()), 1e-9)
    torch.testing.assert_close(found.values[0, :2].mean(), torch.tensor(0.5).double(), atol=0.1, rtol=0)


def test_a_tolerance_is_reached_with_no_more_evaluations_than_needed():
    rough = shapley(TABLE, tolerance=0.1, method="leverage")
    fine = shapley(TABLE, tolerance=0.02, method="leverage")
    for found, tolerance in ((rough, 0.1), (fine, 0.02)):
        size = found.values.amax(1) - found.values.amin(1)
        assert (found.errors.amax(1) <= tolerance * size * 1.000001).all()
        assert "is reached" in found.notes[-1]
    assert rough.evaluations < fine.evaluations < 2 * 2**PLAYERS


def test_a_tolerance_out_of_reach_keeps_what_was_found_and_says_so():
    found = shapley(TABLE, tolerance=1e-6, evaluations=100, method="leverage")
    assert found.evaluations <= 200
    assert "is not reached" in found.notes[-1]
    torch.testing.assert_close(
        found.values, shapley(TABLE, evaluations=80, method="leverage").values, atol=0.5, rtol=0
    )


def test_a_tolerance_of_nothing_ends_with_the_exact_values():
    found = shapley(TABLE, tolerance=1e-12, method="leverage")
    torch.testing.assert_close(found.values, EXACT.values)
    assert found.evaluations == 2 * 2**PLAYERS


class Counted:
    """A game that counts the coalitions it is asked for."""

    samples = TABLE.samples
    names = TABLE.names

    def __init__(self):
        self.asked = []

    def __call__(self, coalitions):
        self.asked.append(coalitions)
        return TABLE(coalitions)


@pytest.mark.parametrize("method", METHODS)
def test_more_uses_earlier_coalitions_again(method):
    game = Counted()
    first = shapley(game, evaluations=100, method=method)
    asked = sum(len(coalitions) for coalitions in game.asked)
    second = shapley(game, evaluations=300, method=method, more=first)
    in_all = sum(len(coalitions) for coalitions in game.asked)
    assert second.evaluations <= 600
    assert in_all - asked <= second.evaluations / 2 - first.evaluations / 2 + 2  # the ends are asked again
    if isinstance(METHODS[method], OfPairs):
        coalitions = second.drawn.coalitions
        both = torch.cat([coalitions, ~coalitions])
        assert len(both.unique(dim=0)) == len(both)  # none twice
        torch.testing.assert_close(second.drawn.drawn, TABLE(coalitions))
        torch.testing.assert_close(second.drawn.complements, TABLE(~coalitions))
        kept = first.drawn.coalitions
        assert all(bool((coalitions == row).all(1).any()) for row in kept)
    assert second.errors.square().mean() < 0.6 * first.errors.square().mean()


def test_more_of_another_game_is_refused():
    first = shapley(TABLE, evaluations=100)
    others = ValueTable(TABLE.values + 1)
    with pytest.raises(AbsentiaError, match="more must be a result of the same game"):
        shapley(others, evaluations=300, more=first)
    with pytest.raises(AbsentiaError, match="more must be a result of the same game"):
        shapley(ValueTable(TABLE.values[:1]), evaluations=300, more=first)
    with pytest.raises(AbsentiaError, match="more must be a sampled result"):
        shapley(TABLE, evaluations=300, more=EXACT)
    with pytest.raises(AbsentiaError, match="coalitions that this method can use"):
        shapley(TABLE, evaluations=300, method="permutation", more=first)
    with pytest.raises(AbsentiaError, match="coalitions that this method can use"):
        shapley(TABLE, evaluations=300, method="leverage", more=shapley(TABLE, evaluations=100, method="antithetic"))


def test_wrong_methods_and_budgets_are_refused():
    with pytest.raises(AbsentiaError, match="method must be one of auto, process, leverage, antithetic, permutation"):
        shapley(TABLE, evaluations=100, method="kernel")
    with pytest.raises(AbsentiaError, match="evaluations must be given for method='process'"):
        shapley(TABLE, method="process")
    with pytest.raises(AbsentiaError, match="evaluations must be at least 42 for 10 players"):
        shapley(TABLE, evaluations=30)
    with pytest.raises(AbsentiaError, match="tolerance must"):
        shapley(TABLE, tolerance=2.0)


def test_auto_fits_a_process_unless_evaluations_are_much_cheaper(monkeypatch):
    assert shapley(TABLE, evaluations=200).method == "process"
    monkeypatch.setattr(sampled_shapley, "seconds_of_process", lambda *_: 100.0)
    found = shapley(TABLE, evaluations=200)
    assert found.method == "leverage"
    assert "fitting a Gaussian process would take about 100 s" in found.notes[0]


def test_auto_searches_shortly_where_that_alone_is_quick_enough(monkeypatch):
    monkeypatch.setattr(sampled_shapley, "seconds_of_process", lambda *given: 100.0 if given[3] is STAGES else 0.01)
    found = shapley(TABLE, evaluations=200)
    assert found.method == "process"
    assert "by a short search" in found.notes[0]
    thorough = shapley(TABLE, evaluations=200, method="process")
    assert not torch.equal(found.values, thorough.values)
    assert root_mean_square([found.values - EXACT.values]) < 2 * root_mean_square([thorough.values - EXACT.values])
    many_players = MaskedModel(lambda rows: rows.sum(1).tanh(), torch.ones(1, 200), absence=0.0)
    assert shapley(many_players, evaluations=900).method == "leverage"


def test_auto_takes_regression_where_its_errors_are_smaller(monkeypatch):
    fitted = sampled_shapley.process_shapley_of_any

    def with_large_errors(*arguments):
        estimate = fitted(*arguments)
        return estimate._replace(errors=100 * estimate.errors)

    monkeypatch.setattr(sampled_shapley, "process_shapley_of_any", with_large_errors)
    found = shapley(TABLE, evaluations=200)
    assert found.method == "leverage"
    torch.testing.assert_close(found.values, shapley(TABLE, evaluations=200, method="leverage").values)
    assert "no larger than those of a Gaussian process" in found.notes[0]


def test_a_process_is_no_worse_than_regression_where_a_game_has_no_structure():
    noise = ValueTable(torch.randn(8, 2**9, generator=torch.Generator().manual_seed(0)).double())
    exact = shapley(noise).values
    by_process = shapley(noise, evaluations=200, method="process").values - exact
    by_regression = shapley(noise, evaluations=200, method="leverage").values - exact
    assert by_process.norm() < by_regression.norm()


def test_a_sample_has_the_same_values_in_any_batch():
    together = shapley(TABLE, evaluations=100, method="process")
    alone = shapley(ValueTable(TABLE.values[1:]), evaluations=100, method="process")
    torch.testing.assert_close(alone.values[0], together.values[1], atol=1e-7, rtol=1e-5)


@pytest.mark.slow
def test_errors_count_the_draws_of_a_random_absence():
    generator = torch.Generator().manual_seed(0)
    network = mlp(12, hidden=16)
    x = torch.randn(1, 12, generator=generator).double()
    rows = torch.randn(4000, 12, generator=generator).double()
    truth = torch.stack(
        [shapley(MaskedModel(network, x, absence=Marginal(part))).values for part in rows[:300].split(100)]
    ).mean(0)
    scores = []
    for part in rows[400:1200].split(20):
        found = shapley(MaskedModel(network, x, absence=Marginal(part)), evaluations=200 * 20, method="process")
        assert "include the variance of the draws" in found.notes[-1]
        scores.append((found.values - truth) / found.errors)
    assert 0.7 < root_mean_square(scores) < 1.4


def test_the_error_of_a_mean_over_groups_is_that_of_independent_draws():
    by_group = torch.randn(10, 4000, generator=torch.Generator().manual_seed(0)).double()
    shares = torch.full((10,), 0.1).double()
    errors = error_of_draws(by_group, shares)
    assert float(errors.square().mean()) == pytest.approx(1 / 10, rel=0.05)
    torch.testing.assert_close(errors, by_group.std(0) / 10**0.5)


def test_strata_can_be_extended_without_repeats():
    generator = seeded(0)
    first = draw_strata(9, 40, generator)
    more = draw_strata(9, 120, generator, first)
    coalitions = torch.cat([stratum.drawn for stratum in more])
    assert len(coalitions) >= 118
    assert len(torch.cat([coalitions, ~coalitions]).unique(dim=0)) == 2 * len(coalitions)
    for stratum in first:
        larger = next(other for other in more if other.size == stratum.size)
        assert torch.equal(larger.drawn[: len(stratum.drawn)], stratum.drawn)


def test_a_method_of_ones_own_can_be_added(monkeypatch):
    monkeypatch.setitem(METHODS, "mine", OfPairs(regression_shapley))
    found = shapley(TABLE, evaluations=100, method="mine")
    torch.testing.assert_close(found.values, shapley(TABLE, evaluations=100, method="leverage").values)


@pytest.mark.slow
def test_drawn_values_are_not_saved(tmp_path):
    explanation = ab.explain(mlp(26), torch.randn(1, 26).double(), absence=0.0, evaluations=110)
    assert explanation.shapley.drawn is not None
    explanation.save(tmp_path / "e.absentia")
    loaded = ab.load(tmp_path / "e.absentia")
    assert loaded.shapley.drawn is None
    assert loaded.shapley.method == explanation.shapley.method
    torch.testing.assert_close(loaded.shapley.errors, explanation.shapley.errors)


def test_a_single_player_is_exact():
    table = ValueTable([1.0, 3.0])
    assert shapley(table, evaluations=100).values.tolist() == [[2.0]]
    assert len(enumerate_coalitions(1)) == 2


class Interrupted:
    """A game of one's own, whose evaluation Ctrl-C ends at a later call."""

    names = TABLE.names
    samples = TABLE.samples

    def __init__(self, monkeypatch, calls):
        monkeypatch.setattr(evaluated_pairs, "_FEWEST_IN_A_TURN", 8)  # few pairs have turns, too
        self.calls = calls

    def __call__(self, coalitions):
        self.calls -= 1
        if self.calls == -1:
            raise KeyboardInterrupt
        return TABLE(coalitions)


@pytest.mark.parametrize("method", ["process", "leverage"])
def test_an_interruption_keeps_what_was_evaluated(method, monkeypatch):
    found = shapley(Interrupted(monkeypatch, calls=8), evaluations=400, method=method)
    assert 150 < found.evaluations / TABLE.samples < 250
    assert found.notes[0].startswith("Interrupted: values are estimated from the ")
    torch.testing.assert_close(found.values.sum(1), TABLE.values[:, -1] - TABLE.values[:, 0])
    assert ((found.values - EXACT.values).abs() <= 5 * found.errors + 1e-9).all()
    more = shapley(TABLE, evaluations=400, method=method, more=found)
    assert more.evaluations / TABLE.samples > 390
    assert root_mean_square([more.values - EXACT.values]) < root_mean_square([found.values - EXACT.values])


@pytest.mark.parametrize("compute", [ab.interactions, lambda game, **more: ab.index(game, "SII", **more)])
def test_an_interruption_of_interactions_keeps_what_was_evaluated(compute, monkeypatch):
    found = compute(Interrupted(monkeypatch, calls=8), evaluations=400)
    assert found.notes[0].startswith("Interrupted: values are estimated from the ")
    assert 150 < found.evaluations / TABLE.samples < 250


def test_turns_change_no_result(monkeypatch):
    at_once = shapley(TABLE, evaluations=300, method="leverage")
    monkeypatch.setattr(evaluated_pairs, "_TURNS", 7)
    monkeypatch.setattr(evaluated_pairs, "_FEWEST_IN_A_TURN", 8)
    calls = []

    class Counting:
        names = TABLE.names
        samples = TABLE.samples

        def __call__(self, coalitions):
            calls.append(len(coalitions))
            return TABLE(coalitions)

    in_turns = shapley(Counting(), evaluations=300, method="leverage")
    assert len(calls) == 7
    assert torch.equal(in_turns.values, at_once.values)


class InterruptedModel:
    """A model that Ctrl-C ends at a later call."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, rows):
        self.calls -= 1
        if self.calls == -1:
            raise KeyboardInterrupt
        return rows[:, 0] * rows[:, 1] + (rows @ torch.arange(12.0)).tanh()


def test_interrupted_values_are_those_of_their_coalitions_by_groups_of_draws(monkeypatch):
    monkeypatch.setattr(evaluated_pairs, "_FEWEST_IN_A_TURN", 8)
    background = torch.randn(3, 12, generator=seeded(0))
    x = torch.randn(2, 12, generator=seeded(1))

    def game_of(model):
        return MaskedModel(model, x, absence=ab.Marginal(background), batch_size=50)

    whole = game_of(InterruptedModel(10**9))
    first = evaluate_pairs(whole, 100, seeded(0))
    with pytest.raises(evaluated_pairs.InterruptedDraws) as caught:
        evaluate_pairs(game_of(InterruptedModel(60)), 300, seeded(2), first)
    kept = caught.value.values
    assert 100 < kept.pairs < 300
    torch.testing.assert_close(kept.drawn, whole(kept.coalitions).double())
    torch.testing.assert_close(kept.complements, whole(~kept.coalitions).double())
    assert len(kept.coalitions.unique(dim=0)) == kept.pairs


def test_more_after_an_interruption_keeps_to_the_budget(monkeypatch):
    found = shapley(Interrupted(monkeypatch, calls=8), evaluations=400, method="leverage")
    for evaluations in (210, 260, 390):
        more = shapley(TABLE, evaluations=evaluations, method="leverage", more=found)
        assert evaluations - 2 <= more.drawn.coalitions_per_sample <= evaluations


def test_an_interruption_of_a_tolerance_keeps_what_was_evaluated(monkeypatch):
    found = shapley(Interrupted(monkeypatch, calls=2), tolerance=0.0, method="antithetic")
    assert "Interrupted" in found.notes[0]
    assert "is not reached:" in found.notes[-1]


@pytest.mark.parametrize("method", ["process", "permutation"])
def test_an_early_interruption_is_passed_on(method, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        shapley(Interrupted(monkeypatch, calls=0), evaluations=400, method=method)


def test_an_interrupted_fit_keeps_the_earlier_result(monkeypatch):
    calls = iter(range(10))

    def interrupt(values, seed):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return regression_shapley(values, seed)

    monkeypatch.setitem(METHODS, "interrupted", OfPairs(interrupt))
    found = shapley(TABLE, tolerance=0.0, method="interrupted")
    assert "Interrupted" in found.notes[0]
    assert found.evaluations / TABLE.samples < 200


def test_a_tolerance_that_the_draws_of_an_absence_prevent_ends_early():
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(200, 12, generator=generator).double()
    weights = torch.randn(12, generator=generator).double()
    game = MaskedModel(lambda rows: (rows @ weights).exp(), data[:1], absence=Marginal(data, draws=10))
    found = shapley(game, tolerance=0.01)
    assert found.evaluations < 2**12 * 10
    assert "is not reached: " in found.notes[-1]
    assert found.notes[-1].endswith("mostly because the absence has 10 draws. Use more of them.")
    reached = shapley(game, tolerance=0.9)
    assert "is reached" in reached.notes[-1]
