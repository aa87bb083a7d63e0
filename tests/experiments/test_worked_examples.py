import pytest
import torch

from experiments.experiment import Run
from experiments.known_shapley import PRESENCE, with_baseline
from experiments.worked_examples import (
    LEARNED_LOSSES,
    agree,
    examples,
    judge_learned,
    judge_rows,
    judge_shap,
    learned,
    worked_examples,
)


@pytest.mark.parametrize("number", range(3))
def test_the_worked_examples_agree_to_the_printed_digits_where_they_should(number):
    table = examples(Run()).tables[number]
    verdicts = {row[0]: row[-1] for row in table.rows}
    assert verdicts["truth"] == verdicts["zero"] == verdicts["mean, as 0.5"] == "yes"
    assert verdicts["mean, as 0.7"] == verdicts["setting in SHAP, exact"] == "no"


@pytest.mark.parametrize("example", worked_examples(), ids=lambda example: example.case.function.name)
def test_the_printed_setting_in_shap_is_the_exact_one_divided_by_128(example):
    printed = torch.tensor(example.shap).double()
    assert (with_baseline(example.case, PRESENCE) / 128 - printed).abs().max() < 1e-3
    assert (with_baseline(example.case, PRESENCE) - printed).abs().max() > 0.5


def test_agreement_is_to_the_printed_digits():
    assert agree(torch.tensor([0.1249, -1.0]), [0.12, -1])
    assert not agree(torch.tensor([0.1251, -1.0]), [0.12, -1])
    assert not agree(torch.tensor([0.1249, -1.0]), [0.124, -1])


def test_the_verdict_follows_from_the_rows():
    figures = dict(examples(Run()).figures)
    assert judge_rows({"examples": figures}).word == "in one reading"
    assert judge_rows({"examples": figures | {"zero": 2}}).word == "no"
    assert judge_shap({"examples": figures}).word == "no"
    assert judge_shap({"examples": figures | {"setting in SHAP, exact": 3}}).word == "as stated"


def test_learned_rows_are_right_if_one_of_the_papers_losses_finds_all_values():
    figures = {}
    for loss in LEARNED_LOSSES:
        for number in range(1, 4):
            key = f"{loss}, example {number}"
            figures |= {f"{what}: {key}": 2 for what in ("together found", "together of", "right", "values")}
    assert judge_learned({"learned": figures}).word == "as stated"
    figures["right: shapley, example 2"] = figures["right: marginal, example 3"] = 1
    found = judge_learned({"learned": figures})
    assert found.word == "no"
    assert "no sparsity determines it" in found.reason


@pytest.mark.slow
def test_a_lone_factor_is_learned_at_the_value_that_inputs_mostly_have():
    """Its effect c·(x − b) is least at the median, which is 1 of inputs that are 1 with probability 0.7."""
    found = learned(Run(size="quick")).figures
    for loss in LEARNED_LOSSES:
        assert found[f"found: {loss}, example 1"] <= found[f"together of: {loss}, example 1"]


def test_the_reason_names_no_cause_that_the_examples_contradict():
    players = {len(example.case.x) for example in worked_examples()}
    assert players == {7, 8}  # contexts of a variable: 2⁶ and 2⁷, so they are not the one divisor of all examples
    assert "not known" in judge_shap({"examples": examples(Run()).figures}).reason
