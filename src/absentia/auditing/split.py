"""Leak and invention: the two parts of a proper score of fully masked samples.

A proper score has two parts: how little the predictions know, and how badly calibrated they are. Recalibration
removes the second part. With every player absent, there should be nothing to know:

    leak      = score of the prior − score after recalibration
    invention = score              − score after recalibration
    evidence  = score − score of the prior = invention − leak

The prior predicts without seeing the sample: the class frequencies, or the mean. It equals recalibration with a scale
of 0, so predictions that do not depend on the sample leak exactly nothing. The scale is at most the one that
calibrates the outputs of whole samples. An unbounded scale would amplify rounding errors until they reveal the class.

Recalibration and the prior are both judged on samples that they were not fitted to, in the same folds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid

from absentia.auditing.masked_scores import Unit
from absentia.auditing.recalibration import FOLDS, Scale, calibrating_scale, cross_fitted, folds_of, unbiased

# Samples of classes with fewer samples than folds are left out if they are at most this share of all samples.
_MOST_LEFT_OUT = 0.1
# The probabilities of a distribution add up to 1 with at most this error in the logarithm.
_ROUNDING = 1e-4
# The step of the numerical derivative with respect to the logarithm of a scale.
_LOG_SCALE_STEP = 0.02


class Prediction(NamedTuple):
    """Leak and invention of predictions for each sample; their errors follow from their spread over samples."""

    leak: Float[Tensor, " samples"]  # what is gained by what the predictions know
    invention: Float[Tensor, " samples"]  # what is lost by how they say it


@dataclass(frozen=True, eq=False)
class ByClass:
    """The log-loss of each sample's class, from the log-odds of every class.

    Classes that do not occur among the samples are left out, and the probabilities of the others are normalised. If a
    network has a thousand classes, what it predicts for those that do not occur is not an invention. Log-odds
    averaged over draws do not belong to a distribution, because their probabilities do not add up to 1. The effect of
    normalising them is reported separately (`averaging`), because it is not a claim of the stand-ins.
    """

    y: Int[Tensor, " samples"]
    seed: int
    scale: Scale  # calibrates the outputs of whole samples, and bounds the scale of recalibration
    classes: Int[Tensor, " classes"]  # those that occur
    unit: Unit = "nats"

    @classmethod
    def of_whole_samples(cls, y: Tensor, whole: Float[Tensor, "samples outputs"], seed: int) -> ByClass:
        """Return the score of these classes; the log-odds of whole samples bound the scale of recalibration."""
        unbounded = cls(y, seed, Scale(math.inf), y.unique())
        if not bool(unbounded.estimable.any()):
            return unbounded
        logits = unbounded._estimable_logits(whole[None])[0]
        return replace(unbounded, scale=calibrating_scale(logits, unbounded._targets))

    @property
    def everything(self) -> float:
        """All there is to know: log(classes)."""
        return math.log(max(2, len(self.classes)))

    @property
    def estimable(self) -> Bool[Tensor, " samples"]:
        """The samples of classes that occur in every fit; none if too many samples belong to other classes."""
        counts = self.y.bincount()
        common = counts[self.y] >= FOLDS
        several_classes = len(self.y[common].unique()) > 1
        left_out = float((~common).double().mean())
        if not several_classes or left_out > _MOST_LEFT_OUT:
            return torch.zeros_like(common)
        return common

    def of(self, samples: int) -> ByClass:
        """Return the score of the first samples."""
        return replace(self, y=self.y[:samples], scale=Scale(self.scale.value))

    def scores(self, values: Float[Tensor, "*batch samples outputs"]) -> Float[Tensor, "*batch samples"]:
        """Return the log-loss of each sample's class, from normalised probabilities."""
        log_probabilities = logsigmoid(values)[..., self.classes].log_softmax(-1)
        return -_of_own_class(log_probabilities, torch.searchsorted(self.classes, self.y))

    def estimable_scores(self, values: Float[Tensor, "batch samples outputs"]) -> Float[Tensor, "batch samples"]:
        """Return the log-loss among the classes that can be fitted; NaN for samples of other classes."""
        log_probabilities = self._estimable_logits(values).log_softmax(-1)
        return self._with_gaps(-_of_own_class(log_probabilities, self._targets))

    def averaging(self, values: Float[Tensor, "*batch samples outputs"]) -> Float[Tensor, "*batch samples"]:
        """Return by how much normalising the log-odds lowers the log-loss of any class."""
        remainder = -logsigmoid(values).logsumexp(-1)
        return torch.where(remainder.abs() < _ROUNDING, 0.0, remainder)

    def recalibrated(self, values: Float[Tensor, "batch samples outputs"]) -> Float[Tensor, "batch samples"]:
        """Return the log-loss after a fitted scale and class offsets; NaN for samples that can't be fitted."""
        return self._recalibrated(values, self.scale.value)

    def _recalibrated(self, values: Tensor, most_scale: float) -> Float[Tensor, "batch samples"]:
        if not bool(self.estimable.any()):
            return torch.full(values.shape[:-1], math.nan, dtype=torch.float64)
        logits = self._estimable_logits(values)
        return self._with_gaps(cross_fitted(logits, self._targets, self._folds, most_scale))

    def split(self, values: Float[Tensor, "samples outputs"], prior: Float[Tensor, " samples"]) -> Prediction:
        """Return leak and invention of predictions that depend on the sample."""
        score = self.estimable_scores(values[None])[0]
        recalibrated = self.recalibrated(values[None])[0]
        if self.scale.influences is not None:
            # The bound on the scale depends on the samples, too. The errors include its effect.
            wider_scale = self.scale.value * math.exp(_LOG_SCALE_STEP)
            wider = self._recalibrated(values[None], wider_scale)[0]
            slope = float((wider - recalibrated).nanmean()) / _LOG_SCALE_STEP
            recalibrated = recalibrated + slope * self._with_gaps(self.scale.influences[None])[0]
        return Prediction(prior - recalibrated, self._with_curvature(score - recalibrated))

    def split_constant(
        self, values: Float[Tensor, "samples outputs"], prior: Float[Tensor, " samples"]
    ) -> Prediction:
        """Return leak and invention of predictions that do not depend on the sample, which leak nothing."""
        return Prediction(prior - prior, self._with_curvature(self.estimable_scores(values[None])[0] - prior))

    def _with_curvature(self, invention: Float[Tensor, " samples"]) -> Float[Tensor, " samples"]:
        """Widen the spread of an invention by that of fitting the class frequencies, which is half a χ² over N."""
        samples = int(self.estimable.sum())
        classes = len(self.y[self.estimable].unique())
        return widen(invention, (classes - 1) / (2 * max(1, samples) ** 2))

    def prior(self) -> Float[Tensor, " samples"]:
        """Return the log-loss of the smoothed class frequencies; NaN for samples that can't be fitted."""
        if not bool(self.estimable.any()):
            return torch.full((len(self.y),), math.nan, dtype=torch.float64)
        targets = self._targets
        no_logits = torch.zeros(1, len(targets), int(targets.max()) + 1).double()
        return self._with_gaps(cross_fitted(no_logits, targets, self._folds, most_scale=0.0))[0]

    def why_not_estimable(self) -> str:
        """Say why leak and invention can't be measured on these samples; empty if they can."""
        if bool(self.estimable.any()):
            return ""
        if len(self.y.unique()) == 1:
            return "all samples have the same class: pass samples of several classes"
        return f"most classes are too rare: pass at least {FOLDS} samples of each class"

    @property
    def _targets(self) -> Int[Tensor, " estimable"]:
        """The classes of the estimable samples, numbered from 0 without gaps."""
        return self.y[self.estimable].unique(return_inverse=True)[1]

    @property
    def _folds(self) -> Int[Tensor, " estimable"]:
        return folds_of(self.y, self.seed)[self.estimable]

    def _estimable_logits(self, values: Tensor) -> Float[Tensor, "batch estimable fitted"]:
        """Return logits of the estimable samples for their classes."""
        classes = self.y[self.estimable].unique()
        return logsigmoid(values)[:, self.estimable][..., classes]

    def _with_gaps(self, losses: Float[Tensor, "batch estimable"]) -> Float[Tensor, "batch samples"]:
        """Return losses of all samples from those of the estimable ones; the others have NaN."""
        of_all_samples = losses.new_full((len(losses), len(self.y)), math.nan)
        of_all_samples[:, self.estimable] = losses
        return of_all_samples


