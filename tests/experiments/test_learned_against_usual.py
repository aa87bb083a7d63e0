import json
import math

import pytest
import torch

import absentia as ab
from experiments import __main__ as commands
from experiments import learned_against_usual as experiment
from experiments import ten_problems, trained_models
from experiments.networks import build
from experiments.ten_problems import PROBLEMS, Problem
from experiments.usual_goals import Measured, Row, goals_of, tabulate

FIGURES = ("strength", "salient", "terms", "evidence", "score", "R", "gaussian", "surrogate")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path))
    return tmp_path


def measured(problem="wine", seed=0, excess=-3.0, strengths=(50.0, 100.0, 80.0), evidence=0.1, seconds=5.0, gap=0.0):
    """Figures of a learned baseline beside mean and median, all figures ``excess`` errors above those of the mean."""
    methods = {name: {figure: [0.5, 0.1] for figure in FIGURES} for name in ("mean", "median", "learned")}
    learned, mean, median = strengths
    for name, strength in (("learned", learned), ("mean", mean), ("median", median)):
        methods[name]["strength"] = [strength, 1.0]
    methods["learned"] |= {"evidence": [evidence, 0.01], "gaussian": [0.5 + gap, 0.1], "surrogate": [0.5 + gap, 0.1]}
    differences = {name: {figure: [excess, 1.0] for figure in ("strength", "evidence", "R")} for name in methods}
    del differences["learned"]
    unit = "of the variance" if problem == "diabetes" else "nats"
    return Measured(
        problem, seed, "", "a model", "some rows", unit, methods, differences, seconds, seconds, "learned", "mean"
    )


def verdicts(**changes):
    """The verdicts of the goals, if one problem's figures are changed."""
    rows = [Row(name, [measured(name)]) for name in PROBLEMS if name != "wine"]
    return [goal.verdict for goal in goals_of([Row("wine", [measured(**changes)]), *rows])]


def test_all_goals_can_be_met():
    assert verdicts() == ["met"] * 9


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"excess": 2.1}, [0]),
        ({"strengths": (105.0, 100.0, 80.0)}, [3]),
        ({"strengths": (104.0, 100.0, 80.0)}, []),
        ({"evidence": -0.31}, [5]),
        ({"gap": -0.021}, [6, 7]),
        ({"seconds": 20.0}, [8]),
    ],
)
def test_a_goal_that_should_hold_everywhere_is_missed_by_one_problem(changes, missed):
    assert [number for number, verdict in enumerate(verdicts(**changes)) if verdict != "met"] == missed


@pytest.mark.parametrize(("worse", "excess", "missed"), [(2, 3.0, [0]), (3, 3.0, [0, 1, 2]), (3, -1.9, [2])])
def test_a_goal_of_eight_problems_is_missed_by_three(worse, excess, missed):
    rows = [
        Row(name, [measured(name, excess=excess if number < worse else -3.0)]) for number, name in enumerate(PROBLEMS)
    ]
    assert [number for number, goal in enumerate(goals_of(rows)) if goal.verdict == "missed"] == missed


def test_a_goal_is_open_until_the_problems_that_decide_it_are_measured():
    rows = [Row(name, [measured(name)]) for name in list(PROBLEMS)[:5]]
    assert [goal.verdict for goal in goals_of(rows)] == ["open"] * 4 + ["met"] + ["open"] * 4
    assert goals_of([Row("wine", [measured(evidence=0.4)])])[5].verdict == "missed"


def test_a_negligible_difference_does_not_count():
    found = measured()
    found.differences["mean"] = {"strength": [0.9, 0.001], "evidence": [-0.009, 0.001], "R": [0.011, 0.001]}
    excess = [Row("wine", [found]).excess("mean", name) for name in ("strength", "evidence", "R")]
    assert excess == [0, 0, pytest.approx(11)]


def test_evidence_of_opposite_signs_does_not_cancel_over_seeds():
    rows = [Row("wine", [measured(seed=0, evidence=0.4), measured(seed=1, evidence=-0.4)])]
    assert goals_of(rows)[5].fails == {"wine": "0.40"}
    table = tabulate({"wine": rows[0].found})[2]
    cells = dict(zip(table.columns, table.rows[2], strict=True))
    assert cells["evidence"] == "+0.000 ± 0.007"


def test_a_remover_that_was_not_used_is_left_out():
    found = measured("cifar10")
    for figures in found.methods.values():
        del figures["gaussian"]
    goal = goals_of([Row("cifar10", [found])])[6]
    assert (goal.holds, goal.fails, goal.problems) == ({}, {}, 9)
    assert tabulate({"cifar10": [found]})[2].rows[0][7] == "–"


