"""Walsh terms of listed sets: values, shares by player, and exact conversions from and to Harsanyi effects.

With s = 1 for a present and s = −1 for an absent player, values are v(S) = Σ_T w_T Π_{l∈T} s_l. So a term adds its
effect if an even number of its players is absent, and subtracts it otherwise. The products are orthonormal over
uniformly drawn coalitions, and the term of ∅ is the mean of all values. A set of k players spreads over the Harsanyi
effects of its 2ᵏ subsets: U(S) = Σ_{T⊇S} w_T 2^|S| (−1)^(|T|−|S|). The inverse is w_S = Σ_{T⊇S} U(T) 2^(−|T|).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.errors import wrong
from absentia.listed_sets import PAIRS_AT_ONCE
from absentia.subset_sums import ListedSets, SubsetPairs, rows_of_subsets, subset_pairs

# Sets of more players are not written as sums over their subsets.
MOST_PLAYERS_OF_A_SET = 16
# All sets together may have this many subsets, counted once for each set.
_MOST_PAIRS = 2**24
# The covariance of converted terms may have this many entries, which take 2 GB.
_MOST_COVARIANCES = 2**28


class ConvertedTerms(NamedTuple):
    """Terms of one sample in another basis."""

    sets: Bool[Tensor, "terms players"]
    effects: Float[Tensor, " terms"]
    covariance: Float[Tensor, "terms terms"] | None  # of the errors of the effects; None if it was not passed

    @property
    def errors(self) -> Float[Tensor, " terms"] | None:
        """The standard errors of the effects; None without a covariance."""
        if self.covariance is None:
            return None
        return self.covariance.diagonal().clamp_min(0).sqrt()


def walsh_to_harsanyi(
    sets: Bool[Tensor, "terms players"],
    effects: Float[Tensor, " terms"],
    covariance: Float[Tensor, "terms terms"] | None = None,
) -> ConvertedTerms:
    """Convert Walsh terms of one sample to Harsanyi effects, those of all subsets of the sets.

    Examples
    --------
    >>> converted = walsh_to_harsanyi(torch.tensor([[True, True]]), torch.tensor([1.0]))
    >>> converted.sets.int().tolist(), converted.effects
    ([[0, 0], [1, 0], [0, 1], [1, 1]], tensor([ 1., -2., -2.,  4.]))
    """
    return _converted(sets, effects, covariance, _harsanyi_share)


def harsanyi_to_walsh(
    sets: Bool[Tensor, "terms players"],
    effects: Float[Tensor, " terms"],
    covariance: Float[Tensor, "terms terms"] | None = None,
) -> ConvertedTerms:
    """Convert Harsanyi effects of one sample to Walsh terms, those of all subsets of the sets.

    Examples
    --------
    >>> harsanyi_to_walsh(torch.tensor([[True, True]]), torch.tensor([4.0])).effects
    tensor([1., 1., 1., 1.])
    """
    return _converted(sets, effects, covariance, _walsh_share)


def harsanyi_sets_of(sets: Bool[Tensor, "terms players"]) -> int:
    """Count the distinct subsets of the sets: the Harsanyi effects into which `walsh_to_harsanyi` converts them.

    If the sets are too large to convert, this is a lower bound: the number of subsets of the largest set.

    Examples
    --------
    >>> harsanyi_sets_of(torch.tensor([[True, True, False], [False, True, True]]))
    6
    """
    if _why_not_convertible(sets):
        return 2 ** int(sets.sum(1).max())
    return len(_pairs_of(sets).subsets.sizes)


def _harsanyi_share(subset_size: int, size: int) -> float:
    """Return the share of a Walsh term that goes to the Harsanyi effect of each subset of this size."""
    return float(2**subset_size * (-1) ** (size - subset_size))


def _walsh_share(subset_size: int, size: int) -> float:
    """Return the share of a Harsanyi effect that goes to the Walsh term of each subset of this size."""
    return 2.0**-size


def _converted(
    sets: Bool[Tensor, "terms players"],
    effects: Float[Tensor, " terms"],
    covariance: Float[Tensor, "terms terms"] | None,
    share: Callable[[int, int], float],
) -> ConvertedTerms:
    """Give each subset of each set a share of its effect."""
    reason = _why_not_convertible(sets)
    if reason:
        then = "Keep them in their basis, or keep fewer terms: terms.keep(k)."
        raise wrong("sets", "be small enough to convert to another basis", reason, then)
    pairs = _pairs_of(sets)
    sizes = sets.sum(1)
    largest = int(sizes.max()) if len(sizes) else 0
    table = [[share(subset_size, size) for size in range(largest + 1)] for subset_size in range(largest + 1)]
    shares = torch.tensor(table).to(effects)
    subsets = pairs.subsets
    converted_covariance = None
    if covariance is not None:
        converted_covariance = _converted_covariance(pairs, sizes, shares, covariance)
    return ConvertedTerms(
        rows_of_subsets([subsets], sets.shape[1]), pairs.sums(effects, sizes, shares), converted_covariance
    )


def _converted_covariance(
    pairs: SubsetPairs,
    sizes: Int[Tensor, " terms"],
    shares: Float[Tensor, "subset_sizes sizes"],
    covariance: Float[Tensor, "terms terms"],
) -> Float[Tensor, "subsets subsets"]:
    """Return A C Aᵀ, with C the covariance of the terms and A the shares of the subsets in them."""
    subset_sizes = pairs.subsets.sizes
    if len(subset_sizes) ** 2 > _MOST_COVARIANCES:
        must = f"have at most {int(_MOST_COVARIANCES**0.5):,} subsets if a covariance is converted"
        raise wrong("sets", must, f"{len(subset_sizes):,}", "Keep fewer terms: terms.keep(k).")
    matrix = torch.sparse_coo_tensor(
        torch.stack([pairs.subset_numbers, pairs.set_numbers]),
        shares[subset_sizes[pairs.subset_numbers], sizes[pairs.set_numbers]],
        (len(subset_sizes), len(sizes)),
        check_invariants=False,
    )
    one_side = torch.sparse.mm(matrix, covariance.to(shares))
    return torch.sparse.mm(matrix, one_side.T.contiguous())


def _why_not_convertible(sets: Bool[Tensor, "terms players"]) -> str:
    """Say why the subsets of the sets are too many to list; return an empty text if they are not."""
    sizes = sets.sum(1)
    largest = int(sizes.max()) if len(sizes) else 0
    if largest > MOST_PLAYERS_OF_A_SET:
        return f"a set of {largest} players, more than {MOST_PLAYERS_OF_A_SET}"
    subsets = int((2.0**sizes).sum())
    if subsets > _MOST_PAIRS:
        return f"{len(sets):,} sets with {subsets:,} subsets, more than {_MOST_PAIRS:,}"
    return ""


def _pairs_of(sets: Bool[Tensor, "terms players"]) -> SubsetPairs:
    """Return all pairs of a set and one of its subsets."""
    owners = torch.zeros(len(sets), dtype=torch.long, device=sets.device)
    listed = ListedSets.of_rows(sets, owners)
    largest = int(listed.sizes.max()) if len(sets) else 0
    (pairs,) = subset_pairs(listed, 1, sets.shape[1], largest)
    return pairs


def parity(sizes: Int[Tensor, " terms"]) -> Int[Tensor, " terms"]:
    """Return 1 for an even number of players and −1 for an odd one: the factor of a term with all players absent."""
    return 1 - 2 * (sizes % 2)


def walsh_values(
    sets: Bool[Tensor, "terms players"],
    effects: Float[Tensor, " terms"],
    owners: Int[Tensor, " terms"],
    samples: int,
    coalitions: Bool[Tensor, "rows players"],
) -> Float[Tensor, "samples rows"]:
    """Return the values of coalitions for each sample: terms count negative if an odd number of players is absent."""
    values = effects.new_zeros(samples, len(coalitions))
    absent = (~coalitions).to(effects)
    at_once = max(1, PAIRS_AT_ONCE // max(1, *coalitions.shape))
    for start in range(0, len(sets), at_once):
        part = slice(start, start + at_once)
        absent_players = sets[part].to(absent) @ absent.T
        values.index_add_(0, owners[part], effects[part, None] * (1 - 2 * (absent_players % 2)))
    return values


def walsh_shapley_shares(sizes: Int[Tensor, " terms"]) -> Float[Tensor, " terms"]:
    """Return the share of a term in the Shapley value of each of its players: 2/|T| for odd |T|, otherwise 0."""
    return torch.where(sizes % 2 == 1, 2.0 / sizes.clamp_min(1).double(), 0.0)


def walsh_shares_by_context(sizes: Int[Tensor, " sizes"], players: int) -> Float[Tensor, "orders sizes"]:
    """Return what a player of a term adds by joining m others, for m = 0 … n − 1, as a share of the term.

    Joining turns the sign of the term, so it adds twice the mean of the product over the term's other players, over
    coalitions of m of the n − 1 others. These means are Krawtchouk polynomials, computed by their recurrence in the
    number of players. The number for ∅ has no meaning.

    Examples
    --------
    >>> walsh_shares_by_context(torch.tensor([1, 2, 3]), players=3)
    tensor([[ 2., -2.,  2.],
            [ 2.,  0., -2.],
            [ 2.,  2.,  2.]], dtype=torch.float64)
    """
    others = players - 1
    present = torch.arange(players, dtype=torch.float64)
    signs = 1 - 2 * ((others - present) % 2)  # of a product over all others
    largest = int(sizes.max()) - 1 if len(sizes) else 0
    # Beyond half of the others the recurrence loses digits. The product over the complement gives the same.
    means = [torch.ones(players, dtype=torch.float64)]
    before = torch.zeros(players, dtype=torch.float64)
    for count in range(min(largest, others // 2)):
        following = ((2 * present - others) * means[-1] - count * before) / (others - count)
        before = means[-1]
        means.append(following)
    for count in range(len(means), largest + 1):
        means.append(signs * means[others - count])
    return 2 * torch.stack(means, dim=1)[:, (sizes.cpu() - 1).clamp_min(0)]


def walsh_mean_squares(
    sets: Bool[Tensor, "terms players"], effects: Float[Tensor, " terms"]
) -> Float[Tensor, " counts"]:
    """Return the mean squared error over all coalitions if values are rebuilt from the first 0, 1, … terms.

    Terms of different sets are orthonormal, so the error is the sum of the squares of the effects left out. Terms of
    the same set count by their sum.
    """
    effects = effects.double()
    _, numbers = sets.unique(dim=0, return_inverse=True)
    order = numbers.argsort(stable=True)
    # What the later terms of the same set add up to: the total up to the end of the set's terms, less that so far.
    totals = effects[order].cumsum(0)
    ends = numbers.bincount().cumsum(0) - 1
    later = torch.empty_like(effects)
    later[order] = totals[ends[numbers[order]]] - totals
    is_repeated = numbers.bincount()[numbers] > 1
    later = torch.where(is_repeated, later, 0.0)  # exactly, without rounding errors of the totals
    increments = effects * (effects + 2 * later)
    missing = increments.flip(0).cumsum(0).flip(0)
    return torch.cat([missing, missing.new_zeros(1)]).clamp_min(0)
