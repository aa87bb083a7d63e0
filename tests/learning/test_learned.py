"""What a learned baseline keeps and shows: the data's quantiles, a table, a picture, a notebook's view, old files."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, LearnedBaseline
from absentia.absences import Absence
from absentia.data import QUANTILES
from absentia.learning import LearningOptions
from absentia.plots import learning_history
from absentia.plots.learned_entries import entries_of
from absentia.storage import read_tensors, write_tensors
from known_games import mlp
from known_product import product, uniform
from seeded_draws import randn
from small_learning import learn

SCRIPT = "<script>alert(1)</script>"
OLD_FILES = Path(__file__).parents[1] / "old_files"
QUICK = LearningOptions(steps=1, rows_per_comparison=2**8, samples=8)


@pytest.fixture(scope="module")
def data():
    return randn(50, 3) * torch.tensor([1.0, 10.0, 0.1]) + torch.tensor([0.0, 5.0, 0.0])


@pytest.fixture(scope="module")
def learned(data):
    players = ab.Players.groups({SCRIPT: [0], "pair": [1, 2]}, features=3)
    return ab.learn_baseline(mlp(3), data, players=players, options=QUICK)


def test_it_carries_the_quantiles_of_all_data_and_the_labels(learned, data):
    assert np.allclose(learned.quantiles, np.quantile(data.numpy(), QUANTILES, axis=0))
    assert learned.players.labels.tolist() == [0, 1, 1]
    assert learned.record.readout == "the output as it is"
    assert learned.record.torch_version == torch.__version__


def test_the_frame_has_a_row_for_each_entry(learned):
    frame = learned.to_frame()
    quantiles = ["0 %", "5 %", "25 %", "50 %", "75 %", "95 %", "100 %"]
    assert list(frame.columns) == ["entry", "player", "value", *quantiles, "undetermined", "kind", "low", "high"]
    assert frame["player"].tolist() == [SCRIPT, "pair", "pair"]
    assert frame["value"].tolist() == learned.values.tolist()
    assert frame["50 %"].tolist() == learned.quantiles[3].tolist()


def test_the_frame_of_classes_and_samples_says_whose_each_row_is(learned):
    own = replace(learned, values=randn(2, 3), share="class", classes=torch.tensor([2, 4]), profiles=None)
    frame = own.to_frame()
    assert frame["class"].tolist() == [2, 2, 2, 4, 4, 4]
    assert frame["value"].tolist() == own.values.flatten().tolist()
    assert frame["player"].tolist() == [SCRIPT, "pair", "pair"] * 2
    assert replace(own, share="sample", classes=None).to_frame()["sample"].tolist() == [0, 0, 0, 1, 1, 1]


def test_undetermined_players_are_marked(learned):
    ignored = replace(learned, record=replace(learned.record, undetermined=("pair",), undetermined_numbers=(1,)))
    assert ignored.to_frame()["undetermined"].tolist() == [False, True, True]
    assert [text.get_text()[-15:] for text in ignored.plot().axes[0].texts[1:]] == [" (undetermined)"] * 2
    assert "yes" in ignored._repr_html_()


def test_notebooks_see_names_as_text(learned):
    html = learned._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "converged" in html


def test_many_values_are_cut_short_in_notebooks(learned):
    numbers = torch.arange(25)
    players = ab.Players.features([str(number) for number in numbers])
    html = replace(learned, values=randn(25), quantiles=randn(7, 25), players=players, profiles=None)._repr_html_()
    assert "… and 5 more values" in html
    assert html.count("<tr>") <= 20 + 1 + 6


def test_what_is_saved_is_loaded(learned, tmp_path):
    learned.save(tmp_path / "file")
    loaded = ab.load(tmp_path / "file")
    assert torch.equal(loaded.quantiles, learned.quantiles)
    assert torch.equal(loaded.players.labels, learned.players.labels)
    assert loaded.names == learned.names
    assert loaded.record == learned.record
    assert repr(loaded) == repr(learned)


def test_files_of_the_second_format_are_loaded():
    loaded = ab.load(OLD_FILES / "baseline.safetensors")
    assert loaded.names == ("x0", "x1", "x2")
    assert loaded.players.labels.tolist() == [0, 1, 2]
    assert not loaded.players.integer
    assert loaded.quantiles.shape == (7, 3)
    assert loaded.record.readout == "not recorded"
    assert loaded.bind(torch.zeros(2, 3).double()).values[0, 0].tolist() == loaded.values.tolist()
    by_class = ab.load(OLD_FILES / "baseline_class.safetensors")
    assert by_class.needs_classes
    assert torch.equal(by_class.of([1]).values, by_class.values[1:])
    assert by_class.to_frame()["class"].tolist() == [0, 0, 0, 1, 1, 1]


def test_files_of_the_first_format_are_loaded_without_what_they_lack():
    loaded = ab.load(OLD_FILES / "baseline_format1.safetensors")
    assert torch.equal(loaded.values, ab.load(OLD_FILES / "baseline.safetensors").values)
    assert loaded.quantiles is None
    assert loaded.record.torch_version == "unknown"
    frame = loaded.to_frame()
    assert all(math.isnan(value) for value in frame["50 %"])
    assert frame["player"].tolist() == ["x0", "x1", "x2"]
    assert len(loaded.plot().axes[0].lines) == 1  # the values alone


def test_players_of_several_entries_keep_their_names_in_files_of_the_first_format(tmp_path):
    tensors, header = read_tensors(OLD_FILES / "baseline_format1.safetensors")
    write_tensors(tmp_path / "old", tensors, header | {"names": ["a", "b"]})
    loaded = ab.load(tmp_path / "old")
    assert loaded.players is None
    assert loaded.names == ("a", "b")
    assert loaded.to_frame()["player"].tolist() == ["?"] * 3
    loaded.save(tmp_path / "new")
    again = ab.load(tmp_path / "new")
    assert again.players is None
    assert again.names == ("a", "b")


def test_it_is_an_absence_that_may_need_classes(learned):
    assert not learned.needs_classes
    with pytest.raises(ab.AbsentiaError, match=r"share must be 'class' to pick by class\. Got 'all'"):
        learned.of([0])


def outcome(learned, loss, compared, **record):
    """Return what is said of a baseline with these losses."""
    record = {"compared": compared, "kept_aside": 12, "samples": 60, "starts": ("mean",)} | record
    changed = replace(learned, loss=loss, share=record.pop("share", "all"), record=replace(learned.record, **record))
    return changed.outcome


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("median", "the median"),
        ("mean", "the mean"),
        ("zero", "zero"),
        ("the middle", "the middle of the bounds"),
        ("2", "the start 2"),
    ],
)
def test_usual_values_are_not_called_learned(learned, name, called):
    said = outcome(learned, 1.0, {"learned": 2.0, name: 1.0}, chosen=name)
    assert said == f"Nothing better than {called} was found: this is {called}."


def test_learned_values_say_by_how_much_they_beat_the_best_usual_ones(learned):
    said = outcome(learned, 3.0, {"learned": 3.0, "mean": 5.0, "median": 4.0}, chosen="learned")
    assert said == (
        "The learned values beat the best usual baseline, the median, by 25 % on 12 samples kept aside: "
        "their loss is 3 rather than 4."
    )
    several = outcome(
        learned,
        3.0,
        {"learned from a": 3.0, "learned from b": 3.5, "zero": 4.0},
        chosen="learned from a",
        starts=("a", "b"),
        kept_aside=60,
    )
    assert several.startswith("The learned values beat the best usual baseline, zero, by 25 % on the same 60 samples")


def test_several_baselines_say_how_many_are_learned(learned):
    losses = {"learned": 2.0, "mean": 3.0, "median": 4.0}
    mixed = outcome(learned, 1.5, losses, share="class", picked={"learned": 2, "median": 1})
    assert mixed == "Learned values are used for 2 of 3 classes; nothing better was found than the median for 1."
    usual = outcome(learned, 1.5, losses, share="sample", picked={"mean": 2, "median": 1})
    assert usual == (
        "Nothing better than usual baselines was found for the 3 samples: these are the mean for 2, the median for 1."
    )
    all_learned = outcome(learned, 2.0, losses, share="class", picked={"learned": 3})
    assert all_learned == (
        "The learned values beat usual baselines for all 3 classes on 12 samples kept aside: their mean loss is 2; "
        "that of the best usual one, the mean, is 3."
    )
    no_time = outcome(learned, math.nan, {}, share="class", picked={"mean": 3})
    assert no_time == "There was no time to compare baselines of the 3 classes: these are the mean for 3."


def test_what_came_out_is_said_first_and_everywhere(data, tmp_path):
    far_off = LearningOptions(steps=3, rate=50.0, rows_per_step=2**8)
    found = ab.learn_baseline(mlp(3), data, options=far_off)
    assert found.record.chosen in ("mean", "median", "zero")
    said = found.outcome
    assert said.startswith("Nothing better than ")
    assert repr(found).splitlines()[:2] == [said, "LearnedBaseline of shape (3,), one for all samples"]
    assert said in found._repr_html_()
    page = ab.write_report([found], tmp_path / "report.html").read_text()
    assert f"{said} The search converged" in page
    assert "The learned baseline" not in page
    found.save(tmp_path / "base.absentia")
    assert ab.load(tmp_path / "base.absentia").outcome == said
    explanation = ab.explain(mlp(3), data[:2], absence=found)
    assert explanation.record.absence == "LearnedBaseline of shape (3,), one for all samples"


def test_each_class_names_its_own_loss(data):
    """The loss of several baselines is that of the best for each, not that of one candidate."""
    y = (data[:, 0] > 0).long()
    found = ab.learn_baseline(mlp(3), data, y, share="class", options=LearningOptions(steps=3, rows_per_step=2**8))
    assert sum(found.record.picked.values()) == 2
    first = f"{found.loss:.3g} on {found.record.kept_aside} samples kept aside; with one candidate for all: learned "
    assert repr(found).splitlines()[2].split("loss          ")[1].startswith(first)


@pytest.mark.slow
def test_players_of_the_same_name_are_told_apart_by_their_number(tmp_path):
    x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    options = LearningOptions(steps=5)
    model = lambda rows: (rows[:, 1] - 0.25) * (rows[:, 2] - 0.5)  # noqa: E731
    named, same = (
        ab.learn_baseline(model, pd.DataFrame(x.numpy(), columns=names), options=options, loss="interactions")
        for names in (["a", "b", "c"], ["a", "a", "c"])
    )
    assert torch.equal(named.values, same.values)
    assert (named.record.undetermined, same.record.undetermined) == (("a",), ("a",))
    assert same.to_frame()["undetermined"].tolist() == [True, False, False]
    assert entries_of(same, most_entries=10).undetermined == [True, False, False]
    table = pd.DataFrame(x[:8].numpy(), columns=["a", "a", "c"])
    each = ab.learn_baseline(model, table, options=options, loss="interactions", share="sample")
    assert (each.record.undetermined, each.to_frame()["undetermined"].tolist()) == (("a",), [True, False, False] * 8)
    each.save(tmp_path / "each.ab")
    assert ab.load(tmp_path / "each.ab").undetermined == [True, False, False]
    with pytest.raises(AbsentiaError, match="'a', the name of two players"):
        ab.Players.features(["a", "a", "c"]).only(["a"])
    with pytest.raises(AbsentiaError, match="'a', the name of two features"):
        ab.Players.groups({"g": ["a"]}, ["a", "a", "c"])


@pytest.mark.slow
def test_it_is_an_absence_that_prints_saves_and_loads(tmp_path):
    learned = learn(product, uniform(), steps=10)
    assert isinstance(learned, Absence)
    path = tmp_path / "base.absentia"
    learned.save(path)
    loaded = LearnedBaseline.load(path)
    assert torch.equal(loaded.values, learned.values)
    assert torch.equal(loaded.history, learned.history)
    assert loaded.record == learned.record
    assert loaded.loss == learned.loss
    assert repr(loaded) == repr(learned)
    assert os.listdir(tmp_path) == ["base.absentia"]
    for word in ("loss", "converged", "starts", "evaluations"):
        assert word in repr(learned)
    assert learning_history(learned).axes[0].lines


def test_files_that_are_not_ours_get_a_sentence(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(AbsentiaError, match="path must name a file that exists"):
        LearnedBaseline.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(AbsentiaError, match="path must be a file that absentia saved"):
        LearnedBaseline.load(path)
    write_tensors(path, {"values": torch.zeros(1)}, {"format": 99, "record": {"version": "9.9"}})
    with pytest.raises(AbsentiaError, match=r"format 99 by absentia 9.9 instead. Install a newer absentia"):
        LearnedBaseline.load(path)
