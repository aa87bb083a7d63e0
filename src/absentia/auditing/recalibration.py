"""Recalibration of predictions: a scale and class offsets, fitted by Newton's method and judged on unseen samples.

A fit is judged on samples that it did not see, in folds. These losses are too high by as much as the losses on the
fitted samples are too low, so a weighted mean of the two is unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from absentia.data import seeded

# The samples are split into this many folds; each is predicted by a fit to the others.
FOLDS = 5
# Each class counts as if it had been seen this many more times, which keeps frequencies away from 0.
_SMOOTHING = 0.5
# The most steps of Newton's method, and the most halvings of a step.
_MOST_STEPS = 60
_MOST_HALVINGS = 30
# The shortest part of a step that is tried.
_LEAST_SHARE = 2.0**-_MOST_HALVINGS
# Newton's method ends when a step lowers the mean loss by less than this.
_CONVERGED = 1e-12
# The share of the largest second derivative that is added to the diagonal.
_RIDGE = 1e-9
# Logits whose spread is below this, or above its inverse, are scaled as if they had exactly that spread.
_LEAST_SPREAD = 1e-6


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


def unbiased(
    fitted: Float[Tensor, "*batch samples"], held_out: Float[Tensor, "*batch samples"]
) -> Float[Tensor, "*batch samples"]:
    """Combine the scores of a fit to all samples with those of fits to the other folds, so that their biases cancel.

    With p parameters, the former are too low by p/2N on average and the latter are too high by p/2N′, where
    N′ = N(1 − 1/folds).
    """
    weight = (1 - 1 / FOLDS) / (2 - 1 / FOLDS)
    return weight * held_out + (1 - weight) * fitted


def cross_fitted(
    logits: Float[Tensor, "batch samples classes"],
    targets: Int[Tensor, " samples"],
    folds: Int[Tensor, " samples"],
    most_scale: float,
) -> Float[Tensor, "batch samples"]:
    """Return the losses of recalibrated predictions, corrected for the bias of the fit.

    Stratified folds all have the same class frequencies, so a fit to the other folds knows those of the held-out
    fold. This lowers both losses by (classes − 1)/2N, because frequencies fit the N samples from which they were
    counted better than other samples [miller1955note].
    """
    everyone = torch.ones(1, len(targets), dtype=torch.bool)
    outside_fold = torch.stack([folds != fold for fold in range(FOLDS)])
    fitted_samples = torch.cat([everyone, outside_fold])
    batch = len(logits)
    repeated = logits.repeat_interleave(len(fitted_samples), 0)
    fit = fit_logits(repeated, targets, fitted_samples.repeat(batch, 1), most_scale)
    losses = fit.losses(repeated, targets).unflatten(0, (batch, len(fitted_samples)))
    held_out = losses[:, 1:].gather(1, folds.expand(batch, 1, -1))[:, 0]
    bias_of_frequencies = (logits.shape[-1] - 1) / (2 * len(targets))
    return unbiased(losses[:, 0], held_out) + bias_of_frequencies


class LogitFit(NamedTuple):
    """Recalibrated log-probabilities, log softmax(scale · (logits − centre) + offsets), for each fit in a batch."""

    scale: Float[Tensor, " batch"]
    centre: Float[Tensor, "batch classes"]
    offsets: Float[Tensor, "batch classes"]

    def log_probabilities(
        self, logits: Float[Tensor, "batch samples classes"]
    ) -> Float[Tensor, "batch samples classes"]:
        """Return the logarithms of the recalibrated probabilities."""
        moved = self.scale[:, None, None] * (logits - self.centre[:, None]) + self.offsets[:, None]
        return moved.log_softmax(-1)

    def losses(
        self, logits: Float[Tensor, "batch samples classes"], targets: Int[Tensor, " samples"]
    ) -> Float[Tensor, "batch samples"]:
        """Return the log-loss of each sample's class."""
        own_class = targets[None, :, None].expand(len(logits), -1, 1)
        return -self.log_probabilities(logits).gather(-1, own_class)[..., 0]


def fit_logits(
    logits: Float[Tensor, "batch samples classes"],
    targets: Int[Tensor, " samples"],
    known: Bool[Tensor, "batch samples"],
    most_scale: float,
    least_scale: float = 0.0,
) -> LogitFit:
    """Fit a scale and class offsets to the known samples of each member of a batch, by Newton's method.

    The loss is the log-loss of the known samples, plus that of `_SMOOTHING` samples of each class at the mean logits.
    It is convex. If the best scale lies outside its bounds, the nearer bound is used, with the best offsets for it.
    """
    weights = known.double()
    centre = (weights[..., None] * logits).sum(1) / weights.sum(1)[:, None]
    centred = logits - centre[:, None]
    classes = logits.shape[-1]
    counts = weights @ one_hot(targets, classes).double() + _SMOOTHING
    offsets = (counts / counts.sum(1, keepdim=True)).log()
    scale = torch.full((len(logits),), least_scale, dtype=torch.float64)
    if least_scale == most_scale == 0:
        return LogitFit(scale, centre, offsets)
    loss = _Loss(centred, targets, weights)
    point = torch.cat([scale[:, None], offsets], dim=1)
    value = loss(point)
    for _ in range(_MOST_STEPS):
        step = loss.newton_step(point, least_scale, most_scale)
        moved, lower = _descend(loss, point, value, step, least_scale, most_scale)
        gained = float((value - lower).max())
        point = moved
        value = lower
        if gained <= _CONVERGED * len(targets):
            break
    return LogitFit(point[:, 0], centre, point[:, 1:])


