"""Plots show the numbers of their results: lengths, places and names, at every size, and readable in grey."""

import io
import itertools
import math
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgb

import absentia as ab
import test_report_results as results
from absentia.plots.absence_plots import draw_leak_and_invention, draw_lengths, draw_masking_curve
from absentia.plots.graph_plots import arrange, salient_nodes
from absentia.plots.interaction_plots import names_of_sets
from absentia.plots.look import LOOKS, LOWERS, NEUTRAL, RAISES, label
from absentia.plots.strongest_sets import PlayerSet
from absentia.report.baseline_section import baseline_section
from known_games import cnn, mlp
from typechecker import unchecked

OLD_FILES = Path(__file__).parent / "old_files"
LONG = "the number of days since the last payment of the loan in $"


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def names(count):
    """Return long names with a dollar sign, which begins a formula in matplotlib."""
    return [f"{LONG} {number}" for number in range(count)]


def explain(players, samples=2, **settings):
    model, x = mlp(players, 3), 2 * randn(samples, players)
    settings = {"players": ab.Players.features(names(players)), "absence": ab.Baseline(0.0)} | settings
    return ab.explain(model, x, **settings)


@pytest.fixture(scope="module")
def six():
    return explain(6)


@pytest.fixture(scope="module")
def sampled():
    return explain(30, evaluations=300)


@pytest.fixture(scope="module")
def pictured():
    players = ab.Players.grid((1, 6, 6), cells=(3, 3), only=[(0, 0), (0, 1), (1, 1), (2, 2)])
    x = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(0)).double()
    return ab.explain(cnn(), x, [0, 1], players=players, absence=ab.Baseline(0.5))


