"""Plots of absences: learned baselines and how they were found, and absences compared by an audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.data import check_number
from absentia.errors import Axes, Figure
from absentia.plots.drawable import entries_of, owner_names, players_of
from absentia.plots.look import LOWERS, NEUTRAL, draw_curve, label, look_of, looks_of, new_figure
from absentia.plots.sample_plots import draw_images
from absentia.text import written

if TYPE_CHECKING:
    from absentia.auditing import Audit
    from absentia.learning import LearnedBaseline

_LOW, _LOWER_QUARTER, _MEDIAN, _UPPER_QUARTER, _HIGH = range(1, 6)  # rows of the quantiles
_BOXES = ((_LOW, _HIGH, 0.22, "#DDDDDD"), (_LOWER_QUARTER, _UPPER_QUARTER, 0.56, "#BBBBBB"))
_MOST_OWNERS, _MOST_IMAGES = 6, 10
_FAR_APART = 20.0  # times the usual, above which the scale of a figure is logarithmic
_STEEP = 30.0  # factor by which a loss falls above which its scale is logarithmic
FAR_LENGTHS = 10.0  # ratio of lengths above which their scale is logarithmic

Measured: TypeAlias = tuple[Float[Tensor, " methods"], Float[Tensor, " methods"]]  # figures and their errors
Ends: TypeAlias = tuple[Float[Tensor, " methods"], Float[Tensor, " methods"]]  # of whiskers: lower and upper


def baselines(learned: LearnedBaseline, *, most: int = 40) -> Figure:
    """Draw learned values beside the distribution of the data: range, 5 to 95 %, middle half and median.

    Every entry is scaled to the range of its data, and its value is written beside it. Baselines that are images
    are drawn as images, beside the median and the range of the data.

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
    names, values, texts, quantiles, undetermined = entries_of(learned, most)
    total, entries = int(players.sizes.sum()), len(names)
    figure = new_figure(1, width=7.2, rows=entries)
    axes = figure.axes[0]
    data = values if quantiles is None else quantiles
    low, high = data.aminmax(dim=0)
    width = torch.where(high > low, high - low, 1.0)  # constants are drawn at the left end
    if quantiles is not None:
        places, rows = (data - low) / width, range(entries)
        axes.hlines(rows, places[0], places[-1], color="#999999", linewidth=0.8)
        for start, end, height, colour in _BOXES:
            axes.barh(rows, places[end] - places[start], left=places[start], height=height, color=colour)
        axes.plot(places[_MEDIAN], rows, "|", color="black", markersize=12, label="median of the data")
    _draw_values(axes, learned, (values - low) / width)
    for row, text in enumerate(texts[0] if len(texts) == 1 else ()):
        text += " (undetermined)" * undetermined[row]
        axes.annotate(text, (1, row), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=NEUTRAL)
    left, right = axes.get_xlim()
    axes.set(xlim=(min(left, -0.04), max(right, 1.04)), ylim=(entries - 0.4, -0.6))
    axes.set_yticks(range(entries), [label(name) for name in names])
    axes.set_xticks([0, 0.5, 1], ["least", "middle", "largest"])
    axes.set_xlabel("range of the data: line 0 to 100 %, bar 5 to 95 %, box middle half")
    some = f", {entries} of {total} entries" if entries < total else ""
    axes.set_title(f"baseline beside the data{some}")
    below = -0.02 - 0.9 / float(figure.get_size_inches()[1])
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, below), ncols=4)
    return figure


def _draw_values(axes: Axes, learned: LearnedBaseline, places: Float[Tensor, "owners entries"]) -> None:
    """Mark the values, in one look for each class or one for all samples."""
    rows, (look,) = list(range(places.shape[1])), looks_of(["learned"])
    if learned.share == "sample" or len(places) > _MOST_OWNERS:
        axes.plot(places.T, rows, linestyle="none", alpha=0.3, markersize=4, **look)
        axes.plot([], [], linestyle="none", label=f"learned, each {learned.share}", **look)
        return
    texts = [f"learned, {label(owner)}" for owner in owner_names(learned)]
    looks = [look_of(number) for number in range(len(texts))] or [look]
    for row, text, own in zip(places, texts or ["learned"], looks, strict=True):
        axes.plot(row, rows, linestyle="none", markersize=8, label=text, **own)


def _draw_baseline_images(learned: LearnedBaseline) -> Figure:
    """Draw baselines as images, beside quantiles of the data."""
    owners = learned.values[None] if learned.share == "all" else learned.values
    titles = [label(owner) for owner in owner_names(learned)] or ["learned baseline"]
    panels = dict(zip(titles[:_MOST_IMAGES], owners[:_MOST_IMAGES], strict=True))
    if learned.quantiles is not None:
        rows = {"median": _MEDIAN, "5 %": _LOW, "95 %": _HIGH}
        panels |= {f"{name} of the data": learned.quantiles[row] for name, row in rows.items()}
    figure = new_figure(len(panels), width=2.7, height=3.2)
    draw_images(figure.axes, panels)
    return figure


