"""Plots of attributions: bars, steps, tokens or pixels of a sample, overviews of it, and dots of many samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.attributions import Attribution
from absentia.errors import Axes, Figure, require, wrong
from absentia.plots.drawable import check_explanation, ends, in_short, largest, largest_and_others, player_labels
from absentia.plots.interaction_plots import draw_order_profile, draw_strongest
from absentia.plots.look import LOWERS, NEUTRAL, RAISES, colour_of, draw_bar, draw_bars, label, new_figure
from absentia.text import written

if TYPE_CHECKING:
    from absentia.explanation import Explanation

_MOST_ROWS = 16
_LETTERS = 84.0  # the width of a line of text
# Up to this many players of an image, their values are written on them; up to this many, their signs.
_MOST_NUMBERS, _MOST_SIGNS = 25, 100
_BINS, _ROOM = 60, 0.8  # columns that dots are stacked in, and the height of a row that they may fill
_WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": NEUTRAL, "elinewidth": 0.7, "alpha": 0.5, "zorder": 1}


def bars(explanation: Explanation, sample: int | None = 0, *, most: int = 20) -> Figure:
    """Draw a bar for each of the players with the largest attributions, with two standard errors.

    Parameters
    ----------
    explanation : Explanation
    sample : int, optional
        Number of the sample; None draws the mean |attribution| over all samples, with its error over them.
    most : int
        How many players to draw.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [float(bar.get_width()) for bar in ab.plots.bars(explanation).axes[0].patches]
    [3.0, 2.0]
    """
    check_explanation(explanation, sample or 0, most=most)
    found, samples = explanation.shapley, explanation.samples
    values, errors, title, note = found.values[sample or 0], found.errors[sample or 0], found.kind, ""
    if sample is None:  # means of |value| have no sign
        strength = found.values.abs()
        title, values = f"mean |{found.kind.removesuffix('s')}| of {samples:,} samples", strength.mean(0)
        if samples > 1:
            errors, note = strength.std(0) / samples**0.5, "± 2 standard errors over samples"
    shown = largest(values, most)
    figure = new_figure(1, width=6.4, rows=len(shown), title=f"value: {in_short(explanation, sample)}")
    axes = figure.axes[0]
    draw_bars(axes, [(label(found.names[i]), float(values[i]), float(errors[i]), False) for i in shown])
    axes.set_title(title + (f": {len(shown)} of {len(values)} players" if len(shown) < len(values) else ""))
    if sample is None:
        axes.set_xlabel(note)
        for bar in axes.patches:
            bar.set_color(NEUTRAL)
    return figure


def waterfall(explanation: Explanation, sample: int = 0, *, most: int = _MOST_ROWS) -> Figure:
    """Draw the steps from the value with all players absent to the value with all present, one for each player.

    Parameters
    ----------
    explanation : Explanation
    sample, most : int
        Number of the sample, and of steps, the largest first; the last step adds up all other players.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [(float(bar.get_x()), float(bar.get_width())) for bar in ab.plots.waterfall(explanation).axes[0].patches]
    [(1.0, 3.0), (4.0, 2.0)]
    """
    check_explanation(explanation, sample, most=most)
    figure = new_figure(1, width=7.2, rows=min(most, len(explanation.players)) + 2)
    draw_waterfall(figure.axes[0], explanation, sample, most=most)
    return figure


def draw_waterfall(axes: Axes, explanation: Explanation, sample: int = 0, *, most: int = _MOST_ROWS) -> None:
    """Draw the steps of `waterfall` on given axes."""
    labels, attribution = player_labels(explanation, sample), explanation.shapley
    shown, others = largest_and_others(attribution.values[sample], most - 1)
    values, errors = (part[sample, shown].tolist() for part in (attribution.values, attribution.errors.nan_to_num()))
    texts = dict(attribution.ranked(sample))
    rows = [(labels[player], texts[player].split(" ± ")[0]) for player in shown]
    if others:
        # Estimates of several players depend on each other, so the error of their sum is unknown and not drawn.
        values, errors = [*values, float(attribution.values[sample, others].sum())], [*errors, 0.0]
        rows.append((f"{len(others)} others", written(values[-1], 4, plus=True)))
    names, beside = zip(*rows, strict=True)
    base, output = float(explanation.base_values[sample]), float(explanation.outputs[sample])
    heights, last = list(accumulate(values, initial=base)), len(values) + 1
    for place, (start, value, error, text) in enumerate(zip(heights, values, errors, beside, strict=False), start=1):
        axes.bar_label(draw_bar(axes, place, value, error, start=start), [text], padding=4, fontsize=8)
    tops, bottoms = ([place + shift for place in range(1, last + 1)] for shift in (-0.65, 0.35))
    axes.vlines(heights, tops, [*bottoms[:-1], last], color=NEUTRAL, linewidth=0.7)
    axes.plot([base, output], [0, last], linestyle="none", marker="D", color="black", markersize=5)
    first, final = ends(explanation, sample)
    axes.set_yticks(range(last + 1), [f"all absent: {first}", *names, f"all present: {final}"])
    reached = [base, output, *heights]
    reached += [end + 2 * sign * error for end, error in zip(heights[1:], errors, strict=True) for sign in (-1, 1)]
    room = 0.22 * (max(reached) - min(reached)) or 1.0  # for the numbers beside the steps
    axes.set(xlim=(min(reached) - room, max(reached) + room), ylim=(last + 0.6, -0.6))
    axes.locator_params(axis="x", nbins=6)
    title = explanation.shapley.kind + ("; ± 2 standard errors" if any(errors) else "")
    axes.set(title=title, xlabel=label(f"value: {in_short(explanation, sample)}", 200))


def text_line(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw the tokens of a text in their order, coloured by their attributions, which are written below them.

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
    values, texts = explanation.shapley.values[sample], dict(explanation.shapley.ranked(sample))
    most, x, row = max(float(values.abs().max()), 1e-12), 0.0, 0
    figure = new_figure(1, width=8.4)
    axes = figure.axes[0]
    for player, (name, value) in enumerate(zip(explanation.names, values.tolist(), strict=True)):
        below = texts[player].replace(" ± ", "\n± ")
        width = max(len(label(name)), *(0.75 * len(line) for line in below.split("\n"))) + 1.2
        if x + width > _LETTERS and x > 0:
            x, row = 0.0, row + 1
        at: dict[str, Any] = {"x": x + width / 2, "ha": "center"}
        box = {"boxstyle": "round,pad=0.25", "linewidth": 0, "facecolor": (colour_of(value), 0.8 * abs(value) / most)}
        axes.text(y=row, s=label(name), va="center", fontsize=11, family="monospace", bbox=box, **at)
        axes.text(y=row + 0.28, s=below, va="top", fontsize=7, color=NEUTRAL, **at)
        x += width
    figure.set_figheight(1.0 + 0.62 * (row + 1))
    axes.set(xlim=(0, _LETTERS), ylim=(row + 0.85, -0.5))
    axes.axis("off")
    base, output = ends(explanation, sample)
    note = "orange adds, blue takes" + "; ± 1 standard error" * bool((explanation.shapley.errors > 0).any())
    change = f"{base} with all tokens absent, {output} with all present; {note}"
    axes.set_title(f"{label(in_short(explanation, sample), 90)}\n{change}", fontsize=9)
    return figure


def image_heat_map(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw an image, its attribution spread over the pixels, and its stand-in when all players are absent.

    Pixels are orange where their player adds to the value, blue where it takes, and grey where always present.

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
    labels, values = explanation.players.labels, explanation.shapley.values[sample]
    if not explanation.players.is_image:
        must = "hold images, of shape (1 or 3 channels, height, width), whose players are areas"
        raise wrong("explanation", must, f"samples of shape {tuple(labels.shape)}", "Draw plots.waterfall instead.")
    images = {label(explanation.sample_name(sample)): explanation.x[sample].double()}
    if explanation.stand_ins is not None:
        images["all players absent"] = explanation.stand_ins[sample].double()
    base, output = ends(explanation, sample)
    title = f"{in_short(explanation, sample)}: {base} with all players absent, {output} with all present"
    figure = new_figure(1 + len(images), width=4.4, height=4.6, title=title)
    first, middle, *last = figure.axes
    draw_images([first, *last], images)
    most = max(float(values.abs().max()), 1e-12)
    owners = labels if labels.ndim == 2 else labels[0]
    spread = torch.nn.functional.pad(values.double(), (0, 1), value=torch.nan)[owners]  # label −1 is the last
    colours = require("matplotlib.colors", "plot").LinearSegmentedColormap.from_list("", [LOWERS, "white", RAISES])
    style: dict[str, Any] = {"cmap": colours.with_extremes(bad="#D9D9D9"), "interpolation": "nearest"}
    drawn = middle.imshow(spread.numpy(), vmin=-most, vmax=most, **style)
    _frame(middle, explanation.shapley.kind)
    if len(values) <= _MOST_SIGNS:
        _write_on_players(middle, explanation.shapley, sample, owners)
    bar = figure.colorbar(drawn, ax=middle, shrink=0.7, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return figure


def draw_images(panels: Sequence[Axes], images: dict[str, Shaped[Tensor, " *entries"]]) -> None:
    """Draw titled images on one scale: 0 to 1 if all values lie there, otherwise from the least to the largest."""
    found = [float(end) for image in images.values() for end in image.aminmax()]
    low, high = (0.0, 1.0) if min(found) >= 0 and max(found) <= 1 else (min(found), max(found))
    for axes, (title, image) in zip(panels, images.items(), strict=True):
        scaled = ((image.detach().cpu().double() - low) / max(high - low, 1e-12)).clamp(0, 1)
        pixels = scaled[None].flatten(0, -3).permute(1, 2, 0).squeeze(-1)  # (height, width) or (height, width, 3)
        axes.imshow(pixels.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        _frame(axes, title)


def _frame(axes: Axes, title: str) -> None:
    """Replace ticks by a frame, and write the title."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color="#999999")
    axes.set_title(title, fontsize=10)


