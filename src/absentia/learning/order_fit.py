"""Order-wise Shapley values of many players, estimated from drawn coalitions by a quadratic fit."""

import math
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import Coalitions, draw_coalitions

# The penalty on the coefficients of the fit, as a multiple of the number of coalitions.
_RIDGE = 1e-3


def order_shapley_weights(
    players: int, orders: int, evaluations: int, generator: torch.Generator
) -> tuple[Coalitions, Float[Tensor, "estimates coalitions"]]:
    """Draw coalitions, and the weights W with which their values estimate all φᵢ⁽ᵐ⁾, m < λ: φ ≈ W v.

    A quadratic a + Σβᵢ + Σγᵢⱼ is fitted by ridge regression. Its order-wise values are exactly βᵢ + m/(n−1)·Σⱼγᵢⱼ.
    The differences of means, v̄ₘ₊₁(i) − v̄ₘ(−i), of the residuals are added. All of it is linear in v. With F v the
    coefficients of the fit to values v, and D their design, W = (order-wise values) F + (differences) (I − D F).
    """
    coalitions = _balanced_coalitions(players, orders, evaluations, generator)
    pairs = torch.triu_indices(players, players, offset=1)  # (2, pairs)
    design = _quadratic_design(coalitions, pairs)  # (coalitions, coefficients)
    ridge = _RIDGE * len(coalitions) * torch.eye(design.shape[1]).double()
    ridge[0, 0] = 0.0  # the constant is not penalised
    fit = torch.linalg.solve(design.T @ design + ridge, design.T)  # (coefficients, coalitions): values → coefficients
    residual = torch.eye(len(coalitions)).double() - design @ fit  # (coalitions, coalitions): values → residuals
    order_values = _order_coefficients(players, orders, pairs).flatten(0, 1)  # (orders · players, coefficients)
    differences = _differences_of_means(coalitions, orders).flatten(0, 1)  # (orders · players, coalitions)
    return coalitions, order_values @ fit + differences @ residual


def _quadratic_design(
    coalitions: Coalitions, pairs: Int[Tensor, "2 pairs"]
) -> Float[Tensor, "coalitions coefficients"]:
    """Return the columns of the quadratic: a constant, the players, and their pairs."""
    rows = coalitions.double()
    constant = torch.ones(len(rows), 1).double()
    products = rows[:, pairs[0]] * rows[:, pairs[1]]
    return torch.cat([constant, rows, products], dim=1)


def _order_coefficients(
    players: int, orders: int, pairs: Int[Tensor, "2 pairs"]
) -> Float[Tensor, "orders players coefficients"]:
    """Return how the order-wise values of each player add up from the coefficients of the quadratic."""
    order = torch.arange(orders)[:, None, None].double()
    in_pair = (torch.arange(players)[:, None, None] == pairs).any(1)
    constant = torch.zeros(orders, players, 1)
    alone = torch.eye(players).expand(orders, -1, -1)
    with_others = order / max(1, players - 1) * in_pair
    return torch.cat([constant, alone, with_others], dim=-1)


def _differences_of_means(coalitions: Coalitions, orders: int) -> Float[Tensor, "orders players coalitions"]:
    """Return the weights of v̄ₘ₊₁(i) − v̄ₘ(−i); 0 where one of the means has no coalition."""
    order = torch.arange(orders)[:, None, None]
    sizes = coalitions.sum(1)
    with_player = coalitions.T & (sizes == order + 1)
    without_player = ~coalitions.T & (sizes == order)
    return (_mean_weights(with_player) - _mean_weights(without_player)).nan_to_num().double()


def _mean_weights(marked: Bool[Tensor, "*shape coalitions"]) -> Float[Tensor, "*shape coalitions"]:
    """Return the weights of the mean over marked coalitions; NaN where none is marked."""
    return marked / marked.sum(-1, keepdim=True)


def _balanced_coalitions(players: int, orders: int, evaluations: int, generator: torch.Generator) -> Coalitions:
    """Take all coalitions of the sizes 0 … λ that have few, and equally many of each of the other sizes."""
    parts: list[Tensor] = []
    sizes = sorted(range(orders + 1), key=lambda size: math.comb(players, size))
    for place, size in enumerate(sizes):
        left = evaluations - sum(len(part) for part in parts)
        share = max(2, left // (len(sizes) - place))
        if math.comb(players, size) <= share:
            members = torch.tensor(list(combinations(range(players), size)), dtype=torch.int64)
            parts.append(torch.zeros(len(members), players, dtype=torch.bool).scatter(1, members, True))
        else:
            drawn = draw_coalitions(players, torch.full((share,), size), generator)
            parts.append(torch.unique(drawn, dim=0))
    return torch.cat(parts)
