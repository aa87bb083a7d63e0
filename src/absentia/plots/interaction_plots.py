"""Plots of interactions: the strongest, their strength by order, and their strength by rank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from absentia.coalitions import coalition_members
from absentia.errors import wrong
from absentia.interactions import Interactions
from absentia.plots.drawable import check_explanation, check_sample, interactions_of, largest
from absentia.plots.look import NEUTRAL, draw_bars, draw_curve, label, look_of, looks_of, names_of_sets, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from absentia.explanation import Explanation

_LONGEST_NAME = 76
_POINTS = 400  # ranks of a curve that are drawn, evenly spaced on a logarithmic scale


def interaction_list(explanation: Explanation, sample: int = 0, *, strongest: int = 16) -> Figure:
    """Draw a bar for each of the strongest interactions; those within rounding error are hollow.

    Parameters
    ----------
    explanation : Explanation
    sample, strongest : int
        Number of the sample, and how many interactions to draw.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [label.get_text() for label in ab.plots.interaction_list(explanation).axes[0].get_yticklabels()]
    ['x0 & x1', 'x1', 'x0']
    """
    check_explanation(explanation, sample, strongest=strongest)
    interactions = interactions_of(explanation)
    rows = min(strongest, interactions.effects.shape[1] - 1)
    figure = new_figure(1, width=8.0, rows=rows, title=f"value: {explanation.record.readout}")
    draw_strongest(figure.axes[0], interactions, sample, strongest)
    return figure


def draw_strongest(axes: Axes, interactions: Interactions, sample: int = 0, strongest: int = 12) -> None:
    """Draw the bars of `interaction_list` on given axes."""
    top = interactions.top(strongest, sample)
    for letters in (20, 12, 7):  # names of large sets are shortened more
        names = names_of_sets([[label(name, letters) for name in found.players] for found in top])
        if max(map(len, names)) <= _LONGEST_NAME:
            break
    draw_bars(axes, [(name, one.effect, 0.0, not one.measurable) for name, one in zip(names, top, strict=True)])
    total = interactions.effects.shape[1] - 1
    axes.set_title(f"strongest {len(top)} of {total:,} interactions")


def upset(explanation: Explanation, sample: int = 0, *, strongest: int = 16) -> Figure:
    """Draw the strongest interactions as a matrix, a dot for each player that takes part, and a bar for the effect.

    Parameters
    ----------
    explanation, sample, strongest : see `interaction_list`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> ab.plots.upset(explanation).axes[0].lines[-1].get_xydata().tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]
    """
    check_explanation(explanation, sample, strongest=strongest)
    interactions = interactions_of(explanation)
    effects = interactions.effects[sample, 1:].abs()
    sets = [coalition_members(one + 1) for one in effects.topk(min(strongest, len(effects))).indices.tolist()]
    players = sorted({player for members in sets for player in members})
    dots = [(players.index(player), row) for row, members in enumerate(sets) for player in members]
    wide = max(1.6, 0.26 * len(players))
    figure = new_figure(2, width=(wide + 5.4) / 2, rows=len(sets) + 4, ratios=(wide, 5.4))
    matrix, right = figure.axes
    draw_strongest(right, interactions, sample, strongest)
    right.set_yticks([])
    for row, members in enumerate(sets):
        matrix.plot(range(len(players)), [row] * len(players), "o", markersize=6, color="#DDDDDD")
        matrix.plot([players.index(members[0]), players.index(members[-1])], [row, row], color="black", linewidth=1.2)
    matrix.plot(*zip(*dots, strict=True), "o", markersize=6, color="black")
    matrix.set(xlim=(-0.6, len(players) - 0.4), ylim=right.get_ylim())
    matrix.set_yticks([])
    names = [label(interactions.names[player], 20) for player in players]
    matrix.set_xticks(range(len(players)), names, rotation=60, ha="left", rotation_mode="anchor")
    matrix.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
    matrix.spines[:].set_visible(False)
    return figure


def order_profile(explanation: Explanation, sample: int = 0, *, most: int = 6) -> Figure:
    """Draw the strength of interactions by order, and the order-wise Shapley values of the largest players.

    Parameters
    ----------
    explanation, sample, most : see `bars`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [round(float(bar.get_height()), 3) for bar in ab.plots.order_profile(explanation).axes[0].patches]
    [0.455, 0.545]
    """
    check_explanation(explanation, sample, most=most)
    interactions = interactions_of(explanation)
    figure = new_figure(2, width=5.6, height=4.4, title=f"value: {explanation.record.readout}")
    draw_order_profile(figure.axes[0], interactions, sample)
    if explanation.order_shapley is not None:
        shown = largest(explanation.shapley.values[sample], most)
        axes, orders = figure.axes[1], len(explanation.players)
        for number, player in enumerate(shown):
            values = explanation.order_shapley[sample, :, player]
            draw_curve(axes, look_of(number), label(explanation.names[player]), range(orders), values)
        axes.axhline(0, color=NEUTRAL, linewidth=0.8)
        some = "" if len(shown) == orders else f", {len(shown)} of {orders} players"
        axes.set(xlabel="order: number of other players present", ylabel="mean of what the player adds")
        axes.set_title(f"order-wise Shapley values{some}")
        axes.locator_params(axis="x", integer=True)
        axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def draw_order_profile(axes: Axes, interactions: Interactions, sample: int = 0) -> None:
    """Draw the share of each order in the strength Σ|U| of a sample's interactions."""
    ratios = interactions.by_order().ratios[sample, 1:].tolist()
    axes.bar(range(1, len(ratios) + 1), ratios, color=NEUTRAL)
    axes.set(title="strength by order", xlabel="order: players in the interaction", ylabel="share of Σ|U|")
    axes.set_xlim(0.4, max(len(ratios), 2) + 0.6)
    axes.locator_params(axis="x", integer=True)
    axes.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")


