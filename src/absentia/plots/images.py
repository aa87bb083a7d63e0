"""Plots of images: attributions spread over pixels, beside the image and its stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.errors import wrong
from absentia.plots.drawable import check_explanation, ends, sample_name
from absentia.plots.look import LOWERS, RAISES, label, new_figure
from absentia.results import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from absentia.explanation import Explanation

# Up to this many players, their values are written on them; up to this many, their signs.
_MOST_NUMBERS, _MOST_SIGNS = 25, 100


def image_heat_map(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw an image, its attribution spread over the pixels, and its stand-in when all players are absent.

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
    labels, shapley = explanation.players.labels, explanation.shapley
    if not explanation.players.is_image:
        must = "hold images, of shape (1 or 3 channels, height, width), whose players are areas"
        raise wrong("explanation", must, f"samples of shape {tuple(labels.shape)}", "Draw plots.waterfall instead.")
    images = {f"sample {label(sample_name(explanation, sample))}": explanation.x[sample].double()}
    if explanation.stand_ins is not None:
        images["all players absent"] = explanation.stand_ins[sample].double()
    base, output = ends(explanation, sample)
    title = f"{explanation.record.readout}: {base} with all players absent, {output} with all present"
    figure = new_figure(1 + len(images), width=4.4, height=4.6, title=title)
    first, middle, *last = figure.axes
    draw_images([first, *last], images)
    draw_heat_map(middle, shapley.values[sample], labels, shapley.kind)
    return figure


def draw_images(panels: Sequence[Axes], images: dict[str, Shaped[Tensor, " *entries"]]) -> None:
    """Draw titled images on one scale: 0 to 1 if all values lie there, otherwise from the least to the largest."""
    low = min(float(image.min()) for image in images.values())
    high = max(float(image.max()) for image in images.values())
    low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    for axes, (title, image) in zip(panels, images.items(), strict=True):
        scaled = ((image.detach().cpu().double() - low) / max(high - low, 1e-12)).clamp(0, 1)
        pixels = scaled[None].flatten(0, -3).permute(1, 2, 0).squeeze(-1)  # (height, width) or (height, width, 3)
        axes.imshow(pixels.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        _frame(axes, title)


def _frame(axes: Axes, title: str) -> None:
    """Replace ticks by a frame, and write the title."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#999999")
    axes.set_title(title, fontsize=10)


def draw_heat_map(
    axes: Axes, values: Float[Tensor, " players"], labels: Int[Tensor, " *entries"], title: str
) -> None:
    """Colour every pixel by the value of its player: orange above 0, blue below, grey where always present."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("adds or takes", [LOWERS, "white", RAISES])
    largest = max(float(values.abs().max()), 1e-12)
    owners = labels if labels.ndim == 2 else labels[0]
    spread = torch.cat([values.double(), values.new_full((1,), torch.nan).double()])[owners]  # label −1 is the last
    style: dict[str, Any] = {"cmap": colours.with_extremes(bad="#D9D9D9"), "interpolation": "nearest"}
    drawn = axes.imshow(spread.numpy(), vmin=-largest, vmax=largest, **style)
    _frame(axes, title)
    if len(values) <= _MOST_SIGNS:
        _write_on_players(axes, values, owners)
    bar = axes.figure.colorbar(drawn, ax=axes, shrink=0.7, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)


def _write_on_players(axes: Axes, values: Tensor, owners: Tensor) -> None:
    """Write the value or the sign of each player in the middle of its pixels, unless it is close to 0."""
    largest = float(values.abs().max())
    for player, value in enumerate(values.tolist()):
        pixels = (owners == player).nonzero().double()
        if len(pixels) == 0 or abs(value) < 0.05 * largest:
            continue
        row, column = pixels.mean(0).tolist()
        if int(owners[round(row), round(column)]) != player:  # as in the middle of a ring: take the nearest pixel
            row, column = pixels[(pixels - pixels.mean(0)).square().sum(1).argmin()].tolist()
        dark = value < 0 and abs(value) > 0.6 * largest
        text = written(value, plus=True) if len(values) <= _MOST_NUMBERS else ("+" if value > 0 else "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
