"""Pictures of learning: the course of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from absentia.plots.explained import Learned
from absentia.plots.look import LOWERS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Where the loss falls by more than this factor, it is drawn on a logarithmic scale.
_FAR_APART = 30.0


def learning_history(learned: Learned) -> Figure:
    """Draw the course of the loss over the evaluations spent."""
    figure = new_figure(columns=1, height=4.2)
    axes = figure.axes[0]
    spent, losses = learned.history.unbind(1)
    axes.step(spent, losses, where="post", color=LOWERS)
    if len(losses) and 0 < float(losses.min()) < float(losses.max()) / _FAR_APART:
        axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda count, _position: f"{count:,.0f}")
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("evaluations of the model")
    axes.set_ylabel(f"best loss so far ({learned.record.loss})")
    axes.set_title("learning the baseline")
    return figure
