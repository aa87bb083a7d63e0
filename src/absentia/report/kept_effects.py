"""What the page keeps of 2ⁿ effects: the strongest, those of low orders, their strength by order, how few suffice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.coalitions import coalition_sizes
from absentia.inference import blocks
from absentia.interactions import Interactions
from absentia.report.numbers import plain

# The page keeps so many of the strongest effects of a sample, and so many among those up to each order.
KEPT, KEPT_UP_TO_EACH_ORDER = 50, 15
# Effects are looked at for so many coalitions at a time; and rebuilt from, where there are not more in all.
_AT_A_TIME, _MOST_REBUILT = 2**17, 2**26


def summarise(interactions: Interactions, samples: int) -> Iterator[dict[str, Any]]:
    """Say, for each of the first samples, which effects to show, their strength by order, and the sparsity curve."""
    players = len(interactions.names)
    rebuilt = samples * 2**players <= _MOST_REBUILT
    for few in blocks(samples, max(1, _AT_A_TIME >> players)):
        part = replace(
            interactions, effects=interactions.effects[few].detach().cpu(), noise=interactions.noise[few].cpu()
        )
        profile, measurable = part.by_order().strength, part.measurable
        curve = sparsity_curve(part) if rebuilt else None
        for row, numbers in enumerate(strongest(part.effects)):
            effects = plain(part.effects[row, numbers], digits=3)
            told = measurable[row, numbers].tolist()
            found = {
                # A third entry marks an effect that rounding errors could have made.
                "effects": [
                    [number, effect] if sure else [number, effect, 1]
                    for number, effect, sure in zip(numbers.tolist(), effects, told, strict=True)
                ],
                "profile": plain(profile[row, 1:]),
            }
            yield found if curve is None else found | {"curve": plain(curve[row], digits=3)}


def strongest(effects: Float[Tensor, "samples coalitions"]) -> list[Int[Tensor, " kept"]]:
    """List the numbers of the coalitions to keep, the strongest effect first; v(∅) is not one of them.

    >>> [numbers.tolist() for numbers in strongest(torch.tensor([[9.0, 1.0, -2.0, 0.5]]))]
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
    """List the numbers of effects that a sparsity curve has points for.

    >>> curve_counts(3)
    [1, 2, 4, 7]
    """
    return [2**power for power in range(players)] + [2**players - 1]


def sparsity_curve(interactions: Interactions) -> Float[Tensor, "samples counts"]:
    """Measure how well the k strongest effects and v(∅) rebuild all values, for each of `curve_counts`.

    The error is the root mean square of the differences, as a share of the values' standard deviation, as in
    `Interactions.sparsity`; NaN where the values are constant.

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
