"""What an explanation shows of drawn coalitions, from one fit: Shapley values, interactions, order-wise values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from absentia.attributions import OrderAttribution
from absentia.cube.kernels import CubeKernel
from absentia.games import Game, RowMeter
from absentia.solvers.cost_of_fits import seconds_of_few_terms, seconds_of_orders
from absentia.solvers.few_terms import LEAST_COALITIONS, Kernels, few_terms_of, fit_kernels
from absentia.solvers.order_wise import order_shapley_of_pairs, orders_shown
from absentia.solvers.paired_draws import PairedValues
from absentia.solvers.sampled_shapley import SampledShapley, sample_shapley
from absentia.term_search.growth import Growth
from absentia.terms import Terms
from absentia.text import count_of, duration

# Interactions of all samples are estimated if that takes at most this long, in seconds.
_MOST_SECONDS_OF_INTERACTIONS = 60.0
# Order-wise values are estimated if that takes at most this long, in seconds, and this share of the time left.
_MOST_SECONDS_OF_ORDERS = 3.0
_MOST_SHARE_OF_ORDERS = 0.1
# Beyond this many pairs, the covariances of both parts of a process take more than 1 GB of memory.
_MOST_PAIRS_OF_ORDERS = 8000


class SampledParts(NamedTuple):
    """All that an explanation shows of drawn coalitions."""

    shapley: SampledShapley
    interactions: Terms | None
    order_shapley: OrderAttribution | None
    notes: tuple[str, ...]
    counts_draws: bool  # whether errors include the variance of the draws of a random absence


def sampled_parts(game: Game, budget: int, seed: int, seconds_left: float) -> SampledParts:
    """Estimate Shapley values, few interactions and order-wise values from the same drawn coalitions."""
    meter = RowMeter.start(game)
    fit = _SharedFit(seed, seconds_left)
    sampled = sample_shapley(game, budget, seed, fit=fit)
    drawn = sampled.attribution.drawn
    if not isinstance(drawn, PairedValues):
        return SampledParts(sampled, None, None, sampled.attribution.notes, counts_draws=False)
    interactions = None
    order_shapley = None
    notes = list(sampled.attribution.notes)
    if fit.kernels is None:
        notes.append(fit.why_not)
    else:
        interactions = few_terms_of(drawn, game, seed, Growth(), meter, fit.kernels)
        notes += [note for note in interactions.notes if note not in notes]
        if _is_quick(drawn, seconds_left):
            order_shapley = order_shapley_of_pairs(
                drawn, game, seed, kernels=fit.kernels, means=sampled.attribution.values
            )
    return SampledParts(sampled, interactions, order_shapley, tuple(notes), drawn.has_groups)


@dataclass
class _SharedFit:
    """A fit of a process for interactions, which Shapley values and order-wise values use too."""

    seed: int
    seconds_left: float
    kernels: list[Kernels] | None = field(default=None, init=False)
    why_not: str = field(default="", init=False)

    def __call__(self, drawn: PairedValues) -> Sequence[CubeKernel] | None:
        """Fit the kernels of each sample if interactions are to be estimated; return those of the odd part."""
        self.why_not = _why_no_interactions(drawn, self.seconds_left)
        if self.why_not:
            return None
        self.kernels = fit_kernels(drawn, self.seed)
        return [odd for odd, _ in self.kernels]


def _why_no_interactions(drawn: PairedValues, seconds_left: float) -> str:
    """Say why few interactions are not estimated; empty if they are."""
    if drawn.coalitions_per_sample < LEAST_COALITIONS:
        return f"There are no interactions: they need at least {LEAST_COALITIONS} coalitions."
    seconds = drawn.samples * seconds_of_few_terms(drawn.pairs, drawn.coalitions.shape[1])
    if seconds <= min(_MOST_SECONDS_OF_INTERACTIONS, seconds_left):
        return ""
    samples = count_of(drawn.samples, "sample")
    return (
        f"There are no interactions, which would take about {duration(seconds)} for {samples}. Explain fewer "
        "samples, or use interactions(game, evaluations=…)."
    )


def _is_quick(drawn: PairedValues, seconds_left: float) -> bool:
    """Return whether order-wise values of all orders take little time."""
    players = drawn.coalitions.shape[1]
    if drawn.pairs > _MOST_PAIRS_OF_ORDERS or len(orders_shown(players)) < players:
        return False
    seconds = drawn.samples * seconds_of_orders(drawn.pairs, players)
    return seconds <= min(_MOST_SECONDS_OF_ORDERS, _MOST_SHARE_OF_ORDERS * seconds_left)
