"""Coalitions as boolean rows in counting order, and the transforms of a table over all of them.

Row k of a table over n players belongs to the coalition in which player i is present iff bit i of k is set.
Then the complement of every coalition is ``flip``, and splitting a table by one player is a reshape.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.arguments import checked
from absentia.data import check_number
from absentia.errors import wrong

Coalitions: TypeAlias = Bool[Tensor, "coalitions players"]

# The numbers of coalitions of more players do not fit into 64-bit integers.
_MOST_PLAYERS = 62
# Tables are transformed in blocks of 2^16 entries first, so that the work of the first 16 players stays in cache.
_BLOCK_PLAYERS = 16
# In a table split by one player, the halves of the coalitions in which that player is absent and present.
_ABSENT_HALF = 0
_PRESENT_HALF = 1


@checked
def enumerate_coalitions(players: int, start: int = 0, stop: int | None = None) -> Coalitions:
    """Return all 2ⁿ coalitions in counting order: row k holds player i iff bit i of k is set.

    Parameters
    ----------
    players : int
    start, stop : int, optional
        Return only the coalitions with numbers from ``start`` up to but excluding ``stop``.

    Examples
    --------
    >>> enumerate_coalitions(2).int().tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    check_number("players", players, 0, _MOST_PLAYERS)
    if stop is None:
        stop = 2**players
    if not 0 <= start <= stop <= 2**players:
        raise wrong("start and stop", f"lie between 0 and {2**players}, in this order", f"{start} and {stop}")
    numbers = torch.arange(start, stop)
    return (numbers[:, None] >> torch.arange(players) & 1).bool()


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # the cached tensor may be used with a gradient later
def coalition_sizes(players: int) -> Int[Tensor, " coalitions"]:
    """Count the players present in each of the 2ⁿ coalitions, in counting order."""
    sizes = torch.zeros(1, dtype=torch.int64)
    for _ in range(players):
        sizes = torch.cat([sizes, sizes + 1])
    return sizes


def coalition_numbers(coalitions: Bool[Tensor, "*rows players"]) -> Int[Tensor, " *rows"]:
    """Return each coalition's number in counting order: the inverse of `enumerate_coalitions`."""
    bits = torch.arange(coalitions.shape[-1], device=coalitions.device)
    return (coalitions.long() << bits).sum(-1)


def coalition_members(number: int) -> tuple[int, ...]:
    """Return the players of the coalition with this number in counting order."""
    return tuple(player for player in range(number.bit_length()) if number >> player & 1)


def table_players(length: int) -> int:
    """Return the number of players of a table of this length, which must be a power of two."""
    players = length.bit_length() - 1
    if length != 2**players:
        raise wrong("values", "have 2ⁿ entries in the last axis, one for each coalition", length)
    return players


@checked
def draw_coalitions(players: int, sizes: Int[Tensor, " coalitions"], generator: torch.Generator) -> Coalitions:
    """Draw one coalition of each size, uniformly among all coalitions of that size.

    Parameters
    ----------
    players : int
    sizes : Tensor
        The size of each coalition to draw.
    generator : torch.Generator

    Examples
    --------
    >>> draw_coalitions(5, torch.tensor([0, 2, 5]), torch.Generator().manual_seed(0)).sum(-1).tolist()
    [0, 2, 5]
    """
    if len(sizes) and not 0 <= int(sizes.min()) <= int(sizes.max()) <= players:
        raise wrong("sizes", f"lie between 0 and {players} players", f"{sizes.min():d} to {sizes.max():d}")
    order = torch.rand(len(sizes), players, generator=generator).argsort(-1)  # (coalitions, players), random
    joins = torch.arange(players) < sizes[:, None]  # by the place in the order
    return torch.zeros_like(joins).scatter_(-1, order, joins)


