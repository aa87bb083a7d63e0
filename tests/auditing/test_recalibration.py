"""Fits of recalibration against a general optimiser."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch.nn.functional import logsigmoid, one_hot

from absentia.auditing.recalibration import FOLDS, calibrating_scale, fit_logits, folds_of
from seeded_draws import randn


def draw_classes(samples, frequencies, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.multinomial(torch.tensor(frequencies).double(), samples, replacement=True, generator=generator)


@given(st.integers(2, 5), st.floats(0.2, 5), st.integers(0, 2**31))
def test_fits_are_those_of_a_general_optimiser(classes, most_scale, seed):
    samples = 40
    targets = torch.arange(samples) % classes
    logits = randn(samples, classes, seed=seed) + 0.7 * one_hot(targets, classes)
    known = torch.ones(1, samples, dtype=torch.bool)
    fit = fit_logits(logits[None], targets, known, most_scale)
    centred = (logits - logits.mean(0)).numpy()

    def loss(point):
        scaled = point[0] * centred + point[1:]
        logarithms = scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        smoothing = point[1:] - np.logaddexp.reduce(point[1:])
        return -logarithms[np.arange(samples), targets].sum() - 0.5 * smoothing.sum()

    bounds = [(0, most_scale), *[(None, None)] * classes]
    best = minimize(loss, np.zeros(classes + 1), bounds=bounds, tol=1e-12)
    point = np.concatenate([fit.scale.numpy(), fit.offsets[0].numpy()])
    assert loss(point) <= best.fun + 1e-6
    assert 0 <= point[0] <= most_scale


def test_folds_hold_a_fifth_of_each_class():
    y = draw_classes(103, [0.7, 0.2, 0.1])
    folds = folds_of(y, seed=3)
    for number in range(3):
        counts = folds[y == number].bincount(minlength=FOLDS)
        assert int(counts.max() - counts.min()) <= 1
    assert torch.equal(folds, folds_of(y, seed=3))
    assert not torch.equal(folds, folds_of(y, seed=4))


def gaussian_blobs(samples, distance, seed):
    """Two classes of a normal variable: what it tells of the class is known."""
    y = torch.arange(samples) % 2
    x = randn(samples, seed=seed) + distance * (y - 0.5)
    odds = distance * x  # the log-odds of class 1, exactly
    return y, torch.stack([-odds, odds], 1)


def test_the_scale_of_whole_samples_is_the_one_that_calibrates_them():
    y, values = gaussian_blobs(4000, 1.5, seed=1)
    for sure in (0.03, 0.5, 1.0, 4.0, 60.0):
        scale = calibrating_scale(logsigmoid(sure * values), y)
        assert scale.value == pytest.approx(1 / sure, rel=0.1)
    always_right = torch.stack([1.0 - y, 1.0 * y], 1).double() * 40
    assert calibrating_scale(always_right, y).value == pytest.approx(1, rel=0.05)


def test_influences_tell_how_a_scale_changes_without_a_sample():
    y, values = gaussian_blobs(60, 1.5, seed=2)
    logits = logsigmoid(values)
    scale = calibrating_scale(logits, y)
    assert float(scale.influences.mean()) == pytest.approx(0, abs=1e-9)
    without = []
    for left_out in range(60):
        others = torch.arange(60) != left_out
        without.append(math.log(calibrating_scale(logits[others], y[others]).value))
    jackknifed = 59 * (math.log(scale.value) - torch.tensor(without).double())
    together = torch.stack([scale.influences, jackknifed])
    assert float(torch.corrcoef(together)[0, 1]) > 0.95
    assert float(scale.influences.std() / jackknifed.std()) == pytest.approx(1, abs=0.15)
