"""The interactions that the page shows of each sample, as lists of player numbers with their effects.

The page lets readers choose the largest order. So it holds the strongest effects of up to each order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.plots.strongest_sets import only_sample, sets_of_sample
from absentia.report.shown_numbers import numbers, texts
from absentia.terms import Terms

KEPT_UP_TO_EACH_ORDER = 15  # of the strongest effects of a sample
# Players in all sets of a sample that the page holds: what all 2²⁴ sets of 24 players may need.
_MOST_MEMBERS = 24 * 24 * KEPT_UP_TO_EACH_ORDER
_MOST_REBUILT = 2**22  # coalitions of all samples, up to which sparsity curves are computed


def interactions_by_sample(terms: Terms, samples: int) -> Iterator[dict[str, Any]]:
    """Yield the shown effects, the strength by order and the sparsity curve of each of the first samples."""
    has_curve = terms.is_full and samples * 2 ** len(terms.names) <= _MOST_REBUILT
    for sample in range(samples):
        own = only_sample(terms, sample)
        shares = 100 * own.by_order().ratios[0, 1:]
        data = {"effects": shown_effects(terms, sample), "shares": _drawn_and_shown(shares)}
        if has_curve:
            data["curve"] = _drawn_and_shown(100 * sparsity_curve(own)[0])
        yield data


def _drawn_and_shown(values: Float[Tensor, " points"]) -> dict[str, Any]:
    """Return numbers to draw and the texts to show."""
    return {"values": numbers(values, 3), "texts": texts(values, 3)}


def largest_order(terms: Terms) -> int:
    """Return the number of players in the largest set."""
    if terms.is_full:
        return len(terms.names)
    return int(terms.orders.max())


def shown_effects(terms: Terms, sample: int) -> dict[str, Any]:
    """Return the effects of a sample that the page holds, the strongest first: sets, values, texts, and doubts."""
    all_sets = sets_of_sample(terms, sample)
    places = strongest(all_sets.effects, all_sets.orders)
    sets = _within_room([all_sets.players_in(place) for place in places.tolist()])
    places = places[: len(sets)]
    effects = all_sets.effects[places]
    return {
        "sets": sets,
        "values": numbers(effects, digits=4),
        "texts": texts(effects, plus=True),
        # The places of the effects within rounding error, which are drawn hollow.
        "hollow": (~all_sets.measurable[places]).nonzero()[:, 0].tolist(),
    }


def strongest(effects: Float[Tensor, " sets"], orders: Int[Tensor, " sets"]) -> Int[Tensor, " kept"]:
    """Return the places of the sets to keep, the strongest effect first, without ∅."""
    strength = effects.abs()
    best = torch.empty(0, dtype=torch.int64)
    best_up_to_each_order = [best]
    for order in orders[orders > 0].unique():
        candidates = torch.cat([best, (orders == order).nonzero()[:, 0]])
        count = min(KEPT_UP_TO_EACH_ORDER, len(candidates))
        best = candidates[strength[candidates].topk(count).indices]
        best_up_to_each_order.append(best)
    kept = torch.cat(best_up_to_each_order).unique()
    return kept[strength[kept].argsort(descending=True)]


def _within_room(sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the first sets, as many as the page has room for."""
    members = accumulate(len(players) for players in sets)
    fitting = sum(total <= _MOST_MEMBERS for total in members)
    return sets[:fitting]


def curve_counts(players: int) -> list[int]:
    """Return the numbers of effects at which a sparsity curve has points."""
    return [2**power for power in range(players)] + [2**players - 1]


def sparsity_curve(terms: Terms) -> Float[Tensor, "samples counts"]:
    """Return the error of values rebuilt from the strongest effects, for each of `curve_counts`; NaN if constant."""
    strength = terms.effects.abs()
    strength[:, 0] = torch.inf  # v(∅) is always used
    ranked = strength.sort(1, descending=True).values
    values = terms.reconstruct()
    spread = values.std(1, correction=0)
    spread = torch.where(spread > terms.noise, spread, torch.nan)
    errors = []
    for count in curve_counts(len(terms.names)):
        rebuilt = terms.reconstruct(keep=strength >= ranked[:, count, None])
        errors.append((rebuilt - values).square_().mean(1).sqrt_())
    return torch.stack(errors, dim=1) / spread[:, None]
