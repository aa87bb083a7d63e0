"""Leak and invention: a proper score of fully masked samples, split by recalibrating what they predict.

A proper score adds up two things: how little the predictions know, and how wrongly they say it. Recalibrated
predictions say what they know as well as it can be said, so what remains of their score is the first part alone. With
every player absent there should be nothing to know:

    leak      = score of the prior − score after recalibration
    invention = score              − score after recalibration
    evidence  = score − score of the prior = invention − leak

The prior is what can be said without a sample: the class frequencies, or the mean. It is recalibration with a scale
of 0, so that predictions which do not depend on the sample leak exactly nothing. The scale is bounded by the one that
calibrates the outputs of whole samples. A free one would enlarge rounding errors until they tell the class.

Both fits are judged on samples that they did not see, in the same folds. These scores are too high by as much as
those on the fitted samples are too low, so that a weighted mean of the two is free of the bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid, one_hot

from absentia.data import seeded

# The samples are split into this many parts; each is predicted by a fit to the others.
FOLDS = 5
# A class counts as if it had been seen this often more, which keeps frequencies away from 0.
_SMOOTHING = 0.5
# Samples of classes with fewer samples than folds are left out if they are at most this share of all.
_MOST_LEFT_OUT = 0.1
# Probabilities of one distribution add up to 1 with this error in their logarithm.
_ROUNDING = 1e-4
# Newton's method: the most steps, halvings of a step, and the decrease of the mean loss at which it ends.
_MOST_STEPS = 60
_MOST_HALVINGS = 30
_LEAST_SHARE = 2.0**-_MOST_HALVINGS
_LEAST_SPREAD = 1e-6  # of logits that are scaled to a spread of 1
_CONVERGED = 1e-12
_RIDGE = 1e-9  # of the second derivatives
# The step of a derivative by the logarithm of a scale.
_SMALL = 0.02


class Prediction(NamedTuple):
    """Leak and invention of predictions, for each sample; their spread over samples shows all of their errors."""

    leak: Float[Tensor, " samples"]  # what is gained by what the predictions know
    invention: Float[Tensor, " samples"]  # what is lost by how they say it


def folds_of(groups: Int[Tensor, " samples"], seed: int) -> Int[Tensor, " samples"]:
    """Spread the samples of each group evenly over the folds, in random order."""
    folds = torch.empty_like(groups)
    generator = seeded(seed, "folds")
    for group in groups.unique().tolist():
        members = (groups == group).nonzero().flatten()
        shuffled = members[torch.randperm(len(members), generator=generator)]
        first = int(torch.randint(FOLDS, (1,), generator=generator))
        folds[shuffled] = (torch.arange(len(members)) + first) % FOLDS
    return folds


@dataclass(frozen=True, eq=False)
class Scale:
    """A scale that was fitted to samples, and by how much each of them moved its logarithm."""

    value: float
    influences: Float[Tensor, " samples"] | None = None  # their mean is 0, and its error that of the logarithm


def unbiased(
    fitted: Float[Tensor, "*batch samples"], held_out: Float[Tensor, "*batch samples"]
) -> Float[Tensor, "*batch samples"]:
    """Join scores of a fit to all samples and of fits to the other folds so that their biases cancel.

    With p parameters the first are too low by p/2N on average, the second too high by p/2N′, N′ = N(1 − 1/folds).
    """
    weight = (1 - 1 / FOLDS) / (2 - 1 / FOLDS)
    return weight * held_out + (1 - weight) * fitted


@dataclass(frozen=True, eq=False)
class ByClass:
    """The log-loss of each sample's class, from the log-odds of every class.

    Classes that do not occur among the samples are left out, and the others' probabilities are normalised: a network
    of a thousand classes does not invent what it says of those that were not asked for. Log-odds that were averaged
    over draws belong to no distribution, since their probabilities do not add up to 1. What normalising them changes
    is named apart (`averaging`): it is no claim of the stand-ins.
    """

    y: Int[Tensor, " samples"]
    seed: int
    scale: Scale  # that calibrates the outputs of whole samples, and bounds that of recalibration
    classes: Int[Tensor, " classes"]  # those that occur
    unit: str = "nats"

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
        """All that there is to know: log(classes)."""
        return math.log(max(2, len(self.classes)))

    @property
    def estimable(self) -> Bool[Tensor, " samples"]:
        """The samples of classes that every fit sees; none if too many samples belong to others."""
        counts = self.y.bincount()
        common = counts[self.y] >= FOLDS
        several = len(self.y[common].unique()) > 1
        if not several or float((~common).double().mean()) > _MOST_LEFT_OUT:
            return torch.zeros_like(common)
        return common

    def of(self, samples: int) -> ByClass:
        """Return the score of the first samples."""
        return replace(self, y=self.y[:samples], scale=Scale(self.scale.value))

    def scores(self, values: Float[Tensor, "*batch samples outputs"]) -> Float[Tensor, "*batch samples"]:
        """Return the log-loss of each sample's class, by normalised probabilities."""
        logarithms = logsigmoid(values)[..., self.classes].log_softmax(-1)
        return -_of_own_class(logarithms, torch.searchsorted(self.classes, self.y))

    def estimable_scores(self, values: Float[Tensor, "batch samples outputs"]) -> Float[Tensor, "batch samples"]:
        """Return the log-loss among the classes that can be fitted; NaN for samples of others."""
        logarithms = self._estimable_logits(values).log_softmax(-1)
        return self._spread(-_of_own_class(logarithms, self._targets))

    def averaging(self, values: Float[Tensor, "*batch samples outputs"]) -> Float[Tensor, "*batch samples"]:
        """Return what normalising the log-odds takes from the log-loss of any class."""
        remainder = -logsigmoid(values).logsumexp(-1)
        return torch.where(remainder.abs() < _ROUNDING, 0.0, remainder)

    def recalibrated(self, values: Float[Tensor, "batch samples outputs"]) -> Float[Tensor, "batch samples"]:
        """Return the log-loss after a fitted scale and class offsets; NaN for samples that can't be fitted."""
        return self._recalibrated(values, self.scale.value)

    def _recalibrated(self, values: Tensor, most_scale: float) -> Float[Tensor, "batch samples"]:
        if not bool(self.estimable.any()):
            return torch.full(values.shape[:-1], math.nan, dtype=torch.float64)
        logits = self._estimable_logits(values)
        return self._spread(cross_fitted(logits, self._targets, self._folds, most_scale))

    def split(self, values: Float[Tensor, "samples outputs"], prior: Float[Tensor, " samples"]) -> Prediction:
        """Return leak and invention of predictions that depend on the sample."""
        score = self.estimable_scores(values[None])[0]
        recalibrated = self.recalibrated(values[None])[0]
        if self.scale.influences is not None:
            # Other samples would have given another bound: what that changes belongs to the errors.
            wider = self._recalibrated(values[None], self.scale.value * math.exp(_SMALL))[0]
            slope = float((wider - recalibrated).nanmean()) / _SMALL
            recalibrated = recalibrated + slope * self._spread(self.scale.influences[None])[0]
        return Prediction(prior - recalibrated, self._with_curvature(score - recalibrated))

    def split_constant(
        self, values: Float[Tensor, "samples outputs"], prior: Float[Tensor, " samples"]
    ) -> Prediction:
        """Return leak and invention of predictions that do not depend on the sample, which leak nothing."""
        return Prediction(prior - prior, self._with_curvature(self.estimable_scores(values[None])[0] - prior))

    def _with_curvature(self, invention: Float[Tensor, " samples"]) -> Float[Tensor, " samples"]:
        """Widen the spread of an invention by that of the class frequencies' own fit, half of a χ² by N."""
        samples = int(self.estimable.sum())
        classes = len(self.y[self.estimable].unique())
        return widen(invention, (classes - 1) / (2 * max(1, samples) ** 2))

    def prior(self) -> Float[Tensor, " samples"]:
        """Return the log-loss of the class frequencies, smoothed; NaN for samples that can't be fitted."""
        if not bool(self.estimable.any()):
            return torch.full((len(self.y),), math.nan, dtype=torch.float64)
        targets = self._targets
        nothing = torch.zeros(1, len(targets), int(targets.max()) + 1).double()
        return self._spread(cross_fitted(nothing, targets, self._folds, most_scale=0.0))[0]

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

    def _spread(self, losses: Float[Tensor, "batch estimable"]) -> Float[Tensor, "batch samples"]:
        """Put the losses of the estimable samples into their places; the others have NaN."""
        out = losses.new_full((len(losses), len(self.y)), math.nan)
        out[:, self.estimable] = losses
        return out


