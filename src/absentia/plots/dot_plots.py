"""Plots of the attributions of many samples, a dot for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.arguments import checked
from absentia.attributions import Attribution
from absentia.determined import MEANING_OF_STYLE
from absentia.errors import Axes, Figure, require, wrong
from absentia.players import MISSING
from absentia.plots.drawable import check_explanation, has_errors, in_short, largest
from absentia.plots.look import NEUTRAL, UNSURE, colour_of, label, new_figure
from absentia.text import written

if TYPE_CHECKING:
    from absentia.explanation import Explanation

_BINS = 60  # dots of similar values are stacked in this many columns
_ROW_SHARE = 0.8  # share of a row's height that dots may fill
_LARGEST_STEP = 0.09  # distance between stacked dots, as a share of a row
_WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": NEUTRAL, "elinewidth": 0.7, "alpha": 0.5, "zorder": 1}
_NO_NUMBER = "#999999"  # colour of inputs that are missing, and of players of several entries
# Missing values are drawn this share of the inputs' range left of the least one.
_GAP = 0.12
_SIDES = "takes from the value ◂ ▸ adds to it"
_UNSURE_DOTS = f"hollow: {MEANING_OF_STYLE}"


@checked
def beeswarm(explanation: Explanation, *, most: int = 12) -> Figure:
    """Draw the attribution of each sample and player as a dot, coloured by the player's input.

    Players are ranked by mean |attribution|. Missing inputs and players of several entries are grey. Sampled values
    are drawn with two standard errors.

    Parameters
    ----------
    explanation, most : see `bars`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0], [1.0, 5.0]], absence=1.0)
    >>> [dots.get_offsets()[:, 0].tolist() for dots in ab.plots.beeswarm(explanation).axes[0].collections]
    [[3.0, 4.0], [2.0, 0.0]]
    """
    check_explanation(explanation, 0, most=most)
    attribution = explanation.shapley
    players = largest(attribution.values.abs().mean(0), most)
    inputs = explanation.players.entry_values(explanation.x)
    title = f"value: {in_short(explanation)}"
    figure = new_figure(1, width=7.2, rows=int(1.6 * len(players)) + 2, title=title)
    axes = figure.axes[0]
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    for row, player in enumerate(players):
        heights = row + _stack(attribution.values[:, player], attribution.values[:, players])
        if has_errors(attribution):
            axes.errorbar(attribution.values[:, player], heights, xerr=2 * attribution.errors[:, player], **_WHISKER)
        dots = _draw_dots(axes, attribution.values[:, player], heights, inputs[:, player])
        _draw_over_unsure(axes, attribution.values[:, player], heights, attribution.determined[:, player])
    bar = figure.colorbar(dots, ax=axes, ticks=[0, 1], shrink=0.8, aspect=40)
    bar.ax.set_yticklabels(["low", "high"], fontsize=8)
    bar.set_label(_label_of_colours(explanation, inputs, players), fontsize=8)
    _label_swarm(axes, explanation, players)
    return figure


def _label_of_colours(explanation: Explanation, inputs: Float[Tensor, "samples players"], players: list[int]) -> str:
    """Say what colours mean, and which inputs have none."""
    has_several = explanation.players.sizes[players] > 1
    has_none = inputs[:, players].isnan().any(0)
    grey = []
    if bool(has_several.any()):
        grey.append("of several entries")
    if bool((has_none & ~has_several).any()):
        grey.append(MISSING)
    return f"input (grey: {' or '.join(grey)})" if grey else "input"


def _draw_dots(
    axes: Axes,
    values: Float[Tensor, " samples"],
    heights: Float[Tensor, " samples"],
    inputs: Float[Tensor, " samples"],
) -> Any:
    """Draw the dots of one player and return them; the colour scale covers the middle 90 % of its inputs."""
    low, high = inputs.nanquantile(torch.tensor([0.05, 0.95]).to(inputs))
    width = torch.where(high > low, high - low, 1.0)
    shares = ((inputs - low) / width).clamp(0, 1)  # NaN stays
    colours: Any = require("matplotlib", "plot").colormaps["viridis"].with_extremes(bad=_NO_NUMBER)
    return axes.scatter(values, heights, c=shares, cmap=colours, vmin=0, vmax=1, s=16, plotnonfinite=True)


def _draw_over_unsure(
    axes: Axes, x: Float[Tensor, " samples"], y: Float[Tensor, " samples"], determined: Bool[Tensor, " samples"]
) -> None:
    """Make the dots of values hollow that are not determined."""
    unsure = ~determined
    if bool(unsure.any()):
        axes.scatter(x[unsure], y[unsure], s=16, color="white", edgecolor=UNSURE, linewidth=0.8, zorder=3)


def _what_dots_mean(attribution: Attribution, players: list[int]) -> str:
    """Say what the sides of the axis, whiskers and hollow dots of these players mean."""
    meaning = f"{_SIDES}; ± 2 standard errors" if has_errors(attribution) else _SIDES
    if bool(attribution.determined[:, players].all()):
        return meaning
    return f"{meaning}\n{_UNSURE_DOTS}"


def _label_swarm(axes: Axes, explanation: Explanation, players: list[int]) -> None:
    """Label the rows and the axis, and say in the title how many players are drawn."""
    axes.set_yticks(range(len(players)), [label(explanation.names[player]) for player in players])
    axes.set_ylim(max(len(players), 4) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=6)
    title = f"{explanation.shapley.kind} of {explanation.samples:,} samples"
    if len(players) < len(explanation.names):
        title += f": {len(players)} of {len(explanation.names)} players"
    axes.set_title(title)
    axes.set_xlabel(_what_dots_mean(explanation.shapley, players))


def _stack(values: Float[Tensor, " samples"], drawn: Float[Tensor, "samples players"]) -> Float[Tensor, " samples"]:
    """Return heights at which dots of similar values do not overlap, alternating above and below the middle."""
    low, high = drawn.aminmax()
    columns = ((values - low) / (high - low).clamp_min(1e-12) * _BINS).long()
    ranks = torch.stack([(columns[:number] == column).sum() for number, column in enumerate(columns)])
    step = min(_LARGEST_STEP, _ROW_SHARE / (1 + int(ranks.max())))
    sides = torch.where(ranks % 2 == 0, 1, -1)
    return step * ((ranks + 1) // 2) * sides


@checked
def scatter(explanation: Explanation, player: int | str | None = None) -> Figure:
    """Draw the attribution of one player against its input, a dot for each sample.

    Sampled values have two standard errors. A dotted line marks the stand-in if all samples share it.

    Parameters
    ----------
    explanation : Explanation
    player : int or str, optional
        Name or number of a player with one entry; by default the one with the largest mean |attribution|.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0], [1.0, 5.0]], absence=1.0)
    >>> ab.plots.scatter(explanation, "x0").axes[0].collections[0].get_offsets().tolist()
    [[2.0, 2.0], [1.0, 0.0]]
    """
    check_explanation(explanation, 0)
    number = _player_of_one_entry(explanation, player)
    name = label(explanation.names[number])
    scale = _InputScale.of(explanation, number)
    inputs = scale.places(explanation.players.entry_values(explanation.x)[:, number])
    values = explanation.shapley.values[:, number]
    figure = new_figure(1, width=6.0, height=4.4, title=f"value: {in_short(explanation)}")
    axes = figure.axes[0]
    colours = [colour_of(value) for value in values.tolist()]
    axes.scatter(inputs, values, s=20, color=colours, edgecolor="white", linewidth=0.3, zorder=2)
    if has_errors(explanation.shapley):
        axes.errorbar(inputs, values, yerr=2 * explanation.shapley.errors[:, number], **_WHISKER)
    _draw_over_unsure(axes, inputs, values, explanation.shapley.determined[:, number])
    axes.axhline(0, color=NEUTRAL, linewidth=0.8)
    _mark_stand_in(axes, explanation, number, scale)
    if scale.ticks:
        axes.set_xticks(list(scale.ticks), [label(name) for name in scale.ticks.values()])
    xlabel = f"input {name}"
    if not bool(explanation.shapley.determined[:, number].all()):
        xlabel += f"\n{_UNSURE_DOTS}"
    axes.set(title=f"{explanation.shapley.kind} of {name}", xlabel=xlabel)
    axes.set_ylabel(_SIDES)
    return figure


def _player_of_one_entry(explanation: Explanation, player: int | str | None) -> int:
    """Return the number of a player that has one entry, by default the one with the largest mean |attribution|."""
    strength = explanation.shapley.values.abs().mean(0)
    has_one_entry = explanation.players.sizes == 1
    if player is None:
        player = int(torch.where(has_one_entry, strength, -1.0).argmax())
    (name,) = explanation.players.only([player], "player").names
    number = explanation.names.index(name)
    if not has_one_entry[number]:
        raise wrong("player", "have one entry, whose values can be drawn", f"{name}, which has several")
    return number


@dataclass(frozen=True)
class _InputScale:
    """Where the inputs of a player are drawn: categories by name, and missing values left of all others."""

    gap: float  # the place of missing values
    ticks: dict[float, str]  # the places that have names; none for numbers

    @classmethod
    def of(cls, explanation: Explanation, player: int) -> _InputScale:
        """Find the places of the inputs and of the stand-ins of a player."""
        inputs = [explanation.x] if explanation.stand_ins is None else [explanation.x, explanation.stand_ins]
        values = torch.cat([explanation.players.entry_values(part)[:, player] for part in inputs])
        known = values[~values.isnan()]
        low = float(known.min()) if len(known) else 0.0
        high = float(known.max()) if len(known) else 0.0
        gap = low - _GAP * (high - low or 1.0)
        ticks: dict[float, str] = {}
        categories = explanation.players.categories
        if categories and categories[player]:
            ticks = {float(code): name for code, name in enumerate(categories[player])}
        elif len(known) < len(values):
            ticks = {place: written(place, 3) for place in dict.fromkeys([low, high])}
        if len(known) < len(values):
            ticks[gap] = MISSING
        return cls(gap, ticks)

    def places(self, values: Float[Tensor, " samples"]) -> Float[Tensor, " samples"]:
        """Return where values are drawn."""
        return torch.where(values.isnan(), self.gap, values)


def _mark_stand_in(axes: Axes, explanation: Explanation, player: int, scale: _InputScale) -> None:
    """Draw a dotted line at the stand-in of a player if all samples share it."""
    if explanation.stand_ins is None:
        return
    absent = scale.places(explanation.players.entry_values(explanation.stand_ins)[:, player])
    if bool((absent == absent[0]).all()):
        text = f"absent: {explanation.players.texts(explanation.stand_ins[:1])[0][player]}"
        axes.axvline(float(absent[0]), color=NEUTRAL, linestyle=":", label=text)
        axes.legend(fontsize=8, frameon=False)