@checked
def moebius(values: Shaped[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch coalitions"]:
    """Compute effects, the Harsanyi dividends, from values: U(S) = Σ_{T⊆S} (−1)^{|S|−|T|} v(T), differentiably.

    Parameters
    ----------
    values : Tensor
        The values of all 2ⁿ coalitions in counting order, along the last axis.

    Examples
    --------
    >>> moebius(torch.tensor([2.0, -2.0, -1.0, 1.0])).tolist()
    [2.0, -4.0, -3.0, 6.0]
    """
    return _butterfly(values, _PRESENT_HALF, sign=-1)


@checked
def zeta(effects: Shaped[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch coalitions"]:
    """Compute values from effects: v(S) = Σ_{T⊆S} U(T), the inverse of `moebius`.

    Parameters
    ----------
    effects : Tensor
        The effects of all 2ⁿ coalitions in counting order, along the last axis.

    Examples
    --------
    >>> zeta(torch.tensor([2.0, -4.0, -3.0, 6.0])).tolist()
    [2.0, -2.0, -1.0, 1.0]
    """
    return _butterfly(effects, _PRESENT_HALF, sign=1)


def superset_sums(effects: Float[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch coalitions"]:
    """Sum a table over the supersets of each coalition: Σ_{T⊇S} U(T), differentiably."""
    return _butterfly(effects, _ABSENT_HALF, sign=1)


def moebius_(values: Float[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch coalitions"]:
    """Compute effects from values in place, without a gradient and without extra memory."""
    return _butterfly_(values, _PRESENT_HALF, sign=-1)


def zeta_(effects: Float[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch coalitions"]:
    """Compute values from effects in place, without a gradient and without extra memory."""
    return _butterfly_(effects, _PRESENT_HALF, sign=1)


@torch.no_grad()
def _butterfly_(table: Tensor, half: int, sign: int) -> Tensor:
    """For every player in turn, add ``sign`` × the other half of the table to this half (1 = present)."""
    players = table_players(table.shape[-1])
    if not table.is_contiguous():
        raise wrong("values", "be contiguous to be transformed in place", f"strides {table.stride()}")
    low = min(players, _BLOCK_PLAYERS)
    for block in table.view(-1, 2**low).split(2 ** (_BLOCK_PLAYERS - low)):
        for player in range(low):
            halves = block.view(-1, 2, 2**player)
            halves[:, half].add_(halves[:, 1 - half], alpha=sign)
    for player in range(low, players):
        halves = table.view(-1, 2, 2**player)
        halves[:, half].add_(halves[:, 1 - half], alpha=sign)
    return table


def _butterfly(table: Tensor, half: int, sign: int) -> Tensor:
    """Transform a copy of the table, with a gradient; integers become floating-point numbers."""
    if not table.is_floating_point():
        table = table.double()
    return _Butterfly.apply(table, half, sign)  # type: ignore[no-untyped-call]


class _Butterfly(torch.autograd.Function):
    """The transform with its gradient: the adjoint of a butterfly is the butterfly onto the other half."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, half: int, sign: int) -> Tensor:
        ctx.half = half
        ctx.sign = sign
        return _butterfly_(table.clone(memory_format=torch.contiguous_format), half, sign)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        other_half = 1 - ctx.half
        return _butterfly(gradients[0], other_half, ctx.sign), None, None


def sums_by_size(table: Float[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch sizes"]:
    """Sum a table over the coalitions of each size 0 … n."""
    players = table_players(table.shape[-1])
    sizes = coalition_sizes(players).to(table.device)
    return table.new_zeros(*table.shape[:-1], players + 1).index_add(-1, sizes, table)


def sums_by_size_and_player(table: Float[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch sizes players"]:
    """Sum a table over the coalitions of each size that contain each player: Σ_{|S|=s, i∈S} v(S).

    Coalitions are split in the part among the first players and the part among the last ones. For the sums of the
    first players, the last ones matter only by how many are present, and the other way round. So each half is first
    summed by its size, through a matrix product, and two passes over the table are enough.
    """
    players = table_players(table.shape[-1])
    first = players // 2
    last = players - first
    by_parts = table.unflatten(-1, (2**last, 2**first))  # (…, coalitions of the last, coalitions of the first)
    sizes_of_last = _size_indicators(last, table.dtype, table.device)  # (coalitions of the last, sizes)
    sizes_of_first = _size_indicators(first, table.dtype, table.device)  # (coalitions of the first, sizes)
    by_size_of_last = sizes_of_last.T @ by_parts  # (…, sizes of the last, coalitions of the first)
    by_size_of_first = (by_parts @ sizes_of_first).transpose(
        -1, -2
    )  # (…, sizes of the first, coalitions of the last)
    sums_of_first = _sums_of_half(by_size_of_last, first)  # (…, sizes, first players)
    sums_of_last = _sums_of_half(by_size_of_first, last)  # (…, sizes, last players)
    return torch.cat([sums_of_first, sums_of_last], dim=-1)


def _sums_of_half(
    by_size_of_others: Float[Tensor, "*batch sizes_of_others coalitions"], players: int
) -> Float[Tensor, "*batch sizes players"]:
    """Sum over the coalitions of these players; the size of a whole coalition is theirs plus that of the others."""
    batch = by_size_of_others.shape[:-2]
    device = by_size_of_others.device
    sizes_of_others = torch.arange(by_size_of_others.shape[-2], device=device)
    own_sizes = torch.arange(players + 1, device=device)
    sizes = (sizes_of_others[:, None] + own_sizes).flatten()  # of each pair of the two sizes
    membership = _membership_indicators(players, by_size_of_others.dtype, device)  # (coalitions, own sizes · players)
    by_both_sizes = by_size_of_others @ membership  # (…, sizes of others, own sizes · players)
    by_pair_of_sizes = by_both_sizes.reshape(*batch, len(sizes), players)
    total = by_size_of_others.new_zeros(*batch, len(sizes_of_others) + players, players)
    return total.index_add(-2, sizes, by_pair_of_sizes)


# The two tables below depend only on the number of players. They are cached because computing them is slow.


@lru_cache(maxsize=16)
@torch.inference_mode(False)
def _size_indicators(players: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Mark the size of each coalition: (coalitions, sizes), one-hot rows."""
    return torch.nn.functional.one_hot(coalition_sizes(players), players + 1).to(device, dtype)


@lru_cache(maxsize=16)
@torch.inference_mode(False)
def _membership_indicators(players: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Mark, for each coalition, its size together with each of its players: (coalitions, sizes × players)."""
    contains = enumerate_coalitions(players).to(device, dtype)
    has_size = _size_indicators(players, dtype, device)
    return (has_size[:, :, None] * contains[:, None, :]).flatten(1)
