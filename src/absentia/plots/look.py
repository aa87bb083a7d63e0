"""The common look of all plots: colours, markers, labels, figures, bars and curves.

Orange adds to the value and blue takes from it. Hatching, dashes, markers or signs say the same without colour.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from absentia.absences.words import split_word
from absentia.arguments import checked
from absentia.determined import MEANING_OF_STYLE
from absentia.errors import Axes, Figure, require, wrong

RAISES = "#E69F00"  # adds to the value
LOWERS = "#0072B2"  # takes from the value
NEUTRAL = "#666666"  # has no sign
UNSURE = "#999999"  # is not determined: its standard error exceeds it

_LONGEST_TITLE = 1_000  # letters
_LETTERS_PER_INCH = 12  # of a title, approximately
_TITLE_LINE = 1 / 6  # height of a line of the title in inches
_LARGEST_SIDE = 1000  # inches
_MOST_COLUMNS = 99


class Look(NamedTuple):
    """A colour and a marker that identify the same thing in every plot."""

    colour: str
    marker: str

    @property
    def style(self) -> dict[str, Any]:
        """The look as keyword arguments for matplotlib."""
        return {"color": self.colour, "marker": self.marker}


# Each usual absence has one look in all plots and reports. Markers tell them apart in greyscale.
LOOKS = {
    "zero": Look("#0072B2", "o"),
    "mean": Look("#E69F00", "s"),
    "median": Look("#009E73", "^"),
    "marginal": Look("#CC79A7", "D"),
    "blur": Look("#56B4E9", "v"),
    "learned": Look("#D55E00", "*"),
    "mode": Look("#8C8C00", "P"),
    "noise": Look("#808080", "h"),
    "gaussian": Look("#7B5EA7", "X"),
    "neighbours": Look("#A0522D", "p"),
}


class Bar(NamedTuple):
    """One bar of a chart: its name, its length and its standard error; hollow if within the errors of the values."""

    name: str
    value: float
    error: float = 0.0
    hollow: bool = False

    @property
    def determined(self) -> bool:
        """Whether the value is at least as large as its standard error."""
        return not self.error > abs(self.value)


def look_of(number: int) -> Look:
    """Return the look of a curve that has no fixed look, by its number."""
    return list(LOOKS.values())[number % len(LOOKS)]


def looks_of(names: Sequence[str]) -> list[Look]:
    """Return the look of each absence; names that are not usual words get the remaining looks, alphabetically."""
    words = [split_word(name)[0] for name in names]  # users may name two of a kind, such as "blur: wide"
    unused = [look for word, look in LOOKS.items() if word not in words] or list(LOOKS.values())
    other_names = sorted({name for name, word in zip(names, words, strict=True) if word not in LOOKS})
    other_looks = {name: unused[number % len(unused)] for number, name in enumerate(other_names)}
    return [LOOKS.get(word) or other_looks[name] for name, word in zip(names, words, strict=True)]


def colour_of(value: float) -> str:
    """Return the colour for adding to the value or taking from it."""
    return RAISES if value >= 0 else LOWERS


def label(name: str, most: int = 32) -> str:
    """Shorten a name in the middle, and escape the dollar sign, which begins a formula in matplotlib."""
    if len(name) > most:
        start_letters = most // 2
        end_letters = most - start_letters - 1
        name = f"{name[:start_letters]}…{name[len(name) - end_letters :]}"
    return name.replace("$", r"\$")


@checked
def new_figure(
    columns: int,
    *,
    width: float = 5.2,
    height: float = 5.2,
    rows: int | None = None,
    ratios: Sequence[float] | None = None,
    title: str = "",
) -> Figure:
    """Return an empty figure in the common look, with panels side by side in ``figure.axes``.

    Parameters
    ----------
    columns : int
        Number of panels.
    width, height, rows : float
        Size of a panel in inches. The number of labelled rows, if passed, determines the height instead.
    ratios : sequence of float, optional
        Relative widths of the panels.
    title : str, optional

    Examples
    --------
    >>> figure = ab.plots.new_figure(columns=2, height=3.0)
    >>> len(figure.axes), figure.get_size_inches().tolist()
    (2, [10.4, 3.0])
    """
    panel_ratios = list(ratios or [1.0] * min(columns, _MOST_COLUMNS + 1))  # more raise an error below
    _check_panels(columns, width, height, panel_ratios, ratios)
    if rows is not None:
        height = max(3.2, round(1.8 + 0.24 * rows, 1))
    title_lines = textwrap.wrap(title[:_LONGEST_TITLE], max(20, int(_LETTERS_PER_INCH * width * columns)))
    further_lines = max(0, len(title_lines) - 1)
    size = (width * columns, height + further_lines * _TITLE_LINE)
    figure: Figure = require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
    for axes in figure.subplots(1, columns, squeeze=False, width_ratios=panel_ratios)[0]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set_size(8)
    if title:
        figure.suptitle("\n".join(label(line, most=len(line)) for line in title_lines), fontsize=10)
    figure._repr_png_ = lambda: _as_png(figure)  # type: ignore[attr-defined]  # what a notebook shows
    return figure


def _check_panels(
    columns: int, width: float, height: float, panel_ratios: Sequence[float], ratios: Sequence[float] | None
) -> None:
    """Raise an error unless the panels of a figure can be laid out."""
    enough_columns = 1 <= columns <= _MOST_COLUMNS
    positive = all(length > 0 for length in (width, height, *panel_ratios))
    if not (enough_columns and positive and len(panel_ratios) == columns and max(width, height) < _LARGEST_SIDE):
        must = "have 1 to 99 columns, a ratio for each, and sides above 0"
        raise wrong("the figure", must, f"{columns} of {width} × {height}, ratios {ratios}")


def _as_png(figure: Figure) -> bytes:
    """Return the figure as a PNG file."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return picture.getvalue()


