"""Small classifiers to learn baselines for, and options that make learning quick."""

import torch
from torch import nn

from absentia import LearningOptions
from seeded_draws import randn

QUICK = LearningOptions(steps=12, rows_per_step=2**8)


def classifier(entries=4, classes=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(entries, 16), nn.Tanh(), nn.Linear(16, classes)).double()


def slow_model(clock, model, seconds_per_call):
    """Return a model that takes this long for each call, by the clock of the tests."""

    def run(rows):
        clock.advance(seconds_per_call)
        return model(rows)

    return run


def classes_of_three():
    """Return a model, samples and classes for a baseline of each of three classes, in three parts."""
    x = randn(48, 4)
    weights = randn(4, 3, seed=5)
    return (lambda rows: torch.tanh(rows) @ weights), x, torch.arange(48) % 3
