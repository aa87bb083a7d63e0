"""Beeswarms and scatter plots."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

import absentia as ab
from absentia.plots.look import LOWERS, RAISES


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