def _write_on_players(axes: Axes, attribution: Attribution, sample: int, owners: Tensor) -> None:
    """Write the value or the sign of each player in the middle of its pixels, unless it is close to 0."""
    values = attribution.values[sample]
    most = float(values.abs().max())
    for player, shown in attribution.ranked(sample):
        value = float(values[player])
        pixels = (owners == player).nonzero().double()
        if len(pixels) == 0 or abs(value) < 0.05 * most:
            continue
        row, column = pixels.mean(0).tolist()
        if int(owners[round(row), round(column)]) != player:  # as in the middle of a ring: take the nearest pixel
            row, column = pixels[(pixels - pixels.mean(0)).square().sum(1).argmin()].tolist()
        dark = value < 0 and abs(value) > 0.6 * most
        text = shown.split(" ± ")[0] if len(values) <= _MOST_NUMBERS else shown[0]
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")


def overview(explanation: Explanation, sample: int = 0) -> Figure:
    """Draw the most useful plots of a sample: a heat map of an image, else waterfall, interactions and orders.

    Parameters
    ----------
    explanation, sample : see `waterfall`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0]], absence=1.0)
    >>> [axes.get_title() for axes in ab.plots.overview(explanation).axes]
    ['Shapley values', 'strongest 3 of 3 interactions', 'strength by order']
    """
    check_explanation(explanation, sample)
    players, interactions = explanation.players, explanation.interactions
    if players.is_image:
        return image_heat_map(explanation, sample)
    if interactions is None:
        return waterfall(explanation, sample)
    title = f"{explanation.sample_name(sample)}; absent players: {label(explanation.record.absence, 80)}"
    rows = max(min(_MOST_ROWS, len(players)) + 2, 10)
    figure = new_figure(3, width=5.8, rows=rows, ratios=(5.0, 5.0, 3.5), title=title)
    draw_waterfall(figure.axes[0], explanation, sample)
    draw_strongest(figure.axes[1], interactions, sample, _MOST_ROWS)
    draw_order_profile(figure.axes[2], interactions, sample)
    return figure


