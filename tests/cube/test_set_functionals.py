"""Indices and order-wise values of a Gaussian process against enumeration."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import absentia as ab
from absentia.coalitions import enumerate_coalitions
from absentia.cube.kernels import CubeKernel, Part, signs_of
from absentia.cube.set_functionals import (
    _points_of,
    all_sets,
    most_added_players,
    noise_matters,
    set_functional,
    set_means,
)
from absentia.indices import INDICES
from absentia.solvers.order_wise import order_weights

PLAYERS = 6
EVERY = signs_of(enumerate_coalitions(PLAYERS))
# All players together come first, as in a posterior.
DRAWN = EVERY[[63, 1, 7, 30, 56]]
NAMES = ["SII", "k-SII", "STII", "FSII", "BII", "FBII"]


def kernel_of(part, seed, largest=1.4):
    weights = largest * torch.rand(PLAYERS, generator=torch.Generator().manual_seed(seed)).double() + 0.01
    return CubeKernel(part, weights, amplitude=0.7, noise=0.2, lowest=3.0)


def covariances_of_values(kernel):
    """The covariances of the values of all coalitions, with the noise that a coalition shares with its complement."""
    sign = -1 if kernel.part is Part.ODD else 1
    noise = torch.eye(64).double() + sign * torch.eye(64).double().flip(1)
    noise[[0, 63]] = 0  # the values of ∅ and of all players are known
    return kernel(EVERY, EVERY) + kernel.noise * noise


def numbers_of(sets):
    """The places of sets in counting order."""
    return (2**sets).sum(1)


def in_order_of_sets(terms, size):
    """The numbers of all sets of a size of exact terms, in the order of `all_sets`."""
    is_chosen = terms.orders == size
    effects = terms.effects[is_chosen].view(terms.samples, -1)
    found = numbers_of_rows(terms.sets[is_chosen].view(terms.samples, -1, PLAYERS)[0])
    wanted = numbers_of(all_sets(PLAYERS, size))
    return effects[:, (found[:, None] == wanted).long().argmax(0)]


def numbers_of_rows(rows):
    return (rows.long() * 2 ** torch.arange(PLAYERS)).sum(1)


@pytest.mark.parametrize("part", Part)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1000), largest=st.floats(0.01, 1.4), order=st.integers(1, 4))
def test_functionals_are_the_indices_of_covariances(name, part, seed, largest, order):
    kernel = kernel_of(part, seed, largest)
    covariances = covariances_of_values(kernel)
    # For each drawn coalition, its covariances with the values of all coalitions are a game.
    expected = ab.index(ab.ValueTable(covariances[numbers_of_rows(DRAWN > 0)]), name, order=order)
    # Indices are linear in the values: their covariances follow from those of the values.
    by_value = ab.index(ab.ValueTable(torch.eye(64).double()), name, order=order)
    for size in range(order + 1):
        weights = INDICES[name].set_weights(size, order, PLAYERS, most_added_players(kernel))
        found = set_functional(kernel, DRAWN, all_sets(PLAYERS, size), weights)
        torch.testing.assert_close(found.covariances, in_order_of_sets(expected, size), atol=1e-9, rtol=1e-8)
        linear = in_order_of_sets(by_value, size)
        variances = (linear.T @ covariances @ linear).diagonal()
        torch.testing.assert_close(found.variances, variances, atol=1e-9, rtol=1e-8)


@pytest.mark.parametrize("part", Part)
@pytest.mark.parametrize("orders", [[0, 1, 2, 3, 4, 5], [5, 2]])
def test_functionals_are_the_order_wise_values_of_covariances(part, orders):
    kernel = kernel_of(part, 3)
    covariances = covariances_of_values(kernel)
    expected = ab.order_shapley(ab.ValueTable(covariances[numbers_of_rows(DRAWN > 0)]), orders).values
    by_value = ab.order_shapley(ab.ValueTable(torch.eye(64).double()), orders).values.flatten(1)
    weights = order_weights(PLAYERS, orders, most_added_players(kernel))
    found = set_functional(kernel, DRAWN, all_sets(PLAYERS, 1), weights)
    torch.testing.assert_close(found.covariances, expected.flatten(1), atol=1e-9, rtol=1e-8)
    variances = (by_value.T @ covariances @ by_value).diagonal()
    torch.testing.assert_close(found.variances, variances, atol=1e-9, rtol=1e-8)


@pytest.mark.parametrize("part", Part)
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_means_are_weighted_sums_of_covariances(part, size, monkeypatch):
    from absentia.cube import set_functionals

    monkeypatch.setattr(set_functionals, "_AT_ONCE", 500)  # so that there are several blocks of rows
    kernel = kernel_of(part, 5)
    row_weights = torch.randn(5, generator=torch.Generator().manual_seed(1)).double()
    weights = INDICES["FSII"].set_weights(size, 3, PLAYERS, PLAYERS)
    sets = all_sets(PLAYERS, size)
    means = set_means(kernel, DRAWN, row_weights, sets, weights)
    torch.testing.assert_close(means, row_weights @ set_functional(kernel, DRAWN, sets, weights).covariances)


def test_few_of_many_sets_have_the_numbers_of_all():
    generator = torch.Generator().manual_seed(0)
    kernel = CubeKernel(Part.EVEN, 0.3 * torch.rand(40, generator=generator).double() + 0.01, 0.7, 0.1)
    signs = signs_of(torch.rand(3, 40, generator=generator) < 0.5)
    weights = INDICES["FSII"].set_weights(2, 2, 40, most_added_players(kernel))
    sets = all_sets(40, 2)
    chosen = torch.tensor([3, 77, 300, 779])
    every = set_functional(kernel, signs, sets, weights)
    few = set_functional(kernel, signs, sets[chosen], weights)
    torch.testing.assert_close(few.covariances, every.covariances[:, chosen])
    torch.testing.assert_close(few.variances, every.variances[chosen])


def test_walsh_terms_of_many_players_are_left_out_only_if_they_do_not_matter():
    generator = torch.Generator().manual_seed(0)
    players = 150
    kernel = CubeKernel(Part.ODD, 0.05 * torch.rand(players, generator=generator).double() + 0.001, 1.0, 0.01)
    most = most_added_players(kernel)
    assert 10 < most < 60
    signs = signs_of(torch.rand(3, players, generator=generator) < 0.5)
    sets = all_sets(players, 1)
    few, more = (
        set_functional(kernel, signs, sets, INDICES["k-SII"].set_weights(1, 2, players, added))
        for added in (most, most + 40)
    )
    torch.testing.assert_close(few.covariances, more.covariances, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(few.variances, more.variances, atol=1e-12, rtol=1e-12)


def test_numbers_of_many_players_add_up():
    generator = torch.Generator().manual_seed(0)
    players = 120
    everyone = torch.ones(1, players).double()
    signs = torch.cat([everyone, signs_of(torch.rand(3, players, generator=generator) < 0.5)])
    weights = 0.1 * torch.rand(players, generator=generator).double() + 0.001
    for part in Part:
        kernel = CubeKernel(part, weights, 1.0, 1e-9)
        total = 0.0
        for size in (1, 2):
            of_sets = INDICES["FSII"].set_weights(size, 2, players, most_added_players(kernel))
            numbers = set_functional(kernel, signs, all_sets(players, size), of_sets)
            total = total + numbers.covariances.sum(1)
        # The numbers of all sets but ∅ add up to v(N) − v(∅).
        difference = kernel(signs, everyone) - kernel(signs, -everyone)
        torch.testing.assert_close(total, difference[:, 0], atol=1e-6, rtol=1e-8)


def test_noise_counts_where_contexts_are_few():
    matters = noise_matters(100, 1)
    assert matters[[0, 1, 98, 99]].all()
    assert not matters[50]
    assert matters.tolist() == matters.flip(0).tolist()


def test_all_sets_are_there_once():
    for size in range(5):
        numbers = numbers_of(all_sets(PLAYERS, size))
        assert len(numbers.unique()) == len(numbers)
        expected = (enumerate_coalitions(PLAYERS).sum(1) == size).sum()
        assert len(numbers) == expected


@pytest.mark.parametrize(
    ("of_terms", "points"),
    [
        ([3.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1),
        ([2.0, -2.0, 2.0, -2.0, 2.0, -2.0], 2),
        ([0.0, 4.0, 0.0, 4.0, 0.0, 0.0], 2),  # there are at most four added players
        ([1.0, 0.5, 0.25, 0.0, 0.0, 1.0], 4),
    ],
)
def test_as_few_points_as_needed_give_the_weighted_sum_of_coefficients(of_terms, points):
    weights = torch.tensor([of_terms], dtype=torch.float64)
    coefficients = torch.tensor([0.7, -1.3, 0.2, 2.1, -0.4, 0.0], dtype=torch.float64)
    found = _points_of(weights, most_added=4)
    powers = torch.stack([torch.ones_like(found.points), *[found.points] * 5], dim=1).cumprod(1)
    values = powers @ coefficients.to(torch.complex128)
    assert len(found.points) == points
    torch.testing.assert_close((found.weights @ values).real, weights @ coefficients)