def sparsity(
    results: Explanation | Interactions | Mapping[str, Explanation | Interactions], sample: int | None = None
) -> Figure:
    """Draw the strengths |U| of all interactions in descending order, on logarithmic scales.

    The legend counts the salient interactions: those above 5 % of a sample's largest.

    Parameters
    ----------
    results : Explanation, Interactions or mapping
        An exact explanation, interactions, or several of them by name.
    sample : int, optional
        Number of the sample; None averages the strengths of each rank over all samples.

    Examples
    --------
    >>> game = ab.ValueTable([0.0, 1.0, 2.0, 8.0])
    >>> ab.plots.sparsity({"given": ab.harsanyi(game)}).axes[0].lines[0].get_ydata().tolist()
    [5.0, 2.0, 1.0]
    """
    named = results if isinstance(results, Mapping) else {"": results}
    if not named:
        raise wrong("results", "hold at least one explanation", "none")
    figure = new_figure(1, width=6.4, height=4.6)
    axes = figure.axes[0]
    for look, (name, result) in zip(looks_of(list(named)), named.items(), strict=True):
        if not (isinstance(result, Interactions) or getattr(result, "KIND", "") == "explanation"):
            raise wrong("results", "hold explanations or interactions", type(result).__name__)
        interactions = result if isinstance(result, Interactions) else interactions_of(result)
        if sample is not None:
            check_sample(sample, len(interactions.effects))
        rows = slice(None) if sample is None else [sample]
        strength = interactions.effects[rows, 1:].detach().abs().cpu().sort(dim=1, descending=True).values.mean(0)
        spaced = torch.logspace(0, math.log10(len(strength)), _POINTS, dtype=torch.float64)
        ranks = spaced.round().long().clamp(1, len(strength)).unique()
        salient = f"{float(interactions.salient()[rows, 1:].sum(1).double().mean()):.3g} salient"
        text = f"{label(name)}: {salient}" if name else salient
        draw_curve(axes, look, text, ranks, strength[ranks - 1].numpy(), markevery=max(1, len(ranks) // 12))
    axes.set_xscale("log")
    if math.isfinite(axes.dataLim.minposy):
        axes.set_yscale("log", nonpositive="mask")
    axes.set(title="interactions in descending order", xlabel="rank of the interaction")
    axes.set_ylabel("strength |U|" + (", mean over samples" if sample is None else ""))
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    return figure
