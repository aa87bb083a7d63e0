"""Terms: sets of players with their effects, from which the values of all coalitions can be computed.

Terms are held in one of two forms. A full table has an effect for each of the 2ⁿ sets, in counting order, for every
sample. Listed terms name their sets, and each belongs to one sample: samples need not share sets, and there may be
any number of players. All methods work for both forms.
"""

from __future__ import annotations

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
from absentia.coalitions import enumerate_coalitions
from absentia.data import check_number
from absentia.determined import are_determined
from absentia.errors import DataFrame, require, wrong
from absentia.evaluation import check_coalitions
from absentia.held_sets import AllSets, ChosenTerms, HeldSets, ListedSets
from absentia.listed_sets import player_numbers, shares_by_context
from absentia.rebuilding import (
    RebuildingErrors,
    errors_of_effects,
    errors_of_walsh_terms,
    length_of_listed,
    lengths_of_table,
)
from absentia.storage import Saved
from absentia.terms_in_words import (
    BASES_OF_VALUES,
    HARSANYI,
    WALSH,
    WALSH_MEANING,
    name_with_basis,
    printed_terms,
    share_explained,
)
from absentia.terms_json import fields_of_json, for_each_sample, json_of
from absentia.text import count_of, written
from absentia.walsh import walsh_shapley_shares, walsh_shares_by_context, walsh_values

