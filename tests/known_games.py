"""Independent oracles: the definitions written out as loops over sets, and games with closed forms."""

import itertools
import math

import torch
from torch import nn


def subsets(players):
    """All subsets of a collection of players, as tuples."""
    players = tuple(players)
    return itertools.chain.from_iterable(itertools.combinations(players, size) for size in range(len(players) + 1))


def number(coalition):
    """A set's place in counting order."""
    return sum(2**player for player in coalition)


def harsanyi_by_definition(values):
    """Eq. 3 by a double loop over subsets."""
    n = len(values).bit_length() - 1
    effects = [0.0] * len(values)
    for outer in subsets(range(n)):
        for inner in subsets(outer):
            effects[number(outer)] += (-1) ** (len(outer) - len(inner)) * values[number(inner)]
    return effects


def shapley_by_permutations(values):
    """Shapley values as the mean of marginal benefits over all n! orders of arrival."""
    n = len(values).bit_length() - 1
    totals = [0.0] * n
    for order in itertools.permutations(range(n)):
        present = 0
        for player in order:
            totals[player] += values[present | 1 << player] - values[present]
            present |= 1 << player
    return [total / math.factorial(n) for total in totals]


def shapley_by_subsets(values):
    """Eq. 1: the weighted sum over all coalitions that lack the player."""
    n = len(values).bit_length() - 1
    result = []
    for player in range(n):
        total = 0.0
        for coalition in subsets(set(range(n)) - {player}):
            size = len(coalition)
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            total += weight * (values[number((*coalition, player))] - values[number(coalition)])
        result.append(total)
    return result


def marginal_benefits_by_order(values, transform=lambda benefit: benefit):
    """E over |S| = m of (a function of) v(S∪i) − v(S): a list of orders, each a list of players."""
    n = len(values).bit_length() - 1
    table = []
    for order in range(n):
        row = []
        for player in range(n):
            others = [p for p in range(n) if p != player]
            benefits = [
                transform(values[number((*coalition, player))] - values[number(coalition)])
                for coalition in itertools.combinations(others, order)
            ]
            row.append(sum(benefits) / len(benefits))
        table.append(row)
    return table


def product(weight, deltas):
    """The model f(x) = w Π (x_j − δ_j), whose truly absent state is x_j = δ_j."""
    return lambda rows: weight * (rows - torch.as_tensor(deltas, dtype=rows.dtype)).prod(1)


def mlp(inputs, outputs=1, hidden=16, dtype=torch.float64, seed=0, activation=nn.Tanh):
    """A small random MLP."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(inputs, hidden),
            activation(),
            nn.Linear(hidden, hidden),
            activation(),
            nn.Linear(hidden, outputs),
        ).to(dtype)


def cnn(channels=1, classes=3, dtype=torch.float64, seed=0):
    """A small random CNN."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(channels, 4, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(16, classes),
        ).to(dtype)
