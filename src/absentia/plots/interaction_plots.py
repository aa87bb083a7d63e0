"""Plots of interactions: the strongest in lists, matrices and graphs, and their strength by order and by rank."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from absentia.coalitions import coalition_members
from absentia.data import check_number
from absentia.errors import Axes, Figure, wrong
from absentia.plots.drawable import in_short, interactions_of, largest, player_labels
from absentia.plots.look import NEUTRAL, colour_of, draw_bars, draw_curve, label, look_of, looks_of, new_figure
from absentia.terms import Interactions
from absentia.text import written

if TYPE_CHECKING:
    from absentia.explanation import Explanation

_LONGEST_NAME = 76
_POINTS = 400  # ranks of a curve that are drawn, evenly spaced on a logarithmic scale
_PLAYERS, _NODES, _VALUE = 0.0, 1.0, 2.0  # heights of the three layers of a graph
_WIDEST_EDGE, _SMALLEST_NODE, _LARGEST_NODE = 4.0, 60.0, 420.0
_SWEEPS, _STARTS = 6, 30  # of the search for an order with few crossings
_DASHES = (0, (4, 2))  # of what takes from the value
# An interaction of a graph: the numbers of its players, and its effect.
Node: TypeAlias = tuple[tuple[int, ...], float]
_BEHIND_TEXT = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}


def interaction_list(explanation: Explanation, sample: int = 0, *, strongest: int = 16) -> Figure:
    """Draw a bar for each of the strongest interactions; those within rounding error are hollow.

    Parameters
    ----------
    explanation : Explanation
    sample, strongest : int
        Number of the sample, and how many interactions to draw.

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [label.get_text() for label in ab.plots.interaction_list(explanation).axes[0].get_yticklabels()]
    ['x0 & x1', 'x1', 'x0']
    """
    interactions = interactions_of(explanation, sample, strongest=strongest)
    rows = min(strongest, interactions.effects.shape[1] - 1)
    figure = new_figure(1, width=8.0, rows=rows, title=f"value: {in_short(explanation, sample)}")
    draw_strongest(figure.axes[0], interactions, sample, strongest)
    return figure


def draw_strongest(axes: Axes, interactions: Interactions, sample: int = 0, strongest: int = 12) -> None:
    """Draw the bars of `interaction_list` on given axes."""
    top = interactions.top(strongest, sample)
    for letters in (20, 12, 7):  # names of large sets are shortened more
        names = names_of_sets([[label(name, letters) for name in found.players] for found in top])
        if max(map(len, names)) <= _LONGEST_NAME:
            break
    draw_bars(axes, [(name, one.effect, 0.0, not one.measurable) for name, one in zip(names, top, strict=True)])
    axes.set_title(f"strongest {len(top)} of {interactions.effects.shape[1] - 1:,} interactions")


def names_of_sets(sets: Sequence[Sequence[str]], most: int = 3) -> list[str]:
    """Return the names of interactions: the names of their first players, of as many as tell them apart."""
    more = [f" & {len(players) - most} more" if len(players) > most else "" for players in sets]
    names = [" & ".join(players[:most]) + others for players, others in zip(sets, more, strict=True)]
    if len(set(names)) == len(names) or most >= max(map(len, sets)):
        return names
    longer = names_of_sets(sets, most + 1)
    return [names[i] if names.count(names[i]) == 1 else longer[i] for i in range(len(sets))]


def upset(explanation: Explanation, sample: int = 0, *, strongest: int = 16) -> Figure:
    """Draw the strongest interactions as a matrix, a dot for each player that takes part, and a bar for the effect.

    Parameters
    ----------
    explanation, sample, strongest : see `interaction_list`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> ab.plots.upset(explanation).axes[0].lines[-1].get_xydata().tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]
    """
    interactions = interactions_of(explanation, sample, strongest=strongest)
    effects = interactions.effects[sample, 1:].abs()
    sets = [coalition_members(one + 1) for one in effects.topk(min(strongest, len(effects))).indices.tolist()]
    players = sorted({player for members in sets for player in members})
    dots = [(players.index(player), row) for row, members in enumerate(sets) for player in members]
    wide = max(1.6, 0.26 * len(players))
    figure = new_figure(2, width=(wide + 5.4) / 2, rows=len(sets) + 4, ratios=(wide, 5.4))
    matrix, right = figure.axes
    draw_strongest(right, interactions, sample, strongest)
    right.set_yticks([])
    for row, members in enumerate(sets):
        matrix.plot(range(len(players)), [row] * len(players), "o", markersize=6, color="#DDDDDD")
        matrix.plot([players.index(members[0]), players.index(members[-1])], [row, row], color="black", linewidth=1.2)
    matrix.plot(*zip(*dots, strict=True), "o", markersize=6, color="black")
    matrix.set(xlim=(-0.6, len(players) - 0.4), ylim=right.get_ylim(), yticks=[])
    names = [label(interactions.names[player], 20) for player in players]
    matrix.set_xticks(range(len(players)), names, rotation=60, ha="left", rotation_mode="anchor")
    matrix.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
    matrix.spines[:].set_visible(False)
    return figure


def and_or_graph(explanation: Explanation, sample: int = 0, *, strongest: int = 10) -> Figure:
    """Draw the strongest salient interactions of a sample as AND nodes between the players and the value.

    The size of a node and the width of its edges show |effect|. Orange nodes and solid edges add to the value; blue
    nodes and dashed edges take from it. Players are ordered such that few edges cross. An interaction is active where
    all of its players are present, and the value is the sum of the active ones [ren2023faithful, Fig. 2].

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
    players, ordered = arrange(nodes, len(explanation.players))
    across = max(len(players), len(ordered), 2)
    middle = (across - 1) / 2
    figure = new_figure(1, width=max(6.0, 0.72 * across + 1.5), height=6.4)
    axes = figure.axes[0]
    axes.axis("off")
    place_of = dict(zip(players, _places(len(players), across), strict=True))
    labels = player_labels(explanation, sample)
    largest_effect = max((abs(effect) for _, effect in nodes), default=0.0)
    for (members, effect), place in zip(ordered, _places(len(ordered), across), strict=True):
        share, colour, adds = abs(effect) / largest_effect, colour_of(effect), effect >= 0
        edges: dict[str, Any] = {"color": colour, "linestyle": "-" if adds else _DASHES, "alpha": 0.75, "zorder": 1}
        edges["linewidth"] = 0.5 + (_WIDEST_EDGE - 0.5) * share
        for end in [(place_of[player], _PLAYERS) for player in members] + [(middle, _VALUE)]:
            axes.plot(*zip((place, _NODES), end, strict=True), **edges)
        size, hatch = _SMALLEST_NODE + (_LARGEST_NODE - _SMALLEST_NODE) * share, "" if adds else "////"
        axes.scatter(place, _NODES, s=size, color=colour, edgecolor="white", hatch=hatch, linewidth=0.8, zorder=2)
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 8, "bbox": _BEHIND_TEXT, "zorder": 3}
        _write(axes, written(effect, 4, plus=True), (place, _NODES), 4 + size**0.5 / 2, **style)
    axes.scatter([*place_of.values()], [_PLAYERS] * len(players), s=70, color="white", edgecolor=NEUTRAL, zorder=2)
    slanted = len(players) > 8 or max(len(labels[player]) for player in players) > 10
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {"ha": "center"}
    for player, place in place_of.items():
        _write(axes, labels[player], (place, _PLAYERS), -9, va="top", fontsize=8, **turned)
    axes.scatter(middle, _VALUE, s=160, marker="s", color="black", zorder=2)
    text = f"value {written(float(explanation.outputs[sample]), 4)}"
    _write(axes, text, (middle, _VALUE), 9, ha="center", fontsize=9)
    axes.set(xlim=(-0.8, across - 0.2), ylim=(_PLAYERS - 0.1, _VALUE + 0.25))
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
    nodes = salient_nodes(explanation, sample, strongest)
    players = sorted({player for members, _ in nodes for player in members}) or [*range(len(explanation.players))]
    turns = [2 * math.pi * number / len(players) for number in range(len(players))]
    place = {player: (math.sin(turn), math.cos(turn)) for player, turn in zip(players, turns, strict=True)}
    labels = player_labels(explanation, sample)
    width = 5.6 + 0.17 * max(len(labels[player]) for player in players)
    figure = new_figure(1, width=width, height=6.4)
    axes = figure.axes[0]
    axes.axis("off")
    axes.set(xlim=(-0.22 * width, 0.22 * width), ylim=(-1.3, 1.3), aspect="equal")
    axes.set_title(_title(explanation, sample, nodes), fontsize=9)
    for members, effect in reversed(nodes):  # the strongest on top
        share, x, y = abs(effect / nodes[0][1]), *zip(*(place[i] for i in members), strict=True)
        style: dict[str, Any] = {"color": colour_of(effect), "linestyle": "-" if effect >= 0 else _DASHES}
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


