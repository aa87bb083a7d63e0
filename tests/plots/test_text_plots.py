"""Lines of text with the values of their tokens."""

import itertools
from dataclasses import replace

import pytest
import torch
from matplotlib.colors import to_rgb

import absentia as ab
import small_results as results
from absentia.plots.look import LOWERS, RAISES
from drawn_results import overlaps


def test_a_text_line_has_its_tokens_in_order_with_their_values_below():
    told = results.text_explanation()
    axes = ab.plots.text_line(told).axes[0]
    words = axes.texts[::2]
    numbers = axes.texts[1::2]
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


@pytest.mark.slow
def test_a_text_line_of_estimates_has_their_errors():
    players = ab.Players.tokens([f"word{number}" for number in range(26)])
    x = torch.ones(1, 26, dtype=torch.int64)
    weights = torch.linspace(-1, 1, 26).double()
    told = ab.explain(
        lambda rows: (rows @ weights).exp(),
        x.double(),
        players=replace(players, integer=False),
        absence=0.0,
        evaluations=200,
    )
    words = ab.plots.text_line(told).axes[0].texts[::2]
    below = ab.plots.text_line(told).axes[0].texts[1::2]
    places = [text.get_position()[::-1] for text in words]
    assert len({row for row, _ in places}) > 1  # it is wrapped
    assert places == sorted(places)
    assert all("\n± " in text.get_text() for text in below)
    assert "standard error" in ab.plots.text_line(told).axes[0].get_title()
