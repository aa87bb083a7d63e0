"""Interactions and attributions as shapiq's InteractionValues, and its Möbius values as interactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from absentia.attributions import Attribution
from absentia.coalitions import zeta
from absentia.errors import wrong
from absentia.game import rounding_noise
from absentia.interactions import Interactions
from absentia.interop.base_values import BaseValues, check_sample, empty_values
from absentia.optional import require

# shapiq's name of each kind of attribution.
_INDICES = {"Shapley values": "SV", "sampled Shapley values": "SV", "Banzhaf values": "BV"}


def to_shapiq(result: Interactions | Attribution, sample: int = 0, *, base_values: BaseValues | None = None) -> Any:
    """Make shapiq's InteractionValues of one sample's result, for its plots and its conversion to other indices.

    Interactions become Möbius values of all sets; attributions become Shapley ("SV") or Banzhaf ("BV") values, and
    need ``base_values``, v(∅): the game itself, or numbers. shapiq keeps no names: its plots take them from you.

    >>> import absentia as ab
    >>> values = to_shapiq(ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])))
    >>> values.index, values[(0, 1)], values.baseline_value
    ('Moebius', 6.0, 2.0)
    """
    shapiq = require("shapiq")
    if isinstance(result, Interactions):
        check_sample(sample, len(result.effects))
        effects = result.effects[sample].detach().cpu().tolist()
        effect_of = {_members(number): effect for number, effect in enumerate(effects)}
        return shapiq.InteractionValues(
            effect_of,
            index="Moebius",
            min_order=0,
            max_order=len(result.names),
            n_players=len(result.names),
            estimated=False,
            baseline_value=effects[0],
        )
    if not isinstance(result, Attribution):
        raise wrong("result", "be Interactions or an Attribution", type(result).__name__)
    check_sample(sample, len(result.values))
    if base_values is None:
        then = "Pass base_values=game, or v(∅) as a number."
        raise wrong("base_values", "be given for an attribution", "none", then)
    empty = float(empty_values(base_values, len(result.values))[sample])
    sets: dict[tuple[int, ...], float] = {(): empty}
    sets.update({(player,): value for player, value in enumerate(result.values[sample].detach().cpu().tolist())})
    return shapiq.InteractionValues(
        sets,
        index=_INDICES[result.kind],
        min_order=0,
        max_order=1,
        n_players=len(result.names),
        estimated=result.kind.startswith("sampled"),
        estimation_budget=result.evaluations // len(result.values) if result.kind.startswith("sampled") else None,
        baseline_value=empty,
    )


def from_shapiq(values: Any, names: Sequence[str] | None = None) -> Interactions:
    """Take shapiq's Möbius values of all sets, such as from its ExactComputer, as the interactions of one sample.

    >>> import absentia as ab
    >>> interactions = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0], names=["p", "q"]))
    >>> from_shapiq(to_shapiq(interactions), names=["p", "q"])
    Interactions of 1 sample, 2 players; value: given; strongest:
      p & q     +6
      p         -4
      q         -3
    """
    require("shapiq")
    if not hasattr(values, "dict_values"):
        raise wrong("values", "be shapiq's InteractionValues", type(values).__name__)
    then = 'Compute them with shapiq.ExactComputer(game)("Moebius").'
    if values.index != "Moebius":
        raise wrong("values", "be Möbius values", f"the index {values.index!r}", then)
    players = int(values.n_players)
    found = {(): float(values.baseline_value), **values.dict_values}
    if len(found) != 2**players:
        raise wrong("values", f"hold all {2**players} sets of {players} players", f"{len(found)} of them", then)
    named = tuple(f"x{i}" for i in range(players)) if names is None else tuple(names)
    if len(named) != players:
        raise wrong("names", f"name each of the {players} players", f"{len(named)} names")
    effects = torch.zeros(1, 2**players, dtype=torch.float64)
    for members, effect in found.items():
        effects[0, sum(1 << player for player in members)] = float(effect)
    noise = rounding_noise(zeta(effects), torch.float64)
    return Interactions(effects, named, "given", noise, evaluations=0)


def _members(number: int) -> tuple[int, ...]:
    return tuple(player for player in range(number.bit_length()) if number >> player & 1)
