"""Samples, absences and models for tests of audits."""

import math

import torch

import absentia as ab
from absentia.absences import StandIns
from seeded_draws import randn

METHODS = {"zero": ab.Baseline(0.0), "half": ab.Baseline(0.5)}


class Keeps:
    """An absence that masks nothing: every player keeps its values."""

    def bind(self, x):
        return StandIns(x, x[:, None])


class MeanOfPresent:
    """An absence that depends on the coalition: the mean of the present entries, and that plus 1, stand in."""

    def bind(self, x):
        return MeanOfPresentFill(x)


class MeanOfPresentFill:
    """The absence `MeanOfPresent` for some samples: each draw adds its number to the mean."""

    def __init__(self, x, numbers=(0, 1)):
        self.x = x
        self.numbers = numbers
        self.draws = len(numbers)

    def __call__(self, samples, presence):
        x = self.x[samples][:, None]
        mean = (x * presence).sum(-1, keepdim=True) / presence.sum(-1, keepdim=True).clamp(min=1)
        stand_ins = torch.stack([mean + number for number in self.numbers], dim=2)
        return torch.where(presence.unsqueeze(2), x.unsqueeze(2), stand_ins)

    def select(self, samples=None, draws=None):
        x = self.x
        numbers = self.numbers
        if samples is not None:
            x = x[samples]
        if draws is not None:
            numbers = [numbers[draw] for draw in draws]
        return MeanOfPresentFill(x, numbers)


class OwnModel:
    """An absence that brings its own model, which reads NaN as 0.5."""

    def bind(self, x):
        return StandIns(x, torch.full_like(x[:1], math.nan)[None])

    def instead_of(self, model):
        return lambda rows: model(rows.nan_to_num(0.5))


def samples(count, entries, seed=0):
    return torch.rand(count, entries, generator=torch.Generator().manual_seed(seed)).double()


def two_blobs(samples=200, entries=4):
    """Return samples, classes and a model: the sign of the entries tells the two classes apart."""
    y = torch.arange(samples) % 2
    signs = 2 * y[:, None] - 1
    x = signs + 0.5 * randn(samples, entries)

    def model(rows):
        total = rows.sum(1)
        return torch.stack([-total, total], 1)

    return x, y, model
