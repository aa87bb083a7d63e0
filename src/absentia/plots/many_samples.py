"""Plots of many samples: the attributions of all of them, and of one player against its input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.errors import require, wrong
from absentia.plots.drawable import check_explanation
from absentia.plots.look import NEUTRAL, colour_of, label, largest, new_figure
from absentia.results import written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from absentia.explanation import Explanation

_BINS, _ROOM = 60, 0.8  # columns that dots are stacked in, and the height of a row that they may fill
_WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": NEUTRAL, "elinewidth": 0.7, "alpha": 0.5, "zorder": 1}


def beeswarm(explanation: Explanation, *, most: int = 12) -> Figure:
    """Draw a dot for each sample and player: its attribution, coloured by the player's input, from least to largest.

    Players are ranked by mean |attribution|. Those of several entries are grey. Sampled values
    have two standard errors.

    Parameters
    ----------
    explanation : Explanation
    most : int
        How many players to draw.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0], [1.0, 5.0]], absence=1.0)
    >>> [dots.get_offsets()[:, 0].tolist() for dots in ab.plots.beeswarm(explanation).axes[0].collections]
    [[3.0, 4.0], [2.0, 0.0]]
    """
    check_explanation(explanation, 0, most=most)
    values, errors = explanation.shapley.values, explanation.shapley.errors
    shown = largest(values.abs().mean(0), most)
    inputs = explanation.players.entry_values(explanation.x)
    figure = new_figure(1, width=7.2, rows=int(1.6 * len(shown)) + 2, title=f"value: {explanation.record.readout}")
    axes = figure.axes[0]
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    colours: Any = require("matplotlib", "plot").colormaps["viridis"].with_extremes(bad="#999999")
    for place, player in enumerate(shown):
        heights = place + _stack(values[:, player], values[:, shown])
        if bool(errors.any()):
            axes.errorbar(values[:, player], heights, xerr=2 * errors[:, player], **_WHISKER)
        style: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": 1, "s": 16, "plotnonfinite": True}
        dots = axes.scatter(values[:, player], heights, c=_shares(inputs[:, player]), **style)
    bar = figure.colorbar(dots, ax=axes, ticks=[0, 1], shrink=0.8, aspect=40)
    bar.ax.set_yticklabels(["low", "high"], fontsize=8)
    bar.set_label("input (grey: of several entries)" if inputs[:, shown].isnan().any() else "input", fontsize=8)
    axes.set_yticks(range(len(shown)), [label(explanation.names[player]) for player in shown])
    axes.set_ylim(max(len(shown), 4) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=6)
    some = f": {len(shown)} of {len(explanation.names)} players" if len(shown) < len(explanation.names) else ""
    axes.set_title(f"{explanation.shapley.kind} of {explanation.samples:,} samples{some}")
    axes.set_xlabel("takes from the value ◂ ▸ adds to it" + "; ± 2 standard errors" * bool(errors.any()))
    return figure


def _stack(values: Float[Tensor, " samples"], drawn: Float[Tensor, "samples players"]) -> Float[Tensor, " samples"]:
    """Return heights at which dots of close values lie beside each other, above and below the middle in turn."""
    low, high = drawn.aminmax()
    columns = ((values - low) / (high - low).clamp_min(1e-12) * _BINS).long()
    ranks = torch.stack([(columns[:number] == column).sum() for number, column in enumerate(columns)])
    step = min(0.09, _ROOM / (1 + int(ranks.max())))
    return step * ((ranks + 1) // 2) * torch.where(ranks % 2 == 0, 1, -1)


def _shares(inputs: Float[Tensor, " samples"]) -> Float[Tensor, " samples"]:
    """Scale inputs such that the middle 90 % of them lie between 0 and 1; NaN stays."""
    low, high = inputs.quantile(torch.tensor([0.05, 0.95], dtype=inputs.dtype))
    return ((inputs - low) / torch.where(high > low, high - low, 1.0)).clamp(0, 1)


def scatter(explanation: Explanation, player: int | str | None = None) -> Figure:
    """Draw the attribution of one player over its input, a dot for each sample, with two standard errors if sampled.

    A dotted line marks the stand-in, where all samples share it.

    Parameters
    ----------
    explanation : Explanation
    player : int or str, optional
        Name or number of a player of one entry; by default the one with the largest mean |attribution|.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0], [1.0, 5.0]], absence=1.0)
    >>> ab.plots.scatter(explanation, "x0").axes[0].collections[0].get_offsets().tolist()
    [[2.0, 2.0], [1.0, 0.0]]
    """
    check_explanation(explanation, 0)
    names, values = explanation.names, explanation.shapley.values
    alone = torch.where(explanation.players.sizes == 1, values.abs().mean(0), -1.0)  # those of one entry
    (name,) = explanation.players.only([int(alone.argmax()) if player is None else player], "player").names
    number = names.index(name)
    if alone[number] < 0:
        raise wrong("player", "have one entry, whose values can be drawn", f"{name}, which has several")
    x, y = explanation.players.entry_values(explanation.x)[:, number], values[:, number]
    figure = new_figure(1, width=6.0, height=4.4, title=f"value: {explanation.record.readout}")
    axes = figure.axes[0]
    axes.scatter(
        x, y, s=20, color=[colour_of(value) for value in y.tolist()], edgecolor="white", linewidth=0.3, zorder=2
    )
    if bool(explanation.shapley.errors.any()):
        axes.errorbar(x, y, yerr=2 * explanation.shapley.errors[:, number], **_WHISKER)
    axes.axhline(0, color=NEUTRAL, linewidth=0.8)
    if explanation.stand_ins is not None:
        absent = explanation.players.entry_values(explanation.stand_ins)[:, number]
        if bool((absent == absent[0]).all()):
            axes.axvline(
                float(absent[0]), color=NEUTRAL, linestyle=":", label=f"absent: {written(float(absent[0]), 4)}"
            )
            axes.legend(fontsize=8, frameon=False)
    axes.set(title=f"{explanation.shapley.kind} of {label(names[number])}", xlabel=f"input {label(names[number])}")
    axes.set_ylabel("takes from the value ◂ ▸ adds to it")
    return figure
