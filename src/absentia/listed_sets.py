"""Sums over listed sets of players, for any number of players.

No array has 2ⁿ entries: only the players in the sets are counted, and pairs of sets are compared block by block.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# This many pairs of sets, or of a set and a coalition, are compared at once.
PAIRS_AT_ONCE = 2**22


def player_numbers(sets: Bool[Tensor, "terms players"]) -> list[tuple[int, ...]]:
    """Return the numbers of the players of each set.

    Examples
    --------
    >>> player_numbers(torch.tensor([[True, False, True], [False, False, False]]))
    [(0, 2), ()]
    """
    players = sets.nonzero()[:, 1].tolist()
    ends = sets.sum(1).cumsum(0).tolist()
    starts = [0, *ends[:-1]]
    return [tuple(players[start:end]) for start, end in zip(starts, ends, strict=True)]


def rows_of_players(numbers: Sequence[Sequence[int]], players: int) -> Bool[Tensor, "terms players"]:
    """Return sets of player numbers as boolean rows.

    Examples
    --------
    >>> rows_of_players([(0, 2), ()], players=3)
    tensor([[ True, False,  True],
            [False, False, False]])
    """
    rows = torch.zeros(len(numbers), players, dtype=torch.bool)
    sizes = torch.tensor([len(members) for members in numbers], dtype=torch.long)
    places = torch.arange(len(numbers)).repeat_interleave(sizes)
    columns = torch.tensor([player for members in numbers for player in members], dtype=torch.long)
    rows[places, columns] = True
    return rows


def values_of_coalitions(
    sets: Bool[Tensor, "terms players"],
    effects: Float[Tensor, " terms"],
    owners: Int[Tensor, " terms"],
    samples: int,
    coalitions: Bool[Tensor, "rows players"],
) -> Float[Tensor, "samples rows"]:
    """Return the sum of the effects of the sets within each coalition, for each sample."""
    values = effects.new_zeros(samples, len(coalitions))
    absent = (~coalitions).to(effects)
    at_once = max(1, PAIRS_AT_ONCE // max(1, *coalitions.shape))
    for start in range(0, len(sets), at_once):
        part = slice(start, start + at_once)
        # A set is within a coalition if none of its players is absent.
        within = sets[part].to(absent) @ absent.T == 0
        values.index_add_(0, owners[part], effects[part, None] * within)
    return values


def sums_by_player(
    sets: Bool[Tensor, "terms players"],
    effects: Float[Tensor, " terms"],
    groups: Int[Tensor, " terms"],
    count: int,
) -> Float[Tensor, "groups players"]:
    """Return for each group and player the sum of the effects of the group's sets that contain the player."""
    terms, players = sets.nonzero(as_tuple=True)
    sums = effects.new_zeros(count, sets.shape[1])
    return sums.index_put((groups[terms], players), effects[terms], accumulate=True)


def shares_by_context(sizes: Int[Tensor, " sizes"], players: int) -> Float[Tensor, "orders sizes"]:
    """Return the probability that a player of a set completes it by joining m others, for m = 0 … players − 1.

    All other players of the set must be among the m. The probability is a ratio of falling factorials,
    m (m − 1) … / ((n − 1) (n − 2) …), with |S| − 1 factors each. The number for ∅ has no meaning.

    Examples
    --------
    >>> shares_by_context(torch.tensor([1, 2]), players=3)
    tensor([[1.0000, 0.0000],
            [1.0000, 0.5000],
            [1.0000, 1.0000]], dtype=torch.float64)
    """
    others = torch.arange(players, dtype=torch.float64)
    largest_size = int(sizes.max()) if len(sizes) else 1
    steps = torch.arange(max(0, largest_size - 1), dtype=torch.float64)
    factors = (others[:, None] - steps).clamp_min(0) / (players - 1 - steps)
    ratios = torch.cat([torch.ones(players, 1, dtype=torch.float64), factors.cumprod(1)], dim=1)
    return ratios[:, (sizes.cpu() - 1).clamp_min(0)]


def mean_squares(sets: Bool[Tensor, "terms players"], effects: Float[Tensor, " terms"]) -> Float[Tensor, " counts"]:
    """Return the mean squared error over all coalitions if values are rebuilt from the first 0, 1, … sets.

    The error of a coalition is the sum of the effects of the other sets within it. Two sets are both within a
    coalition with probability 2^−|S ∪ T|. So one pass over the pairs of sets gives the errors for every count.
    """
    effects = effects.double()
    sizes = sets.sum(1)
    places = sets.nonzero().T
    ends = sizes.cumsum(0)
    with_later = torch.zeros_like(effects)
    at_once = max(1, PAIRS_AT_ONCE // max(1, *sets.shape))
    for start in range(0, len(effects), at_once):
        part = slice(start, start + at_once)
        first_place = int(ends[start] - sizes[start])
        later = places[:, first_place:] - torch.tensor([[start], [0]], device=places.device)
        ones = torch.ones(later.shape[1], dtype=torch.float64, device=places.device)
        later_sets = torch.sparse_coo_tensor(
            later, ones, (len(effects) - start, sets.shape[1]), check_invariants=False
        )
        shared_players = torch.sparse.mm(later_sets, sets[part].T.double())
        joint = shared_players.sub_(sizes[start:, None]).sub_(sizes[part]).exp2_()
        block = len(sizes[part])
        joint[:block].tril_(-1)  # each pair once
        with_later[part] = effects[start:] @ joint
    own = effects * 2.0**-sizes
    increments = effects * (own + 2 * with_later)
    missing = increments.flip(0).cumsum(0).flip(0)
    return torch.cat([missing, missing.new_zeros(1)]).clamp_min(0)
