"""Interactions: the Harsanyi effects that a game's values are made of, and how sparse they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize, pad

from absentia.attributions import Attribution, exact_attribution
from absentia.coalitions import coalition_members, coalition_sizes, enumerate_coalitions, moebius, sums_by_size, zeta_
from absentia.data import check_number
from absentia.errors import DataFrame, require, wrong
from absentia.games import Game, ValueTable, value_table
from absentia.text import align, count_of, written


class Interaction(NamedTuple):
    """One set of players, and what their joint presence adds to the output.

    Examples
    --------
    >>> Interaction(("age", "income"), effect=-0.5, measurable=True).order
    2
    """

    players: tuple[str, ...]
    effect: float
    measurable: bool  # whether the effect exceeds the rounding errors of the values

    @property
    def order(self) -> int:
        """The number of players."""
        return len(self.players)


@dataclass(frozen=True, eq=False)
class OrderProfile:
    """The strength of the effects at each order 0 … n: Σ_{|S|=m} |U(S)|.

    ``ratios`` are its shares of the strength of all orders ≥ 1, the paper's r_m. Order 0, whose effect is v(∅), has
    the share 0.

    Examples
    --------
    >>> ab.harsanyi(ab.ValueTable([5.0, 6.0, 6.0, 9.0])).by_order().strength
    tensor([[5., 2., 2.]], dtype=torch.float64)
    """

    strength: Float[Tensor, "samples orders"]
    ratios: Float[Tensor, "samples orders"]


@dataclass(frozen=True, eq=False)
class Interactions:
    """The effects U(S) of all 2ⁿ coalitions S, in counting order: v(S) = Σ_{T⊆S} U(T) for every S.

    Values carry rounding errors of size ``noise``, and an effect sums 2^|S| of them. So effects are `measurable` only
    above the floor noise · 2^(|S|/2), and only measurable effects count as salient.

    Examples
    --------
    >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0], names=["p", "q"]))
    Interactions of 1 sample, 2 players; value: given; strongest:
      p & q  +6
      p      −4
      q      −3
    """

    effects: Float[Tensor, "samples coalitions"]
    names: tuple[str, ...]
    readout: str
    noise: Float[Tensor, " samples"]  # the size of the rounding errors in the values
    evaluations: int  # rows that the model evaluated

    def __repr__(self) -> str:
        samples, players = len(self.effects), len(self.names)
        head = f"Interactions of {count_of(samples, 'sample')}, {players} players; value: {self.readout}; strongest"
        effects = [[" & ".join(found.players), written(found.effect, 4, plus=True)] for found in self.top(5)]
        return "\n".join([head + (":" if samples == 1 else " of sample 0:"), *align(effects, 2)])

    @property
    def coalitions(self) -> Bool[Tensor, "coalitions players"]:
        """The sets of players that the effects belong to, in the same order."""
        return enumerate_coalitions(len(self.names))

    @property
    def floor(self) -> Float[Tensor, "samples orders"]:
        """The size of the rounding errors in an effect of each order: noise · 2^(order/2)."""
        orders = torch.arange(len(self.names) + 1, device=self.noise.device)
        return self.noise[:, None] * 2.0 ** (orders / 2)

    @property
    def measurable(self) -> Bool[Tensor, "samples coalitions"]:
        """Which effects exceed their rounding errors."""
        return self.effects.abs() > self.floor[:, coalition_sizes(len(self.names)).to(self.effects.device)]

    def top(self, k: int, sample: int = 0) -> list[Interaction]:
        """Return the k interactions of a sample with the largest |U|, strongest first, without v(∅).

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).top(1)
        [Interaction(players=('x0', 'x1'), effect=6.0, measurable=True)]
        """
        check_number("sample", sample, -len(self.effects), len(self.effects) - 1)
        check_number("k", k, 0)
        effects = self.effects[sample].detach()
        numbers = effects[1:].abs().topk(min(k, len(effects) - 1)).indices + 1
        measurable = self.measurable[sample]
        found = ((tuple(self.names[i] for i in coalition_members(number)), number) for number in numbers.tolist())
        return [Interaction(names, float(effects[number]), bool(measurable[number])) for names, number in found]

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each sample and set, with its players, order, effect and salience.

        It holds all sets but ∅, those of a sample in descending order of |effect|.
        """
        names = [" & ".join(self.names[i] for i in coalition_members(k)) for k in range(self.effects.shape[1])]
        orders, salient, rows = coalition_sizes(len(self.names)).tolist(), self.salient().tolist(), []
        for sample, effects in enumerate(self.effects.detach().cpu()):
            ranked = (effects[1:].abs().argsort(descending=True, stable=True) + 1).tolist()
            rows += [(sample, names[k], orders[k], float(effects[k]), salient[sample][k]) for k in ranked]
        heads = ["sample", "players", "order", "effect", "salient"]
        return require("pandas", "tables").DataFrame(rows, columns=heads)

    def by_order(self) -> OrderProfile:
        """Sum the strength |U| at each order.

        >>> ab.harsanyi(ab.ValueTable([0.0, 1.0, 1.0, 4.0])).by_order().ratios
        tensor([[0.0000, 0.5000, 0.5000]], dtype=torch.float64)
        """
        strength = sums_by_size(self.effects.abs())
        ratios = normalize(pad(strength[:, 1:], (1, 0)), p=1, eps=torch.finfo(strength.dtype).tiny)
        return OrderProfile(strength, ratios)

    def salient(self, tau: float | None = None) -> Bool[Tensor, "samples coalitions"]:
        """Mark the salient effects, |U(S)| > τ, that are measurable [ren2023faithful, Eq. 4].

        Without ``tau``, the threshold is 5 % of the sample's largest effect without v(∅).

        >>> ab.harsanyi(ab.ValueTable([0.0, 1.0, 1.0, 2.0])).salient(0.1).sum(1)
        tensor([2])
        """
        check_number("tau", tau, 0)
        strength = self.effects.abs()
        threshold = 0.05 * strength[:, 1:].amax(1, keepdim=True) if tau is None else tau
        return (strength > threshold) & self.measurable

    def reconstruct(
        self,
        coalitions: Bool[Tensor, "rows players"] | None = None,
        keep: Bool[Tensor, "samples coalitions"] | None = None,
    ) -> Float[Tensor, "samples rows"]:
        """Compute values from effects, v(S) = Σ_{T⊆S} U(T), of all coalitions or of those given.

        ``keep`` marks the effects to use, such as the salient ones; the others count as 0.

        >>> effects = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0]))
        >>> effects.reconstruct()
        tensor([[ 2., -2., -1.,  1.]], dtype=torch.float64)
        """
        effects = self.effects.detach()
        if keep is not None and keep.shape != effects.shape:
            raise wrong("keep", f"have the shape of the effects, {tuple(effects.shape)}", tuple(keep.shape))
        values = zeta_(effects.clone() if keep is None else effects * keep)
        return values if coalitions is None else ValueTable(values, self.names)(coalitions)

    def sparsity(self, error: float = 0.05) -> Int[Tensor, " samples"]:
        """Return how few of the strongest effects reconstruct all 2ⁿ values.

        The values reconstructed from v(∅) and the k strongest other effects must be within ``error`` of the true
        ones: the root mean square of the differences, as a share of the values' standard deviation. The error need
        not fall with every k. The search doubles k, then bisects: k suffices, and k − 1 does not.

        >>> ab.harsanyi(ab.ValueTable([0.0, 0.0, 0.0, 1.0])).sparsity()
        tensor([1])
        """
        if not 0 <= error < 1:
            raise wrong("error", "be a share between 0 and 1", error)
        strength = self.effects.detach().abs()
        strength[:, 0] = torch.inf  # v(∅) is always used: rank 0
        order = strength.argsort(1, descending=True)
        places = torch.arange(order.shape[1], device=order.device).expand_as(order)
        rank = torch.empty_like(order).scatter_(1, order, places)
        values = self.reconstruct()
        # Rounding errors alone must not require more effects.
        tolerance = torch.maximum(error * values.std(1, correction=0), self.noise)

        def suffices(k: Tensor) -> Tensor:
            return (self.reconstruct(keep=rank <= k[:, None]) - values).square_().mean(1).sqrt() <= tolerance

        low = torch.full_like(rank[:, 0], -1)
        high = torch.zeros_like(low)
        while not bool((enough := suffices(high)).all()):
            low = torch.where(enough, low, high)
            high = torch.where(enough, high, (2 * high + 1).clamp(max=rank.shape[1] - 1))
        while bool((high - low > 1).any()):
            middle = (low + high) // 2
            enough = suffices(middle)
            low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
        return high

    def shapley(self) -> Attribution:
        """Divide every effect equally among its players: φᵢ = Σ_{S∋i} U(S)/|S| [harsanyi1963simplified]."""
        sizes = coalition_sizes(len(self.names)).to(self.effects.device)
        shares = self.effects / sizes.clamp_min(1)  # ∅ has no players to share its effect
        halves = [shares.unflatten(1, (-1, 2, 2**player))[:, :, 1] for player in range(len(self.names))]
        return exact_attribution(self, torch.stack([half.sum((1, 2)) for half in halves], dim=1), "Shapley values")


def harsanyi(game: Game) -> Interactions:
    """Compute the interactions of a game: U(S) = Σ_{T⊆S} (−1)^{|S|−|T|} v(T) [harsanyi1963simplified].

    Parameters
    ----------
    game : Game

    Examples
    --------
    >>> game = ab.MaskedModel(lambda rows: rows.prod(1), torch.tensor([[2.0, 3.0]]), absence=1.0)
    >>> ab.harsanyi(game).effects
    tensor([[1., 1., 2., 2.]], dtype=torch.float64)
    """
    table = value_table(game)
    return Interactions(moebius(table.values), table.names, table.readout, table.noise, table.evaluations)
