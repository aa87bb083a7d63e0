"""Interactions as an And-Or graph: players below, interactions as AND nodes above them, and the value on top.

An interaction is active where all of its players are present. The value is the sum of the active ones
[ren2023faithful, Fig. 2].
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from absentia.coalitions import coalition_members
from absentia.plots.drawable import check_explanation, interactions_of, player_labels
from absentia.plots.look import NEUTRAL, colour_of, label, new_figure
from absentia.results import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from absentia.explanation import Explanation

_PLAYERS, _NODES, _VALUE = 0.0, 1.0, 2.0  # heights of the three layers
_WIDEST_EDGE, _SMALLEST_NODE, _LARGEST_NODE = 4.0, 60.0, 420.0
_SWEEPS, _STARTS = 6, 30  # of the search for an order with few crossings


class AndNode(NamedTuple):
    """One interaction of the graph: the numbers of its players, and its effect."""

    players: tuple[int, ...]
    effect: float


def and_or_graph(explanation: Explanation, sample: int = 0, *, strongest: int = 10) -> Figure:
    """Draw the strongest salient interactions of a sample as AND nodes between the players and the value.

    The size of a node and the width of its edges show |effect|. Orange nodes and solid edges add to the value; blue
    nodes and dashed edges take from it. Players are ordered such that few edges cross.

    Parameters
    ----------
    explanation, sample, strongest : see `interaction_list`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [text.get_text() for text in ab.plots.and_or_graph(explanation).axes[0].texts][:3]
    ['+2', '+6', '+3']
    """
    check_explanation(explanation, sample, strongest=strongest)
    nodes = salient_nodes(explanation, sample, strongest)
    players, ordered = arrange(nodes, len(explanation.players))
    across = max(len(players), len(ordered), 2)
    figure = new_figure(1, width=max(6.0, 0.72 * across + 1.5), height=6.4)
    axes = figure.axes[0]
    axes.axis("off")
    place_of = dict(zip(players, _places(len(players), across), strict=True))
    labels = player_labels(explanation, sample)
    largest_effect = max((abs(node.effect) for node in nodes), default=0.0)
    for node, place in zip(ordered, _places(len(ordered), across), strict=True):
        ends = [(place_of[player], _PLAYERS) for player in node.players] + [((across - 1) / 2, _VALUE)]
        _draw_node(axes, node.effect, place, ends, abs(node.effect) / largest_effect)
    axes.scatter([*place_of.values()], [_PLAYERS] * len(players), s=70, color="white", edgecolor=NEUTRAL, zorder=2)
    slanted = len(players) > 8 or max(len(labels[player]) for player in players) > 10
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {"ha": "center"}
    for player, place in place_of.items():
        _write(axes, labels[player], (place, _PLAYERS), -9, va="top", fontsize=8, **turned)
    axes.scatter([(across - 1) / 2], [_VALUE], s=160, marker="s", color="black", zorder=2)
    text = f"value {written(float(explanation.outputs[sample]), 4)}"
    _write(axes, text, ((across - 1) / 2, _VALUE), 9, ha="center", fontsize=9)
    axes.set_xlim(-0.8, across - 0.2)
    axes.set_ylim(_PLAYERS - 0.1, _VALUE + 0.25)
    axes.set_title(_title(explanation, sample, nodes), fontsize=9)
    return figure


def network(explanation: Explanation, sample: int = 0, *, strongest: int = 20) -> Figure:
    """Draw players on a circle and the strongest salient interactions between them.

    A player's own effect is its dot, that of a pair a line, and that of more players an area. Their size, width and
    depth of colour show |effect|. Orange and solid adds to the value; blue and dashed takes from it.

    Parameters
    ----------
    explanation, sample, strongest : see `interaction_list`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [line.get_linewidth() for line in ab.plots.network(explanation).axes[0].lines]
    [6.0]
    """
    check_explanation(explanation, sample, strongest=strongest)
    nodes = salient_nodes(explanation, sample, strongest)
    players = sorted({player for node in nodes for player in node.players}) or [*range(len(explanation.players))]
    turns = [2 * math.pi * number / len(players) for number in range(len(players))]
    place = {player: (math.sin(turn), math.cos(turn)) for player, turn in zip(players, turns, strict=True)}
    labels = player_labels(explanation, sample)
    width = 5.6 + 0.17 * max(len(labels[player]) for player in players)
    figure = new_figure(1, width=width, height=6.4)
    axes = figure.axes[0]
    axes.axis("off")
    axes.set(xlim=(-0.22 * width, 0.22 * width), ylim=(-1.3, 1.3), aspect="equal")
    axes.set_title(_title(explanation, sample, nodes), fontsize=9)
    for node in reversed(nodes):  # the strongest on top
        share, x, y = abs(node.effect / nodes[0].effect), *zip(*(place[i] for i in node.players), strict=True)
        dashes: Any = "-" if node.effect >= 0 else (0, (4, 2))
        style: dict[str, Any] = {"color": colour_of(node.effect), "linestyle": dashes}
        if len(x) == 1:
            axes.scatter(x, y, s=_SMALLEST_NODE + _LARGEST_NODE * share, color=style["color"], zorder=4)
        elif len(x) == 2:
            axes.plot(x, y, linewidth=0.5 + 5.5 * share, zorder=2, **style)
        else:
            axes.fill(x, y, alpha=0.08 + 0.3 * share, linewidth=1, zorder=1, **style)
    for player, (right, up) in place.items():
        axes.scatter([right], [up], s=_SMALLEST_NODE, color="white", edgecolor=NEUTRAL, zorder=3)
        side = "center" if abs(right) < 0.2 else "left" if right > 0 else "right"
        axes.text(1.14 * right, 1.14 * up, labels[player], ha=side, va="center", fontsize=8)
    return figure


def salient_nodes(explanation: Explanation, sample: int, strongest: int) -> list[AndNode]:
    """Return the strongest of the salient interactions: measurable, and above 5 % of the largest."""
    interactions = interactions_of(explanation)
    count = min(strongest, int(interactions.salient()[sample, 1:].sum()))
    effects = interactions.effects[sample]
    numbers = (effects[1:].abs().topk(count).indices + 1).tolist()
    return [AndNode(coalition_members(number), float(effects[number])) for number in numbers]


def arrange(nodes: list[AndNode], players: int) -> tuple[list[int], list[AndNode]]:
    """Order the players of nodes, or all if there are none, and the nodes such that few edges cross."""
    if not nodes:
        return list(range(players)), []
    order = sorted({player for node in nodes for player in node.players})
    shuffle = random.Random(0).sample
    # The sort often ends in a local optimum; the best of several starts is good enough.
    starts = [order, *(shuffle(order, len(order)) for _ in range(_STARTS))]
    return min((_sort(start, nodes) for start in starts), key=lambda found: _count_crossings(*found))


def _sort(order: list[int], nodes: list[AndNode]) -> tuple[list[int], list[AndNode]]:
    """Move nodes and players in turn to the mean place of their neighbours."""
    for _ in range(_SWEEPS):
        place = {player: number for number, player in enumerate(order)}
        nodes = sorted(nodes, key=lambda node: sum(place[player] for player in node.players) / len(node.players))
        above = {player: [k for k, node in enumerate(nodes) if player in node.players] for player in order}
        order = sorted(order, key=lambda player: sum(above[player]) / len(above[player]))
    return order, nodes


def _count_crossings(order: list[int], nodes: list[AndNode]) -> int:
    """Count the pairs of edges between players and nodes that cross."""
    place = {player: number for number, player in enumerate(order)}
    edges = [(number, place[player]) for number, node in enumerate(nodes) for player in node.players]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(edges, 2))


def _places(count: int, across: int) -> list[float]:
    """Spread a layer evenly over the width."""
    return [(number + 0.5) * across / count - 0.5 for number in range(count)]


def _write(axes: Axes, text: str, at: tuple[float, float], above: float, **style: Any) -> None:
    """Write a text this many points above a place."""
    axes.annotate(text, at, xytext=(0, above), textcoords="offset points", **style)


def _draw_node(axes: Axes, effect: float, x: float, ends: Sequence[tuple[float, float]], share: float) -> None:
    """Draw one node with its edges and its effect."""
    colour, adds = colour_of(effect), effect >= 0
    width = 0.5 + (_WIDEST_EDGE - 0.5) * share
    dashes: Any = "-" if adds else (0, (4, 2))
    for across, up in ends:
        axes.plot((x, across), (_NODES, up), color=colour, linestyle=dashes, linewidth=width, alpha=0.75, zorder=1)
    size = _SMALLEST_NODE + (_LARGEST_NODE - _SMALLEST_NODE) * share
    hatch = "" if adds else "////"
    axes.scatter([x], [_NODES], s=size, color=colour, edgecolor="white", hatch=hatch, linewidth=0.8, zorder=2)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
    style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 8, "bbox": box, "zorder": 3}
    _write(axes, written(effect, 4, plus=True), (x, _NODES), 4 + size**0.5 / 2, **style)


def _title(explanation: Explanation, sample: int, nodes: Sequence[AndNode]) -> str:
    """Return how much of the value the drawn interactions add up to, in words."""
    total = interactions_of(explanation).effects.shape[1] - 1
    readout = label(explanation.record.readout, 70)
    if not nodes:
        return f"{readout}\nnone of {total:,} interactions exceeds the rounding error"
    change = float(explanation.outputs[sample] - explanation.base_values[sample])
    part = len({player for node in nodes for player in node.players})
    total_effect = written(sum(node.effect for node in nodes), 4, plus=True)
    return (
        f"{readout}\n{written(change, 4, plus=True)} from all absent to all present;\n"
        f"the {len(nodes)} strongest of {total:,} interactions add {total_effect}, "
        f"with {part} of {len(explanation.players)} players"
    )
