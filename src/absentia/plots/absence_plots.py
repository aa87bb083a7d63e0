"""Plots of absences: learned baselines and how they were found, and absences compared by an audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.data import check_number
from absentia.errors import Axes, Figure
from absentia.plots.drawable import entries_of, owner_names, players_of
from absentia.plots.look import LOWERS, NEUTRAL, draw_curve, label, look_of, looks_of, new_figure
from absentia.plots.sample_plots import draw_images
from absentia.results import written

if TYPE_CHECKING:
    from absentia.audit import Audit
    from absentia.learning import LearnedBaseline

_LOW, _LOWER_QUARTER, _MEDIAN, _UPPER_QUARTER, _HIGH = range(1, 6)  # rows of the quantiles
_BOXES = ((_LOW, _HIGH, 0.22, "#DDDDDD"), (_LOWER_QUARTER, _UPPER_QUARTER, 0.56, "#BBBBBB"))
_MOST_OWNERS, _MOST_IMAGES = 6, 10
_FAR_APART = 20.0  # times the usual, above which the scale of a figure is logarithmic
_STEEP = 30.0  # factor by which a loss falls above which its scale is logarithmic


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
    """Draw evidence, Σ|U| and R of each absence with their errors, and the masking curve."""
    order, columns, curve = list(audit.order), audit.columns(), audit.curve
    names, best = [audit.methods[number] for number in order], None if audit.recommended is None else 0
    figure = new_figure(4, width=4.2, rows=len(names) + 6, ratios=(1, 0.9, 0.9, 1.4), title=audit.verdict[0])
    levels = {"white noise": 0.0, "unmasked samples": float(audit.removal.unmasked.value)}
    panels: dict[str, tuple[str, str, dict[str, float]]] = {
        "evidence": ("does it leak, or invent?", f"leaks ◂ {curve.unit} at ∅ ▸ invents", {"": 0.0}),
        "strength": ("is it concise?", "Σ|U|: strength of its interactions", {}),
        "R": ("does it remove?", "R: effects left or added", levels),
    }
    *left, right = figure.axes
    for axes, (name, (title, text, marks)) in zip(left, panels.items(), strict=True):
        draw_methods(axes, names, columns[name][order], columns[f"{name}_error"][order], marks, best)
        axes.set(title=title, xlabel=text)
        if name != "evidence":  # the names stand beside the first panel
            axes.set_yticklabels([])
    scores = dict(zip(names, curve.scores.mean(1)[order], strict=True))
    draw_masking_curve(right, curve.sizes, scores, float(curve.prior.mean()), best)
    right.set(title="what do masked samples tell?", xlabel="present players")
    right.set_ylabel(f"score, {curve.unit}; lower is better")
    return figure


def draw_methods(
    axes: Axes, names: Sequence[str], values: Float[Tensor, " methods"], errors: Float[Tensor, " methods"],
    marks: Mapping[str, float], best: int | None = None,
) -> None:  # fmt: skip
    """Draw a figure of each absence as a bar with two standard errors, and lines at ``marks``; set the best off."""
    known = {text: mark for text, mark in marks.items() if math.isfinite(mark)}
    for (text, mark), style in zip(known.items(), ("-", "--"), strict=False):
        axes.axvline(mark, color=NEUTRAL, linewidth=1, linestyle=style, label=text)
    figures = zip(looks_of(names), values.tolist(), errors.nan_to_num().tolist(), strict=True)
    for place, (look, value, error) in enumerate(figures):
        axes.barh(place, value, height=0.62, color=look["color"], alpha=0.25)
        axes.errorbar(value, place, xerr=2 * error, ecolor=NEUTRAL, capsize=3, **look)
    axes.set_yticks(range(len(names)), [label(name, 22) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    if best is not None:
        axes.axhspan(best - 0.5, best + 0.5, color="#F0E442", alpha=0.35, zorder=0, linewidth=0)
        axes.get_yticklabels()[best].set_fontweight("bold")
    usual, furthest = float(values.abs().nanmedian()), float(values.nan_to_num().abs().max())
    if furthest > _FAR_APART * usual > 0:
        axes.set_xscale("symlog", linthresh=usual)
        axes.autoscale_view(scaley=False)
        (low, high), last = axes.get_xlim(), math.floor(math.log10(furthest))
        powers = (last, (last + math.ceil(math.log10(usual))) // 2)  # more would lie on each other
        ticks = {0.0, *(sign * 10.0**power for power in powers for sign in (-1, 1))}
        axes.set_xticks(sorted(tick for tick in ticks if low <= tick <= high))
        axes.xaxis.set_major_formatter(lambda value, _position: written(value, 2))
    if any(known):
        axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13))


def draw_masking_curve(
    axes: Axes, sizes: Int[Tensor, " sizes"], scores: Mapping[str, Tensor], prior: float, best: int | None = None
) -> None:
    """Draw the score over the number of present players, a line for each absence, the best one thicker."""
    for place, (look, (name, line)) in enumerate(zip(looks_of(list(scores)), scores.items(), strict=True)):
        stands_out: dict[str, Any] = {"linewidth": 3, "zorder": 3} if place == best else {}
        draw_curve(axes, look, label(name, 22), sizes, line, **stands_out)
    if math.isfinite(prior):
        axes.axhline(prior, color=NEUTRAL, linewidth=1, linestyle="--", label="prior: knows nothing")
    axes.locator_params(axis="x", integer=True)
    if prior > 0 and max(float(line.max()) for line in scores.values()) > _FAR_APART * prior / 2:
        axes.set_yscale("symlog", linthresh=2 * prior)
        axes.yaxis.set_major_formatter(lambda value, _position: written(value, 2))
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
