"""Known Shapley values: the absences that are compared, and the score."""

import itertools

import pytest
import torch

import absentia as ab
from experiments import known_shapley
from experiments.experiment import Run
from experiments.known_shapley import (
    PRESENCE,
    addition_multiplication,
    conditional_values,
    draw_inputs,
    methods,
    score,
    with_baseline,
    with_condition,
    with_kernel_shap,
    with_learned,
    with_shap,
)
from experiments.worked_examples import worked_examples


@pytest.fixture(scope="module")
def case():
    return addition_multiplication(1, seed=1)[0]


def test_the_mean_over_independent_inputs_is_the_baseline_of_their_means():
    case = worked_examples()[0].case
    states = torch.tensor(list(itertools.product([0.0, 1.0], repeat=len(case.x)))).double()
    chances = torch.where(states == 1, PRESENCE, 1 - PRESENCE).double().prod(1)
    values = torch.zeros(2 ** len(case.x)).double()
    for number in range(len(values)):
        present = torch.tensor([bool(number >> player & 1) for player in range(len(case.x))])
        values[number] = chances @ case.function.model(torch.where(present, case.x, states))
    torch.testing.assert_close(ab.shapley(ab.ValueTable(values)).values[0], with_baseline(case, PRESENCE))


def test_conditional_values_are_means_over_the_rows_that_agree():
    x = torch.tensor([1.0, 0.0, 1.0]).double()
    rows = draw_inputs(6, seed=3, players=3)
    rows[:, 1] = 1.0  # nothing agrees with the second entry

    def model(inputs):
        return inputs[:, 0] * (inputs[:, 1] + 2) - 3 * inputs[:, 2]

    values = conditional_values(model, x, rows)
    for number in range(8):
        present = [player for player in range(3) if number >> player & 1]
        matching = [row for row in rows if all(row[player] == x[player] for player in present)]
        if not matching:
            matching = [torch.stack([x[p] if p in present else row[p] for p in range(3)]) for row in rows]
        assert values[number] == pytest.approx(float(model(torch.stack(matching)).mean()), abs=1e-12)
    assert values[7] == model(x[None])


def test_with_many_rows_the_condition_is_the_baseline_of_the_means(case):
    values = with_condition(case, draw_inputs(20_000, seed=0))
    torch.testing.assert_close(values, with_baseline(case, PRESENCE), atol=0.05, rtol=0)


@pytest.mark.slow
def test_shap_is_the_mean_over_the_background_and_so_is_kernel_shap(case):
    background = draw_inputs(20, seed=0)
    game = ab.MaskedModel(case.function.model, case.x[None], absence=ab.Marginal(background))
    ours = ab.shapley(game).values[0]
    torch.testing.assert_close(with_shap(case, background), ours, atol=1e-9, rtol=0)
    torch.testing.assert_close(with_kernel_shap(case, background), ours, atol=1e-6, rtol=0)


def test_a_score_counts_all_and_used_variables():
    case = worked_examples()[0].case
    exact = score(case, case.shapley)
    assert exact.right == exact.of == (7, 6)
    wrong = case.shapley.clone()
    wrong[1] += 0.02  # not used
    wrong[3] += 0.02  # one of two factors
    wrong[4] += 0.009
    assert score(case, wrong).right == (5, 5)
    assert (exact + exact).of == (14, 12)


@pytest.mark.slow
def test_learning_gives_the_true_shapley_values():
    for case in addition_multiplication(2, seed=0, players=5, lone=1.0):
        found = score(case, with_learned(case, draw_inputs(64, seed=1, players=5), seed=0))
        assert found.right == found.of


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_the_table_has_a_row_for_each_absence_and_a_perfect_one_scores_100(monkeypatch):
    def truth(case, inputs, seed):
        return with_baseline(case, case.function.baseline(unknown=0.3))

    monkeypatch.setattr(known_shapley, "with_learned", truth)
    found = known_shapley.family(Run(size="tiny"))
    table, chosen = found.tables
    assert [row[0] for row in table.rows] == list(methods(0, 12)) == list(found.figures)[:-4]
    assert set(known_shapley.PRINTED) <= set(methods(0, 12))
    shares = {row[0]: row[1:3] for row in table.rows}
    assert shares["learned"] == shares["true δ"] == ["100.00%"] * 2
    zeros = [float((case.shapley == 0).double().mean()) for case in addition_multiplication(2, seed=0)]
    assert found.figures["φ = 0 for every variable"] == pytest.approx(100 * sum(zeros) / 2)
    assert [row[0] for row in chosen.rows if row[2]] == [f"{found.figures['coalitions']}"]
    assert shares["exact SHAP"] != ["100.00%"] * 2
    assert "no evidence" in table.note


