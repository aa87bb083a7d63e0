"""What the page keeps of 2ⁿ effects: the strongest, those of low orders, strength by order, and a sparsity curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.coalitions import coalition_sizes
from absentia.data import blocks
from absentia.interactions import Interactions
from absentia.report.section import numbers

# The page keeps this many of the strongest effects of a sample, and this many of those up to each order.
KEPT, KEPT_UP_TO_EACH_ORDER = 50, 15
# Coalitions that are processed at once, and up to which sparsity curves are computed.
_AT_A_TIME, _MOST_REBUILT = 2**17, 2**26


def summarise(interactions: Interactions, samples: int) -> Iterator[dict[str, Any]]:
    """Yield the kept effects, the strength by order and the sparsity curve of each of the first samples."""
    players = len(interactions.names)
    for few in blocks(samples, max(1, _AT_A_TIME >> players)):
        effects, noise = interactions.effects[few].detach().cpu(), interactions.noise[few].cpu()
        part = replace(interactions, effects=effects, noise=noise)
        profile, measurable = part.by_order().strength, part.measurable
        curve = sparsity_curve(part) if samples * 2**players <= _MOST_REBUILT else None
        for row, kept in enumerate(strongest(effects)):
            pairs = zip(kept.tolist(), numbers(effects[row, kept], digits=3), strict=True)
            sure = measurable[row, kept].tolist()
            # A third entry marks an effect within rounding error.
            shown = [[*pair] if certain else [*pair, 1] for pair, certain in zip(pairs, sure, strict=True)]
            found = {"effects": shown, "profile": numbers(profile[row, 1:])}
            yield found if curve is None else found | {"curve": numbers(curve[row], digits=3)}


def strongest(effects: Float[Tensor, "samples coalitions"]) -> list[Int[Tensor, " kept"]]:
    """Return the numbers of the coalitions to keep, the strongest effect first, without v(∅).

    >>> [kept.tolist() for kept in strongest(torch.tensor([[9.0, 1.0, -2.0, 0.5]]))]
    [[2, 1, 3]]
    """
    strength = effects.abs()
    sizes = coalition_sizes(effects.shape[1].bit_length() - 1)
    kept = [strength[:, 1:].topk(min(KEPT, effects.shape[1] - 1)).indices + 1]
    best = torch.empty(len(effects), 0, dtype=torch.int64)
    for order in range(1, int(sizes.max()) + 1):
        own = (sizes == order).nonzero()[:, 0]
        first = strength[:, own].topk(min(KEPT_UP_TO_EACH_ORDER, len(own))).indices
        best = torch.cat([best, own[first]], dim=1)
        ranked = strength.gather(1, best).topk(min(KEPT_UP_TO_EACH_ORDER, best.shape[1])).indices
        best = best.gather(1, ranked)
        kept.append(best)
    rows = [row.unique() for row in torch.cat(kept, dim=1)]
    return [row[one[row].argsort(descending=True)] for one, row in zip(strength, rows, strict=True)]


def curve_counts(players: int) -> list[int]:
    """Return the numbers of effects at which a sparsity curve has points.

    >>> curve_counts(3)
    [1, 2, 4, 7]
    """
    return [2**power for power in range(players)] + [2**players - 1]


def sparsity_curve(interactions: Interactions) -> Float[Tensor, "samples counts"]:
    """Return the error of the values rebuilt from v(∅) and the k strongest effects, for each of `curve_counts`.

    The error is the root mean square of the differences relative to the standard deviation of the values, as in
    `Interactions.sparsity`. It is NaN where the values are constant.

    >>> import absentia as ab
    >>> sparsity_curve(ab.harsanyi(ab.ValueTable([0.0, 0.0, 0.0, 1.0])))
    tensor([[0., 0., 0.]], dtype=torch.float64)
    """
    strength = interactions.effects.abs()
    strength[:, 0] = torch.inf
    ranked = strength.sort(1, descending=True).values
    values = interactions.reconstruct()
    spread = values.std(1, correction=0)
    spread = torch.where(spread > interactions.noise, spread, torch.nan)
    errors = [
        (interactions.reconstruct(keep=strength >= ranked[:, count, None]) - values).square_().mean(1).sqrt_()
        for count in curve_counts(len(interactions.names))
    ]
    return torch.stack(errors, dim=1) / spread[:, None]
