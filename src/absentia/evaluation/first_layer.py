"""The first layer's outputs of all coalitions, computed by additions.

Where a plain sequential model begins with a linear layer, no masked input is made at all. With h(S) = W x_S + c the
first layer's output, h(S ∪ i) = h(S) + dᵢ with dᵢ = W(xᵢ − bᵢ) for every S. So the outputs of a block grow by
doubling, and other blocks differ from it by one vector. It is the same sum in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from absentia.absences.protocol import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.evaluation.lattice import Block, Layout
from absentia.models.layers import see
from absentia.models.model import Model
from absentia.players import ALWAYS_PRESENT, Players

# The largest ratio of a stand-in's part of a sum to the usual part: at most five bits of precision are lost.
_LARGEST_PART = 32.0
# Outputs are added in parts of this many rows, which stay in the processor's cache.
_ROWS_IN_CACHE = 2048
# Layers that write their output to fresh memory.
_FRESH_OUTPUT = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class SplitModel(NamedTuple):
    """A model in two: its first linear layer, whether a ReLU follows, and the rest."""

    layer: nn.Linear
    rectified: bool
    rest: nn.Sequential

    def may_reorder(self, fill: StandIns) -> bool:
        """Return whether sums may be reordered: no stand-in's part is far larger than the sample's usual one."""
        weight = self.layer.weight.detach().abs().amax(0)
        usual = (fill.x.abs() * weight).median(1).values.amin()
        return bool((fill.values.abs() * weight).amax() <= _LARGEST_PART * usual)


def split_first_layer(model: Model, players: Players) -> SplitModel | None:
    """Split a model after its first linear layer; None if it can't be split."""
    # Subclasses and hooks may do more than their layers.
    if type(model) is not nn.Sequential or len(model) < 2 or _is_altered(model):
        return None
    first = model[0]
    if type(first) is not nn.Linear or _is_altered(first) or players.shape != (first.in_features,):
        return None
    rectified = type(model[1]) is nn.ReLU and not _is_altered(model[1])
    rest = list(model)[2:] if rectified else list(model)[1:]
    return SplitModel(first, rectified, nn.Sequential(*rest))


def _is_altered(module: nn.Module) -> bool:
    """Return whether a module has hooks other than ours, or a forward of its own."""
    hooks = [hook for hook in list(module._forward_hooks.values()) if getattr(hook, "func", None) is not see]
    return bool(hooks or module._forward_pre_hooks or "forward" in vars(module))


def reuse_memory(model: Model) -> Model:
    """Return a plain nn.Sequential that runs each ReLU in place whose input nothing else can hold: in less time."""
    if type(model) is not nn.Sequential or _is_altered(model):
        return model
    steps: list[Model] = []
    for before, layer in pairwise([model, *model]):
        plain = not (_is_altered(layer) or _is_altered(before))
        if plain and type(layer) is nn.ReLU and type(before) in _FRESH_OUTPUT:
            steps.append(Tensor.relu_)
        else:
            steps.append(layer)

    def run(rows: Tensor) -> Tensor:
        for step in steps:
            rows = step(rows)
        return rows

    return run


def first_layer_outputs(layout: Layout, layer: nn.Linear, rectified: bool) -> Iterator[Block]:
    """Yield the first layer's outputs for all coalitions of the samples, after a ReLU if ``rectified``."""
    x = layout.fill.x
    first_players = layout.first_players
    labels = layout.players.labels.to(x.device)
    owned = (labels != ALWAYS_PRESENT).nonzero().flatten()
    shape = (layout.pairs_per_block, 2**first_players, layer.out_features)
    all_grown = x.new_empty(shape)
    all_outputs = x.new_empty(shape)
    others = enumerate_coalitions(len(layout.players) - first_players).to(x)
    for samples, present, absent in layout.pairs():
        grown = all_grown[: len(samples)]
        outputs = all_outputs[: len(samples)]
        by_entry = (present - absent)[:, owned, None] * layer.weight.T[owned]
        steps = by_entry.new_zeros(len(samples), len(layout.players), layer.out_features)
        steps.index_add_(1, labels[owned], by_entry)  # what each player adds
        grown[:, 0] = layer(torch.where(labels == ALWAYS_PRESENT, present, absent))
        for player in range(first_players):  # by doubling: outputs with a player are those without it plus one vector
            half = 2**player
            torch.add(grown[:, :half], steps[:, player, None], out=grown[:, half : 2 * half])
        parts = list(zip(grown.split(_ROWS_IN_CACHE, 1), outputs.split(_ROWS_IN_CACHE, 1), strict=True))
        for number, offset in enumerate((others @ steps[:, first_players:]).unsqueeze(2).unbind(1)):
            for source, target in parts:
                torch.add(source, offset, out=target)
                if rectified:
                    target.relu_()
            yield Block(samples, number << first_players, outputs)