def salient_nodes(explanation: Explanation, sample: int, strongest: int) -> list[Node]:
    """Return the strongest of the salient interactions: measurable, and above 5 % of the largest."""
    interactions = interactions_of(explanation, sample, strongest=strongest)
    count = min(strongest, int(interactions.salient()[sample, 1:].sum()))
    effects = interactions.effects[sample]
    numbers = (effects[1:].abs().topk(count).indices + 1).tolist()
    return [(coalition_members(number), float(effects[number])) for number in numbers]


def arrange(nodes: list[Node], players: int) -> tuple[list[int], list[Node]]:
    """Order the players of nodes, or all if there are none, and the nodes such that few edges cross."""
    if not nodes:
        return list(range(players)), []
    order = sorted({player for members, _ in nodes for player in members})
    shuffle = random.Random(0).sample
    # The sort often ends in a local optimum; the best of several starts is good enough.
    starts = [order, *(shuffle(order, len(order)) for _ in range(_STARTS))]
    return min((_sort(start, nodes) for start in starts), key=lambda found: _count_crossings(*found))


def _sort(order: list[int], nodes: list[Node]) -> tuple[list[int], list[Node]]:
    """Move nodes and players in turn to the mean place of their neighbours."""
    for _ in range(_SWEEPS):
        place = order.index
        nodes = sorted(nodes, key=lambda node: fmean(map(place, node[0])))
        order = sorted(order, key=lambda player: fmean(k for k, node in enumerate(nodes) if player in node[0]))
    return order, nodes