def _of_own_class(
    values: Float[Tensor, "*batch samples classes"], own_class: Int[Tensor, " samples"]
) -> Float[Tensor, "*batch samples"]:
    """Return the value of each sample's own class."""
    index = own_class[:, None].expand(*values.shape[:-1], 1)
    return values.gather(-1, index)[..., 0]


@dataclass(frozen=True, eq=False)
class ByValue:
    """The squared difference from the values of whole samples, as a share of their variance over the samples.

    If a sample has several values, such as the score of every class, the squares are summed.
    """

    full: Float[Tensor, "samples numbers"]  # the values of whole samples
    seed: int
    variance: float
    unit: Unit = "of the variance"
    everything: float = 1.0

    @classmethod
    def of_whole_samples(cls, full: Float[Tensor, "samples numbers"], seed: int) -> ByValue:
        """Return the score that compares values with those of whole samples."""
        varies = bool((full != full[:1]).any())
        variance = float(full.var(0, correction=0).sum()) if varies else 0.0
        return cls(full, seed, variance)

    @property
    def estimable(self) -> Bool[Tensor, " samples"]:
        """All samples, if there are enough for every fold and the values of whole samples vary; otherwise none."""
        enough = len(self.full) >= FOLDS and self.variance > 0
        return torch.full((len(self.full),), enough)

    def of(self, samples: int) -> ByValue:
        """Return the score of the first samples, in the same unit."""
        return ByValue(self.full[:samples], self.seed, self.variance)

    def scores(self, values: Float[Tensor, "*batch samples numbers"]) -> Float[Tensor, "*batch samples"]:
        """Return the squared differences."""
        if not self.variance > 0:
            return torch.full(values.shape[:-1], math.nan, dtype=torch.float64)
        return (values - self.full).square().sum(-1) / self.variance

    def estimable_scores(self, values: Float[Tensor, "batch samples numbers"]) -> Float[Tensor, "batch samples"]:
        """Return the squared differences; NaN if nothing can be fitted."""
        if not bool(self.estimable.all()):
            return torch.full(values.shape[:-1], math.nan, dtype=torch.float64)
        return self.scores(values)

    def averaging(self, values: Float[Tensor, "*batch samples numbers"]) -> Float[Tensor, "*batch samples"]:
        """Return zeros, because means of values are values."""
        return torch.zeros(values.shape[:-1], dtype=torch.float64)

    def recalibrated(self, values: Float[Tensor, "batch samples numbers"]) -> Float[Tensor, "batch samples"]:
        """Return the squared differences after fitting a slope between 0 and 1 and an offset for each number."""
        return self._squares(values, most_slope=1.0)

    def split(self, values: Float[Tensor, "samples numbers"], prior: Float[Tensor, " samples"]) -> Prediction:
        """Return leak and invention of predictions that depend on the sample."""
        recalibrated = self.recalibrated(values[None])[0]
        score = self.estimable_scores(values[None])[0]
        leak = self._as_shares(prior - recalibrated)
        invention = self._as_shares(score - recalibrated)
        return Prediction(leak, widen(invention, self._curvature))

    def split_constant(
        self, values: Float[Tensor, "samples numbers"], prior: Float[Tensor, " samples"]
    ) -> Prediction:
        """Return leak and invention of predictions that do not depend on the sample, which leak nothing."""
        invention = self._as_shares(self.estimable_scores(values[None])[0] - prior)
        return Prediction(prior - prior, widen(invention, self._curvature))

    @property
    def _curvature(self) -> float:
        """The variance due to fitting the mean, which is a χ² over N."""
        return 2 / len(self.full) ** 2

    def _as_shares(self, figure: Float[Tensor, " samples"]) -> Float[Tensor, " samples"]:
        """Linearise a figure as a share, so that its spread over samples includes the error of the variance."""
        own_share = (self.full - self.full.mean(0)).square().sum(-1) / self.variance
        return figure - figure.mean() * (own_share - 1)

    def prior(self) -> Float[Tensor, " samples"]:
        """Return the squared differences from the mean."""
        return self._squares(torch.zeros_like(self.full)[None], most_slope=0.0)[0]

    def why_not_estimable(self) -> str:
        """Say why leak and invention can't be measured on these samples; empty if they can."""
        if bool(self.estimable.any()):
            return ""
        if len(self.full) < FOLDS:
            return f"there are too few samples: pass at least {FOLDS}"
        return "v(N) does not vary, so that there is nothing to predict"

    def _squares(self, values: Tensor, most_slope: float) -> Float[Tensor, "batch samples"]:
        """Return the squared differences after fitting a line, corrected for the bias of the fit."""
        if not bool(self.estimable.all()):
            return torch.full(values.shape[:-1], math.nan, dtype=torch.float64)
        folds = folds_of(torch.zeros(len(self.full), dtype=torch.int64), self.seed)
        everyone = torch.ones(len(self.full), dtype=torch.bool)
        held_out = torch.empty_like(values)
        for fold in range(FOLDS):
            others = folds != fold
            held_out[:, ~others] = self._predicted(values, others, most_slope)[:, ~others]
        fitted = self._predicted(values, everyone, most_slope)
        return unbiased(self.scores(fitted), self.scores(held_out))

    def _predicted(self, values: Tensor, known: Tensor, most_slope: float) -> Float[Tensor, "batch samples numbers"]:
        """Return the predictions of a least-squares line through the known samples."""
        mean = values[:, known].mean(1, keepdim=True)
        target = self.full[known].mean(0)
        centred = values[:, known] - mean
        squares = centred.square().sum((1, 2), keepdim=True)
        products = (centred * (self.full[known] - target)).sum((1, 2), keepdim=True)
        slope = (products / squares.clamp_min(torch.finfo(values.dtype).tiny)).clamp(0.0, most_slope)
        return target + slope * (values - mean)


