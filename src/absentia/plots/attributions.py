"""Pictures of attributions: bars, and a waterfall from the value of nothing to the value of the sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from absentia.attributions import Attribution
from absentia.plots.explained import Explained, check_explanation
from absentia.plots.look import (
    NEUTRAL,
    check_count,
    colour_of,
    draw_bars,
    new_figure,
    plain,
    rows_height,
    shorten,
    signed,
)
from absentia.plots.player_labels import player_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PLAYERS = 20


def bars(explanation: Explained, sample: int = 0, *, most: int = _MOST_PLAYERS) -> Figure:
    """Draw a bar for each of the players with the largest attributions, with two standard errors.

    >>> import torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> [float(bar.get_width()) for bar in ab.plots.bars(explanation).axes[0].patches]
    [3.0, 2.0]
    """
    check_explanation(explanation, sample)
    check_count("most", most)
    figure = new_figure(columns=1, width=6.4, height=rows_height(min(most, len(explanation.names))))
    draw_attribution(figure.axes[0], explanation.shapley, sample, most=most)
    figure.suptitle(plain(f"value: {explanation.record.readout}"), fontsize=9)
    return figure


def draw_attribution(axes: Axes, attribution: Attribution, sample: int = 0, *, most: int = _MOST_PLAYERS) -> None:
    """Draw a bar for each player, the largest on top, with two standard errors."""
    values = attribution.values[sample].tolist()
    errors = attribution.errors[sample].tolist()
    ranked = sorted(range(len(values)), key=lambda player: abs(values[player]), reverse=True)[:most]
    draw_bars(
        axes,
        [shorten(attribution.names[player]) for player in ranked],
        [values[player] for player in ranked],
        [errors[player] for player in ranked] if any(errors) else None,
    )
    left_out = len(values) - len(ranked)
    axes.set_title(attribution.kind + (f": {len(ranked)} of {len(values)} players" if left_out else ""))


def waterfall(explanation: Explained, sample: int = 0, *, most: int = 16) -> Figure:
    """Draw the way from the value with all players absent to that with all present, player by player.

    The largest come first; where there are more than ``most`` players, the others are put together in one step.

    >>> import torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=ab.Baseline(1.0))
    >>> [(float(bar.get_x()), float(bar.get_width())) for bar in ab.plots.waterfall(explanation).axes[0].patches]
    [(1.0, 3.0), (4.0, 2.0)]
    """
    check_explanation(explanation, sample)
    check_count("most", most)
    rows = min(most, len(explanation.names)) + 2
    figure = new_figure(columns=1, width=7.2, height=rows_height(rows))
    draw_waterfall(figure.axes[0], explanation, sample, most=most)
    return figure


def draw_waterfall(axes: Axes, explanation: Explained, sample: int = 0, *, most: int = 16) -> None:
    """Draw a step for each player between a row for v(∅) and a row for v(N)."""
    steps = _steps(explanation, sample, most)
    base, output = float(explanation.base_values[sample]), float(explanation.outputs[sample])
    ends = [base, output]
    height, last = base, len(steps) + 1
    for place, (_, value, error) in enumerate(steps, start=1):
        axes.plot([height, height], [place - 0.65, place + 0.35], color=NEUTRAL, linewidth=0.7)
        _draw_step(axes, place, height, value, error)
        height += value
        ends += [height - 2 * error, height + 2 * error]
    axes.plot([height, height], [last - 0.65, last], color=NEUTRAL, linewidth=0.7)
    axes.plot([base, output], [0, last], linestyle="none", marker="D", color="black", markersize=5)
    first, final = (
        f"all {who}: {value:.4g}".replace("-", "−") for who, value in (("absent", base), ("present", output))
    )
    axes.set_yticks(range(last + 1), [first, *(plain(name) for name, _, _ in steps), final], fontsize=8)
    axes.set_ylim(last + 0.6, -0.6)
    room = 0.22 * (max(ends) - min(ends)) or 1.0  # for the figures beside the steps
    axes.set_xlim(min(ends) - room, max(ends) + room)
    axes.tick_params(axis="x", labelsize=8)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(plain(f"value: {explanation.record.readout}"), fontsize=8)
    errors = "; ± 2 standard errors" if any(error > 0 for _, _, error in steps) else ""
    axes.set_title(f"{explanation.shapley.kind}{errors}", fontsize=11)


def _draw_step(axes: Axes, place: int, start: float, value: float, error: float) -> None:
    """Draw one player's bar from where the last ended, its error, and its figure beside it."""
    bar = axes.barh(place, value, left=start, color=colour_of(value), height=0.7).patches[0]
    if value < 0:
        bar.set(hatch="////", edgecolor="white", linewidth=0)
    if error > 0:
        axes.errorbar(start + value, place, xerr=2 * error, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
    away, side = (1, "left") if value >= 0 else (-1, "right")
    at = (start + value + away * 2 * error, place)
    offset: dict[str, Any] = {"xytext": (4 * away, 0), "textcoords": "offset points", "ha": side, "va": "center"}
    axes.annotate(signed(value), at, fontsize=8, **offset)


def _steps(explanation: Explained, sample: int, most: int) -> list[tuple[str, float, float]]:
    """List name, value and error of the largest players, and of all others together as the last."""
    labels = player_labels(explanation, sample)
    values, errors = explanation.shapley.values[sample].tolist(), explanation.shapley.errors[sample].tolist()
    ranked = sorted(range(len(values)), key=lambda player: abs(values[player]), reverse=True)
    shown, others = (ranked, []) if len(ranked) <= most else (ranked[: most - 1], ranked[most - 1 :])
    steps = [(labels[player], values[player], errors[player]) for player in shown]
    if others:
        # Errors of a sum of estimates that hang together are not known: none is drawn.
        steps.append((f"{len(others)} others", sum(values[player] for player in others), 0.0))
    return steps
