"""Samples in balanced order, drawn by their shares and weighed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from absentia.learning.sample_draws import balanced_order, draw_samples, shares_of
from seeded_draws import generator
from small_searches import even


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 3))
def test_a_balanced_order_holds_every_sample_once(rows, entries, seed):
    x = torch.randn(rows, entries, generator=generator(seed))
    assert sorted(balanced_order(x, even(rows), generator(seed)).tolist()) == list(range(rows))


def test_the_first_samples_of_a_balanced_order_have_nearly_the_mean_of_all():
    x = (torch.rand(500, 8, generator=generator()) < 0.3).double()
    random = torch.randperm(500, generator=generator(1))
    order = balanced_order(x, even(500), generator(1))

    def deviation(rows):
        return (x[rows].mean(0) - x.mean(0)).abs().max().item()

    for first in (16, 64):
        assert deviation(order[:first]) < 0.5 * deviation(random[:first])


def test_opposites_follow_each_other():
    half = (torch.rand(50, 9, generator=generator()) < 0.5).double()
    x = torch.cat([half, 1 - half])
    ordered = x[balanced_order(x, even(100), generator(2))]
    assert torch.equal(ordered[0::2], 1 - ordered[1::2])


def test_weighted_samples_are_balanced_by_their_weights():
    x = torch.randn(400, 3, generator=generator()).double()
    weights = torch.rand(400, generator=generator(1)).double() + 0.1
    order = balanced_order(x, weights, generator(2))

    def mean_of(rows):
        return (weights[rows, None] * x[rows]).sum(0) / weights[rows].sum()

    mean = mean_of(slice(None))
    balanced = mean_of(order[:100])
    as_they_come = mean_of(slice(100))
    assert (balanced - mean).abs().max() < 0.3 * (as_they_come - mean).abs().max()


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 3))
def test_no_sample_is_chosen_twice_and_as_many_as_asked(samples, count, seed):
    shares = shares_of(torch.randn(samples, generator=generator(seed)) ** 5)
    chosen = draw_samples(shares, count, generator(seed))
    assert len(set(chosen.rows.tolist())) == len(chosen.rows) == min(count, samples)


def test_chosen_samples_estimate_the_mean_without_bias_and_more_closely_where_few_matter():
    outputs = torch.zeros(2000).double()
    outputs[:10] = torch.arange(1, 11).double()
    shares = shares_of(outputs)
    seeds = range(300)
    estimates = torch.stack([weighted_mean(outputs, draw_samples(shares, 100, generator(seed))) for seed in seeds])
    permutations = [torch.randperm(2000, generator=generator(seed)) for seed in seeds]
    even_estimates = torch.stack([outputs[permutation[:100]].mean() for permutation in permutations])
    error = estimates.std() / len(seeds) ** 0.5
    assert abs(estimates.mean() - outputs.mean()) < 4 * error + 1e-3 * outputs.mean()
    assert estimates.std() < 0.2 * even_estimates.std()


def weighted_mean(outputs, draw):
    """Return the mean output of all samples, as estimated from those drawn."""
    return (draw.weights * outputs[draw.rows]).sum() / draw.weights.sum()


@pytest.mark.parametrize("count", [50, 1800])
def test_drawn_samples_estimate_the_mean_without_bias_however_many_are_drawn(count):
    outputs = torch.rand(2000, generator=generator()).double() ** 8
    shares = shares_of(outputs)
    draws = [draw_samples(shares, count, generator(seed)) for seed in range(200)]
    estimates = torch.stack([weighted_mean(outputs, draw) for draw in draws])
    assert abs(estimates.mean() - outputs.mean()) < 4 * estimates.std() / 200**0.5 + 1e-4


def test_samples_far_from_the_median_are_drawn_more_often():
    assert shares_of(torch.tensor([0.0, 0.0, 0.0, 4.0])).tolist() == [0.125, 0.125, 0.125, 0.625]


def test_every_other_sample_of_a_balanced_order_evens_out_the_one_before():
    rows = torch.tensor([[0.0], [1.0], [1.0], [0.0], [0.0], [1.0]])
    order = balanced_order(rows, torch.ones(6).double(), generator())
    assert order.tolist() == [2, 3, 5, 0, 1, 4]


def test_shares_of_samples_are_half_even_and_half_by_distance_from_the_median():
    outputs = torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 7.0], [1.0, 1.0]])
    # Medians 1 and 1: distances 1, 0, 1 + 6 and 0.
    expected = [(1 / 4 + part / 8) / 2 for part in (1, 0, 7, 0)]
    assert shares_of(outputs).tolist() == pytest.approx(expected)
    for same in (torch.full((5,), 3.0), torch.tensor([0.0, 1.0, torch.inf, 2.0, 3.0])):
        assert shares_of(same).tolist() == pytest.approx([0.2] * 5)


def test_samples_are_drawn_as_often_as_their_shares_and_weighed_by_the_inverse():
    shares = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05]).double()
    # Three times the shares; what exceeds 1 is shared out.
    chance = torch.tensor([1.0, 0.9, 0.45, 0.3, 0.15]).double()
    chance[1:] *= 2 / chance[1:].sum()
    chance = torch.cat([torch.ones(2).double(), chance[2:] / chance[2:].sum()])
    counts = torch.zeros(5)
    for seed in range(900):
        rows, weights = draw_samples(shares, 3, generator(seed))
        counts[rows] += 1
        inverse = 1 / chance[rows]
        assert torch.allclose(weights, inverse / inverse.mean(), rtol=1e-6)
    assert torch.allclose(counts / 900, chance.float(), atol=0.06)
    assert len(draw_samples(shares, 9, generator()).rows) == 5


@pytest.mark.parametrize("entries", [1, 4])
def test_every_second_sample_of_a_balanced_order_is_the_one_that_balances_best(entries):
    x = torch.randn(30, entries, 1, generator=generator()).double()
    x = torch.cat([x, torch.full((30, 1, 1), 5.0).double()], dim=1)  # an entry that never changes
    weights = torch.rand(30, generator=generator(1)).double() + 0.2
    order = balanced_order(x, weights, generator(2)).tolist()
    rows = x[:, :entries, 0]
    mean = (weights[:, None] * rows).sum(0) / weights.sum()
    spread = ((weights[:, None] * (rows - mean) ** 2).sum(0) / weights.sum()).sqrt()
    steps = weights[:, None] * (rows - mean) / spread
    waiting = torch.randperm(30, generator=generator(2)).tolist()
    for place, chosen in enumerate(order):
        total = steps[order[:place]].sum(0)
        lengths = {row: float((total + steps[row]).norm()) for row in waiting}
        if place % 2:
            assert chosen == min(lengths, key=lengths.get)
        else:
            assert chosen == waiting[0]
        waiting.remove(chosen)


def test_wide_samples_are_balanced_by_some_of_their_entries():
    half = torch.randn(20, 2500, generator=generator())
    x = torch.cat([half, -half])
    order = balanced_order(x, torch.ones(40).double(), generator(1))
    assert torch.equal(x[order[::2]], -x[order[1::2]])
