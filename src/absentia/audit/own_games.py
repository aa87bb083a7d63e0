"""The game that each absence makes of the same samples: how sparse it is, and how far attributions agree."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.absences.protocol import Fill
from absentia.attributions import order_shapley_of
from absentia.audit.estimates import Estimate, ratio_of_means, spearman
from absentia.audit.removal import Cost, few_draws, tables
from absentia.coalitions import coalition_sizes, moebius, sums_by_size
from absentia.evaluation import Evaluator, Tabulated
from absentia.interactions import Interactions
from absentia.players import Players

# The game of an absence with more draws uses this many of them, chosen at random.
MOST_DRAWS = 32
# The largest error of a reconstruction, as a share of the values' standard deviation.
RECONSTRUCTION_ERROR = 0.05


@dataclass(frozen=True, eq=False)
class Companions:
    """Figures of the game that each absence makes of each sample, or of drawn games if there are many players.

    ``by_order`` are sums of |U(S)| over the sets of each order 0 … n. ``terms`` is the number of effects that rebuild
    all 2ⁿ values to 5 % of their standard deviation (`Interactions.sparsity`). ``empty`` is v(∅), ``full`` is v(N).
    """

    salient: Float[Tensor, "methods samples games"]
    terms: Float[Tensor, "methods samples games"]
    by_order: Float[Tensor, "methods samples games orders"]
    empty: Float[Tensor, "methods samples games"]
    full: Float[Tensor, "methods samples games"]
    shapley: Float[Tensor, "methods samples games players"]

    @property
    def strengths(self) -> Float[Tensor, "methods samples games"]:
        """Σ|U(S)| over S ≠ ∅ of each game."""
        return self.by_order[..., 1:].sum(-1)

    @property
    def low_orders(self) -> Estimate:
        """The share of the strength at orders up to half the number of players."""
        half = (self.by_order.shape[-1] - 1) // 2
        return ratio_of_means(self.by_order[..., 1 : half + 1].sum(-1), self.strengths)

    def order_profile(self) -> Estimate:
        """Return the mean |U(S)| at each order 1 … n, divided by the mean |v(N) − v(∅)|: (methods, orders).

        It is a ratio of means over samples. The paper's mean of ratios has no bound where a sample's v(N) happens to
        be close to its v(∅).
        """
        players = self.by_order.shape[-1] - 1
        counts = coalition_sizes(players).bincount()[1:]
        means = (self.by_order[..., 1:] / counts).movedim(-1, 1)
        return ratio_of_means(means, (self.full - self.empty).abs()[:, None])

    def agreement(self) -> Float[Tensor, "methods methods"]:
        """Return the rank correlation of Shapley values between each two methods, averaged over samples."""
        return spearman(self.shapley).flatten(0, 1).nanmean(0)


def measure_game(
    evaluator: Evaluator, fill: Fill, games: Sequence[Players], tau: float | None, seed: int
) -> tuple[dict[str, Tensor], Cost]:
    """Evaluate the games of one absence: the fields of `Companions` without the axis of methods, and the cost."""
    began, evaluations = time.perf_counter(), 0
    fill = few_draws(fill, MOST_DRAWS, seed)
    found = []
    for players in games:
        parts = []
        for _, table in tables(evaluator, players, fill):
            parts.append(_figures(table, players, tau))
            evaluations += table.evaluations
        found.append({name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]})
    figures = {name: torch.stack([one[name] for one in found], dim=1) for name in found[0]}
    return figures, Cost(evaluations, time.perf_counter() - began)


def _figures(table: Tabulated, players: Players, tau: float | None) -> dict[str, Tensor]:
    """Return the figures of one game of a few samples."""
    effects = Interactions(moebius(table.values), players.names, "", table.noise, table.evaluations)
    return {
        "salient": effects.salient(tau)[:, 1:].sum(1).double(),
        "terms": effects.sparsity(RECONSTRUCTION_ERROR).double(),
        "by_order": sums_by_size(effects.effects.abs()),
        "empty": table.values[:, 0].clone(),  # a view would keep the whole table
        "full": table.values[:, -1].clone(),
        "shapley": order_shapley_of(table.values).mean(1),
    }


def join_games(found: Sequence[dict[str, Tensor]]) -> Companions:
    """Join the figures of all methods."""
    return Companions(**{name: torch.stack([one[name] for one in found]) for name in found[0]})
