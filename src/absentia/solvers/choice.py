"""The choice of a solver for a game's interactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from absentia.arguments import checked
from absentia.errors import wrong
from absentia.games import Game
from absentia.solvers.exact import harsanyi
from absentia.terms import Terms

Solver: TypeAlias = Callable[[Game], Terms]

# The solvers that `interactions` can use, by name. Add one with `SOLVERS["name"] = function`.
SOLVERS: dict[str, Solver] = {"exact": harsanyi}


@checked
def interactions(game: Game, *, solver: str = "exact") -> Terms:
    """Compute the interactions of a game by a solver.

    Parameters
    ----------
    game : Game
        A `MaskedModel`, a `ValueTable`, or a game of your own.
    solver : str, default "exact"
        "exact" evaluates all 2ⁿ coalitions; others can be added to ``absentia.solvers.choice.SOLVERS``.

    Examples
    --------
    >>> ab.interactions(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).effects
    tensor([[ 2., -4., -3.,  6.]], dtype=torch.float64)
    """
    if solver not in SOLVERS:
        raise wrong("solver", f"be one of {', '.join(SOLVERS)}", repr(solver))
    return SOLVERS[solver](game)
