"""Posteriors against the textbook formulas on whole matrices."""

import math

import pytest
import torch

from absentia import AbsentiaError
from absentia.cube import posterior as posterior_module
from absentia.cube.kernels import LEAST_NOISE, CubeKernel, Part, signs_of
from absentia.cube.posterior import Functional, Posterior, factorise_

GENERATOR = torch.Generator().manual_seed(0)
SIGNS = torch.cat([torch.ones(1, 6).double(), signs_of(torch.rand(24, 6, generator=GENERATOR) < 0.5)])
VALUES = torch.randn(25, generator=GENERATOR).double()
KERNEL = CubeKernel(Part.ODD, torch.full((6,), 0.3).double(), amplitude=0.5, noise=0.2)


def noisy_covariances(signs=SIGNS):
    noise = torch.full((len(signs),), KERNEL.noise).double()
    noise[0] = LEAST_NOISE
    return KERNEL(signs, signs) + torch.diag(noise)


def test_predictions_are_conditional_means():
    fresh = signs_of(torch.rand(9, 6, generator=torch.Generator().manual_seed(3)) < 0.5)
    expected = KERNEL(fresh, SIGNS) @ torch.linalg.solve(noisy_covariances(), VALUES)
    torch.testing.assert_close(Posterior.of(KERNEL, SIGNS, VALUES).predict(fresh), expected)


def test_estimates_are_conditional_means_with_conditional_deviations():
    fresh = signs_of(torch.rand(4, 6, generator=torch.Generator().manual_seed(3)) < 0.5)
    covariances = KERNEL(SIGNS, fresh)
    posterior = Posterior.of(KERNEL, SIGNS, VALUES)
    estimate = posterior.estimate(Functional(covariances, KERNEL(fresh, fresh).diagonal()))
    solved = torch.linalg.solve(noisy_covariances(), covariances)
    torch.testing.assert_close(estimate.values, solved.T @ VALUES)
    variances = KERNEL(fresh, fresh).diagonal() - (covariances * solved).sum(0)
    for_weights = math.sqrt(1 + posterior_module._SHARE_OF_WEIGHTS * SIGNS.shape[1] / len(SIGNS))
    stretch = posterior.scale * max(1.0, posterior.surprise) * for_weights
    torch.testing.assert_close(estimate.errors, variances.sqrt() * stretch)
    torch.testing.assert_close(posterior.weights_of(Functional(covariances, variances)), solved)


def test_the_first_value_is_known():
    posterior = Posterior.of(KERNEL, SIGNS, VALUES)
    assert float(posterior.predict(SIGNS[:1])) == pytest.approx(float(VALUES[0]), abs=1e-4)


def test_surprise_is_the_deviation_of_each_value_from_what_the_others_predict():
    posterior = Posterior.of(KERNEL, SIGNS, VALUES)
    covariances = noisy_covariances()
    squares = []
    for left_out in range(1, 25):
        others = [row for row in range(25) if row != left_out]
        weights = torch.linalg.solve(covariances[others][:, others], covariances[others, left_out])
        variance = covariances[left_out, left_out] - weights @ covariances[others, left_out]
        deviation = (VALUES[left_out] - weights @ VALUES[others]) / posterior.scale
        squares.append(deviation**2 / variance)
    assert posterior.surprise == pytest.approx(float(torch.stack(squares).mean().sqrt()))


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 30])
def test_factors_are_computed_in_place_block_by_block(rows, monkeypatch):
    monkeypatch.setattr(posterior_module, "_FACTOR_BLOCK", 8)
    half = torch.randn(rows, rows, generator=torch.Generator().manual_seed(rows)).double()
    matrix = half @ half.T + torch.eye(rows).double()
    expected = torch.linalg.cholesky(matrix)
    inverse = torch.linalg.inv(matrix)
    assert factorise_(matrix)
    torch.testing.assert_close(matrix.tril(), expected)
    torch.testing.assert_close(posterior_module._diagonal_of_inverse(matrix), inverse.diagonal())


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 30])
def test_factors_are_solved_block_by_block(rows, monkeypatch):
    monkeypatch.setattr(posterior_module, "_FACTOR_BLOCK", 8)
    generator = torch.Generator().manual_seed(rows)
    factor = torch.randn(rows, rows, generator=generator).double() + 8 * torch.eye(rows).double()
    columns = torch.randn(rows, 3, generator=generator).double()
    lower = factor.tril()  # what is above the diagonal does not count
    torch.testing.assert_close(lower @ posterior_module.solve_lower(factor, columns), columns)
    torch.testing.assert_close(lower.T @ posterior_module.solve_upper(factor, columns), columns)


def test_matrices_that_are_not_positive_have_no_factor():
    assert not factorise_(-torch.eye(3).double())


def test_values_that_no_noise_makes_likely_are_refused(monkeypatch):
    monkeypatch.setattr(posterior_module, "factorise_", lambda matrix: False)
    with pytest.raises(AbsentiaError, match="vary smoothly enough"):
        Posterior.of(KERNEL, SIGNS, VALUES).predict(SIGNS)
