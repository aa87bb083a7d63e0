"""Heat maps over images: the attribution of each pixel's player, beside the image and what stands in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float, Int
from torch import Tensor

from absentia.errors import wrong
from absentia.plots.explained import Explained, check_explanation
from absentia.plots.look import LOWERS, RAISES, new_figure, plain, signed
from absentia.plots.pixels import clear, draw_image, is_image, owners, spread, value_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Up to so many players have their values written on them; up to so many more, their signs.
_MOST_NUMBERS, _MOST_SIGNS = 25, 100


def image_heat_map(explanation: Explained, sample: int = 0) -> Figure:
    """Draw the image, its attribution spread over the pixels, and what stands in when all players are absent.

    >>> import torch
    >>> import absentia as ab
    >>> players = ab.Players.grid((1, 4, 4), cells=(2, 2))
    >>> images = torch.rand(1, 1, 4, 4)
    >>> explanation = ab.explain(lambda rows: rows.sum((1, 2, 3)), images, players=players, absence=ab.Baseline(0.0))
    >>> [axes.get_title() for axes in ab.plots.image_heat_map(explanation).axes[:3]]
    ['sample 0', 'Shapley values', 'all players absent']
    """
    check_explanation(explanation, sample)
    labels, stand_ins = explanation.players.labels, explanation.stand_ins
    if not is_image(labels):
        must = "hold images, of shape (1 or 3 channels, height, width), whose players are areas"
        raise wrong("explanation", must, f"samples of shape {tuple(labels.shape)}", "Draw plots.waterfall instead.")
    figure = new_figure(columns=2 if stand_ins is None else 3, width=4.4, height=4.6)
    image = explanation.x[sample].double()
    within = value_range(image) if stand_ins is None else value_range(image, stand_ins[sample].double())
    whose = "" if explanation.y is None else f", class {int(explanation.y[sample])}"
    draw_image(figure.axes[0], image, within, f"sample {sample}{whose}")
    draw_heat_map(figure.axes[1], explanation.shapley.values[sample], labels, explanation.shapley.kind)
    if stand_ins is not None:
        draw_image(figure.axes[2], stand_ins[sample], within, "all players absent")
    base, output = (f"{float(v[sample]):.4g}" for v in (explanation.base_values, explanation.outputs))
    figure.suptitle(
        plain(f"{explanation.record.readout}: {base} with all players absent, {output} with all present").replace(
            " -", " −"
        ),
        fontsize=10,
    )
    return figure


def draw_heat_map(
    axes: Axes, values: Float[Tensor, " players"], labels: Int[Tensor, " *entries"], title: str
) -> None:
    """Colour every pixel by the value of its player, orange above 0 and blue below; signs are written for grey."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("adds or takes", [LOWERS, "white", RAISES])
    always_present = "#D9D9D9"
    largest = max(float(values.abs().max()), 1e-12)
    drawn = axes.imshow(
        spread(values, labels).numpy(),
        cmap=colours.with_extremes(bad=always_present),
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
    )
    clear(axes, title)
    whose = owners(labels)
    if len(values) <= _MOST_SIGNS:
        _write_on_players(axes, values, whose, numbers=len(values) <= _MOST_NUMBERS)
    bar = axes.figure.colorbar(drawn, ax=axes, shrink=0.7, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)


def _write_on_players(axes: Axes, values: Tensor, whose: Tensor, *, numbers: bool) -> None:
    """Write each player's value, or its sign where it is large enough to be seen, on the middle of its pixels."""
    largest = float(values.abs().max())
    for player, value in enumerate(values.tolist()):
        own = (whose == player).nonzero().double()
        if len(own) == 0 or abs(value) < 0.05 * largest:
            continue
        # The pixel nearest to the middle: that of a ring would lie outside of it.
        row, column = own[(own - own.mean(0)).square().sum(1).argmin()].tolist()
        middle = own.mean(0).tolist()
        if int(whose[round(middle[0]), round(middle[1])]) == player:
            row, column = middle
        dark = value < 0 and abs(value) > 0.6 * largest
        text = signed(value) if numbers else ("+" if value > 0 else "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