def draw(figure):
    """Return the pixels of the saved figure in grey."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=50)
    return np.asarray(Image.open(buffer).convert("L"))


def overlaps(figure):
    """Return labels of one axis that overlap, and texts that leave the figure."""
    figure.draw_without_rendering()
    whole, found = figure.bbox, []
    for axes in figure.axes:
        texts = [axes.title, *axes.texts, *([axes.xaxis.label, axes.yaxis.label] if axes.axison else [])]
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            shown = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            level = [one for one in shown if one.get_text() and one.get_visible() and one.get_rotation() == 0]
            boxes = [label.get_window_extent() for label in level]
            found += ["overlap" for a, b in itertools.pairwise(boxes) if a.overlaps(b)]
            texts += shown
        for text in texts:
            box = text.get_window_extent()
            if text.get_text() and (min(box.x0, box.y0) < -1 or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1):
                found.append(text.get_text())
    return found


def ranked(values):
    return sorted(values, key=abs, reverse=True)


def test_bars_have_the_length_of_the_values_largest_first(six):
    axes = ab.plots.bars(six, sample=1).axes[0]
    values = ranked(six.shapley.values[1].tolist())
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(values)
    for bar, value in zip(axes.patches, values, strict=True):
        assert (bar.get_hatch() is not None) == (value < 0)  # for grey
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert all(len(label) <= 34 and label.endswith(r"\$ " + label[-1]) for label in labels)


def test_bars_show_two_standard_errors(sampled):
    axes = ab.plots.bars(sampled, sample=1, most=5).axes[0]
    order = sampled.shapley.values[1].abs().argsort(descending=True)[:5]
    segments = [whisker.get_segments()[0] for whisker in axes.collections]
    widths = [float(end[0] - start[0]) for start, end in segments]
    assert widths == pytest.approx((4 * sampled.shapley.errors[1, order]).tolist())
    assert "5 of 30 players" in axes.get_title()
    assert "2 standard errors" in axes.get_xlabel()


def test_the_waterfall_leads_from_the_value_of_nothing_to_the_value(six):
    axes = ab.plots.waterfall(six).axes[0]
    base, output = float(six.base_values[0]), float(six.outputs[0])
    starts = [bar.get_x() for bar in axes.patches]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx(ranked(six.shapley.values[0].tolist()))
    assert starts[0] == pytest.approx(base)
    assert starts[1:] == pytest.approx(np.cumsum([base, *widths])[1:-1])
    assert starts[-1] + widths[-1] == pytest.approx(output)
    left, right = axes.get_xlim()
    assert left < min(base, output, *starts)
    assert right > max(base, output, *starts)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == f"all absent: {base:.4g}".replace("-", "−")
    assert labels[-1] == f"all present: {output:.4g}".replace("-", "−")


def test_the_waterfall_puts_small_players_together(sampled):
    axes = ab.plots.waterfall(sampled, most=5).axes[0]
    widths = [bar.get_width() for bar in axes.patches]
    values = ranked(sampled.shapley.values[0].tolist())
    assert len(widths) == 5
    assert widths[-1] == pytest.approx(sum(values[4:]))
    assert axes.get_yticklabels()[5].get_text() == "26 others"


def test_players_of_one_entry_show_their_value(six):
    labels = [label.get_text() for label in ab.plots.waterfall(six).axes[0].get_yticklabels()][1:-1]
    first = int(six.shapley.values[0].abs().argmax())
    assert labels[0].endswith(f"= {float(six.x[0, first]):.4g}".replace("-", "−"))
    groups = ab.Players.groups({"pair": [0, 1], "other": [2]}, features=3)
    pairs = ab.explain(mlp(3), randn(1, 3), players=groups, absence=ab.Baseline(0.0))
    labels = [label.get_text() for label in ab.plots.waterfall(pairs).axes[0].get_yticklabels()]
    assert "pair" in labels
    assert any(label.startswith("other = ") for label in labels)


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


def test_the_graph_has_a_node_for_each_salient_interaction_and_an_edge_for_each_of_its_players(six):
    axes = ab.plots.and_or_graph(six, sample=1, strongest=8).axes[0]
    nodes = salient_nodes(six, 1, 8)
    assert [effect for _, effect in nodes] == pytest.approx([found.effect for found in six.interactions.top(8, 1)])
    assert len(axes.lines) == sum(len(members) + 1 for members, _ in nodes)
    shown = [text.get_text() for text in axes.texts]
    for _, effect in nodes:
        assert f"{effect:+.4g}".replace("-", "−") in shown
    widest = max(axes.lines, key=lambda line: line.get_linewidth())
    assert widest.get_color() == (RAISES if nodes[0][1] >= 0 else LOWERS)
    dashed = [line for line in axes.lines if line.get_color() == LOWERS]
    assert all(line.get_linestyle() == "--" for line in dashed)  # for grey
    assert f"add {sum(effect for _, effect in nodes):+.4g}".replace("-", "−") in axes.get_title()


def test_the_graph_keeps_players_of_one_interaction_side_by_side():
    nodes = [PlayerSet((0, 3), 1.0), PlayerSet((1, 2), 1.0), PlayerSet((3,), 1.0)]
    players, ordered = arrange(nodes, players=6)
    assert sorted(players) == [0, 1, 2, 3]  # those that take part
    assert abs(players.index(0) - players.index(3)) == 1
    assert abs(players.index(1) - players.index(2)) == 1
    assert set(ordered) == set(nodes)
    assert arrange([], players=3) == ([0, 1, 2], [])
    assert arrange([PlayerSet((0, 2), 1.0), PlayerSet((1,), 1.0)], players=4)[0] == [0, 2, 1]


def test_the_heat_map_gives_every_pixel_its_players_value(pictured):
    figure = ab.plots.image_heat_map(pictured, sample=1)
    image, heat, absent = (axes.images[0].get_array() for axes in figure.axes[:3])
    assert np.allclose(image, pictured.x[1, 0])
    assert np.allclose(absent, pictured.stand_ins[1, 0])
    values = pictured.shapley.values[1]
    assert np.allclose(heat[0:2, 0:2], values[0])
    assert np.allclose(heat[2:4, 2:4], values[2])
    assert heat.mask[0, 5]  # always present
    low, high = figure.axes[1].images[0].get_clim()
    assert -low == high == pytest.approx(float(values.abs().max()))
    assert [axes.get_title() for axes in figure.axes[:3]] == [
        "sample 1, class 1",
        "Shapley values",
        "all players absent",
    ]


def test_classes_are_shown_by_their_names_where_they_have_any(pictured):
    record = replace(pictured.record, class_names=("cat", "dog"))
    named = replace(pictured, record=record)
    assert ab.plots.image_heat_map(named, sample=1).axes[0].get_title() == "sample 1, dog"


def test_signs_are_written_on_heat_maps_for_grey():
    players = ab.Players.grid((3, 10, 10), cells=(10, 10))
    x = torch.rand(1, 3, 10, 10, generator=torch.Generator().manual_seed(0)).double()
    signs = torch.ones(3, 10, 10).double()
    signs[:, :5] = -1
    explanation = ab.explain(lambda rows: (rows * signs).sum((1, 2, 3)), x, players=players, absence=ab.Baseline(0.0))
    axes = ab.plots.image_heat_map(explanation).axes[1]
    assert {text.get_text() for text in axes.texts if text.get_position()[1] < 5} == {"−"}
    assert {text.get_text() for text in axes.texts if text.get_position()[1] >= 5} == {"+"}


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


def test_the_mean_of_many_samples_has_errors_over_them(six):
    axes = ab.plots.bars(six, sample=None).axes[0]
    strength = six.shapley.values.abs()
    order = strength.mean(0).argsort(descending=True)
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(strength.mean(0)[order].tolist())
    assert {bar.get_facecolor()[:3] for bar in axes.patches} == {to_rgb(NEUTRAL)}
    widths = [float(one.get_segments()[0][1][0] - one.get_segments()[0][0][0]) for one in axes.collections]
    assert widths == pytest.approx((4 * strength.std(0)[order] / 2**0.5).tolist())
    assert axes.get_title() == "mean |Shapley value| of 2 samples"
    assert axes.get_xlabel() == "± 2 standard errors over samples"


@pytest.fixture(scope="module")
def many():
    """Forty samples of three players; the first two have one entry each."""
    players = ab.Players.groups({"a": [0], "b": [1], "pair": [2, 3]}, features=4)
    weights = torch.tensor([3.0, -1.0, 0.5, 0.5]).double()
    return ab.explain(lambda rows: rows @ weights, randn(40, 4), players=players, absence=ab.Baseline(0.25))


def test_a_beeswarm_has_a_dot_for_each_sample_and_player_coloured_by_the_input(many):
    axes = ab.plots.beeswarm(many).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "pair"]
    for place, (player, dots) in enumerate(zip((0, 1, 2), axes.collections, strict=True)):
        x, y = np.asarray(dots.get_offsets()).T
        assert x.tolist() == pytest.approx(many.shapley.values[:, player].tolist())
        assert abs(y - place).max() < 0.5  # within the row of the player
        dots.figure.draw_without_rendering()
        if player == 2:  # of two entries
            assert {tuple(colour) for colour in dots.get_facecolors()} == {(*to_rgb("#999999"), 1)}
            continue
        shares = np.asarray(dots.get_array())
        order = many.x[:, player].argsort()
        assert (np.diff(shares[order]) >= 0).all()
        assert (shares.min(), shares.max()) == (0, 1)
    same = ab.explain(lambda rows: rows.sum(1), torch.ones(9, 2).double(), absence=0.0)
    heights = np.asarray(ab.plots.beeswarm(same).axes[0].collections[0].get_offsets())[:, 1]
    assert len(set(heights)) == 9  # dots of one value lie above and below each other
    assert heights.sum() == pytest.approx(0)
    assert len(ab.plots.beeswarm(many, most=2).axes[0].collections) == 2


def test_sampled_attributions_of_many_samples_have_errors(sampled):
    axes = ab.plots.beeswarm(sampled, most=3).axes[0]
    order = sampled.shapley.values.abs().mean(0).argsort(descending=True)[:3].tolist()
    for player, whiskers in zip(order, axes.collections[::2], strict=True):
        widths = [float(end[0] - start[0]) for start, end in whiskers.get_segments()]
        assert widths == pytest.approx((4 * sampled.shapley.errors[:, player]).tolist())
    dots, whiskers = ab.plots.scatter(sampled, 4).axes[0].collections
    heights = [float(end[1] - start[1]) for start, end in whiskers.get_segments()]
    assert heights == pytest.approx((4 * sampled.shapley.errors[:, 4]).tolist())
    assert len(dots.get_offsets()) == 2


def test_a_scatter_plot_sets_the_attribution_against_the_input(many):
    axes = ab.plots.scatter(many, "b").axes[0]
    x, y = np.asarray(axes.collections[0].get_offsets()).T
    assert x.tolist() == pytest.approx(many.x[:, 1].tolist())
    assert y.tolist() == pytest.approx(many.shapley.values[:, 1].tolist())
    colours = [tuple(colour[:3]) for colour in axes.collections[0].get_facecolors()]
    assert colours == [to_rgb(RAISES if value >= 0 else LOWERS) for value in y]
    assert axes.lines[1].get_xdata() == [0.25, 0.25]  # the stand-in
    assert axes.get_legend().get_texts()[0].get_text() == "absent: 0.25"
    assert ab.plots.scatter(many).axes[0].get_title() == "Shapley values of a"  # the largest
    with pytest.raises(ab.AbsentiaError, match=r"player must have one entry.*Got pair, which has several"):
        ab.plots.scatter(many, "pair")
    with pytest.raises(ab.AbsentiaError, match="player must hold players"):
        ab.plots.scatter(many, "c")


def test_a_text_line_has_its_tokens_in_order_with_their_values_below():
    told = results.text_explanation()
    axes = ab.plots.text_line(told).axes[0]
    words, numbers = axes.texts[::2], axes.texts[1::2]
    assert [text.get_text() for text in words] == results.WORDS
    assert [text.get_text() for text in numbers] == [dict(told.shapley.ranked())[k] for k in range(len(words))]
    values = told.shapley.values[0]
    for text, value in zip(words, values.tolist(), strict=True):
        colour = text.get_bbox_patch().get_facecolor()
        assert colour == pytest.approx(
            (*to_rgb(RAISES if value >= 0 else LOWERS), 0.8 * abs(value) / float(values.abs().max()))
        )
    places = [text.get_position()[::-1] for text in words]
    assert places == sorted(places)
    assert not overlaps(axes.figure)
    axes.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not [1 for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


def test_a_text_line_of_estimates_has_their_errors():
    players = ab.Players.tokens([f"word{number}" for number in range(26)])
    x = torch.ones(1, 26, dtype=torch.int64)
    weights = torch.linspace(-1, 1, 26).double()
    told = ab.explain(
        lambda rows: (rows @ weights).exp(), x.double(), players=replace(players, integer=False), absence=0.0
    )
    words, below = ab.plots.text_line(told).axes[0].texts[::2], ab.plots.text_line(told).axes[0].texts[1::2]
    places = [text.get_position()[::-1] for text in words]
    assert len({row for row, _ in places}) > 1  # it is wrapped
    assert places == sorted(places)
    assert all("\n± " in text.get_text() for text in below)
    assert "standard error" in ab.plots.text_line(told).axes[0].get_title()


def test_a_network_has_a_dot_a_line_or_an_area_for_each_interaction():
    def value(rows):
        a, b, c, d, _ = rows.T
        return 4 * a - 2 * a * b + 3 * b * c * d

    found = ab.explain(value, torch.ones(1, 5).double(), players=ab.Players.features([*"abcde"]), absence=0.0)
    axes = ab.plots.network(found).axes[0]
    (line,), (area,) = axes.lines, axes.patches
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


def test_a_method_has_the_same_colour_whatever_its_place(six):
    for names in (["zero", "own", "mean"], ["mean", "zero", "own"]):
        lines = ab.plots.sparsity(dict.fromkeys(names, six)).axes[0].lines
        looks = {name: (line.get_color(), line.get_marker()) for name, line in zip(names, lines, strict=True)}
        assert looks == {"zero": LOOKS["zero"], "mean": LOOKS["mean"], "own": LOOKS["median"]}


def test_plot_draws_the_kind_that_is_asked_for(six, many, tmp_path):
    assert len(six.plot(kind="upset", sample=1, strongest=5).axes[1].patches) == 5
    assert many.plot(tmp_path / "bees.png", kind="beeswarm", most=2).axes[0].get_title().endswith("2 of 3 players")
    assert (tmp_path / "bees.png").stat().st_size > 5_000
    assert many.plot(kind="bars", sample=None).axes[0].get_title() == "mean |Shapley value| of 40 samples"
    assert many.plot(kind="scatter", player="b").axes[0].get_xlabel() == "input b"
    with pytest.raises(ab.AbsentiaError, match=r"kind must be one of overview, waterfall, .*Got 'pie' instead"):
        six.plot(kind="pie")
    for kind in ab.plots.KINDS:
        assert kind in ab.Explanation.plot.__doc__.replace("\n", " ")


def test_a_line_that_can_not_be_drawn_has_no_legend():
    left, right = ab.plots.new_figure(columns=2, height=3.5).axes
    figures = (torch.tensor([0.5, 1.0]), torch.tensor([0.1, 0.1]))
    draw_leak_and_invention(left, ["zero", "mean"], figures, figures, limit=float("inf"))
    assert left.get_legend() is None
    nothing = float("nan")
    draw_masking_curve(right, torch.tensor([0, 1]), {"zero": torch.ones(2), "mean": torch.ones(2)}, prior=nothing)
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["zero", "mean"]


def test_the_overview_is_a_heat_map_for_images_and_three_panels_for_tables(six, sampled, pictured, tmp_path):
    titles = [axes.get_title() for axes in six.plot(tmp_path / "six.png", sample=1).axes]
    assert titles == ["Shapley values", "strongest 16 of 63 interactions", "strength by order"]
    assert (tmp_path / "six.png").stat().st_size > 10_000
    assert len(sampled.plot().axes) == 1
    assert pictured.plot(sample=1).axes[0].get_title() == "sample 1, class 1"
    with pytest.raises(ab.AbsentiaError, match="path must lie in a folder that exists"):
        six.plot(tmp_path / "nowhere" / "six.png")


def test_learned_values_stand_at_their_place_in_the_range_of_the_data():
    learned = results.learned(results.draw(4), ("a", "b"), torch.tensor([0, 1, 0, -1]))
    axes = ab.plots.baselines(learned).axes[0]
    median, marks = axes.lines
    values = learned.values[:3].tolist()  # the last is always present
    assert median.get_xdata().tolist() == [0.5] * 3
    assert marks.get_xdata().tolist() == pytest.approx([(value + 2) / 4 for value in values])  # data from −2 to 2
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([2 / 3] * 3 + [1 / 3] * 3)  # 5 to 95 %, and the middle half
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a 0", "b", "a 1"]
    written = [f"{value:.4g}".replace("-", "−") for value in values]
    written[1] += " (undetermined)"
    assert [text.get_text() for text in axes.texts] == written
    assert not overlaps(axes.figure)
    some = ab.plots.baselines(learned, most=2).axes[0]
    assert some.get_title() == "baseline beside the data, 2 of 3 entries"


def test_baselines_of_classes_and_samples_are_told_apart():
    classes = results.learned(results.draw(2, 5), share="class", classes=torch.tensor([3, 7]))
    axes = ab.plots.baselines(classes).axes[0]
    assert [line.get_label() for line in axes.lines[1:]] == ["learned, class 3", "learned, class 7"]
    assert len({line.get_marker() for line in axes.lines}) == 3  # for grey
    assert not overlaps(axes.figure)
    named = replace(classes, record=replace(classes.record, class_names=tuple("abcdefgh")))
    assert ab.plots.baselines(named).axes[0].lines[2].get_label() == "learned, class h"
    samples = ab.plots.baselines(results.learned(results.draw(9, 5), share="sample")).axes[0]
    assert len(samples.lines) == 1 + 9 + 1  # the median, the samples, and the mark in the legend
    texts = samples.get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["median of the data", "learned, each sample"]


def test_baselines_that_are_images_are_drawn_as_images():
    learned = results.image_baseline()
    for one in (learned, results.image_baseline(players=None)):  # as in the first files
        figure = ab.plots.baselines(one)
        titles = [axes.get_title() for axes in figure.axes]
        assert titles == ["learned baseline", "median of the data", "5 % of the data", "95 % of the data"]
        low, high = float(learned.values.min()), float(learned.values.max())
        shown = figure.axes[0].images[0].get_array()
        assert np.allclose(shown * (max(high, 5 / 3) - min(low, -5 / 3)) + min(low, -5 / 3), learned.values[0])


def test_the_history_of_a_loss_is_drawn_as_steps_on_a_scale_that_fits():
    learned = results.learned()
    axes = ab.plots.learning_history(learned).axes[0]
    assert axes.lines[0].get_xydata().tolist() == learned.history.tolist()
    assert axes.get_yscale() == "linear"
    steep = results.learned(history=torch.tensor([[10.0, 300.0], [20.0, 1.0]], dtype=torch.float64))
    assert ab.plots.learning_history(steep).axes[0].get_yscale() == "log"


def test_a_learned_baseline_has_the_colour_of_learned_and_its_history_the_name_of_what_it_is():
    learned = results.learned()
    assert ab.plots.baselines(learned).axes[0].lines[-1].get_color() == LOOKS["learned"][0]
    assert ab.plots.learning_history(learned).axes[0].get_ylabel() == "lowest loss so far (interactions)"
    faithful = replace(learned, record=replace(learned.record, loss="faithful"))  # whose history may rise
    assert ab.plots.learning_history(faithful).axes[0].get_ylabel() == "running mean of the loss (faithful)"


def whiskers(axes):
    """Return the ends of the whiskers, in the order in which they were drawn."""
    return [bar.get_segments()[0][:, 0].tolist() for bar in axes.collections]


def test_leaks_are_drawn_to_the_left_and_inventions_to_the_right_with_two_errors():
    axes = ab.plots.new_figure(columns=1, height=3.5).axes[0]
    leak = (torch.tensor([0.0, 1.8]), torch.tensor([0.0, 0.1]))
    invention = (torch.tensor([0.5, 0.1]), torch.tensor([0.1, torch.nan]))
    draw_leak_and_invention(axes, ["zero", "$"], leak, invention, limit=2.3, best=1)
    assert [bar.get_width() for bar in axes.patches[:4]] == pytest.approx([0, -1.8, 0.5, 0.1])
    expected = [[0, 0], [-2.0, -1.6], [0.3, 0.7], [0.1, 0.1]]
    assert whiskers(axes) == [pytest.approx(ends) for ends in expected]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["zero", r"\$"]
    assert [text.get_fontweight() for text in axes.get_yticklabels()] == ["normal", "bold"]
    axes.figure.draw_without_rendering()
    assert not any(text.get_text().startswith("−") for text in axes.get_xticklabels())  # a leak is no negative number
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["all there is to know"]
    assert 2.3 in [line.get_xdata()[0] for line in axes.lines]
    assert not overlaps(axes.figure)


def test_an_invention_below_0_does_not_look_like_a_leak():
    axes = ab.plots.new_figure(columns=1, height=3.5).axes[0]
    leak = (torch.tensor([0.0, -0.2]), torch.tensor([0.0, 0.3]))
    invention = (torch.tensor([-0.3, 140.0]), torch.tensor([0.1, 1.0]))
    draw_leak_and_invention(axes, ["zero", "mean"], leak, invention, limit=1.0)
    assert [bar.get_width() for bar in axes.patches[:4]] == pytest.approx([0, 0, 0, 140])
    expected = [[0, 0], [-0.4, 0], [0, 0], [138, 142]]
    assert whiskers(axes) == [pytest.approx(ends) for ends in expected]
    assert axes.get_xscale() == "symlog"
    assert axes.xaxis.get_transform().linthresh == 1  # linear up to all there is to know
    assert axes.get_xlim()[0] < -0.4  # there is room for markers at the end


def test_markers_of_absences_that_leak_nothing_do_not_lie_on_the_edge():
    axes = ab.plots.new_figure(columns=1, height=3.5).axes[0]
    nothing = torch.zeros(2)
    draw_leak_and_invention(axes, ["zero", "mean"], (nothing, nothing), (torch.tensor([1.0, 2.0]), nothing))
    assert axes.get_xlim()[0] < 0


def test_lengths_that_are_far_apart_have_a_logarithmic_scale_and_errors_by_factors():
    near, far = ab.plots.new_figure(columns=2, height=3.5).axes
    draw_lengths(near, ["zero", "mean"], (torch.tensor([20.0, 40.0]), torch.tensor([0.0, 30.0])))
    assert near.get_xscale() == "linear"
    assert near.get_xlim()[0] == 0
    factor = math.exp(2 * 30 / 40)
    assert whiskers(near)[1] == pytest.approx([40 / factor, 40 * factor], rel=1e-4)  # 40 − 2 · 30 is no length
    draw_lengths(far, ["zero", "mean"], (torch.tensor([2.0, 400.0]), torch.tensor([0.2, 40.0])))
    assert far.get_xscale() == "log"
    assert far.get_xlim()[0] == 1
    assert not overlaps(near.figure)


def test_the_masking_curve_shows_what_is_left_without_inventions():
    axes = ab.plots.new_figure(columns=1, height=3.5).axes[0]
    scores = {"zero": torch.tensor([0.5, 0.1]), "mean": torch.tensor([9.0, 0.1])}
    recalibrated = {"zero": torch.tensor([0.4, 0.1]), "mean": torch.tensor([0.6, 0.1])}
    draw_masking_curve(axes, torch.tensor([0, 4]), scores, prior=0.7, best=0, recalibrated=recalibrated)
    drawn = [line.get_ydata().tolist() for line in axes.lines[:4]]
    expected = [[0.5, 0.1], [0.4, 0.1], [9, 0.1], [0.6, 0.1]]
    assert drawn == [pytest.approx(line) for line in expected]
    assert axes.get_yscale() == "symlog"
    widths = [line.get_linewidth() for line in axes.lines[:4]]
    assert widths[0] > widths[2] > widths[1] == widths[3]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["zero", "mean", "without inventions", "prior: knows nothing"]


def test_the_picture_of_an_audit_tells_leak_invention_length_and_score():
    audit = results.audit()
    figure = audit.plot()
    order = list(audit.order)
    left, middle, right = figure.axes
    count = len(order)
    invention = [bar.get_width() for bar in left.patches[count : 2 * count]]
    assert max(invention) > 0.5  # so that the next line can fail
    assert invention == pytest.approx(audit.invention.value[order].clamp_min(0).tolist())
    assert [bar.get_width() for bar in middle.patches[:count]] == pytest.approx(audit.length.value[order].tolist())
    scores = audit.curve.scores.mean(1)[order]
    recalibrated = scores - audit.curve.inventions[order]
    expected = [line for pair in zip(scores.tolist(), recalibrated.tolist(), strict=True) for line in pair]
    assert [line.get_ydata().tolist() for line in right.lines[: 2 * count]] == [
        pytest.approx(one) for one in expected
    ]
    assert figure.get_suptitle().replace("\n", " ") == audit.verdict[0]
    assert left.get_xlabel() == "leaks ◂ share of the variance ▸ invents"


def test_the_prior_is_drawn_where_samples_of_rare_classes_are_left_out():
    audit = results.audit()
    prior = audit.curve.prior.clone()
    prior[0] = torch.nan
    audit = replace(audit, measured_curve=replace(audit.curve, prior=prior))
    names = [text.get_text() for text in audit.plot().axes[2].get_legend().get_texts()]
    assert names[-1] == "prior: knows nothing"


def test_what_an_old_audit_did_not_measure_is_said_to_be_missing():
    old = ab.load(OLD_FILES / "audit_format3.safetensors")
    assert old.fully_masked is None  # so that the next lines can fail
    left, middle, right = old.plot().axes
    assert [text.get_text() for text in left.texts] == ["not measured"]
    assert [text.get_text() for text in middle.texts] == []
    assert [text.get_text() for text in right.texts] == ["not measured"]
    nothing = torch.full((2,), torch.nan)
    draw_lengths(axes := ab.plots.new_figure(columns=1).axes[0], ["zero", "mean"], (nothing, nothing))
    assert [text.get_text() for text in axes.texts] == ["not measured"]


def test_a_long_title_is_wrapped_and_whole():
    title = " ".join(f"word{number}" for number in range(60)) + " $"
    figure = ab.plots.new_figure(columns=1, width=5.0, title=title)
    figure.draw_without_rendering()
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert figure.get_suptitle().replace("\n", " ") == title.replace("$", r"\$")
    assert float(figure.get_size_inches()[1]) > 5.2  # the panels keep their height


def test_eight_methods_with_long_names_do_not_lie_on_each_other():
    x, y = torch.rand(30, 4), torch.arange(30) % 3
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    methods = {f"a constant with quite a long name, number {number}": float(number) for number in range(8)}
    figure = ab.audit(model, x, y, methods, draws=1).plot()
    assert not overlaps(figure)


def test_ticks_of_methods_that_are_far_apart_do_not_lie_on_each_other():
    axes = ab.plots.new_figure(columns=1, width=2.6, height=3.0).axes[0]
    leak = torch.tensor([0.004, 0.0, 0.0, 0.0])
    invention = torch.tensor([0.002, 0.002, 0.003, 140.0])
    draw_leak_and_invention(axes, ["a", "b", "c", "d"], (leak, leak / 3), (invention, invention / 3))
    assert axes.get_xscale() == "symlog"
    assert not overlaps(axes.figure)


@pytest.mark.parametrize("players", [1, 2, 10])
def test_no_labels_lie_on_each_other_or_leave_the_picture(players):
    explanation = explain(players, samples=1)
    pictures = (
        "overview",
        "waterfall",
        "bars",
        "interaction_list",
        "order_profile",
        "and_or_graph",
        "upset",
        "network",
    )
    for picture in (*pictures, "beeswarm"):
        assert not overlaps(getattr(ab.plots, picture)(explanation)), picture


def test_pictures_can_be_told_apart_in_grey(six):
    grey = draw(ab.plots.bars(six))
    assert grey.min() < 130  # something is there
    shades = [
        np.asarray([int(c[i : i + 2], 16) for i in (1, 3, 5)]) @ [0.299, 0.587, 0.114] for c in (RAISES, LOWERS)
    ]
    assert abs(shades[0] - shades[1]) > 60


def test_a_constant_model_is_drawn_as_constant():
    """No value, effect or strength differs from 0, on scales that have no logarithm of 0."""
    constant = ab.explain(lambda rows: 0 * rows[:, 0] + 1, randn(2, 4), absence=ab.Baseline(0.0))
    drawn = {name: getattr(ab.plots, name)(constant) for name in ("overview", "order_profile", "sparsity")}
    for figure in drawn.values():
        figure.draw_without_rendering()
    for axes in drawn["overview"].axes + drawn["order_profile"].axes[:1]:
        assert all(abs(bar.get_width() * bar.get_height()) < 1e-12 for bar in axes.patches)
    for line in drawn["order_profile"].axes[1].lines[:4]:
        assert line.get_ydata().tolist() == pytest.approx([0] * 4, abs=1e-12)
    assert drawn["sparsity"].axes[0].get_legend().get_texts()[0].get_text() == "0 salient"
    graph = ab.plots.and_or_graph(constant).axes[0]
    graph.figure.draw_without_rendering()
    assert not graph.lines
    assert "none of 15 interactions exceeds the rounding error" in graph.get_title()
    assert "value 1" in [text.get_text() for text in graph.texts]


def test_long_labels_keep_their_ends():
    assert label("short") == "short"
    assert len(label(LONG[:-1], 20)) == 20
    assert label(LONG, 20) == f"{LONG[:10]}…{LONG[-9:]}".replace("$", r"\$")


@pytest.mark.parametrize(
    ("picture", "arguments", "sentence"),
    [
        ("waterfall", {"sample": 2}, "sample must lie between 0 and 1"),
        ("bars", {"most": 0}, "most must be at least 1"),
        ("interaction_list", {"strongest": 0}, "strongest must be at least 1"),
        ("image_heat_map", {}, r"explanation must hold images.*Draw plots.waterfall instead"),
        ("sparsity", {"sample": 5}, "sample must lie between 0 and 1"),
    ],
)
def test_a_mistake_gets_a_sentence(six, picture, arguments, sentence):
    with pytest.raises(ab.AbsentiaError, match=sentence):
        getattr(ab.plots, picture)(six, **arguments)


def test_what_is_not_a_result_or_has_no_interactions_gets_a_sentence(sampled):
    with pytest.raises(ab.AbsentiaError, match="explanation must be exact for a plot of interactions"):
        ab.plots.and_or_graph(sampled)
    with pytest.raises(ab.AbsentiaError, match="results must hold at least one explanation"):
        ab.plots.sparsity({})
    with pytest.raises(ab.AbsentiaError, match="learned must be a LearnedBaseline"):
        unchecked(ab.plots.baselines)(ab.Baseline(0.0))


def test_without_matplotlib_the_extra_is_named(six, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ab.AbsentiaError, match=r"pip install 'absentia\[plot\]'"):
        six.plot()


def test_rows_and_categories_are_shown_by_their_names():
    players = ab.Players.features(["city", "age"], {"city": ["Bern", "Oslo", "Rome"]})
    frame = pd.DataFrame({"city": [2.0, 1.0], "age": [30.0, -1.5]}, index=["r17", "r18"])
    explanation = ab.explain(lambda rows: 2 * rows, frame, [0, 1], players=players, absence=0.0, class_names="ab")
    figure = ab.plots.waterfall(explanation, sample=0)
    assert "city = Rome" in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "row r17, a; " in explanation.plot().get_suptitle()
    other = [text.get_text() for text in ab.plots.waterfall(explanation, sample=1).axes[0].get_yticklabels()]
    assert "age = −1.5" in other


def test_notebooks_show_a_figure_as_a_picture():
    figure = ab.plots.new_figure(columns=1, height=2.0)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_categories_of_a_learned_baseline_are_written_and_have_no_box():
    players = ab.Players.features(["city", "age"], {"city": ["Bern", "Oslo", "Rome"]})
    rows = torch.stack([torch.arange(30) % 3, torch.arange(30)], dim=1).double()
    learned = ab.learn_baseline(
        lambda rows: (rows - 1).prod(1), rows, players=players, categorical=[0], options=ab.LearningOptions(samples=9)
    )
    axes = ab.plots.baselines(learned).axes[0]
    assert axes.texts[0].get_text().partition(" (")[0] in ("Bern", "Oslo", "Rome")
    marker = axes.lines[-1].get_xdata()
    assert np.isnan(marker[0])
    assert np.isfinite(marker[1])
    data = baseline_section(learned).data
    assert data["texts"][0][0] in ("Bern", "Oslo", "Rome")
    assert data["quantiles"][0] == [None] * 7


def test_a_figure_that_cannot_be_written_gets_a_sentence(tmp_path, monkeypatch):
    found = ab.explain(lambda rows: rows.sum(1), torch.ones(1, 2), absence=0.0)
    with pytest.raises(ab.AbsentiaError, match=r"one.xyz can't be written: Format 'xyz' is not supported"):
        found.plot(path=tmp_path / "one.xyz")
    found.plot(path=tmp_path / "one")
    assert [one.name for one in tmp_path.iterdir()] == ["one.png"]

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ab.AbsentiaError, match=r"two.svg can't be written: disk full"):
        found.plot(path=tmp_path / "two.svg")