def beeswarm(explanation: Explanation, *, most: int = 12) -> Figure:
    """Draw a dot for each sample and player: its attribution, coloured by the player's input, from least to largest.

    Players are ranked by mean |attribution|. Those of several entries are grey. Sampled values
    have two standard errors.

    Parameters
    ----------
    explanation, most : see `bars`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0], [1.0, 5.0]], absence=1.0)
    >>> [dots.get_offsets()[:, 0].tolist() for dots in ab.plots.beeswarm(explanation).axes[0].collections]
    [[3.0, 4.0], [2.0, 0.0]]
    """
    check_explanation(explanation, 0, most=most)
    values, errors = explanation.shapley.values, explanation.shapley.errors
    shown = largest(values.abs().mean(0), most)
    inputs = explanation.players.entry_values(explanation.x)
    figure = new_figure(1, width=7.2, rows=int(1.6 * len(shown)) + 2, title=f"value: {in_short(explanation)}")
    axes = figure.axes[0]
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    colours: Any = require("matplotlib", "plot").colormaps["viridis"].with_extremes(bad="#999999")
    for place, player in enumerate(shown):
        heights = place + _stack(values[:, player], values[:, shown])
        if bool((errors > 0).any()):
            axes.errorbar(values[:, player], heights, xerr=2 * errors[:, player], **_WHISKER)
        # The middle 90 % of the inputs lie between 0 and 1; NaN stays.
        low, high = inputs[:, player].quantile(torch.tensor([0.05, 0.95]).to(inputs))
        shares = ((inputs[:, player] - low) / torch.where(high > low, high - low, 1.0)).clamp(0, 1)
        style: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": 1, "s": 16, "plotnonfinite": True}
        dots = axes.scatter(values[:, player], heights, c=shares, **style)
    bar = figure.colorbar(dots, ax=axes, ticks=[0, 1], shrink=0.8, aspect=40)
    bar.ax.set_yticklabels(["low", "high"], fontsize=8)
    bar.set_label("input (grey: of several entries)" if inputs[:, shown].isnan().any() else "input", fontsize=8)
    axes.set_yticks(range(len(shown)), [label(explanation.names[player]) for player in shown])
    axes.set_ylim(max(len(shown), 4) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=6)
    some = f": {len(shown)} of {len(explanation.names)} players" if len(shown) < len(explanation.names) else ""
    axes.set_title(f"{explanation.shapley.kind} of {explanation.samples:,} samples{some}")
    axes.set_xlabel("takes from the value ◂ ▸ adds to it" + "; ± 2 standard errors" * bool((errors > 0).any()))
    return figure


