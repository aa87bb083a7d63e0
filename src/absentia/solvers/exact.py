"""Exact terms: the Harsanyi transform of the table of all values."""

from __future__ import annotations

from absentia.arguments import checked
from absentia.coalitions import moebius
from absentia.games import Game, value_table
from absentia.terms import Terms


@checked
def harsanyi(game: Game) -> Terms:
    """Compute the interactions of a game: U(S) = Σ_{T⊆S} (−1)^{|S|−|T|} v(T) [harsanyi1963simplified].

    Parameters
    ----------
    game : Game

    Examples
    --------
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=1.0)
    >>> ab.harsanyi(game).effects
    tensor([[1., 1., 2., 2.]], dtype=torch.float64)
    """
    table = value_table(game)
    return Terms(
        moebius(table.values),
        table.names,
        table.readout,
        table.noise,
        table.evaluations,
        rows_seen=table.rows_seen,
    )