def _of_own_class(
    values: Float[Tensor, "*batch samples classes"], own: Int[Tensor, " samples"]
) -> Float[Tensor, "*batch samples"]:
    """Return the value of each sample's own class."""
    index = own[:, None].expand(*values.shape[:-1], 1)
    return values.gather(-1, index)[..., 0]


@dataclass(frozen=True, eq=False)
class ByValue:
    """The squared difference to the values of whole samples, as a share of their variance over the samples.

    A sample may have several values, such as the score of every class; their squares add up.
    """

    full: Float[Tensor, "samples numbers"]  # of whole samples
    seed: int
    variance: float
    unit: str = "of the variance"
    everything: float = 1.0

    @classmethod
    def of_whole_samples(cls, full: Float[Tensor, "samples numbers"], seed: int) -> ByValue:
        """Return the score of values beside those of whole samples."""
        varies = bool((full != full[:1]).any())
        variance = float(full.var(0, correction=0).sum()) if varies else 0.0
        return cls(full, seed, variance)

    @property
    def estimable(self) -> Bool[Tensor, " samples"]:
        """All samples, if there are enough for every fold and the values of whole samples vary."""
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
        """Return the squared differences; all of them can be fitted, or none."""
        if not bool(self.estimable.all()):
            return torch.full(values.shape[:-1], math.nan, dtype=torch.float64)
        return self.scores(values)

    def averaging(self, values: Float[Tensor, "*batch samples numbers"]) -> Float[Tensor, "*batch samples"]:
        """Return zeros: means of values are values."""
        return torch.zeros(values.shape[:-1], dtype=torch.float64)

    def recalibrated(self, values: Float[Tensor, "batch samples numbers"]) -> Float[Tensor, "batch samples"]:
        """Return the squared differences after a fitted slope from 0 to 1 and an offset of each number."""
        return self._squares(values, most_slope=1.0)

    def split(self, values: Float[Tensor, "samples numbers"], prior: Float[Tensor, " samples"]) -> Prediction:
        """Return leak and invention of predictions."""
        recalibrated = self.recalibrated(values[None])[0]
        score = self.estimable_scores(values[None])[0]
        leak, invention = self._as_shares(prior - recalibrated), self._as_shares(score - recalibrated)
        return Prediction(leak, widen(invention, self._curvature))

    def split_constant(
        self, values: Float[Tensor, "samples numbers"], prior: Float[Tensor, " samples"]
    ) -> Prediction:
        """Return leak and invention of predictions that do not depend on the sample, which leak nothing."""
        invention = self._as_shares(self.estimable_scores(values[None])[0] - prior)
        return Prediction(prior - prior, widen(invention, self._curvature))

    @property
    def _curvature(self) -> float:
        """The variance of the mean's own fit: it is a χ² by N."""
        return 2 / len(self.full) ** 2

    def _as_shares(self, figure: Float[Tensor, " samples"]) -> Float[Tensor, " samples"]:
        """Return a figure as a linearised share: its spread over samples shows that the variance has errors too."""
        own_share = (self.full - self.full.mean(0)).square().sum(-1) / self.variance
        return figure - figure.mean() * (own_share - 1)

    def prior(self) -> Float[Tensor, " samples"]:
        """Return the squared differences to the mean."""
        return self._squares(torch.zeros_like(self.full)[None], most_slope=0.0)[0]

    def _squares(self, values: Tensor, most_slope: float) -> Float[Tensor, "batch samples"]:
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
    """Add to the variance of a figure's mean, by the figure's spread over samples.

    A figure that has its least value where the truth is, such as an invention of 0, changes by squares alone there:
    its samples hardly differ, although its mean varies.
    """
    mean = figure.nanmean()
    own_variance = (figure - mean).square().nanmean() / (~figure.isnan()).sum()
    if not bool(own_variance > 0):
        return figure
    return mean + (figure - mean) * (1 + variance / own_variance).sqrt()


