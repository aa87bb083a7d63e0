"""Explanations to draw, and the labels of a figure that overlap."""

import itertools

import absentia as ab
from known_games import mlp
from seeded_draws import randn

LONG = "the number of days since the last payment of the loan in $"


def names(count):
    """Return long names with a dollar sign, which begins a formula in matplotlib."""
    return [f"{LONG} {number}" for number in range(count)]


def explain(players, samples=2, **settings):
    """Explain random samples for a small network; settings of `absentia.explain` replace those here."""
    usual_settings = {"players": ab.Players.features(names(players)), "absence": ab.Baseline(0.0)}
    x = 2 * randn(samples, players)
    return ab.explain(mlp(players, 3), x, **(usual_settings | settings))


def overlaps(figure):
    """Return "overlap" for each pair of neighbouring tick labels that overlap, and texts that leave the figure."""
    figure.draw_without_rendering()
    faults = []
    for axes in figure.axes:
        texts = [axes.title, *axes.texts]
        if axes.axison:
            for axis in (axes.xaxis, axes.yaxis):
                labels = tick_labels(axis)
                faults += ["overlap"] * overlapping_pairs(labels)
                texts += [axis.label, *labels]
        faults += [text.get_text() for text in texts if leaves(text, figure)]
    return faults


def tick_labels(axis):
    """Return the labels of the major ticks within the view."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


def overlapping_pairs(labels):
    """Count neighbouring labels that overlap. Boxes of rotated labels overlap although the labels do not."""
    level = [label for label in labels if label.get_text() and label.get_visible() and label.get_rotation() == 0]
    boxes = [label.get_window_extent() for label in level]
    return sum(box.overlaps(following) for box, following in itertools.pairwise(boxes))


def leaves(text, figure):
    """Return whether a text ends more than a pixel outside of its figure."""
    if not text.get_text():
        return False
    box = text.get_window_extent()
    below_or_left = min(box.x0, box.y0) < -1
    above_or_right = box.x1 > figure.bbox.x1 + 1 or box.y1 > figure.bbox.y1 + 1
    return below_or_left or above_or_right


def whiskers(axes):
    """Return the ends of the whiskers, in the order in which they were drawn."""
    return [bar.get_segments()[0][:, 0].tolist() for bar in axes.collections]
