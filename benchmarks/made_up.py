"""Samples with known ground truth: Gaussian classes with their Bayes classifier, and stand-ins for them.

The classifier is calibrated by construction, cheap to evaluate, and samples never run out. So an audit can be
repeated thousands of times.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from absentia.absences import Fill, StandIns
from absentia.absences.protocol import ConditionalFill
from absentia.auditing.estimates import Mean
from absentia.auditing.jackknife import Drawn, draw_groups, pseudo_values
from absentia.auditing.split import ByClass, ByValue, predict


@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """Classes with Gaussian samples of variance 1 around their means, and their Bayes classifier."""

    means: Tensor  # (classes, entries)
    frequencies: Tensor  # (classes,)

    @classmethod
    def of(cls, frequencies: list[float], entries: int, apart: float, seed: int = 0) -> GaussianClasses:
        """Draw means with an average distance of ``apart`` between each pair."""
        generator = torch.Generator().manual_seed(seed)
        means = torch.randn(len(frequencies), entries, generator=generator).double()
        distances = torch.pdist(means)
        return cls(apart * means / distances.mean(), torch.tensor(frequencies).double())

    def draw(self, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw samples and their classes."""
        y = torch.multinomial(self.frequencies, samples, replacement=True, generator=generator)
        noise = torch.randn(samples, self.means.shape[1], generator=generator).double()
        return self.means[y] + noise, y

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the log-probabilities of the classes, up to a constant in each row."""
        rows = rows.double()
        return self.frequencies.log() + rows @ self.means.T - self.means.square().sum(1) / 2

    @property
    def neutral(self) -> Tensor:
        """The point that is equally far from all means, where the classifier returns the class frequencies."""
        differences = self.means[1:] - self.means[0]
        squares = self.means.square().sum(1)
        return torch.linalg.lstsq(differences, (squares[1:] - squares[0])[:, None] / 2, driver="gelsd").solution[:, 0]


def log_odds(logits: Tensor) -> Tensor:
    """Return the log-odds of every class."""
    logarithms = logits.log_softmax(-1)
    return logarithms - torch.log(-torch.expm1(logarithms))


@dataclass(frozen=True, eq=False)
class Blend:
    """Stand-ins that blend a share of each sample with a background."""

    share: float
    background: Tensor  # (entries), or (draws, entries) for random backgrounds that all samples share

    def bind(self, x: Tensor) -> Fill:
        """Mix samples and background."""
        background = self.background.reshape(1, -1, *x.shape[1:]).to(x.dtype)
        return StandIns(x, self.share * x[:, None] + (1 - self.share) * background)


@dataclass(frozen=True, eq=False)
class Contrary:
    """Stand-ins that contradict the sample, more strongly the more of it is present."""

    strength: float
    neutral: Tensor

    def bind(self, x: Tensor) -> Fill:
        """Mirror samples at the neutral point."""
        return ConditionalFill(x, (0,), self._stand_ins)

    def _stand_ins(self, x: Tensor, presence: Tensor, _draws: list[int]) -> Tensor:
        share = presence.double().mean(-1, keepdim=True)
        mirrored = self.neutral - self.strength * share * (x - self.neutral)[:, None]
        return mirrored[:, :, None]


def split_of(y: Tensor | None, whole: Tensor, seed: int) -> ByClass | ByValue:
    """Return the score that an audit uses: of classes if there are any, otherwise of values."""
    if y is None:
        return ByValue.of_whole_samples(whole, seed)
    return ByClass.of_whole_samples(y, whole, seed)


def leak_and_invention(split: ByClass | ByValue, values: Tensor, seed: int, shares_draws: bool) -> tuple[Mean, Mean]:
    """Measure leak and invention as an audit does, from values of fully masked samples, (draws, samples, numbers)."""
    groups = draw_groups(len(values), seed)
    drawn = Drawn.of([values[list(group)].mean(0) for group in groups], groups)
    prior = split.prior()
    whole = predict(split, drawn.mean, prior)
    others = [predict(split, left, prior) for left in drawn.without]
    leaks = pseudo_values(whole.leak, [other.leak for other in others], shares_draws)
    inventions = pseudo_values(whole.invention, [other.invention for other in others], shares_draws)
    return Mean.of(leaks), Mean.of(inventions)
