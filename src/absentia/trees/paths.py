"""The leaves that masked inputs can reach, and the condition for reaching each of them.

A masked input takes some columns from a sample and the others from a stand-in. It reaches a leaf if the players of a
set A are present (only the sample passes their splits) and those of a set B are absent (only the stand-in does). So a
leaf of weight w adds w·[A ⊆ S]·[B ∩ S = ∅] to the value of the coalition S, and everything here follows from that:

- its Harsanyi effects are (−1)^|T| w on A ∪ T, for every T ⊆ B;
- its Shapley values are w·(a−1)!·b!/(a+b)! for i ∈ A and −w·a!·(b−1)!/(a+b)! for i ∈ B, with a = |A| and b = |B|.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import Codes, Nodes, goes_left
from absentia.trees.levels import PlayedTrees

# What a path requires of a player: nothing yet, that it is present, or that it is absent.
UNDECIDED = 0
PRESENT = 1
ABSENT = 2

# The initial length of lists that grow.
_FIRST_LENGTH = 256


class Pair(NamedTuple):
    """A sample and its stand-in as codes, and the player of each column."""

    sample: Codes  # one code for each column
    stand_in: Codes
    player: np.ndarray  # the player of each column; −1 for columns that are always present


class Paths(NamedTuple):
    """The leaves that can be reached, and the players that must be present or absent on the way to each."""

    leaves: np.ndarray
    ends: np.ndarray  # where the players of each leaf end in the two lists below; they begin at the previous end
    players: np.ndarray
    states: np.ndarray  # PRESENT or ABSENT


class Walk(NamedTuple):
    """The state of a walk through a tree: what the current path requires, and what is still to be visited."""

    state: np.ndarray  # what the current path requires of each player
    trail: np.ndarray  # the players decided so far, in order
    # Splits at which sample and stand-in go different ways, and the stand-in's side is still to be visited: ...
    open_nodes: np.ndarray  # the node on the stand-in's side
    open_depths: np.ndarray  # how many players were decided before the split
    depth: np.ndarray  # how many players are decided, as an array of one
    open_count: np.ndarray  # how many such splits there are, as an array of one


@compiled
def new_walk(player_count: int) -> Walk:
    """Return a walk that has not begun."""
    return Walk(
        np.zeros(player_count, np.uint8),
        np.empty(player_count + 1, np.int32),
        np.empty(player_count + 1, np.int32),
        np.empty(player_count + 1, np.int32),
        np.zeros(1, np.int32),
        np.zeros(1, np.int32),
    )


@compiled
def walk_down(nodes: Nodes, node: int, pair: Pair, walk: Walk) -> int:
    """Go down to a leaf; where sample and stand-in go different ways, follow the sample and remember the other."""
    while nodes.column[node] >= 0:
        column = nodes.column[node]
        player = pair.player[column]
        known = PRESENT if player < 0 else walk.state[player]
        if known == ABSENT:
            left = goes_left(nodes, node, pair.stand_in[column])
        else:
            left = goes_left(nodes, node, pair.sample[column])
        if known == UNDECIDED and left != goes_left(nodes, node, pair.stand_in[column]):
            number = walk.open_count[0]
            walk.open_nodes[number] = nodes.right[node] if left else nodes.left[node]
            walk.open_depths[number] = walk.depth[0]
            walk.open_count[0] += 1
            walk.state[player] = PRESENT
            walk.trail[walk.depth[0]] = player
            walk.depth[0] += 1
        node = nodes.left[node] if left else nodes.right[node]
    return node


@compiled
def forget(walk: Walk, depth: int) -> None:
    """Forget the players decided beyond a depth."""
    for place in range(depth, walk.depth[0]):
        walk.state[walk.trail[place]] = UNDECIDED
    walk.depth[0] = depth


@compiled
def go_back(walk: Walk) -> int:
    """Return to the last open split, and take the stand-in's side."""
    walk.open_count[0] -= 1
    depth = walk.open_depths[walk.open_count[0]]
    forget(walk, depth + 1)
    walk.state[walk.trail[depth]] = ABSENT
    return int(walk.open_nodes[walk.open_count[0]])


@compiled
def doubled(values: np.ndarray) -> np.ndarray:
    """Return a list of twice the length that begins with these values."""
    longer = np.empty(2 * len(values), values.dtype)
    longer[: len(values)] = values
    return longer


