"""Attributions as shap's Explanation, which every plot of shap draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from absentia.arrays import Table, as_tensor
from absentia.attributions import Attribution
from absentia.errors import wrong
from absentia.interop.base_values import BaseValues, empty_values
from absentia.interop.player_data import player_means, player_texts
from absentia.masked_model import MaskedModel
from absentia.optional import require
from absentia.players import Players


def to_shap(
    attribution: Attribution | Mapping[str, Attribution],
    x: Table | None = None,
    *,
    base_values: BaseValues | Mapping[str, BaseValues],
    players: Players | None = None,
    display_data: Table | None = None,
) -> Any:
    """Make shap's Explanation of attributions: every plot of shap that takes one draws it.

    ``base_values`` is v(∅): the game itself, which is asked, or numbers. ``x`` holds the samples; it and ``players``
    are the game's where that is a MaskedModel. Players of several entries are drawn at their mean and labelled with
    their entries; ``display_data`` (samples, players) labels them otherwise, such as by names of categories.
    Attributions of several classes by name, with base values by name or shared, give an Explanation with one output
    for each: ``explanation[:, :, "name"]``. Only Shapley values add up to the output as shap's waterfall says.

    >>> import absentia as ab
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> explanation = to_shap(ab.shapley(game), base_values=game)
    >>> explanation.values.tolist(), explanation.base_values.tolist(), explanation.data.tolist()
    ([[2.0, 3.0]], [1.0], [[2.0, 3.0]])
    """
    shap = require("shap")
    several = isinstance(attribution, Mapping)
    by_name: dict[str, Attribution] = dict(attribution) if isinstance(attribution, Mapping) else {"": attribution}
    bases = _bases_by_name(base_values, list(by_name))
    first = _check_alike(by_name)
    samples = len(first.values)
    x, players = _samples_and_players(first, x, players, next(iter(bases.values())))
    if display_data is None and x is not None and players is not None:
        display_data = player_texts(x, players)
    values = _stack([found.values for found in by_name.values()], several)
    errors = _stack([found.errors for found in by_name.values()], several)
    base = _stack([empty_values(given, samples) for given in bases.values()], several)
    return shap.Explanation(
        values,
        base_values=base,
        data=None if x is None or players is None else player_means(x, players).numpy(),
        display_data=None if display_data is None else np.asarray(display_data),
        feature_names=list(first.names),
        output_names=list(by_name) if several else None,
        error_std=errors if errors.any() else None,
    )


def _stack(parts: list[Tensor], several: bool) -> np.ndarray:
    stacked: np.ndarray = torch.stack([part.detach().cpu() for part in parts], dim=-1).numpy()
    return stacked if several else stacked[..., 0]


def _bases_by_name(given: BaseValues | Mapping[str, BaseValues], names: list[str]) -> dict[str, BaseValues]:
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    if set(given) != set(names):
        raise wrong("base_values", f"be named as the attributions, {', '.join(names)}", ", ".join(given))
    return {name: given[name] for name in names}


def _check_alike(by_name: dict[str, Attribution]) -> Attribution:
    if not by_name:
        raise wrong("attribution", "hold at least one attribution", "none")
    first = next(iter(by_name.values()))
    for name, found in by_name.items():
        if found.names != first.names or found.values.shape != first.values.shape:
            raise wrong("attribution", "be of the same samples and players for each class", f"others for {name!r}")
    return first


def _samples_and_players(
    attribution: Attribution, x: Table | None, players: Players | None, base: BaseValues
) -> tuple[Tensor | None, Players | None]:
    """Take the samples and players as given, or the game's."""
    if isinstance(base, MaskedModel):
        x = base.x if x is None else x
        players = base.players if players is None else players
    if x is None:
        return None, None
    x = as_tensor("x", x)
    samples, count = attribution.values.shape
    if players is None:
        if x.ndim != 2 or x.shape[1] != count:
            must = f"be given for {count} players and samples of shape {tuple(x.shape[1:])}"
            raise wrong("players", must, "none")
        players = Players.features(attribution.names)
    if len(players) != count or len(x) != samples or players.shape != tuple(x.shape[1:]):
        must = f"hold the attribution's {samples} samples, with its {count} players"
        raise wrong("x", must, f"shape {tuple(x.shape)} with {len(players)} players of shape {players.shape}")
    return x, players