# By default, an effect is salient above this share of the sample's largest effect.
_SALIENT_SHARE = 0.05
# An estimated effect is measurable if it exceeds this many standard errors.
_STANDARD_ERRORS = 2.0
# A printed result shows this many of the strongest effects.
_PRINTED = 5


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
            fidelity=for_each_sample("fidelity", fidelity, samples),
            highest_order=highest_order,
            notes=notes,
            rows_seen=rows_seen,
            fidelity_error=for_each_sample("fidelity_error", fidelity_error, samples),
        )

    def __repr__(self) -> str:
        what = name_with_basis("Interactions", self.basis, self.fidelity is not None)
        if self.order is not None:
            what = f"Interactions ({self.basis} of order {self.order})"
        head = f"{what} of {count_of(self.samples, 'sample')}, {len(self.names)} players; value: {self.readout}"
        place = "" if self.samples == 1 else " of sample 0"
        strongest = self.top(_PRINTED)
        rows = [(" & ".join(term.players), term.text) for term in strongest]
        determined = [term.determined for term in strongest]
        return printed_terms(f"{head}; strongest{place}", rows, determined, self.remarks(), self.notes)

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

    @cached_property
    def held(self) -> HeldSets:
        """The sets that the effects belong to, in the form in which they are held."""
        if self.members is None or self.owners is None:
            return AllSets(len(self.names), self.samples, self.effects.device)
        return ListedSets(self.members, self.owners, self.samples)

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
        return self.held.sets

    @property
    def coalitions(self) -> Bool[Tensor, "terms players"]:
        """The same as `sets`."""
        return self.sets

    @cached_property  # counting the players of many sets is slow
    def orders(self) -> Int[Tensor, " terms"]:
        """The number of players in each set."""
        return self.held.orders

    @property
    def floor(self) -> Float[Tensor, "samples orders"]:
        """The rounding errors of effects of each order: noise · 2^(order/2), or noise for Walsh terms."""
        return self.noise[:, None] * self._noise_factors()

    def _noise_factors(self) -> Float[Tensor, " orders"]:
        """Return the rounding errors of effects of each order, as multiples of those of the values."""
        orders = torch.arange(len(self.names) + 1, device=self.noise.device)
        if self.basis == WALSH:  # a mean of values
            return torch.ones_like(orders, dtype=self.noise.dtype)
        return 2.0 ** (orders / 2)

    @property
    def measurable(self) -> Bool[Tensor, "*samples terms"]:
        """Which effects exceed their rounding errors, and twice their standard errors if they are estimated."""
        beyond = self.effects.abs() > self.held.for_terms(self.noise) * self._noise_factors()[self.orders]
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
        held = self.held.only(sample)
        terms = self.held.rows_of(sample)
        row = slice(sample, sample + 1)
        return replace(
            self,
            effects=self.effects[terms],
            noise=self.noise[row],
            members=held.members,
            owners=held.owners,
            errors=_part(self.errors, terms),
            base_values=_part(self.base_values, row),
            fidelity=_part(self.fidelity, row),
            fidelity_error=_part(self.fidelity_error, row),
        )

    def top(self, k: int, sample: int = 0) -> list[Interaction]:
        """Return the k interactions of a sample with the largest |effect|, strongest first, without that of ∅.

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).top(1)
        [Interaction(players=('x0', 'x1'), effect=6.0, measurable=True, error=0.0)]
        """
        check_number("sample", sample, -self.samples, self.samples - 1)
        check_number("k", k, 0)
        sample_terms = self.only(sample % self.samples)
        effects = sample_terms.effects.detach()
        strongest = sample_terms.held.strongest(effects.abs(), k)
        errors = torch.zeros_like(effects) if sample_terms.errors is None else sample_terms.errors
        return [
            Interaction(self._names_of(sample_terms.held.players_in(number)), effect, measurable, error)
            for number, effect, measurable, error in zip(
                strongest.tolist(),
                effects.flatten()[strongest].tolist(),
                sample_terms.measurable.flatten()[strongest].tolist(),
                errors.flatten()[strongest].tolist(),
                strict=True,
            )
        ]

    def _names_of(self, players: tuple[int, ...]) -> tuple[str, ...]:
        """Return the names of the players in a set."""
        return tuple(self.names[player] for player in players)

    def keep(self, k: int) -> Terms:
        """Return listed terms: that of ∅ and the k strongest others of each sample.

        If fitted terms are left out, the `fidelity` of those that remain is unknown, which is NaN. The best sum of
        k terms has others: ask `interactions` for at most so many by ``max_terms``.

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).keep(1).effects
        tensor([2., 6.], dtype=torch.float64)
        """
        check_number("k", k, 0)
        is_empty = self.orders == 0
        by_sample = [self._strongest(sample, k, is_empty) for sample in range(self.samples)]
        numbers = torch.cat(by_sample)
        counts = torch.tensor([len(part) for part in by_sample], device=numbers.device)
        owners = torch.arange(self.samples, device=numbers.device).repeat_interleave(counts)
        kept = self._selected(ChosenTerms(numbers, owners))
        if self.fidelity is None or len(numbers) == self.effects.numel():
            return kept
        return replace(kept, fidelity=torch.full_like(self.fidelity, torch.nan), fidelity_error=None)

    def up_to_order(self, order: int) -> Terms:
        """Return listed terms: only the sets of at most this many players.

        >>> ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0])).up_to_order(1).effects
        tensor([ 2., -4., -3.], dtype=torch.float64)
        """
        check_number("order", order, 0, len(self.names))
        within = self.orders <= order
        listed = self._selected(self.held.in_all_samples(within.nonzero().flatten()))
        if bool(within.all()):
            return listed
        return replace(listed, highest_order=order)

    def _selected(self, chosen: ChosenTerms) -> Terms:
        """Return listed terms: the chosen ones, with all that belongs to them."""
        errors = None if self.errors is None else self.held.pick(self.errors, chosen)
        return replace(
            self,
            effects=self.held.pick(self.effects, chosen),
            members=self.held.sets_of(chosen.numbers),
            owners=chosen.owners,
            errors=errors,
        )

    def _strongest(self, sample: int, k: int, is_empty: Bool[Tensor, " terms"]) -> Int[Tensor, " kept"]:
        """Return the numbers of a sample's terms, in ascending order: that of ∅ and the k strongest others."""
        numbers = self.held.numbers_of(sample)
        strength = self.effects[self.held.rows_of(sample)].detach().abs().flatten()
        empty = is_empty[numbers]
        ranked = strength.masked_fill(empty, torch.inf)
        return numbers[ranked.topk(min(k + int(empty.sum()), len(numbers))).indices].sort().values

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each sample and set, with its players, order, effect and error.

        ``salient`` says whether the effect is `salient`, and ``determined`` whether it is at least as large as its
        standard error. That is 0 for an exact effect, and NaN if unknown. The frame holds all sets except ∅, sorted
        within each sample by descending |effect|.
        """
        names = [" & ".join(self._names_of(players)) for players in self.held.players_of_all()]
        orders = self.orders.tolist()
        effects = self.effects.detach()
        errors = torch.zeros_like(effects) if self.errors is None else self.errors
        by_term = [effects, errors, self.salient(), self.determined]
        rows = []
        for sample in range(self.samples):
            terms = self.held.rows_of(sample)
            numbers = self.held.numbers_of(sample).tolist()
            columns = [values[terms].flatten().tolist() for values in by_term]
            own_effects = effects[terms].flatten().cpu()
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
        strength = self.held.sums_by_order(self.effects.abs())
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
        largest = self.held.for_terms(self.held.largest(strength))
        return (strength > _SALIENT_SHARE * largest) & self.measurable

    def predict(self, coalitions: Bool[Tensor, "rows players"]) -> Float[Tensor, "samples rows"]:
        """Compute the values of coalitions from the effects: v(S) = Σ_{T⊆S} U(T), or Σ_T w_T Π_{l∈T} s_l.

        >>> terms = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0]))
        >>> terms.predict(torch.tensor([[True, True], [False, True]]))
        tensor([[ 1., -1.]], dtype=torch.float64)
        """
        self._check_adds_up("predict")
        check_coalitions(coalitions, len(self.names))
        return self._values(coalitions)

    def _values(self, coalitions: Bool[Tensor, "rows players"] | None = None) -> Float[Tensor, "samples rows"]:
        """Compute the values of coalitions, by default of all."""
        effects = self.effects.detach()
        if self.basis != WALSH or self.owners is None:
            return self.held.values(effects, coalitions)
        if coalitions is None:
            coalitions = enumerate_coalitions(len(self.names))
        return walsh_values(self.sets, effects, self.owners, self.samples, coalitions)

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
        used._check_adds_up("reconstruct")
        return used._values()

    def _check_adds_up(self, method: str) -> None:
        """Raise an error if the terms do not determine values: they are an index, or sets are left out."""
        if self.basis not in BASES_OF_VALUES:
            raise wrong("basis", f"be {' or '.join(BASES_OF_VALUES)} for {method}", self.basis)
        if self.highest_order is not None:
            got = f"those of at most {self.highest_order} players, because the others are too many"
            then = "Compute it from the game instead."
            raise wrong("terms", f"hold all sets that have an effect for {method}", got, then)

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
            return lengths_of_table(self.effects.detach(), self.noise, error)
        lengths = [
            length_of_listed(self.rebuilding_errors(sample), float(self.noise[sample]), error)
            for sample in range(self.samples)
        ]
        return torch.tensor(lengths, device=self.effects.device)

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
        if self.basis == WALSH:
            return errors_of_walsh_terms(sets, effects)
        return errors_of_effects(sets, effects)

    def shapley(self) -> Attribution:
        """Divide every effect equally among its players: φᵢ = Σ_{S∋i} U(S)/|S| [harsanyi1963simplified].

        Of Walsh terms, those with an odd number of players count twice, and others not: φᵢ = Σ_{T∋i} 2 w_T/|T|. The
        errors of estimated effects are correlated in an unknown way, so the errors of their sums are NaN.
        """
        self._check_adds_up("shapley")
        shares = self.effects / self.orders.clamp_min(1)  # ∅ has no players to share its effect
        if self.basis == WALSH:
            shares = self.effects * walsh_shapley_shares(self.orders).to(self.effects)
        values = self.held.sums_by_player(shares)
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
        sizes, by_size = self.held.sums_by_size_and_player(self.effects.detach())
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
            "owners": self.owners,
            "effects": self.effects,
            "errors": self.errors,
            "dtype": self.effects.dtype,
            "noise": self.noise,
            "basis": self.basis,
            "readout": self.readout,
            "absence": self.absence,
            "fidelity": self.fidelity,
            "fidelity_error": self.fidelity_error,
            "highest_order": self.highest_order,
            "notes": self.notes,
            "evaluations": self.evaluations,
            "rows_seen": self.rows_seen,
            "order": self.order,
            "base_values": self.base_values,
        }
        return json_of(fields)

    @classmethod
    def from_json(cls, text: str) -> Terms:
        """Read the JSON of `to_json`.

        >>> terms = ab.harsanyi(ab.ValueTable([2.0, -2.0, -1.0, 1.0]))
        >>> ab.Terms.from_json(terms.to_json()).effects
        tensor([[ 2., -4., -3.,  6.]], dtype=torch.float64)
        """
        return cls(**fields_of_json(text, cls.KIND, cls.FORMAT))


def _part(values: Tensor | None, part: slice | Tensor) -> Tensor | None:
    """Return a part of what terms may have or not."""
    return None if values is None else values[part]


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
