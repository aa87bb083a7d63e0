"""The masked inputs of all 2ⁿ coalitions, block by block, for stand-ins that do not depend on the coalition.

A block holds 2^k consecutive coalitions: all combinations of the first k players, with the other players fixed. So
one bit mask over the first k players serves every block, and an entry is chosen between the sample's value and the
stand-in by three bit operations: absent ⊕ (mask ∧ (present ⊕ absent)). That is exact for every type, and several
times faster than a conditional on each entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.nn.functional import pad

from absentia.absence import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.inference import blocks
from absentia.players import Players

# Samples and stand-ins are gathered for this many pairs at once, to keep small operations out of the loop.
_PAIRS_AT_A_TIME = 64
# The presence of the players that are fixed within a block is made for this many blocks at once.
_BLOCKS_AT_A_TIME = 256

_ENTRIES_OF_A_LONG_ROW = 2048

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Block(NamedTuple):
    """Masked inputs for consecutive coalitions of a few samples."""

    samples: Int[Tensor, " pairs"]  # which sample each row of blocks belongs to; one pair for each draw
    first: int  # the number of the first coalition
    inputs: Shaped[Tensor, "pairs coalitions *entries"]  # valid until the next block, which reuses the memory


@dataclass(frozen=True)
class Layout:
    """How all coalitions of all pairs of a sample and a draw are cut into blocks of at most ``rows`` rows.

    >>> layout = Layout(players=5, pairs=3, rows=8)
    >>> layout.first_players, layout.pairs_per_block, layout.blocks
    (3, 1, 12)
    """

    players: int
    pairs: int
    rows: int

    @property
    def first_players(self) -> int:
        """How many players vary within a block."""
        return min(self.players, max(0, self.rows.bit_length() - 1))

    @property
    def pairs_per_block(self) -> int:
        """How many pairs share a block, where one does not fill it."""
        return max(1, self.rows >> self.players)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return int(-(-self.pairs // self.pairs_per_block) * 2 ** (self.players - self.first_players))


@final
class Lattice:
    """All masked inputs of the samples, in blocks of at most ``rows`` rows.

    >>> players, x = Players.features(2), torch.tensor([[1.0, 2.0]])
    >>> [block.inputs.tolist() for block in Lattice(players, StandIns(x, torch.zeros(1, 1, 2)), rows=2)]
    [[[[0.0, 0.0], [1.0, 0.0]]], [[[0.0, 2.0], [1.0, 2.0]]]]
    """

    def __init__(self, players: Players, fill: StandIns, rows: int) -> None:
        self.players = players
        self.fill = fill
        self.layout = Layout(len(players), len(fill.x) * fill.draws, rows)

    def __len__(self) -> int:
        return self.layout.blocks

    def __iter__(self) -> Iterator[Block]:
        x, stand_ins = self.fill.x, self.fill.values
        mask = self._first_players_mask()
        pairs_per_block, first_players = self.layout.pairs_per_block, self.layout.first_players
        # Made once where they are few, and for each pair anew where they would fill the memory.
        few_blocks = 2 ** (len(self.players) - first_players) <= _BLOCKS_AT_A_TIME
        kept = list(self._other_players_presence()) if few_blocks else None
        flips = mask.new_empty(pairs_per_block, *mask.shape)
        # With one block for each pair the flips are not needed again, and the inputs can take their place.
        bits = flips if first_players == len(self.players) else torch.empty_like(flips)
        # Rows are short: an operation that treats several as one long row spares most of its loop's overhead.
        tiles = _tiles(mask)
        pairs = torch.arange(len(x) * self.fill.draws, device=x.device)
        for some in pairs.split(max(pairs_per_block, _PAIRS_AT_A_TIME)):
            samples = some // self.fill.draws
            present = _as_bits(x[samples]).flatten(1)
            absent = _as_bits(stand_ins[samples % len(stand_ins), some % self.fill.draws]).flatten(1)
            for few in blocks(len(some), pairs_per_block):
                count = few.stop - few.start
                long_flips = flips[:count].view(count, -1, tiles * mask.shape[1])
                long_bits = bits[:count].view_as(long_flips)
                flip = _tile(present[few] ^ absent[few], tiles)
                torch.bitwise_and(mask.view(long_flips.shape[1:]), flip.unsqueeze(1), out=long_flips)
                inputs = bits[:count].view(x.dtype).view(count, len(mask), *self.players.shape)
                for number, presence in enumerate(kept or self._other_players_presence()):
                    # The first players are absent from this row, and the flips bring them in.
                    row = _tile(torch.where(presence, present[few], absent[few]), tiles)
                    torch.bitwise_xor(long_flips, row.unsqueeze(1), out=long_bits)
                    yield Block(samples[few], number << first_players, inputs)

    def _other_players_presence(self) -> Iterator[Bool[Tensor, " entries"]]:
        """Tell, for each block, which entries are present in all of it."""
        first_players = self.layout.first_players
        others = len(self.players) - first_players
        for part in blocks(2**others, _BLOCKS_AT_A_TIME):
            coalitions = enumerate_coalitions(others, part.start, part.stop).to(self.fill.x.device)
            yield from self.players.presence(pad(coalitions, (first_players, 0))).flatten(1)

    def _first_players_mask(self) -> Shaped[Tensor, "coalitions entries"]:
        """Set all bits of the entries whose player is present, for every coalition of the first players."""
        labels = self.players.labels.flatten().to(self.fill.x.device)
        first_players, bits = self.layout.first_players, _BITS[self.fill.x.element_size()]
        mask = torch.zeros(2**first_players, len(labels), dtype=bits, device=labels.device)
        # By doubling: a player's coalitions are those of the players before it, and the same with the player.
        for player in range(first_players):
            half = 2**player
            mask[half : 2 * half] = mask[:half]
            mask[half : 2 * half].index_fill_(1, (labels == player).nonzero().flatten(), -1)
        return mask


def _as_bits(values: Tensor) -> Tensor:
    return values.contiguous().view(_BITS[values.element_size()])


def _tile(rows: Tensor, times: int) -> Tensor:
    # The same as rows.repeat(1, times), and several times faster.
    return rows.unsqueeze(1).expand(-1, times, -1).flatten(1)


def _tiles(mask: Tensor) -> int:
    """Choose how many rows to treat as one: a power of two, so that it divides the number of coalitions."""
    rows = max(1, _ENTRIES_OF_A_LONG_ROW // mask.shape[1])
    return int(min(len(mask), 1 << rows.bit_length() - 1))
