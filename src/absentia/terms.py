"""Terms: sets of players with their effects, from which the values of all coalitions can be computed.

Terms are held in one of two forms. A full table has an effect for each of the 2ⁿ sets, in counting order, for every
sample. Listed terms name their sets, and each belongs to one sample: samples need not share sets, and there may be
any number of players. All methods work for both forms.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize, pad

from absentia.arguments import checked
from absentia.attributions import Attribution, OrderAttribution
from absentia.coalitions import (
    coalition_members,
    coalition_numbers,
    coalition_sizes,
    enumerate_coalitions,
    sums_by_size,
    sums_by_size_and_player,
    zeta_,
)
from absentia.data import check_number
from absentia.determined import WHY_NOT_DETERMINED, are_determined, with_marks
from absentia.errors import DataFrame, require, wrong
from absentia.evaluation import check_coalitions
from absentia.listed_sets import (
    mean_squares,
    player_numbers,
    rows_of_players,
    shares_by_context,
    sums_by_player,
    values_of_coalitions,
)
from absentia.storage import Saved
from absentia.terms_in_words import (
    BASES_OF_VALUES,
    HARSANYI,
    WALSH,
    WALSH_MEANING,
    name_with_basis,
    share_explained,
)
from absentia.text import align, count_of, fold, written
from absentia.walsh import walsh_mean_squares, walsh_shapley_shares, walsh_shares_by_context, walsh_values

# By default, an effect is salient above this share of the sample's largest effect.
_SALIENT_SHARE = 0.05
# An estimated effect is measurable if it exceeds this many standard errors.
_STANDARD_ERRORS = 2.0
# A printed result shows this many of the strongest effects.
_PRINTED = 5
# The types of effects in JSON, by name.
_DTYPES = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}


class Interaction(NamedTuple):
    """A set of players, and what their joint presence adds to the output.

    Examples
    --------
    >>> Interaction(("age", "income"), effect=-0.5, measurable=True).order
    2
    """

    players: tuple[str, ...]
    effect: float
    measurable: bool  # whether the effect exceeds the errors of the values
    error: float = 0.0  # its standard error: 0 for an exact effect, NaN if unknown

    @property
    def order(self) -> int:
        """The number of players."""
        return len(self.players)

    @property
    def determined(self) -> bool:
        """Whether the effect is at least as large as its standard error, or the error is unknown."""
        return not self.error > abs(self.effect)

    @property
    def text(self) -> str:
        """The effect as shown, with its standard error if that is known."""
        effect = written(self.effect, 4, plus=True)
        return f"{effect} ± {written(self.error, 2)}" if self.error > 0 else effect


@checked
@dataclass(frozen=True, eq=False)
class OrderProfile:
    """The strength of the effects at each order 0 … n: Σ_{|S|=m} |U(S)|.

    ``ratios`` are the shares of each order in the total strength of orders ≥ 1, the paper's r_m. Order 0, whose
    effect is v(∅), has the share 0.

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


class RebuildingErrors(NamedTuple):
    """How well the strongest sets of a sample rebuild the values of all its coalitions."""

    errors: Float[Tensor, " counts"]  # root mean squares, with v(∅) and the 0, 1, 2 … strongest other sets
    deviation: float  # the standard deviation of the values