@pytest.fixture
def problem():
    """Two classes by the sign of the first column, of which three quarters are positive."""
    x = torch.tensor([1.0, 2.0, 3.0, -1.0]).repeat(10)[:, None] * torch.tensor([1.0, 0.5])
    y = (x[:, 0] > 0).long()

    def model(rows):
        return torch.stack([-rows.sum(1), rows.sum(1)], 1) / 2

    return Problem("toy", "a sum", model, x, y, x, y, ab.Players.features(2), ab.Baseline(0.0))


@pytest.mark.slow
def test_differences_are_those_of_the_figures(problem):
    found = experiment.measure(problem, experiment.size_of("toy", quick=True), seed=0)
    assert list(found.differences) == ["zero", "mean", "median"]
    for name, differences in found.differences.items():
        for figure, (value, error) in differences.items():
            mine, its = (found.methods[method][figure][0] for method in ("learned", name))
            mine, its = (abs(mine), abs(its)) if figure == "evidence" else (mine, its)
            assert value == pytest.approx(mine - its, abs=1e-6)
            assert error >= 0
    classes = problem.y_test.double()
    entropy = -sum(share * math.log(share) for share in (float(classes.mean()), 1 - float(classes.mean())))
    fitted = 1 / 80  # what the frequencies of two classes gain on average by their own 40 samples
    assert found.methods["zero"]["evidence"][0] == pytest.approx(math.log(2) - entropy - fitted, abs=0.001)


def test_evidence_of_random_methods_is_averaged_over_groups_of_draws_and_rare_classes_are_left_out():
    def model(rows):
        return torch.stack([rows[:, 0], -rows[:, 0], rows[:, 1]], 1)

    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)).double()
    y = model(x)[:, :2].argmax(1)
    y[:2] = 2  # too rare to fit
    found = ab.audit(model, x, y, {"learned": 0.0, "marginal": "marginal:20"})
    evidence = experiment.evidence_of_samples(found)
    assert evidence.shape == (2, 58)
    torch.testing.assert_close(evidence.mean(1), found.evidence.value)
    differences = experiment.compare(found, "marginal")
    assert all(math.isfinite(number) for figure in differences.values() for number in figure)


def test_the_gap_is_largest_for_the_true_order_and_the_opposite_for_the_reversed_one():
    game = ab.MaskedModel(lambda rows: rows.sum(1), torch.tensor([[1.0, 2.0, 4.0]]), absence=0.0)
    gaps = [
        float(experiment.deletion_gap(game, torch.tensor([values])))
        for values in ([1.0, 2.0, 4.0], [2.0, 1.0, 4.0], [-1.0, -2.0, -4.0])
    ]
    assert gaps == [3.0, 2.0, -3.0]


def test_a_network_of_fewer_epochs_stands_in_for_one_that_is_not_there(cache):
    for epochs, name in ((4, "brief"), (None, "full")):
        recipe = trained_models.RECIPES["mnist"]["lenet"]
        header = trained_models.Header("lenet", name, 0, 0.9, str(recipe), ab.__version__)
        trained_models.save(build("lenet", seed=0), trained_models.model_file("mnist", epochs=epochs), header)
        assert ten_problems._network_of_images("mnist")[1].data_set == name


@pytest.mark.slow
def test_what_was_measured_is_saved_and_not_measured_again(cache, tmp_path, monkeypatch, capsys):
    words = ["usual", "--quick", "--problems", "diabetes,digits12", "--seeds", "0", "-o", str(tmp_path / "out")]
    assert commands.main(words) == 0
    assert "diabetes, seed 0: measured in" in capsys.readouterr().err
    text = (tmp_path / "out" / "learned_against_usual-quick.md").read_text()
    assert "Written by `python -m experiments usual --quick --problems diabetes,digits12 --seeds 0`" in text
    written = json.loads((tmp_path / "out" / "learned_against_usual-quick.json").read_text())
    assert [table["title"] for table in written["tables"]][2:] == ["digits12", "diabetes"]
    rows = [[row[0] for row in table["rows"]] for table in written["tables"][2:]]
    assert rows == [["zero", "mean", "median", "blur", "learned"], ["zero", "mean", "median", "learned"]]
    assert not [cell for table in written["tables"] for row in table["rows"] for cell in row if "nan" in cell]

    def refuse(*_arguments):
        raise AssertionError("measured again")

    monkeypatch.setattr(experiment, "measure", refuse)
    titles = [table.title for table in experiment.usual_tables(["diabetes"], [0], quick=True)]
    assert titles[2:] == ["digits12", "diabetes"]  # all that is there, whatever was asked for
    monkeypatch.setitem(experiment.QUICK, "judged", 5)
    with pytest.raises(AssertionError, match="measured again"):
        experiment.usual_tables(["diabetes"], [0], quick=True)


def test_an_unknown_problem_is_refused_before_any_is_measured(cache):
    with pytest.raises(ab.AbsentiaError, match=r"problems must be among wine, .*, trees\. Got 'iris'"):
        experiment.usual_tables(["wine", "iris"])
    assert not list(cache.iterdir())
