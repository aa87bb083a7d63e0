"""Plots of the absences in an audit: leak, invention, length, and the score of masked samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.errors import Axes, Figure
from absentia.plots.look import NEUTRAL, draw_curve, label, looks_of, new_figure
from absentia.text import written

if TYPE_CHECKING:
    from absentia.auditing import Audit

_FAR_APART = 20.0  # the scale is logarithmic if a figure exceeds this many times the usual size
_FAR_LENGTHS = 10.0  # the scale of lengths is logarithmic if their ratio exceeds this
_BEST = "#F0E442"  # the colour behind the recommended absence
_LONGEST_NAME = 22  # letters in the name of an absence

Measured: TypeAlias = tuple[Float[Tensor, " methods"], Float[Tensor, " methods"]]  # figures and their errors
Ends: TypeAlias = tuple[Float[Tensor, " methods"], Float[Tensor, " methods"]]  # of whiskers: lower and upper


def draw_audit(audit: Audit) -> Figure:
    """Draw leak, invention and length of each absence with two standard errors, and the masking curve."""
    order = list(audit.order)
    names = [audit.methods[number] for number in order]
    best = None if audit.recommended is None else 0
    unit = name_unit(audit.curve.unit)
    figure = new_figure(3, width=5.2, rows=len(names) + 6, ratios=(1.2, 0.92, 1.28), title=audit.verdict[0])
    left, middle, right = figure.axes
    leak = (audit.leak.value[order], audit.leak.error[order])
    invention = (audit.invention.value[order], audit.invention.error[order])
    draw_leak_and_invention(left, names, leak, invention, audit.curve.limit, best)
    left.set(title="does it leak, or invent?", xlabel=f"leaks ◂ {unit} ▸ invents")
    length = (audit.length.value[order], audit.length.error[order])
    draw_lengths(middle, names, length, best)
    middle.set(title="how many interactions does it need?", xlabel="length: interactions needed")
    middle.set_yticklabels([])  # the names stand beside the first panel
    _draw_curve_of_audit(right, audit, names, best)
    right.set(title="what do masked samples tell?", xlabel="present players")
    right.set_ylabel(f"score, {unit}; lower is better")
    return figure


def _draw_curve_of_audit(axes: Axes, audit: Audit, names: Sequence[str], best: int | None) -> None:
    """Draw the masking curve of an audit, with the scores without inventions if they are known."""
    curve = audit.curve
    order = list(audit.order)
    scores = curve.scores.mean(1)
    recalibrated = None
    if curve.inventions is not None:
        recalibrated = dict(zip(names, (scores - curve.inventions)[order], strict=True))
    lines = dict(zip(names, scores[order], strict=True))
    draw_masking_curve(axes, curve.sizes, lines, float(curve.prior.nanmean()), best, recalibrated)


def name_unit(unit: str) -> str:
    """Return the unit of scores for the label of an axis."""
    return "share of the variance" if unit == "of the variance" else unit


def two_errors(value: Float[Tensor, " methods"], error: Float[Tensor, " methods"]) -> Ends:
    """Return each figure minus and plus two standard errors; an unknown error counts as 0.

    Examples
    --------
    >>> two_errors(torch.tensor([3.0]), torch.tensor([0.5]))
    (tensor([2.]), tensor([4.]))
    """
    margin = 2 * error.nan_to_num()
    return value - margin, value + margin


def two_errors_of_length(length: Float[Tensor, " methods"], error: Float[Tensor, " methods"]) -> Ends:
    """Return both ends for a length. It is a geometric mean, so its errors are factors and no end falls below 0."""
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
    """Draw the leak of each absence to the left of 0, and its invention to the right.

    ``limit`` is all there is to know. Either falls below 0 only by chance. It is then drawn at 0, because it would
    look like the other one.
    """
    if not bool((leak[0].isfinite() | invention[0].isfinite()).any()):
        _name_rows(axes, names, best)
        _leave_empty(axes)
        return
    axes.use_sticky_edges = False  # leave room for markers at 0
    leaked = leak[0].clamp_min(0)
    least_leak, most_leak = two_errors(*leak)
    _draw_rows(axes, names, -leaked, (-most_leak.clamp_min(0), -least_leak.clamp_min(0)), hollow=True)
    invented = invention[0].clamp_min(0)
    least_invention, most_invention = two_errors(*invention)
    _draw_rows(axes, names, invented, (least_invention.clamp_min(0), most_invention.clamp_min(0)))
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
    """Draw the length of each absence, on a logarithmic scale from 1 if lengths are far apart."""
    value = length[0]
    known = value[value.isfinite()]
    _draw_rows(axes, names, value, two_errors_of_length(*length))
    _name_rows(axes, names, best)
    if not len(known):
        _leave_empty(axes)
        return
    if float(known.max()) > _FAR_LENGTHS * float(known.min()):
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
    lower, upper = ends
    for row, look in enumerate(looks_of(names)):
        value = float(values[row])
        whisker = [[value - float(lower[row])], [float(upper[row]) - value]]
        face = "white" if hollow else look.colour
        axes.barh(row, value, height=0.62, color=look.colour, alpha=0.25)
        axes.errorbar(value, row, xerr=whisker, ecolor=NEUTRAL, capsize=3, markerfacecolor=face, **look.style)


def _leave_empty(axes: Axes) -> None:
    """Write that there is nothing to draw."""
    axes.set_xticks([])
    axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color=NEUTRAL)


def _name_rows(axes: Axes, names: Sequence[str], best: int | None) -> None:
    """Name the rows, and highlight the best one."""
    axes.set_yticks(range(len(names)), [label(name, _LONGEST_NAME) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    if best is not None:
        axes.axhspan(best - 0.5, best + 0.5, color=_BEST, alpha=0.35, zorder=0, linewidth=0)
        axes.get_yticklabels()[best].set_fontweight("bold")


def _spread(axes: Axes, usual: float, furthest: float) -> None:
    """Make the scale logarithmic beyond the usual size if the largest figure is far larger."""
    if not furthest > _FAR_APART * usual > 0:
        return
    axes.set_xscale("symlog", linthresh=usual)
    axes.autoscale_view(scaley=False)
    low, high = axes.get_xlim()
    last_power = math.floor(math.log10(furthest))
    middle_power = (last_power + math.ceil(math.log10(usual))) // 2
    sizes = {10.0**middle_power, 10.0**last_power}  # more ticks would overlap
    ticks = [-size for size in sizes] + [0.0] + list(sizes)
    axes.set_xticks(sorted(tick for tick in ticks if low <= tick <= high))


def draw_masking_curve(
    axes: Axes,
    sizes: Int[Tensor, " sizes"],
    scores: Mapping[str, Tensor],
    prior: float,
    best: int | None = None,
    recalibrated: Mapping[str, Tensor] | None = None,
) -> None:
    """Draw the score over the number of present players, a line for each absence, the best one thicker.

    ``recalibrated`` holds the scores without inventions, which are drawn as thin lines.
    """
    if not any(bool(line.isfinite().any()) for line in scores.values()):
        axes.set_yticks([])
        _leave_empty(axes)
        return
    for place, (look, (name, line)) in enumerate(zip(looks_of(list(scores)), scores.items(), strict=True)):
        emphasis: dict[str, Any] = {}
        if place == best:
            emphasis = {"linewidth": 3, "zorder": 3}
        draw_curve(axes, look, label(name, _LONGEST_NAME), sizes, line, **emphasis)
        if recalibrated is not None:
            axes.plot(sizes, recalibrated[name], color=look.colour, linewidth=0.9, linestyle=":")
    if recalibrated is not None:
        axes.plot([], [], color=NEUTRAL, linewidth=0.9, linestyle=":", label="without inventions")
    if math.isfinite(prior):
        axes.axhline(prior, color=NEUTRAL, linewidth=1, linestyle="--", label="prior: knows nothing")
    axes.locator_params(axis="x", integer=True)
    if prior > 0 and max(float(line.max()) for line in scores.values()) > _FAR_APART * prior / 2:
        axes.set_yscale("symlog", linthresh=2 * prior)
        axes.yaxis.set_major_formatter(lambda value, _position: written(value, 2))
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