def widen(figure: Float[Tensor, " samples"], variance: float) -> Float[Tensor, " samples"]:
    """Increase the variance of a figure's mean by widening the figure's spread over samples.

    A figure whose true value is its minimum, such as an invention of 0, changes only quadratically there. Its samples
    hardly differ, although its mean varies.
    """
    mean = figure.nanmean()
    own_variance = (figure - mean).square().nanmean() / (~figure.isnan()).sum()
    if not bool(own_variance > 0):
        return figure
    return mean + (figure - mean) * (1 + variance / own_variance).sqrt()


# A proper score of values, with its split into leak and invention.
Split: TypeAlias = ByClass | ByValue


def predict(
    split: Split, values: Float[Tensor, "samples numbers"], prior: Float[Tensor, " samples"], rounding: float = 0.0
) -> Prediction:
    """Split the score of values into leak and invention, given the score of the prior; NaN where this is impossible.

    Values that differ between samples by no more than ``rounding`` are considered equal.
    """
    values = without_rounding(values, rounding)
    if bool((values == values[:1]).all()):
        return split.split_constant(values, prior)
    return split.split(values, prior)


def without_rounding(values: Float[Tensor, "samples numbers"], rounding: float) -> Float[Tensor, "samples numbers"]:
    """Replace the samples' values by their mean if they differ from it by no more than rounding errors."""
    mean = values.mean(0, keepdim=True)
    if bool(((values - mean).abs() <= rounding).all()):
        return mean.expand_as(values)
    return values