def _descend(
    loss: _Loss, point: Tensor, value: Tensor, step: Tensor, least_scale: float, most_scale: float
) -> tuple[Tensor, Tensor]:
    """Take a step for each member of the batch, halving it until the loss grows by no more than rounding errors."""
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
        log_probabilities = self._log_probabilities(points)
        own_class = self.targets[None, :, None].expand(len(points), -1, 1)
        losses = -(self.weights * log_probabilities.gather(-1, own_class)[..., 0]).sum(1)
        return losses - _SMOOTHING * points[:, 1:].log_softmax(1).sum(1)

    def _log_probabilities(self, points: Tensor) -> Float[Tensor, "batch samples classes"]:
        return (points[:, :1, None] * self.logits + points[:, None, 1:]).log_softmax(-1)

    def sample_gradients(
        self, points: Float[Tensor, "batch parameters"]
    ) -> Float[Tensor, "batch samples parameters"]:
        """Return the gradient of each sample's loss."""
        truth = one_hot(self.targets, self.logits.shape[-1]).double()
        errors = self.weights[..., None] * (self._log_probabilities(points).exp() - truth)
        by_scale = (errors * self.logits).sum(2, keepdim=True)
        return torch.cat([by_scale, errors], dim=2)

    def gradient(self, points: Float[Tensor, "batch parameters"]) -> Float[Tensor, "batch parameters"]:
        """Return the gradient of the loss."""
        gradient = self.sample_gradients(points).sum(1)
        classes = self.logits.shape[-1]
        gradient[:, 1:] += _SMOOTHING * (classes * points[:, 1:].softmax(1) - 1)
        return gradient

    def hessian(self, points: Float[Tensor, "batch parameters"]) -> Float[Tensor, "batch parameters parameters"]:
        """Return the second derivatives, with a small ridge: adding a constant to all offsets changes no loss.

        With weights w, logits z, probabilities p and m = Σ_c p_c z_c of each sample, and smoothing of K classes with
        the probabilities q = softmax(offsets) and the weight s = `_SMOOTHING` · K, they are

            ∂²/∂scale²              Σ w Σ_c p_c (z_c − m) z_c
            ∂²/∂scale ∂offset_c     Σ w p_c (z_c − m)
            ∂²/∂offset_c ∂offset_d  Σ w (p_c [c = d] − p_c p_d) + s (q_c [c = d] − q_c q_d)
        """
        classes = self.logits.shape[-1]
        probabilities = self._log_probabilities(points).exp()  # (batch, samples, classes)
        weighted = self.weights[..., None] * probabilities  # (batch, samples, classes)
        smoothed = points[:, 1:].softmax(1)  # (batch, classes)
        smoothing = _SMOOTHING * classes
        means = (probabilities * self.logits).sum(-1, keepdim=True)  # (batch, samples, 1)
        spread = weighted * (self.logits - means)  # (batch, samples, classes)
        by_scale_and_offset = spread.sum(1)  # (batch, classes)
        hessian = points.new_zeros(len(points), classes + 1, classes + 1)
        hessian[:, 0, 0] = (spread * self.logits).sum((1, 2))
        hessian[:, 0, 1:] = by_scale_and_offset
        hessian[:, 1:, 0] = by_scale_and_offset
        hessian[:, 1:, 1:] = (
            torch.diag_embed(weighted.sum(1) + smoothing * smoothed)
            - weighted.transpose(1, 2) @ probabilities
            - smoothing * smoothed[:, :, None] * smoothed[:, None]
        )
        ridge = _RIDGE * (1 + hessian.diagonal(dim1=1, dim2=2).amax(1))  # (batch,)
        return hessian + ridge[:, None, None] * torch.eye(classes + 1, dtype=torch.float64)

    def newton_step(
        self, points: Float[Tensor, "batch parameters"], least_scale: float, most_scale: float
    ) -> Float[Tensor, "batch parameters"]:
        """Return Newton's step; a scale at its bound stays there if the loss decreases beyond the bound."""
        gradient = self.gradient(points)
        hessian = self.hessian(points)
        at_least = (points[:, 0] <= least_scale) & (gradient[:, 0] >= 0)
        at_most = (points[:, 0] >= most_scale) & (gradient[:, 0] <= 0)
        stays = at_least | at_most
        gradient[stays, 0] = 0
        hessian[stays, 0, 1:] = 0
        hessian[stays, 1:, 0] = 0
        hessian[stays, 0, 0] = 1
        return -torch.linalg.solve(hessian, gradient)


