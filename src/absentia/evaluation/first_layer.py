"""The first layer's outputs for all coalitions, computed by additions.

If a plain sequential model begins with a linear layer, masked inputs need not be made at all. The first layer's
output is h(S) = W x_S + c, so h(S ∪ i) = h(S) + dᵢ with dᵢ = W(xᵢ − bᵢ) for every S. The outputs of one block are
built by doubling, and every other block differs from it by one vector. Only the order of summation changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from absentia.absences.protocol import StandIns
from absentia.coalitions import enumerate_coalitions
from absentia.evaluation.lattice import Block, Layout
from absentia.models.layers import see
from absentia.models.model import Model
from absentia.players import ALWAYS_PRESENT, Players

# A stand-in's contribution to a sum may exceed the usual one by this factor: at most five bits of precision are lost.
_LARGEST_PART = 32.0
# A block of outputs has at most this many bytes, so that it is still in the processor's cache for the next layer.
_BYTES_IN_CACHE = 2**20
# Layers whose output is always new memory, which may be overwritten.
_FRESH_OUTPUT = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class SplitModel(NamedTuple):
    """A model split in two: its first linear layer, with a ReLU if one follows, and the rest."""

    layer: nn.Linear
    rectified: bool
    rest: nn.Sequential

    def rows_in_cache(self) -> int:
        """Return how many rows of the first layer's outputs fit into the processor's cache."""
        bytes_per_row = self.layer.out_features * self.layer.weight.element_size()
        return max(1, _BYTES_IN_CACHE // bytes_per_row)

    def may_reorder(self, fill: StandIns) -> bool:
        """Return whether sums may be reordered: no stand-in contributes far more than the samples usually do."""
        weight = self.layer.weight.detach().abs().amax(0)
        usual = (fill.x.abs() * weight).median(1).values.amin()
        return bool((fill.values.abs() * weight).amax() <= _LARGEST_PART * usual)


def split_first_layer(model: Model, players: Players) -> SplitModel | None:
    """Split a model after its first linear layer; None if it can't be split."""
    # Subclasses and hooks may do more than run the layers.
    if type(model) is not nn.Sequential or len(model) < 2 or _is_altered(model):
        return None
    first = model[0]
    if type(first) is not nn.Linear or _is_altered(first) or players.shape != (first.in_features,):
        return None
    rectified = type(model[1]) is nn.ReLU and not _is_altered(model[1])
    rest = list(model)[2:] if rectified else list(model)[1:]
    return SplitModel(first, rectified, nn.Sequential(*rest))


def _is_altered(module: nn.Module) -> bool:
    """Return whether a module has hooks other than ours, or a forward method set on the instance."""
    hooks = [hook for hook in list(module._forward_hooks.values()) if getattr(hook, "func", None) is not see]
    return bool(hooks or module._forward_pre_hooks or "forward" in vars(module))


def reuse_memory(model: Model) -> Model:
    """Return a faster form of a plain nn.Sequential: ReLUs run in place if nothing else can hold their input."""
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
    """Yield the first layer's outputs for all coalitions of the samples, after a ReLU if ``rectified``.

    The outputs of a block are h(T ∪ S) = h(T) + Σ_{j∈S} dⱼ, where T runs over the coalitions of the first players and
    S is the block's coalition of the others. So h(T) is computed once for a pair, and each block adds a vector to it.
    """
    x = layout.fill.x
    first_players = layout.first_players
    shape = (layout.pairs_per_block, 2**first_players, layer.out_features)
    # Memory for the largest block, which all blocks share.
    memory_of_first = x.new_empty(shape)
    memory_of_outputs = x.new_empty(shape)
    others = enumerate_coalitions(len(layout.players) - first_players).to(x)  # (blocks, other players)
    always_present = layout.players.labels.to(x.device) == ALWAYS_PRESENT  # (entries,)
    for samples, present, absent in layout.pairs():
        of_first = memory_of_first[: len(samples)]
        outputs = memory_of_outputs[: len(samples)]
        steps = _steps_of_players(layout, layer, present - absent)
        of_first[:, 0] = layer(torch.where(always_present, present, absent))  # h(∅)
        _add_by_doubling(of_first, steps[:, :first_players])
        offsets = others @ steps[:, first_players:]  # (pairs, blocks, features): Σ_{j∈S} dⱼ
        for number in range(len(others)):
            torch.add(of_first, offsets[:, number, None], out=outputs)
            if rectified:
                outputs.relu_()
            yield Block(samples, number << first_players, outputs)


def _steps_of_players(
    layout: Layout, layer: nn.Linear, differences: Float[Tensor, "pairs entries"]
) -> Float[Tensor, "pairs players features"]:
    """Return what the presence of each player adds to the first layer's output: dᵢ = W(xᵢ − bᵢ)."""
    labels = layout.players.labels.to(differences.device)
    owned = (labels != ALWAYS_PRESENT).nonzero().flatten()
    by_entry = differences[:, owned, None] * layer.weight.T[owned]  # (pairs, owned entries, features)
    steps = by_entry.new_zeros(len(differences), len(layout.players), layer.out_features)
    return steps.index_add_(1, labels[owned], by_entry)


def _add_by_doubling(
    outputs: Float[Tensor, "pairs coalitions features"], steps: Float[Tensor, "pairs players features"]
) -> None:
    """Fill in the outputs of all coalitions in place, given that of ∅: adding a player adds its step."""
    for player in range(steps.shape[1]):
        half = 2**player
        without_player = outputs[:, :half]
        with_player = outputs[:, half : 2 * half]
        torch.add(without_player, steps[:, player, None], out=with_player)
