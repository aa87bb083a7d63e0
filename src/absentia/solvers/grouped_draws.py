"""Values by groups of the draws of a random absence, whose differences give the error of the draws."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.coalitions import Coalitions
from absentia.evaluation import check_finite
from absentia.games import Game, MaskedModel, ask, draws_of

# Values of a random absence are kept for about this many groups of its draws, from which the error of draws follows.
MOST_GROUPS = 10


def games_by_draws(game: Game) -> tuple[list[Game], Float[Tensor, " groups"]]:
    """Return the game of each group of draws of a random absence, and each group's share; otherwise the game."""
    count = games_asked(game)
    if count == 1 or not isinstance(game, MaskedModel):
        return [game], torch.ones(1, dtype=torch.float64)
    draws = draws_of(game)
    groups = [list(range(first, draws, count)) for first in range(count)]
    shares = torch.tensor([len(group) / draws for group in groups], dtype=torch.float64)
    return [game.of_draws(group) for group in groups], shares


def games_asked(game: Game) -> int:
    """Return how many games `games_by_draws` returns: how often coalitions are evaluated one after the other."""
    draws = draws_of(game)
    if draws == 1 or not isinstance(game, MaskedModel) or not game.can_select_draws:
        return 1
    return min(draws, MOST_GROUPS)


def ask_by_draws(game: Game, parts: list[Game], asked: Coalitions) -> Float[Tensor, "samples groups asked"]:
    """Return the values of ∅, all players and other coalitions by groups of draws, and check the model."""
    values = values_by_draws(parts, asked)
    check_full(game, values)
    check_still_same(game)
    return values


def values_by_draws(parts: list[Game], asked: Coalitions) -> Float[Tensor, "samples groups asked"]:
    """Return the values of coalitions by groups of draws; raise an error for values that are not finite."""
    by_group = []
    for part in parts:
        values = ask(part, asked).double().cpu()
        check_finite(values, torch.arange(len(values)), asked.expand(len(values), -1, -1), "values of the game")
        by_group.append(values)
    return torch.stack(by_group, dim=1)


def check_full(game: Game, values: Float[Tensor, "samples groups asked"]) -> None:
    """Check that the second value is that of the whole sample."""
    if isinstance(game, MaskedModel) and values.shape[1] == 1:
        game.evaluator.check_full(values[-1, 0, 1], values[:, 0])


def check_still_same(game: Game) -> None:
    """Check that the model still gives the same output for the same sample."""
    if isinstance(game, MaskedModel):
        game.evaluator.check_still_same()


def error_of_draws(
    by_group: Float[Tensor, "groups *numbers"], shares: Float[Tensor, " groups"]
) -> Float[Tensor, " *numbers"]:
    """Return the standard error of a mean over groups of independent draws, from how groups differ."""
    weights = shares.view(-1, *[1] * (by_group.ndim - 1)).to(by_group)
    mean = (weights * by_group).sum(0)
    count = len(by_group)
    squares = (weights.square() * (by_group - mean).square()).sum(0)
    return (squares * count / max(1, count - 1)).sqrt()
