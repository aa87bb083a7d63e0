"""The fit of kernels: gradients against differences, and players that matter against those that do not."""

import math

import pytest
import torch

from absentia.cube.kernels import Part, signs_of
from absentia.cube.likelihood import PartValues, Stage, fit_kernels, kernels_of, loss_of, weights_by_slope
from absentia.data import seeded


def drawn(players, count, seed=0):
    return signs_of(torch.rand(count, players, generator=torch.Generator().manual_seed(seed)) < 0.5)


def random_parts(parts, count):
    generator = torch.Generator().manual_seed(1)
    return [PartValues(part, torch.randn(count, generator=generator).double()) for part in parts]


def fit(signs, parts, stages=None):
    start = weights_by_slope(signs, parts[0].values)
    if stages is None:
        return fit_kernels(signs, parts, start, seeded(0))
    return fit_kernels(signs, parts, start, seeded(0), stages)


@pytest.mark.parametrize("parts", [[Part.ODD], [Part.EVEN], [Part.ODD, Part.EVEN]])
def test_the_loss_is_the_negative_log_likelihood_of_a_normal_distribution(parts):
    signs = drawn(5, 12)
    values = random_parts(parts, 12)
    ends = [0.5, 0.05, 3.0, 0.3, 0.02, 7.0][: 3 * len(parts)]
    parameters = torch.tensor([0.1, 0.2, 0.3, 0.1, 0.4, *ends]).double().log()
    expected = (parameters[:5] - parameters[:5].mean()).square().sum() / 4
    for kernel, of_part in zip(kernels_of(parameters, values), values, strict=True):
        covariances = kernel(signs, signs) + kernel.noise * torch.eye(12).double()
        normal = torch.distributions.MultivariateNormal(torch.zeros(12).double(), covariances)
        expected -= normal.log_prob(of_part.values) + 6 * math.log(2 * math.pi)
    assert loss_of(parameters, signs, values).value == pytest.approx(float(expected))


@pytest.mark.parametrize("parts", [[Part.ODD], [Part.EVEN], [Part.ODD, Part.EVEN]])
def test_the_gradient_is_that_of_the_loss(parts):
    signs = drawn(6, 30)
    values = random_parts(parts, 30)
    ends = [0.5, 0.05, 3.0, 0.3, 0.02, 7.0][: 3 * len(parts)]
    parameters = torch.tensor([0.1, 0.2, 0.3, 0.1, 0.4, 0.05, *ends]).double().log()
    gradient = loss_of(parameters, signs, values).gradient
    for entry in range(len(parameters)):
        step = torch.zeros(len(parameters)).double()
        step[entry] = 1e-6
        above = loss_of(parameters + step, signs, values).value
        below = loss_of(parameters - step, signs, values).value
        assert float(gradient[entry]) == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-5)


def test_players_that_interact_get_larger_weights():
    signs = drawn(10, 300)
    (kernel,) = fit(signs, [PartValues(Part.ODD, signs[:, :3].prod(1))])
    assert kernel.weights[:3].min() > 3 * kernel.weights[3:].max()


def test_both_parts_have_the_same_weights_and_amplitudes_of_their_own():
    signs = drawn(10, 300)
    parts = [PartValues(Part.ODD, signs[:, :3].prod(1)), PartValues(Part.EVEN, signs[:, 3:5].prod(1))]
    odd, even = fit(signs, parts)
    assert torch.equal(odd.weights, even.weights)
    assert odd.weights[:5].min() > 3 * odd.weights[5:].max()
    assert odd.amplitude != even.amplitude


def test_the_even_part_tells_which_players_matter_where_the_odd_part_is_almost_linear():
    signs = drawn(10, 300)
    odd = PartValues(Part.ODD, signs.mean(1) + 1e-4 * torch.randn(300, generator=seeded(0)).double())
    kernel, _ = fit(signs, [odd, PartValues(Part.EVEN, signs[:, 3:5].prod(1))])
    others = [0, 1, 2, 5, 6, 7, 8, 9]
    assert kernel.weights[3:5].min() > 3 * kernel.weights[others].max()


def test_a_fit_makes_values_more_likely_than_the_first_weights():
    signs = drawn(8, 200)
    parts = [PartValues(Part.ODD, (signs[:, :3].prod(1) + signs[:, 3]) / 2**0.5)]

    def loss(kernel):
        ends = torch.tensor([kernel.amplitude, kernel.noise, kernel.lowest]).double()
        parameters = torch.cat([kernel.weights, ends]).log()
        return loss_of(parameters, signs, parts).value

    (untouched,) = fit(signs, parts, stages=(Stage(200, 1),))
    (fitted,) = fit(signs, parts)
    assert loss(fitted) < loss(untouched) - 10


def test_values_that_are_all_zero_can_be_fitted():
    (kernel,) = fit(drawn(4, 20), [PartValues(Part.EVEN, torch.zeros(20).double())])
    assert kernel.weights.isfinite().all()
