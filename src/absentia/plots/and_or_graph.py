"""Interactions as an And-Or graph: players at the bottom, interactions as AND nodes above them, the value on top.

An interaction is triggered where all of its players are present, and the value adds up the triggered ones
[ren2023faithful, Fig. 2].
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from absentia.plots.explained import Explained, check_explanation
from absentia.plots.interaction_lists import interactions_of
from absentia.plots.look import NEUTRAL, check_count, colour_of, new_figure, plain, shorten, signed
from absentia.plots.player_labels import player_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PLAYERS, _NODES, _VALUE = 0.0, 1.0, 2.0  # the heights of the three layers
_WIDEST_EDGE, _LARGEST_NODE = 4.0, 420.0
_SWEEPS, _BEGINNINGS = 6, 30  # of sorting both layers by where their neighbours are


@dataclass(frozen=True)
class AndNode:
    """One interaction in the graph: its players' numbers and its effect."""

    players: tuple[int, ...]
    effect: float


def and_or_graph(explanation: Explained, sample: int = 0, *, strongest: int = 10) -> Figure:
    """Draw the strongest salient interactions of a sample as AND nodes between the players and the value.

    The size of a node and the width of its edges tell |effect|; orange nodes and solid edges add to the value, blue
    ones with dashed edges take from it. Players are ordered so that edges cross little.

    >>> import torch
    >>> import absentia as ab
    >>> explanation = ab.explain(lambda rows: rows.prod(1), torch.tensor([[3.0, 4.0]]), absence=ab.Baseline(1.0))
    >>> figure = ab.plots.and_or_graph(explanation)
    >>> [text.get_text() for text in figure.axes[0].texts][:3]
    ['+2', '+6', '+3']
    """
    check_explanation(explanation, sample)
    check_count("strongest", strongest)
    nodes = salient_nodes(explanation, sample, strongest)
    players, ordered = arrange(nodes, len(explanation.names))
    width = max(6.0, 0.72 * max(len(players), len(ordered)) + 1.5)
    figure = new_figure(columns=1, width=width, height=6.4)
    axes = figure.axes[0]
    axes.axis("off")
    across = max(len(players), len(ordered), 2)
    place_of = {player: _place(number, len(players), across) for number, player in enumerate(players)}
    for number, node in enumerate(ordered):
        _draw_node(axes, node, _place(number, len(ordered), across), place_of, across, nodes)
    _draw_players(axes, [player_labels(explanation, sample)[player] for player in players], list(place_of.values()))
    base, output = float(explanation.base_values[sample]), float(explanation.outputs[sample])
    _draw_value(axes, (across - 1) / 2, output)
    axes.set_xlim(-0.8, across - 0.2)
    axes.set_ylim(_PLAYERS - 0.1, _VALUE + 0.25)
    axes.set_title(_describe(explanation, sample, nodes, base, output), fontsize=9)
    return figure


def salient_nodes(explanation: Explained, sample: int, strongest: int) -> list[AndNode]:
    """List the strongest of the salient interactions: measurable, and above 5 % of the largest."""
    interactions = interactions_of(explanation)
    count = min(strongest, int(interactions.salient()[sample, 1:].sum()))
    effects = interactions.effects[sample]
    numbers = (effects[1:].abs().topk(count).indices + 1).tolist()
    members = [tuple(i for i in range(len(explanation.names)) if number >> i & 1) for number in numbers]
    return [AndNode(found, float(effects[number])) for found, number in zip(members, numbers, strict=True)]


def arrange(nodes: list[AndNode], players: int) -> tuple[list[int], list[AndNode]]:
    """Order players and nodes from left to right so that edges cross little.

    Players that take part in no node are left out; without any node, all are kept.

    >>> arrange([AndNode((0, 2), 1.0), AndNode((1,), 1.0)], players=4)[0]
    [0, 2, 1]
    """
    if not nodes:
        return list(range(players)), []
    order = sorted({player for node in nodes for player in node.players})
    shuffle = random.Random(0).sample
    # Sorting ends where it began too often; the best of several beginnings is good enough.
    orders = [order, *(shuffle(order, len(order)) for _ in range(_BEGINNINGS))]
    return min((_sort(begin, nodes) for begin in orders), key=lambda found: _count_crossings(*found))


