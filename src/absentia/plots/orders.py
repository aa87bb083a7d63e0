"""Pictures of orders: how strong interactions are, and what players add, by how many others are present."""

from __future__ import annotations

from typing import TYPE_CHECKING

from absentia.interactions import Interactions
from absentia.plots.explained import Explained, check_explanation
from absentia.plots.interaction_lists import interactions_of
from absentia.plots.look import NEUTRAL, check_count, look_of, new_figure, plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def order_profile(explanation: Explained, sample: int = 0, *, most: int = 6) -> Figure:
    """Draw the strength of interactions by order, and what the largest players add by how many others are present.

    >>> import torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[3.0, 4.0]]), absence=ab.Baseline(1.0))
    >>> figure = ab.plots.order_profile(explanation)
    >>> [round(float(bar.get_height()), 3) for bar in figure.axes[0].patches]
    [0.455, 0.545]
    """
    check_explanation(explanation, sample)
    check_count("most", most)
    interactions = interactions_of(explanation)
    figure = new_figure(columns=2, width=5.6, height=4.4)
    draw_order_profile(figure.axes[0], interactions, sample)
    _draw_order_shapley(figure.axes[1], explanation, sample, most)
    figure.suptitle(plain(f"value: {explanation.record.readout}"), fontsize=9)
    return figure


def draw_order_profile(axes: Axes, interactions: Interactions, sample: int = 0) -> None:
    """Draw the share of the effects' strength at each order."""
    ratios = interactions.by_order().ratios[sample, 1:].tolist()
    axes.bar(range(1, len(ratios) + 1), ratios, color=NEUTRAL)
    axes.set_title("strength by order", fontsize=11)
    axes.set_xlabel("order: players in the interaction", fontsize=8)
    axes.set_ylabel("share of Σ|U|", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlim(0.4, max(len(ratios), 2) + 0.6)
    axes.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")


def _draw_order_shapley(axes: Axes, explanation: Explained, sample: int, most: int) -> None:
    """Draw φᵢ⁽ᵐ⁾ of the players with the largest Shapley values."""
    if explanation.order_shapley is None:
        return
    by_order = explanation.order_shapley[sample]
    ranked = explanation.shapley.values[sample].abs().argsort(descending=True).tolist()[:most]
    orders = range(len(by_order))
    for number, player in enumerate(ranked):
        colour, marker = look_of(number)
        label = plain(shorten(explanation.names[player]))
        axes.plot(orders, by_order[:, player], label=label, color=colour, marker=marker, markersize=5, linewidth=1.2)
    axes.axhline(0, color=NEUTRAL, linewidth=0.8)
    shown = "" if len(ranked) == len(explanation.names) else f", {len(ranked)} of {len(explanation.names)} players"
    axes.set_title(f"order-wise Shapley values{shown}")
    axes.set_xlabel("order: how many others are present", fontsize=8)
    axes.set_ylabel("mean of what the player adds", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.locator_params(axis="x", integer=True)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
