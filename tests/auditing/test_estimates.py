"""Means, ratios and their errors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia.auditing.estimates import Mean, estimate, ratio_of_means
from seeded_draws import randn


@given(st.integers(0, 2**31), st.booleans(), st.booleans())
def test_errors_cover_samples_and_draws_shared_or_not(seed, shared, many):
    """y = sample + draw + rest, over and over: the mean's true spread is what is reported, or a little less."""
    k, d = (12, 4) if many else (5, 3)
    parts = randn(3, 2000, k, d, seed=seed)
    values = parts[0][..., :1] + (0.7 * parts[1][:, :1] if shared else 0) + 1.5 * parts[2]
    found = estimate(values)
    assert 0.88 < float(found.error.square().mean() / found.value.var()) < (1.18 if shared else 1.3)


def test_one_sample_has_no_error_and_one_draw_has_that_of_samples():
    assert math.isnan(estimate(randn(1, 5)).error)
    values = randn(9, 1)
    assert float(estimate(values).error) == pytest.approx(float(values.std() / 3))


def test_a_ratio_of_means_has_the_error_of_the_delta_method():
    upper = randn(4000, 30, 1)
    lower = 5 + randn(4000, 30, 1, seed=1)
    found = ratio_of_means(upper + lower, lower)
    assert float(found.error.mean() / found.value.std()) == pytest.approx(1, abs=0.1)


def is_above(values):
    return Mean.of(values).is_above()


def test_few_samples_or_draws_need_more_errors():
    values = torch.tensor([0.9, 1.1, 1.0, 1.0]).double()[:, None] - 0.89
    assert is_above(values + 0.05)
    assert not is_above(values)  # 2.7 errors; Student's factor for three degrees of freedom is 3.3
    many = values.repeat(20, 1)
    assert is_above(many)
    # Two draws that differ say little, however many samples share them.
    draws = torch.tensor([0.2, 0.6]).double().repeat(100, 1) + 0.01 * randn(100, 2)
    assert not is_above(draws)
    assert not is_above(torch.ones(1, 5).double())
    assert is_above(torch.ones(3, 1).double())


def test_few_shared_draws_do_not_make_differences_of_nothing():
    parts = randn(3, 500, 40, 3)
    values = parts[0][..., :1] + parts[1][:, :1] + parts[2]  # of samples, of draws, and of both
    assert sum(is_above(one) for one in values) / 500 < 0.05
    assert sum(is_above(one + 3) for one in values) / 500 > 0.5