@dataclass(frozen=True, eq=False)
class Scale:
    """A scale fitted to samples, and how much each sample moved its logarithm."""

    value: float
    influences: Float[Tensor, " samples"] | None = None  # their mean is 0, and its error is that of the logarithm


def calibrating_scale(logits: Float[Tensor, "samples classes"], targets: Int[Tensor, " samples"]) -> Scale:
    """Return the scale that calibrates predictions, with free class offsets, by Newton's method.

    The loss of a classifier that is always right decreases without bound as the scale grows. So half the square of
    the scale's logarithm is added to the summed loss, as a weak prior that the predictions are already calibrated.
    """
    centred = logits - logits.mean(0)
    loss = _ScaleLoss(centred, targets)
    frequencies = targets.bincount(minlength=logits.shape[1]) + _SMOOTHING
    # Predictions scaled to a spread of 1 are never so confident that the gradient vanishes.
    log_scale = -centred.std().clamp(_LEAST_SPREAD, 1 / _LEAST_SPREAD).log()
    point = torch.cat([log_scale[None], (frequencies / frequencies.sum()).log()])
    value = loss(point)
    for _ in range(_MOST_STEPS):
        step = loss.newton_step(point)
        share = 1.0
        while share > _LEAST_SHARE and not loss(point + share * step) <= value:
            share /= 2
        moved = point + share * step
        lower = loss(moved)
        if not value - lower > _CONVERGED * len(targets):
            break
        point = moved
        value = lower
    return Scale(float(point[0].exp()), loss.influences(point))


@dataclass(frozen=True, eq=False)
class _ScaleLoss:
    """The summed log-loss as a function of a point (t, offsets), where t is the logarithm of the scale.

    With logits z of mean 0 and classes y it is −Σ log softmax(eᵗ z + offsets)_y + t²/2, where t²/2 is a weak prior.
    It is the `_Loss` of the logits z′ = eᵗ z at a scale of 1. To move t by δ is to multiply this scale by 1 + δ, to
    first order. So the derivatives of `_Loss` by the scale serve as those by t, plus t and 1 from the prior. The
    exact second derivative would add the first one. It is left out, so that the matrix stays positive: this changes
    the steps of Newton's method, but not where they end.
    """

    logits: Float[Tensor, "samples classes"]  # with mean 0 over the samples
    targets: Int[Tensor, " samples"]

    def __call__(self, point: Float[Tensor, " parameters"]) -> float:
        """Return the loss."""
        return float(self._loss_at(point)(self._unit_point(point))[0] + point[0].square() / 2)

    def newton_step(self, point: Float[Tensor, " parameters"]) -> Float[Tensor, " parameters"]:
        """Return Newton's step, which changes the scale by a factor of at most e."""
        gradient = self._loss_at(point).gradient(self._unit_point(point))[0]
        gradient[0] += point[0]  # of the prior t²/2
        step = -torch.linalg.solve(self._hessian(point), gradient)
        step[0].clamp_(-1, 1)
        return step

    def influences(self, point: Float[Tensor, " parameters"]) -> Float[Tensor, " samples"]:
        """Return how much each sample moved the logarithm of the scale, to first order."""
        gradients = self._loss_at(point).sample_gradients(self._unit_point(point))[0]
        deviations = (gradients - gradients.mean(0)).T
        return -len(self.targets) * torch.linalg.solve(self._hessian(point), deviations)[0]

    def _hessian(self, point: Float[Tensor, " parameters"]) -> Float[Tensor, "parameters parameters"]:
        """Return the second derivatives of the loss, without the part that the curve of eᵗ adds."""
        hessian = self._loss_at(point).hessian(self._unit_point(point))[0]
        hessian[0, 0] += 1  # of the prior t²/2
        return hessian

    def _loss_at(self, point: Float[Tensor, " parameters"]) -> _Loss:
        """Return the loss of scaled logits, whose derivatives by the scale, 1, equal those by its logarithm."""
        weights = torch.ones(1, len(self.targets), dtype=torch.float64)
        return _Loss((point[0].exp() * self.logits)[None], self.targets, weights)

    def _unit_point(self, point: Float[Tensor, " parameters"]) -> Float[Tensor, "one parameters"]:
        """Return the point of the scaled logits, whose scale is 1."""
        return torch.cat([torch.ones(1).double(), point[1:]])[None]
