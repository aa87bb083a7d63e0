"""The fit of kernels: gradients against differences, and players that matter against those that do not."""

import math

import pytest
import torch

from absentia.cube.kernels import Part, signs_of
from absentia.cube.likelihood import Stage, fit_kernel, kernel_of, loss_of
from absentia.data import seeded


def drawn(players, count, seed=0):
    return signs_of(torch.rand(count, players, generator=torch.Generator().manual_seed(seed)) < 0.5)


@pytest.mark.parametrize("part", Part)
def test_the_loss_is_the_negative_log_likelihood_of_a_normal_distribution(part):
    signs = drawn(5, 12)
    values = torch.randn(12, generator=torch.Generator().manual_seed(1)).double()
    parameters = torch.tensor([0.1, 0.2, 0.3, 0.1, 0.4, 0.5, 0.05]).double().log()
    kernel = kernel_of(part, parameters)
    covariances = kernel(signs, signs) + kernel.noise * torch.eye(12).double()
    normal = torch.distributions.MultivariateNormal(torch.zeros(12).double(), covariances)
    prior = (parameters[:5] - parameters[:5].mean()).square().sum() / 2
    expected = -normal.log_prob(values) - 6 * math.log(2 * math.pi) + prior
    assert loss_of(part, parameters, signs, values).value == pytest.approx(float(expected))


@pytest.mark.parametrize("part", Part)
def test_the_gradient_is_that_of_the_loss(part):
    signs = drawn(6, 30)
    values = torch.randn(30, generator=torch.Generator().manual_seed(1)).double()
    parameters = torch.tensor([0.1, 0.2, 0.3, 0.1, 0.4, 0.05, 0.5, 0.05]).double().log()
    gradient = loss_of(part, parameters, signs, values).gradient
    for entry in range(8):
        step = torch.zeros(8).double()
        step[entry] = 1e-6
        above = loss_of(part, parameters + step, signs, values).value
        below = loss_of(part, parameters - step, signs, values).value
        assert float(gradient[entry]) == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-5)


def test_players_that_interact_get_larger_weights():
    signs = drawn(10, 300)
    values = signs[:, 0] * signs[:, 1] * signs[:, 2]
    kernel = fit_kernel(Part.ODD, signs, values, seeded(0))
    assert kernel.weights[:3].min() > 3 * kernel.weights[3:].max()


def test_a_fit_makes_values_more_likely_than_the_first_weights():
    signs = drawn(8, 200)
    values = (signs[:, :3].prod(1) + signs[:, 3]) / 2**0.5
    untouched = fit_kernel(Part.ODD, signs, values, seeded(0), stages=(Stage(200, 1),))
    fitted = fit_kernel(Part.ODD, signs, values, seeded(0))

    def loss(kernel):
        parameters = torch.cat([kernel.weights, torch.tensor([kernel.amplitude, kernel.noise]).double()]).log()
        return loss_of(Part.ODD, parameters, signs, values).value

    assert loss(fitted) < loss(untouched) - 10


def test_values_that_are_all_zero_can_be_fitted():
    kernel = fit_kernel(Part.EVEN, drawn(4, 20), torch.zeros(20).double(), seeded(0))
    assert kernel.weights.isfinite().all()
