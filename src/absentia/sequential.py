"""Shortcuts for plain sequential models: fewer operations for the same values.

Where a model begins with a linear layer, its outputs for all coalitions are sums of few vectors. With h(S) = W x_S +
c the first layer's output, h(S ∪ i) = h(S) + dᵢ with dᵢ = W(xᵢ − bᵢ), whatever S is. So the outputs of a block of 2^k
coalitions grow by doubling, and other blocks differ from it by one vector: no masked input is made, and the layer's
product is never computed. It is the same sum in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from absentia.absence import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.inference import Model, blocks
from absentia.lattice import Block, Layout
from absentia.players import ALWAYS_PRESENT, Players

# How much larger than the usual part of a sum a stand-in's part may be: five bits of precision at most are lost.
_LARGEST_PART = 32.0
_ROWS_IN_CACHE = 2048
# Layers that write their output to memory of its own.
_FRESH_OUTPUT = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def split_first_layer(model: Model, players: Players) -> tuple[nn.Linear, bool, nn.Sequential] | None:
    """Split a model into its first linear layer, whether a ReLU follows it, and the rest, if that is all it does.

    Only a plain nn.Sequential on flat rows will do: whatever a subclass or a hook may add would be passed over.

    >>> split_first_layer(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Tanh()), Players.features(3))
    (Linear(in_features=3, out_features=5, bias=True), True, Sequential(
      (0): Tanh()
    ))
    """
    if type(model) is not nn.Sequential or len(model) < 2 or _is_altered(model):
        return None
    first = model[0]
    if type(first) is not nn.Linear or _is_altered(first) or players.shape != (first.in_features,):
        return None
    rectified = type(model[1]) is nn.ReLU and not _is_altered(model[1])
    return first, rectified, nn.Sequential(*list(model)[2 if rectified else 1 :])


def _is_altered(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def reuse_memory(model: Model) -> Model:
    """Run a plain nn.Sequential with each ReLU in the memory of the layer before it: the same result in less time.

    Only a ReLU right after a linear or convolutional layer will do, whose output nobody else can hold.

    >>> model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1))
    >>> rows = torch.randn(4, 3)
    >>> torch.equal(reuse_memory(model)(rows), model(rows))
    True
    """
    if type(model) is not nn.Sequential or _is_altered(model):
        return model
    layers = list(model)
    in_place = [False] + [
        type(layer) is nn.ReLU and type(before) in _FRESH_OUTPUT and not (_is_altered(layer) or _is_altered(before))
        for before, layer in pairwise(layers)
    ]

    def run(rows: Tensor) -> Tensor:
        for layer, reuse in zip(layers, in_place, strict=True):
            rows = rows.relu_() if reuse else layer(rows)
        return rows

    return run


def keeps_precision(layer: nn.Linear, fill: StandIns) -> bool:
    """Tell whether the sums can be reordered safely: no stand-in's part is far larger than the sample's usual one.

    Otherwise a large part enters the sum with the stand-in and is taken out again with the player, and what is left
    has lost as many digits as the large part has more than the rest.
    """
    weight = layer.weight.detach().abs().amax(0)
    largest = (fill.values.abs() * weight).amax()
    usual = (fill.x.abs() * weight).median(1).values.amin()
    return bool(largest <= _LARGEST_PART * usual)


@final
class FirstLayerLattice:
    """The first layer's outputs for all coalitions of the samples, in blocks of at most ``rows`` rows.

    With ``rectified`` the ReLU that follows the layer is applied in the same memory.
    """

    def __init__(self, layer: nn.Linear, rectified: bool, players: Players, fill: StandIns, rows: int) -> None:
        self.layer = layer
        self.rectified = rectified
        self.players = players
        self.fill = fill
        self.layout = Layout(len(players), len(fill.x) * fill.draws, rows)

    def __len__(self) -> int:
        return self.layout.blocks

    def __iter__(self) -> Iterator[Block]:
        x, stand_ins = self.fill.x, self.fill.values
        k, pairs_per_block = self.layout.first_players, self.layout.pairs_per_block
        pairs = torch.arange(len(x) * self.fill.draws, device=x.device)
        grown, outputs = x.new_empty(2, pairs_per_block, 2**k, self.layer.out_features)
        others = enumerate_coalitions(len(self.players) - k).to(x)
        for few in blocks(len(pairs), pairs_per_block):
            samples = pairs[few] // self.fill.draws
            absent = stand_ins[samples % len(stand_ins), pairs[few] % self.fill.draws]
            start, steps = self._start_and_steps(x[samples], absent)
            mine = grown[: len(samples)]
            _grow(mine, start, steps[:, :k])
            block = outputs[: len(samples)]
            parts = list(zip(mine.split(_ROWS_IN_CACHE, 1), block.split(_ROWS_IN_CACHE, 1), strict=True))
            for number, offset in enumerate((others @ steps[:, k:]).unsqueeze(2).unbind(1)):
                for source, target in parts:  # small enough that the second operation finds it in cache
                    torch.add(source, offset, out=target)
                    if self.rectified:
                        target.relu_()
                yield Block(samples, number << k, block)

    def _start_and_steps(
        self, present: Float[Tensor, "pairs entries"], absent: Float[Tensor, "pairs entries"]
    ) -> tuple[Float[Tensor, "pairs hidden"], Float[Tensor, "pairs players hidden"]]:
        """Compute the layer's output with all players absent, and what each player's presence adds to it."""
        labels = self.players.labels.to(present.device)
        owned = (labels != ALWAYS_PRESENT).nonzero().flatten()
        start = self.layer(torch.where(labels == ALWAYS_PRESENT, present, absent))
        by_entry = (present - absent)[:, owned, None] * self.layer.weight.T[owned]
        steps = by_entry.new_zeros(len(present), len(self.players), self.layer.out_features)
        return start, steps.index_add(1, labels[owned], by_entry)


def _grow(outputs: Tensor, start: Tensor, steps: Tensor) -> None:
    """Fill (pairs, coalitions, hidden) by doubling: those with a player are those before it plus one vector."""
    outputs[:, 0] = start
    for player in range(steps.shape[1]):
        half = 2**player
        torch.add(outputs[:, :half], steps[:, player, None], out=outputs[:, half : 2 * half])
