"""Pictures of results, by matplotlib: attributions, strongest interactions, order profile.

Two colours throughout, told apart by the colour-blind and in grey: orange adds to the value, blue takes from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from absentia.attributions import Attribution
from absentia.errors import AbsentiaError
from absentia.interactions import Interactions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RAISES, LOWERS, NEUTRAL = "#E69F00", "#0072B2", "#666666"
# Where several things are compared, each has a colour and a marker: the markers tell them apart in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Where the largest figure is beyond this, the scale is logarithmic above 1, so that small ones can be told apart.
_FAR_APART = 4.0


def plot_explanation(
    interactions: Interactions, attribution: Attribution, *, sample: int = 0, strongest: int = 12, title: str = ""
) -> Figure:
    """Draw one sample's attribution, its strongest interactions and its order profile side by side.

    Returns the matplotlib figure; ``figure.savefig(path)`` writes it.

    >>> import absentia as ab
    >>> table = ab.ValueTable([0.0, 1.0, 2.0, 5.0])
    >>> figure = ab.plot_explanation(ab.harsanyi(table), ab.shapley(table))
    >>> [axes.get_title() for axes in figure.axes]
    ['Shapley values', 'strongest 3 of 3 interactions', 'strength by order']
    """
    figure = new_figure(columns=3)
    left, middle, right = figure.axes
    draw_attribution(left, attribution, sample)
    draw_strongest(middle, interactions, sample, strongest)
    draw_order_profile(right, interactions, sample)
    figure.suptitle(title or f"value: {interactions.readout}", fontsize=11)
    return figure


def draw_attribution(axes: Axes, attribution: Attribution, sample: int = 0) -> None:
    """Draw a bar for each player, the largest on top, with its standard error."""
    values = attribution.values[sample].tolist()
    errors = attribution.errors[sample].tolist()
    ranked = sorted(range(len(values)), key=lambda player: abs(values[player]), reverse=True)
    _draw_bars(
        axes,
        [attribution.names[player] for player in ranked],
        [values[player] for player in ranked],
        [errors[player] for player in ranked] if any(errors) else None,
    )
    axes.set_title(attribution.kind)


def draw_strongest(axes: Axes, interactions: Interactions, sample: int = 0, strongest: int = 12) -> None:
    """Draw a bar for each of the strongest interactions, named by their players."""
    top = interactions.top(strongest, sample)
    _draw_bars(axes, [name_of_set(found.players) for found in top], [found.effect for found in top])
    total = interactions.effects.shape[1] - 1
    axes.set_title(f"strongest {len(top)} of {total:,} interactions")


def draw_order_profile(axes: Axes, interactions: Interactions, sample: int = 0) -> None:
    """Draw the share of the effects' strength at each order."""
    ratios = interactions.by_order().ratios[sample, 1:].tolist()
    axes.bar(range(1, len(ratios) + 1), ratios, color=NEUTRAL)
    axes.set_title("strength by order")
    axes.set_xlabel("order: players in the interaction")
    axes.set_ylabel("share of Σ|U|")
    axes.locator_params(axis="x", integer=True)
    axes.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")


def draw_removal(
    axes: Axes,
    names: Sequence[str],
    values: Float[Tensor, " methods"],
    errors: Float[Tensor, " methods"],
    unmasked: float,
) -> None:
    """Draw R of each method with two standard errors, between the levels of white noise and of unmasked samples."""
    axes.axvline(0, color=NEUTRAL, linewidth=1, label="white noise")
    axes.axvline(unmasked, color=NEUTRAL, linewidth=1, linestyle="--", label="unmasked samples")
    bars = (2 * errors.nan_to_num()).tolist()
    for place, (value, bar) in enumerate(zip(values.tolist(), bars, strict=True)):
        colour, marker = _look(place)
        axes.errorbar(value, place, xerr=bar, fmt=marker, color=colour, ecolor=NEUTRAL, capsize=3)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)  # the best on top
    if float(values.abs().max()) > _FAR_APART:
        axes.set_xscale("symlog", linthresh=1)
        axes.xaxis.set_major_formatter(lambda value, _position: f"{value:g}".replace("-", "−"))
    axes.set_xlabel("R ± 2 standard errors: effects left or added")
    axes.set_title("does it remove, and add nothing?")
    axes.legend(fontsize=8, loc="upper right")  # where the best have nothing


def draw_order_profiles(axes: Axes, names: Sequence[str], profiles: Float[Tensor, "methods orders"]) -> None:
    """Draw how strong an interaction of each order is under each method, on a logarithmic scale."""
    for number, (name, profile) in enumerate(zip(names, profiles.tolist(), strict=True)):
        colour, marker = _look(number)
        shown = [strength if strength > 0 else math.nan for strength in profile]  # 0 has no logarithm
        orders = range(1, len(profile) + 1)
        axes.plot(orders, shown, label=name, color=colour, marker=marker, markersize=5, linewidth=1.2)
    if bool((profiles > 0).any()):
        axes.set_yscale("log")
    axes.set_title("strength by order")
    axes.set_xlabel("order: players in the interaction")
    axes.set_ylabel("mean |U| / |v(N) − v(∅)|")
    axes.locator_params(axis="x", integer=True)
    axes.legend(fontsize=8, frameon=False)


def _look(number: int) -> tuple[str, str]:
    return COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]


def draw_agreement(axes: Axes, names: Sequence[str], agreement: Float[Tensor, "methods methods"]) -> None:
    """Draw the rank correlation of attributions between each two methods: the darker, the closer."""
    axes.imshow(agreement.numpy(), cmap="Greys", vmin=-1, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for row, line in enumerate(agreement.tolist()):
        for column, value in enumerate(line):
            text = "–" if math.isnan(value) else f"{value:.2f}".replace("-", "−")
            axes.text(column, row, text, ha="center", va="center", color="white" if value > 0.2 else "black")
    axes.set_title("agreement of Shapley values (rank correlation)")


def _draw_bars(
    axes: Axes, names: Sequence[str], values: Sequence[float], errors: Sequence[float] | None = None
) -> None:
    places = range(len(values))
    colours = [RAISES if value >= 0 else LOWERS for value in values]
    axes.barh(places, values, xerr=errors, color=colours, ecolor=NEUTRAL)
    axes.set_yticks(places, names, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    axes.set_xlabel("adds to the value (orange), takes from it (blue)", fontsize=8)


def name_of_set(players: Sequence[str], most: int = 3) -> str:
    """Name an interaction by its players, shortened where there are many.

    >>> name_of_set(["a", "b", "c", "d", "e"])
    'a & b & c & 2 more'
    """
    shown = " & ".join(players[:most])
    return shown if len(players) <= most else f"{shown} & {len(players) - most} more"


def new_figure(columns: int) -> Figure:
    """Make an empty figure in the common look."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise AbsentiaError(
            "matplotlib must be installed to draw. Got none instead. Run: pip install 'absentia[plot]'."
        ) from error
    figure = Figure(figsize=(5.2 * columns, 5.2), layout="constrained")
    for axes in figure.subplots(1, columns, squeeze=False)[0]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure
