"""Leak and invention against oracles: fits by scipy, known information, constants, and what cannot be fitted."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from absentia.auditing.estimates import Mean
from absentia.auditing.recalibration import FOLDS, Scale, folds_of, unbiased
from absentia.auditing.split import ByClass, ByValue, predict
from seeded_draws import randn


def draw_classes(samples, frequencies, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.multinomial(torch.tensor(frequencies).double(), samples, replacement=True, generator=generator)


def log_odds(logits):
    """The log-odds of each class against all others."""
    logarithms = logits.log_softmax(-1)
    return logarithms - torch.log1p(-logarithms.exp())


def by_class(y, most_scale, seed=0):
    return ByClass(y, seed, Scale(most_scale), y.unique())


def split_of(y, values, most_scale=1.0, seed=0):
    """Return the mean leak and invention of predictions."""
    split = by_class(y, most_scale, seed)
    prediction = predict(split, values, split.prior())
    return float(prediction.leak.nanmean()), float(prediction.invention.nanmean())


def test_constants_leak_exactly_nothing():
    y = draw_classes(60, [0.5, 0.3, 0.2])
    constant = log_odds(torch.tensor([[0.3, 2.0, -1.0]]).double()).expand(60, 3)
    split = by_class(y, 5.0)
    prediction = predict(split, constant, split.prior())
    assert torch.equal(prediction.leak, torch.zeros(60).double())
    loss = cross_entropy(torch.tensor([[0.3, 2.0, -1.0]]).double().expand(60, 3), y)
    assert float(prediction.invention.mean()) == pytest.approx(float(loss - split.prior().mean()))


def test_values_that_differ_by_rounding_alone_are_constants():
    y = torch.arange(60) % 2
    told = 1e-3 * (2.0 * y - 1)
    values = torch.stack([-told, told], 1)
    split = by_class(y, 1e4)
    assert float(predict(split, values, split.prior()).leak.mean()) > 0.5
    assert float(predict(split, values, split.prior(), rounding=1e-2).leak.abs().max()) == 0


def test_a_bound_on_the_scale_lets_no_trace_count_as_a_leak():
    y = torch.arange(200) % 2
    whole = torch.stack([-(2.0 * y - 1), 2.0 * y - 1], 1).double() * 3 + randn(200, 2)
    bounded = ByClass.of_whole_samples(y, whole, seed=0)
    leaks = []
    for blend in (1e-6, 1e-3, 0.1, 0.5):
        prediction = predict(bounded, blend * whole, bounded.prior())
        leaks.append(float(prediction.leak.mean()))
    assert abs(leaks[0]) < abs(leaks[1]) < 0.01
    assert leaks == sorted(leaks)
    assert leaks[-1] > 0.4
    free = by_class(y, 1e4)
    assert float(predict(free, 1e-3 * whole, free.prior()).leak.mean()) > 0.4  # what the bound is for


def gaussian_blobs(samples, distance, seed):
    """Two classes of a normal variable: what it tells of the class is known."""
    y = torch.arange(samples) % 2
    x = randn(samples, seed=seed) + distance * (y - 0.5)
    odds = distance * x  # the log-odds of class 1, exactly
    return y, torch.stack([-odds, odds], 1)


def information(distance):
    """The mutual information between the class and the variable, in nats, by numbers."""
    x = torch.linspace(-12, 12, 100_001).double()
    density = torch.exp(-((x - distance / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
    loss = torch.nn.functional.softplus(-distance * x)
    return math.log(2) - float((density * loss).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("sure", [0.5, 1.0, 6.0])
def test_the_leak_is_the_information_however_sure_the_predictions_are(sure):
    found = [gaussian_blobs(400, 1.5, seed) for seed in range(40)]
    parts = torch.tensor([split_of(y, sure * values, most_scale=2.0) for y, values in found])
    error = parts.std(0) / 40**0.5
    assert abs(float(parts[:, 0].mean()) - information(1.5)) < 3 * float(error[0])
    # Predictions that are as sure as they may be invent nothing.
    invention = float(parts[:, 1].mean())
    if sure == 1:
        assert abs(invention) < 3 * float(error[1])
    else:
        assert invention > 5 * float(error[1])


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 5])
def test_noise_leaks_nothing_on_average(classes):
    leaks = []
    for seed in range(300):
        y = torch.arange(100) % classes
        leaks.append(split_of(y, log_odds(randn(100, classes, seed=seed)), most_scale=1.0)[0])
    leaks = torch.tensor(leaks)
    assert abs(float(leaks.mean())) < 3e-3  # the fit alone would gain 1/2N = 5e-3 for half of the draws
    assert bool((leaks < 0).any())


def test_leak_and_invention_do_not_cancel():
    """What tells the class, and is far too sure, has the score of knowing nothing."""
    y, values = gaussian_blobs(2000, 1.5, seed=0)
    sure = 1.0
    while float(by_class(y, 1.0).scores(sure * values).mean()) < math.log(2):
        sure += 0.1
    split = by_class(y, 1.0)
    prediction = predict(split, sure * values, split.prior())
    evidence = prediction.invention - prediction.leak
    assert abs(float(evidence.mean())) < 0.02
    assert Mean.of(prediction.leak[:, None]).is_above(0.1)
    assert Mean.of(prediction.invention[:, None]).is_above(0.1)


def test_averaged_log_odds_are_normalised_and_the_remainder_is_named():
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(30, 50, 4, generator=generator).double() * 6
    averaged = log_odds(draws).mean(0)
    total = torch.sigmoid(averaged).sum(1)
    assert float(total.max()) < 0.5
    split = by_class(torch.arange(50) % 4, 1.0)
    plain = torch.nn.functional.softplus(-averaged[torch.arange(50), split.y])
    torch.testing.assert_close(split.averaging(averaged), -total.log())
    torch.testing.assert_close(split.scores(averaged) + split.averaging(averaged), plain)
    proper = log_odds(draws[0])
    assert float(split.averaging(proper).abs().max()) == 0
    torch.testing.assert_close(split.scores(proper), cross_entropy(draws[0], split.y, reduction="none"))


def test_two_classes_need_no_averaging():
    averaged = log_odds(randn(40, 50, 2) * 5).mean(0)
    assert float(by_class(torch.arange(50) % 2, 1.0).averaging(averaged).abs().max()) == 0


def covered(figures, truth):
    """The share of figures whose margin holds the truth."""
    return sum(abs(mean.value - truth) <= mean.margin + 1e-9 for mean in figures) / len(figures)


@pytest.mark.slow
def test_the_errors_of_a_leak_count_that_the_scale_was_fitted_too():
    leaks = []
    for seed in range(200):
        y, whole = gaussian_blobs(100, 2.0, seed)
        split = ByClass.of_whole_samples(y, 3 * whole, seed)
        leaks.append(Mean.of(predict(split, 0.6 * whole, split.prior()).leak[:, None]))
    y, whole = gaussian_blobs(20_000, 2.0, seed=1000)
    many = ByClass.of_whole_samples(y, 3 * whole, 0)
    truth = float(predict(many, 0.6 * whole, many.prior()).leak.mean())
    assert covered(leaks, truth) > 0.9


def test_the_errors_of_a_share_count_that_the_variance_was_measured_too():
    inventions = []
    for seed in range(200):
        full = randn(100, seed=seed)[:, None] ** 3
        split = ByValue.of_whole_samples(full, 0)
        constant = torch.full_like(full, 6.0)
        inventions.append(Mean.of(predict(split, constant, split.prior()).invention[:, None]))
    assert covered(inventions, 36 / 15) > 0.85  # which are 36 and the variance of a cube; it has heavy tails


def test_rare_classes_are_left_out_and_too_many_are_not_estimable():
    y = torch.cat([torch.arange(90) % 2, torch.tensor([2, 2, 3])])
    split = by_class(y, 1.0)
    values = log_odds(randn(93, 4))
    assert split.estimable.tolist() == [True] * 90 + [False] * 3
    prediction = predict(split, values, split.prior())
    assert prediction.leak.isnan().tolist() == [False] * 90 + [True] * 3
    # Rare classes, and those that do not occur, are left out of the predictions too.
    fitted = values[:90].sigmoid()[:, :2]
    shares = fitted / fitted.sum(1, keepdim=True)
    scores = split.estimable_scores(values[None])[0, :90]
    torch.testing.assert_close(scores, -shares[torch.arange(90), y[:90]].log())
    for classes in (torch.arange(40) // 2, torch.zeros(40, dtype=torch.int64)):
        hopeless = by_class(classes, 1.0)
        assert not bool(hopeless.estimable.any())
        assert bool(predict(hopeless, log_odds(randn(40, 20)), hopeless.prior()).leak.isnan().all())


def test_what_is_said_of_classes_that_do_not_occur_is_no_invention():
    """A network of 100 classes that knows nothing, asked for ten of them."""
    y = torch.arange(200) % 10
    constant = log_odds(torch.zeros(1, 100).double()).expand(200, 100)
    leak, invention = split_of(y, constant)
    assert leak == 0
    assert abs(invention) < 0.03  # nine frequencies of 200 samples: 9/400


@pytest.mark.parametrize("classes", [2, 10, 50])
def test_true_frequencies_invent_nothing_on_average(classes):
    frequencies = torch.rand(classes, generator=torch.Generator().manual_seed(0)).double() + 0.2
    frequencies /= frequencies.sum()
    found = []
    for seed in range(100):
        y = draw_classes(600, frequencies.tolist(), seed)
        split = by_class(y, 1.0)
        told = log_odds(frequencies.log()[None]).expand(600, classes)
        found.append(Mean.of(predict(split, told, split.prior()).invention[:, None]))
    values = torch.tensor([mean.value for mean in found])
    assert abs(float(values.mean())) < 0.01
    assert sum(mean.is_above() for mean in found) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("classes", [3, 10])
def test_calibrated_predictions_of_several_classes_invent_nothing_on_average(classes):
    """Logits are the truth: classes are drawn by them."""
    found = []
    for seed in range(200):
        logits = 1.5 * randn(300, classes, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        y = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        found.append(split_of(y, log_odds(logits), most_scale=2.0))
    leak, invention = torch.tensor(found).mean(0).tolist()
    errors = torch.tensor(found).std(0) / 200**0.5
    assert abs(invention) < 3 * float(errors[1]) + 0.002
    many = 1.5 * randn(100_000, classes)
    entropy = -(many.softmax(-1) * many.log_softmax(-1)).sum(-1).mean()
    assert leak == pytest.approx(math.log(classes) - float(entropy), abs=3 * float(errors[0]) + 0.002)


def test_values_are_split_by_a_line():
    full = randn(50)[:, None]
    values = 0.4 * full + 0.3 + 0.1 * randn(50, seed=1)[:, None]
    split = ByValue.of_whole_samples(full, seed=0)
    folds = folds_of(torch.zeros(50, dtype=torch.int64), 0)
    held_out, prior = np.zeros(50), np.zeros(50)
    for fold in range(FOLDS):
        others = (folds != fold).numpy()
        slope, offset = np.polyfit(values[others, 0], full[others, 0], 1)
        slope = min(slope, 1.0)  # it would be 2.4
        offset = float(full[others].mean()) - slope * float(values[others].mean())
        held_out[~others] = (slope * values[~others, 0] + offset - full[~others, 0]) ** 2
        prior[~others] = (float(full[others].mean()) - full[~others, 0]) ** 2
    offset = float(full.mean() - values.mean())
    fitted = (values[:, 0] + offset - full[:, 0]) ** 2
    variance = float(full.var(correction=0))
    recalibrated = unbiased(fitted, torch.as_tensor(held_out)) / variance
    torch.testing.assert_close(split.recalibrated(values[None])[0], recalibrated)
    in_sample = (full[:, 0] - full.mean()) ** 2
    expected_prior = unbiased(in_sample, torch.as_tensor(prior)) / variance
    torch.testing.assert_close(split.prior(), expected_prior)
    prediction = predict(split, values, split.prior())
    assert float(prediction.leak.mean()) == pytest.approx(float((expected_prior - recalibrated).mean()))
    score = float((values - full).square().mean()) / variance
    assert float(prediction.invention.mean()) == pytest.approx(score - float(recalibrated.mean()))


def test_constant_values_leak_nothing_and_invent_their_distance():
    full = randn(40)[:, None]
    split = ByValue.of_whole_samples(full, seed=0)
    prediction = predict(split, torch.full_like(full, 3.0), split.prior())
    assert float(prediction.leak.abs().max()) == 0
    expected = (3 - float(full.mean())) ** 2 / float(full.var(correction=0))
    assert float(prediction.invention.mean()) == pytest.approx(expected, abs=0.1)


def test_values_that_do_not_vary_or_are_too_few_are_not_estimable():
    for full in (torch.ones(40, 1).double(), randn(4)[:, None]):
        split = ByValue.of_whole_samples(full, seed=0)
        assert not bool(split.estimable.any())
        assert bool(predict(split, randn(len(full))[:, None], split.prior()).leak.isnan().all())
