"""Closed forms of Shapley values against enumeration."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia import AbsentiaError
from absentia.coalitions import enumerate_coalitions
from absentia.cube.diagonals import shapley_functional
from absentia.cube.kernels import CubeKernel, Part, signs_of

EVERY = signs_of(enumerate_coalitions(6))


def kernel_of(seed, largest, part=Part.ODD):
    weights = largest * torch.rand(6, generator=torch.Generator().manual_seed(seed)).double() + 0.01
    return CubeKernel(part, weights, amplitude=0.7, noise=0.01, lowest=3.0)


def covariances_of_values(kernel):
    """The covariances of the values of all coalitions, with the noise that a coalition shares with its complement."""
    noise = torch.eye(64).double() - torch.eye(64).double().flip(1)
    noise[[0, 63]] = 0  # the values of ∅ and of all players are known
    return kernel(EVERY, EVERY) + kernel.noise * noise


@given(seed=st.integers(0, 1000), largest=st.floats(0.01, 1.4))
def test_covariances_are_shapley_values_of_the_covariances_of_values(seed, largest):
    kernel = kernel_of(seed, largest)
    drawn = [1, 7, 30, 63]
    # For each drawn coalition, its covariances with the values of all coalitions are a game.
    expected = ab.shapley(ab.ValueTable(covariances_of_values(kernel)[drawn])).values
    torch.testing.assert_close(shapley_functional(kernel, EVERY[drawn]).covariances, expected, atol=1e-9, rtol=1e-7)


@given(seed=st.integers(0, 1000), largest=st.floats(0.01, 1.4))
def test_variances_are_those_of_shapley_values_of_random_games(seed, largest):
    kernel = kernel_of(seed, largest)
    # Shapley values are linear in the values: their covariances follow from those of the values of all coalitions.
    by_values = ab.shapley(ab.ValueTable(torch.eye(64).double())).values  # (coalitions, players)
    expected = (by_values.T @ covariances_of_values(kernel) @ by_values).diagonal()
    torch.testing.assert_close(shapley_functional(kernel, EVERY[:1]).variances, expected, atol=1e-9, rtol=1e-7)


def test_many_players_need_few_nodes():
    generator = torch.Generator().manual_seed(0)
    weights = 0.05 * torch.rand(200, generator=generator).double() + 0.001
    kernel = CubeKernel(Part.ODD, weights, amplitude=1.0, noise=0.01)
    signs = signs_of(torch.rand(1, 200, generator=generator) < 0.5)
    values = shapley_functional(kernel, signs).covariances[0]
    everyone = torch.ones(1, 200).double()
    # Shapley values add up to v(N) − v(∅), which is twice the odd part of v(N).
    torch.testing.assert_close(values.sum(), 2 * kernel(everyone, signs)[0, 0], rtol=1e-10, atol=1e-10)


def test_the_even_part_has_no_shapley_values():
    with pytest.raises(AbsentiaError, match="odd part"):
        shapley_functional(kernel_of(0, 0.5, Part.EVEN), EVERY)
