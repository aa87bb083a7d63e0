"""Learned baselines and the history of their loss."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import absentia as ab
import small_results as results
from absentia.learning import LearningOptions
from absentia.learning.value_profiles import ProfilePath, ValueProfiles
from absentia.plots.look import LOOKS
from absentia.report.baseline_section import baseline_section
from drawn_results import overlaps
from known_games import mlp
from seeded_draws import randn

SCRIPT = "<script>alert(1)</script>"


QUICK = LearningOptions(steps=1, rows_per_comparison=2**8, samples=8)


@pytest.fixture(scope="module")
def data():
    return randn(50, 3) * torch.tensor([1.0, 10.0, 0.1]) + torch.tensor([0.0, 5.0, 0.0])


@pytest.fixture(scope="module")
def learned(data):
    players = ab.Players.groups({SCRIPT: [0], "pair": [1, 2]}, features=3)
    return ab.learn_baseline(mlp(3), data, players=players, options=QUICK)


def test_the_picture_puts_values_at_their_place_in_the_range_of_the_data(learned):
    axes = ab.plots.baselines(learned).axes[0]
    low = learned.quantiles[0]
    high = learned.quantiles[-1]
    median, marks = axes.lines[:2]
    assert marks.get_xdata().tolist() == pytest.approx(((learned.values - low) / (high - low)).tolist())
    assert median.get_xdata().tolist() == pytest.approx(((learned.quantiles[3] - low) / (high - low)).tolist())
    boxes = axes.patches[3:6]  # the middle half, after 5 to 95 %
    widths = (learned.quantiles[4] - learned.quantiles[2]) / (high - low)
    assert [box.get_width() for box in boxes] == pytest.approx(widths.tolist())
    assert [label.get_text() for label in axes.get_yticklabels()] == [SCRIPT, "pair 0", "pair 1"]
    values = [text.get_text().partition(" ")[0] for text in axes.texts]
    assert values == [f"{value:.4g}".replace("-", "−") for value in learned.values.tolist()]


def test_ranges_are_bands_and_other_minima_are_hollow_marks():
    """The data go from −2 to 2; the loss is as low from −1 to 0, where the value is, and at 1.5."""
    points = torch.tensor([-2.0, -1.0, 0.0, 1.0, 1.5, 2.0]).double()
    profiles = ValueProfiles(
        points=points.expand(1, 2, -1),
        excess=torch.tensor([[[1.0, 0.0, 0.0, 1.0, 0.0, 1.0], [0.0] * 6]]).double(),
        errors=torch.zeros(1, 2, 6).double(),
        learned=torch.tensor([[-0.5, 0.3]]).double(),
        losses=torch.ones(1).double(),
        additive=torch.zeros(2, dtype=torch.bool),
        paths=(ProfilePath.VALUES,) * 2,
        reasons=(None, None),
        rounding=1e-9,
        samples=20,
        evaluations=100,
    )
    shown = results.learned(torch.tensor([-0.5, 0.3]).double(), ("a", "b"), profiles=profiles)
    axes = ab.plots.baselines(shown).axes[0]
    labels = axes.get_legend_handles_labels()[1]
    assert "loss as low" in labels
    band = next(lines for lines in axes.collections if lines.get_label() == "loss as low")
    assert [segment[:, 0].tolist() for segment in band.get_segments()] == [[0.25, 0.5], [0.0, 1.0]]
    minima = next(line for line in axes.lines if line.get_label() == "other minimum, as low")
    assert (minima.get_xdata().tolist(), minima.get_ydata().tolist()) == ([0.875], [0])
    assert [text.get_text() for text in axes.texts] == ["−0.5 (several minima)", "0.3 (undetermined)"]


def test_constant_entries_are_drawn(learned):
    quantiles = learned.quantiles.clone()
    values = learned.values.clone()
    quantiles[:, 1], values[1] = 7.0, 7.0
    assert replace(learned, values=values, quantiles=quantiles).plot().axes[0].lines[1].get_xdata()[1] == 0


def test_each_class_has_a_look_and_images_are_images(learned, tmp_path):
    values = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0)).double()
    kind = {"share": "class", "classes": torch.tensor([0, 1]), "profiles": None}
    players = ab.Players.grid((1, 4, 4), (2, 2))
    quantiles = values[:1].expand(7, 1, 4, 4)
    images = replace(learned, values=values, players=players, quantiles=quantiles, **kind)
    figure = images.plot(tmp_path / "images.png")
    assert [axes.get_title() for axes in figure.axes][:3] == ["class 0", "class 1", "median of the data"]
    assert np.allclose(figure.axes[1].images[0].get_array(), images.values[1, 0])
    assert (tmp_path / "images.png").stat().st_size > 1000
    axes = replace(learned, values=randn(2, 3), **kind).plot().axes[0]
    assert len({line.get_marker() for line in axes.lines}) == 3  # median and two classes, for grey


def test_the_history_is_drawn_as_it_went(learned):
    line = ab.plots.learning_history(learned).axes[0].lines[0]
    assert line.get_xdata().tolist() == learned.history[:, 0].tolist()
    assert line.get_ydata().tolist() == learned.history[:, 1].tolist()


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
        low = float(learned.values.min())
        high = float(learned.values.max())
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
