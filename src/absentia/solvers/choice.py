"""The choice of a solver for a game's interactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from absentia.arguments import checked
from absentia.data import check_number
from absentia.errors import wrong
from absentia.games import MAX_PLAYERS, Game, draws_of
from absentia.solvers.exact import harsanyi
from absentia.solvers.few_terms import few_terms
from absentia.solvers.leaves import sums_over_leaves, terms_of_leaves
from absentia.terms import Terms

Solver: TypeAlias = Callable[[Game], Terms]

# The solvers that `interactions` can use, by name. Add one with `SOLVERS["name"] = function`.
SOLVERS: dict[str, Solver] = {"exact": harsanyi, "leaves": terms_of_leaves, "few": few_terms}
# With this name, the game decides which solver is used.
AUTO = "auto"


@checked
def interactions(
    game: Game,
    *,
    solver: str = AUTO,
    evaluations: int | None = None,
    max_order: int | None = None,
    max_terms: int | None = None,
    seed: int = 0,
) -> Terms:
    """Compute the interactions of a game.

    They are exact up to 24 players, and at any number of players for a model of trees whose value is a sum over
    leaves. Otherwise, or with ``evaluations``, few interactions are estimated from drawn coalitions. Their `fidelity`
    is the share of the variation that they account for: R² on coalitions that no fit saw.

    Parameters
    ----------
    game : Game
        A `MaskedModel`, a `ValueTable`, or a game of your own.
    solver : str, default "auto"
        "exact" evaluates all 2ⁿ coalitions. "leaves" reads the leaves of a model's trees. "few" draws coalitions, and
        searches few terms that predict others; it is exact with a budget for all coalitions. "auto" chooses. Others
        can be added to ``absentia.solvers.choice.SOLVERS``.
    evaluations : int, optional
        For few interactions: the rows that the model may evaluate for each sample, one for each coalition and draw
        of the absence. The default is 4096 coalitions, or 16 for each player.
    max_order : int, optional
        The size of the largest sets. Without it, sets of exact results have any size, and those of few terms up to 6.
    max_terms : int, optional
        The largest number of terms of each sample, besides that of ∅. Few terms are then searched whose sum predicts
        best, which are seldom the strongest of a longer list; they are at most 299. Of exact results the strongest
        are kept.
    seed : int, default 0
        The seed of the drawn coalitions.

    Examples
    --------
    >>> ab.interactions(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).effects
    tensor([[ 2., -4., -3.,  6.]], dtype=torch.float64)
    >>> def model(rows):
    ...     return 3 * rows[:, 0] * rows[:, 1] + rows[:, 2:].sum(1)
    >>> game = ab.MaskedModel(model, torch.ones(1, 40), absence=0.0)
    >>> ab.interactions(game, evaluations=400).top(1)[0].players
    ('x0', 'x1')
    """
    check_number("max_order", max_order, 1, len(game.names))
    check_number("max_terms", max_terms, 1)
    check_number("evaluations", evaluations, 1)
    if solver == AUTO:
        solver = _chosen_solver(game, evaluations)
    if solver not in SOLVERS:
        raise wrong("solver", f"be one of {AUTO}, {', '.join(SOLVERS)}", repr(solver))
    if solver == "few":
        return few_terms(game, evaluations, seed=seed, max_order=max_order, max_terms=max_terms)
    terms = SOLVERS[solver](game)
    if max_order is not None:
        terms = terms.up_to_order(max_order)
    return terms if max_terms is None else terms.keep(max_terms)


def _chosen_solver(game: Game, evaluations: int | None) -> str:
    """Return the solver that "auto" stands for: the exact ones unless there are too many coalitions."""
    if sums_over_leaves(game) is not None:
        return "leaves"
    players = len(game.names)
    if evaluations is not None and evaluations < 2**players * draws_of(game):
        return "few"
    return "exact" if players <= MAX_PLAYERS else "few"
