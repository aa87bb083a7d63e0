"""Numbers for sets of players that weigh Walsh terms by size, of a Gaussian process: indices and order-wise values.

An interaction index of a set S is Σ_{T⊇S} ω(|T∖S|) w_T, with the Walsh terms w_T and weights ω by the number of added
players. A priori, w_T has the variance Π_{l∈T} r_l, up to a factor, so its covariance with a coalition's value is
Π_{l∈T} r_l s_l. Weighted sums of such products by size are weighted sums of the coefficients of the polynomial
Π_{l∉S} (1 + z r_l s_l): they follow from its values at some points z. Roots of unity lose no digits, and simple
weights need only one or two points.

What a kernel cannot describe is noise: every coalition's value has a part of its own, which the same numbers contain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from absentia.cube.kernels import CubeKernel, Part, Signs
from absentia.cube.posterior import Functional
from absentia.data import blocks

# Walsh terms of more players are left out if together they have less than this share of the prior variance.
_LEAST_SHARE = 1e-17
# At most this many numbers are held at a time.
_AT_ONCE = 2**23
# A product of matrices is faster than a product for each set if it has at most this many entries for each set.
_MOST_PRODUCTS_OF_A_SET = 16
# Means over more contexts than this are free of noise, up to rounding errors.
_MOST_CONTEXTS = 2**53

Sets = Int[Tensor, "sets size"]  # the players of each set


@dataclass(frozen=True, eq=False)
class SetWeights:
    """The weights of some numbers that every set of a size has, in two forms of the same sums.

    The numbers are Σ_{T⊇S} ω(|T∖S|) w_T, and also Σ_{R⊆N∖S} b(|R|) Δ_S(R), with the Walsh terms w_T and the joint
    differences Δ_S(R) = Σ_{Q⊆S} (−1)^{|S∖Q|} v(R∪Q).
    """

    of_terms: Float[Tensor, "numbers added"]  # ω, for as many added players as matter
    of_contexts: Float[Tensor, "numbers contexts"]  # b, from 0 to all other players


def most_added_players(kernel: CubeKernel) -> int:
    """Return the largest number of players in Walsh terms whose prior variance is not negligible."""
    by_size = torch.ones(1, dtype=kernel.relevances.dtype)
    for relevance in kernel.relevances.tolist():
        longer = torch.zeros(len(by_size) + 1, dtype=by_size.dtype)
        longer[:-1] += by_size
        longer[1:] += relevance * by_size
        by_size = longer / (1 + relevance)  # so that the sizes' shares add up to 1
    # Summed from the end, where shares are smallest, so that rounding errors are smaller than the sums.
    beyond = by_size.flip(0).cumsum(0).flip(0)
    return int((beyond > _LEAST_SHARE).sum()) - 1


def set_functional(kernel: CubeKernel, signs: Signs, sets: Sets, weights: SetWeights) -> Functional:
    """Return how the numbers of sets vary with the values of coalitions; those of all sets come after one another."""
    part_weights = _of_part(kernel, sets, weights)
    everyone = kernel.relevances[None]
    covariances = _superset_sums(kernel, kernel.relevances * signs, sets, part_weights.of_terms)
    variances = _superset_sums(kernel, everyone, sets, part_weights.of_terms.square())[0]
    covariances += _lowest_covariances(kernel, signs, sets, part_weights.of_terms)
    variances += _lowest_variances(kernel, sets, part_weights.of_terms)
    covariances += _noise_covariances(kernel, signs, sets, part_weights.of_contexts)
    variances += _noise_variance(kernel, sets, part_weights.of_contexts)[:, None]
    return Functional(covariances.flatten(1), variances.flatten())


def set_means(
    kernel: CubeKernel, signs: Signs, row_weights: Float[Tensor, " coalitions"], sets: Sets, weights: SetWeights
) -> Float[Tensor, " numbers"]:
    """Return the weighted sums of the covariances over the coalitions, which is quicker than to compute each."""
    part_weights = _of_part(kernel, sets, weights)
    if len(signs) == 0:
        return signs.new_zeros(len(part_weights.of_terms) * len(sets))
    means = _weighted_superset_sums(kernel, kernel.relevances * signs, row_weights, sets, part_weights.of_terms)
    for rows in blocks(len(signs), max(1, _AT_ONCE // max(1, means.numel()))):
        covariances = _lowest_covariances(kernel, signs[rows], sets, part_weights.of_terms)
        covariances = covariances + _noise_covariances(kernel, signs[rows], sets, part_weights.of_contexts)
        means += torch.einsum("r,rns->ns", row_weights[rows], covariances)
    return means.flatten()


def _of_part(kernel: CubeKernel, sets: Sets, weights: SetWeights) -> SetWeights:
    """Return the weights of one part: Walsh terms have an odd or an even number of players, and contexts are paired.

    In the odd part, the value of a complement is that of the coalition, negated; in the even part it is the same.
    """
    size = sets.shape[1]
    is_odd = kernel.part is Part.ODD
    added = torch.arange(weights.of_terms.shape[1])
    belongs = (size + added) % 2 == int(is_odd)
    of_terms = torch.where(belongs, weights.of_terms, 0.0)
    sign = -1 if is_odd else 1
    if size % 2 == 1:
        sign = -sign
    return SetWeights(of_terms, weights.of_contexts + sign * weights.of_contexts.flip(1))


class _SplitSets(NamedTuple):
    """Sets in two parts, whose products are multiplied: all but the last player, and the last one.

    Products of all first with all last parts are one product of matrices. If only few of these combinations are sets,
    the whole set is the first part, and the last part is nobody, whose number comes after those of all players.
    """

    firsts: Int[Tensor, "distinct fewer"]
    first_numbers: Int[Tensor, " sets"]
    lasts: Int[Tensor, " players"]
    last_numbers: Int[Tensor, " sets"]
    size: int  # of each set

    @classmethod
    def of(cls, sets: Sets, players: int) -> _SplitSets:
        """Split sets of one size."""
        first_of_each = torch.zeros(len(sets), dtype=torch.long)
        if sets.shape[1] == 1:
            return cls(sets[:1, :0], first_of_each, torch.arange(players), sets[:, 0], 1)
        size = sets.shape[1]
        if size > 1:
            firsts, first_numbers = sets[:, :-1].unique(dim=0, return_inverse=True)
            if len(firsts) * players <= _MOST_PRODUCTS_OF_A_SET * len(sets):
                return cls(firsts, first_numbers, torch.arange(players), sets[:, -1], size)
        return cls(sets, torch.arange(len(sets)), torch.tensor([players]), first_of_each, size)

    def chosen(
        self, products: Float[Tensor, "rows numbers_firsts lasts"], numbers: int
    ) -> Float[Tensor, "rows numbers sets"]:
        """Pick the products of the listed sets from those of all first and last parts."""
        return products.unflatten(1, (numbers, len(self.firsts)))[:, :, self.first_numbers, self.last_numbers]


class _Factors(NamedTuple):
    """Complex factors in real numbers: the sum of left · right over the parts is the real part of their product.

    There are two parts for each point: the left ones hold a real part and a negated imaginary part, the right
    ones a real and an imaginary part.
    """

    left: Float[Tensor, "rows parts numbers_firsts"]
    right: Float[Tensor, "rows parts lasts"]

    @classmethod
    def of(
        cls, left: Complex[Tensor, "rows points numbers_firsts"], right: Complex[Tensor, "rows points lasts"]
    ) -> _Factors:
        """Split complex factors into their parts."""
        return cls(torch.cat([left.real, -left.imag], dim=1), torch.cat([right.real, right.imag], dim=1))


def _row_blocks(
    relevant: Float[Tensor, "rows players"], split: _SplitSets, of_terms: Float[Tensor, "numbers added"]
) -> Iterator[slice]:
    """Yield slices of rows that fit into memory."""
    numbers = len(of_terms)
    points = len(_points_of(of_terms, most_added=relevant.shape[1] - split.size).points)
    lefts = numbers * len(split.firsts)
    of_a_row = lefts * len(split.lasts) + 4 * points * (lefts + relevant.shape[1])
    yield from blocks(len(relevant), max(1, _AT_ONCE // of_a_row))


def _superset_sums(
    kernel: CubeKernel, relevant: Float[Tensor, "rows players"], sets: Sets, of_terms: Float[Tensor, "numbers added"]
) -> Float[Tensor, "rows numbers sets"]:
    """Return Σ_{T⊇S} ω(|T∖S|) Π_{l∈T} of what is relevant, times the amplitude and the kernel's factor."""
    split = _SplitSets.of(sets, relevant.shape[1])
    sums = relevant.new_empty(len(relevant), len(of_terms), len(sets))
    for rows in _row_blocks(relevant, split, of_terms):
        factors = _polynomials_at_points(kernel, relevant[rows], split, of_terms)
        products = factors.left.transpose(1, 2) @ factors.right
        sums[rows] = split.chosen(products, len(of_terms))
    return sums.mul_(kernel.amplitude)


