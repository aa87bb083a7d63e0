"""Shapley values and interaction indices of a Gaussian process, in closed form.

These numbers are integrals along the diagonal of the cube, on which every player is present with the same
probability. Let f(x) be the mean value if each player's sign has the mean x, from −1 (all absent) to +1 (all
present), and f_S its derivative by the players of S. Then the Shapley value of a player is the integral of its
derivative over the diagonal, and other indices weigh the diagonal in other ways. For the covariances of a kernel,
which are products over the players, derivatives are products too, and Gauss–Legendre quadrature is exact.

What a kernel cannot describe is noise: every coalition's value has a part of its own, which the same numbers contain.
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
    covariances.mul_(kernel.amplitude).add_(2 * kernel.slope_variances * signs)
    covariances.add_(_noise_covariances(kernel, signs))
    variances = _variances_of_shapley_values(kernel) + _noise_variance(kernel)
    return Functional(covariances, variances)


def _noise_covariances(kernel: CubeKernel, signs: Signs) -> Float[Tensor, "coalitions players"]:
    """Return the covariances of Shapley values with the noise of coalitions: that of ∅ and of all players is 0.

    A coalition of s players and its complement together enter the Shapley value of a player i by 2 w(s − 1) times the
    odd part if i is present, and by −2 w(s) times it if not, with w(k) = k! (n − 1 − k)! / n!.
    """
    players = signs.shape[1]
    present = signs > 0
    sizes = present.sum(1)
    of_contexts = torch.cat([weights_of_contexts(players), torch.zeros(1).to(signs)])
    if_present = of_contexts[(sizes - 1).clamp_min(0)][:, None]
    if_absent = of_contexts[sizes][:, None]
    is_noisy = ((sizes > 0) & (sizes < players))[:, None]
    return 2 * kernel.noise * is_noisy * torch.where(present, if_present, -if_absent)


def _noise_variance(kernel: CubeKernel) -> float:
    """Return the prior variance of a Shapley value through the noise of all pairs of coalitions."""
    players = kernel.players
    squares = weights_of_contexts(players) / players  # w(k)² for each context, added up over those of a size
    # Each size of the other players occurs with the player and without, but for ∅ and all players together.
    return 2 * kernel.noise * float(squares[:-1].sum() + squares[1:].sum())


def weights_of_contexts(players: int) -> Float[Tensor, " contexts"]:
    """Return k! (n − 1 − k)! / n!: how much a coalition of k others counts in the Shapley value of a player.

    >>> weights_of_contexts(3)
    tensor([0.3333, 0.1667, 0.3333], dtype=torch.float64)
    """
    sizes = torch.arange(players, dtype=torch.float64)
    count = torch.tensor(float(players), dtype=torch.float64)
    return (torch.lgamma(sizes + 1) + torch.lgamma(count - sizes) - torch.lgamma(count + 1)).exp()


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
    return kernel.amplitude * of_sets + 4 * kernel.slope_variances
