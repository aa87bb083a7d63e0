"""Shapley values and interaction indices of a Gaussian process, in closed form.

These numbers are integrals along the diagonal of the cube, on which every player is present with the same
probability. Let f(x) be the mean value if each player's sign has the mean x, from −1 (all absent) to +1 (all
present), and f_S its derivative by the players of S. Then the Shapley value of a player is the integral of its
derivative over the diagonal, and other indices weigh the diagonal in other ways. For the covariances of a kernel,
which are products over the players, derivatives are products too, and Gauss–Legendre quadrature is exact.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.cube.kernels import CubeKernel, Part, Signs
from absentia.cube.posterior import Functional
from absentia.errors import wrong

# Quadrature needs n/2 nodes to be exact; with this many the error is below rounding, because derivatives are smooth.
_MOST_NODES = 32


def shapley_functional(kernel: CubeKernel, signs: Signs) -> Functional:
    """Return how the Shapley values of the odd part vary with its values; the even part has none.

    The Shapley value of player i, for the product of the signs of a set T that contains i, is 2/|T| if |T| is odd.
    """
    if kernel.part is not Part.ODD:
        raise wrong("kernel", "be that of the odd part for Shapley values", "that of the even part")
    covariances = _integrated_derivatives(kernel, signs)
    covariances.mul_(kernel.amplitude).add_(signs, alpha=2 * kernel.free_variance)
    return Functional(covariances, _variances_of_shapley_values(kernel))


def _integrated_derivatives(kernel: CubeKernel, signs: Signs) -> Float[Tensor, "coalitions players"]:
    """Integrate the derivatives of the shape sinh(u)/sinh(U) by each player along the diagonal, from −1 to 1.

    With the factor Π cosh ρ / sinh U, the derivative by player i at x is r_i t_i Π_{l≠i} (1 + x r_l t_l). Its odd
    powers of x, which would belong to the even part, cancel in the integral.
    """
    relevant = kernel.relevances * signs
    players = signs.shape[1]
    nodes, node_weights = np.polynomial.legendre.leggauss(min(players // 2 + 1, _MOST_NODES))
    total = torch.zeros_like(signs)
    for node, node_weight in zip(nodes.tolist(), node_weights.tolist(), strict=True):
        factors = 1 + node * relevant
        products = (factors.log().sum(1, keepdim=True) + kernel.log_factor).exp_()
        total.addcdiv_(products * relevant, factors, value=node_weight)
    return total


def _variances_of_shapley_values(kernel: CubeKernel) -> Float[Tensor, " players"]:
    """Return the prior variances of the Shapley values: Σ (2/|T|)² times the variance of T, over odd T with i ∈ T."""
    relevances = kernel.relevances
    players = len(relevances)
    # Sums of the products of r over all sets of a size that lack player i, one player after the other.
    sums = torch.zeros(players, players, dtype=relevances.dtype)
    sums[:, 0] = 1.0
    for player in range(players):
        added = relevances[player].repeat(players)
        added[player] = 0.0
        sums[:, 1:] += added[:, None] * sums[:, :-1].clone()
    sizes = torch.arange(1, players + 1, dtype=relevances.dtype)
    squares = torch.where(sizes % 2 == 1, 4 / sizes.square(), torch.zeros_like(sizes))
    of_sets = (sums * squares).sum(1) * relevances * math.exp(kernel.log_factor)
    return kernel.amplitude * of_sets + 4 * kernel.free_variance