def _stack(values: Float[Tensor, " samples"], drawn: Float[Tensor, "samples players"]) -> Float[Tensor, " samples"]:
    """Return heights at which dots of close values lie beside each other, above and below the middle in turn."""
    low, high = drawn.aminmax()
    columns = ((values - low) / (high - low).clamp_min(1e-12) * _BINS).long()
    ranks = torch.stack([(columns[:number] == column).sum() for number, column in enumerate(columns)])
    return min(0.09, _ROOM / (1 + int(ranks.max()))) * ((ranks + 1) // 2) * torch.where(ranks % 2 == 0, 1, -1)


def scatter(explanation: Explanation, player: int | str | None = None) -> Figure:
    """Draw the attribution of one player over its input, a dot for each sample, with two standard errors if sampled.

    A dotted line marks the stand-in, where all samples share it.

    Parameters
    ----------
    explanation : Explanation
    player : int or str, optional
        Name or number of a player of one entry; by default the one with the largest mean |attribution|.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[2.0, 3.0], [1.0, 5.0]], absence=1.0)
    >>> ab.plots.scatter(explanation, "x0").axes[0].collections[0].get_offsets().tolist()
    [[2.0, 2.0], [1.0, 0.0]]
    """
    check_explanation(explanation, 0)
    names, values = explanation.names, explanation.shapley.values
    alone = torch.where(explanation.players.sizes == 1, values.abs().mean(0), -1.0)  # those of one entry
    (name,) = explanation.players.only([int(alone.argmax()) if player is None else player], "player").names
    number = names.index(name)
    if alone[number] < 0:
        raise wrong("player", "have one entry, whose values can be drawn", f"{name}, which has several")
    x, y = explanation.players.entry_values(explanation.x)[:, number], values[:, number]
    figure = new_figure(1, width=6.0, height=4.4, title=f"value: {in_short(explanation)}")
    axes = figure.axes[0]
    colours = [colour_of(value) for value in y.tolist()]
    axes.scatter(x, y, s=20, color=colours, edgecolor="white", linewidth=0.3, zorder=2)
    if bool((explanation.shapley.errors > 0).any()):
        axes.errorbar(x, y, yerr=2 * explanation.shapley.errors[:, number], **_WHISKER)
    axes.axhline(0, color=NEUTRAL, linewidth=0.8)
    if explanation.stand_ins is not None:
        absent = explanation.players.entry_values(explanation.stand_ins)[:, number]
        if bool((absent == absent[0]).all()):
            text = f"absent: {written(float(absent[0]), 4)}"
            axes.axvline(float(absent[0]), color=NEUTRAL, linestyle=":", label=text)
            axes.legend(fontsize=8, frameon=False)
    axes.set(title=f"{explanation.shapley.kind} of {label(names[number])}", xlabel=f"input {label(names[number])}")
    axes.set_ylabel("takes from the value ◂ ▸ adds to it")
    return figure
