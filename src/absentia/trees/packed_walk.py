"""Shapley values and other sums over players, in one quick walk through all trees.

The numbers of a node stand next to each other in memory, and the state of the walk is in local variables: this is the
loop in which explanations spend their time. What it does is explained in `paths`, whose walk is easier to read.
"""

from __future__ import annotations

import numpy as np

from absentia.trees.compiled import compiled
from absentia.trees.ensemble import LEAF, MISSING, Codes, Nodes
from absentia.trees.levels import PlayedTrees
from absentia.trees.paths import ABSENT, PRESENT, UNDECIDED

# The places of a node's numbers.
_COLUMN = 0
_PLAYER = 1
_CUT = 2
_LEFT = 3
_RIGHT = 4
_MISSING_LEFT = 5
_LEAF = 6
_FIRST_CATEGORY = 7  # −1 for a split by a number
_CATEGORY_COUNT = 8
_LISTED_LEFT = 9
_NUMBERS = 10


def pack(nodes: Nodes, player: np.ndarray) -> np.ndarray:
    """Return the numbers of all nodes, nodes × numbers; ``player`` holds the player of each column."""
    packed = np.zeros((len(nodes.column), _NUMBERS), np.int32)
    packed[:, _COLUMN] = nodes.column
    packed[:, _PLAYER] = np.where(nodes.column == LEAF, -1, player[nodes.column])
    packed[:, _CUT] = nodes.cut
    packed[:, _LEFT] = nodes.left
    packed[:, _RIGHT] = nodes.right
    packed[:, _MISSING_LEFT] = nodes.missing_left
    packed[:, _LEAF] = nodes.leaf
    packed[:, _FIRST_CATEGORY] = nodes.first_category
    packed[:, _CATEGORY_COUNT] = nodes.category_count
    packed[:, _LISTED_LEFT] = nodes.listed_left
    return packed


@compiled
def _next_node(packed: np.ndarray, categories: np.ndarray, node: int, code: int) -> int:
    """Return the child to which a code goes."""
    if code == MISSING:
        left = packed[node, _MISSING_LEFT] != 0
    elif packed[node, _FIRST_CATEGORY] < 0:
        left = code < packed[node, _CUT]
    else:
        listed = False
        if 0 <= code < packed[node, _CATEGORY_COUNT]:
            listed = categories[packed[node, _FIRST_CATEGORY] + code] != 0
        left = listed == (packed[node, _LISTED_LEFT] != 0)
    return packed[node, _LEFT] if left else packed[node, _RIGHT]


@compiled
def _attribute_leaf(values: np.ndarray, decided: np.ndarray, state: np.ndarray, gain: float, loss: float) -> None:
    """Add what a leaf contributes to the players that are decided on the way to it."""
    for player in decided:
        if state[player] == PRESENT:
            values[player] += gain
        else:
            values[player] -= loss


@compiled
def attribute_samples(  # noqa: C901 (calls would copy the state of the walk)
    packed: np.ndarray,
    trees: PlayedTrees,
    samples: Codes,
    stand_ins: Codes,
    weights: np.ndarray,
    kinds: np.ndarray,
    gains: np.ndarray,
    losses: np.ndarray,
) -> np.ndarray:
    """Return the sums of the leaves' contributions over all stand-ins of each sample: samples × players.

    Players that must be present get gains[a, b], the others −losses[a, b]: shares of the leaf's weight, for a players
    that must be present and b that must be absent.
    """
    categories = trees.nodes.categories
    player_count = len(trees.keys)
    values = np.zeros((len(samples), player_count))
    state = np.zeros(player_count, np.uint8)
    trail = np.empty(player_count + 1, np.int32)  # the players decided so far
    open_nodes = np.empty(player_count + 1, np.int32)  # the stand-in's sides that are still to be visited
    open_depths = np.empty(player_count + 1, np.int32)  # how many players were decided before each
    for number in range(len(samples)):
        sample = samples[number]
        own_values = values[number]
        leaf_weights = weights[kinds[number]]
        own_stand_ins = stand_ins[number % len(stand_ins)]
        for draw in range(len(own_stand_ins)):
            stand_in = own_stand_ins[draw]
            for root in trees.roots:
                node = root
                depth = 0
                present = 0
                open_count = 0
                while True:
                    column = packed[node, _COLUMN]
                    if column >= 0:
                        player = packed[node, _PLAYER]
                        known = PRESENT if player < 0 else state[player]
                        if known == ABSENT:
                            node = _next_node(packed, categories, node, stand_in[column])
                            continue
                        way = _next_node(packed, categories, node, sample[column])
                        if known == UNDECIDED:
                            other_way = _next_node(packed, categories, node, stand_in[column])
                            if other_way != way:
                                open_nodes[open_count] = other_way
                                open_depths[open_count] = depth
                                open_count += 1
                                state[player] = PRESENT
                                trail[depth] = player
                                depth += 1
                                present += 1
                        node = way
                        continue
                    if depth > 0:
                        leaf_weight = leaf_weights[packed[node, _LEAF]]
                        absent = depth - present
                        gain = leaf_weight * gains[present, absent]
                        _attribute_leaf(own_values, trail[:depth], state, gain, leaf_weight * losses[present, absent])
                    if open_count == 0:
                        break
                    open_count -= 1
                    node = open_nodes[open_count]
                    first = open_depths[open_count]
                    for place in range(first + 1, depth):
                        present -= state[trail[place]] == PRESENT
                        state[trail[place]] = UNDECIDED
                    state[trail[first]] = ABSENT
                    present -= 1
                    depth = first + 1
                for place in range(depth):
                    state[trail[place]] = UNDECIDED
    return values
