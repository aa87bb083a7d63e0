"""captum: absences as its ``baselines``, players as its ``feature_mask``, and its attributions by player."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import Absence, BringsModel, StandIns, describe_absence
from absentia.absences.words import named_absence
from absentia.arguments import checked
from absentia.data import Array, Table, as_tensor
from absentia.errors import wrong
from absentia.players import ALWAYS_PRESENT, Players


@checked
def captum_baselines(
    absence: Absence | str | float, x: Table, players: Players | None = None
) -> Shaped[Tensor, "samples_or_one *entries"]:
    """Return the tensor that captum takes as ``baselines`` for these samples.

    Parameters
    ----------
    absence : Absence, str or float
        An absence with a fixed stand-in for each sample: `Baseline`, `OwnBaselines`, a learned baseline or `Blur`.
    x : array-like of shape (samples, …)
    players : Players, optional
        Entries that belong to no player are always present, so their baselines are the sample's own values.

    Examples
    --------
    >>> players = ab.Players.groups({"first": [0], "last": [2]}, features=3)
    >>> captum_baselines(ab.Baseline(0.5), torch.tensor([[1.0, 2.0, 3.0]]), players)
    tensor([[0.5000, 2.0000, 0.5000]])
    """
    x = as_tensor("x", x)
    if players is not None:
        players.check_samples(x)
    absence = named_absence(absence, players=players)
    stand_ins = _fixed_stand_ins(absence, x)
    if players is None:
        return stand_ins
    is_always_present = players.labels.to(x.device) == ALWAYS_PRESENT
    if not bool(is_always_present.any()):
        return stand_ins
    return torch.where(is_always_present, x, stand_ins)


def _fixed_stand_ins(absence: Absence, x: Tensor) -> Tensor:
    """Return a copy, which captum may write to, of the one stand-in that an absence has for each sample."""
    fill = None if isinstance(absence, BringsModel) else absence.bind(x)
    if not isinstance(fill, StandIns) or fill.draws != 1:
        must = "have one fixed stand-in for each sample for captum"
        raise wrong("absence", must, describe_absence(absence), "Use MaskedModel and shapley for it.")
    return fill.values[:, 0].clone()


@checked
def captum_feature_mask(players: Players) -> Int[Tensor, "1 *entries"]:
    """Return the tensor that captum takes as ``feature_mask``: the number of each entry's player.

    Parameters
    ----------
    players : Players
        The n players. Entries that are always present become group n. With the baselines from
        ``captum_baselines(absence, x, players)`` this group has no effect, and `from_captum` leaves it out.

    Examples
    --------
    >>> captum_feature_mask(ab.Players.groups({"first": [0], "last": [2]}, features=3))
    tensor([[0, 2, 1]])
    """
    return players.labels.masked_fill(players.labels == ALWAYS_PRESENT, len(players))[None]


@checked
def from_captum(attributions: Array, players: Players, *, by_entry: bool = False) -> Float[Tensor, "samples players"]:
    """Return one value for each player from captum's attributions, which have the shape of the inputs.

    Parameters
    ----------
    attributions : array of shape (samples, …)
    players : Players
    by_entry : bool, default False
        Whether captum attributed to each entry, as IntegratedGradients does. The entries of a player are then summed.

    Examples
    --------
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
    if by_entry:
        return players.sums(spread)
    # All entries of a player have the same attribution: take the first.
    labels = players.labels.flatten().tolist()
    first_entries = [labels.index(player) for player in range(len(players))]
    return spread.flatten(1)[:, first_entries]
