"""Weighted sums over the supersets of small sets: Σ_{T⊇S} w(|S|, |T|) · U(T) for all S of up to k players.

Weights are a table: row s and column t hold the weight of a set of t players for its subsets of s players.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import coalition_sizes, enumerate_coalitions, superset_sums
from absentia.errors import wrong

# Samples are processed together up to this many pairs of a listed set and one of its subsets.
_PAIRS_AT_ONCE = 2**22
# One sample may have this many such pairs, which take about 6 GB of memory.
_MOST_PAIRS = 2**25
# The rows of all subsets may have this many entries, of one byte each.
_MOST_ENTRIES = 2**32
# Numbers are marked in a table rather than sorted if it has at most this many entries, or entries per number.
_MARKED_ENTRIES = 2**22
_MARKED_ENTRIES_PER_NUMBER = 8


def table_subset_sums(
    effects: Float[Tensor, "samples coalitions"], weights: Float[Tensor, "subset_sizes sizes"]
) -> tuple[Bool[Tensor, "subsets players"], Float[Tensor, "samples subsets"]]:
    """Return all sets of few players, the smaller first, and their sums over a full table; differentiable."""
    players = weights.shape[1] - 1
    sizes = coalition_sizes(players).to(effects.device)
    numbers_by_size = [(sizes == size).nonzero().flatten() for size in range(len(weights))]
    sums_by_size = [
        superset_sums(effects * weights[size, sizes])[:, numbers] for size, numbers in enumerate(numbers_by_size)
    ]
    numbers = torch.cat(numbers_by_size)
    return enumerate_coalitions(players)[numbers.cpu()].to(effects.device), torch.cat(sums_by_size, dim=1)


class ListedSets(NamedTuple):
    """Listed sets of players by the numbers of their players, which is quicker than to read long rows repeatedly."""

    owners: Int[Tensor, " sets"]  # the sample of each set
    sizes: Int[Tensor, " sets"]
    players: Int[Tensor, " places"]  # those of the first set, of the second set …, in ascending order within a set
    stops: Int[Tensor, " sets"]  # where the players of each set end

    @classmethod
    def of_rows(cls, rows: Bool[Tensor, "sets players"], owners: Int[Tensor, " sets"]) -> ListedSets:
        """Read the sets from boolean rows."""
        places = rows.nonzero()
        sizes = places[:, 0].bincount(minlength=len(rows))
        return cls(owners, sizes, places[:, 1], sizes.cumsum(0))


class Subsets(NamedTuple):
    """The distinct small subsets of the listed sets of some samples."""

    owners: Int[Tensor, " subsets"]  # the sample of each subset, in ascending order
    sizes: Int[Tensor, " subsets"]
    members: Int[Tensor, "entries 2"]  # the number of a subset, and the number of a player in it


class SubsetPairs(NamedTuple):
    """All pairs of a listed set and one of its small subsets, for some samples."""

    subsets: Subsets
    set_numbers: Int[Tensor, " pairs"]
    subset_numbers: Int[Tensor, " pairs"]

    def sums(
        self,
        effects: Float[Tensor, " sets"],
        set_sizes: Int[Tensor, " sets"],
        weights: Float[Tensor, "subset_sizes sizes"],
    ) -> Float[Tensor, " subsets"]:
        """Sum the weighted effects of all listed sets that contain each subset; differentiable."""
        subset_sizes = self.subsets.sizes
        pair_weights = weights[subset_sizes[self.subset_numbers], set_sizes[self.set_numbers]]
        amounts = pair_weights * effects[self.set_numbers]
        return effects.new_zeros(len(subset_sizes)).index_add(0, self.subset_numbers, amounts)


def rows_of_subsets(blocks: list[Subsets], players: int) -> Bool[Tensor, "subsets players"]:
    """Return the subsets of all blocks as boolean rows."""
    count = sum(len(block.sizes) for block in blocks)
    _check_count(count, _MOST_ENTRIES // players)
    rows = torch.zeros(count, players, dtype=torch.bool, device=blocks[0].sizes.device)
    first = 0
    for block in blocks:
        rows[first + block.members[:, 0], block.members[:, 1]] = True
        first += len(block.sizes)
    return rows


def subset_pairs(sets: ListedSets, samples: int, players: int, largest: int) -> Iterator[SubsetPairs]:
    """Yield all pairs of a listed set and one of its subsets, for a few samples at a time.

    The subsets have at most ``largest`` players; ∅ is one of them. They are built level by level: those of one player
    extend ∅, those of two players extend those of one, and so on.
    """
    by_sample = sets.owners.argsort(stable=True)
    set_counts = sets.owners.bincount(minlength=samples).tolist()
    first_set = 0
    for block in _blocks_of_samples(sets, samples, largest):
        stop_set = first_set + sum(set_counts[block.start : block.stop])
        levels = [_empty_subsets(sets, block, by_sample[first_set:stop_set])]
        for _ in range(largest):
            levels.append(_extended(levels[-1], sets, players))
        yield _joined(levels)
        first_set = stop_set


def _blocks_of_samples(sets: ListedSets, samples: int, largest: int) -> list[range]:
    """Split the samples into ranges with few pairs each; raise an error if one sample has too many."""
    occurring_sizes, places = sets.sizes.unique(return_inverse=True)
    pairs_by_size = [
        float(sum(math.comb(size, subset_size) for subset_size in range(largest + 1)))
        for size in occurring_sizes.tolist()
    ]
    pairs = torch.tensor(pairs_by_size, dtype=torch.float64, device=sets.sizes.device)[places]
    pairs_by_sample = sets.owners.bincount(weights=pairs, minlength=samples).tolist()
    _check_count(max(pairs_by_sample), _MOST_PAIRS)
    starts = [0]
    pairs_of_block = 0.0
    for sample, count in enumerate(pairs_by_sample):
        pairs_of_block += count
        if pairs_of_block > _PAIRS_AT_ONCE and sample > starts[-1]:
            starts.append(sample)
            pairs_of_block = count
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], samples], strict=True)]


def _check_count(count: float, most: int) -> None:
    """Raise an error if there are too many subsets to list them."""
    if count > most:
        must = f"be so small that the listed sets have at most {most:,} subsets"
        raise wrong("order", must, f"{count:.2g} subsets", "Use a lower order, or fewer sets: terms.keep(k).")


class _Level(NamedTuple):
    """The distinct subsets of one size, and their pairs with the listed sets."""

    members: Int[Tensor, "subsets size"]  # the players of each subset in ascending order
    owners: Int[Tensor, " subsets"]
    set_numbers: Int[Tensor, " pairs"]
    subset_numbers: Int[Tensor, " pairs"]
    last_places: Int[Tensor, " pairs"]  # where the subset's last player stands among the players of all sets


def _empty_subsets(sets: ListedSets, samples: range, set_numbers: Int[Tensor, " pairs"]) -> _Level:
    """Return ∅ of each sample of a block, paired with all sets of the sample."""
    owners = torch.arange(samples.start, samples.stop, device=sets.owners.device)
    before_first = sets.stops[set_numbers] - sets.sizes[set_numbers] - 1
    subset_numbers = sets.owners[set_numbers] - samples.start
    return _Level(owners.new_zeros(len(owners), 0), owners, set_numbers, subset_numbers, before_first)


def _extended(level: _Level, sets: ListedSets, players: int) -> _Level:
    """Add to each subset, in turn, every later player of the set that it is paired with."""
    later = sets.stops[level.set_numbers] - 1 - level.last_places
    pairs = torch.arange(len(later), device=later.device).repeat_interleave(later)
    # The places of the later players are consecutive numbers within each pair.
    first_of_pair = later.cumsum(0) - later
    shifts = level.last_places + 1 - first_of_pair
    last_places = torch.arange(len(pairs), device=later.device) + shifts[pairs]
    # A subset is known by the number of what it extends and by its last player, so that no number can overflow.
    keys = level.subset_numbers[pairs] * players + sets.players[last_places]
    distinct, subset_numbers = _numbered(keys, len(level.owners) * players)
    extends = distinct // players
    members = torch.cat([level.members[extends], (distinct % players)[:, None]], dim=1)
    return _Level(members, level.owners[extends], level.set_numbers[pairs], subset_numbers, last_places)


def _numbered(keys: Int[Tensor, " keys"], bound: int) -> tuple[Int[Tensor, " distinct"], Int[Tensor, " keys"]]:
    """Return the distinct keys in ascending order, and the place of each key among them."""
    if bound > max(_MARKED_ENTRIES, _MARKED_ENTRIES_PER_NUMBER * len(keys)):
        distinct, places = keys.unique(return_inverse=True)
        return distinct, places
    is_used = torch.zeros(bound, dtype=torch.bool, device=keys.device)
    is_used[keys] = True
    places = is_used.cumsum(0) - 1
    return is_used.nonzero().flatten(), places[keys]


def _joined(levels: list[_Level]) -> SubsetPairs:
    """Join the subsets of all sizes, ordered by sample and then by size."""
    owners = torch.cat([level.owners for level in levels])
    by_sample = owners.argsort(stable=True)
    ranks = torch.empty_like(by_sample)
    ranks[by_sample] = torch.arange(len(by_sample), device=by_sample.device)
    sizes = torch.empty_like(owners)
    members = []
    subset_numbers = []
    ranks_by_level = ranks.split([len(level.owners) for level in levels])
    for size, (level, own_ranks) in enumerate(zip(levels, ranks_by_level, strict=True)):
        sizes[own_ranks] = size
        members.append(torch.stack([own_ranks.repeat_interleave(size), level.members.flatten()], dim=1))
        subset_numbers.append(own_ranks[level.subset_numbers])
    subsets = Subsets(owners[by_sample], sizes, torch.cat(members))
    set_numbers = torch.cat([level.set_numbers for level in levels])
    return SubsetPairs(subsets, set_numbers, torch.cat(subset_numbers))
