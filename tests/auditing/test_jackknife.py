"""Pseudo-values of figures that depend on draws."""

import pytest
import torch

from absentia.auditing.estimates import Mean
from absentia.auditing.jackknife import draw_groups, join_methods, pseudo_values
from seeded_draws import randn


def test_pseudo_values_keep_the_figure_and_tell_the_error_of_its_draws():
    """The exponential of a mean over 40 draws is curved: the jackknife has the error of the delta method."""
    ratios = []
    for seed in range(200):
        draws = randn(40, seed=seed)
        groups = draw_groups(40, seed)
        without = [(draws.sum() - draws[list(group)].sum()) / (40 - len(group)) for group in groups]
        whole = draws.mean().exp().expand(30)
        values = pseudo_values(whole, [left.exp().expand(30) for left in without], shared=True)
        found = Mean.of(values)
        assert found.value == pytest.approx(float(whole[0]))
        ratios.append(found.error / (float(whole[0]) * 40**-0.5))
    assert sum(ratios) / 200 == pytest.approx(1, abs=0.1)


def test_the_error_of_a_figure_at_its_least_value_counts_its_curvature():
    """The square of a mean over 20 draws around 0: its slope is nothing there, yet it varies."""
    held = 0
    for seed in range(300):
        draws = randn(20, seed=seed)
        groups = draw_groups(20, seed)
        without = [(draws.sum() - draws[list(group)].sum()) / (20 - len(group)) for group in groups]
        values = pseudo_values(
            draws.mean().square().expand(30), [left.square().expand(30) for left in without], shared=True
        )
        found = Mean.of(values)
        held += abs(found.value - 1 / 20) <= found.margin
    assert held / 300 > 0.9


def test_figures_that_do_not_depend_on_draws_stay_as_they_are():
    whole = randn(6) / 3
    without = [whole * (1 + 1e-16 * number) for number in range(4)]
    torch.testing.assert_close(pseudo_values(whole, without, shared=True), whole[:, None].expand(6, 4))
    nothing = torch.zeros(6).double()
    assert torch.equal(pseudo_values(nothing, [nothing] * 4, shared=True), torch.zeros(6, 4).double())


def test_methods_with_fewer_groups_of_draws_have_nan_for_the_others():
    joined = join_methods([torch.ones(4, 1, 2), torch.zeros(4, 3, 2)])
    assert joined.shape == (2, 4, 3, 2)
    assert joined[0, 0, :, 0].isnan().tolist() == [False, True, True]
    assert not bool(joined[1].isnan().any())
