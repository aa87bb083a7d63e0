"""Plots of the attributions of one sample: bars, steps, and an overview with the interactions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from jaxtyping import Float
from torch import Tensor

from absentia.arguments import checked
from absentia.determined import MEANING_OF_STYLE
from absentia.errors import Axes, Figure
from absentia.plots.drawable import (
    base_and_output,
    check_explanation,
    in_short,
    largest,
    largest_and_others,
    player_labels,
    values_by_player,
)
from absentia.plots.image_plots import image_heat_map
from absentia.plots.interaction_plots import draw_order_profile, draw_strongest
from absentia.plots.look import NEUTRAL, UNSURE, Bar, draw_bar, draw_bars, label, new_figure
from absentia.text import written

if TYPE_CHECKING:
    from absentia.explanation import Explanation

_MOST_STEPS = 16  # default number of steps in a waterfall
_MARGIN = 0.22  # share of the width on each side of a waterfall, for the numbers beside the steps


@checked
def bars(explanation: Explanation, sample: int | None = 0, *, most: int = 20) -> Figure:
    """Draw a bar with two standard errors for each of the players with the largest attributions.

    Parameters
    ----------
    explanation : Explanation
    sample : int, optional
        Number of the sample. None draws the mean |attribution| over all samples, with its standard error over them.
    most : int
        How many players to draw.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [float(bar.get_width()) for bar in ab.plots.bars(explanation).axes[0].patches]
    [3.0, 2.0]
    """
    check_explanation(explanation, sample or 0, most=most)
    if sample is None:
        return _bars_of_means(explanation, most)
    attribution = explanation.shapley
    return _bars_of_players(
        explanation,
        attribution.values[sample],
        attribution.errors[sample],
        most,
        title=attribution.kind,
        readout=in_short(explanation, sample),
    )


def _bars_of_means(explanation: Explanation, most: int) -> Figure:
    """Draw the mean |attribution| over all samples in grey, because it has no sign."""
    samples = explanation.samples
    strength = explanation.shapley.values.abs()
    errors = explanation.shapley.errors[0]
    note = ""
    if samples > 1:
        errors = strength.std(0) / samples**0.5
        note = "± 2 standard errors over samples"
    kind = "Shapley value" if explanation.record.exact else "sampled Shapley value"
    title = f"mean |{kind}| of {samples:,} samples"
    figure = _bars_of_players(explanation, strength.mean(0), errors, most, title=title, readout=in_short(explanation))
    axes = figure.axes[0]
    axes.set_xlabel(note)
    determined = explanation.shapley.determined_means
    drawn = largest(strength.mean(0), most)
    for bar, player in zip(axes.patches, drawn, strict=True):
        bar.set(color=NEUTRAL, hatch="", linestyle="-")
        if not determined[player]:
            bar.set(facecolor="none", edgecolor=UNSURE, linestyle=":", linewidth=1.2)
    if not bool(determined[drawn].all()):
        axes.set_xlabel(f"{note}\ndotted: {MEANING_OF_STYLE}".strip())
    return figure


def _bars_of_players(
    explanation: Explanation,
    values: Float[Tensor, " players"],
    errors: Float[Tensor, " players"],
    most: int,
    *,
    title: str,
    readout: str,
) -> Figure:
    """Draw a bar for each of the largest values; the title says if there are more."""
    players = largest(values, most)
    figure = new_figure(1, width=6.4, rows=len(players), title=f"value: {readout}")
    axes = figure.axes[0]
    draw_bars(
        axes,
        [Bar(label(explanation.names[player]), float(values[player]), float(errors[player])) for player in players],
    )
    if len(players) < len(values):
        title += f": {len(players)} of {len(values)} players"
    axes.set_title(title)
    return figure


class _Step(NamedTuple):
    """One step of a waterfall, with the text beside it."""

    name: str
    value: float
    error: float
    text: str


@checked
def waterfall(explanation: Explanation, sample: int = 0, *, most: int = _MOST_STEPS) -> Figure:
    """Draw the steps from the value with all players absent to the value with all present, one for each player.

    Parameters
    ----------
    explanation : Explanation
    sample, most : int
        Number of the sample, and number of steps, largest first. The last step adds up all other players.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [(float(bar.get_x()), float(bar.get_width())) for bar in ab.plots.waterfall(explanation).axes[0].patches]
    [(1.0, 3.0), (4.0, 2.0)]
    """
    check_explanation(explanation, sample, most=most)
    figure = new_figure(1, width=7.2, rows=min(most, len(explanation.players)) + 2)
    draw_waterfall(figure.axes[0], explanation, sample, most=most)
    return figure


def draw_waterfall(axes: Axes, explanation: Explanation, sample: int = 0, *, most: int = _MOST_STEPS) -> None:
    """Draw the steps of `waterfall` on given axes."""
    steps = _steps(explanation, sample, most)
    base = float(explanation.base_values[sample])
    output = float(explanation.outputs[sample])
    levels = list(accumulate((step.value for step in steps), initial=base))
    _draw_steps(axes, steps, levels)
    last_row = len(steps) + 1
    axes.plot([base, output], [0, last_row], linestyle="none", marker="D", color="black", markersize=5)
    base_text, output_text = base_and_output(explanation, sample)
    names = [f"all absent: {base_text}", *(step.name for step in steps), f"all present: {output_text}"]
    axes.set_yticks(range(last_row + 1), names)
    low, high = _reach(steps, [base, output, *levels])
    margin = _MARGIN * (high - low) or 1.0
    axes.set(xlim=(low - margin, high + margin), ylim=(last_row + 0.6, -0.6))
    axes.locator_params(axis="x", nbins=6)
    title = explanation.shapley.kind
    if any(step.error for step in steps):
        title += "; ± 2 standard errors"
    xlabel = label(f"value: {in_short(explanation, sample)}", 200)
    if any(step.error > abs(step.value) for step in steps):
        xlabel += f"\ndotted: {MEANING_OF_STYLE}"
    axes.set(title=title, xlabel=xlabel)


def _steps(explanation: Explanation, sample: int, most: int) -> list[_Step]:
    """Return a step for each of the largest players, and one for all others."""
    labels = player_labels(explanation, sample)
    values = explanation.shapley.values[sample]
    errors = explanation.shapley.errors[sample].nan_to_num()
    shown = values_by_player(explanation.shapley, sample)
    players, others = largest_and_others(values, most - 1)
    steps = [
        _Step(labels[player], float(values[player]), float(errors[player]), shown[player].value) for player in players
    ]
    if others:
        # Estimates of different players are correlated, so the error of their sum is unknown and not drawn.
        rest = float(values[others].sum())
        steps.append(_Step(f"{len(others)} others", rest, 0.0, written(rest, 4, plus=True)))
    return steps


def _draw_steps(axes: Axes, steps: Sequence[_Step], levels: Sequence[float]) -> None:
    """Draw each step as a bar that begins at its level, and lines that connect the bars."""
    for row, (step, level) in enumerate(zip(steps, levels, strict=False), start=1):
        bar = draw_bar(axes, row, step.value, step.error, start=level)
        axes.bar_label(bar, [step.text], padding=4, fontsize=8)
    last_row = len(steps) + 1
    tops = [row - 0.65 for row in range(1, last_row + 1)]
    bottoms = [row + 0.35 for row in range(1, last_row)]
    axes.vlines(levels, tops, [*bottoms, last_row], color=NEUTRAL, linewidth=0.7)


def _reach(steps: Sequence[_Step], levels: Sequence[float]) -> tuple[float, float]:
    """Return the least and the largest number drawn, over levels and the ends of whiskers."""
    ends = levels[len(levels) - len(steps) :]
    lower = [end - 2 * step.error for end, step in zip(ends, steps, strict=True)]
    upper = [end + 2 * step.error for end, step in zip(ends, steps, strict=True)]
    return min(*levels, *lower), max(*levels, *upper)


@checked
def overview(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw the most useful plots of a sample: a heat map for an image, otherwise waterfall, interactions and orders.

    Parameters
    ----------
    explanation, sample : see `waterfall`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [axes.get_title() for axes in ab.plots.overview(explanation).axes]
    ['Shapley values', 'strongest 3 of 3 interactions', 'strength by order']
    """
    check_explanation(explanation, sample)
    players = explanation.players
    interactions = explanation.interactions
    if players.is_image:
        return image_heat_map(explanation, sample)
    if interactions is None:
        return waterfall(explanation, sample)
    title = f"{explanation.sample_name(sample)}; absent players: {label(explanation.record.absence, 80)}"
    rows = max(min(_MOST_STEPS, len(players)) + 2, 10)
    figure = new_figure(3, width=5.8, rows=rows, ratios=(5.0, 5.0, 3.5), title=title)
    draw_waterfall(figure.axes[0], explanation, sample)
    draw_strongest(figure.axes[1], interactions, sample, _MOST_STEPS)
    draw_order_profile(figure.axes[2], interactions, sample)
    return figure
