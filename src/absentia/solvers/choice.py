"""The choice of a solver for a game's interactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from absentia.arguments import checked
from absentia.errors import wrong
from absentia.games import Game
from absentia.solvers.exact import harsanyi
from absentia.solvers.leaves import sums_over_leaves, terms_of_leaves
from absentia.terms import Terms

Solver: TypeAlias = Callable[[Game], Terms]

# The solvers that `interactions` can use, by name. Add one with `SOLVERS["name"] = function`.
SOLVERS: dict[str, Solver] = {"exact": harsanyi, "leaves": terms_of_leaves}
# With this name, the game decides which solver is used.
AUTO = "auto"


@checked
def interactions(game: Game, *, solver: str = AUTO) -> Terms:
    """Compute the interactions of a game with a solver.

    Parameters
    ----------
    game : Game
        A `MaskedModel`, a `ValueTable`, or a game of your own.
    solver : str, default "auto"
        "exact" evaluates all 2ⁿ coalitions. "leaves" reads the leaves of a model's trees, for any number of players.
        "auto" chooses "leaves" if values are sums over leaves, and "exact" otherwise. Others can be added to
        ``absentia.solvers.choice.SOLVERS``.

    Examples
    --------
    >>> ab.interactions(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).effects
    tensor([[ 2., -4., -3.,  6.]], dtype=torch.float64)
    """
    if solver == AUTO:
        solver = "exact" if sums_over_leaves(game) is None else "leaves"
    if solver not in SOLVERS:
        raise wrong("solver", f"be one of {AUTO}, {', '.join(SOLVERS)}", repr(solver))
    return SOLVERS[solver](game)
