"""What profiles say about values: kinds, ranges, other minima, and errors by a jackknife."""

from dataclasses import replace

import pytest
import torch

from absentia.learning.value_profiles import (
    GroupedFigures,
    ProfileKind,
    ProfilePath,
    SkipReason,
    ValueProfile,
    compare_with_last,
)
from seeded_draws import generator

POINTS = torch.linspace(-1, 1, 9).double()


def profile(loss_at, learned, error=0.0, **fields):
    """Return the profile of a loss that is a function of the value."""
    at_learned = float(loss_at(torch.tensor(learned).double()))
    excess = loss_at(POINTS) - at_learned
    given = {"points": POINTS, "excess": excess, "errors": torch.full_like(POINTS, error), "learned": learned}
    return ValueProfile(**(given | {"loss": at_learned} | fields))


def test_a_steep_minimum_is_determined():
    steep = profile(lambda values: 1 + (values - 0.3).abs(), learned=0.3)
    assert steep.kind is ProfileKind.DETERMINED
    assert (steep.low, steep.high, steep.other_minima) == (0.3, 0.3, ())


def test_a_plateau_is_a_range_with_the_learned_value_in_it():
    plateau = profile(lambda values: 1 + values.clamp_min(0), learned=-0.9)
    assert plateau.kind is ProfileKind.IN_A_RANGE
    assert (plateau.low, plateau.high) == (-1.0, 0.0)
    beyond = profile(lambda values: 1 + (values + 0.8).clamp_min(0), learned=-0.8)
    assert (beyond.low, beyond.high) == (-1.0, -0.8)


@pytest.mark.parametrize(("error", "kind"), [(0.0, ProfileKind.DETERMINED), (0.2, ProfileKind.LEVEL)])
def test_two_standard_errors_are_level(error, kind):
    assert profile(lambda values: 1 + 0.2 * values.square(), learned=0.0, error=error).kind is kind


def test_equal_losses_are_no_effect_and_small_differences_are_level():
    assert profile(lambda values: 1 + 0 * values, learned=0.1).kind is ProfileKind.NO_EFFECT
    assert profile(lambda values: 1 + 1e-4 * values, learned=0.1).kind is ProfileKind.LEVEL
    assert profile(lambda values: 1 + 1e-7 * values, learned=0.1, rounding=1e-6).kind is ProfileKind.NO_EFFECT


def test_level_minima_are_several():
    two = profile(lambda values: 1 + (values.square() - 0.25).abs(), learned=0.5)
    assert two.kind is ProfileKind.SEVERAL_MINIMA
    assert two.other_minima == (-0.5,)
    higher = profile(lambda values: 1 + (values.square() - 0.25).abs() - 0.1 * values, learned=0.5)
    assert higher.kind is ProfileKind.DETERMINED


def test_a_hill_that_is_no_higher_than_the_errors_at_its_sides_does_not_part_them():
    """Near values differ by less, with smaller errors, than far ones: that makes no second minimum."""
    excess = torch.tensor([5.0, 0.1, 0.03, 0.02, 0.0, 0.02, 0.03, 0.1, 5.0]).double()
    errors = torch.tensor([0.1, 0.06, 0.002, 0.002, 0.0, 0.002, 0.002, 0.06, 0.1]).double()
    valley = ValueProfile(POINTS, excess, errors, learned=0.0, loss=1.0)
    assert (valley.kind, valley.low, valley.high) == (ProfileKind.IN_A_RANGE, -0.75, 0.75)


def test_codes_have_no_range():
    codes = ValueProfile(
        torch.tensor([0.0, 1.0, 2.0]).double(),
        torch.tensor([0.0, 0.0, 0.5]).double(),
        torch.zeros(3).double(),
        learned=1.0,
        loss=1.0,
        path=ProfilePath.CODES,
    )
    assert (codes.kind, codes.other_minima) == (ProfileKind.SEVERAL_MINIMA, (0.0,))
    certain = replace(codes, excess=torch.tensor([0.2, 0.0, 0.5]).double())
    assert (certain.kind, certain.other_minima) == (ProfileKind.DETERMINED, ())


def test_a_player_that_is_additive_is_said_to_be_so_unless_it_has_no_effect():
    assert profile(lambda values: 1 + values.abs(), learned=0.0, additive=True).kind is ProfileKind.ADDITIVE
    assert profile(lambda values: 1 + 0 * values, learned=0.0, additive=True).kind is ProfileKind.NO_EFFECT


def test_a_player_without_a_profile_says_nothing():
    nothing = torch.zeros(0).double()
    skipped = ValueProfile(nothing, nothing, nothing, 0.2, 1.0, path=ProfilePath.NONE, reason=SkipReason.COST)
    assert (skipped.kind, skipped.low, skipped.other_minima) == (ProfileKind.NOT_PROFILED, 0.2, ())
    assert replace(skipped, reason=SkipReason.FIXED).kind is ProfileKind.FIXED


def test_the_jackknife_of_a_mean_gives_its_standard_error():
    """With one sample in each group, the jackknife of a mean is its usual standard error."""
    values = torch.randn(40, 3, generator=generator()).double()
    sums = values[None, :, None]  # (figures, groups, owners, points)
    compared = compare_with_last(GroupedFigures(sums, torch.ones(1, 40, 1).double()), lambda figures: 5 * figures[0])
    differences = values - values[:, -1:]
    torch.testing.assert_close(compared.losses[0], 5 * values.mean(0))
    torch.testing.assert_close(compared.errors[0], 5 * differences.std(0) / 40**0.5)


def test_groups_without_a_sample_of_an_owner_do_not_count_for_it():
    """The second owner has samples in the first half of the groups only; the third has one."""
    values = torch.randn(40, 3, 2, generator=generator()).double()
    weights = torch.ones(40, 3).double()
    weights[20:, 1] = 0
    weights[1:, 2] = 0
    compared = compare_with_last(
        GroupedFigures((values * weights[..., None])[None], weights[None]), lambda one: one[0]
    )
    differences = values[:20, 1] - values[:20, 1, -1:]
    torch.testing.assert_close(compared.errors[1], differences.std(0) / 20**0.5)
    assert compared.errors[2].tolist() == [0.0, 0.0]
