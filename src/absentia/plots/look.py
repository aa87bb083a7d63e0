"""The one look of all pictures: colours, markers, names of sets, and empty figures.

Two colours throughout, told apart by the colour-blind and in grey: orange adds to the value, blue takes from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from absentia.errors import wrong
from absentia.optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RAISES, LOWERS, NEUTRAL = "#E69F00", "#0072B2", "#666666"
# Where several things are compared, each has a colour and a marker: the markers tell them apart in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LONGEST_NAME = 32


def look_of(number: int) -> tuple[str, str]:
    """Give the colour and the marker of one of several things.

    >>> look_of(1)
    ('#E69F00', 's')
    """
    return COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]


def colour_of(value: float) -> str:
    """Give the colour of what adds to the value or takes from it.

    >>> colour_of(-0.5) == LOWERS
    True
    """
    return RAISES if value >= 0 else LOWERS


def shorten(name: str, most: int = _LONGEST_NAME) -> str:
    """Cut the middle out of a name that is too long for a picture: its ends tell it from others.

    >>> shorten("the number of days since the last payment", most=20)
    'the number…t payment'
    """
    if len(name) <= most:
        return name
    return f"{name[: most // 2]}…{name[len(name) - (most - most // 2 - 1) :]}"


def plain(text: str) -> str:
    r"""Let matplotlib draw a name as it is: a dollar sign would begin a formula.

    >>> print(plain("income in $"))
    income in \$
    """
    return text.replace("$", r"\$")


def name_of_set(players: Sequence[str], most: int = 3) -> str:
    """Name an interaction by its players, shortened where there are many.

    >>> name_of_set(["a", "b", "c", "d", "e"])
    'a & b & c & 2 more'
    """
    shown = " & ".join(players[:most])
    return shown if len(players) <= most else f"{shown} & {len(players) - most} more"


def label_of_set(players: Sequence[str]) -> str:
    """Name an interaction beside a bar, its players' names cut so that three of them fit.

    >>> label_of_set(["the days since the last payment", "age"])
    'the days s…t payment & age'
    """
    return name_of_set([shorten(name, 20) for name in players])


def signed(value: float) -> str:
    """Write a number with its sign, to three digits.

    >>> signed(-0.12345), signed(1234.5)
    ('−0.123', '+1234')
    """
    text = f"{value:+.3g}" if abs(value) < 1000 else f"{value:+.0f}"
    return text.replace("-", "−")


def check_sample(sample: int, samples: int) -> None:
    """Refuse the number of a sample that is not there."""
    if not 0 <= sample < samples:
        raise wrong("sample", f"lie between 0 and {samples - 1}", sample)


def check_count(name: str, count: int) -> None:
    """Refuse to draw less than one of something."""
    if count < 1:
        raise wrong(name, "be at least 1", count)


def new_figure(
    columns: int, *, width: float = 5.2, height: float = 5.2, ratios: Sequence[float] | None = None
) -> Figure:
    """Make an empty figure in the common look, of panels of so many inches, or of widths in these ratios."""
    figure: Figure = require("matplotlib.figure", "plot").Figure(
        figsize=(width * columns, height), layout="constrained"
    )
    for axes in figure.subplots(1, columns, squeeze=False, width_ratios=ratios)[0]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def rows_height(rows: int) -> float:
    """Tell how many inches a panel of so many named rows takes.

    >>> rows_height(2), rows_height(40)
    (3.2, 11.4)
    """
    return max(3.2, round(1.8 + 0.24 * rows, 1))


def draw_bars(
    axes: Axes,
    names: Sequence[str],
    values: Sequence[float],
    errors: Sequence[float] | None = None,
    *,
    hollow: Sequence[bool] | None = None,
) -> None:
    """Draw a named bar for each value, the first on top, with two standard errors where there are any.

    Those that lower the value are hatched as well as blue, for grey; ``hollow`` ones are drawn without a filling.
    """
    empty = [False] * len(values) if hollow is None else hollow
    for place, (value, bare) in enumerate(zip(values, empty, strict=True)):
        colour = colour_of(value)
        bar = axes.barh(place, value, color="none" if bare else colour, edgecolor=colour, linewidth=0.8)
        if value < 0 and not bare:
            bar.patches[0].set(hatch="////", edgecolor="white", linewidth=0)
    if errors is not None:
        twice = [2 * error for error in errors]
        axes.errorbar(values, range(len(values)), xerr=twice, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
    axes.set_yticks(range(len(values)), [plain(name) for name in names], fontsize=8)
    axes.set_ylim(max(len(values), 4) - 0.5, -0.5)  # a single bar need not fill the picture
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    axes.margins(x=0.1)
    axes.tick_params(axis="x", labelsize=8)
    axes.locator_params(axis="x", nbins=6)
    beside = "" if errors is None else "; ± 2 standard errors"
    beside += "; hollow: lost in rounding errors" if any(empty) else ""
    axes.set_xlabel(f"adds to the value (orange),\ntakes from it (blue, hatched){beside}", fontsize=8)