def _count_crossings(order: list[int], nodes: list[Node]) -> int:
    """Count the pairs of edges between players and nodes that cross."""
    edges = [(number, order.index(player)) for number, (members, _) in enumerate(nodes) for player in members]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(edges, 2))


def _places(count: int, across: int) -> list[float]:
    """Spread a layer evenly over the width."""
    return [(number + 0.5) * across / count - 0.5 for number in range(count)]


def _write(axes: Axes, text: str, at: tuple[float, float], above: float, **style: Any) -> None:
    """Write a text this many points above a place."""
    axes.annotate(text, at, xytext=(0, above), textcoords="offset points", **style)


def _title(explanation: Explanation, sample: int, nodes: Sequence[Node]) -> str:
    """Return how much of the value the drawn interactions add up to, in words."""
    total = interactions_of(explanation).effects.shape[1] - 1
    readout = label(in_short(explanation, sample), 70)
    if not nodes:
        return f"{readout}\nnone of {total:,} interactions exceeds the rounding error"
    change = float(explanation.outputs[sample] - explanation.base_values[sample])
    part = len({player for members, _ in nodes for player in members})
    total_effect = written(sum(effect for _, effect in nodes), 4, plus=True)
    return (
        f"{readout}\n{written(change, 4, plus=True)} from all absent to all present;\n"
        f"the {len(nodes)} strongest of {total:,} interactions add {total_effect}, "
        f"with {part} of {len(explanation.players)} players"
    )


