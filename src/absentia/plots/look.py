"""The common look of all plots: colours, markers, labels, figures, bars and curves.

Orange adds to the value and blue takes from it. Hatching, dashes, markers or signs say the same without colour.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from absentia.errors import Axes, Figure, require, wrong

_LONGEST_TITLE = 1_000  # letters
RAISES, LOWERS, NEUTRAL = "#E69F00", "#0072B2", "#666666"
# Absences have one colour and marker each, in every plot and report. Markers tell them apart in grey.
LOOKS = {
    "zero": ("#0072B2", "o"), "mean": ("#E69F00", "s"), "median": ("#009E73", "^"), "marginal": ("#CC79A7", "D"),
    "blur": ("#56B4E9", "v"), "learned": ("#D55E00", "*"), "mode": ("#8C8C00", "P"), "noise": ("#808080", "h"),
    "gaussian": ("#7B5EA7", "X"), "neighbours": ("#A0522D", "p"),
}  # fmt: skip


def look_of(number: int) -> dict[str, Any]:
    """Return the colour and the marker of one of several things that have no look of their own."""
    colour, marker = list(LOOKS.values())[number % len(LOOKS)]
    return {"color": colour, "marker": marker}


def looks_of(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the looks of absences: those of the usual words, and of what they leave for others, by name."""
    words = [name.partition(":")[0] for name in names]
    free = [number for number, word in enumerate(LOOKS) if word not in words] or [*range(len(LOOKS))]
    others = sorted({name for name, word in zip(names, words, strict=True) if word not in LOOKS})
    place = {word: number for number, word in enumerate(LOOKS)}
    place |= {name: free[number % len(free)] for number, name in enumerate(others)}
    return [look_of(place[word if word in LOOKS else name]) for name, word in zip(names, words, strict=True)]


def colour_of(value: float) -> str:
    """Return the colour of what adds to the value or takes from it."""
    return RAISES if value >= 0 else LOWERS


def label(name: str, most: int = 32) -> str:
    """Shorten a name in its middle, and escape the dollar sign, with which matplotlib begins a formula."""
    if len(name) > most:
        name = f"{name[: most // 2]}…{name[len(name) - (most - most // 2 - 1) :]}"
    return name.replace("$", r"\$")


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
        Size of a panel in inches; a number of labelled rows determines the height instead.
    ratios : sequence of float, optional
        Relative widths of the panels.
    title : str, optional

    Examples
    --------
    >>> figure = ab.plots.new_figure(columns=2, height=3.0)
    >>> len(figure.axes), figure.get_size_inches().tolist()
    (2, [10.4, 3.0])
    """
    sides = 0 < min(width, height, *(ratios or ())) <= max(width, height) < 1000
    if not 1 <= columns < 100 or len(ratios or range(columns)) != columns or not sides:
        must = "have 1 to 99 columns, a ratio for each, and sides above 0"
        raise wrong("the figure", must, f"{columns} of {width} × {height}, ratios {ratios}")
    if rows is not None:
        height = max(3.2, round(1.8 + 0.24 * rows, 1))
    # A line of the title has about 12 letters in an inch, and takes a sixth of an inch.
    lines = textwrap.wrap(title[:_LONGEST_TITLE], max(20, int(12 * width * columns)))
    size = (width * columns, height + max(0, len(lines) - 1) / 6)
    figure: Figure = require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
    for axes in figure.subplots(1, columns, squeeze=False, width_ratios=ratios or None)[0]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set_size(8)
    if title:
        figure.suptitle("\n".join(label(line, most=len(line)) for line in lines), fontsize=10)
    figure._repr_png_ = lambda: _as_png(figure)  # type: ignore[attr-defined]  # what a notebook shows
    return figure


def _as_png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return picture.getvalue()


def draw_bar(axes: Axes, place: int, value: float, error: float, *, start: float = 0.0, hollow: bool = False) -> Any:
    """Draw one horizontal bar with two standard errors, and return it; bars that take from the value are hatched."""
    colour = colour_of(value)
    style: dict[str, Any] = {"color": "none" if hollow else colour, "edgecolor": colour, "linewidth": 0.8}
    if value < 0 and not hollow:
        style |= {"hatch": "////", "edgecolor": "white", "linewidth": 0}
    if error > 0:
        style |= {"xerr": 2 * error, "error_kw": {"ecolor": "black", "elinewidth": 0.8, "capsize": 2}}
    return axes.barh(place, value, left=start, height=0.7, **style)


def draw_bars(axes: Axes, rows: Sequence[tuple[str, float, float, bool]]) -> None:
    """Draw a bar for each row, the first on top: its name, its value, the error of that, and whether it is hollow."""
    for place, (_, value, error, hollow) in enumerate(rows):
        draw_bar(axes, place, value, error, hollow=hollow)
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.set_ylim(max(len(rows), 4) - 0.5, -0.5)  # a single bar does not fill the panel
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    axes.margins(x=0.1)
    axes.locator_params(axis="x", nbins=6)
    notes = ["adds to the value (orange),\ntakes from it (blue, hatched)"]
    notes += ["± 2 standard errors"] * any(error > 0 for _, _, error, _ in rows)
    notes += ["hollow: within rounding error"] * any(hollow for *_, hollow in rows)
    axes.set_xlabel("; ".join(notes))


def draw_curve(axes: Axes, look: dict[str, Any], text: str, x: Any, y: Any, **style: Any) -> None:
    """Draw one of several curves in its own look, with a text for the legend."""
    axes.plot(x, y, label=text, **{"markersize": 5, "linewidth": 1.2} | look | style)