def learning_history(learned: LearnedBaseline) -> Figure:
    """Draw the loss over the evaluations of the model: a running mean over steps, or the lowest so far.

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
    players_of(learned)
    figure = new_figure(columns=1, height=4.2)
    axes = figure.axes[0]
    spent, losses = learned.history.unbind(1)
    axes.step(spent, losses, where="post", color=LOWERS)
    if len(losses) and 0 < float(losses.min()) < float(losses.max()) / _STEEP:
        axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda count, _position: f"{count:,.0f}")
    axes.locator_params(axis="x", nbins=5)
    axes.set(title="learning the baseline", xlabel="evaluations of the model")
    what = "running mean of the loss" if learned.record.loss == "faithful" else "lowest loss so far"
    axes.set_ylabel(f"{what} ({learned.record.loss})")
    return figure


def draw_audit(audit: Audit) -> Figure:
    """Draw leak, invention and length of each absence with two standard errors, and the masking curve."""
    order = list(audit.order)
    names = [audit.methods[number] for number in order]
    best = None if audit.recommended is None else 0
    curve = audit.curve
    unit = name_unit(curve.unit)
    figure = new_figure(3, width=5.2, rows=len(names) + 6, ratios=(1.2, 0.8, 1.4), title=audit.verdict[0])
    left, middle, right = figure.axes
    leak = (audit.leak.value[order], audit.leak.error[order])
    invention = (audit.invention.value[order], audit.invention.error[order])
    length = (audit.length.value[order], audit.length.error[order])
    draw_leak_and_invention(left, names, leak, invention, curve.limit, best)
    left.set(title="does it leak, or invent?", xlabel=f"leaks ◂ {unit} ▸ invents")
    draw_lengths(middle, names, length, best)
    middle.set(title="how long is its account?", xlabel="length: interactions needed")
    middle.set_yticklabels([])  # the names stand beside the first panel
    scores = curve.scores.mean(1)
    recalibrated = None
    if curve.inventions is not None:
        recalibrated = dict(zip(names, (scores - curve.inventions)[order], strict=True))
    lines = dict(zip(names, scores[order], strict=True))
    draw_masking_curve(right, curve.sizes, lines, float(curve.prior.nanmean()), best, recalibrated)
    right.set(title="what do masked samples tell?", xlabel="present players")
    right.set_ylabel(f"score, {unit}; lower is better")
    return figure


def name_unit(unit: str) -> str:
    """Name the unit of scores as it stands beside an axis."""
    return "share of the variance" if unit == "of the variance" else unit


def two_errors(value: Float[Tensor, " methods"], error: Float[Tensor, " methods"]) -> Ends:
    """Return each figure less and plus two standard errors; an unknown error counts as 0.

    Examples
    --------
    >>> two_errors(torch.tensor([3.0]), torch.tensor([0.5]))
    (tensor([2.]), tensor([4.]))
    """
    margin = 2 * error.nan_to_num()
    return value - margin, value + margin


def two_errors_of_length(length: Float[Tensor, " methods"], error: Float[Tensor, " methods"]) -> Ends:
    """Return the same for a length, a geometric mean: its errors are factors, so that none falls below 0."""
    factor = (2 * error.nan_to_num() / length).exp()
    return length / factor, length * factor


def draw_leak_and_invention(
    axes: Axes,
    names: Sequence[str],
    leak: Measured,
    invention: Measured,
    limit: float = math.inf,
    best: int | None = None,
) -> None:
    """Draw the leak of each absence to the left of 0, and its invention to the right; ``limit`` is all to know.

    Either can only fall below 0 by chance. It is then drawn at 0, because it would look like the other one.
    """
    if not bool((leak[0].isfinite() | invention[0].isfinite()).any()):
        _name_rows(axes, names, best)
        _leave_empty(axes)
        return
    axes.use_sticky_edges = False  # leave room for markers at 0
    leaked = leak[0].clamp_min(0)
    invented = invention[0].clamp_min(0)
    low, high = (end.clamp_min(0) for end in two_errors(*leak))
    _draw_rows(axes, names, -leaked, (-high, -low), hollow=True)
    low, high = (end.clamp_min(0) for end in two_errors(*invention))
    _draw_rows(axes, names, invented, (low, high))
    axes.axvline(0, color=NEUTRAL, linewidth=1)
    _name_rows(axes, names, best)
    if math.isfinite(limit):
        axes.axvline(limit, color=NEUTRAL, linewidth=1, linestyle="--", label="all there is to know")
        axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    sizes = torch.maximum(leaked, invented)
    usual = limit if math.isfinite(limit) else float(sizes.nanmedian())
    _spread(axes, usual, furthest=float(sizes.nan_to_num().max()))
    axes.xaxis.set_major_formatter(lambda value, _position: written(abs(value), 2))


def draw_lengths(axes: Axes, names: Sequence[str], length: Measured, best: int | None = None) -> None:
    """Draw the length of each absence, from 1 on a logarithmic scale if they are far apart."""
    value = length[0]
    known = value[value.isfinite()]
    _draw_rows(axes, names, value, two_errors_of_length(*length))
    _name_rows(axes, names, best)
    if not len(known):
        _leave_empty(axes)
        return
    if float(known.max()) > FAR_LENGTHS * float(known.min()):
        axes.set_xscale("log")
        axes.set_xlim(left=min(1.0, float(known.min())))
        axes.xaxis.set_major_formatter(lambda count, _position: f"{count:,.0f}")
        axes.xaxis.set_minor_formatter("")
    else:
        axes.set_xlim(left=0)


def _draw_rows(
    axes: Axes, names: Sequence[str], values: Float[Tensor, " methods"], ends: Ends, *, hollow: bool = False
) -> None:
    """Draw a figure of each absence as a bar and a marker, with a whisker between the ends."""
    for place, (look, value, low, high) in enumerate(zip(looks_of(names), values, *ends, strict=True)):
        axes.barh(place, float(value), height=0.62, color=look["color"], alpha=0.25)
        whisker = [[float(value - low)], [float(high - value)]]
        face = "white" if hollow else look["color"]
        axes.errorbar(float(value), place, xerr=whisker, ecolor=NEUTRAL, capsize=3, markerfacecolor=face, **look)


def _leave_empty(axes: Axes) -> None:
    """Say that there is nothing to draw."""
    axes.set_xticks([])
    axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color=NEUTRAL)


def _name_rows(axes: Axes, names: Sequence[str], best: int | None) -> None:
    """Name the rows, and set off the best one."""
    axes.set_yticks(range(len(names)), [label(name, 22) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    if best is not None:
        axes.axhspan(best - 0.5, best + 0.5, color="#F0E442", alpha=0.35, zorder=0, linewidth=0)
        axes.get_yticklabels()[best].set_fontweight("bold")


def _spread(axes: Axes, usual: float, furthest: float) -> None:
    """Make a scale logarithmic beyond the usual size, if the furthest figure is far larger."""
    if not furthest > _FAR_APART * usual > 0:
        return
    axes.set_xscale("symlog", linthresh=usual)
    axes.autoscale_view(scaley=False)
    low, high = axes.get_xlim()
    last = math.floor(math.log10(furthest))
    middle = (last + math.ceil(math.log10(usual))) // 2  # more would lie on each other
    sides = [sign * 10.0**power for power in {middle, last} for sign in (-1, 1)]
    axes.set_xticks(sorted(tick for tick in (0.0, *sides) if low <= tick <= high))


def draw_masking_curve(
    axes: Axes,
    sizes: Int[Tensor, " sizes"],
    scores: Mapping[str, Tensor],
    prior: float,
    best: int | None = None,
    recalibrated: Mapping[str, Tensor] | None = None,
) -> None:
    """Draw the score over the number of present players, a line for each absence, the best one thicker.

    ``recalibrated`` are the scores without inventions, which are drawn as thin lines.
    """
    if not any(bool(line.isfinite().any()) for line in scores.values()):
        axes.set_yticks([])
        _leave_empty(axes)
        return
    for place, (look, (name, line)) in enumerate(zip(looks_of(list(scores)), scores.items(), strict=True)):
        stands_out: dict[str, Any] = {}
        if place == best:
            stands_out = {"linewidth": 3, "zorder": 3}
        draw_curve(axes, look, label(name, 22), sizes, line, **stands_out)
        if recalibrated is not None:
            axes.plot(sizes, recalibrated[name], color=look["color"], linewidth=0.9, linestyle=":")
    if recalibrated is not None:
        axes.plot([], [], color=NEUTRAL, linewidth=0.9, linestyle=":", label="without inventions")
    if math.isfinite(prior):
        axes.axhline(prior, color=NEUTRAL, linewidth=1, linestyle="--", label="prior: knows nothing")
    axes.locator_params(axis="x", integer=True)
    if prior > 0 and max(float(line.max()) for line in scores.values()) > _FAR_APART * prior / 2:
        axes.set_yscale("symlog", linthresh=2 * prior)
        axes.yaxis.set_major_formatter(lambda value, _position: written(value, 2))
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
