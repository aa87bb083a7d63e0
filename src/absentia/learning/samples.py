"""The samples that a baseline is learned from: tensors, arrays, a Dataset or a DataLoader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.arrays import Array, as_tensor
from absentia.errors import wrong


@dataclass(frozen=True, eq=False)
class Pool:
    """Samples to learn from, and the data that bounds and candidate values are taken from."""

    x: Shaped[Tensor, "samples *entries"]
    y: Int[Tensor, " samples"] | None
    data: Shaped[Tensor, "rows *entries"]


@dataclass(frozen=True, eq=False)
class Chosen:
    """Samples to compare baselines on, and what each counts for."""

    rows: Int[Tensor, " chosen"]
    weights: Float[Tensor, " chosen"]

    @classmethod
    def evenly(cls, rows: Int[Tensor, " chosen"]) -> Chosen:
        """Let all count alike."""
        return cls(rows, torch.ones(len(rows)).double())

    def part(self, begin: int, end: int) -> Chosen:
        """Keep those from one place up to another."""
        return Chosen(self.rows[begin:end], self.weights[begin:end])


def collect(x: Any, y: Sequence[int] | Array | None, samples: int | None, seed: int) -> Pool:
    """Draw ``samples`` rows by seed (all for None): of tensors at random, of a loader in the order it gives them.

    Of tensors and arrays, all rows stay at hand for bounds; of a Dataset or DataLoader, those that were drawn.
    """
    if samples is not None and samples < 1:
        raise wrong("samples", "be at least 1", samples)
    generator = torch.Generator().manual_seed(seed)
    if hasattr(x, "shape"):
        data = as_tensor("x", x)
        if data.ndim < 2 or len(data) == 0:
            raise wrong("x", "hold at least one sample, of shape (samples, …)", f"shape {tuple(data.shape)}")
        target = None if y is None else as_tensor("y", y)
        if target is not None and (target.ndim != 1 or len(target) != len(data)):
            raise wrong("y", f"hold one class for each of the {len(data)} samples", f"shape {tuple(target.shape)}")
        rows = torch.arange(len(data))
        if samples is not None and samples < len(data):
            rows = torch.randperm(len(data), generator=generator)[:samples]
        return Pool(data[rows], None if target is None else target[rows], data)
    if y is not None:
        raise wrong("y", "be left out where x is a Dataset or DataLoader", "both", "Let its items be pairs (x, y).")
    inputs, targets = _gather(_items(x, samples, generator), samples)
    return Pool(inputs, targets, inputs)


def shares_of(outputs: Float[Tensor, "samples *features"]) -> Float[Tensor, " samples"]:
    """Tell how often to draw each sample: half of the draws evenly, half by how far its output is from the median.

    A penalty adds up to at least the output's distance from what it is with nothing present. Where a model is silent
    on most samples, an even draw would hardly meet those that tell baselines apart.

    >>> shares_of(torch.tensor([0.0, 0.0, 0.0, 4.0]))
    tensor([0.1250, 0.1250, 0.1250, 0.6250], dtype=torch.float64)
    """
    values = outputs.detach().double().cpu().reshape(len(outputs), -1)
    distance = (values - values.median(0).values).abs().sum(1)
    even = torch.full_like(distance, 1 / len(distance))
    total = float(distance.sum())
    return even if not 0 < total < math.inf else (even + distance / total) / 2


def choose_samples(
    x: Shaped[Tensor, "samples *entries"], shares: Float[Tensor, " samples"], count: int, generator: torch.Generator
) -> Chosen:
    """Draw ``count`` samples by their shares, in a balanced order."""
    drawn = draw_samples(shares, count, generator)
    order = balanced_order(x[drawn.rows], drawn.weights, generator)
    return Chosen(drawn.rows[order], drawn.weights[order])


def draw_samples(shares: Float[Tensor, " samples"], count: int, generator: torch.Generator) -> Chosen:
    """Draw ``count`` samples by their shares, none twice, with weights that make up for it."""
    chance = _chances(shares, min(count, len(shares)))
    shuffled = torch.randperm(len(shares), generator=generator)
    # One draw in every stretch of length 1 of the chances, laid end to end.
    reached = torch.cat([torch.zeros(1).double(), chance[shuffled].cumsum(0)]) + torch.rand(1, generator=generator)
    rows = shuffled[(reached[1:] + 1e-9).floor() > (reached[:-1] + 1e-9).floor()]
    weights = 1 / chance[rows]
    return Chosen(rows, weights / weights.mean())


def _chances(shares: Tensor, count: int) -> Tensor:
    """Scale shares to chances of being drawn that add up to ``count``; none is above 1."""
    chance = (shares * count / shares.sum()).clamp_max(1.0)
    for _ in range(50):
        free = chance < 1
        lacking = count - float(chance.sum())
        if lacking < 1e-9 or not bool(free.any()):
            break
        chance[free] = (chance[free] * (1 + lacking / float(chance[free].sum()))).clamp_max(1.0)
    return chance


def balanced_order(
    x: Shaped[Tensor, "samples *entries"], weights: Float[Tensor, " samples"], generator: torch.Generator
) -> Int[Tensor, " samples"]:
    """Order samples so that those up to any place have nearly the weighted mean of them all.

    Every other one is drawn, and after it the one is taken that brings the mean of those so far nearest. So even a
    few stand for all, and none of their entries is by chance high more often than in the data.

    >>> rows = torch.tensor([[0.0], [1.0], [1.0], [0.0], [0.0], [1.0]])
    >>> balanced_order(rows, torch.ones(6).double(), torch.Generator().manual_seed(0))
    tensor([2, 3, 5, 0, 1, 4])
    """
    rows = torch.randperm(len(x), generator=generator)
    values = x[rows].flatten(1).double().cpu()
    values = values[:, :: 1 + values.shape[1] // 1024]
    weight = weights[rows, None]
    values = values - (weight * values).sum(0) / weight.sum()
    values = weight * values / ((weight * values.square()).sum(0) / weight.sum()).sqrt().clamp_min(1e-9)
    total = torch.zeros_like(values[0])
    # ‖total + row‖² less what all rows have in common.
    lengths = values.square().sum(1)
    order = torch.empty_like(rows)
    for place in range(len(rows)):
        drawn = int((lengths < torch.inf).int().argmax())
        chosen = int((lengths + 2 * values @ total).argmin()) if place % 2 else drawn
        order[place] = rows[chosen]
        total += values[chosen]
        lengths[chosen] = torch.inf
    return order


def _items(source: Any, samples: int | None, generator: torch.Generator) -> Iterator[tuple[Tensor, Any]]:
    """Yield rows (1, …) or batches with their targets, whatever the source calls them."""
    if isinstance(source, torch.utils.data.Dataset) and hasattr(source, "__getitem__"):
        count = len(source)  # type: ignore[arg-type]
        for number in torch.randperm(count, generator=generator)[:samples].tolist():
            item = source[number]
            one, target = item if isinstance(item, tuple | list) else (item, None)
            yield torch.as_tensor(one)[None], None if target is None else [int(target)]
    elif isinstance(source, Iterable):
        for item in source:
            yield (item[0], item[1]) if isinstance(item, tuple | list) else (item, None)
    else:
        raise wrong("x", "be a tensor, an array, a Dataset or a DataLoader", type(source).__name__)


def _gather(items: Iterator[tuple[Tensor, Any]], samples: int | None) -> tuple[Tensor, Tensor | None]:
    inputs: list[Tensor] = []
    targets: list[Tensor] = []
    count = 0
    for batch, target in items:
        inputs.append(torch.as_tensor(batch))
        if target is not None:
            targets.append(torch.as_tensor(target).reshape(-1).long())
        count += len(batch)
        if samples is not None and count >= samples:
            break
    if not count:
        raise wrong("x", "hold at least one sample", "an empty source")
    x = torch.cat(inputs)[:samples]
    return x, torch.cat(targets)[:samples] if targets else None
