"""What figures share: colours, labels, titles and files."""

import os
import sys

import pytest
import torch

import absentia as ab
from absentia import AbsentiaError
from absentia.plots.absence_plots import draw_leak_and_invention, draw_masking_curve
from absentia.plots.look import LOOKS, label
from drawn_results import LONG


def test_without_matplotlib_drawing_says_what_to_install(monkeypatch):
    from absentia import ValueTable, harsanyi, plots

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(AbsentiaError, match=r"pip install 'absentia\[plot\]'"):
        plots.sparsity(harsanyi(ValueTable([0.0, 1.0])))


def test_a_method_has_the_same_colour_whatever_its_place(six):
    for names in (["zero", "own", "mean"], ["mean", "zero", "own"]):
        lines = ab.plots.sparsity(dict.fromkeys(names, six)).axes[0].lines
        looks = {name: (line.get_color(), line.get_marker()) for name, line in zip(names, lines, strict=True)}
        assert looks == {"zero": LOOKS["zero"], "mean": LOOKS["mean"], "own": LOOKS["median"]}


def test_a_line_that_can_not_be_drawn_has_no_legend():
    left, right = ab.plots.new_figure(columns=2, height=3.5).axes
    figures = (torch.tensor([0.5, 1.0]), torch.tensor([0.1, 0.1]))
    draw_leak_and_invention(left, ["zero", "mean"], figures, figures, limit=float("inf"))
    assert left.get_legend() is None
    nothing = float("nan")
    draw_masking_curve(right, torch.tensor([0, 1]), {"zero": torch.ones(2), "mean": torch.ones(2)}, prior=nothing)
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["zero", "mean"]


def test_a_long_title_is_wrapped_and_whole():
    title = " ".join(f"word{number}" for number in range(60)) + " $"
    figure = ab.plots.new_figure(columns=1, width=5.0, title=title)
    figure.draw_without_rendering()
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert figure.get_suptitle().replace("\n", " ") == title.replace("$", r"\$")
    assert float(figure.get_size_inches()[1]) > 5.2  # the panels keep their height


def test_long_labels_keep_their_ends():
    assert label("short") == "short"
    assert len(label(LONG[:-1], 20)) == 20
    assert label(LONG, 20) == f"{LONG[:10]}…{LONG[-9:]}".replace("$", r"\$")


def test_without_matplotlib_the_extra_is_named(six, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ab.AbsentiaError, match=r"pip install 'absentia\[plot\]'"):
        six.plot()


def test_notebooks_show_a_figure_as_a_picture():
    figure = ab.plots.new_figure(columns=1, height=2.0)
    assert figure._repr_png_().startswith(b"\x89PNG")


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
