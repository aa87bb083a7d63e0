"""Masked inputs of all coalitions, made block by block.

A block holds 2^k consecutive coalitions: all combinations of the first k players, with the other players fixed. One
bit mask over the first k players then serves every block. An entry is chosen between the sample's value and the
stand-in by three bit operations, absent ⊕ (mask ∧ (present ⊕ absent)). This is exact for every type, and several
times faster than a conditional on each entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.nn.functional import pad

from absentia.absences.protocol import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.data import blocks
from absentia.players import Players

# Samples and stand-ins are gathered for this many pairs at once, to keep small operations out of the loop.
_PAIRS_AT_A_TIME = 64
# The presence of the players that are fixed within a block is made for this many blocks at once.
_BLOCKS_AT_A_TIME = 256
# Fewer of each where inputs are large: this many numbers.
NUMBERS_AT_A_TIME = 2**20
# Rows are joined to long ones of about this many entries.
_ENTRIES_OF_A_LONG_ROW = 2048
# The type of integers whose bits are those of an entry, by the entry's bytes.
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Block(NamedTuple):
    """Masked inputs for consecutive coalitions of a few samples."""

    samples: Int[Tensor, " pairs"]  # the sample of each pair; a sample has one pair for each draw
    first: int  # the number of the first coalition
    inputs: Shaped[Tensor, "pairs coalitions *entries"]  # valid until the next block, which reuses the memory


class Layout(NamedTuple):
    """How the coalitions of all pairs of a sample and a draw are split into blocks of at most some rows."""

    players: Players
    fill: StandIns
    first_players: int  # those that vary within a block
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
        return -(-pairs // self.pairs_per_block) * 2 ** (len(self.players) - self.first_players)

    def at_a_time(self, most: int) -> int:
        """Return how many inputs to hold at a time: as many as hold few numbers, and at most ``most``."""
        return max(1, min(most, NUMBERS_AT_A_TIME // self.fill.x[0].numel()))

    def pairs(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the samples, their entries and their stand-ins for the pairs of one block after another."""
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
    """Yield the masked inputs of all coalitions of the samples."""
    players = layout.players
    first_players = layout.first_players
    mask = _first_players_mask(layout)
    # Stored if they are few; made again for each pair if they would fill the memory.
    few_blocks = 2 ** (len(players) - first_players) <= layout.at_a_time(_BLOCKS_AT_A_TIME)
    stored = list(_other_players_presence(layout)) if few_blocks else None
    flips = mask.new_empty(layout.pairs_per_block, *mask.shape)
    # With one block for each pair the flips are not needed again, and the inputs can overwrite them.
    bits = flips if first_players == len(players) else torch.empty_like(flips)
    # Rows are short: treating several as one long row saves most of the overhead of a loop. Their number is a power
    # of two, so that it divides the number of coalitions.
    tiles = min(len(mask), 1 << max(1, _ENTRIES_OF_A_LONG_ROW // mask.shape[1]).bit_length() - 1)
    for samples, values, stand_ins in layout.pairs():
        present = values.contiguous().view(mask.dtype).flatten(1)
        absent = stand_ins.contiguous().view(mask.dtype).flatten(1)
        long_flips = flips[: len(samples)].view(len(samples), -1, tiles * mask.shape[1])
        long_bits = bits[: len(samples)].view_as(long_flips)
        flip = (present ^ absent).repeat(1, tiles)
        torch.bitwise_and(mask.view(long_flips.shape[1:]), flip.unsqueeze(1), out=long_flips)
        inputs = bits[: len(samples)].view(values.dtype).view(len(samples), len(mask), *players.shape)
        for number, presence in enumerate(stored or _other_players_presence(layout)):
            # The first players are absent from this row, and the flips bring them in.
            row = torch.where(presence, present, absent).repeat(1, tiles)
            torch.bitwise_xor(long_flips, row.unsqueeze(1), out=long_bits)
            yield Block(samples, number << first_players, inputs)


def _other_players_presence(layout: Layout) -> Iterator[Bool[Tensor, " entries"]]:
    """Yield, for each block, which entries are present in all of it."""
    others = len(layout.players) - layout.first_players
    for part in blocks(2**others, layout.at_a_time(_BLOCKS_AT_A_TIME)):
        coalitions = enumerate_coalitions(others, part.start, part.stop).to(layout.fill.x.device)
        yield from layout.players.presence(pad(coalitions, (layout.first_players, 0))).flatten(1)


def _first_players_mask(layout: Layout) -> Shaped[Tensor, "coalitions entries"]:
    """Set all bits of the entries whose player is present, for every coalition of the first players."""
    labels = layout.players.labels.flatten().to(layout.fill.x.device)
    numbers = torch.arange(layout.first_players, device=labels.device)
    own = -(labels == numbers[:, None]).to(_BITS[layout.fill.x.element_size()])  # all bits of each player's entries
    mask = own.new_zeros(2**layout.first_players, len(labels))
    # By doubling: the coalitions up to a player are those before it, and the same with the player.
    for player, entries in enumerate(own):
        half = 2**player
        torch.bitwise_or(mask[:half], entries, out=mask[half : 2 * half])
    return mask
