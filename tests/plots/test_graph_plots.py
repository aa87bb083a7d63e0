"""Graphs and networks of interactions."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

import absentia as ab
from absentia.plots.graph_plots import arrange, salient_nodes
from absentia.plots.look import LOWERS, RAISES
from absentia.plots.strongest_sets import PlayerSet


def test_the_graph_has_a_node_for_each_salient_interaction_and_an_edge_for_each_of_its_players(six):
    axes = ab.plots.and_or_graph(six, sample=1, strongest=8).axes[0]
    nodes = salient_nodes(six, 1, 8)
    assert [node.effect for node in nodes] == pytest.approx([found.effect for found in six.interactions.top(8, 1)])
    assert len(axes.lines) == sum(len(node.players) + 1 for node in nodes)
    shown = [text.get_text() for text in axes.texts]
    for node in nodes:
        assert f"{node.effect:+.4g}".replace("-", "−") in shown
    widest = max(axes.lines, key=lambda line: line.get_linewidth())
    assert widest.get_color() == (RAISES if nodes[0][1] >= 0 else LOWERS)
    dashed = [line for line in axes.lines if line.get_color() == LOWERS]
    assert all(line.get_linestyle() == "--" for line in dashed)  # for grey
    assert f"add {sum(node.effect for node in nodes):+.4g}".replace("-", "−") in axes.get_title()


def test_the_graph_keeps_players_of_one_interaction_side_by_side():
    nodes = [PlayerSet((0, 3), 1.0), PlayerSet((1, 2), 1.0), PlayerSet((3,), 1.0)]
    players, ordered = arrange(nodes, players=6)
    assert sorted(players) == [0, 1, 2, 3]  # those that take part
    assert abs(players.index(0) - players.index(3)) == 1
    assert abs(players.index(1) - players.index(2)) == 1
    assert set(ordered) == set(nodes)
    assert arrange([], players=3) == ([0, 1, 2], [])
    assert arrange([PlayerSet((0, 2), 1.0), PlayerSet((1,), 1.0)], players=4)[0] == [0, 2, 1]


def test_a_network_has_a_dot_a_line_or_an_area_for_each_interaction():
    def value(rows):
        a, b, c, d, _ = rows.T
        return 4 * a - 2 * a * b + 3 * b * c * d

    found = ab.explain(value, torch.ones(1, 5).double(), players=ab.Players.features([*"abcde"]), absence=0.0)
    axes = ab.plots.network(found).axes[0]
    (line,) = axes.lines
    (area,) = axes.patches
    place = {text.get_text()[0]: np.asarray(text.get_position()) / 1.14 for text in axes.texts}
    assert sorted(place) == [*"abcd"]  # e takes part in none
    assert np.allclose(line.get_xydata(), [place["a"], place["b"]])
    assert (line.get_color(), line.get_linestyle()) == (LOWERS, "--")
    assert line.get_linewidth() == pytest.approx(0.5 + 5.5 * 2 / 4)
    assert np.allclose(area.get_xy()[:3], [place[name] for name in "bcd"])
    assert area.get_facecolor() == pytest.approx((*to_rgb(RAISES), 0.08 + 0.3 * 3 / 4))
    coloured = [dots for dots in axes.collections if tuple(dots.get_facecolors()[0][:3]) == to_rgb(RAISES)]
    assert [np.allclose(dots.get_offsets(), [place["a"]]) for dots in coloured] == [True]
    assert "3 strongest of 31 interactions add +5, with 4 of 5 players" in axes.get_title()
