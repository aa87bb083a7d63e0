"""Pictures of an audit: R with its errors, strength by order, and agreement of attributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from absentia.plots.look import NEUTRAL, look_of, plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Where the largest figure is beyond this, the scale is logarithmic above 1, so that small ones can be told apart.
_FAR_APART = 4.0


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
        colour, marker = look_of(place)
        axes.errorbar(value, place, xerr=bar, fmt=marker, color=colour, ecolor=NEUTRAL, capsize=3)
    axes.set_yticks(range(len(names)), _labels(names))
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
        colour, marker = look_of(number)
        shown = [strength if strength > 0 else math.nan for strength in profile]  # 0 has no logarithm
        orders = range(1, len(profile) + 1)
        axes.plot(orders, shown, label=_labels([name])[0], color=colour, marker=marker, markersize=5, linewidth=1.2)
    if bool((profiles > 0).any()):
        axes.set_yscale("log")
    axes.set_title("strength by order")
    axes.set_xlabel("order: players in the interaction")
    axes.set_ylabel("mean |U| / |v(N) − v(∅)|")
    axes.locator_params(axis="x", integer=True)
    axes.legend(fontsize=8, frameon=False)


def draw_agreement(axes: Axes, names: Sequence[str], agreement: Float[Tensor, "methods methods"]) -> None:
    """Draw the rank correlation of attributions between each two methods: the darker, the closer."""
    axes.imshow(agreement.numpy(), cmap="Greys", vmin=-1, vmax=1)
    axes.set_xticks(range(len(names)), _labels(names), rotation=45, ha="right")
    axes.set_yticks(range(len(names)), _labels(names))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for row, line in enumerate(agreement.tolist()):
        for column, value in enumerate(line):
            text = "–" if math.isnan(value) else f"{value:.2f}".replace("-", "−")
            axes.text(column, row, text, ha="center", va="center", color="white" if value > 0.2 else "black")
    axes.set_title("agreement of Shapley values (rank correlation)")


def _labels(names: Sequence[str]) -> list[str]:
    return [plain(shorten(name)) for name in names]