# A proper score of values, and how it splits.
Split: TypeAlias = ByClass | ByValue


def predict(
    split: Split, values: Float[Tensor, "samples numbers"], prior: Float[Tensor, " samples"], rounding: float = 0.0
) -> Prediction:
    """Score values and split their score, given that of the prior; NaN for samples that can't be split.

    Values that differ between samples by no more than ``rounding`` are the same value.
    """
    values = without_rounding(values, rounding)
    if bool((values == values[:1]).all()):
        return split.split_constant(values, prior)
    return split.split(values, prior)


def without_rounding(values: Float[Tensor, "samples numbers"], rounding: float) -> Float[Tensor, "samples numbers"]:
    """Return the mean of the samples for each, if they differ from it by rounding errors alone."""
    mean = values.mean(0, keepdim=True)
    if bool(((values - mean).abs() <= rounding).all()):
        return mean.expand_as(values)
    return values


def calibrating_scale(logits: Float[Tensor, "samples classes"], targets: Int[Tensor, " samples"]) -> Scale:
    """Return the scale that calibrates predictions, with free class offsets, by Newton's method.

    A classifier that is always right has the lower a loss the larger the scale is. So half of the square of the
    scale's logarithm is added to the summed loss: a weak belief that the predictions are right as they are.
    """
    centred = logits - logits.mean(0)
    frequencies = targets.bincount(minlength=logits.shape[1]) + _SMOOTHING
    # The first parameter is the scale's logarithm. Scaled to a spread of 1, predictions are nowhere too sure to move.
    first = -centred.std().clamp(_LEAST_SPREAD, 1 / _LEAST_SPREAD).log()
    point = torch.cat([first[None], (frequencies / frequencies.sum()).log()])
    everyone = torch.ones(1, len(targets), dtype=torch.float64)

    def at(point: Tensor) -> tuple[_Loss, Tensor]:
        """Return the loss of logits that are scaled already, and the point where that scale is 1."""
        scaled = point[0].exp() * centred
        return _Loss(scaled[None], targets, everyone), torch.cat([torch.ones(1).double(), point[1:]])[None]

    def loss_of(point: Tensor) -> float:
        loss, scaled_point = at(point)
        return float(loss(scaled_point)[0] + point[0].square() / 2)

    value = loss_of(point)
    for _ in range(_MOST_STEPS):
        loss, scaled_point = at(point)
        gradient = loss.gradient(scaled_point)[0]
        gradient[0] += point[0]
        hessian = loss.hessian(scaled_point)[0]
        hessian[0, 0] += 1
        step = -torch.linalg.solve(hessian, gradient)
        step[0].clamp_(-1, 1)
        share = 1.0
        while share > _LEAST_SHARE and not loss_of(point + share * step) <= value:
            share /= 2
        lower = loss_of(point + share * step)
        if not value - lower > _CONVERGED * len(targets):
            break
        point, value = point + share * step, lower
    loss, scaled_point = at(point)
    hessian = loss.hessian(scaled_point)[0]
    hessian[0, 0] += 1
    gradients = loss.sample_gradients(scaled_point)[0]
    influences = -len(targets) * torch.linalg.solve(hessian, (gradients - gradients.mean(0)).T)[0]
    return Scale(float(point[0].exp()), influences)


