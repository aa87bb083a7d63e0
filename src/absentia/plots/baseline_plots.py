"""Plots of learned baselines: their values compared with the data, and the history of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.arguments import checked
from absentia.data import check_number
from absentia.errors import Axes, Figure
from absentia.plots.image_plots import draw_images
from absentia.plots.learned_entries import (
    HIGH,
    LOW,
    LOWER_QUARTER,
    MEDIAN,
    UPPER_QUARTER,
    Entries,
    Finding,
    baselines_by_owner,
    entries_of,
    owner_names,
    players_of,
)
from absentia.plots.look import LOOKS, LOWERS, NEUTRAL, label, look_of, new_figure

if TYPE_CHECKING:
    from absentia.learning import LearnedBaseline

_MOST_OWNERS = 6  # classes that each have their own look
_MOST_IMAGES = 10
_BAND_WIDTH = 5.0  # of the range in which the loss is as low
_STEEP = 30.0  # the scale is logarithmic if the loss falls by more than this factor


class _Box(NamedTuple):
    """A box between two quantiles of the data."""

    start: int
    end: int
    height: float
    colour: str


_BOXES = (
    _Box(LOW, HIGH, height=0.22, colour="#DDDDDD"),
    _Box(LOWER_QUARTER, UPPER_QUARTER, height=0.56, colour="#BBBBBB"),
)


@checked
def baselines(learned: LearnedBaseline, *, most: int = 40) -> Figure:
    """Draw learned values on the distribution of the data: range, 5 to 95 %, middle half and median.

    A band shows within which range the loss is as low as at the value, and hollow marks show other minima that are as
    low. Every entry is scaled to the range of its data, and its value is written beside it. Baselines of images are
    drawn as images, next to the median and the range of the data.

    Parameters
    ----------
    learned : LearnedBaseline
    most : int
        How many entries to draw.

    Examples
    --------
    >>> x = torch.rand(8, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> [label.get_text() for label in ab.plots.baselines(learned).axes[0].get_yticklabels()]
    ['x0', 'x1', 'x2']
    """
    players = players_of(learned)
    check_number("most", most, 1)
    if players.is_image:
        return _draw_baseline_images(learned)
    entries = entries_of(learned, most)
    count = len(entries.names)
    figure = new_figure(1, width=7.2, rows=count)
    axes = figure.axes[0]
    data = entries.values if entries.quantiles is None else entries.quantiles
    low, high = data.aminmax(dim=0)
    width = torch.where(high > low, high - low, 1.0)  # constant entries are drawn at the left end
    if entries.quantiles is not None:
        _draw_data(axes, (entries.quantiles - low) / width)
    if len(entries.findings) == 1:
        _draw_findings(axes, entries.findings[0], low, width)
    _draw_values(axes, learned, (entries.values - low) / width)
    _write_values(axes, entries)
    left, right = axes.get_xlim()
    axes.set(xlim=(min(left, -0.04), max(right, 1.04)), ylim=(count - 0.4, -0.6))
    axes.set_yticks(range(count), [label(name) for name in entries.names])
    axes.set_xticks([0, 0.5, 1], ["least", "middle", "largest"])
    axes.set_xlabel("range of the data: line 0 to 100 %, bar 5 to 95 %, box middle half")
    title = "baseline beside the data"
    all_entries = int(players.sizes.sum())
    if count < all_entries:
        title += f", {count} of {all_entries} entries"
    axes.set_title(title)
    below = -0.02 - 0.9 / float(figure.get_size_inches()[1])
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, below), ncols=4)
    return figure


def _draw_data(axes: Axes, places: Float[Tensor, "levels entries"]) -> None:
    """Draw the distribution of the data as a row for each entry: a line, two boxes and the median."""
    rows = range(places.shape[1])
    axes.hlines(rows, places[0], places[-1], color="#999999", linewidth=0.8)
    for box in _BOXES:
        widths = places[box.end] - places[box.start]
        axes.barh(rows, widths, left=places[box.start], height=box.height, color=box.colour)
    axes.plot(places[MEDIAN], rows, "|", color="black", markersize=12, label="median of the data")


def _draw_findings(
    axes: Axes, findings: Sequence[Finding], low: Float[Tensor, " entries"], width: Float[Tensor, " entries"]
) -> None:
    """Draw the range in which the loss is as low, and mark other minima that are as low."""
    colour = LOOKS["learned"].colour
    ranges = [(row, finding) for row, finding in enumerate(findings) if finding.has_range]
    if ranges:
        rows = [row for row, _ in ranges]
        starts = [(finding.low - float(low[row])) / float(width[row]) for row, finding in ranges]
        ends = [(finding.high - float(low[row])) / float(width[row]) for row, finding in ranges]
        axes.hlines(rows, starts, ends, color=colour, linewidth=_BAND_WIDTH, alpha=0.45, label="loss as low")
    minima = [(row, value) for row, finding in enumerate(findings) for value in finding.minima]
    if minima:
        rows = [row for row, _ in minima]
        places = [(value - float(low[row])) / float(width[row]) for row, value in minima]
        style = LOOKS["learned"].style | {"markerfacecolor": "white"}
        axes.plot(places, rows, linestyle="none", markersize=7, label="other minimum, as low", **style)


def _draw_values(axes: Axes, learned: LearnedBaseline, places: Float[Tensor, "owners entries"]) -> None:
    """Mark the values, with a look for each class, or one look if all samples share a baseline."""
    rows = list(range(places.shape[1]))
    learned_look = LOOKS["learned"].style
    owners = owner_names(learned)
    if learned.share == "sample" or len(places) > _MOST_OWNERS:
        axes.plot(places.T, rows, linestyle="none", alpha=0.3, markersize=4, **learned_look)
        axes.plot([], [], linestyle="none", label=f"learned, each {learned.share}", **learned_look)
    elif owners:
        for number, (owner, place) in enumerate(zip(owners, places, strict=True)):
            text = f"learned, {label(owner)}"
            axes.plot(place, rows, linestyle="none", markersize=8, label=text, **look_of(number).style)
    else:
        axes.plot(places[0], rows, linestyle="none", markersize=8, label="learned", **learned_look)


def _write_values(axes: Axes, entries: Entries) -> None:
    """Write each value beside its row, unless there are several baselines."""
    if len(entries.texts) > 1:
        return
    for row, (text, finding) in enumerate(zip(entries.texts[0], entries.findings[0], strict=True)):
        shown = f"{text} ({finding.doubt})" if finding.doubt else text
        axes.annotate(shown, (1, row), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=NEUTRAL)


def _draw_baseline_images(learned: LearnedBaseline) -> Figure:
    """Draw baselines as images, next to quantiles of the data."""
    titles = [label(owner) for owner in owner_names(learned)] or ["learned baseline"]
    images = baselines_by_owner(learned)[:_MOST_IMAGES]
    panels = dict(zip(titles[:_MOST_IMAGES], images, strict=True))
    if learned.quantiles is not None:
        panels["median of the data"] = learned.quantiles[MEDIAN]
        panels["5 % of the data"] = learned.quantiles[LOW]
        panels["95 % of the data"] = learned.quantiles[HIGH]
    figure = new_figure(len(panels), width=2.7, height=3.2)
    draw_images(figure.axes, panels)
    return figure


@checked
def learning_history(learned: LearnedBaseline) -> Figure:
    """Draw the loss against the number of evaluations: a running mean over steps, or the lowest loss so far.

    Parameters
    ----------
    learned : LearnedBaseline

    Examples
    --------
    >>> x = torch.rand(8, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x)
    >>> ab.plots.learning_history(learned).axes[0].get_ylabel()
    'running mean of the loss (faithful)'
    """
    players_of(learned)  # raises an error unless this is a learned baseline
    figure = new_figure(columns=1, height=4.2)
    axes = figure.axes[0]
    evaluations, losses = learned.history.unbind(1)
    axes.step(evaluations, losses, where="post", color=LOWERS)
    if len(losses) and 0 < float(losses.min()) < float(losses.max()) / _STEEP:
        axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda count, _position: f"{count:,.0f}")
    axes.locator_params(axis="x", nbins=5)
    axes.set(title="learning the baseline", xlabel="evaluations of the model")
    drawn = "running mean of the loss" if learned.record.loss == "faithful" else "lowest loss so far"
    axes.set_ylabel(f"{drawn} ({learned.record.loss})")
    return figure
