"""The fit of kernels: weights of players, amplitudes and noise that make the values of coalitions most likely.

The marginal likelihood of values y with covariances K is maximised [rasmussen2006gaussian], with a weak prior that
keeps the weights of players together: yᵀK⁻¹y/2 + log|K|/2 is made small. Its gradient has a closed form, and some
hundred coalitions are enough for it, because there are few parameters. The parts of a game can be fitted together;
they have the same weights of players then, but amplitudes and noise of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.cube.kernels import LEAST_NOISE, CubeKernel, Part, Signs, shape_and_slope_of

# The weight of a player of average slope at the start, and how strongly weights follow slopes.
_FIRST_WEIGHT = 0.02
_SLOPE_POWER = 0.7
# Slopes below this share of the largest count as this share.
_LEAST_SLOPE = 0.02
_RIDGE = 0.01
_FIRST_AMPLITUDE = 0.2
_FIRST_NOISE = 0.003
_FIRST_LOWEST = 30.0
# The parameters of each part besides the weights: the amplitude, the noise, and the variance of the lowest order.
_OF_PART = 3
# The prior standard deviation of the logarithms of weights, about their mean.
_PRIOR_SPREAD = math.sqrt(2)
# At this weight r = tanh(ρ) is about 0.9.
_LARGEST_WEIGHT = 1.5
# The search may try steps that are far too large; these bounds keep numbers finite.
_LEAST_WEIGHT = 1e-12
_LARGEST_LOGARITHM = 50.0
# The search keeps this many steps for the curvature, and ends where the gradient or a step is smaller than this.
_REMEMBERED_STEPS = 10
_LEAST_GRADIENT = 1e-3
_LEAST_STEP = 1e-6
# Stands for an infinite loss, which the search could not interpolate.
_UNLIKELY = 1e10


@dataclass(frozen=True)
class Stage:
    """A search with the likelihood of this many coalitions, which is computed about this many times."""

    coalitions: int
    losses: int


# Most of the search sees few coalitions; its end sees more, where there are more.
STAGES = (Stage(coalitions=600, losses=20), Stage(coalitions=1200, losses=6))
# A short search takes about an eighth of the time, and lets errors be about a tenth larger. With more players than
# this, so few coalitions do not tell their weights.
SHORT_STAGES = (Stage(coalitions=300, losses=12),)
MOST_PLAYERS_OF_SHORT_STAGES = 150


class PartValues(NamedTuple):
    """The values of one part of a game, with a mean square of about 1."""

    part: Part
    values: Float[Tensor, " coalitions"]


class Loss(NamedTuple):
    """The negative logarithm of a likelihood, with its gradient by the logarithms of the parameters."""

    value: float
    gradient: Float[Tensor, " parameters"]


def fit_kernels(
    signs: Signs,
    parts: Sequence[PartValues],
    start: Float[Tensor, " players"],
    generator: torch.Generator,
    stages: tuple[Stage, ...] = STAGES,
) -> list[CubeKernel]:
    """Fit the kernels of one or both parts of a game, which have the same weights of players.

    ``start`` holds the first weights, such as those of `weights_by_slope`.
    """
    of_part = torch.tensor([_FIRST_AMPLITUDE, _FIRST_NOISE, _FIRST_LOWEST]).to(signs)
    parameters = torch.cat([start, of_part.repeat(len(parts))]).log()
    order = torch.randperm(len(signs), generator=generator)
    for number, stage in enumerate(stages):
        if number > 0 and len(signs) <= stages[number - 1].coalitions:
            break  # there are no coalitions that the stage before has not seen
        seen = order[: stage.coalitions]
        seen_parts = [PartValues(part, values[seen]) for part, values in parts]
        parameters = _descend(parameters, signs[seen], seen_parts, stage)
    return kernels_of(parameters, parts)


def weights_by_slope(signs: Signs, odd: Float[Tensor, " coalitions"]) -> Float[Tensor, " players"]:
    """Return first weights: larger for players with a steeper slope in a linear fit to the odd part."""
    players = signs.shape[1]
    moments = signs.T @ signs / len(signs) + _RIDGE * torch.eye(players).to(signs)
    slopes = torch.linalg.solve(moments, signs.T @ odd / len(signs)).abs()
    slopes = slopes.clamp_min(max(_LEAST_SLOPE * float(slopes.max()), torch.finfo(slopes.dtype).tiny))
    return _FIRST_WEIGHT * (slopes / slopes.mean()) ** _SLOPE_POWER


def kernels_of(parameters: Float[Tensor, " parameters"], parts: Sequence[PartValues]) -> list[CubeKernel]:
    """Return the kernels with these logarithms of parameters: those of the weights, then those of each part."""
    players = len(parameters) - _OF_PART * len(parts)
    weights = parameters[:players].exp().clamp(_LEAST_WEIGHT, _LARGEST_WEIGHT)
    kernels = []
    for part, logarithms in zip(parts, parameters[players:].view(-1, _OF_PART), strict=True):
        amplitude, noise, lowest = logarithms.clamp_max(_LARGEST_LOGARITHM).exp().tolist()
        kernels.append(CubeKernel(part.part, weights, amplitude, noise + LEAST_NOISE, lowest))
    return kernels


def _descend(
    parameters: Float[Tensor, " parameters"], signs: Signs, parts: Sequence[PartValues], stage: Stage
) -> Float[Tensor, " parameters"]:
    """Search by the quasi-Newton method L-BFGS; return the parameters of the least loss."""
    tried = parameters.clone()
    best = parameters
    least = math.inf
    search = torch.optim.LBFGS(
        [tried],
        max_iter=stage.losses,
        max_eval=stage.losses,
        tolerance_grad=_LEAST_GRADIENT,
        tolerance_change=_LEAST_STEP,
        history_size=_REMEMBERED_STEPS,
        line_search_fn="strong_wolfe",
    )

    def loss_of_tried() -> float:
        nonlocal best, least
        loss = loss_of(tried, signs, parts)
        tried.grad = loss.gradient
        if loss.value < least:
            least = loss.value
            best = tried.clone()
        return min(loss.value, _UNLIKELY)

    search.step(loss_of_tried)
    return best


def loss_of(parameters: Float[Tensor, " parameters"], signs: Signs, parts: Sequence[PartValues]) -> Loss:
    """Return the negative log-likelihood of the parts, with the prior of their weights, and its gradient."""
    players = signs.shape[1]
    spread = parameters[:players] - parameters[:players].mean()
    value = float(spread.square().sum()) / (2 * _PRIOR_SPREAD**2)
    gradient = torch.zeros_like(parameters)
    gradient[:players] = spread / _PRIOR_SPREAD**2
    for number, kernel in enumerate(kernels_of(parameters, parts)):
        of_part = negative_log_likelihood(kernel, signs, parts[number].values)
        value += of_part.value
        gradient[:players] += of_part.gradient[:players]
        first = players + _OF_PART * number
        gradient[first : first + _OF_PART] = of_part.gradient[players:]
    return Loss(value, gradient)


def negative_log_likelihood(kernel: CubeKernel, signs: Signs, values: Float[Tensor, " coalitions"]) -> Loss:
    """Return the negative log-likelihood of values, and its gradient by the logarithms of a kernel's parameters."""
    weights = kernel.weights
    largest = kernel.largest_agreement
    is_odd = kernel.part is Part.ODD
    agreement = (signs * weights) @ signs.T
    shape, slope = shape_and_slope_of(kernel.part, agreement, largest)
    lowest_slope = kernel.lowest / largest if is_odd else 0.0
    covariances = kernel.amplitude * shape
    if is_odd:
        covariances.add_(agreement, alpha=lowest_slope)
    else:
        covariances.add_(kernel.lowest)
    covariances.diagonal().add_(kernel.noise)
    factor, failed = torch.linalg.cholesky_ex(covariances)
    if int(failed):
        return Loss(math.inf, torch.zeros(len(weights) + _OF_PART).to(weights))
    solved = torch.cholesky_solve(values[:, None], factor)[:, 0]
    value = float(values @ solved) / 2 + float(factor.diagonal().log().sum())

    # The derivative of the loss by an entry of the covariances is half of this matrix.
    # Symmetric; its transpose has the rows one after the other, like the shape.
    by_covariance = torch.cholesky_inverse(factor).T.addr_(solved, solved, alpha=-1)
    by_amplitude = kernel.amplitude * float(torch.dot(by_covariance.view(-1), shape.view(-1)))
    by_noise = kernel.noise * float(by_covariance.diagonal().sum())
    if is_odd:
        by_lowest = lowest_slope * float(torch.dot(by_covariance.view(-1), agreement.view(-1)))
        by_largest = by_amplitude / math.tanh(largest) + by_lowest / largest
    else:
        by_lowest = kernel.lowest * float(by_covariance.sum())
        by_largest = by_amplitude * math.tanh(largest)
    # Covariances depend on a weight by the agreement, s_l t_l, and by its largest value.
    by_agreement = by_covariance.mul_(slope.mul_(kernel.amplitude).add_(lowest_slope))
    along_players = (signs * (by_agreement @ signs)).sum(0)
    by_weights = weights * (along_players - by_largest)
    of_part = torch.tensor([by_amplitude, by_noise, by_lowest]).to(weights)
    return Loss(value, torch.cat([by_weights, of_part]) / 2)