def draw_bar(axes: Axes, place: int, value: float, error: float, *, start: float = 0.0, hollow: bool = False) -> Any:
    """Draw a horizontal bar with two standard errors, and return it; bars that take from the value are hatched.

    A bar whose standard error exceeds it is grey and dotted.
    """
    colour = colour_of(value)
    style: dict[str, Any] = {"color": colour, "edgecolor": colour, "linewidth": 0.8}
    if error > abs(value):
        style |= {"color": "none", "edgecolor": UNSURE, "linestyle": ":", "linewidth": 1.2}
    elif hollow:
        style["color"] = "none"
    elif value < 0:
        style |= {"hatch": "////", "edgecolor": "white", "linewidth": 0}
    if error > 0:
        ink = UNSURE if error > abs(value) else "black"
        style |= {"xerr": 2 * error, "error_kw": {"ecolor": ink, "elinewidth": 0.8, "capsize": 2}}
    return axes.barh(place, value, left=start, height=0.7, **style)


def draw_bars(axes: Axes, bars: Sequence[Bar]) -> None:
    """Draw named bars below each other, the first at the top."""
    for place, bar in enumerate(bars):
        draw_bar(axes, place, bar.value, bar.error, hollow=bar.hollow)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.set_ylim(max(len(bars), 4) - 0.5, -0.5)  # so that a single bar does not fill the panel
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    axes.margins(x=0.1)
    axes.locator_params(axis="x", nbins=6)
    notes = ["takes from it (blue, hatched)"]
    has_errors = any(bar.error > 0 for bar in bars)
    if has_errors:
        notes.append("± 2 standard errors")
    if any(bar.hollow and bar.determined for bar in bars):
        notes.append("hollow: within these errors" if has_errors else "hollow: within rounding error")
    lines = ["adds to the value (orange),", "; ".join(notes)]
    if not all(bar.determined for bar in bars):
        lines.append(f"dotted: {MEANING_OF_STYLE}")
    axes.set_xlabel("\n".join(lines))


def draw_curve(axes: Axes, look: Look, text: str, x: Any, y: Any, **style: Any) -> None:
    """Draw one of several curves in its own look, with a label for the legend."""
    axes.plot(x, y, label=text, **{"markersize": 5, "linewidth": 1.2} | look.style | style)
