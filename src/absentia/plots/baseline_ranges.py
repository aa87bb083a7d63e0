"""Learned baselines beside the data's distribution, entry by entry; as images where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from absentia.errors import wrong
from absentia.plots.explained import Learned
from absentia.plots.look import NEUTRAL, check_count, look_of, new_figure, plain, rows_height, shorten
from absentia.plots.pixels import draw_image, is_image, value_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The places of the quantiles, least to largest.
_LEAST, _LOW, _LOWER_QUARTER, _MEDIAN, _UPPER_QUARTER, _HIGH, _LARGEST = range(7)
_MOST_ENTRIES, _MOST_OWNERS = 40, 6


def baselines(learned: Learned, *, most: int = _MOST_ENTRIES) -> Figure:
    """Draw learned values beside the data's distribution: range, 5 to 95 %, the middle half, the median.

    Every entry has its own scale, the range of its data; the values themselves are written beside it. Baselines that
    are images are drawn as such, beside the median and the range of the data.

    >>> import torch
    >>> import absentia as ab
    >>> x = torch.rand(8, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> learned = ab.learn_baseline(lambda rows: (rows - 0.25).prod(1), x, steps=1, evaluations=256)
    >>> [label.get_text() for label in ab.plots.baselines(learned).axes[0].get_yticklabels()]
    ['x0', 'x1', 'x2']
    """
    if not isinstance(learned, Learned):
        raise wrong("learned", "be a LearnedBaseline, which learn_baseline makes", type(learned).__name__)
    check_count("most", most)
    if learned.labels is not None and is_image(learned.labels):
        return _baseline_images(learned)
    values = learned.values.detach().double()
    own = values.reshape(1, -1) if learned.share == "all" else values.flatten(1)
    entries = min(most, own.shape[1])
    figure = new_figure(columns=1, width=7.2, height=rows_height(entries))
    axes = figure.axes[0]
    quantiles = None if learned.quantiles is None else learned.quantiles.flatten(1)[:, :entries]
    names = _entry_names(learned, own.shape[1])[:entries]
    if quantiles is None:
        low, high = own.min(0).values[:entries], own.max(0).values[:entries]
    else:
        low, high = quantiles[_LEAST], quantiles[_LARGEST]
        _draw_distribution(axes, (quantiles - low) / _width(low, high))
    _draw_values(axes, learned, (own[:, :entries] - low) / _width(low, high), own[:, :entries])
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, -0.04), max(right, 1.04))
    axes.set_yticks(range(entries), [plain(shorten(name)) for name in names], fontsize=8)
    axes.set_ylim(entries - 0.4, -0.6)
    axes.set_xlabel(
        "the entry's place in the data's range: line 0 to 100 %, bar 5 to 95 %, box the middle half", fontsize=8
    )
    axes.set_xticks([0, 0.5, 1], ["least", "middle", "largest"], fontsize=8)
    shown = "" if entries == own.shape[1] else f", {entries} of {own.shape[1]} entries"
    axes.set_title(f"learned baseline beside the data{shown}", fontsize=11)
    axes.legend(
        fontsize=8,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.02 - 0.9 / rows_height(entries)),
        ncols=4,
    )
    return figure


def _width(low: Tensor, high: Tensor) -> Tensor:
    """Tell how wide ranges are; a constant has none, and is drawn at its least."""
    return torch.where(high > low, high - low, 1.0)


def _draw_distribution(axes: Axes, places: Tensor) -> None:
    rows = list(range(places.shape[1]))
    axes.hlines(rows, places[_LEAST], places[_LARGEST], color="#999999", linewidth=0.8)
    axes.barh(rows, places[_HIGH] - places[_LOW], left=places[_LOW], height=0.22, color="#DDDDDD")
    middle = places[_UPPER_QUARTER] - places[_LOWER_QUARTER]
    axes.barh(rows, middle, left=places[_LOWER_QUARTER], height=0.56, color="#BBBBBB")
    axes.plot(
        places[_MEDIAN], rows, linestyle="none", marker="|", color="black", markersize=12, label="median of the data"
    )


def _draw_values(axes: Axes, learned: Learned, places: Tensor, values: Tensor) -> None:
    """Mark the values: a look for each class, one look for all samples; write those of a single baseline out."""
    rows = list(range(places.shape[1]))
    if learned.share == "sample" or len(places) > _MOST_OWNERS:
        for row in places:
            axes.plot(row, rows, linestyle="none", marker="o", color=look_of(0)[0], alpha=0.3, markersize=4)
        axes.plot([], [], linestyle="none", marker="o", color=look_of(0)[0], label=f"learned, each {learned.share}")
        return
    for number, row in enumerate(places):
        colour, marker = look_of(number)
        label = "learned" if learned.classes is None else f"learned, class {int(learned.classes[number])}"
        axes.plot(row, rows, linestyle="none", marker=marker, color=colour, markersize=7, label=label)
    if len(places) == 1:
        names = _entry_players(learned, values.shape[1])
        for row, value in enumerate(values[0].tolist()):
            note = " (undetermined)" if names[row] in learned.record.undetermined else ""
            text = f"{value:.4g}{note}".replace("-", "−")
            axes.annotate(text, (1, row), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=NEUTRAL)


def _entry_players(learned: Learned, entries: int) -> list[str]:
    if learned.labels is None:
        return list(learned.names) if len(learned.names) == entries else [""] * entries
    named = [*learned.names, "always present"]  # which label −1 indexes
    return [named[label] for label in learned.labels.flatten().tolist()]


def _entry_names(learned: Learned, entries: int) -> list[str]:
    """Name entries by their players, with the entry's number where a player has several."""
    players = _entry_players(learned, entries)
    return [name if name and players.count(name) == 1 else f"{name} [{entry}]" for entry, name in enumerate(players)]


def _baseline_images(learned: Learned) -> Figure:
    values = learned.values.detach().double()
    own = values[None] if learned.share == "all" else values
    shown = own[:10]
    if learned.share == "class" and learned.classes is not None:
        titles = [f"class {int(number)}" for number in learned.classes[:10]]
    else:
        titles = ["learned baseline"] if learned.share == "all" else [f"sample {k}" for k in range(len(shown))]
    panels = dict(zip(titles, shown, strict=True))
    if learned.quantiles is not None:
        panels |= {
            "median of the data": learned.quantiles[_MEDIAN],
            "5 % of the data": learned.quantiles[_LOW],
            "95 % of the data": learned.quantiles[_HIGH],
        }
    within = value_range(*panels.values())
    figure = new_figure(columns=len(panels), width=2.7, height=3.2)
    for axes, (title, image) in zip(figure.axes, panels.items(), strict=True):
        draw_image(axes, image, within, title)
    return figure