def _weighted_superset_sums(
    kernel: CubeKernel,
    relevant: Float[Tensor, "rows players"],
    row_weights: Float[Tensor, " rows"],
    sets: Sets,
    of_terms: Float[Tensor, "numbers added"],
) -> Float[Tensor, "numbers sets"]:
    """Return the weighted sum over the rows of what `_superset_sums` gives for each.

    The rows are summed within one product of matrices, which all points share.
    """
    split = _SplitSets.of(sets, relevant.shape[1])
    products = relevant.new_zeros(len(of_terms) * len(split.firsts), len(split.lasts))
    for rows in _row_blocks(relevant, split, of_terms):
        factors = _polynomials_at_points(kernel, relevant[rows], split, of_terms)
        left = factors.left * row_weights[rows, None, None]
        products += left.flatten(0, 1).T @ factors.right.flatten(0, 1)
    return kernel.amplitude * split.chosen(products[None], len(of_terms))[0]


def _polynomials_at_points(
    kernel: CubeKernel,
    relevant: Float[Tensor, "rows players"],
    split: _SplitSets,
    of_terms: Float[Tensor, "numbers added"],
) -> _Factors:
    """Return Π_{l∈S} r_l · Π_{l∉S} (1 + z r_l) at some points z, in factors, weighted for a sum over supersets.

    The polynomial of a set is that of all players, Π_l (1 + z r_l), with the factor 1 + z r_l of each of its players
    replaced by r_l.
    """
    points, point_weights = _points_of(of_terms, most_added=relevant.shape[1] - split.size)
    of_players = 1 + points[:, None] * relevant[:, None, :]  # (rows, points, players)
    # The kernel's factor is spread over the players, so that products stay within the range of numbers.
    of_everyone = (of_players * math.exp(kernel.log_factor / relevant.shape[1])).prod(2)
    replacing = relevant[:, None, :] / of_players
    nobody = torch.ones(*of_everyone.shape, 1, dtype=points.dtype)
    replacing = torch.cat([replacing, nobody], dim=2)
    of_firsts = of_everyone[:, :, None] * replacing[:, :, split.firsts].prod(3)  # (rows, points, firsts)
    of_numbers = point_weights.T[:, :, None] * of_firsts[:, :, None, :]  # (rows, points, numbers, firsts)
    return _Factors.of(of_numbers.flatten(2), replacing[:, :, split.lasts])