def _sort(order: list[int], nodes: list[AndNode]) -> tuple[list[int], list[AndNode]]:
    """Move nodes and players in turn to the middle of their neighbours."""
    for _ in range(_SWEEPS):
        place = {player: number for number, player in enumerate(order)}
        nodes = sorted(nodes, key=lambda node: sum(place[player] for player in node.players) / len(node.players))
        above = {player: [k for k, node in enumerate(nodes) if player in node.players] for player in order}
        order = sorted(order, key=lambda player: sum(above[player]) / len(above[player]))
    return order, nodes


def _count_crossings(order: list[int], nodes: list[AndNode]) -> int:
    place = {player: number for number, player in enumerate(order)}
    edges = [(number, place[player]) for number, node in enumerate(nodes) for player in node.players]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(edges, 2))


def _place(number: int, count: int, across: int) -> float:
    """Spread a layer of so many evenly over the width."""
    return (number + 0.5) * across / count - 0.5


def _draw_node(
    axes: Axes, node: AndNode, x: float, place_of: dict[int, float], across: int, nodes: list[AndNode]
) -> None:
    share = abs(node.effect) / max(abs(other.effect) for other in nodes)
    y = _NODES
    colour, style = colour_of(node.effect), "-" if node.effect >= 0 else (0, (4, 2))
    edge: dict[str, Any] = {
        "color": colour,
        "linestyle": style,
        "linewidth": 0.5 + (_WIDEST_EDGE - 0.5) * share,
        "alpha": 0.75,
    }
    for player in node.players:
        axes.plot([place_of[player], x], [_PLAYERS, y], zorder=1, **edge)
    axes.plot([x, (across - 1) / 2], [y, _VALUE], zorder=1, **edge)
    hatch = "" if node.effect >= 0 else "////"
    size = 60 + (_LARGEST_NODE - 60) * share
    axes.scatter([x], [y], s=size, color=colour, edgecolor="white", hatch=hatch, linewidth=0.8, zorder=2)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
    beside: dict[str, Any] = {"xytext": (0, 4 + size**0.5 / 2), "textcoords": "offset points", "bbox": box}
    axes.annotate(signed(node.effect), (x, y), ha="center", va="bottom", fontsize=8, zorder=3, **beside)


def _draw_players(axes: Axes, labels: list[str], places: list[float]) -> None:
    axes.scatter(places, [_PLAYERS] * len(places), s=70, color="white", edgecolor=NEUTRAL, zorder=2)
    # Long names or many of them are set upright, which takes no width.
    slanted = len(labels) > 8 or max(len(label) for label in labels) > 10
    turned: dict[str, Any] = (
        {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {"ha": "center"}
    )
    for label, x in zip(labels, places, strict=True):
        axes.annotate(
            plain(label), (x, _PLAYERS), xytext=(0, -9), textcoords="offset points", va="top", fontsize=8, **turned
        )


def _draw_value(axes: Axes, x: float, output: float) -> None:
    axes.scatter([x], [_VALUE], s=160, marker="s", color="black", zorder=2)
    text = f"value {output:.4g}".replace("-", "−")
    axes.annotate(text, (x, _VALUE), xytext=(0, 9), textcoords="offset points", ha="center", fontsize=9)


def _describe(explanation: Explained, sample: int, nodes: list[AndNode], base: float, output: float) -> str:
    total = interactions_of(explanation).effects.shape[1] - 1
    readout = plain(shorten(explanation.record.readout, 70))
    if not nodes:
        return f"{readout}\nnone of {total:,} interactions stands out from rounding errors"
    added = sum(node.effect for node in nodes)
    part = len({player for node in nodes for player in node.players})
    return (
        f"{readout}\n{signed(output - base)} from all absent to all present;\n"
        f"the {len(nodes)} strongest of {total:,} interactions add {signed(added)}, "
        f"with {part} of {len(explanation.names)} players"
    )