def cross_fitted(
    logits: Float[Tensor, "batch samples classes"],
    targets: Int[Tensor, " samples"],
    folds: Int[Tensor, " samples"],
    most_scale: float,
) -> Float[Tensor, "batch samples"]:
    """Return the losses of recalibrated predictions, free of the bias of the fit.

    Stratified folds all have the same class frequencies, so that a fit to the others knows those of the fold that is
    held out. By as much as frequencies of N samples fit these better than others, (classes − 1)/2N, both losses are
    too low [miller1955note].
    """
    everyone = torch.ones(1, len(targets), dtype=torch.bool)
    others = torch.stack([folds != fold for fold in range(FOLDS)])
    known = torch.cat([everyone, others])
    batch = len(logits)
    repeated = logits.repeat_interleave(len(known), 0)
    fit = fit_logits(repeated, targets, known.repeat(batch, 1), most_scale)
    losses = fit.losses(repeated, targets).unflatten(0, (batch, len(known)))
    held_out = losses[:, 1:].gather(1, folds.expand(batch, 1, -1))[:, 0]
    of_frequencies = (logits.shape[-1] - 1) / (2 * len(targets))
    return unbiased(losses[:, 0], held_out) + of_frequencies


class LogitFit(NamedTuple):
    """Recalibrated log-probabilities, log softmax(scale · (logits − centre) + offsets), of each fit of a batch."""

    scale: Float[Tensor, " batch"]
    centre: Float[Tensor, "batch classes"]
    offsets: Float[Tensor, "batch classes"]

    def logarithms(self, logits: Float[Tensor, "batch samples classes"]) -> Float[Tensor, "batch samples classes"]:
        """Return the logarithms of the recalibrated probabilities."""
        moved = self.scale[:, None, None] * (logits - self.centre[:, None]) + self.offsets[:, None]
        return moved.log_softmax(-1)

    def losses(
        self, logits: Float[Tensor, "batch samples classes"], targets: Int[Tensor, " samples"]
    ) -> Float[Tensor, "batch samples"]:
        """Return the log-loss of each sample's class."""
        own = targets[None, :, None].expand(len(logits), -1, 1)
        return -self.logarithms(logits).gather(-1, own)[..., 0]


