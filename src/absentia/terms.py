"""Terms: sets of players with their effects, from which the values of all coalitions can be computed.

Terms are held in one of two forms. A full table has an effect for each of the 2ⁿ sets, in counting order, for every
sample. Listed terms name their sets, and each belongs to one sample: samples need not share sets, and there may be
any number of players. All methods work for both forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize, pad

from absentia.arguments import checked
from absentia.attributions import Attribution
from absentia.coalitions import (
    coalition_members,
    coalition_numbers,
    coalition_sizes,
    enumerate_coalitions,
    sums_by_size,
    zeta_,
)
from absentia.data import check_number
from absentia.errors import DataFrame, require, wrong
from absentia.evaluation import check_coalitions
from absentia.storage import Saved
from absentia.text import align, count_of, written

# Without a threshold of its own, an effect is salient beyond this share of the sample's largest one.
_SALIENT_SHARE = 0.05
# An estimated effect is measurable if it exceeds this many standard errors.
_STANDARD_ERRORS = 2.0
# Listed terms are compared with coalitions, or with each other, for this many pairs at once.
_PAIRS_AT_ONCE = 2**22


class Interaction(NamedTuple):
    """One set of players, and what their joint presence adds to the output.

    Examples
    --------
    >>> Interaction(("age", "income"), effect=-0.5, measurable=True).order
    2
    """

    players: tuple[str, ...]
    effect: float
    measurable: bool  # whether the effect exceeds the errors of the values

    @property
    def order(self) -> int:
        """The number of players."""
        return len(self.players)


@checked
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


class SampleTerms(NamedTuple):
    """The terms of one sample."""

    sets: Bool[Tensor, "terms players"]
    effects: Float[Tensor, " terms"]
    measurable: Bool[Tensor, " terms"]


@checked
@dataclass(frozen=True, eq=False)
class Terms(Saved, kind="terms", format=3):
    """Sets of players with their effects U(S): v(S) = Σ_{T⊆S} U(T) for every coalition S.

    `harsanyi` returns the effects of all 2ⁿ sets as a full table; `Terms.listed` holds any other sets. Values carry
    rounding errors of size ``noise``, and an effect sums 2^|S| of them. So effects are `measurable` only above the
    floor noise · 2^(|S|/2), and only measurable effects count as salient.

    Examples
    --------
    >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0], names=["p", "q"]))
    Interactions of 1 sample, 2 players; value: given; strongest:
      p & q  +6
      p      −4
      q      −3
    """

    effects: Float[Tensor, "*samples terms"]  # by sample of a full table; one for each listed term
    names: tuple[str, ...]
    readout: str
    noise: Float[Tensor, " samples"]  # the size of the rounding errors in the values
    evaluations: int = 0  # rows that the model evaluated
    members: Bool[Tensor, "terms players"] | None = None  # the sets of listed terms; None for a full table
    owners: Int[Tensor, " terms"] | None = None  # the sample of each listed term
    errors: Float[Tensor, "*samples terms"] | None = None  # standard errors of the effects; None if they are exact
    basis: str = "Harsanyi"  # what effects mean: by default, values are sums over subsets
    absence: str = ""  # a description of what stands in for absent players
    fidelity: float | None = None  # R² on coalitions that no fit saw; None if terms are exact

    @classmethod
    def listed(
        cls,
        sets: Bool[Tensor, "terms players"],
        effects: Float[Tensor, " effects"],
        names: tuple[str, ...] | list[str] | None = None,
        *,
        owners: Int[Tensor, " owners"] | None = None,
        samples: int | None = None,
        errors: Float[Tensor, " effects"] | None = None,
        noise: Float[Tensor, " samples"] | None = None,
        readout: str = "given",
        evaluations: int = 0,
        absence: str = "",
        fidelity: float | None = None,
    ) -> Terms:
        """Hold listed sets of players with their effects; ``owners`` are the numbers of their samples.

        Examples
        --------
        >>> sets = torch.tensor([[True, False, False], [True, False, True]])
        >>> terms = ab.Terms.listed(sets, torch.tensor([2.0, -1.0]), ["a", "b", "c"])
        >>> terms.predict(torch.tensor([[True, True, True]]))
        tensor([[1.]])
        """
        if len(sets) != len(effects):
            raise wrong("effects", f"hold one number for each of the {len(sets)} sets", f"{len(effects)}")
        players = sets.shape[1]
        if names is None:
            names = tuple(f"x{player}" for player in range(players))
        if len(names) != players:
            raise wrong("names", f"name each of the {players} players", f"{len(names)} names")
        if owners is None:
            owners = torch.zeros(len(sets), dtype=torch.long, device=sets.device)
        if samples is None:
            samples = 1 + int(owners.max()) if len(owners) else 1
        if len(owners) != len(sets) or bool((owners < 0).any()) or bool((owners >= samples).any()):
            raise wrong("owners", f"number a sample from 0 to {samples - 1} for each set", f"{owners}")
        if noise is None:
            noise = torch.zeros(samples, dtype=effects.dtype, device=effects.device)
        return cls(
            effects,
            tuple(names),
            readout,
            noise,
            evaluations,
            members=sets,
            owners=owners,
            errors=errors,
            absence=absence,
            fidelity=fidelity,
        )

    def __repr__(self) -> str:
        head = (
            f"Interactions of {count_of(self.samples, 'sample')}, {len(self.names)} players; value: {self.readout}; "
            "strongest"
        )
        if self.samples > 1:
            head += " of sample 0"
        rows = [[" & ".join(term.players), written(term.effect, 4, plus=True)] for term in self.top(5)]
        return "\n".join([f"{head}:", *align(rows, 2)])

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.noise)

    @property
    def is_full(self) -> bool:
        """Whether every sample has an effect for each of the 2ⁿ sets, in counting order."""
        return self.members is None

    @property
    def sets(self) -> Bool[Tensor, "terms players"]:
        """The sets of players that the effects belong to, in the same order."""
        if self.members is None:
            return enumerate_coalitions(len(self.names))
        return self.members

    @property
    def coalitions(self) -> Bool[Tensor, "terms players"]:
        """The same as `sets`."""
        return self.sets

    @property
    def orders(self) -> Int[Tensor, " terms"]:
        """The number of players in each set."""
        if self.members is None:
            return coalition_sizes(len(self.names)).to(self.effects.device)
        return self.members.sum(1)

    @property
    def floor(self) -> Float[Tensor, "samples orders"]:
        """The size of the rounding errors in an effect of each order: noise · 2^(order/2)."""
        orders = torch.arange(len(self.names) + 1, device=self.noise.device)
        return self.noise[:, None] * 2.0 ** (orders / 2)

    @property
    def measurable(self) -> Bool[Tensor, "*samples terms"]:
        """Which effects exceed their rounding errors, and twice their standard errors if they are estimated."""
        if self.owners is None:
            beyond = self.effects.abs() > self.floor[:, self.orders]
        else:
            beyond = self.effects.abs() > self.noise[self.owners] * 2.0 ** (self.orders / 2)
        if self.errors is None:
            return beyond
        return beyond & (self.effects.abs() > _STANDARD_ERRORS * self.errors)

    def of_sample(self, sample: int = 0) -> SampleTerms:
        """Return the sets, effects and measurability of one sample's terms."""
        check_number("sample", sample, -self.samples, self.samples - 1)
        if self.owners is None:
            return SampleTerms(self.sets, self.effects[sample], self.measurable[sample])
        own = self.owners == sample % self.samples
        return SampleTerms(self.sets[own], self.effects[own], self.measurable[own])

    def top(self, k: int, sample: int = 0) -> list[Interaction]:
        """Return the k interactions of a sample with the largest |U|, strongest first, without v(∅).

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).top(1)
        [Interaction(players=('x0', 'x1'), effect=6.0, measurable=True)]
        """
        check_number("sample", sample, -self.samples, self.samples - 1)
        check_number("k", k, 0)
        if self.is_full:
            return self._top_of_table(k, sample)
        terms = self.of_sample(sample)
        strength = terms.effects.detach().abs()
        strength[~terms.sets.any(1)] = -1.0  # v(∅) is not an interaction
        strongest = strength.topk(min(k, int((strength >= 0).sum()))).indices.tolist()
        return [
            Interaction(self._names_of(terms.sets[term]), float(terms.effects[term]), bool(terms.measurable[term]))
            for term in strongest
        ]

    def _top_of_table(self, k: int, sample: int) -> list[Interaction]:
        """Return the strongest interactions of a full table."""
        effects = self.effects[sample].detach()
        strongest = effects[1:].abs().topk(min(k, len(effects) - 1)).indices + 1
        measurable = self.measurable[sample]
        return [
            Interaction(
                tuple(self.names[player] for player in coalition_members(number)),
                float(effects[number]),
                bool(measurable[number]),
            )
            for number in strongest.tolist()
        ]

    def _names_of(self, members: Bool[Tensor, " players"]) -> tuple[str, ...]:
        """Return the names of the players of one set."""
        return tuple(self.names[player] for player in members.nonzero().flatten().tolist())

    def keep(self, k: int) -> Terms:
        """Return listed terms: v(∅) and the k strongest other effects of each sample.

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).keep(1).effects
        tensor([2., 6.], dtype=torch.float64)
        """
        check_number("k", k, 0)
        by_sample = [self._strongest(sample, k) for sample in range(self.samples)]
        owners = torch.arange(self.samples).repeat_interleave(torch.tensor([len(part) for part in by_sample]))
        numbers = torch.cat(by_sample)
        if self.owners is None:
            # Row by row of the table: the sample's number, and the number of the set.
            effects = self.effects[owners, numbers]
            errors = None if self.errors is None else self.errors[owners, numbers]
        else:
            effects = self.effects[numbers]
            errors = None if self.errors is None else self.errors[numbers]
        sets = self._sets_of(numbers)
        return replace(self, effects=effects, members=sets, owners=owners.to(effects.device), errors=errors)

    def _strongest(self, sample: int, k: int) -> Int[Tensor, " kept"]:
        """Return the numbers of a sample's terms, in ascending order: v(∅) and the k strongest others."""
        if self.owners is None:
            strength = self.effects[sample].detach().abs()
            numbers = torch.arange(len(strength), device=strength.device)
            empty = numbers == 0
        else:
            numbers = (self.owners == sample).nonzero().flatten()
            strength = self.effects[numbers].detach().abs()
            empty = ~self.sets[numbers].any(1)
        ranked = strength.masked_fill(empty, torch.inf)
        return numbers[ranked.topk(min(k + int(empty.sum()), len(numbers))).indices].sort().values

    def _sets_of(self, numbers: Int[Tensor, " kept"]) -> Bool[Tensor, "kept players"]:
        """Return the sets of some terms by their numbers."""
        if self.members is not None:
            return self.members[numbers]
        players = torch.arange(len(self.names), device=numbers.device)
        return (numbers[:, None] >> players & 1).bool()

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each sample and set, with its players, order, effect and salience.

        It holds all sets but ∅, those of a sample in descending order of |effect|.
        """
        names = [" & ".join(self._names_of(members)) for members in self.sets]
        orders = self.orders.tolist()
        effects = self.effects.detach().cpu()
        salient = self.salient().cpu()
        rows = []
        for sample in range(self.samples):
            if self.owners is None:
                numbers = torch.arange(len(names))
                own_effects = effects[sample]
                own_salient = salient[sample]
            else:
                numbers = (self.owners == sample).nonzero().flatten().cpu()
                own_effects = effects[numbers]
                own_salient = salient[numbers]
            for place in own_effects.abs().argsort(descending=True, stable=True).tolist():
                number = int(numbers[place])
                if orders[number] > 0:
                    effect = float(own_effects[place])
                    rows.append((sample, names[number], orders[number], effect, bool(own_salient[place])))
        heads = ["sample", "players", "order", "effect", "salient"]
        return require("pandas", "tables").DataFrame(rows, columns=heads)

    def by_order(self) -> OrderProfile:
        """Sum the strength |U| at each order.

        >>> ab.harsanyi(ab.ValueTable([0.0, 1.0, 1.0, 4.0])).by_order().ratios
        tensor([[0.0000, 0.5000, 0.5000]], dtype=torch.float64)
        """
        if self.owners is None:
            strength = sums_by_size(self.effects.abs())
        else:
            strength = self.effects.new_zeros(self.samples, len(self.names) + 1)
            strength.index_put_((self.owners, self.orders), self.effects.abs(), accumulate=True)
        ratios = normalize(pad(strength[:, 1:], (1, 0)), p=1, eps=torch.finfo(strength.dtype).tiny)
        return OrderProfile(strength, ratios)

    def salient(self, tau: float | None = None) -> Bool[Tensor, "*samples terms"]:
        """Mark the salient effects, |U(S)| > τ, that are measurable [ren2023faithful, Eq. 4].

        Without ``tau``, the threshold is 5 % of the sample's largest effect without v(∅).

        >>> ab.harsanyi(ab.ValueTable([0.0, 1.0, 1.0, 2.0])).salient(0.1).sum(1)
        tensor([2])
        """
        check_number("tau", tau, 0)
        strength = self.effects.abs()
        if tau is not None:
            return (strength > tau) & self.measurable
        if self.owners is None:
            return (strength > _SALIENT_SHARE * strength[:, 1:].amax(1, keepdim=True)) & self.measurable
        without_empty = strength * (self.orders > 0)
        largest = strength.new_zeros(self.samples).scatter_reduce(0, self.owners, without_empty, "amax")
        return (strength > _SALIENT_SHARE * largest[self.owners]) & self.measurable

    def predict(self, coalitions: Bool[Tensor, "rows players"]) -> Float[Tensor, "samples rows"]:
        """Compute the values of coalitions from the effects: v(S) = Σ_{T⊆S} U(T).

        >>> terms = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0]))
        >>> terms.predict(torch.tensor([[True, True], [False, True]]))
        tensor([[ 1., -1.]], dtype=torch.float64)
        """
        self._check_harsanyi("predict")
        check_coalitions(coalitions, len(self.names))
        if self.owners is None:
            return zeta_(self.effects.detach().clone())[:, coalition_numbers(coalitions)]
        values = self.effects.new_zeros(self.samples, len(coalitions))
        absent = (~coalitions).to(self.effects)
        at_once = max(1, _PAIRS_AT_ONCE // max(1, len(coalitions)))
        for start in range(0, len(self.sets), at_once):
            part = slice(start, start + at_once)
            # A set is within a coalition if none of its players is absent.
            within = self.sets[part].to(absent) @ absent.T == 0
            values.index_add_(0, self.owners[part], self.effects[part, None] * within)
        return values.detach()

    def reconstruct(
        self,
        coalitions: Bool[Tensor, "rows players"] | None = None,
        keep: Bool[Tensor, "*samples terms"] | None = None,
    ) -> Float[Tensor, "samples rows"]:
        """Compute values from effects as `predict` does, of all 2ⁿ coalitions or of those given.

        ``keep`` marks the effects to use, such as the salient ones; the others count as 0.

        >>> effects = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0]))
        >>> effects.reconstruct()
        tensor([[ 2., -2., -1.,  1.]], dtype=torch.float64)
        """
        used = self
        if keep is not None:
            if keep.shape != self.effects.shape:
                raise wrong("keep", f"have the shape of the effects, {tuple(self.effects.shape)}", tuple(keep.shape))
            used = replace(self, effects=self.effects * keep)
        if coalitions is not None:
            return used.predict(coalitions)
        if used.is_full:
            used._check_harsanyi("reconstruct")
            return zeta_(used.effects.detach().clone())
        return used.predict(enumerate_coalitions(len(self.names)))

    def _check_harsanyi(self, method: str) -> None:
        """Raise an error if effects of another basis are summed over subsets."""
        if self.basis != "Harsanyi":
            raise wrong("basis", f"be Harsanyi for {method}", self.basis)

    def sparsity(self, error: float = 0.05) -> Int[Tensor, " samples"]:
        """Return how few of the strongest effects reconstruct all 2ⁿ values.

        The values reconstructed from v(∅) and the k strongest other effects must be within ``error`` of the true
        ones: the root mean square of the differences, as a share of the values' standard deviation. The error need
        not fall with every k. The search doubles k, then bisects: k suffices, and k − 1 does not. For listed terms
        the mean squares over all coalitions have a closed form, so that there may be any number of players.

        >>> ab.harsanyi(ab.ValueTable([0.0, 0.0, 0.0, 1.0])).sparsity()
        tensor([1])
        """
        if not 0 <= error < 1:
            raise wrong("error", "be a share between 0 and 1", error)
        if self.is_full:
            return self._sparsity_of_table(error)
        lengths = [self._sparsity_of_sample(sample, error) for sample in range(self.samples)]
        return torch.tensor(lengths, device=self.effects.device)

    def _sparsity_of_table(self, error: float) -> Int[Tensor, " samples"]:
        """Search the lengths of all samples of a full table at once."""
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
        while True:
            enough = suffices(high)
            if bool(enough.all()):
                break
            low = torch.where(enough, low, high)
            high = torch.where(enough, high, (2 * high + 1).clamp(max=rank.shape[1] - 1))
        while bool((high - low > 1).any()):
            middle = (low + high) // 2
            enough = suffices(middle)
            low = torch.where(enough, low, middle)
            high = torch.where(enough, middle, high)
        return high

    def _sparsity_of_sample(self, sample: int, error: float) -> int:
        """Search the length of one sample's listed terms."""
        terms = self.of_sample(sample)
        counted = terms.sets.any(1)
        sets = terms.sets[counted]
        effects = terms.effects[counted].detach()
        ranked = effects.abs().argsort(descending=True, stable=True)
        sets = sets[ranked]
        effects = effects[ranked]
        mean = (effects * 2.0 ** -sets.sum(1)).sum()
        deviation = (mean_square(sets, effects) - mean.square()).clamp_min(0).sqrt()
        tolerance = max(error * float(deviation), float(self.noise[sample]))

        def suffices(k: int) -> bool:
            return float(mean_square(sets[k:], effects[k:]).clamp_min(0).sqrt()) <= tolerance

        low = -1
        high = 0
        while high < len(effects) and not suffices(high):
            low = high
            high = min(2 * high + 1, len(effects))
        while high - low > 1:
            middle = (low + high) // 2
            if suffices(middle):
                high = middle
            else:
                low = middle
        return high

    def shapley(self) -> Attribution:
        """Divide every effect equally among its players: φᵢ = Σ_{S∋i} U(S)/|S| [harsanyi1963simplified].

        Errors of estimated effects depend on each other in ways that terms do not know: those of their sums are NaN.
        """
        self._check_harsanyi("shapley")
        shares = self.effects / self.orders.clamp_min(1)  # ∅ has no players to share its effect
        if self.owners is None:
            halves = [shares.unflatten(1, (-1, 2, 2**player))[:, :, 1] for player in range(len(self.names))]
            values = torch.stack([half.sum((1, 2)) for half in halves], dim=1)
        else:
            values = shares.new_zeros(self.samples, len(self.names))
            values.index_add_(0, self.owners, shares[:, None] * self.sets)
        errors = torch.zeros_like(values)
        if self.errors is not None:
            errors.fill_(torch.nan)
        return Attribution(values, errors, self.evaluations, self.names, "Shapley values", self.readout)


def mean_square(sets: Bool[Tensor, "terms players"], effects: Float[Tensor, " terms"]) -> Float[Tensor, ""]:
    """Return the mean over all coalitions of the squared sum of the effects of their subsets.

    Two sets are both within a coalition with probability 2^−|S ∪ T|.
    """
    members = sets.to(effects)
    sizes = members.sum(1)
    total = effects.new_zeros(())
    at_once = max(1, _PAIRS_AT_ONCE // max(1, len(effects)))
    for start in range(0, len(effects), at_once):
        part = slice(start, start + at_once)
        joint = sizes[part, None] + sizes - members[part] @ members.T
        total = total + effects[part] @ (2.0**-joint @ effects)
    return total


# The name of `Terms` in the first release.
Interactions = Terms
