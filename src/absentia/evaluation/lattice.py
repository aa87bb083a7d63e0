"""Masked inputs of all coalitions, made block by block.

A block holds 2^k consecutive coalitions: all combinations of the first k players, with the other players fixed. One
bit mask over the first k players is then enough for all blocks. Three bit operations choose between the sample's
value and the stand-in, absent ⊕ (mask ∧ (present ⊕ absent)). This is exact for every type, and several times faster
than a conditional on each entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.nn.functional import pad

from absentia.absences.protocol import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.data import blocks, count_blocks
from absentia.players import Players

# Samples and stand-ins are gathered for this many pairs at once, because small operations in the loop are slow.
_PAIRS_AT_A_TIME = 64
# The presence of the players that are fixed within a block is computed for this many blocks at once.
_BLOCKS_AT_A_TIME = 256
# Large inputs are handled in smaller groups, of this many numbers.
NUMBERS_AT_A_TIME = 2**20
# Short rows are joined into long ones of about this many entries.
_ENTRIES_OF_A_LONG_ROW = 2048
# The integer type with as many bytes as an entry.
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Block(NamedTuple):
    """Masked inputs for consecutive coalitions of a few samples."""

    samples: Int[Tensor, " pairs"]  # the sample of each pair; a sample has one pair for each draw
    first: int  # the number of the first coalition
    inputs: Shaped[Tensor, "pairs coalitions *entries"]  # valid until the next block, which reuses the memory


class Layout(NamedTuple):
    """How the coalitions of all pairs of a sample and a draw are split into blocks of limited size."""

    players: Players
    fill: StandIns
    first_players: int  # how many players vary within a block
    pairs_per_block: int

    @classmethod
    def of(cls, players: Players, fill: StandIns, rows: int) -> Layout:
        """Split into blocks of at most ``rows`` rows."""
        first_players = min(len(players), max(0, rows.bit_length() - 1))
        pairs_per_block = max(1, rows >> len(players))
        return cls(players, fill, first_players, pairs_per_block)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        pairs = len(self.fill.x) * self.fill.draws
        return count_blocks(pairs, self.pairs_per_block) * 2 ** (len(self.players) - self.first_players)

    def at_a_time(self, most: int) -> int:
        """Return how many inputs to hold at a time: at most ``most``, and fewer if they are large."""
        return max(1, min(most, NUMBERS_AT_A_TIME // self.fill.x[0].numel()))

    def pairs(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the samples, entries and stand-ins of the pairs in each block."""
        x = self.fill.x
        stand_ins = self.fill.values
        size = self.pairs_per_block
        every_pair = torch.arange(len(x) * self.fill.draws, device=x.device)
        for pairs in every_pair.split(max(1, self.at_a_time(_PAIRS_AT_A_TIME) // size) * size):
            samples = pairs // self.fill.draws
            draws = pairs % self.fill.draws
            absent = stand_ins[samples % len(stand_ins), draws]
            yield from zip(samples.split(size), x[samples].split(size), absent.split(size), strict=True)


def masked_inputs(layout: Layout) -> Iterator[Block]:
    """Yield the masked inputs of all coalitions of the samples.

    Entries are treated as integers with the same bits. For the first players, ``flips`` holds the bits in which the
    input of a coalition differs from the input without these players: mask ∧ (present ⊕ absent). They are computed
    once for a pair. A block is then row ⊕ flips, where only the other players may be present in the row.
    """
    players = layout.players
    mask = _first_players_mask(layout)  # (coalitions, entries)
    coalitions, entries = mask.shape
    presence_by_block = _presence_by_block(layout)
    flips = mask.new_empty(layout.pairs_per_block, coalitions, entries)
    one_block_for_each_pair = layout.first_players == len(players)
    # With one block for each pair, the flips are not needed again, so the inputs may overwrite them.
    input_bits = flips if one_block_for_each_pair else torch.empty_like(flips)
    rows = _rows_in_a_long_row(coalitions, entries)
    for samples, values, stand_ins in layout.pairs():
        pairs = len(samples)
        present = values.contiguous().view(mask.dtype).flatten(1)  # (pairs, entries), the bits of each entry
        absent = stand_ins.contiguous().view(mask.dtype).flatten(1)  # (pairs, entries)
        long_flips = flips[:pairs].view(pairs, coalitions // rows, rows * entries)
        long_input_bits = input_bits[:pairs].view_as(long_flips)
        differing_bits = (present ^ absent).repeat(1, rows)  # (pairs, rows · entries)
        torch.bitwise_and(mask.view(long_flips.shape[1:]), differing_bits[:, None], out=long_flips)
        # The same memory as ``input_bits``, read as numbers again: (pairs, coalitions, *entries).
        inputs = input_bits[:pairs].view(values.dtype).view(pairs, coalitions, *players.shape)
        for number, presence in enumerate(presence_by_block()):
            without_first_players = torch.where(presence, present, absent)  # (pairs, entries)
            long_row = without_first_players.repeat(1, rows)  # (pairs, rows · entries)
            torch.bitwise_xor(long_flips, long_row[:, None], out=long_input_bits)
            yield Block(samples, number << layout.first_players, inputs)


def _rows_in_a_long_row(coalitions: int, entries: int) -> int:
    """Return how many inputs to join into a long row, because looping over short rows has a large overhead.

    It is a power of two, so that it divides the number of coalitions.
    """
    wanted = max(1, _ENTRIES_OF_A_LONG_ROW // entries)
    power_of_two = 2 ** (wanted.bit_length() - 1)  # the largest up to the wanted number
    return min(coalitions, power_of_two)


def _presence_by_block(layout: Layout) -> Callable[[], Iterable[Bool[Tensor, " entries"]]]:
    """Return a function that iterates over the presence of the other players in each block.

    The presence is stored if there are few blocks. Otherwise it is computed again for each pair, to save memory.
    """
    blocks_of_a_pair = 2 ** (len(layout.players) - layout.first_players)
    if blocks_of_a_pair > layout.at_a_time(_BLOCKS_AT_A_TIME):
        return partial(_other_players_presence, layout)
    stored = list(_other_players_presence(layout))
    return lambda: stored


def _other_players_presence(layout: Layout) -> Iterator[Bool[Tensor, " entries"]]:
    """Yield, for each block, which entries are present in all of its coalitions."""
    others = len(layout.players) - layout.first_players
    for part in blocks(2**others, layout.at_a_time(_BLOCKS_AT_A_TIME)):
        coalitions = enumerate_coalitions(others, part.start, part.stop).to(layout.fill.x.device)
        yield from layout.players.presence(pad(coalitions, (layout.first_players, 0))).flatten(1)


def _first_players_mask(layout: Layout) -> Shaped[Tensor, "coalitions entries"]:
    """Return a mask for every coalition of the first players, with all bits set in the entries that are present."""
    labels = layout.players.labels.flatten().to(layout.fill.x.device)  # (entries,)
    first_players = torch.arange(layout.first_players, device=labels.device)
    owns = labels == first_players[:, None]  # (first players, entries)
    # As a number, True is 1, and −1 has all bits set.
    all_bits = -owns.to(_BITS[layout.fill.x.element_size()])
    mask = all_bits.new_zeros(2**layout.first_players, len(labels))  # (coalitions, entries)
    # By doubling: each player adds a copy of all coalitions so far, with itself present.
    for player, bits_of_player in enumerate(all_bits):
        half = 2**player
        torch.bitwise_or(mask[:half], bits_of_player, out=mask[half : 2 * half])
    return mask
