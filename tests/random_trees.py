"""Ensembles of random trees: splits by numbers and by categories, missing values, and thresholds that samples hit."""

from __future__ import annotations

import numpy as np

from absentia.trees.ensemble import EVERY_OUTPUT, LEAF, CategorySplit, Comparison, Tree, TreeEnsemble, assemble

# Values and thresholds share these numbers, so that many values lie exactly on a threshold.
GRID = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
CATEGORIES = 4


def random_tree(random: np.random.Generator, columns: int, depth: int, outputs: int, output: int) -> Tree:
    """Grow a tree with at most ``depth`` splits on a path; odd columns are split by categories."""
    nodes: list[dict[str, object]] = []
    category_splits: dict[int, CategorySplit] = {}

    def grow(left_to_go: int) -> int:
        number = len(nodes)
        is_leaf = left_to_go == 0 or random.random() < 0.2
        column = LEAF if is_leaf else int(random.integers(columns))
        node: dict[str, object] = {
            "column": column,
            "threshold": float(random.choice(GRID)),
            "left": -1,
            "right": -1,
            "missing_left": bool(random.integers(2)),
            "values": random.normal(size=outputs),
        }
        nodes.append(node)
        if is_leaf:
            return number
        if column % 2:
            listed = np.flatnonzero(random.integers(2, size=CATEGORIES)).tolist()
            category_splits[number] = CategorySplit(tuple(listed), bool(random.integers(2)))
        node["left"] = grow(left_to_go - 1)
        node["right"] = grow(left_to_go - 1)
        return number

    grow(depth)
    return Tree(
        columns=np.array([node["column"] for node in nodes]),
        thresholds=np.array([node["threshold"] for node in nodes]),
        left=np.array([node["left"] for node in nodes]),
        right=np.array([node["right"] for node in nodes]),
        missing_left=np.array([node["missing_left"] for node in nodes]),
        values=np.stack([node["values"] for node in nodes]),
        output=output,
        category_splits=category_splits,
    )


def random_ensemble(random: np.random.Generator, columns: int, trees: int, depth: int, outputs: int) -> TreeEnsemble:
    """Return trees that each add to one output, or to all of them."""
    each_adds_to_one = outputs > 1 and bool(random.integers(2))
    grown = []
    for number in range(trees):
        if each_adds_to_one:
            grown.append(random_tree(random, columns, depth, 1, number % outputs))
        else:
            grown.append(random_tree(random, columns, depth, outputs, EVERY_OUTPUT))
    goes_left = "<" if random.integers(2) else "<="
    precision = np.float32 if random.integers(2) else np.float64
    return assemble(grown, random.normal(size=outputs), columns, Comparison(goes_left, precision))


def random_rows(random: np.random.Generator, count: int, columns: int) -> np.ndarray:
    """Return rows of which some values are missing, and some lie on thresholds or are categories nobody listed."""
    rows = random.choice(GRID, size=(count, columns)) + 0.25 * random.integers(2, size=(count, columns))
    odd = np.arange(columns) % 2 == 1
    rows[:, odd] = random.integers(-1, CATEGORIES + 2, size=(count, int(odd.sum())))
    rows[random.random(rows.shape) < 0.15] = np.nan
    return rows
