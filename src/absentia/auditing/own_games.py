"""Figures of each absence's own games: how many interactions an explanation needs, and their orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.auditing.audit_leaves import GroupedTerms
from absentia.auditing.estimates import Estimate, estimates, ratio_of_means
from absentia.auditing.jackknife import Drawn, pseudo_values
from absentia.coalitions import coalition_sizes, moebius, sums_by_size
from absentia.indices import order_shapley_of
from absentia.terms import Terms

# The largest error of a reconstruction, as a share of the values' standard deviation.
RECONSTRUCTION_ERROR = 0.05


def spearman(attributions: Float[Tensor, "methods *rows players"]) -> Float[Tensor, "*rows methods methods"]:
    """Correlate the ranks of the players for each pair of methods; NaN for a method whose values are all equal."""
    column = attributions[..., None, :]
    row = attributions[..., :, None]
    # Equal values share the mean of their ranks.
    ranks = ((column < row).sum(-1) + ((column == row).sum(-1) + 1) / 2).to(attributions.dtype)
    centred = (ranks - ranks.mean(-1, keepdim=True)).movedim(0, -2)
    products = centred @ centred.transpose(-1, -2)
    size = products.diagonal(dim1=-2, dim2=-1).sqrt()
    return (products / (size[..., :, None] * size[..., None, :])).clamp(-1, 1)


@dataclass(frozen=True, eq=False)
class Companions:
    """Figures of each absence's game on each sample, or of a game of some of its players.

    They are pseudo-values over groups of draws (see `jackknife`), whose mean over the groups is a sample's figure.
    ``by_order`` holds the sums of |U(S)| over the sets of each order 0 … n. ``terms`` is the number of effects that
    reconstruct all 2ⁿ values to within 5 % of their standard deviation (`Terms.sparsity`). ``empty`` is v(∅), and
    ``full`` is v(N).
    """

    salient: Float[Tensor, "methods samples groups"]
    terms: Float[Tensor, "methods samples groups"]
    by_order: Float[Tensor, "methods samples groups orders"]
    empty: Float[Tensor, "methods samples groups"]
    full: Float[Tensor, "methods samples groups"]
    shapley: Float[Tensor, "methods samples groups players"]
    log_terms: Float[Tensor, "methods samples groups"] | None = None  # missing in files of older versions

    @property
    def strengths(self) -> Float[Tensor, "methods samples groups"]:
        """Σ|U(S)| over S ≠ ∅ of each game."""
        return self.by_order[..., 1:].sum(-1)

    @property
    def lengths(self) -> Float[Tensor, "methods samples groups"]:
        """The logarithm of the number of terms; its mean is the logarithm of the geometric mean."""
        if self.log_terms is None:
            return self.terms.clamp_min(1).log()
        return self.log_terms

    @property
    def length(self) -> Estimate:
        """The number of interactions that an explanation needs: the geometric mean of the terms over the samples."""
        value, error = estimates(self.lengths)
        return Estimate(value.exp(), value.exp() * error)

    @property
    def low_orders(self) -> Estimate:
        """The share of the strength at orders up to half the number of players."""
        half = (self.by_order.shape[-1] - 1) // 2
        return ratio_of_means(self.by_order[..., 1 : half + 1].sum(-1), self.strengths)

    def order_profile(self) -> Estimate:
        """Return the mean |U(S)| at each order 1 … n, divided by the mean |v(N) − v(∅)|: (methods, orders).

        It is a ratio of means over samples. The paper's mean of ratios is unbounded if v(N) happens to be close to
        v(∅) for some sample.
        """
        sets_by_order = coalition_sizes(self.by_order.shape[-1] - 1).bincount()[1:]
        means = (self.by_order[..., 1:] / sets_by_order).movedim(-1, 1)
        gaps = (self.full - self.empty).nanmean(2, keepdim=True).abs().expand_as(self.full)
        return ratio_of_means(means, gaps[:, None])

    def agreement(self) -> Float[Tensor, "methods methods"]:
        """Return the rank correlation of Shapley values for each pair of methods, averaged over samples."""
        return spearman(self.shapley.nanmean(2)).nanmean(0)


def game_figures(values: Float[Tensor, "samples coalitions"], noise: Tensor, tau: float | None) -> dict[str, Tensor]:
    """Return the fields of `Companions`, without the axes of methods and groups, for the games of a few samples."""
    players = (values.shape[1] - 1).bit_length()
    effects = Terms(moebius(values), ("",) * players, "", noise, 0)
    terms = effects.sparsity(RECONSTRUCTION_ERROR).double()
    figures = {
        "salient": effects.salient(tau)[:, 1:].sum(1).double(),
        "terms": terms,
        "by_order": sums_by_size(effects.effects.abs()),
        "empty": values[:, 0].clone(),  # a view would keep the whole table in memory
        "full": values[:, -1].clone(),
        "shapley": order_shapley_of(values).mean(1),
        "log_terms": terms.clamp_min(1).log(),
    }
    return {name: figure.cpu() for name, figure in figures.items()}


def drawn_game_figures(
    tables: Drawn, noise: Float[Tensor, " samples"], tau: float | None, shared: bool
) -> dict[str, Float[Tensor, "samples groups *figure"]]:
    """Return the figures of games whose values are means over draws, as pseudo-values."""
    whole = game_figures(tables.mean, noise, tau)
    without = [game_figures(values, noise, tau) for values in tables.without]
    return {
        name: pseudo_values(figure, [left_out[name] for left_out in without], shared)
        for name, figure in whole.items()
    }


def listed_game_figures(
    games: Sequence[GroupedTerms], tau: float | None, shared: bool
) -> dict[str, Float[Tensor, "samples groups *figure"]]:
    """Return the same figures of games of any number of players, given the interactions of each sample."""
    whole = [_figures_of_terms(game.listed(game.effects.mean), tau) for game in games]
    without = [[_figures_of_terms(game.listed(part), tau) for part in game.effects.without] for game in games]
    groups_left_out = len(without[0])
    figures = {}
    for name in whole[0]:
        of_samples = torch.stack([figure[name] for figure in whole])
        left_out = [torch.stack([parts[group][name] for parts in without]) for group in range(groups_left_out)]
        figures[name] = pseudo_values(of_samples, left_out, shared)
    return figures


def _figures_of_terms(terms: Terms, tau: float | None) -> dict[str, Tensor]:
    """Return the figures of one sample's game from its listed interactions."""
    length = terms.sparsity(RECONSTRUCTION_ERROR)[0].double()
    return {
        "salient": (terms.salient(tau) & (terms.orders > 0)).sum().double(),
        "terms": length,
        "by_order": terms.by_order().strength[0],
        "empty": terms.effects[terms.orders == 0].sum(),
        "full": terms.effects.sum(),
        "shapley": terms.shapley().values[0],
        "log_terms": length.clamp_min(1).log(),
    }


def join_games(parts: Sequence[dict[str, Tensor]], methods: int, players: int) -> Companions:
    """Join the figures of blocks of samples, of shape (methods, samples, groups, …); there may be no block."""
    if not parts:
        return _no_games(methods, players)
    return Companions(**{name: torch.cat([part[name] for part in parts], dim=1) for name in parts[0]})


def _no_games(methods: int, players: int) -> Companions:
    """Return empty figures, without samples."""
    more_axes = {"by_order": (players + 1,), "shapley": (players,)}
    names = [field.name for field in fields(Companions)]
    return Companions(**{name: torch.zeros(methods, 0, 1, *more_axes.get(name, ())).double() for name in names})
