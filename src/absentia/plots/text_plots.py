"""The plot of a text: its tokens in their order, coloured by their attributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from absentia.arguments import checked
from absentia.determined import MEANING_OF_STYLE
from absentia.errors import Axes, Figure
from absentia.plots.drawable import (
    ShownValue,
    base_and_output,
    check_explanation,
    has_errors,
    in_short,
    values_by_player,
)
from absentia.plots.look import NEUTRAL, UNSURE, colour_of, label, new_figure

if TYPE_CHECKING:
    from absentia.explanation import Explanation

_LINE = 84.0  # width of a line, in letters of a token
_SMALL_LETTER = 0.75  # width of a letter of a value, in letters of a token
_SPACE = 1.2  # space between tokens, in letters of a token


@checked
def text_line(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw the tokens of a text in order, coloured by their attributions, with the values below them.

    Parameters
    ----------
    explanation, sample : see `waterfall`

    Examples
    --------
    >>> players = ab.Players.tokens(["not", "bad"])
    >>> explanation = ab.explain(lambda rows: rows.prod(1).double(), [[1, 1]], players=players, absence=0.0)
    >>> [text.get_text() for text in ab.plots.text_line(explanation).axes[0].texts]
    ['not', '+0.5', 'bad', '+0.5']
    """
    check_explanation(explanation, sample)
    figure = new_figure(1, width=8.4)
    axes = figure.axes[0]
    rows = _draw_tokens(axes, explanation, sample)
    figure.set_figheight(1.0 + 0.62 * rows)
    axes.set(xlim=(0, _LINE), ylim=(rows - 0.15, -0.5))
    axes.axis("off")
    axes.set_title(_title(explanation, sample), fontsize=9)
    return figure


def _draw_tokens(axes: Axes, explanation: Explanation, sample: int) -> int:
    """Draw the tokens from left to right, in as many rows as they need; return the number of rows."""
    values = explanation.shapley.values[sample]
    shown = values_by_player(explanation.shapley, sample)
    determined = explanation.shapley.determined[sample]
    largest_value = max(float(values.abs().max()), 1e-12)
    left = 0.0
    row = 0
    for player, name in enumerate(explanation.names):
        width = _width_of_token(name, shown[player])
        if left + width > _LINE and left > 0:
            left = 0.0
            row += 1
        value = float(values[player])
        colour = (colour_of(value), 0.8 * abs(value) / largest_value)
        _draw_token(axes, left + width / 2, row, name, shown[player], colour, bool(determined[player]))
        left += width
    return row + 1


def _lines_below(shown: ShownValue) -> list[str]:
    """Return the text below a token: its value, and its error on a second line."""
    if shown.error:
        return [shown.value, f"± {shown.error}"]
    return [shown.value]


def _width_of_token(name: str, shown: ShownValue) -> float:
    """Return the width that a token needs for its name and the text below."""
    below = max(_SMALL_LETTER * len(line) for line in _lines_below(shown))
    return max(len(label(name)), below) + _SPACE


def _draw_token(
    axes: Axes, x: float, row: int, name: str, shown: ShownValue, colour: tuple[str, float], determined: bool
) -> None:
    """Draw a token in a box of this colour and opacity, with its value below; dotted if that is not determined."""
    box: dict[str, Any] = {"boxstyle": "round,pad=0.25", "linewidth": 0, "facecolor": colour}
    if not determined:
        box |= {"linewidth": 1.2, "linestyle": ":", "facecolor": "none", "edgecolor": UNSURE}
    axes.text(x, row, label(name), ha="center", va="center", fontsize=11, family="monospace", bbox=box)
    axes.text(x, row + 0.28, "\n".join(_lines_below(shown)), ha="center", va="top", fontsize=7, color=NEUTRAL)


def _title(explanation: Explanation, sample: int) -> str:
    """Return a title that says what the value is, how the tokens change it, and what the colours mean."""
    base, output = base_and_output(explanation, sample)
    note = "orange adds, blue takes"
    if has_errors(explanation.shapley):
        note += "; ± 1 standard error"
    if not bool(explanation.shapley.determined[sample].all()):
        note += f"\ndotted: {MEANING_OF_STYLE}"
    readout = label(in_short(explanation, sample), 90)
    return f"{readout}\n{base} with all tokens absent, {output} with all present; {note}"
