"""Bars, waterfalls and overviews of explanations."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

import absentia as ab
from absentia.plots.look import LOWERS, NEUTRAL, RAISES
from drawn_results import explain, overlaps
from known_games import mlp
from seeded_draws import randn
from typechecker import unchecked


def draw(figure):
    """Return the pixels of the saved figure in grey."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=50)
    return np.asarray(Image.open(buffer).convert("L"))


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


@pytest.mark.slow
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
    base = float(six.base_values[0])
    output = float(six.outputs[0])
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


@pytest.mark.slow
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


@pytest.mark.slow
def whiskers_of(axes):
    return [drawn for drawn in axes.collections if isinstance(drawn, LineCollection)]


def test_sampled_attributions_of_many_samples_have_errors(sampled):
    axes = ab.plots.beeswarm(sampled, most=3).axes[0]
    order = sampled.shapley.values.abs().mean(0).argsort(descending=True)[:3].tolist()
    for player, whiskers in zip(order, whiskers_of(axes), strict=True):
        widths = [float(end[0] - start[0]) for start, end in whiskers.get_segments()]
        assert widths == pytest.approx((4 * sampled.shapley.errors[:, player]).tolist())
    axes = ab.plots.scatter(sampled, 4).axes[0]
    dots = axes.collections[0]
    (whiskers,) = whiskers_of(axes)
    heights = [float(end[1] - start[1]) for start, end in whiskers.get_segments()]
    assert heights == pytest.approx((4 * sampled.shapley.errors[:, 4]).tolist())
    assert len(dots.get_offsets()) == 2


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


@pytest.mark.slow
def test_the_overview_is_a_heat_map_for_images_and_three_panels_for_tables(six, sampled, pictured, tmp_path):
    titles = [axes.get_title() for axes in six.plot(tmp_path / "six.png", sample=1).axes]
    assert titles == ["Shapley values", "strongest 16 of 63 interactions", "strength by order"]
    assert (tmp_path / "six.png").stat().st_size > 10_000
    titles = [axes.get_title() for axes in sampled.plot().axes]
    assert titles[0] == "sampled Shapley values; ± 2 standard errors"
    assert titles[2] == f"strength by order ({sampled.interactions.basis})"
    assert len(replace(sampled, interactions=None).plot().axes) == 1
    assert pictured.plot(sample=1).axes[0].get_title() == "sample 1, class 1"
    with pytest.raises(ab.AbsentiaError, match="path must lie in a folder that exists"):
        six.plot(tmp_path / "nowhere" / "six.png")


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_not_a_result_or_has_no_interactions_gets_a_sentence(sampled):
    with pytest.raises(ab.AbsentiaError, match="explanation must be exact for a plot of interactions"):
        ab.plots.and_or_graph(replace(sampled, interactions=None))
    with pytest.raises(ab.AbsentiaError, match="results must hold at least one explanation"):
        ab.plots.sparsity({})
    with pytest.raises(ab.AbsentiaError, match="learned must be a LearnedBaseline"):
        unchecked(ab.plots.baselines)(ab.Baseline(0.0))


def test_rows_and_categories_are_shown_by_their_names():
    players = ab.Players.features(["city", "age"], {"city": ["Bern", "Oslo", "Rome"]})
    frame = pd.DataFrame({"city": [2.0, 1.0], "age": [30.0, -1.5]}, index=["r17", "r18"])
    explanation = ab.explain(lambda rows: 2 * rows, frame, [0, 1], players=players, absence=0.0, class_names="ab")
    figure = ab.plots.waterfall(explanation, sample=0)
    assert "city = Rome" in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "row r17, a; " in explanation.plot().get_suptitle()
    other = [text.get_text() for text in ab.plots.waterfall(explanation, sample=1).axes[0].get_yticklabels()]
    assert "age = −1.5" in other