@compiled
def find_paths(nodes: Nodes, roots: np.ndarray, pair: Pair, player_count: int) -> Paths:
    """Return the paths of a sample and a stand-in through all trees."""
    walk = new_walk(player_count)
    leaves = np.empty(_FIRST_LENGTH, np.int32)
    ends = np.empty(_FIRST_LENGTH, np.int64)
    players = np.empty(_FIRST_LENGTH, np.int32)
    states = np.empty(_FIRST_LENGTH, np.uint8)
    leaf_count = 0
    written = 0  # players written for these leaves
    for root in roots:
        leaf = walk_down(nodes, root, pair, walk)
        while True:
            depth = walk.depth[0]
            if leaf_count == len(leaves):
                leaves = doubled(leaves)
                ends = doubled(ends)
            while written + depth > len(players):
                players = doubled(players)
                states = doubled(states)
            for place in range(depth):
                player = walk.trail[place]
                players[written + place] = player
                states[written + place] = walk.state[player]
            written += depth
            leaves[leaf_count] = nodes.leaf[leaf]
            ends[leaf_count] = written
            leaf_count += 1
            if walk.open_count[0] == 0:
                break
            leaf = walk_down(nodes, go_back(walk), pair, walk)
        forget(walk, 0)
    return Paths(leaves[:leaf_count], ends[:leaf_count], players[:written], states[:written])


@compiled
def sums_by_condition(
    trees: PlayedTrees, sample: Codes, stand_ins: Codes, leaf_weights: np.ndarray, longest: int
) -> np.ndarray:
    """Return the weights of the leaves that depend on each player, added up by what they require.

    The array has the axes players × present or absent × |A| × |B|. ``longest`` is the largest number of players on
    which a leaf depends.
    """
    walk = new_walk(len(trees.keys))
    sums = np.zeros((len(trees.keys), 2, longest + 1, longest + 1))
    for draw in range(len(stand_ins)):
        pair = Pair(sample, stand_ins[draw], trees.player)
        for root in trees.roots:
            leaf = walk_down(trees.nodes, root, pair, walk)
            while True:
                leaf_weight = leaf_weights[trees.nodes.leaf[leaf]]
                decided = walk.depth[0]
                present = count_present(walk)
                for place in range(decided):
                    player = walk.trail[place]
                    required = 0 if walk.state[player] == PRESENT else 1
                    sums[player, required, present, decided - present] += leaf_weight
                if walk.open_count[0] == 0:
                    break
                leaf = walk_down(trees.nodes, go_back(walk), pair, walk)
            forget(walk, 0)
    return sums


@compiled
def count_present(walk: Walk) -> int:
    """Return how many players must be present on the current path."""
    present = 0
    for place in range(walk.depth[0]):
        present += walk.state[walk.trail[place]] == PRESENT
    return present


@compiled
def count_terms(trees: PlayedTrees, sample: Codes, stand_ins: Codes, binomials: np.ndarray) -> np.ndarray:
    """Return the number of terms of each order that the leaves have, before equal sets are joined.

    ``binomials`` holds C(n, k) for all n and k up to the largest number of players on which a leaf depends.
    """
    longest = len(binomials) - 1
    leaf_counts = np.zeros((longest + 1, longest + 1))
    walk = new_walk(len(trees.keys))
    for draw in range(len(stand_ins)):
        pair = Pair(sample, stand_ins[draw], trees.player)
        for root in trees.roots:
            walk_down(trees.nodes, root, pair, walk)
            while True:
                present = count_present(walk)
                leaf_counts[present, walk.depth[0] - present] += 1
                if walk.open_count[0] == 0:
                    break
                walk_down(trees.nodes, go_back(walk), pair, walk)
            forget(walk, 0)
    counts = np.zeros(longest + 1)
    for present in range(longest + 1):
        for absent in range(longest + 1 - present):
            for added in range(absent + 1):
                counts[present + added] += leaf_counts[present, absent] * binomials[absent, added]
    return counts


@compiled
def values_of_coalitions(paths: Paths, leaf_weights: np.ndarray, coalitions: np.ndarray, values: np.ndarray) -> None:
    """Add the leaves that each coalition reaches to its values, for each column of weights."""
    for row in range(len(coalitions)):
        start = 0
        for place in range(len(paths.leaves)):
            end = paths.ends[place]
            reached = True
            for number in range(start, end):
                if coalitions[row, paths.players[number]] != (paths.states[number] == PRESENT):
                    reached = False
                    break
            if reached:
                for output in range(leaf_weights.shape[1]):
                    values[row, output] += leaf_weights[paths.leaves[place], output]
            start = end
