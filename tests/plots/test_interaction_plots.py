"""Lists, profiles and sets of interactions."""

from dataclasses import replace

import pytest
import torch

import absentia as ab
import small_results as results
from absentia.plots.graph_plots import salient_nodes
from absentia.plots.interaction_plots import names_of_sets
from absentia.plots.look import label
from drawn_results import explain, overlaps
from seeded_draws import randn


def test_the_list_of_interactions_is_ranked(six):
    axes = ab.plots.interaction_list(six, sample=1, strongest=7).axes[0]
    top = six.interactions.top(7, sample=1)
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([found.effect for found in top])
    short = [[label(name, 20) for name in found.players] for found in top]
    assert [label.get_text() for label in axes.get_yticklabels()] == names_of_sets(short)
    assert axes.get_title() == "strongest 7 of 63 interactions"


def test_listed_sets_of_many_players_are_drawn():
    sets = [(), (0, 53), (54, 55, 59), (59,), (0, 52)]
    terms = results.listed_terms(sets, torch.tensor([9.0, 4.0, -3.0, 1.0, 2.0]).double(), 60, [0, 0, 0, 0, 1])
    wide = replace(results.wide_explanation(samples=2, players=60), interactions=terms)
    axes = ab.plots.interaction_list(wide).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["x0 & x53", "x54 & x55 & x59", "x59"]
    assert axes.get_title() == "strongest 3 of 3 interactions"
    assert [node.players for node in salient_nodes(wide, 0, 10)] == [(0, 53), (54, 55, 59), (59,)]
    assert [node.players for node in salient_nodes(wide, 1, 10)] == [(0, 52)]
    matrix = ab.plots.upset(wide).axes[0]
    assert [text.get_text() for text in matrix.get_xticklabels()] == ["x0", "x53", "x54", "x55", "x59"]
    mean = ab.plots.sparsity(terms).axes[0].lines[0].get_ydata()
    assert mean.tolist() == [3, 1.5, 0.5]  # the second sample has one set
    for kind in ("network", "and_or_graph", "order_profile", "overview"):
        ab.plots.KINDS[kind](wide)


def test_sets_that_begin_alike_have_different_labels():
    crowded = results.crowded_explanation()
    axes = ab.plots.interaction_list(crowded, strongest=3).axes[0]
    shown = [label.get_text() for label in axes.get_yticklabels()]
    first = "r0c0 & r0c1 & r1c0 & r1c1 & r2c0"
    assert shown == [f"{first} & r2c1", f"{first} & r3c0", f"{first} & r3c1"]
    assert all(f"{name}  " in repr(crowded) for name in shown)
    assert names_of_sets([["a", "b", "c", "d"], ["a"], ["a", "b", "c", "e", "f"]], most=2) == [
        "a & b & 2 more",
        "a",
        "a & b & 3 more",
    ]


def test_effects_lost_in_rounding_are_hollow():
    constant = ab.explain(lambda rows: 0 * rows[:, 0] + 1, randn(1, 3), absence=ab.Baseline(0.0))
    axes = ab.plots.interaction_list(constant).axes[0]
    assert all(bar.get_facecolor()[3] == 0 for bar in axes.patches)
    assert "hollow: within rounding error" in axes.get_xlabel()


def test_the_order_profile_is_that_of_the_interactions_and_of_the_players(six):
    left, right = ab.plots.order_profile(six, sample=1, most=3).axes
    heights = [bar.get_height() for bar in left.patches]
    assert heights == pytest.approx(six.interactions.by_order().ratios[1, 1:].tolist())
    order = six.shapley.values[1].abs().argsort(descending=True)[:3]
    curves = [line.get_ydata().tolist() for line in right.lines[:3]]
    for curve, player in zip(curves, order.tolist(), strict=True):
        assert curve == pytest.approx(six.order_shapley.values[1, :, player].tolist())
    assert len({line.get_marker() for line in right.lines[:3]}) == 3  # for grey


def test_sparsity_sorts_the_strengths_of_every_method(six):
    other = explain(6, absence=ab.Baseline(1.0))
    axes = ab.plots.sparsity({"zero": six, "one": other.interactions}, sample=1).axes[0]
    for line, result in zip(axes.lines, (six, other), strict=True):
        ranks = line.get_xdata().astype(int)
        expected = sorted(result.interactions.effects[1, 1:].abs().tolist(), reverse=True)
        assert line.get_ydata().tolist() == pytest.approx([expected[rank - 1] for rank in ranks])
        assert (ranks[0], ranks[-1]) == (1, 63)
    assert axes.get_yscale() == "log"
    salient = int(six.interactions.salient()[1, 1:].sum())
    assert axes.get_legend().get_texts()[0].get_text() == f"zero: {salient} salient"
    mean = ab.plots.sparsity(six).axes[0].lines[0].get_ydata()
    assert mean[0] == pytest.approx(float(six.interactions.effects[:, 1:].abs().amax(1).mean()))


def test_an_upset_plot_shows_sets_as_dots_and_effects_as_bars(six):
    matrix, right = ab.plots.upset(six, sample=1, strongest=7).axes
    top = six.interactions.top(7, sample=1)
    assert [bar.get_width() for bar in right.patches] == pytest.approx([found.effect for found in top])
    columns = [text.get_text() for text in matrix.get_xticklabels()]
    sets = [{columns[int(x)] for x, y in matrix.lines[-1].get_xydata() if y == row} for row in range(7)]
    assert sets == [{label(name, 20) for name in found.players} for found in top]
    assert matrix.get_ylim() == right.get_ylim()
    assert not right.get_yticklabels()
    assert not overlaps(matrix.figure)
    tokens = ab.plots.upset(results.text_explanation(), strongest=4).axes[
        0
    ]  # words that occur twice have two columns
    assert len(tokens.get_xticklabels()) == len({x for x, _ in tokens.lines[-1].get_xydata()})


def test_estimated_order_wise_values_have_bands_of_two_errors(six):
    errors = 0.1 + torch.rand(six.order_shapley.values.shape, generator=torch.Generator().manual_seed(0)).double()
    estimated = replace(six, order_shapley=replace(six.order_shapley, standard_errors=errors).at(0, 2, 5))
    right = ab.plots.order_profile(estimated, sample=1, most=1).axes[1]
    assert "± 2 errors" in right.get_title()
    assert right.lines[0].get_xdata().tolist() == [0, 2, 5]
    (band,) = right.collections
    player = int(estimated.order_shapley.values[1].mean(0).abs().argmax())
    values = estimated.order_shapley.values[1, :, player]
    corners = band.get_paths()[0].vertices
    for order, value, error in zip((0, 2, 5), values, 2 * estimated.order_shapley.errors[1, :, player], strict=True):
        heights = corners[corners[:, 0] == order][:, 1]
        assert heights.min() == pytest.approx(float(value - error))
        assert heights.max() == pytest.approx(float(value + error))
    assert not ab.plots.order_profile(six, sample=1).axes[1].collections
