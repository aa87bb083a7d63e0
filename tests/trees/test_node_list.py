"""Trees that are written node by node lead values where they should."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from absentia.trees.ensemble import CategorySplit, Comparison, assemble
from absentia.trees.node_list import ROOT, Interval, NodeList

STEPS = st.integers(-4, 4).map(float)


@given(STEPS, STEPS, STEPS, st.booleans(), st.sampled_from(["<", "<="]))
def test_an_interval_goes_the_way_of_missing_values(threshold, first, second, missing_left, sign):
    low, high = sorted((first, second))
    nodes = NodeList(outputs=1)
    sides = nodes.add_split_beside(ROOT, 0, threshold, missing_left, Interval(low, high))
    nodes.add_leaf(sides.left, [1.0])
    nodes.add_leaf(sides.right, [2.0])
    ensemble = assemble([nodes.tree()], np.zeros(1), 1, Comparison(sign, np.float64))
    values = np.append(np.arange(-6, 6, 0.5), [np.inf, -np.inf, np.nan])

    def goes_left(value, threshold):
        return value < threshold if sign == "<" else value <= threshold

    expected = []
    for value in values:
        is_missing = np.isnan(value) or (goes_left(value, high) and not goes_left(value, low))
        is_left = missing_left if is_missing else goes_left(value, threshold)
        expected.append(1.0 if is_left else 2.0)
    np.testing.assert_array_equal(ensemble.predict(values[:, None])[:, 0], expected)


def test_a_tree_with_both_kinds_of_splits():
    nodes = NodeList(outputs=2)
    first = nodes.add_split(ROOT, 0, 0.5, True)
    nodes.add_leaf(first.right, [1.0, 10.0])
    second = nodes.add_category_split(first.left, 1, CategorySplit((2, 5), listed_go_left=True), False)
    nodes.add_leaf(second.left, [2.0, 20.0])
    nodes.add_leaf(second.right, [3.0, 30.0])
    ensemble = assemble([nodes.tree()], np.array([0.5, 0.0]), 2, Comparison("<=", np.float64))
    rows = np.array([[0.6, 2], [0.5, 2], [np.nan, 5], [0.0, 3], [0.0, np.nan]])
    np.testing.assert_array_equal(ensemble.predict(rows), [[1.5, 10], [2.5, 20], [2.5, 20], [3.5, 30], [3.5, 30]])