def test_few_coalitions_make_kernel_shap_worse(case):
    background = draw_inputs(100, seed=0)
    exact = with_kernel_shap(case, background)
    few = with_kernel_shap(case, background, 12)
    torch.testing.assert_close(few, with_kernel_shap(case, background, 12))
    assert (few - exact).abs().max() > 0.01


def test_the_number_of_coalitions_is_chosen_on_functions_of_other_seeds(monkeypatch):
    asked = []

    def draw(count, seed):
        asked.append(seed)
        return addition_multiplication(count, seed)

    monkeypatch.setattr(known_shapley, "addition_multiplication", draw)
    monkeypatch.setattr(known_shapley, "GRID", (12, 254))
    accuracies = known_shapley.kernel_accuracies(4, [7, 8])
    assert asked == [7, 8]
    assert accuracies[12] < accuracies[254]
    assert known_shapley.nearest(accuracies) == 12


def test_each_function_has_its_own_draw_of_coalitions(monkeypatch):
    seeds = []
    monkeypatch.setattr(known_shapley.np.random, "seed", seeds.append)
    for case in addition_multiplication(3, seed=0):
        with_kernel_shap(case, draw_inputs(5, seed=0), 12)
    assert len(set(seeds)) == 3


def test_draws_that_all_functions_share_scatter_about_their_mean():
    cases = addition_multiplication(4, seed=0)
    low, mean, high = known_shapley.one_draw_accuracies(cases, 0, 12, draws=4)
    assert low < mean < high
    exact = known_shapley.one_draw_accuracies(cases, 0, 254, draws=2)
    assert exact[0] == exact[2]


def test_the_verdict_asks_for_learned_values_that_alone_are_right():
    figures = dict.fromkeys(methods(0, 12), 60.0) | {
        "learned": 100.0,
        known_shapley.TRUTH: 100.0,
        known_shapley.DIVIDED: 82.0,
        known_shapley.FEW: 36.0,
        known_shapley.NOTHING: 81.5,
        "coalitions": 12,
        "lowest of one draw": 20.0,
        "highest of one draw": 50.0,
    }
    judge = known_shapley.judge_learned
    found = judge({"family": figures})
    assert found.words == "by another method (Σ|U| of all orders with sweeps, no lone factors)"
    assert judge({"family": figures | {"zero": 95.0}}).word == "no"
    assert judge({"family": figures | {"learned": 99.4}}).word == "no"
    losses = {f"L_Shapley, λ = 0.5 n: {known_shapley.ALONE}": 99.6}
    losses[f"error of L_Shapley, λ = 0.5 n: {known_shapley.ALONE}"] = 0.2
    assert judge({"family": figures, "losses": losses}).word == "in one reading"
    others = known_shapley.judge_others({"family": figures})
    assert others.word == "no"
    assert "81.50 %" in others.reason
    near = {name: float(printed.rstrip("%")) + 4 for name, printed in known_shapley.PRINTED.items()}
    assert known_shapley.judge_others({"family": figures | near}).word == "as stated"


def test_lone_factors_are_kept_on_request():
    def alone(**settings):
        cases = addition_multiplication(20, seed=3, lone=0.0, **settings)
        return sum(len(product.variables) == 1 for case in cases for product in case.function.model.products)

    assert alone() == 0
    assert alone(lone_factors=True) > 20


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_the_papers_losses_are_scored_on_both_families():
    found = known_shapley.losses(Run(size="tiny"))
    families = {row[0] for row in found.tables[0].rows}
    assert families == {known_shapley.ALONE, "lone factors kept, several products"}
    learned = {row[1] for row in found.tables[0].rows if row[0] != known_shapley.ALONE}
    assert set(known_shapley.LEARNERS) < learned
