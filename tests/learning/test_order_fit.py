"""Order-wise Shapley values by a fit."""

import itertools

import pytest
import torch

from absentia.learning.order_fit import order_shapley_weights
from seeded_draws import generator


def order_values_by_definition(coalitions, values, players, orders):
    """Fit a quadratic, and add differences of the means of its residuals, as loops."""
    rows = [[int(present) for present in row] for row in coalitions.tolist()]
    pairs = list(itertools.combinations(range(players), 2))
    design = torch.tensor([[1.0, *row, *(row[i] * row[j] for i, j in pairs)] for row in rows]).double()
    fit = ridge_regression(design, values)
    residuals = (values - design @ fit).tolist()
    _, *slopes = fit[: players + 1].tolist()
    pair_effects = dict(zip(pairs, fit[players + 1 :].tolist(), strict=True))
    order_values = []
    for order in range(orders):
        for player in range(players):
            value = slopes[player]
            if players > 1:
                effects_with_player = sum(effect for pair, effect in pair_effects.items() if player in pair)
                value += order / (players - 1) * effects_with_player
            value += residual_benefit(rows, residuals, player, order)
            order_values.append(value)
    return order_values


def ridge_regression(design, values):
    """Return least squares with a row for each coefficient that is penalised: all but the constant."""
    penalties = torch.eye(design.shape[1]).double()[1:] * (1e-3 * len(design)) ** 0.5
    rows = torch.cat([design, penalties])
    outputs = torch.cat([values, torch.zeros(len(penalties)).double()])
    return torch.linalg.lstsq(rows, outputs[:, None]).solution[:, 0]


def residual_benefit(rows, residuals, player, order):
    """Return the mean residual of coalitions with a player, less that of those one smaller without it."""
    having = []
    lacking = []
    for row, residual in zip(rows, residuals, strict=True):
        if row[player] and sum(row) == order + 1:
            having.append(residual)
        elif not row[player] and sum(row) == order:
            lacking.append(residual)
    if not having or not lacking:
        return 0.0
    return sum(having) / len(having) - sum(lacking) / len(lacking)


@pytest.mark.parametrize(
    ("players", "orders", "evaluations"), [(1, 1, 5), (5, 3, 14), (5, 5, 32), (6, 2, 9), (8, 4, 60)]
)
def test_drawn_order_wise_values_are_a_fit_and_the_means_of_its_residuals(players, orders, evaluations):
    coalitions, weights = order_shapley_weights(players, orders, evaluations, generator())
    values = torch.randn(len(coalitions), generator=generator(1)).double()
    expected = order_values_by_definition(coalitions, values, players, orders)
    assert weights.shape == (orders * players, len(coalitions))
    assert (weights @ values).tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)