@checked
@dataclass(frozen=True, eq=False)
class Terms(Saved, kind="terms", format=4):
    """Sets of players with their effects, which add up to the values of all coalitions.

    `harsanyi` returns the effects U(S) of all 2ⁿ sets as a full table; `Terms.listed` holds any other sets. In the
    Harsanyi basis, v(S) = Σ_{T⊆S} U(T). In the Walsh basis, which listed terms may have, v(S) = Σ_T w_T Π_{l∈T} s_l
    with s = 1 for a present and s = −1 for an absent player, and the term of ∅ is the mean of all values.

    Values have rounding errors of size ``noise``, and a Harsanyi effect is a sum of 2^|S| values. So an effect is
    `measurable` only above the floor noise · 2^(|S|/2), and only measurable effects count as salient. A Walsh term is
    a mean of values, so its floor is ``noise``.

    Examples
    --------
    >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0], names=["p", "q"]))
    Interactions of 1 sample, 2 players; value: given; strongest:
      p & q  +6
      p      −4
      q      −3
    """

    effects: Float[Tensor, "*samples terms"]  # for each sample of a full table, or for each listed term
    names: tuple[str, ...]
    readout: str
    noise: Float[Tensor, " samples"]  # the size of the rounding errors in the values
    evaluations: int = 0  # rows that were evaluated: one for each coalition and draw of the absence
    members: Bool[Tensor, "terms players"] | None = None  # the sets of listed terms; None for a full table
    owners: Int[Tensor, " terms"] | None = None  # the sample of each listed term
    errors: Float[Tensor, "*samples terms"] | None = None  # standard errors of the effects; None if they are exact
    basis: str = HARSANYI  # what effects mean: "Harsanyi", "Walsh", or the name of an index
    absence: str = ""  # a description of what stands in for absent players
    fidelity: Float[Tensor, " samples"] | None = None  # R² on coalitions that no fit saw; None for exact terms
    highest_order: int | None = None  # sets of more players are left out; None if no set is
    notes: tuple[str, ...] = ()  # what is left out, and why
    rows_seen: int | None = None  # rows that the model evaluated in all, checks included; None if unknown
    order: int | None = None  # the order of the index that the basis names; None for effects
    base_values: Float[Tensor, " samples"] | None = None  # v(∅), which may differ from an index's number for ∅
    fidelity_error: Float[Tensor, " samples"] | None = None  # the standard error of the fidelity; None if unknown

    def __post_init__(self) -> None:
        if self.basis == WALSH and self.members is None:
            raise wrong("basis", "be Harsanyi for a full table", WALSH, "List the sets: Terms.listed(basis='Walsh').")

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
        fidelity: Float[Tensor, " samples"] | float | None = None,
        highest_order: int | None = None,
        notes: tuple[str, ...] = (),
        rows_seen: int | None = None,
        basis: str = HARSANYI,
        fidelity_error: Float[Tensor, " samples"] | float | None = None,
    ) -> Terms:
        """Make terms from a list of sets and their effects; ``owners`` holds the sample number of each set.

        ``basis`` is "Harsanyi" or "Walsh". ``fidelity`` and its error are one number for each sample, or for all.

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
        if basis not in BASES_OF_VALUES:
            raise wrong("basis", f"be {' or '.join(BASES_OF_VALUES)}", repr(basis))
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
            basis=basis,
            absence=absence,
            fidelity=_for_each_sample("fidelity", fidelity, samples),
            highest_order=highest_order,
            notes=notes,
            rows_seen=rows_seen,
            fidelity_error=_for_each_sample("fidelity_error", fidelity_error, samples),
        )

    def __repr__(self) -> str:
        what = name_with_basis("Interactions", self.basis, self.fidelity is not None)
        if self.order is not None:
            what = f"Interactions ({self.basis} of order {self.order})"
        head = (
            f"{what} of {count_of(self.samples, 'sample')}, {len(self.names)} players; value: {self.readout}; "
            "strongest"
        )
        if self.samples > 1:
            head += " of sample 0"
        strongest = self.top(_PRINTED)
        determined = [term.determined for term in strongest]
        rows = with_marks([(" & ".join(term.players), term.text) for term in strongest], determined)
        lines = [f"{head}:", *align(rows, 2)]
        if not all(determined):
            lines.append(f"  {WHY_NOT_DETERMINED}")
        lines += [fold(f"  {remark}") for remark in self.remarks()]
        return "\n".join([*lines, *(fold(f"  Note: {note}") for note in self.notes)])

    def remarks(self, sample: int = 0) -> list[str]:
        """Say how much the terms of a sample explain if they are fitted, and what a term means unless it is usual.

        >>> terms = ab.Terms.listed(torch.eye(2).bool(), torch.ones(2), fidelity=0.96, fidelity_error=0.01)
        >>> terms.remarks()
        ['These 2 interactions account for 96 % ± 1 % of the variation.']
        """
        check_number("sample", sample, -self.samples, self.samples - 1)
        remarks = [WALSH_MEANING] if self.basis == WALSH else []
        if self.fidelity is None or not self.adds_up:
            return remarks
        interactions = int((self.only(sample % self.samples).orders > 0).sum())
        error = math.nan if self.fidelity_error is None else float(self.fidelity_error[sample])
        sentence = share_explained(interactions, float(self.fidelity[sample]), error)
        return [sentence, *remarks] if sentence else remarks

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.noise)

    @property
    def is_full(self) -> bool:
        """Whether every sample has an effect for each of the 2ⁿ sets, in counting order."""
        return self.members is None

    @property
    def is_exact(self) -> bool:
        """Whether effects are exact rather than estimated or fitted."""
        return self.errors is None and self.fidelity is None

    @property
    def adds_up(self) -> bool:
        """Whether the terms determine the values of coalitions: no index of them, and no sets left out."""
        return self.basis in BASES_OF_VALUES and self.highest_order is None

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

    @cached_property  # counting the players of many sets is slow
    def orders(self) -> Int[Tensor, " terms"]:
        """The number of players in each set."""
        if self.members is None:
            return coalition_sizes(len(self.names)).to(self.effects.device)
        return self.members.sum(1)

    @property
    def floor(self) -> Float[Tensor, "samples orders"]:
        """The rounding errors of effects of each order: noise · 2^(order/2), or noise for Walsh terms."""
        orders = torch.arange(len(self.names) + 1, device=self.noise.device)
        return self.noise[:, None] * self._noise_factors(orders)

    def _noise_factors(self, orders: Int[Tensor, " terms"]) -> Float[Tensor, " terms"]:
        """Return the rounding errors of effects of these orders, as multiples of those of the values."""
        if self.basis == WALSH:  # a mean of values
            return torch.ones_like(orders, dtype=self.noise.dtype)
        return 2.0 ** (orders / 2)

    @property
    def measurable(self) -> Bool[Tensor, "*samples terms"]:
        """Which effects exceed their rounding errors, and twice their standard errors if they are estimated."""
        if self.owners is None:
            beyond = self.effects.abs() > self.floor[:, self.orders]
        else:
            beyond = self.effects.abs() > self.noise[self.owners] * self._noise_factors(self.orders)
        if self.errors is None:
            return beyond
        return beyond & (self.effects.abs() > _STANDARD_ERRORS * self.errors)

    @property
    def determined(self) -> Bool[Tensor, "*samples terms"]:
        """Which effects are at least as large as their standard errors, or have an unknown error."""
        return are_determined(self.effects, self.errors)

    def of_sample(self, sample: int = 0) -> SampleTerms:
        """Return the sets of one sample, their effects, and whether these are measurable."""
        check_number("sample", sample, -self.samples, self.samples - 1)
        sample_terms = self.only(sample % self.samples)
        return SampleTerms(sample_terms.sets, sample_terms.effects.flatten(), sample_terms.measurable.flatten())

    def only(self, sample: int) -> Terms:
        """Return the terms of a single sample.

        >>> ab.harsanyi(ab.ValueTable([[0.0, 1.0], [0.0, 2.0]])).only(1).effects
        tensor([[0., 2.]], dtype=torch.float64)
        """
        check_number("sample", sample, 0, self.samples - 1)
        if self.samples == 1:
            return self
        of_sample: slice | Tensor = slice(sample, sample + 1)
        owners = None
        members = None
        if self.owners is not None:
            of_sample = self.owners == sample
            owners = torch.zeros_like(self.owners[of_sample])
            members = self.sets[of_sample]
        return replace(
            self,
            effects=self.effects[of_sample],
            noise=self.noise[sample : sample + 1],
            members=members,
            owners=owners,
            errors=None if self.errors is None else self.errors[of_sample],
            base_values=None if self.base_values is None else self.base_values[sample : sample + 1],
            fidelity=None if self.fidelity is None else self.fidelity[sample : sample + 1],
            fidelity_error=None if self.fidelity_error is None else self.fidelity_error[sample : sample + 1],
        )

    def top(self, k: int, sample: int = 0) -> list[Interaction]:
        """Return the k interactions of a sample with the largest |effect|, strongest first, without that of ∅.

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).top(1)
        [Interaction(players=('x0', 'x1'), effect=6.0, measurable=True, error=0.0)]
        """
        check_number("sample", sample, -self.samples, self.samples - 1)
        check_number("k", k, 0)
        if self.is_full:
            return self._top_of_table(k, sample)
        sample_terms = self.only(sample % self.samples)
        sets = sample_terms.sets
        effects = sample_terms.effects.detach()
        measurable = sample_terms.measurable
        strength = effects.abs()
        strength[sample_terms.orders == 0] = -1.0  # ∅ is not an interaction
        strongest = strength.topk(min(k, int((strength >= 0).sum()))).indices.tolist()
        return [
            Interaction(
                self._names_of(sets[term]),
                float(effects[term]),
                bool(measurable[term]),
                0.0 if sample_terms.errors is None else float(sample_terms.errors[term]),
            )
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
                0.0 if self.errors is None else float(self.errors[sample, number]),
            )
            for number in strongest.tolist()
        ]

    def _names_of(self, members: Bool[Tensor, " players"]) -> tuple[str, ...]:
        """Return the names of the players in a set."""
        return tuple(self.names[player] for player in members.nonzero().flatten().tolist())

    def keep(self, k: int) -> Terms:
        """Return listed terms: that of ∅ and the k strongest others of each sample.

        If fitted terms are left out, the `fidelity` of those that remain is unknown, which is NaN.

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).keep(1).effects
        tensor([2., 6.], dtype=torch.float64)
        """
        check_number("k", k, 0)
        is_empty = self.orders == 0
        by_sample = [self._strongest(sample, k, is_empty) for sample in range(self.samples)]
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
        fidelity = self.fidelity
        if fidelity is not None and len(numbers) < self.effects.numel():
            fidelity = torch.full_like(fidelity, torch.nan)
        return replace(
            self,
            effects=effects,
            members=sets,
            owners=owners.to(effects.device),
            errors=errors,
            fidelity=fidelity,
            fidelity_error=self.fidelity_error if fidelity is self.fidelity else None,
        )

    def up_to_order(self, order: int) -> Terms:
        """Return listed terms: only the sets of at most this many players.

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).up_to_order(1).effects
        tensor([ 2., -4., -3.], dtype=torch.float64)
        """
        check_number("order", order, 0, len(self.names))
        within = self.orders <= order
        numbers = within.nonzero().flatten()
        owners = torch.arange(self.samples, device=numbers.device).repeat_interleave(len(numbers))
        effects = self.effects[:, numbers].flatten() if self.owners is None else self.effects[numbers]
        errors = self.errors
        if errors is not None:
            errors = errors[:, numbers].flatten() if self.owners is None else errors[numbers]
        sets = self._sets_of(numbers)
        if self.owners is None:
            sets = sets.repeat(self.samples, 1)
        else:
            owners = self.owners[numbers]
        left_out = bool((~within).any())
        return replace(
            self,
            effects=effects,
            members=sets,
            owners=owners,
            errors=errors,
            highest_order=order if left_out else self.highest_order,
        )

    def _strongest(self, sample: int, k: int, is_empty: Bool[Tensor, " terms"]) -> Int[Tensor, " kept"]:
        """Return the numbers of a sample's terms, in ascending order: that of ∅ and the k strongest others."""
        if self.owners is None:
            strength = self.effects[sample].detach().abs()
            numbers = torch.arange(len(strength), device=strength.device)
        else:
            numbers = (self.owners == sample).nonzero().flatten()
            strength = self.effects[numbers].detach().abs()
        empty = is_empty[numbers]
        ranked = strength.masked_fill(empty, torch.inf)
        return numbers[ranked.topk(min(k + int(empty.sum()), len(numbers))).indices].sort().values

    def _sets_of(self, numbers: Int[Tensor, " kept"]) -> Bool[Tensor, "kept players"]:
        """Return the sets of the terms with these numbers."""
        if self.members is not None:
            return self.members[numbers]
        players = torch.arange(len(self.names), device=numbers.device)
        return (numbers[:, None] >> players & 1).bool()

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each sample and set, with its players, order, effect and error.

        ``salient`` says whether the effect is `salient`, and ``determined`` whether it is at least as large as its
        standard error. That is 0 for an exact effect, and NaN if unknown. The frame holds all sets except ∅, sorted
        within each sample by descending |effect|.
        """
        names = [" & ".join(self.names[player] for player in players) for players in player_numbers(self.sets)]
        orders = self.orders.tolist()
        effects = self.effects.detach().cpu()
        errors = torch.zeros_like(effects) if self.errors is None else self.errors.cpu()
        salient = self.salient().cpu()
        determined = self.determined.cpu()
        rows = []
        for sample in range(self.samples):
            own: Any = sample
            numbers = list(range(len(names)))
            if self.owners is not None:
                own = (self.owners == sample).nonzero().flatten().cpu()
                numbers = own.tolist()
            own_effects = effects[own]
            columns = [own_effects.tolist(), errors[own].tolist(), salient[own].tolist(), determined[own].tolist()]
            for place in own_effects.abs().argsort(descending=True, stable=True).tolist():
                number = numbers[place]
                if orders[number] > 0:
                    rows.append((sample, names[number], orders[number], *(column[place] for column in columns)))
        heads = ["sample", "players", "order", "effect", "error", "salient", "determined"]
        return require("pandas", "tables").DataFrame(rows, columns=heads)

    def by_order(self) -> OrderProfile:
        """Sum the strength |effect| at each order.

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
        """Compute the values of coalitions from the effects: v(S) = Σ_{T⊆S} U(T), or Σ_T w_T Π_{l∈T} s_l.

        >>> terms = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0]))
        >>> terms.predict(torch.tensor([[True, True], [False, True]]))
        tensor([[ 1., -1.]], dtype=torch.float64)
        """
        self._check_adds_up("predict")
        check_coalitions(coalitions, len(self.names))
        if self.owners is None:
            return zeta_(self.effects.detach().clone())[:, coalition_numbers(coalitions)]
        effects = self.effects.detach()
        if self.basis == WALSH:
            return walsh_values(self.sets, effects, self.owners, self.samples, coalitions)
        return values_of_coalitions(self.sets, effects, self.owners, self.samples, coalitions)

    def reconstruct(
        self,
        coalitions: Bool[Tensor, "rows players"] | None = None,
        keep: Bool[Tensor, "*samples terms"] | None = None,
    ) -> Float[Tensor, "samples rows"]:
        """Compute values from effects as `predict` does, by default for all 2ⁿ coalitions.

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
            used._check_adds_up("reconstruct")
            return zeta_(used.effects.detach().clone())
        return used.predict(enumerate_coalitions(len(self.names)))

    def _check_adds_up(self, method: str) -> None:
        """Raise an error if the terms do not determine values: they are an index, or sets are left out."""
        if self.basis not in BASES_OF_VALUES:
            raise wrong("basis", f"be {' or '.join(BASES_OF_VALUES)} for {method}", self.basis)
        if self.highest_order is not None:
            got = f"those of at most {self.highest_order} players, because the others are too many"
            raise wrong("terms", f"hold all sets that have an effect for {method}", got, "Ask the game itself.")

    def sparsity(self, error: float = 0.05) -> Int[Tensor, " samples"]:
        """Return how few of the strongest effects reconstruct all 2ⁿ values.

        The values reconstructed from the term of ∅ and the k strongest others must be within ``error`` of the true
        ones: the root mean square of the differences, as a share of the values' standard deviation. The error may
        rise with k here and there. The search doubles k, then bisects, so k suffices and k − 1 does not. For listed
        terms the mean squares over all coalitions have a closed form, which works for any number of players.

        >>> ab.harsanyi(ab.ValueTable([0.0, 0.0, 0.0, 1.0])).sparsity()
        tensor([1])
        """
        self._check_adds_up("sparsity")
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
        # Rounding errors must not increase the number of effects.
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
        rebuilding = self.rebuilding_errors(sample)
        tolerance = max(error * rebuilding.deviation, float(self.noise[sample]))
        enough = (rebuilding.errors <= tolerance).tolist()
        low = -1
        high = 0
        while not enough[high]:  # all sets are always enough
            low = high
            high = min(2 * high + 1, len(enough) - 1)
        while high - low > 1:
            middle = (low + high) // 2
            if enough[middle]:
                high = middle
            else:
                low = middle
        return high

    def rebuilding_errors(self, sample: int = 0) -> RebuildingErrors:
        """Compute the error of rebuilding all 2ⁿ values of a sample from its strongest listed sets.

        >>> terms = ab.Terms.listed(torch.eye(2).bool(), torch.tensor([2.0, -4.0]))
        >>> terms.rebuilding_errors().errors
        tensor([2.4495, 1.4142, 0.0000], dtype=torch.float64)
        """
        self._check_adds_up("rebuilding_errors")
        terms = self.of_sample(sample)
        counted = terms.sets.any(1)
        sets = terms.sets[counted]
        effects = terms.effects[counted].detach()
        ranked = effects.abs().argsort(descending=True, stable=True)
        if self.basis == WALSH:
            squares = walsh_mean_squares(sets[ranked], effects[ranked])
            return RebuildingErrors(squares.sqrt(), float(squares[0].sqrt()))
        squares = mean_squares(sets[ranked], effects[ranked])
        mean = (effects * 2.0 ** -sets.sum(1)).sum().double()
        deviation = (squares[0] - mean.square()).clamp_min(0).sqrt()
        return RebuildingErrors(squares.sqrt(), float(deviation))

    def shapley(self) -> Attribution:
        """Divide every effect equally among its players: φᵢ = Σ_{S∋i} U(S)/|S| [harsanyi1963simplified].

        Of Walsh terms, those with an odd number of players count twice, and others not: φᵢ = Σ_{T∋i} 2 w_T/|T|. The
        errors of estimated effects are correlated in an unknown way, so the errors of their sums are NaN.
        """
        self._check_adds_up("shapley")
        shares = self.effects / self.orders.clamp_min(1)  # ∅ has no players to share its effect
        if self.basis == WALSH:
            shares = self.effects * walsh_shapley_shares(self.orders).to(self.effects)
        if self.owners is None:
            halves = [shares.unflatten(1, (-1, 2, 2**player))[:, :, 1] for player in range(len(self.names))]
            values = torch.stack([half.sum((1, 2)) for half in halves], dim=1)
        else:
            values = sums_by_player(self.sets, shares, self.owners, self.samples)
        errors = torch.zeros_like(values)
        if not self.is_exact:
            errors.fill_(torch.nan)
        kind = "Shapley values"
        return Attribution(values, errors, self.evaluations, self.names, kind, self.readout, rows_seen=self.rows_seen)

    def order_shapley(self) -> OrderAttribution:
        """Compute the Shapley values by order: what a player adds on average to coalitions of m other players.

        An effect U(S) appears when a player of S joins, if the others of S are among the m players. The probability
        of that has a closed form, which works for any number of players. So has the mean of what a player of a Walsh
        term adds.

        >>> ab.harsanyi(ab.ValueTable([0.0, 1.0, 2.0, 5.0])).order_shapley().values
        tensor([[[1., 2.],
                 [3., 4.]]], dtype=torch.float64)
        """
        self._check_adds_up("order_shapley")
        if self.errors is not None:
            raise wrong("effects", "be exact for order_shapley", "estimates with standard errors")
        players = len(self.names)
        effects = self.effects.detach()
        if self.owners is None:
            sizes = torch.arange(players + 1, device=effects.device)
            by_size = sums_by_size_and_player(effects)
        else:
            sizes, places = self.orders.unique(return_inverse=True)
            groups = self.owners * len(sizes) + places
            sums = sums_by_player(self.sets, effects, groups, self.samples * len(sizes))
            by_size = sums.unflatten(0, (self.samples, len(sizes)))
        shares = shares_by_context(sizes, players)
        if self.basis == WALSH:
            shares = walsh_shares_by_context(sizes, players)
        values = shares.to(by_size) @ by_size
        kind = "order-wise Shapley values"
        every = tuple(range(players))
        return OrderAttribution(
            values, self.evaluations, self.names, kind, self.readout, every, rows_seen=self.rows_seen
        )

    @staticmethod
    def upgraded(tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Bring the fields of format 3 up to date, in which one fidelity stood for all samples."""
        return upgraded_terms(tensors, fields)

    def to_json(self) -> str:
        """Return the terms as JSON, with the sets as lists of player numbers; `Terms.from_json` reads it.

        ``effects`` and ``errors`` hold a list for each sample of a full table, or a number for each listed set.

        >>> ab.Terms.listed(torch.tensor([[True, False, True]]), torch.tensor([2.0])).to_json()
        '{"kind": "terms", "format": 4, "full": false, "names": ["x0", "x1", "x2"], "sets": [[0, 2]], ...
        """
        fields = {
            "kind": self.KIND,
            "format": self.FORMAT,
            "full": self.is_full,
            "names": self.names,
            "sets": player_numbers(self.sets),
            "owners": None if self.owners is None else self.owners.tolist(),
            "effects": _json_numbers(self.effects),
            "errors": None if self.errors is None else _json_numbers(self.errors),
            "dtype": str(self.effects.dtype).removeprefix("torch."),
            "noise": _json_numbers(self.noise),
            "basis": self.basis,
            "readout": self.readout,
            "absence": self.absence,
            "fidelity": None if self.fidelity is None else _json_numbers(self.fidelity),
            "fidelity_error": None if self.fidelity_error is None else _json_numbers(self.fidelity_error),
            "highest_order": self.highest_order,
            "notes": self.notes,
            "evaluations": self.evaluations,
            "rows_seen": self.rows_seen,
            "order": self.order,
            "base_values": None if self.base_values is None else _json_numbers(self.base_values),
        }
        try:
            return json.dumps(fields, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise wrong("effects", "be finite for JSON", "infinity") from error

    @classmethod
    def from_json(cls, text: str) -> Terms:
        """Read the JSON of `to_json`.

        >>> terms = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0]))
        >>> ab.Terms.from_json(terms.to_json()).effects
        tensor([[ 2., -4., -3.,  6.]], dtype=torch.float64)
        """
        try:
            return cls._of_json_fields(json.loads(text))
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise wrong("text", "be the JSON of terms", "text in which something is missing or damaged") from error

    @classmethod
    def _of_json_fields(cls, fields: dict[str, Any]) -> Terms:
        """Make terms from the fields of JSON."""
        if fields["kind"] != cls.KIND or fields["format"] > cls.FORMAT:
            raise ValueError(fields["kind"])
        names = tuple(fields["names"])
        dtype = _DTYPES[fields["dtype"]]
        noise = _tensor_of_json(fields["noise"], dtype)
        effects = _tensor_of_json(fields["effects"], dtype)
        is_full = fields["full"]
        if is_full and effects.shape != (len(fields["noise"]), 2 ** len(names)):
            raise ValueError(tuple(effects.shape))
        if not is_full and not len(effects) == len(fields["sets"]) == len(fields["owners"]):
            raise ValueError(len(effects))
        return cls(
            effects,
            names,
            fields["readout"],
            noise,
            fields["evaluations"],
            members=None if is_full else rows_of_players(fields["sets"], len(names)),
            owners=None if is_full else torch.tensor(fields["owners"], dtype=torch.long),
            errors=None if fields["errors"] is None else _tensor_of_json(fields["errors"], dtype),
            basis=fields["basis"],
            absence=fields["absence"],
            fidelity=_fidelity_of_json(fields["fidelity"], len(noise)),
            fidelity_error=_fidelity_of_json(fields.get("fidelity_error"), len(noise)),
            highest_order=fields["highest_order"],
            notes=tuple(fields["notes"]),
            rows_seen=fields["rows_seen"],
            order=fields["order"],
            base_values=None if fields["base_values"] is None else _tensor_of_json(fields["base_values"], dtype),
        )


def _for_each_sample(
    name: str, numbers: Float[Tensor, " samples"] | float | None, samples: int
) -> Float[Tensor, " samples"] | None:
    """Return a number for each sample, from a number for each or for all of them."""
    if numbers is None:
        return None
    by_sample = torch.as_tensor(numbers, dtype=torch.float64)
    if by_sample.ndim == 0:
        return by_sample.repeat(samples)
    if by_sample.shape != (samples,):
        raise wrong(name, f"hold one number for each of the {samples} samples", tuple(by_sample.shape))
    return by_sample


def _fidelity_of_json(numbers: Any, samples: int) -> Float[Tensor, " samples"] | None:
    """Return fidelities, or their errors, of each sample; in format 3, one number stood for all samples."""
    if isinstance(numbers, list):
        numbers = _tensor_of_json(numbers, torch.float64)
    return _for_each_sample("fidelity", numbers, samples)


def _json_numbers(values: Float[Tensor, "*shape"]) -> list[Any]:
    """Return numbers for JSON, with null for NaN."""
    if values.ndim > 1:
        return [_json_numbers(row) for row in values]
    return [None if math.isnan(number) else number for number in values.tolist()]


def _tensor_of_json(numbers: list[Any], dtype: torch.dtype) -> Tensor:
    """Return the tensor from which `_json_numbers` made these numbers."""
    if numbers and isinstance(numbers[0], list):
        return torch.stack([_tensor_of_json(row, dtype) for row in numbers])
    return torch.tensor([math.nan if number is None else number for number in numbers], dtype=dtype)


def upgraded_terms(tensors: dict[str, Tensor], fields: dict[str, Any], place: str = "") -> dict[str, Any]:
    """Return the fields of terms, whose tensors are stored under ``place``, with the fidelity of each sample."""
    fidelity = fields.get("fidelity")
    if not isinstance(fidelity, int | float):
        return fields
    samples = len(tensors[f"{place}noise"])
    tensors[f"{place}fidelity"] = torch.full((samples,), fidelity, dtype=torch.float64)
    return {name: value for name, value in fields.items() if name != "fidelity"}


# The name of `Terms` in the first release.
Interactions = Terms
