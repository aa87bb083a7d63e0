"""The game that each absence makes of the same samples: how sparse it is, and how far attributions agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.attributions import order_shapley_of
from absentia.audit.estimates import Estimate, ratio_of_means, spearman
from absentia.coalitions import coalition_sizes, moebius, sums_by_size
from absentia.evaluation import Tabulated
from absentia.interactions import Interactions

# The largest error of a reconstruction, as a share of the values' standard deviation.
RECONSTRUCTION_ERROR = 0.05


@dataclass(frozen=True, eq=False)
class Companions:
    """Figures of the game that each absence makes of each sample, or of a drawn game of some of its players.

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


def game_figures(table: Tabulated, players: int, tau: float | None) -> dict[str, Tensor]:
    """Return the fields of `Companions`, without the axes of methods and games, for the games of a few samples."""
    names = tuple(map(str, range(players)))
    effects = Interactions(moebius(table.values), names, "", table.noise, table.evaluations)
    found = {
        "salient": effects.salient(tau)[:, 1:].sum(1).double(),
        "terms": effects.sparsity(RECONSTRUCTION_ERROR).double(),
        "by_order": sums_by_size(effects.effects.abs()),
        "empty": table.values[:, 0].clone(),  # a view would keep the whole table
        "full": table.values[:, -1].clone(),
        "shapley": order_shapley_of(table.values).mean(1),
    }
    return {name: figures.cpu() for name, figures in found.items()}


def join_games(found: Sequence[dict[str, Tensor]], methods: int, players: int) -> Companions:
    """Join the figures of blocks of samples; without any, return figures of no sample."""
    if not found:
        sizes = {"by_order": (players + 1,), "shapley": (players,)}
        found = [{one.name: torch.zeros(methods, 0, *sizes.get(one.name, ())).double() for one in fields(Companions)}]
    return Companions(**{name: torch.cat([block[name] for block in found], 1)[:, :, None] for name in found[0]})
