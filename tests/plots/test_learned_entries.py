"""The entries of learned baselines that plots and reports show."""

import torch

import absentia as ab
from absentia.plots.learned_entries import entries_of


def test_categories_have_no_quantiles_with_or_without_names():
    x = torch.stack([torch.arange(40.0) % 3, torch.rand(40), torch.arange(40.0) % 2], dim=1)
    players = ab.Players.features(["city", "age", "old"], {"old": ["no", "yes"]})
    options = ab.LearningOptions(steps=1)
    learned = ab.learn_baseline(lambda rows: rows.prod(1), x, players=players, categorical=[0], options=options)
    quantiles = entries_of(learned, most_entries=3).quantiles
    assert quantiles.isnan().all(0).tolist() == [True, False, True]
