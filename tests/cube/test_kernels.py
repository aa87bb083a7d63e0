"""The covariances of values against their definition as products over the players."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia.coalitions import enumerate_coalitions
from absentia.cube.kernels import CubeKernel, Part, part_of, signs_of

EVERY = signs_of(enumerate_coalitions(5))


def kernel_of(part, seed=0, largest=0.8, players=5):
    weights = largest * torch.rand(players, generator=torch.Generator().manual_seed(seed)).double() + 0.01
    return CubeKernel(part, weights, amplitude=0.7, noise=0.01, lowest=3.0)


def product(kernel, signs, others):
    """Π (1 + r s t) for all pairs of coalitions."""
    return (1 + kernel.relevances * signs[:, None] * others).prod(-1)


def by_definition(kernel, signs, others):
    """The odd or even part of the product, scaled to 1 for a coalition with itself, and the lowest order."""
    sign = -1 if kernel.part is Part.ODD else 1
    part = (product(kernel, signs, others) + sign * product(kernel, signs, -others)) / 2
    itself = (product(kernel, signs[:1], signs[:1]) + sign * product(kernel, signs[:1], -signs[:1])) / 2
    return kernel.amplitude * part / itself + of_lowest_order(kernel, signs, others)


def of_lowest_order(kernel, signs, others):
    """The covariances of a sum over the players whose slopes vary with their weights, or of a constant."""
    if kernel.part is Part.EVEN:
        return kernel.lowest * torch.ones(len(signs), len(others)).double()
    variances = kernel.lowest * kernel.weights / kernel.weights.sum()
    return (signs * variances) @ others.T


@pytest.mark.parametrize("part", Part)
@given(seed=st.integers(0, 1000), largest=st.floats(0.001, 1.4))
def test_covariances_are_products_over_the_players(part, seed, largest):
    kernel = kernel_of(part, seed, largest)
    torch.testing.assert_close(kernel(EVERY, EVERY[3:9]), by_definition(kernel, EVERY, EVERY[3:9]))


@pytest.mark.parametrize("part", Part)
def test_the_factor_turns_products_into_covariances(part):
    kernel = kernel_of(part)
    sign = -1 if part is Part.ODD else 1
    products = (product(kernel, EVERY, EVERY) + sign * product(kernel, EVERY, -EVERY)) / 2
    expected = kernel.amplitude * math.exp(kernel.log_factor) * products
    lowest = of_lowest_order(kernel, EVERY, EVERY)
    torch.testing.assert_close(kernel(EVERY, EVERY) - lowest, expected, atol=1e-9, rtol=1e-6)


@pytest.mark.parametrize("part", Part)
def test_covariances_of_a_thousand_players_stay_finite(part):
    kernel = CubeKernel(part, torch.full((1000,), 1.5).double(), amplitude=1.0, noise=0.1, lowest=2.0)
    signs = signs_of(torch.rand(6, 1000, generator=torch.Generator().manual_seed(0)) < 0.5)
    covariances = kernel(signs, signs)
    assert covariances.isfinite().all()
    assert math.isfinite(kernel.log_factor)
    torch.testing.assert_close(covariances.diagonal(), torch.full((6,), 3.0).double())


def test_parts_add_up_to_the_values():
    values, complements = torch.randn(2, 7, generator=torch.Generator().manual_seed(0)).double()
    odd = part_of(Part.ODD, values, complements)
    even = part_of(Part.EVEN, values, complements)
    torch.testing.assert_close(odd + even, values)
    torch.testing.assert_close(even - odd, complements)