def order_profile(explanation: Explanation, sample: int = 0, *, most: int = 6) -> Figure:
    """Draw the strength of interactions by order, and the order-wise Shapley values of the largest players.

    Parameters
    ----------
    explanation, sample, most : see `bars`

    Examples
    --------
    >>> explanation = ab.explain(lambda rows: rows.prod(1), [[3.0, 4.0]], absence=1.0)
    >>> [round(float(bar.get_height()), 3) for bar in ab.plots.order_profile(explanation).axes[0].patches]
    [0.455, 0.545]
    """
    interactions = interactions_of(explanation, sample, most=most)
    figure = new_figure(2, width=5.6, height=4.4, title=f"value: {in_short(explanation)}")
    draw_order_profile(figure.axes[0], interactions, sample)
    if explanation.order_shapley is not None:
        shown = largest(explanation.shapley.values[sample], most)
        axes, orders = figure.axes[1], len(explanation.players)
        for number, player in enumerate(shown):
            values = explanation.order_shapley.values[sample, :, player]
            draw_curve(axes, look_of(number), label(explanation.names[player]), range(orders), values)
        axes.axhline(0, color=NEUTRAL, linewidth=0.8)
        some = "" if len(shown) == orders else f", {len(shown)} of {orders} players"
        axes.set(xlabel="order: number of other players present", ylabel="mean of what the player adds")
        axes.set_title(f"order-wise Shapley values{some}")
        axes.locator_params(axis="x", integer=True)
        axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def draw_order_profile(axes: Axes, interactions: Interactions, sample: int = 0) -> None:
    """Draw the share of each order in the strength Σ|U| of a sample's interactions."""
    ratios = interactions.by_order().ratios[sample, 1:].tolist()
    axes.bar(range(1, len(ratios) + 1), ratios, color=NEUTRAL)
    axes.set(title="strength by order", xlabel="order: players in the interaction", ylabel="share of Σ|U|")
    axes.set_xlim(0.4, max(len(ratios), 2) + 0.6)
    axes.locator_params(axis="x", integer=True)
    axes.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")


def sparsity(
    results: Explanation | Interactions | Mapping[str, Explanation | Interactions], sample: int | None = None
) -> Figure:
    """Draw the strengths |U| of all interactions in descending order, on logarithmic scales.

    The legend counts the salient interactions: those above 5 % of a sample's largest.

    Parameters
    ----------
    results : Explanation, Interactions or mapping
        An exact explanation, interactions, or several of them by name.
    sample : int, optional
        Number of the sample; None averages the strengths of each rank over all samples.

    Examples
    --------
    >>> game = ab.ValueTable([0.0, 1.0, 2.0, 8.0])
    >>> ab.plots.sparsity({"given": ab.harsanyi(game)}).axes[0].lines[0].get_ydata().tolist()
    [5.0, 2.0, 1.0]
    """
    named = results if isinstance(results, Mapping) else {"": results}
    if not named:
        raise wrong("results", "hold at least one explanation", "none")
    figure = new_figure(1, width=6.4, height=4.6)
    axes = figure.axes[0]
    for look, (name, result) in zip(looks_of(list(named)), named.items(), strict=True):
        if not (isinstance(result, Interactions) or getattr(result, "KIND", "") == "explanation"):
            raise wrong("results", "hold explanations or interactions", type(result).__name__)
        interactions = result if isinstance(result, Interactions) else interactions_of(result)
        check_number("sample", sample, 0, len(interactions.effects) - 1)
        rows = slice(None) if sample is None else [sample]
        strength = interactions.effects[rows, 1:].detach().abs().cpu().sort(dim=1, descending=True).values.mean(0)
        spaced = torch.logspace(0, math.log10(len(strength)), _POINTS, dtype=torch.float64)
        ranks = spaced.round().long().clamp(1, len(strength)).unique()
        salient = f"{float(interactions.salient()[rows, 1:].sum(1).double().mean()):.3g} salient"
        text = f"{label(name)}: {salient}" if name else salient
        draw_curve(axes, look, text, ranks, strength[ranks - 1].numpy(), markevery=max(1, len(ranks) // 12))
    axes.set_xscale("log")
    if math.isfinite(axes.dataLim.minposy):
        axes.set_yscale("log", nonpositive="mask")
    axes.set(title="interactions in descending order", xlabel="rank of the interaction")
    axes.set_ylabel("strength |U|" + (", mean over samples" if sample is None else ""))
    axes.legend(fontsize=8, frameon=False, loc="lower left")
    return figure
