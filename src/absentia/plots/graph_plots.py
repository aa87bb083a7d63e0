"""Plots of interactions as graphs: AND nodes between players and the value, and players on a circle."""

from __future__ import annotations

import itertools
import math
import random
import textwrap
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from absentia.arguments import checked
from absentia.errors import Axes, Figure
from absentia.plots.drawable import change_of, in_short, interactions_of, player_labels
from absentia.plots.look import NEUTRAL, colour_of, label, new_figure
from absentia.plots.strongest_sets import (
    MOST_PLAYERS,
    PlayerSet,
    count_salient,
    count_sets,
    ends_of,
    sets_with_room,
    strongest_sets,
)
from absentia.terms import Terms
from absentia.terms_in_words import WALSH, name_with_basis
from absentia.text import written

if TYPE_CHECKING:
    from absentia.explanation import Explanation

Place: TypeAlias = tuple[float, float]

# Heights of the three layers of an AND graph.
_PLAYERS = 0.0
_NODES = 1.0
_VALUE = 2.0

# Widths and sizes in points, in proportion to |effect|.
_THINNEST_EDGE = 0.5
_WIDEST_EDGE = 4.0
_WIDEST_LINE = 6.0  # for a pair in a network
_SMALLEST_NODE = 60.0
_LARGEST_NODE = 420.0

_DASHES = (0, (4, 2))  # for effects that take from the value
_BEHIND_TEXT = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}

# The search for an order with few crossings.
_SWEEPS = 6
_STARTS = 30

_LETTERS_OF_A_LINE = 90  # of the title


@checked
def and_or_graph(explanation: Explanation | Terms, sample: int = 0, *, strongest: int = 10) -> Figure:
    """Draw the strongest salient interactions of a sample as AND nodes between the players and the value.

    The size of a node and the width of its edges show |effect|. Orange nodes and solid edges add to the value; blue
    nodes and dashed edges take from it. Players are ordered so that few edges cross. An interaction is active if all
    of its players are present, and the value is the sum of the active interactions [ren2023faithful, Fig. 2]. Walsh
    terms are never inactive, but change their sign with each player; the title says so. There is room for 48 players.
    Interactions that do not fit are left out, and the title counts them.

    Parameters
    ----------
    explanation, sample, strongest : see `interaction_list`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [text.get_text() for text in ab.plots.and_or_graph(explanation).axes[0].texts][:3]
    ['+2', '+6', '+3']
    """
    nodes = salient_nodes(explanation, sample, strongest)
    players, ordered_nodes = arrange(nodes, len(explanation.names))
    across = max(len(players), len(ordered_nodes), 2)
    value_place = ((across - 1) / 2, _VALUE)
    player_places = {player: (x, _PLAYERS) for player, x in zip(players, _spread(len(players), across), strict=True)}
    figure = new_figure(1, width=max(6.0, 0.72 * across + 1.5), height=6.4)
    axes = figure.axes[0]
    axes.axis("off")
    largest_effect = max((abs(node.effect) for node in nodes), default=0.0)
    for node, x in zip(ordered_nodes, _spread(len(ordered_nodes), across), strict=True):
        neighbours = [*(player_places[player] for player in node.players), value_place]
        _draw_and_node(axes, node.effect, abs(node.effect) / largest_effect, (x, _NODES), neighbours)
    _draw_player_layer(axes, player_places, player_labels(explanation, sample))
    axes.scatter(*value_place, s=160, marker="s", color="black", zorder=2)
    _write(axes, _value_text(explanation, sample), value_place, 9, ha="center", fontsize=9)
    axes.set(xlim=(-0.8, across - 0.2), ylim=(_PLAYERS - 0.1, _VALUE + 0.25))
    axes.set_title(_title(explanation, sample, strongest, nodes), fontsize=9)
    return figure


def _value_text(result: Explanation | Terms, sample: int) -> str:
    """Return the value of a sample as shown, if known."""
    if not isinstance(result, Terms):
        return f"value {written(float(result.outputs[sample]), 4)}"
    ends = ends_of(result, sample)
    return "value" if ends is None else f"value {written(ends.output, 4)}"


