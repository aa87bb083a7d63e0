"""Overviews: the most useful plots of one sample side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from absentia.attributions import Attribution
from absentia.interactions import Interactions
from absentia.plots.drawable import Explained, check_explanation, sample_name
from absentia.plots.images import image_heat_map
from absentia.plots.interaction_plots import draw_order_profile, draw_strongest
from absentia.plots.look import label, new_figure
from absentia.plots.shapley_plots import draw_attribution, draw_waterfall

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 16


def overview(explanation: Explained, sample: int = 0) -> Figure:
    """Draw the most useful plots of a sample: a heat map of an image, else waterfall, interactions and orders.

    Parameters
    ----------
    explanation : Explanation
        Explanation returned by `explain`.
    sample : int
        Number of the sample.

    Examples
    --------
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [axes.get_title() for axes in ab.plots.overview(explanation).axes]
    ['Shapley values', 'strongest 3 of 3 interactions', 'strength by order']
    """
    check_explanation(explanation, sample)
    players, interactions = explanation.players, explanation.interactions
    if players.is_image:
        return image_heat_map(explanation, sample)
    title = f"sample {sample_name(explanation, sample)}; absent players: {label(explanation.record.absence, 80)}"
    rows = max(min(_MOST_ROWS, len(players)) + 2, 10)
    columns, width, ratios = (1, 7.2, (1.0,)) if interactions is None else (3, 5.8, (5.0, 5.0, 3.5))
    figure = new_figure(columns, width=width, rows=rows, ratios=ratios, title=title)
    draw_waterfall(figure.axes[0], explanation, sample, most=_MOST_ROWS)
    if interactions is not None:
        draw_strongest(figure.axes[1], interactions, sample, _MOST_ROWS)
        draw_order_profile(figure.axes[2], interactions, sample)
    return figure


def plot_explanation(
    interactions: Interactions, attribution: Attribution, *, sample: int = 0, strongest: int = 12, title: str = ""
) -> Figure:
    """Draw the attribution, the strongest interactions and the order profile of a sample side by side.

    Parameters
    ----------
    interactions : Interactions
        Interactions of the samples.
    attribution : Attribution
        Attribution of the samples.
    sample, strongest : int
        Number of the sample, and how many interactions to draw.
    title : str, optional
        Title of the figure; by default the readout.

    Examples
    --------
    >>> import absentia as ab
    >>> table = ab.ValueTable([0.0, 1.0, 2.0, 5.0])
    >>> figure = ab.plot_explanation(ab.harsanyi(table), ab.shapley(table))
    >>> [axes.get_title() for axes in figure.axes]
    ['Shapley values', 'strongest 3 of 3 interactions', 'strength by order']
    """
    figure = new_figure(3, title=title or f"value: {interactions.readout}")
    left, middle, right = figure.axes
    draw_attribution(left, attribution, sample)
    draw_strongest(middle, interactions, sample, strongest)
    draw_order_profile(right, interactions, sample)
    return figure
