"""Overviews: the most useful pictures of one sample side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from absentia.attributions import Attribution
from absentia.interactions import Interactions
from absentia.plots.attributions import draw_attribution, draw_waterfall
from absentia.plots.explained import Explained, check_explanation
from absentia.plots.images import image_heat_map
from absentia.plots.interaction_lists import draw_strongest
from absentia.plots.look import new_figure, plain, rows_height, shorten
from absentia.plots.orders import draw_order_profile
from absentia.plots.pixels import is_image

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 16


def overview(explanation: Explained, sample: int = 0) -> Figure:
    """Draw the most useful picture of one sample: a heat map of an image; else waterfall, interactions and orders.

    >>> import torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> [axes.get_title() for axes in ab.plots.overview(explanation).axes]
    ['Shapley values', 'strongest 3 of 3 interactions', 'strength by order']
    """
    check_explanation(explanation, sample)
    if is_image(explanation.players.labels):
        return image_heat_map(explanation, sample)
    exact = explanation.interactions is not None
    height = rows_height(min(_MOST_ROWS, len(explanation.names)) + 2)
    columns, width, ratios = (3, 5.8, (5, 5, 3.5)) if exact else (1, 7.2, (1,))
    figure = new_figure(columns, width=width, height=max(height, 4.2), ratios=ratios)
    draw_waterfall(figure.axes[0], explanation, sample, most=_MOST_ROWS)
    if explanation.interactions is not None:
        draw_strongest(figure.axes[1], explanation.interactions, sample, _MOST_ROWS)
        draw_order_profile(figure.axes[2], explanation.interactions, sample)
    absent = shorten(explanation.record.absence, 80)
    figure.suptitle(plain(f"sample {sample}; absent players: {absent}"), fontsize=10)
    return figure


def plot_explanation(
    interactions: Interactions, attribution: Attribution, *, sample: int = 0, strongest: int = 12, title: str = ""
) -> Figure:
    """Draw one sample's attribution, its strongest interactions and its order profile side by side.

    Returns the matplotlib figure; ``figure.savefig(path)`` writes it.

    >>> import absentia as ab
    >>> table = ab.ValueTable([0.0, 1.0, 2.0, 5.0])
    >>> figure = ab.plot_explanation(ab.harsanyi(table), ab.shapley(table))
    >>> [axes.get_title() for axes in figure.axes]
    ['Shapley values', 'strongest 3 of 3 interactions', 'strength by order']
    """
    figure = new_figure(columns=3)
    left, middle, right = figure.axes
    draw_attribution(left, attribution, sample)
    draw_strongest(middle, interactions, sample, strongest)
    draw_order_profile(right, interactions, sample)
    figure.suptitle(plain(title or f"value: {interactions.readout}"), fontsize=11)
    return figure
