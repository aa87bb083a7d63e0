"""The picture of an audit."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import absentia as ab
import small_results as results
from absentia.plots.absence_plots import draw_leak_and_invention, draw_lengths, draw_masking_curve
from drawn_results import overlaps, whiskers

OLD_FILES = Path(__file__).parents[1] / "old_files"


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


@pytest.mark.slow
def test_eight_methods_with_long_names_do_not_lie_on_each_other():
    x = torch.rand(30, 4)
    y = torch.arange(30) % 3
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
