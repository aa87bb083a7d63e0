"""Pictures of interactions as a ranked list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from absentia.errors import wrong
from absentia.interactions import Interactions
from absentia.plots.explained import Explained, check_explanation
from absentia.plots.look import check_count, draw_bars, label_of_set, new_figure, plain, rows_height

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def interaction_list(explanation: Explained, sample: int = 0, *, strongest: int = 16) -> Figure:
    """Draw a bar for each of the strongest interactions; those lost in rounding errors are hollow.

    >>> import torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[3.0, 4.0]]), absence=ab.Baseline(1.0))
    >>> [label.get_text() for label in ab.plots.interaction_list(explanation).axes[0].get_yticklabels()]
    ['x0 & x1', 'x1', 'x0']
    """
    check_explanation(explanation, sample)
    check_count("strongest", strongest)
    interactions = interactions_of(explanation)
    figure = new_figure(columns=1, width=8.0, height=rows_height(min(strongest, interactions.effects.shape[1] - 1)))
    draw_strongest(figure.axes[0], interactions, sample, strongest)
    figure.suptitle(plain(f"value: {explanation.record.readout}"), fontsize=9)
    return figure


def draw_strongest(axes: Axes, interactions: Interactions, sample: int = 0, strongest: int = 12) -> None:
    """Draw a bar for each of the strongest interactions, named by their players."""
    top = interactions.top(strongest, sample)
    draw_bars(
        axes,
        [label_of_set(found.players) for found in top],
        [found.effect for found in top],
        hollow=[not found.measurable for found in top],
    )
    total = interactions.effects.shape[1] - 1
    axes.set_title(f"strongest {len(top)} of {total:,} interactions", fontsize=11)


def interactions_of(explanation: Explained) -> Interactions:
    """Take the interactions of an explanation, or say that it has none."""
    if explanation.interactions is None:
        then = "Put players together until there are few enough, and leave evaluations out."
        raise wrong("explanation", "be exact for a picture of interactions", "a sampled one", then)
    return explanation.interactions
