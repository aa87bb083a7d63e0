"""Plots of one sample: Shapley values as bars or as a waterfall, and overviews with interactions beside them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from absentia.attributions import Attribution
from absentia.interactions import Interactions
from absentia.plots.drawable import check_explanation, player_labels, sample_name
from absentia.plots.images import image_heat_map
from absentia.plots.interaction_plots import draw_order_profile, draw_strongest
from absentia.plots.look import NEUTRAL, draw_bar, draw_bars, label, largest, new_figure
from absentia.results import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from absentia.explanation import Explanation

_MOST_ROWS = 16


def bars(explanation: Explanation, sample: int = 0, *, most: int = 20) -> Figure:
    """Draw a bar for each of the players with the largest attributions, with two standard errors.

    Parameters
    ----------
    explanation : Explanation
    sample, most : int
        Number of the sample, and how many players to draw.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [float(bar.get_width()) for bar in ab.plots.bars(explanation).axes[0].patches]
    [3.0, 2.0]
    """
    check_explanation(explanation, sample, most=most)
    rows = min(most, len(explanation.players))
    figure = new_figure(1, width=6.4, rows=rows, title=f"value: {explanation.record.readout}")
    draw_attribution(figure.axes[0], explanation.shapley, sample, most=most)
    return figure


def draw_attribution(axes: Axes, attribution: Attribution, sample: int = 0, *, most: int = 20) -> None:
    """Draw the bars of `bars` on given axes."""
    values, errors = attribution.values[sample], attribution.errors[sample]
    shown = largest(values, most)
    names = [label(attribution.names[player]) for player in shown]
    draw_bars(axes, names, values[shown].tolist(), errors[shown].tolist())
    some = f": {len(shown)} of {len(values)} players" if len(shown) < len(values) else ""
    axes.set_title(attribution.kind + some)


def waterfall(explanation: Explanation, sample: int = 0, *, most: int = _MOST_ROWS) -> Figure:
    """Draw the steps from the value with all players absent to the value with all present, one for each player.

    Parameters
    ----------
    explanation : Explanation
    sample, most : int
        Number of the sample, and of steps, the largest first; the last step adds up all other players.

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


def draw_waterfall(axes: Axes, explanation: Explanation, sample: int = 0, *, most: int = _MOST_ROWS) -> None:
    """Draw the steps of `waterfall` on given axes."""
    names, values, errors = _steps(explanation, sample, most)
    base, output = float(explanation.base_values[sample]), float(explanation.outputs[sample])
    heights, last = list(accumulate(values, initial=base)), len(values) + 1
    for place, (start, value, error) in enumerate(zip(heights, values, errors, strict=False), start=1):
        _draw_step(axes, place, start, value, error)
    tops, bottoms = ([place + shift for place in range(1, last + 1)] for shift in (-0.65, 0.35))
    axes.vlines(heights, tops, [*bottoms[:-1], last], color=NEUTRAL, linewidth=0.7)
    axes.plot([base, output], [0, last], linestyle="none", marker="D", color="black", markersize=5)
    first, final = f"all absent: {written(base, 4)}", f"all present: {written(output, 4)}"
    axes.set_yticks(range(last + 1), [first, *names, final])
    ends = [base, output, *heights]
    ends += [end + 2 * sign * error for end, error in zip(heights[1:], errors, strict=True) for sign in (-1, 1)]
    room = 0.22 * (max(ends) - min(ends)) or 1.0  # for the numbers beside the steps
    axes.set(xlim=(min(ends) - room, max(ends) + room), ylim=(last + 0.6, -0.6))
    axes.locator_params(axis="x", nbins=6)
    title = explanation.shapley.kind + ("; ± 2 standard errors" if any(errors) else "")
    axes.set(title=title, xlabel=label(f"value: {explanation.record.readout}", 200))


def _draw_step(axes: Axes, place: int, start: float, value: float, error: float) -> None:
    """Draw the bar of one player, its error, and its value beside it."""
    draw_bar(axes, place, value, error, start=start)
    away, side = (1, "left") if value >= 0 else (-1, "right")
    at = (start + value + away * 2 * error, place)
    offset: dict[str, Any] = {"xytext": (4 * away, 0), "textcoords": "offset points", "ha": side, "va": "center"}
    axes.annotate(written(value, plus=True), at, fontsize=8, **offset)


def _steps(explanation: Explanation, sample: int, most: int) -> tuple[list[str], list[float], list[float]]:
    """Return labels, values and errors of the largest players, and of all others together as the last step."""
    labels = player_labels(explanation, sample)
    values, errors = explanation.shapley.values[sample], explanation.shapley.errors[sample]
    ranked = largest(values)
    shown = ranked if len(ranked) <= most else ranked[: most - 1]
    steps = [labels[player] for player in shown], values[shown].tolist(), errors[shown].tolist()
    if others := ranked[len(shown) :]:
        # Estimates of several players depend on each other, so the error of their sum is unknown and not drawn.
        steps[0].append(f"{len(others)} others")
        steps[1].append(float(values[others].sum()))
        steps[2].append(0.0)
    return steps


def overview(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw the most useful plots of a sample: a heat map of an image, else waterfall, interactions and orders.

    Parameters
    ----------
    explanation : Explanation
    sample : int
        Number of the sample.

    Examples
    --------
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
