"""The interactions that the page shows of each sample, as lists of player numbers with their effects.

The page lets readers choose the largest order. So it holds the strongest effects of up to each order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.data import blocks
from absentia.plots.strongest_sets import orders_of, players_in
from absentia.report.shown_numbers import numbers, texts
from absentia.terms import Interactions

KEPT_UP_TO_EACH_ORDER = 15  # of the strongest effects of a sample
# Players in all sets of a sample that the page holds: what all 2²⁴ sets of 24 players may need.
_MOST_MEMBERS = 24 * 24 * KEPT_UP_TO_EACH_ORDER
_COALITIONS_AT_A_TIME = 2**17
_MOST_REBUILT = 2**22  # coalitions of all samples, up to which sparsity curves are computed


@dataclass(frozen=True, eq=False)
class ListedEffects:
    """The effects of sets of players on some samples, in any order of the sets."""

    effects: Float[Tensor, "samples sets"]
    measurable: Bool[Tensor, "samples sets"]  # whether the effect exceeds the rounding errors
    orders: Int[Tensor, " sets"]  # the number of players in each set
    players_in: Callable[[int], tuple[int, ...]]  # the players of a set, given by its place


def interactions_by_sample(interactions: Interactions, samples: int) -> Iterator[dict[str, Any]]:
    """Yield the shown effects, the strength by order and the sparsity curve of each of the first samples."""
    coalitions = 2 ** len(interactions.names)
    has_curve = samples * coalitions <= _MOST_REBUILT
    for block in blocks(samples, max(1, _COALITIONS_AT_A_TIME // coalitions)):
        effects = interactions.effects[block].detach().cpu()
        part = replace(interactions, effects=effects, noise=interactions.noise[block].cpu())
        listed = ListedEffects(effects, part.measurable, orders_of(part), players_in)
        shares = 100 * part.by_order().ratios[:, 1:]
        curves = 100 * sparsity_curve(part) if has_curve else None
        for row, shown in enumerate(shown_effects(listed)):
            data = {"effects": shown, "shares": {"values": numbers(shares[row], 3), "texts": texts(shares[row], 3)}}
            if curves is not None:
                data["curve"] = {"values": numbers(curves[row], 3), "texts": texts(curves[row], 3)}
            yield data


def shown_effects(listed: ListedEffects) -> Iterator[dict[str, Any]]:
    """Yield the effects of each sample that the page holds, the strongest first: sets, values, texts, and doubts."""
    for row, places in enumerate(strongest(listed.effects, listed.orders)):
        sets = _within_room([listed.players_in(place) for place in places.tolist()])
        places = places[: len(sets)]
        effects = listed.effects[row, places]
        yield {
            "sets": sets,
            "values": numbers(effects, digits=4),
            "texts": texts(effects, plus=True),
            # The places of the effects within rounding error, which are drawn hollow.
            "hollow": (~listed.measurable[row, places]).nonzero()[:, 0].tolist(),
        }


def strongest(effects: Float[Tensor, "samples sets"], orders: Int[Tensor, " sets"]) -> list[Int[Tensor, " kept"]]:
    """Return the places of the sets to keep for each sample, the strongest effect first, without ∅."""
    strength = effects.abs()
    best = torch.empty(len(effects), 0, dtype=torch.int64)
    best_up_to_each_order = []
    for order in orders[orders > 0].unique():
        candidates = torch.cat([best, (orders == order).nonzero()[:, 0].expand(len(effects), -1)], dim=1)
        count = min(KEPT_UP_TO_EACH_ORDER, candidates.shape[1])
        best = candidates.gather(1, strength.gather(1, candidates).topk(count).indices)
        best_up_to_each_order.append(best)
    kept_by_sample = [row.unique() for row in torch.cat(best_up_to_each_order, dim=1)]
    return [kept[own[kept].argsort(descending=True)] for own, kept in zip(strength, kept_by_sample, strict=True)]


def _within_room(sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the first sets, as many as the page has room for."""
    members = accumulate(len(players) for players in sets)
    fitting = sum(total <= _MOST_MEMBERS for total in members)
    return sets[:fitting]


def curve_counts(players: int) -> list[int]:
    """Return the numbers of effects at which a sparsity curve has points."""
    return [2**power for power in range(players)] + [2**players - 1]


def sparsity_curve(interactions: Interactions) -> Float[Tensor, "samples counts"]:
    """Return the error of values rebuilt from the strongest effects, for each of `curve_counts`; NaN if constant."""
    strength = interactions.effects.abs()
    strength[:, 0] = torch.inf  # v(∅) is always used
    ranked = strength.sort(1, descending=True).values
    values = interactions.reconstruct()
    spread = values.std(1, correction=0)
    spread = torch.where(spread > interactions.noise, spread, torch.nan)
    errors = []
    for count in curve_counts(len(interactions.names)):
        rebuilt = interactions.reconstruct(keep=strength >= ranked[:, count, None])
        errors.append((rebuilt - values).square_().mean(1).sqrt_())
    return torch.stack(errors, dim=1) / spread[:, None]