def fit_logits(
    logits: Float[Tensor, "batch samples classes"],
    targets: Int[Tensor, " samples"],
    known: Bool[Tensor, "batch samples"],
    most_scale: float,
    least_scale: float = 0.0,
) -> LogitFit:
    """Fit a scale and class offsets to the known samples of each member of a batch, by Newton's method.

    The loss is the log-loss of the known samples, and of `_SMOOTHING` samples of each class at their mean logits. It
    is convex. Where the best scale lies beyond its bounds, the bound is the best one, and the offsets go with it.
    """
    weights = known.double()
    centre = (weights[..., None] * logits).sum(1) / weights.sum(1)[:, None]
    centred = logits - centre[:, None]
    classes = logits.shape[-1]
    counts = weights @ one_hot(targets, classes).double() + _SMOOTHING
    offsets = (counts / counts.sum(1, keepdim=True)).log()
    scale = torch.full((len(logits),), least_scale, dtype=torch.float64)
    point = torch.cat([scale[:, None], offsets], dim=1)
    loss = _Loss(centred, targets, weights)
    if least_scale == most_scale == 0:
        return LogitFit(scale, centre, offsets)
    value = loss(point)
    for _ in range(_MOST_STEPS):
        step = loss.newton_step(point, least_scale, most_scale)
        moved, lower = _descend(loss, point, value, step, least_scale, most_scale)
        gained = float((value - lower).max())
        point, value = moved, lower
        if gained <= _CONVERGED * len(targets):
            break
    return LogitFit(point[:, 0], centre, point[:, 1:])


def _descend(
    loss: _Loss, point: Tensor, value: Tensor, step: Tensor, least_scale: float, most_scale: float
) -> tuple[Tensor, Tensor]:
    """Take the step of each member of the batch, halved until its loss does not grow, beyond rounding."""
    share = torch.ones_like(value)
    rounding = _CONVERGED * (1 + value.abs())
    for _ in range(_MOST_HALVINGS):
        moved = point + share[:, None] * step
        moved[:, 0].clamp_(least_scale, most_scale)
        lower = loss(moved)
        worse = ~(lower <= value + rounding)
        if not bool(worse.any()):
            return moved, lower
        share = torch.where(worse, share / 2, share)
    return torch.where(worse[:, None], point, moved), torch.where(worse, value, lower)


