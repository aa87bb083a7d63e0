"""Heat maps of images."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import absentia as ab


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


def test_signs_are_written_on_heat_maps_of_many_players(monkeypatch):
    monkeypatch.setattr("absentia.plots.image_plots._MOST_NUMBERS", 4)
    players = ab.Players.grid((3, 10, 10), cells=(4, 3))
    x = torch.rand(1, 3, 10, 10, generator=torch.Generator().manual_seed(0)).double()
    signs = torch.ones(3, 10, 10).double()
    signs[:, :5] = -1
    explanation = ab.explain(lambda rows: (rows * signs).sum((1, 2, 3)), x, players=players, absence=ab.Baseline(0.0))
    axes = ab.plots.image_heat_map(explanation).axes[1]
    assert {text.get_text() for text in axes.texts if text.get_position()[1] < 5} == {"−"}
    assert {text.get_text() for text in axes.texts if text.get_position()[1] >= 5} == {"+"}
