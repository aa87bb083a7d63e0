"""What else tells absences apart: how sparse a game each makes of the same samples, and how far they agree."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.absence import Absence, Baseline, BringsModel, Fill
from absentia.attributions import order_shapley_of
from absentia.audit.estimates import Estimate, estimate, ratio_of_means, spearman
from absentia.audit.states import pick_draws
from absentia.audit.strengths import Cost, tables
from absentia.coalitions import coalition_sizes, moebius, sums_by_size
from absentia.game import ValueTable
from absentia.interactions import Interactions
from absentia.masked_model import MaskedModel

# The game of an absence with more draws is played with so many of them, chosen at random.
MOST_DRAWS = 32
# The share of the values' standard deviation that a reconstruction may be off.
RECONSTRUCTION_ERROR = 0.05


@dataclass(frozen=True, eq=False)
class Companions:
    """Figures of the game that each absence makes of each sample, or of drawn games where players are many.

    ``by_order`` are sums of |U(S)| over the sets of each order 0 … n. ``terms`` tells how few effects rebuild all 2ⁿ
    values to 5 % of their standard deviation (`Interactions.sparsity`). ``empty`` is v(∅), ``full`` is v(N).
    """

    salient: Float[Tensor, "methods samples games"]
    terms: Float[Tensor, "methods samples games"]
    by_order: Float[Tensor, "methods samples games orders"]
    empty: Float[Tensor, "methods samples games"]
    full: Float[Tensor, "methods samples games"]
    shapley: Float[Tensor, "methods samples games players"]

    @property
    def strength(self) -> Estimate:
        """The mean of Σ|U(S)| over S ≠ ∅."""
        return estimate(self.by_order[..., 1:].sum(-1))

    @property
    def salient_count(self) -> Estimate:
        """How many effects are salient."""
        return estimate(self.salient)

    @property
    def term_count(self) -> Estimate:
        """How few effects rebuild the values."""
        return estimate(self.terms)

    @property
    def empty_value(self) -> Estimate:
        """The value v(∅) with all players absent."""
        return estimate(self.empty)

    @property
    def low_orders(self) -> Estimate:
        """The share of that strength at orders up to half the number of players."""
        half = (self.by_order.shape[-1] - 1) // 2
        total = self.by_order[..., 1:].sum(-1)
        return ratio_of_means(self.by_order[..., 1 : half + 1].sum(-1), total)

    def order_profile(self) -> Estimate:
        """Divide the mean |U(S)| at each order 1 … n by that of |v(N) − v(∅)|: (methods, orders).

        It is a ratio of means over samples. The paper's mean of ratios has no bound where a sample's v(N) is, by
        chance, close to its v(∅).
        """
        players = self.by_order.shape[-1] - 1
        counts = coalition_sizes(players).bincount()[1:]
        means = (self.by_order[..., 1:] / counts).movedim(-1, 1)
        return ratio_of_means(means, (self.full - self.empty).abs()[:, None])

    def agreement(self) -> Float[Tensor, "methods methods"]:
        """Correlate the ranks of Shapley values between each two methods, averaged over samples."""
        found = spearman(self.shapley).flatten(0, 1)
        return found.nanmean(0)

    def agreement_with(self, values: Float[Tensor, "samples players"]) -> Float[Tensor, "methods samples"]:
        """Correlate the ranks of other attributions with each method's, sample by sample."""
        others = values[None, :, None].expand_as(self.shapley[:1])
        return spearman(torch.cat([self.shapley, others.to(self.shapley)]))[..., :-1, -1].mean(1).T


def measure_companions(
    games: Sequence[MaskedModel],
    absences: Mapping[str, Absence],
    fills: Mapping[str, Fill],
    tau: float | None,
    seed: int,
    bar: Any,
) -> tuple[Companions, dict[str, Cost]]:
    """Play the games of every absence; also tell what each took."""
    found, costs = [], {}
    for name, absence in absences.items():
        began = time.perf_counter()
        own, fill = games, fills[name]
        if isinstance(absence, BringsModel):
            own = [_with_model(game, absence) for game in games]
            fill = absence.bind(own[0].x)  # anew, for that model may work in another precision
        numbers = pick_draws(fill.draws, MOST_DRAWS, seed)
        played = [_play(game, fill, numbers, tau) for game in own]
        found.append(_stack([figures for figures, _ in played], dim=1))
        costs[name] = Cost(sum(spent for _, spent in played), time.perf_counter() - began)
        bar.update()
    return Companions(**_stack(found, dim=0)), costs


def _stack(parts: Sequence[dict[str, Tensor]], dim: int) -> dict[str, Tensor]:
    return {name: torch.stack([part[name] for part in parts], dim=dim) for name in parts[0]}


def _with_model(game: MaskedModel, absence: BringsModel) -> MaskedModel:
    """Let an absence that brings a model of its own have it; the readout stays that of the audited model."""
    model = absence.instead_of(game.model)
    return MaskedModel(model, game.x, players=game.players, readout=game.readout, absence=Baseline(0.0))


def _play(game: MaskedModel, fill: Fill, numbers: Sequence[int], tau: float | None) -> tuple[dict[str, Tensor], int]:
    """Take one game apart, for all samples: the fields of `Companions`, without the axes of methods and games."""
    parts, evaluations = [], 0
    for _, table in tables(game, fill, numbers):
        parts.append(_take_apart(table, tau))
        evaluations += table.evaluations
    return {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}, evaluations


def _take_apart(table: ValueTable, tau: float | None) -> dict[str, Tensor]:
    effects = Interactions(moebius(table.values), table.names, table.readout, table.noise, table.evaluations)
    return {
        "salient": effects.salient(tau)[:, 1:].sum(1).double(),
        "terms": effects.sparsity(RECONSTRUCTION_ERROR).double(),
        "by_order": sums_by_size(effects.effects.abs()),
        "empty": table.values[:, 0].clone(),  # a view would keep the whole table
        "full": table.values[:, -1].clone(),
        "shapley": order_shapley_of(table.values, table.sums).mean(1),
    }