def _draw_and_node(axes: Axes, effect: float, share: float, place: Place, neighbours: Sequence[Place]) -> None:
    """Draw a node with its effect and edges, sized by its share of the largest effect."""
    colour = colour_of(effect)
    edges: dict[str, Any] = {"color": colour, "linestyle": _line_style(effect), "alpha": 0.75, "zorder": 1}
    edges["linewidth"] = _THINNEST_EDGE + (_WIDEST_EDGE - _THINNEST_EDGE) * share
    for neighbour in neighbours:
        _draw_line(axes, [place, neighbour], **edges)
    size = _SMALLEST_NODE + (_LARGEST_NODE - _SMALLEST_NODE) * share
    hatch = "" if effect >= 0 else "////"
    axes.scatter(*place, s=size, color=colour, edgecolor="white", hatch=hatch, linewidth=0.8, zorder=2)
    style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 8, "bbox": _BEHIND_TEXT, "zorder": 3}
    _write(axes, written(effect, 4, plus=True), place, 4 + size**0.5 / 2, **style)


def _draw_player_layer(axes: Axes, places: Mapping[int, Place], labels: Sequence[str]) -> None:
    """Draw the players with their names below them, slanted if they are long."""
    heights = [_PLAYERS] * len(places)
    axes.scatter([x for x, _ in places.values()], heights, s=70, color="white", edgecolor=NEUTRAL, zorder=2)
    longest_name = max(len(labels[player]) for player in places)
    turn: dict[str, Any] = {"ha": "center"}
    if len(places) > 8 or longest_name > 10:
        turn = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    for player, place in places.items():
        _write(axes, labels[player], place, -9, va="top", fontsize=8, **turn)


@checked
def network(explanation: Explanation | Terms, sample: int = 0, *, strongest: int = 20) -> Figure:
    """Draw players on a circle and the strongest salient interactions between them.

    The effect of a single player is drawn as a dot, that of a pair as a line, and that of more players as an area.
    Size, width and depth of colour show |effect|. Orange and solid adds to the value; blue and dashed takes from it.
    There is room for 48 players. Interactions that do not fit are left out, and the title counts them.

    Parameters
    ----------
    explanation, sample, strongest : see `interaction_list`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [line.get_linewidth() for line in ab.plots.network(explanation).axes[0].lines]
    [6.0]
    """
    nodes = salient_nodes(explanation, sample, strongest)
    players = _players_in(nodes) or _first_players(len(explanation.names))
    places = _circle(players)
    labels = player_labels(explanation, sample)
    width = 5.6 + 0.17 * max(len(labels[player]) for player in players)
    figure = new_figure(1, width=width, height=6.4)
    axes = figure.axes[0]
    axes.axis("off")
    axes.set(xlim=(-0.22 * width, 0.22 * width), ylim=(-1.3, 1.3), aspect="equal")
    axes.set_title(_title(explanation, sample, strongest, nodes), fontsize=9)
    for node in reversed(nodes):  # the strongest ends up on top
        share = abs(node.effect / nodes[0].effect)
        _draw_connection(axes, node.effect, share, [places[player] for player in node.players])
    for player, place in places.items():
        _draw_player_on_circle(axes, place, labels[player])
    return figure


def _circle(players: Sequence[int]) -> dict[int, Place]:
    """Return the positions of players on a circle, clockwise from the top."""
    turns = [2 * math.pi * number / len(players) for number in range(len(players))]
    return {player: (math.sin(turn), math.cos(turn)) for player, turn in zip(players, turns, strict=True)}


def _draw_connection(axes: Axes, effect: float, share: float, places: Sequence[Place]) -> None:
    """Draw an interaction as a dot, a line or an area, scaled by its share of the largest effect."""
    colour = colour_of(effect)
    x = [place[0] for place in places]
    y = [place[1] for place in places]
    if len(places) == 1:
        axes.scatter(x, y, s=_SMALLEST_NODE + _LARGEST_NODE * share, color=colour, zorder=4)
    elif len(places) == 2:
        width = _THINNEST_EDGE + (_WIDEST_LINE - _THINNEST_EDGE) * share
        axes.plot(x, y, linewidth=width, zorder=2, color=colour, linestyle=_line_style(effect))
    else:
        depth = 0.08 + 0.3 * share
        axes.fill(x, y, alpha=depth, linewidth=1, zorder=1, color=colour, linestyle=_line_style(effect))


def _draw_player_on_circle(axes: Axes, place: Place, name: str) -> None:
    """Draw a player, with its name outside the circle."""
    x, y = place
    axes.scatter([x], [y], s=_SMALLEST_NODE, color="white", edgecolor=NEUTRAL, zorder=3)
    if abs(x) < 0.2:
        side = "center"
    elif x > 0:
        side = "left"
    else:
        side = "right"
    axes.text(1.14 * x, 1.14 * y, name, ha=side, va="center", fontsize=8)


def salient_nodes(explanation: Explanation | Terms, sample: int, strongest: int) -> list[PlayerSet]:
    """Return the strongest salient interactions that fit. Salient means measurable and above 5 % of the largest."""
    interactions = interactions_of(explanation, sample, strongest=strongest)
    return sets_with_room(_salient_sets(interactions, sample, strongest))