class _Points(NamedTuple):
    """Points at which the values of a polynomial, weighted, give the weighted sum of its coefficients."""

    points: Complex[Tensor, " points"]
    weights: Complex[Tensor, "numbers points"]


def _points_of(of_terms: Float[Tensor, "numbers added"], most_added: int) -> _Points:
    """Return as few points as these weights of coefficients need; there are at most so many added players.

    A weight of the first coefficient alone needs the value at 0, which gives Walsh terms. Weights that are the same
    for all odd and for all even numbers of added players need those at 1 and −1, which gives Harsanyi effects. Others
    need the values at all roots of unity.
    """
    relevant = of_terms[:, : most_added + 1]
    if not bool(relevant[:, 1:].any()):
        return _Points(torch.zeros(1, dtype=torch.complex128), relevant[:, :1].to(torch.complex128))
    of_even = relevant[:, 0]
    of_odd = relevant[:, 1]
    expected = torch.where(torch.arange(relevant.shape[1]) % 2 == 0, of_even[:, None], of_odd[:, None])
    if torch.equal(relevant, expected):
        weights = torch.stack([of_even + of_odd, of_even - of_odd], dim=1) / 2
        return _Points(torch.tensor([1.0, -1.0], dtype=torch.complex128), weights.to(torch.complex128))
    return _Points(_upper_roots_of_unity(of_terms.shape[1]), _weights_of_roots(of_terms))


