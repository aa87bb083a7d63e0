"""The fit of a kernel: weights of players, amplitude and noise that make the values of coalitions most likely.

The marginal likelihood of values y with covariances K is maximised [rasmussen2006gaussian], with a weak prior that
keeps the weights of players together: yᵀK⁻¹y/2 + log|K|/2 is made small. Its gradient has a closed form, and some
hundred coalitions are enough for it, because there are few parameters.
"""

from __future__ import annotations

import math
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


class Loss(NamedTuple):
    """The negative logarithm of the likelihood, with its gradient by the logarithms of the parameters."""

    value: float
    gradient: Float[Tensor, " parameters"]


def fit_kernel(
    part: Part,
    signs: Signs,
    values: Float[Tensor, " coalitions"],
    generator: torch.Generator,
    start: Float[Tensor, " players"] | None = None,
    stages: tuple[Stage, ...] = STAGES,
) -> CubeKernel:
    """Fit a kernel to one part of a game, whose values have a mean square of about 1.

    ``start`` holds first weights of the players, such as those of the other part.
    """
    if start is None:
        start = weights_by_slope(signs, values)
    ends = torch.tensor([_FIRST_AMPLITUDE, _FIRST_NOISE]).to(signs)
    parameters = torch.cat([start, ends]).log()
    order = torch.randperm(len(signs), generator=generator)
    for number, stage in enumerate(stages):
        if number > 0 and len(signs) <= stages[number - 1].coalitions:
            break  # there are no coalitions that the stage before has not seen
        seen = order[: stage.coalitions]
        parameters = _descend(part, parameters, signs[seen], values[seen], stage)
    return kernel_of(part, parameters)


def weights_by_slope(signs: Signs, values: Float[Tensor, " coalitions"]) -> Float[Tensor, " players"]:
    """Return first weights: larger for players with a steeper slope in a linear fit."""
    players = signs.shape[1]
    moments = signs.T @ signs / len(signs) + _RIDGE * torch.eye(players).to(signs)
    slopes = torch.linalg.solve(moments, signs.T @ values / len(signs)).abs()
    slopes = slopes.clamp_min(max(_LEAST_SLOPE * float(slopes.max()), torch.finfo(slopes.dtype).tiny))
    return _FIRST_WEIGHT * (slopes / slopes.mean()) ** _SLOPE_POWER


def kernel_of(part: Part, parameters: Float[Tensor, " parameters"]) -> CubeKernel:
    """Return the kernel whose parameters have these logarithms: the weights, the amplitude and the noise."""
    weights = parameters[:-2].exp().clamp(_LEAST_WEIGHT, _LARGEST_WEIGHT)
    amplitude, noise = parameters[-2:].clamp_max(_LARGEST_LOGARITHM).exp().tolist()
    return CubeKernel(part, weights, amplitude, noise + LEAST_NOISE)


def _descend(
    part: Part,
    parameters: Float[Tensor, " parameters"],
    signs: Signs,
    values: Float[Tensor, " coalitions"],
    stage: Stage,
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
        loss = loss_of(part, tried, signs, values)
        tried.grad = loss.gradient
        if loss.value < least:
            least = loss.value
            best = tried.clone()
        return min(loss.value, _UNLIKELY)

    search.step(loss_of_tried)
    return best


def loss_of(
    part: Part, parameters: Float[Tensor, " parameters"], signs: Signs, values: Float[Tensor, " coalitions"]
) -> Loss:
    """Return the negative log-likelihood of values, with the prior of the weights, and its gradient."""
    kernel = kernel_of(part, parameters)
    weights = kernel.weights
    largest = kernel.largest_agreement
    agreement = (signs * weights) @ signs.T
    shape, slope = shape_and_slope_of(part, agreement, largest)
    if part is Part.ODD:
        covariances = kernel.amplitude * shape + kernel.free_variance * (signs @ signs.T)
    else:
        covariances = kernel.amplitude * shape + kernel.free_variance
    covariances.diagonal().add_(kernel.noise)
    factor, failed = torch.linalg.cholesky_ex(covariances)
    if int(failed):
        return Loss(math.inf, torch.zeros_like(parameters))
    solved = torch.cholesky_solve(values[:, None], factor)[:, 0]
    spread = parameters[:-2] - parameters[:-2].mean()
    value = float(values @ solved) / 2 + float(factor.diagonal().log().sum()) + float(spread.square().sum()) / 2

    # The derivative of the loss by an entry of the covariances is half of this matrix.
    # Symmetric; its transpose has the rows one after the other, like the shape.
    by_covariance = torch.cholesky_inverse(factor).T.addr_(solved, solved, alpha=-1)
    along_shape = float(torch.dot(by_covariance.view(-1), shape.view(-1)))
    by_amplitude = kernel.amplitude * along_shape / 2
    by_noise = kernel.noise * float(by_covariance.diagonal().sum()) / 2
    # The shape depends on a weight by the agreement, s_l t_l, and by its largest value.
    by_agreement = by_covariance.mul_(slope)
    along_players = (signs * (by_agreement @ signs)).sum(0)
    tanh = math.tanh(largest)
    by_largest = along_shape * (1 / tanh if part is Part.ODD else tanh)
    by_weights = kernel.amplitude * (along_players - by_largest) / 2
    gradient = torch.cat([by_weights * weights + spread, torch.tensor([by_amplitude, by_noise]).to(weights)])
    return Loss(value, gradient)
