"""As many orders of interactions as time and memory allow, the same for all samples.

Terms are counted before they are written down: a leaf of |B| absent players has 2^|B| of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from absentia.trees.masked_trees import LeafWeights, MaskedTrees, SampleTerms

# Single players and pairs are always within the time that an expansion may take.
_LOW_ORDER = 2
# A set takes this many bytes while it is looked up, besides its members.
_BYTES_OF_A_SET = 40


@dataclass(frozen=True)
class TermBudget:
    """How much the expansion of leaves may take."""

    terms: float  # of a sample, before equal sets are joined: time
    bytes: float  # of the sets of all samples: memory


@dataclass(frozen=True)
class AffordableTerms:
    """The terms of all samples, up to an order."""

    by_sample: list[SampleTerms]
    highest_order: int | None  # sets of more players are left out; None if there are none
    left_out: float  # approximate number of sets left out: terms of leaves, before equal sets are joined
    ends_by_memory: bool  # whether fewer samples would have more orders


def expand_affordable(
    trees: MaskedTrees, leaves: LeafWeights, budget: TermBudget, order_in_time: int
) -> AffordableTerms:
    """Expand the leaves of all samples up to the highest order that fits into memory, and is not beyond another."""
    samples = len(trees.samples)
    order = order_in_time
    by_sample: list[SampleTerms] = []
    sets = 0
    while len(by_sample) < samples:
        most_sets = _most_sets(trees, order, budget)
        # One player at a time is always listed.
        left = most_sets - sets if order > 1 else np.inf
        terms = trees.terms_within(leaves, len(by_sample), order, left) if left > 0 else None
        if terms is None:
            order -= 1
            by_sample = [earlier.up_to(order) for earlier in by_sample]
            sets = sum(len(earlier.effects) for earlier in by_sample)
            continue
        by_sample.append(terms)
        sets += len(terms.effects)
    if order == trees.most_on_a_path:
        return AffordableTerms(by_sample, None, 0.0, ends_by_memory=False)
    left_out = float(_counts(trees)[:, order + 1 :].sum())
    highest_order = order if left_out > 0 else None
    return AffordableTerms(by_sample, highest_order, left_out, ends_by_memory=order < order_in_time)


def order_by_time(trees: MaskedTrees, budget: TermBudget) -> int:
    """Return the highest order up to which all samples have few enough terms."""
    longest = trees.most_on_a_path
    if trees.most_terms <= budget.terms:
        return longest
    affordable = (_counts(trees).cumsum(1) <= budget.terms).all(0)
    order = int(np.flatnonzero(affordable).max(initial=0))
    return min(longest, max(order, _LOW_ORDER))


def _counts(trees: MaskedTrees) -> np.ndarray:
    """Return the number of terms of all samples by order, before equal sets are joined: samples × orders."""
    return np.stack([trees.count_terms(sample) for sample in range(len(trees.samples))])


def _most_sets(trees: MaskedTrees, order: int, budget: TermBudget) -> float:
    """Return how many sets of all samples fit into memory."""
    bytes_of_a_member = 4
    return budget.bytes / (trees.player_count + bytes_of_a_member * order + _BYTES_OF_A_SET)
