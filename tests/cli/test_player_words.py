"""Players from words and files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.cli.player_words import load_players
from absentia.cli.raw_data import RawData
from absentia.cli.sample_files import make_samples
from command_tables import samples


def images(shape=(1, 4, 4)):
    return make_samples(RawData(np.random.default_rng(0).random((5, *shape)), None), nn.Flatten())


def test_players_are_those_of_the_library(folder):
    table = samples()
    assert load_players(None, table).names == ("a", "b", "c")
    assert load_players("features", samples("data.npz", None)).names == ("x0", "x1", "x2")
    groups = load_players("groups.json", table)
    assert groups.names == ("both", "other")
    assert groups.labels.tolist() == [0, 1, 0]
    Path("twice.json").write_text('{"g": ["a"], "g": ["b"], "h": ["c"]}')
    with pytest.raises(AbsentiaError, match=r"players must name each group once. Got g, g, h instead"):
        load_players("twice.json", table)
    assert load_players("groups:groups.json", table).names == groups.names
    grid = ab.Players.grid((1, 4, 4), cells=(2, 4))
    assert torch.equal(load_players("grid:2x4", images()).labels, grid.labels)
    assert load_players("tokens", table).integer
    assert load_players("tokens", images((4, 6))).labels.shape == (4, 6)


def test_maps_of_labels_are_players_whatever_the_file(folder):
    from PIL import Image

    labels = np.repeat(np.arange(4), 4).reshape(4, 4)
    labels[0, 0] = -1
    np.save("labels.npy", labels)
    np.savez("labels.npz", labels)
    np.savetxt("labels.csv", labels, delimiter=",", fmt="%d")
    Image.fromarray(np.where(labels < 0, 255, labels).astype(np.uint8)).save("labels.png")
    for name in ("labels.npy", "labels.npz", "labels.csv", "labels.png"):
        found = load_players(name, images((3, 4, 4)))
        assert torch.equal(found.labels, torch.from_numpy(labels).expand(3, 4, 4))


@pytest.mark.parametrize(
    ("word", "shape", "message"),
    [
        (None, (2, 1, 4, 4), "be features, grid:7x7, tokens, or a file"),
        ("pixels", (1, 4, 4), "be features, grid:7x7, tokens, or a file"),
        ("grid", (1, 4, 4), "be two numbers"),
        ("grid:2", (1, 4, 4), "be two numbers"),
        ("grid:0x2", (1, 4, 4), "be two numbers"),
        ("grid:9x9", (1, 4, 4), "cells must lie between"),
        ("grid:2x2", (4,), r"that suits samples of shape \(4,\)"),
        ("tokens", (1, 4, 4), r"that suits samples of shape \(1, 4, 4\)"),
        ("missing.npy", (1, 4, 4), "name a file that exists"),
        ("broken.npy", (1, 4, 4), "be a file of labels that can be read"),
        ("broken.json", (4,), "map names to lists of columns"),
        ("list.json", (4,), "map names to lists of columns"),
        ("groups.json", (1, 4, 4), r"that suits samples of shape \(1, 4, 4\)"),
        ("groups.json", (4,), "hold features .* or their numbers 0 … 3"),
        ("half.npy", (1, 4, 4), "hold labels that are whole numbers"),
        ("small.npy", (1, 4, 4), r"have the shape of one sample, \(1, 4, 4\)"),
        ("gap.npy", (1, 4, 4), "without a gap"),
    ],
)
def test_what_is_no_player_gets_a_sentence(folder, word, shape, message):
    (folder / "broken.npy").write_bytes(b"nonsense")
    (folder / "broken.json").write_text("{")
    (folder / "list.json").write_text("[1]")
    np.save(folder / "half.npy", np.full((4, 4), 0.5))
    np.save(folder / "small.npy", np.zeros((2, 2), dtype=int))
    np.save(folder / "gap.npy", np.full((4, 4), 7))
    with pytest.raises(AbsentiaError, match=message):
        load_players(word, images(shape))
