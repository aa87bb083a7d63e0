"""Streams of random numbers from a seed."""

import torch

from absentia.absences import train_imputer, train_surrogate
from absentia.data import seeded, weights_drawn_from


def test_any_whole_number_is_a_seed():
    draws = [torch.rand(3, generator=seeded(seed)).tolist() for seed in (2**80, -(2**80), 2**63, -1, 0)]
    assert len({tuple(one) for one in draws}) == 5


def test_streams_of_random_numbers_differ_and_come_again():
    first = torch.rand(3, generator=seeded(0, "noise", 1))
    assert torch.equal(first, torch.rand(3, generator=seeded(0, "noise", 1)))
    assert not torch.equal(first, torch.rand(3, generator=seeded(0, "noise", 2)))
    assert not torch.equal(first, torch.rand(3, generator=seeded(1, "noise", 1)))


def test_weights_drawn_from_a_seed_change_no_random_state_of_the_user(monkeypatch):
    reseeded = []
    for device in ("cuda", "xpu"):
        monkeypatch.setattr(getattr(torch, device), "manual_seed_all", reseeded.append)
    state = torch.get_rng_state()
    with weights_drawn_from(3):
        weights = torch.rand(4)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(weights, torch.rand(4, generator=torch.Generator().manual_seed(3)))
    assert not reseeded


def test_imputers_and_surrogates_do_not_reseed_gpus(monkeypatch):
    reseeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded.append)
    data = torch.rand(20, 2)
    train_imputer(data, epochs=1, progress=False)
    train_surrogate(lambda rows: rows.sum(1), data, epochs=1, progress=False)
    assert not reseeded
