import pytest
import torch

import absentia as ab
from experiments import known_baselines
from experiments.experiment import Run
from experiments.functions import parse_function
from experiments.known_baselines import (
    Outcome,
    Trial,
    binary_inputs,
    found_of,
    judge_part,
    judge_printed,
    plain_tsang,
    run_trial,
    run_trials,
    tabulate,
    thorough_loss,
)

SMALL = parse_function("+a*b*c|-sigmoid(+5d-5e-2.50)")


@pytest.fixture(autouse=True)
def _small_work(monkeypatch):
    monkeypatch.setattr(known_baselines, "ROWS_PER_COMPARISON", 2**12)


def test_inputs_are_all_of_them_or_reach_rare_states():
    every = binary_inputs(SMALL, 32, seed=0)
    assert len(torch.unique(every, dim=0)) == 32
    assert not torch.equal(every, every.sort(0).values)
    wide = parse_function("+" + "*".join("abcdefghijkl") + "|+m*n*o")
    drawn = binary_inputs(wide, 256, seed=0)
    assert drawn.shape == (256, 15)
    assert (drawn[:, :12] == 1).all(1).sum() >= 5  # one in 4,096 of fair draws


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "start"), known_baselines.PAIRS)
def test_the_baselines_of_a_small_function_are_found(loss, start):
    assert SMALL.truth == (0.0, 0.0, 0.0, 0.0, 1.0)
    outcome = run_trial(SMALL, Trial(0, loss, start), samples=32, steps=20, seed=0)
    assert outcome.right == (True,) * 5


def test_losses_are_compared_thoroughly():
    x = binary_inputs(SMALL, 32, 0)
    for loss in dict(known_baselines.PAIRS):
        truth, opposite = (
            thorough_loss(SMALL, loss, values, x) for values in (SMALL.baseline(0.5), 1 - SMALL.baseline(0.5))
        )
        assert truth < opposite


def test_a_loss_of_few_players_is_exact():
    baseline = torch.tensor([0.3, 0.1, 0.8, 0.6, 0.2]).double()
    x = binary_inputs(SMALL, 32, 0)
    table = ab.value_table(ab.MaskedModel(SMALL.model, x, absence=ab.Baseline(baseline)))
    shapley = ab.order_shapley(table, range(4)).values.abs().sum((1, 2)).mean()
    marginal = ab.order_marginals(table, range(4)).values.sum((1, 2)).mean()
    assert thorough_loss(SMALL, "shapley", baseline, x) == pytest.approx(float(shapley))
    assert thorough_loss(SMALL, "marginal", baseline, x) == pytest.approx(float(marginal))


def test_the_table_counts_marks_and_lists_misses():
    right = Outcome(Trial(0, "shapley", 0.0), (0.0,) * 4 + (1.0,), (True,) * 5, 0.0, 0.0)
    wrong = Outcome(Trial(0, "shapley", 0.5), (0.0,) * 5, (True, True, True, True, False), 2.0, 1.0)
    others = [
        Outcome(Trial(0, loss, start), right.values, right.right, 0.0, 0.0)
        for loss, start in known_baselines.PAIRS
        if loss != "shapley" or start == 1.0
    ]
    accuracy, misses = tabulate("title", "note", [SMALL], [right, wrong, *others], {("shapley", 0.0): 98.06})
    assert accuracy.rows[0] == ["shapley", "0", "5", "5", "100.00%", "100.00%", "98.06%", "0 of 0"]
    assert accuracy.rows[1] == ["shapley", "0.5", "4", "5", "80.00%", "50.00%", "–", "0 of 1"]
    assert misses.rows == [["shapley", "0.5", SMALL.name, "x5", "0.000", "1", "2", "1"]]


@pytest.mark.usefixtures("data")
def test_every_pair_of_loss_and_start_is_tried(monkeypatch):
    monkeypatch.setattr(known_baselines, "run_trial", lambda function, trial, *rest: Outcome(trial, (), (), 0.0, 0.0))
    outcomes = run_trials([SMALL, SMALL], samples=32, steps=3, run=Run())
    assert len({outcome.trial for outcome in outcomes}) == 14
    plain = run_trials([SMALL], samples=32, steps=3, run=Run(), additions=known_baselines.PLAIN)
    assert {outcome.trial.loss for outcome in plain} == {"shapley", "marginal"}


def test_the_figures_are_the_accuracies_and_the_verdict_compares_them_with_the_printed_ones():
    rows = [
        Outcome(Trial(0, loss, start), (0.0,) * 4 + (1.0,), (True,) * 5, 0.0, 0.0)
        for loss, start in known_baselines.PAIRS
    ]
    found = found_of(tabulate("title", "note", [SMALL], rows, {}))
    assert found.figures["shapley from 0.5"] == 100
    verdict = judge_part("functions", {"functions": found.figures})
    assert verdict.words == "by another method (a search with three additions)"
    assert "terms decide ties" in verdict.reason
    assert "sweeps" in verdict.reason
    assert "the mean, the median or the middle of the bounds joins the start" in verdict.reason
    worse = {**found.figures, "marginal from 1": 98.0}
    assert judge_part("functions", {"functions": worse}).word == "no"
    assert judge_part("functions", {}).word == "not measured"


def test_the_plain_losses_are_judged_first():
    plain = {f"plain: {loss} from {start:g}": 99.0 for loss, start in known_baselines.PAPERS_PAIRS} | {
        "variables": 61
    }
    assert judge_part("tsang", {"tsang-plain": plain}).word == "as stated"
    worse = plain | {"plain: shapley from 1": 80.0}
    full = {f"{loss} from {start:g}": 99.0 for loss, start in known_baselines.PAPERS_PAIRS}
    assert judge_part("tsang", {"tsang-plain": worse}).word == "no"
    found = judge_part("tsang", {"tsang-plain": worse, "tsang": full})
    assert found.word == "by another method"
    assert "By the losses alone, 1 of 6 accuracies are below the printed ones" in found.reason
    assert "plain 80.00 ± 5.12 to 99.00 %" in found.ours  # √(0.8 · 0.2 / 61)


def test_the_printed_truth_is_judged_by_the_paper_s_rule():
    assert judge_printed({"printed": {"agree": 22, "variables": 26}}).word == "no"
    assert judge_printed({"printed": {"agree": 26, "variables": 26}}).word == "as stated"
    assert judge_printed({}).word == "not measured"


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_the_ablation_has_a_column_for_each_addition():
    found = plain_tsang(Run(size="tiny"))
    table = found.tables[0]
    assert list(table.columns[2:6]) == ["plain", "with ties", "with restarts", "with sweeps"]
    assert len(table.rows) == 6
    first = f"plain: {table.rows[0][0]} from {table.rows[0][1]}"
    assert table.rows[0][2] == f"{found.figures[first] / 100:.2%}"


def test_one_printed_truth_contradicts_the_paper_s_own_rule():
    found = known_baselines.printed(Run())
    assert found.figures == {"agree": 26 - 4, "variables": 26}
    assert [row[-1] for row in found.tables[0].rows] == ["7 of 7", "5 of 9", "10 of 10"]
