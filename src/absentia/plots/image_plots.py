"""Plots of images: attributions spread over the pixels, and images on a common scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.arguments import checked
from absentia.attributions import Attribution
from absentia.determined import MEANING_OF_STYLE
from absentia.errors import Axes, Figure, require, wrong
from absentia.plots.drawable import base_and_output, check_explanation, in_short, ranked_values
from absentia.plots.look import LOWERS, RAISES, UNSURE, label, new_figure

if TYPE_CHECKING:
    from absentia.explanation import Explanation

_MOST_NUMBERS = 25  # values are written on up to this many players
_MOST_SIGNS = 100  # signs are written on up to this many players
_LEAST_SHARE = 0.05  # nothing is written on values below this share of the largest
_DARK_SHARE = 0.6  # above this share of the largest value, blue is so dark that text on it is white
_ALWAYS_PRESENT = "#D9D9D9"  # colour of pixels without a player


@checked
def image_heat_map(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw an image, its attribution spread over the pixels, and the image with all players absent.

    Pixels are orange if their player adds to the value, blue if it takes from it, and grey if always present.

    Parameters
    ----------
    explanation, sample : see `waterfall`

    Examples
    --------
    >>> players = ab.Players.grid((1, 4, 4), cells=(2, 2))
    >>> images = torch.rand(1, 1, 4, 4)
    >>> explanation = ab.explain(lambda rows: rows.sum((1, 2, 3)), images, players=players, absence=0.0)
    >>> [axes.get_title() for axes in ab.plots.image_heat_map(explanation).axes[:3]]
    ['sample 0', 'Shapley values', 'all players absent']
    """
    check_explanation(explanation, sample)
    labels = explanation.players.labels
    if not explanation.players.is_image:
        must = "hold images, of shape (1 or 3 channels, height, width), whose players are areas"
        raise wrong("explanation", must, f"samples of shape {tuple(labels.shape)}", "Draw plots.waterfall instead.")
    images = {label(explanation.sample_name(sample)): explanation.x[sample].double()}
    if explanation.stand_ins is not None:
        images["all players absent"] = explanation.stand_ins[sample].double()
    base, output = base_and_output(explanation, sample)
    title = f"{in_short(explanation, sample)}: {base} with all players absent, {output} with all present"
    figure = new_figure(1 + len(images), width=4.4, height=4.6, title=title)
    first, middle, *last = figure.axes
    draw_images([first, *last], images)
    player_of_pixel = labels if labels.ndim == 2 else labels[0]
    heat = _draw_heat(middle, explanation.shapley, sample, player_of_pixel)
    bar = figure.colorbar(heat, ax=middle, shrink=0.7, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return figure


def _draw_heat(
    axes: Axes, attribution: Attribution, sample: int, player_of_pixel: Int[Tensor, "height width"]
) -> Any:
    """Colour every pixel by the value of its player, and return matplotlib's image."""
    values = attribution.values[sample]
    largest_value = max(float(values.abs().max()), 1e-12)
    values_and_none: Float[Tensor, " labels"] = torch.nn.functional.pad(values.double(), (0, 1), value=torch.nan)
    pixels = values_and_none[player_of_pixel]  # pixels that are always present have the label −1: the last
    colours = require("matplotlib.colors", "plot").LinearSegmentedColormap.from_list("", [LOWERS, "white", RAISES])
    heat = axes.imshow(
        pixels.numpy(),
        vmin=-largest_value,
        vmax=largest_value,
        cmap=colours.with_extremes(bad=_ALWAYS_PRESENT),
        interpolation="nearest",
    )
    title = attribution.kind
    unsure = ~attribution.determined[sample]
    if bool(unsure.any()):
        title += f"\nhatched: {MEANING_OF_STYLE}"
        _hatch(axes, torch.nn.functional.pad(unsure, (0, 1))[player_of_pixel])
    _frame(axes, title)
    if len(values) <= _MOST_SIGNS:
        _write_on_players(axes, attribution, sample, player_of_pixel)
    return heat


def _hatch(axes: Axes, pixels: Bool[Tensor, "height width"]) -> None:
    """Hatch these pixels, one rectangle for each run of them in a row."""
    rectangle = require("matplotlib.patches", "plot").Rectangle
    for row, marked in enumerate(pixels.int()):
        edges = torch.nn.functional.pad(marked, (1, 1)).diff().nonzero()[:, 0].tolist()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            style: dict[str, Any] = {"fill": False, "hatch": "////", "edgecolor": UNSURE, "linewidth": 0}
            axes.add_patch(rectangle((start - 0.5, row - 0.5), stop - start, 1, **style))


def _write_on_players(
    axes: Axes, attribution: Attribution, sample: int, player_of_pixel: Int[Tensor, "height width"]
) -> None:
    """Write determined values, or their signs, at the middle of their player's pixels unless they are close to 0."""
    values = attribution.values[sample]
    largest_value = float(values.abs().max())
    determined = attribution.determined[sample]
    for shown in ranked_values(attribution, sample):
        value = float(values[shown.player])
        pixels: Float[Tensor, "pixels 2"] = (player_of_pixel == shown.player).nonzero().double()
        if len(pixels) == 0 or abs(value) < _LEAST_SHARE * largest_value:
            continue
        row, column = _middle(pixels, player_of_pixel, shown.player)
        if not determined[shown.player]:
            continue
        text = shown.value
        if len(values) > _MOST_NUMBERS:
            text = _sign(value)
        dark = value < 0 and abs(value) > _DARK_SHARE * largest_value
        colour = "white" if dark else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)


def _middle(
    pixels: Float[Tensor, "pixels 2"], player_of_pixel: Int[Tensor, "height width"], player: int
) -> tuple[float, float]:
    """Return the row and column of the middle of a player's area, moved to its nearest pixel if that lies outside."""
    mean = pixels.mean(0)
    row, column = mean.tolist()
    if int(player_of_pixel[round(row), round(column)]) != player:  # as in the middle of a ring
        row, column = pixels[(pixels - mean).square().sum(1).argmin()].tolist()
    return row, column


def _sign(value: float) -> str:
    """Return the sign of a value."""
    if value == 0:
        return "0"
    return "+" if value > 0 else "−"


def draw_images(panels: Sequence[Axes], images: dict[str, Shaped[Tensor, " *entries"]]) -> None:
    """Draw titled images on one scale: 0 to 1 if that holds all values, otherwise from the least to the largest."""
    low = min(float(image.min()) for image in images.values())
    high = max(float(image.max()) for image in images.values())
    if low >= 0 and high <= 1:
        low = 0.0
        high = 1.0
    for axes, (title, image) in zip(panels, images.items(), strict=True):
        scaled = ((image.detach().cpu().double() - low) / max(high - low, 1e-12)).clamp(0, 1)
        pixels = scaled[None].flatten(0, -3).permute(1, 2, 0).squeeze(-1)  # (height, width) or (height, width, 3)
        axes.imshow(pixels.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        _frame(axes, title)


def _frame(axes: Axes, title: str) -> None:
    """Replace the ticks with a frame, and write the title."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color="#999999")
    axes.set_title(title, fontsize=10)