def _salient_sets(terms: Terms, sample: int, strongest: int) -> list[PlayerSet]:
    """Return the strongest salient interactions, whether they fit or not."""
    return strongest_sets(terms, sample, min(strongest, count_salient(terms, sample)))


def _first_players(players: int) -> list[int]:
    """Return the players to draw if there are no interactions."""
    return list(range(min(players, MOST_PLAYERS)))


def arrange(nodes: list[PlayerSet], players: int) -> tuple[list[int], list[PlayerSet]]:
    """Order the nodes and their players so that few edges cross; without nodes, return the players that fit."""
    if not nodes:
        return _first_players(players), []
    order = _players_in(nodes)
    shuffle = random.Random(0).sample
    # Sorting often ends in a local optimum, but the best of several starts is good enough.
    starts = [order, *(shuffle(order, len(order)) for _ in range(_STARTS))]
    arrangements = [_sort_by_neighbours(start, nodes) for start in starts]
    return min(arrangements, key=lambda arrangement: _count_crossings(*arrangement))


def _players_in(nodes: Sequence[PlayerSet]) -> list[int]:
    """Return the players that take part in any node."""
    return sorted({player for node in nodes for player in node.players})


def _sort_by_neighbours(order: list[int], nodes: list[PlayerSet]) -> tuple[list[int], list[PlayerSet]]:
    """Move nodes and players in turn to the mean position of their neighbours."""
    for _ in range(_SWEEPS):
        nodes = _sort_nodes(nodes, order)
        order = _sort_players(order, nodes)
    return order, nodes


def _sort_nodes(nodes: list[PlayerSet], order: list[int]) -> list[PlayerSet]:
    """Sort nodes by the mean position of their players."""
    return sorted(nodes, key=lambda node: fmean(order.index(player) for player in node.players))


def _sort_players(order: list[int], nodes: list[PlayerSet]) -> list[int]:
    """Sort players by the mean position of their nodes."""
    return sorted(
        order, key=lambda player: fmean(place for place, node in enumerate(nodes) if player in node.players)
    )


def _count_crossings(order: list[int], nodes: list[PlayerSet]) -> int:
    """Count the pairs of edges between players and nodes that cross."""
    edges = [(place, order.index(player)) for place, node in enumerate(nodes) for player in node.players]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(edges, 2))


def _spread(count: int, across: int) -> list[float]:
    """Return positions for a layer, spread evenly over the width."""
    return [(number + 0.5) * across / count - 0.5 for number in range(count)]


def _line_style(effect: float) -> Any:
    """Return the style of a line: solid if it adds to the value, dashed if it takes from it."""
    return "-" if effect >= 0 else _DASHES


def _draw_line(axes: Axes, places: Sequence[Place], **style: Any) -> None:
    """Draw a line through these points."""
    axes.plot([x for x, _ in places], [y for _, y in places], **style)


def _write(axes: Axes, text: str, place: Place, above: float, **style: Any) -> None:
    """Write a text this many typographic points above a position."""
    axes.annotate(text, place, xytext=(0, above), textcoords="offset points", **style)


def _title(result: Explanation | Terms, sample: int, strongest: int, nodes: Sequence[PlayerSet]) -> str:
    """Say how much of the value the drawn interactions add up to."""
    terms = interactions_of(result)
    total = count_sets(terms, sample)
    lines = [label(in_short(result, sample), 70)]
    left_out = len(_salient_sets(terms, sample, strongest)) - len(nodes)
    if not nodes and not left_out:
        errors = "the rounding error" if terms.errors is None else "its errors"
        return f"{lines[0]}\nnone of {total:,} interactions exceeds {errors}"
    change = change_of(result, sample)
    if change is not None:
        lines.append(f"{written(change, 4, plus=True)} from all absent to all present;")
    strongest_nodes = name_with_basis(
        f"the {len(nodes)} strongest of {total:,} interactions", terms.basis, terms.fidelity is not None
    )
    if terms.basis != WALSH:  # Walsh terms do not add up to the change
        strongest_nodes += f" add {written(sum(node.effect for node in nodes), 4, plus=True)}"
    lines.append(f"{strongest_nodes}, with {len(_players_in(nodes))} of {len(result.names)} players")
    if left_out:
        lines.append(f"({left_out} with more players than there is room for are left out)")
    for remark in terms.remarks(sample):
        lines += textwrap.wrap(remark, _LETTERS_OF_A_LINE)
    return "\n".join(lines)