@dataclass(frozen=True, eq=False)
class _Loss:
    """The summed log-loss of a batch of fits as a function of points (scale, offsets)."""

    logits: Float[Tensor, "batch samples classes"]  # with mean 0 over the known samples
    targets: Int[Tensor, " samples"]
    weights: Float[Tensor, "batch samples"]

    def __call__(self, points: Float[Tensor, "batch parameters"]) -> Float[Tensor, " batch"]:
        """Return the loss of each fit."""
        logarithms = self._logarithms(points)
        own = self.targets[None, :, None].expand(len(points), -1, 1)
        losses = -(self.weights * logarithms.gather(-1, own)[..., 0]).sum(1)
        return losses - _SMOOTHING * points[:, 1:].log_softmax(1).sum(1)

    def _logarithms(self, points: Tensor) -> Float[Tensor, "batch samples classes"]:
        return (points[:, :1, None] * self.logits + points[:, None, 1:]).log_softmax(-1)

    def sample_gradients(
        self, points: Float[Tensor, "batch parameters"]
    ) -> Float[Tensor, "batch samples parameters"]:
        """Return the gradient of each sample's loss."""
        told = one_hot(self.targets, self.logits.shape[-1]).double()
        errors = self.weights[..., None] * (self._logarithms(points).exp() - told)
        by_scale = (errors * self.logits).sum(2, keepdim=True)
        return torch.cat([by_scale, errors], dim=2)

    def gradient(self, points: Float[Tensor, "batch parameters"]) -> Float[Tensor, "batch parameters"]:
        """Return the gradient of the loss."""
        gradient = self.sample_gradients(points).sum(1)
        classes = self.logits.shape[-1]
        gradient[:, 1:] += _SMOOTHING * (classes * points[:, 1:].softmax(1) - 1)
        return gradient

    def hessian(self, points: Float[Tensor, "batch parameters"]) -> Float[Tensor, "batch parameters parameters"]:
        """Return the second derivatives; a small ridge keeps them invertible where offsets all grow alike."""
        classes = self.logits.shape[-1]
        probabilities = self._logarithms(points).exp()
        weighted = self.weights[..., None] * probabilities
        smoothed = points[:, 1:].softmax(1)
        means = (probabilities * self.logits).sum(-1, keepdim=True)
        spread = weighted * (self.logits - means)
        hessian = points.new_zeros(len(points), classes + 1, classes + 1)
        hessian[:, 0, 0] = (spread * self.logits).sum((1, 2))
        hessian[:, 0, 1:] = hessian[:, 1:, 0] = spread.sum(1)
        hessian[:, 1:, 1:] = (
            torch.diag_embed(weighted.sum(1) + _SMOOTHING * classes * smoothed)
            - weighted.transpose(1, 2) @ probabilities
            - _SMOOTHING * classes * smoothed[:, :, None] * smoothed[:, None]
        )
        ridge = _RIDGE * (1 + hessian.diagonal(dim1=1, dim2=2).amax(1))
        return hessian + ridge[:, None, None] * torch.eye(classes + 1, dtype=torch.float64)

    def newton_step(
        self, points: Float[Tensor, "batch parameters"], least_scale: float, most_scale: float
    ) -> Float[Tensor, "batch parameters"]:
        """Return Newton's step; the scale stays where it is at a bound that the loss falls beyond."""
        gradient = self.gradient(points)
        hessian = self.hessian(points)
        below = (points[:, 0] <= least_scale) & (gradient[:, 0] >= 0)
        above = (points[:, 0] >= most_scale) & (gradient[:, 0] <= 0)
        stays = below | above
        gradient[stays, 0] = 0
        hessian[stays, 0, 1:] = 0
        hessian[stays, 1:, 0] = 0
        hessian[stays, 0, 0] = 1
        return -torch.linalg.solve(hessian, gradient)
