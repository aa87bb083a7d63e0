"""Audits of token numbers, which have neither a range nor distances."""

import torch

import absentia as ab


def test_a_token_that_does_not_occur_is_not_outside_a_range():
    tokens = torch.randint(1, 9, (30, 4), generator=torch.Generator().manual_seed(0))
    players = ab.Players.tokens(["not", "a", "bad", "film"])
    weights = torch.linspace(-1, 1, 10)
    found = ab.audit(lambda rows: weights[rows].sum(1), tokens, None, {"mask": ab.Baseline(9)}, players=players)
    assert not found.plausibility.outside.any()
    assert not any("outside the data's range" in warning for warning in found.warnings)


def test_a_number_that_does_not_occur_is_outside_the_range():
    x = torch.rand(30, 4, generator=torch.Generator().manual_seed(0))
    found = ab.audit(lambda rows: rows.prod(1), x, None, {"nine": 9.0})
    assert found.plausibility.outside.all()
    assert any("outside the data's range" in warning for warning in found.warnings)
