"""Attributions as results: what they print, rank and hand on."""

from dataclasses import replace

import pytest
import torch

from absentia import AbsentiaError, ValueTable, banzhaf, marginal_benefits, order_shapley, shapley
from absentia.attributions import Attribution


def as_tensor(rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_the_printed_form_ranks_players():
    lines = repr(shapley(ValueTable([0.0, 1.0, -5.0, -4.0], names=["a", "bb"]))).splitlines()
    assert lines[1].split() == ["bb", "−5"]
    assert lines[2].split() == ["a", "+1"]
    assert "means of |value|" in repr(shapley(ValueTable(torch.randn(3, 4))))


def test_what_is_known_of_the_values_is_handed_on():
    table = ValueTable([[0.0, 1.0, 2.0, 5.0]], names=["a", "b"], readout="a score", evaluations=40)
    for compute, kind in ((shapley, "Shapley values"), (banzhaf, "Banzhaf values")):
        found = compute(table)
        assert (found.names, found.readout, found.evaluations, found.kind) == (("a", "b"), "a score", 40, kind)
        assert found.errors.tolist() == [[0.0, 0.0]]


def test_players_are_ranked_by_strength_and_equal_ones_in_their_order():
    values = as_tensor([[1.0, -3.0, -1.0, 2.0], [0.5, 0.0, -4.0, 0.25]])
    none = torch.zeros(2, 4).double()
    found = Attribution(values, none, 0, tuple("abcd"), "values", "given")
    assert found.ranked() == [(1, "−3"), (3, "+2"), (0, "+1"), (2, "−1")]
    assert found.ranked(1) == [(2, "−4.00"), (0, "+0.50"), (3, "+0.25"), (1, "0")]
    with_errors = Attribution(values, none + as_tensor([0.125, 0.0, 0.5, 1.0]), 0, tuple("abcd"), "values", "given")
    assert with_errors.ranked() == [(1, "−3 ± 0"), (3, "+2 ± 1"), (0, "+1 ± 0.12"), (2, "−1 ± 0.5")]


def test_the_printed_form_of_several_samples_ranks_by_the_mean_strength():
    values = as_tensor([[1.0, -1.23456, 12.345], [-2.0, 1.23456, 0.0]])
    found = Attribution(values, torch.zeros(2, 3).double(), 0, ("a", "bb", "c"), "values", "a score")
    assert repr(found).splitlines() == [
        "Attribution: values of 2 samples, 3 players; value: a score; means of |value|:",
        "  c   6.173",
        "  a   1.500",
        "  bb  1.235",
    ]
    estimate = replace(found, errors=as_tensor([[0.1, 0.2, 5.0], [0.2, 0.2, 8.0]]))
    assert repr(estimate).splitlines() == [
        "Attribution: values of 2 samples, 3 players; value: a score; means of |value| ± mean standard error:",
        "  c   6.173 ± 6.5   not determined",
        "  a   1.500 ± 0.15",
        "  bb  1.235 ± 0.2",
        "  not determined: its standard error exceeds it",
    ]


def test_estimated_values_by_order_show_their_errors():
    exact = order_shapley(ValueTable([0.0, 1.0, 2.0, 5.0], names=["a", "b"]))
    assert not exact.is_estimated
    assert (exact.errors == 0).all()
    errors = as_tensor([[[0.5, 0.25], [4.0, 0.5]]])
    estimated = replace(exact, standard_errors=errors, notes=("drawn",))
    assert "+3 ± 4" in repr(estimated)
    assert repr(estimated).endswith("Note: drawn")
    assert estimated.determined.tolist() == [[[True, True], [False, True]]]
    assert torch.equal(estimated.at(1).errors, errors[:, 1:])
    assert torch.equal(estimated.only(0).errors, errors)
    assert estimated.mean().errors.isnan().all()
    with pytest.raises(AbsentiaError, match="orders must be among 1"):
        estimated.at(1).at(0)


def test_all_results_of_players_say_the_same_about_themselves():
    table = ValueTable([0.0, 1.0, 2.0, 5.0], notes=["A note."])
    results = [shapley(table), order_shapley(table), marginal_benefits(table, 0)]
    for result in results:
        assert result.standard_errors is None
        assert result.errors.shape == result.values.shape
        assert not result.is_estimated
        assert isinstance(result.notes, tuple)
    assert results[2].notes == ("A note.",)
    estimate = replace(results[0], errors=torch.ones(1, 2))
    assert estimate.standard_errors is estimate.errors
