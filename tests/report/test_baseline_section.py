"""The section of a learned baseline."""

from dataclasses import replace

import torch

import small_results as results
from absentia.report.baseline_section import baseline_section
from rendered_pages import render


def test_entries_of_a_baseline_are_named_by_their_players():
    found = results.learned(results.draw(4), ("a", "b"), torch.tensor([0, 1, 0, -1]))
    assert baseline_section(found).data["names"] == ["a 0", "b", "a 1"]  # the last is always present


def test_baselines_of_classes_and_images_and_old_files_have_a_section():
    by_class = results.learned(results.draw(2, 5), share="class", classes=torch.tensor([3, 7]))
    assert baseline_section(by_class).data["owners"] == ["class 3", "class 7"]
    assert len(baseline_section(by_class).data["values"]) == 2
    image = baseline_section(results.image_baseline())
    assert image.data["images"][0].startswith("data:image/png")
    assert image.data["median"].startswith("data:image/png")
    old = baseline_section(results.learned(quantiles=None, players=None))  # as in files of the first format
    assert "quantiles" not in old.data
    assert old.data["names"] == ["x0", "x1", "x2", "x3", "x4"]


def test_a_long_history_is_thinned_and_keeps_its_last_row():
    rows = torch.arange(1003.0).double()  # not a multiple of the rows that are skipped
    kept = baseline_section(results.learned(history=torch.stack([rows, 2000 - rows], dim=1))).data["history"]
    assert len(kept) <= 301
    assert kept[0] == [0, 2000, "0 evaluations: 2000"]
    assert kept[-1] == [1002, 998, "1,002 evaluations: 998"]


def test_the_caption_of_a_history_says_what_is_drawn(tmp_path):
    learned = results.learned()
    faithful = replace(learned, record=replace(learned.record, loss="faithful"))
    assert "The lowest loss so far" in render(learned, tmp_path).words()
    assert "A running mean over the steps" in render(faithful, tmp_path).words()
    assert "lowest loss" not in render(faithful, tmp_path).words()
