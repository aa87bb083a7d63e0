"""Absences and players as captum's ``baselines`` and ``feature_mask``, and captum's results as values of players."""

from __future__ import annotations

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from absentia.absence import Absence, BringsModel, StandIns
from absentia.arrays import Array, Table, as_tensor
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players


def captum_baselines(
    absence: Absence, x: Table, players: Players | None = None
) -> Shaped[Tensor, "samples_or_one *entries"]:
    """Give what captum takes as ``baselines`` of these samples: one row for all of them, or one for each.

    The absence must be one of fixed stand-ins: `Baseline`, `OwnBaselines`, a learned one, `Blur`, or a single draw.
    captum knows no entries that are always present: with ``players`` that leave some out, those entries get the
    sample's own values, so that whatever captum does to them changes nothing.

    >>> import absentia as ab
    >>> captum_baselines(ab.Baseline(0.5), torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0.5000, 0.5000, 0.5000]])
    >>> players = ab.Players.groups({"first": [0], "last": [2]}, features=3)
    >>> captum_baselines(ab.Baseline(0.5), torch.tensor([[1.0, 2.0, 3.0]]), players)
    tensor([[0.5000, 2.0000, 0.5000]])
    """
    x = as_tensor("x", x)
    if players is not None and players.shape != tuple(x.shape[1:]):
        raise wrong("x", f"have samples of the players' shape {players.shape}", f"{tuple(x.shape[1:])}")
    if not isinstance(absence, Absence):
        raise wrong("absence", "be an absence such as Baseline(0.0)", type(absence).__name__)
    then = "Explain it with MaskedModel and shapley."
    if isinstance(absence, BringsModel):
        raise wrong("absence", "leave the model as it is for captum", "one that brings its own", then)
    fill = absence.bind(x)
    if not isinstance(fill, StandIns):
        got = "stand-ins that depend on the present players"
        raise wrong("absence", "have fixed stand-ins for captum", got, then)
    if fill.draws != 1:
        raise wrong("absence", "have one stand-in for each sample for captum", f"{fill.draws} draws", then)
    stand_ins = fill.values[:, 0]
    if players is None or not bool((players.labels == ALWAYS_PRESENT).any()):
        return stand_ins.clone()  # captum must not write into the absence's own values
    return torch.where(players.labels.to(x.device) == ALWAYS_PRESENT, x, stand_ins)


def captum_feature_mask(players: Players) -> Int[Tensor, "1 *entries"]:
    """Give what captum takes as ``feature_mask``: the player of each entry.

    captum knows no entries that are always present: they become one more group, number n, after the n players. It
    has no effect with the baselines of ``captum_baselines(absence, x, players)``, and `from_captum` leaves it out.

    >>> import absentia as ab
    >>> captum_feature_mask(ab.Players.groups({"first": [0], "last": [2]}, features=3))
    tensor([[0, 2, 1]])
    """
    return players.labels.masked_fill(players.labels == ALWAYS_PRESENT, len(players))[None]


def from_captum(
    attributions: Array, players: Players, *, by_entry: bool = False
) -> Shaped[Tensor, "samples players"]:
    """Gather captum's result, which has the shape of the inputs, into one value for each player.

    Methods with a ``feature_mask`` repeat a player's value on each of its entries. Those that value every entry by
    itself, such as IntegratedGradients, need ``by_entry=True``: a player then has the sum of its entries.

    >>> import absentia as ab
    >>> players = ab.Players.groups({"size": [0, 2], "mass": [1]}, features=3)
    >>> from_captum(torch.tensor([[5.0, 2.0, 5.0]]), players)
    tensor([[5., 2.]])
    >>> from_captum(torch.tensor([[1.0, 2.0, 4.0]]), players, by_entry=True)
    tensor([[5., 2.]])
    """
    spread = as_tensor("attributions", attributions).detach()
    if tuple(spread.shape[1:]) != players.shape:
        must = f"have the inputs' shape, (samples, {', '.join(map(str, players.shape))})"
        raise wrong("attributions", must, f"shape {tuple(spread.shape)}")
    labels, rows = players.labels.flatten().to(spread.device), spread.flatten(1)
    if not by_entry:
        first = [int((labels == player).nonzero()[0]) for player in range(len(players))]
        return rows[:, first]
    owned = labels != ALWAYS_PRESENT
    return rows.new_zeros(len(rows), len(players)).index_add_(1, labels[owned], rows[:, owned])
