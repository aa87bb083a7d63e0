"""The interactions of each sample that the page shows, as lists of player numbers with their effects.

Readers of the page choose the largest order, so it holds the strongest effects of up to each order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.determined import are_determined
from absentia.plots.interaction_plots import symbol_of
from absentia.plots.strongest_sets import largest_order, sets_of_sample
from absentia.report.shown_numbers import numbers, texts
from absentia.terms import Terms
from absentia.terms_in_words import BASES_OF_VALUES, WALSH, WALSH_MEANING, name_with_basis

_MEANING_OF_EFFECTS = "What players add together, beyond what fewer of them add."
KEPT_UP_TO_EACH_ORDER = 15  # the number of strongest effects of a sample
# The most players in all sets of a sample that the page holds: enough for 24 players with all 2²⁴ sets.
_MOST_MEMBERS = 24 * 24 * KEPT_UP_TO_EACH_ORDER
_MOST_REBUILT = 2**22  # sparsity curves are computed for up to this many coalitions of all samples
_MOST_PAIRS = 2**29  # sparsity curves are computed for up to this many pairs of listed sets of all samples


def add_interactions(data: dict[str, Any], terms: Terms) -> None:
    """Add the interactions of terms to the data of a section and of each of its samples."""
    samples = data["samples"]
    for sample, interactions in zip(samples, interactions_by_sample(terms, len(samples)), strict=True):
        sample |= interactions
    data["largestOrder"] = largest_order(terms)
    data["interactionsTitle"] = name_with_basis("Strongest interactions", terms.basis, terms.fidelity is not None)
    data["interactionsNote"] = WALSH_MEANING if terms.basis == WALSH else _MEANING_OF_EFFECTS
    if terms.errors is not None:
        data["interactionsNote"] += " Whiskers show two standard errors."
    data["symbol"] = symbol_of(terms)
    if "curve" not in samples[0]:
        data["noCurve"] = _why_no_curve(terms)
    elif terms.is_full:
        data["counts"] = curve_counts(len(terms.names))


def interactions_by_sample(terms: Terms, samples: int) -> Iterator[dict[str, Any]]:
    """Yield the effects to show, the strength by order and the sparsity curve of each of the first samples."""
    has_curve = _has_curve(terms, samples)
    most_players = largest_order(terms)
    for sample in range(samples):
        sample_terms = terms.only(sample)
        shares = 100 * sample_terms.by_order().ratios[0, 1 : most_players + 1]
        data: dict[str, Any] = {"effects": shown_effects(terms, sample), "shares": _drawn_and_shown(shares)}
        if sample_terms.fidelity is not None:
            data["fit"] = " ".join(remark for remark in sample_terms.remarks() if remark != WALSH_MEANING)
        if has_curve and terms.is_full:
            data["curve"] = _drawn_and_shown(100 * sparsity_curve(sample_terms)[0])
        elif has_curve:
            data["curve"] = _curve_of_listed_sets(sample_terms)
        yield data


def _has_curve(terms: Terms, samples: int) -> bool:
    """Return whether sparsity curves of the first samples are defined and quick to compute."""
    if not terms.adds_up:
        return False
    sets_by_sample = terms.held.counts[:samples]
    if terms.is_full:
        return int(sets_by_sample.sum()) <= _MOST_REBUILT
    return int(sets_by_sample.square().sum()) <= _MOST_PAIRS


def _why_no_curve(terms: Terms) -> str:
    """Say why the page does not show how many interactions are needed."""
    subject = "The number of interactions that rebuild all values is not shown"
    if terms.basis not in BASES_OF_VALUES:
        return f"{subject}: values are not sums of {terms.basis} effects."
    if terms.highest_order is not None:
        return f"{subject}: sets of more than {terms.highest_order} players are left out."
    return f"{subject}: there are too many sets of players to compute it with the page. See Terms.sparsity."


def _curve_of_listed_sets(sample_terms: Terms) -> dict[str, Any]:
    """Return the errors of rebuilding the only sample's values from its strongest sets, and the numbers of sets."""
    rebuilding = sample_terms.rebuilding_errors()
    sets = len(rebuilding.errors) - 1
    counts = [2**power for power in range(sets.bit_length()) if 2**power < sets] + [sets]
    spread = rebuilding.deviation if rebuilding.deviation > float(sample_terms.noise[0]) else math.nan
    return {"counts": counts} | _drawn_and_shown(100 * rebuilding.errors[counts] / spread)


def _drawn_and_shown(values: Float[Tensor, " points"]) -> dict[str, Any]:
    """Return the numbers to draw and the texts to show."""
    return {"values": numbers(values, 3), "texts": texts(values, 3)}


def shown_effects(terms: Terms, sample: int) -> dict[str, Any]:
    """Return the effects of a sample that the page holds, strongest first, and mark those within their errors."""
    all_sets = sets_of_sample(terms, sample)
    places = strongest(all_sets.effects, all_sets.orders)
    sets = _within_room([all_sets.players_in(place) for place in places.tolist()])
    places = places[: len(sets)]
    effects = all_sets.effects[places]
    data = {
        "sets": sets,
        "values": numbers(effects, digits=4),
        "texts": texts(effects, plus=True),
        # The positions of effects within the errors of the values, which are drawn hollow.
        "hollow": (~all_sets.measurable[places]).nonzero()[:, 0].tolist(),
    }
    if terms.errors is None:
        return data
    errors = all_sets.errors[places]
    # The positions of effects whose standard errors exceed them.
    undetermined = (~are_determined(effects, errors)).nonzero()[:, 0].tolist()
    return data | {"errors": numbers(errors, digits=2), "errorTexts": texts(errors, 2), "undetermined": undetermined}


def strongest(effects: Float[Tensor, " sets"], orders: Int[Tensor, " sets"]) -> Int[Tensor, " kept"]:
    """Return the positions of the sets to keep, strongest effect first, without ∅."""
    strength = effects.abs()
    best = torch.empty(0, dtype=torch.int64)
    best_up_to_each_order = [best]
    for order in orders[orders > 0].unique():
        candidates = torch.cat([best, (orders == order).nonzero()[:, 0]])
        count = min(KEPT_UP_TO_EACH_ORDER, len(candidates))
        best = candidates[strength[candidates].topk(count).indices]
        best_up_to_each_order.append(best)
    shown = torch.cat(best_up_to_each_order).unique()
    return shown[strength[shown].argsort(descending=True)]


def _within_room(sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return as many of the first sets as the page has room for."""
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