def _upper_roots_of_unity(count: int) -> Complex[Tensor, " roots"]:
    """Return the roots of unity in the upper half plane, ±1 included. The others are their conjugates."""
    angles = 2 * math.pi / count * torch.arange(count // 2 + 1, dtype=torch.float64)
    return torch.polar(torch.ones_like(angles), angles)


def _weights_of_roots(of_terms: Float[Tensor, "numbers added"]) -> Complex[Tensor, "numbers roots"]:
    """Return weights that make a weighted sum of a polynomial's coefficients of its values at the upper roots.

    Weights count twice where a root stands for its conjugate, too, which has the same real part.
    """
    added = of_terms.shape[1]
    weights = torch.fft.rfft(of_terms, dim=1) * (2 / added)
    weights[:, 0] /= 2
    if added % 2 == 0:
        weights[:, -1] /= 2
    return weights


def _lowest_covariances(
    kernel: CubeKernel, signs: Signs, sets: Sets, of_terms: Float[Tensor, "numbers added"]
) -> Float[Tensor, "rows numbers sets"]:
    """Return the covariances through the terms of lowest order: slopes of the odd part, the mean of the even part."""
    rows = len(signs)
    numbers, added = of_terms.shape
    size = sets.shape[1]
    is_odd = kernel.part is Part.ODD
    if is_odd and size == 1:
        of_players = signs * kernel.slope_variances
        return of_terms[:, :1] * of_players[:, None, sets[:, 0]]
    if is_odd and size == 0 and added > 1:
        of_everyone = signs @ kernel.slope_variances
        return of_terms[:, 1:2] * of_everyone[:, None, None].expand(rows, numbers, len(sets))
    if not is_odd and size == 0:
        return kernel.lowest * of_terms[:, :1].expand(rows, numbers, len(sets))
    return signs.new_zeros(rows, numbers, len(sets))


def _lowest_variances(
    kernel: CubeKernel, sets: Sets, of_terms: Float[Tensor, "numbers added"]
) -> Float[Tensor, "numbers sets"]:
    """Return the prior variance of numbers through the terms of lowest order."""
    numbers, added = of_terms.shape
    size = sets.shape[1]
    is_odd = kernel.part is Part.ODD
    if is_odd and size == 1:
        return of_terms[:, :1].square() * kernel.slope_variances[sets[:, 0]]
    if size == 0 and not is_odd:
        return kernel.lowest * of_terms[:, :1].square().expand(numbers, len(sets))
    if size == 0 and added > 1:
        return kernel.lowest * of_terms[:, 1:2].square().expand(numbers, len(sets))
    return of_terms.new_zeros(numbers, len(sets))


def _noise_covariances(
    kernel: CubeKernel, signs: Signs, sets: Sets, of_contexts: Float[Tensor, "numbers contexts"]
) -> Float[Tensor, "rows numbers sets"]:
    """Return the covariances with the noise in the values; the values of ∅ and of all players have none."""
    present = signs > 0
    sizes = present.sum(1)
    members = torch.zeros(len(sets), signs.shape[1], dtype=signs.dtype).scatter_(1, sets, 1.0)
    overlaps = (present.to(members) @ members.T).long()  # (rows, sets)
    contexts = sizes[:, None] - overlaps
    parity = 1 - 2 * ((sets.shape[1] - overlaps) % 2)
    is_noisy = (sizes > 0) & (sizes < signs.shape[1])
    noise = kernel.noise * (parity * is_noisy[:, None]).to(signs)
    return noise[:, None, :] * of_contexts[:, contexts].transpose(0, 1)


def _noise_variance(
    kernel: CubeKernel, sets: Sets, of_contexts: Float[Tensor, "numbers contexts"]
) -> Float[Tensor, " numbers"]:
    """Return the variance of numbers through the noise of all values but those of ∅ and of all players."""
    size = sets.shape[1]
    others = of_contexts.shape[1] - 1
    # Beyond the bound, weights are 0.
    bounded = [float(min(math.comb(others, count), _MOST_CONTEXTS)) for count in range(others + 1)]
    counts = torch.tensor(bounded, dtype=torch.float64)
    squares = of_contexts.square()
    # Each coalition and its complement share their noise, so half of the sum counts.
    total = (2.0**size * counts * squares).sum(1) / 2
    ends = (squares[:, 0] + squares[:, -1]) / 2
    return kernel.noise * (total - ends).clamp_min(0)


def all_sets(players: int, size: int) -> Sets:
    """Return all sets of a size.

    Examples
    --------
    >>> all_sets(3, 2)
    tensor([[0, 1],
            [0, 2],
            [1, 2]])
    """
    if size == 0:
        return torch.zeros(1, 0, dtype=torch.long)
    return torch.combinations(torch.arange(players), size)


def noise_matters(players: int, size: int) -> Bool[Tensor, " contexts"]:
    """Mark the sizes of contexts that are so few that noise in their values does not cancel."""
    others = players - size
    counts = [math.comb(others, count) for count in range(others + 1)]
    return torch.tensor([count <= _MOST_CONTEXTS for count in counts])
