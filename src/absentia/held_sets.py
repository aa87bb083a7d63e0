"""The sets of players that terms belong to: all 2ⁿ sets of every sample, or listed sets, each of one sample.

Both forms answer the same questions. What has a number for each term, such as effects, errors or marks, is of shape
(samples, sets) if all sets are held, and of shape (terms,) if they are listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.coalitions import (
    coalition_members,
    coalition_numbers,
    coalition_sizes,
    enumerate_coalitions,
    sums_by_size,
    sums_by_size_and_player,
    zeta_,
)
from absentia.listed_sets import player_numbers, sums_by_player, values_of_coalitions


class ChosenTerms(NamedTuple):
    """Some of the terms: their numbers among all sets, and the sample of each."""

    numbers: Int[Tensor, " chosen"]
    owners: Int[Tensor, " chosen"]


class SumsBySize(NamedTuple):
    """Sums of effects over the sets of each size that contain each player, and these sizes."""

    sizes: Int[Tensor, " sizes"]
    sums: Float[Tensor, "samples sizes players"]


@dataclass(frozen=True, eq=False)
class AllSets:
    """All 2ⁿ sets of every sample, in counting order."""

    players: int
    samples: int
    device: torch.device

    # What listed terms are stored with, and a full table is not.
    members = None
    owners = None

    @property
    def sets(self) -> Bool[Tensor, "sets players"]:
        """All sets."""
        return enumerate_coalitions(self.players)

    @property
    def orders(self) -> Int[Tensor, " sets"]:
        """The number of players in each set."""
        return coalition_sizes(self.players).to(self.device)

    @property
    def largest_order(self) -> int:
        """The number of players in the largest set."""
        return self.players

    @property
    def counts(self) -> Int[Tensor, " samples"]:
        """The number of sets of each sample, with ∅."""
        return torch.full((self.samples,), 2**self.players)

    def players_in(self, number: int) -> tuple[int, ...]:
        """Return the players of a set."""
        return coalition_members(number)

    def players_of_all(self) -> list[tuple[int, ...]]:
        """Return the players of each set."""
        return [coalition_members(number) for number in range(2**self.players)]

    def sets_of(self, numbers: Int[Tensor, " chosen"]) -> Bool[Tensor, "chosen players"]:
        """Return the sets with these numbers."""
        players = torch.arange(self.players, device=numbers.device)
        return (numbers[:, None] >> players & 1).bool()

    def rows_of(self, sample: int) -> slice:
        """Return which rows of a table belong to a sample."""
        return slice(sample, sample + 1)

    def only(self, sample: int) -> AllSets:
        """Return the sets of a single sample."""
        return AllSets(self.players, 1, self.device)

    def numbers_of(self, sample: int) -> Int[Tensor, " sets"]:
        """Return the numbers of the sets of a sample."""
        return torch.arange(2**self.players, device=self.device)

    def in_all_samples(self, numbers: Int[Tensor, " sets"]) -> ChosenTerms:
        """Return the sets with these numbers, of every sample."""
        owners = torch.arange(self.samples, device=numbers.device).repeat_interleave(len(numbers))
        return ChosenTerms(numbers.repeat(self.samples), owners)

    def pick(self, values: Shaped[Tensor, "samples sets"], chosen: ChosenTerms) -> Shaped[Tensor, " chosen"]:
        """Return the numbers of the chosen terms."""
        return values[chosen.owners, chosen.numbers]

    def for_terms(self, by_sample: Shaped[Tensor, " samples"]) -> Shaped[Tensor, "samples 1"]:
        """Return a number of each sample in a shape that meets those of its terms."""
        return by_sample[:, None]

    def largest(self, strength: Float[Tensor, "samples sets"]) -> Float[Tensor, " samples"]:
        """Return the largest strength of each sample, without that of ∅."""
        return strength[:, 1:].amax(1)

    def strongest(self, strength: Float[Tensor, "one sets"], count: int) -> Int[Tensor, " strongest"]:
        """Return the numbers of the strongest sets of a single sample, strongest first, without ∅."""
        without_empty = strength[0, 1:]
        return without_empty.topk(min(count, len(without_empty))).indices + 1

    def sums_by_order(self, strength: Float[Tensor, "samples sets"]) -> Float[Tensor, "samples orders"]:
        """Sum the strength at each order."""
        return sums_by_size(strength)

    def sums_by_player(self, shares: Float[Tensor, "samples sets"]) -> Float[Tensor, "samples players"]:
        """Sum the shares of the sets that contain each player."""
        halves = [shares.unflatten(1, (-1, 2, 2**player))[:, :, 1] for player in range(self.players)]
        return torch.stack([half.sum((1, 2)) for half in halves], dim=1)

    def sums_by_size_and_player(self, effects: Float[Tensor, "samples sets"]) -> SumsBySize:
        """Sum the effects of the sets of each size that contain each player."""
        sizes = torch.arange(self.players + 1, device=effects.device)
        return SumsBySize(sizes, sums_by_size_and_player(effects))

    def values(
        self, effects: Float[Tensor, "samples sets"], coalitions: Bool[Tensor, "rows players"] | None = None
    ) -> Float[Tensor, "samples rows"]:
        """Return the values of coalitions, by default of all, as sums of Harsanyi effects."""
        table = zeta_(effects.clone())
        return table if coalitions is None else table[:, coalition_numbers(coalitions)]


@dataclass(frozen=True, eq=False)
class ListedSets:
    """Any sets of players, each of which belongs to one sample."""

    members: Bool[Tensor, "terms players"]
    owners: Int[Tensor, " terms"]
    samples: int

    @property
    def players(self) -> int:
        """The number of players."""
        return self.members.shape[1]

    @property
    def sets(self) -> Bool[Tensor, "terms players"]:
        """The sets of all samples."""
        return self.members

    @property
    def orders(self) -> Int[Tensor, " terms"]:
        """The number of players in each set."""
        return self.members.sum(1)

    @property
    def largest_order(self) -> int:
        """The number of players in the largest set; 0 if there are no sets."""
        return max((0, *self.orders.unique().tolist()))

    @property
    def counts(self) -> Int[Tensor, " samples"]:
        """The number of sets of each sample, with ∅."""
        return self.owners.bincount(minlength=self.samples)

    def players_in(self, number: int) -> tuple[int, ...]:
        """Return the players of a set."""
        return tuple(self.members[number].nonzero()[:, 0].tolist())

    def players_of_all(self) -> list[tuple[int, ...]]:
        """Return the players of each set."""
        return player_numbers(self.members)

    def sets_of(self, numbers: Int[Tensor, " chosen"]) -> Bool[Tensor, "chosen players"]:
        """Return the sets with these numbers."""
        return self.members[numbers]

    def rows_of(self, sample: int) -> Bool[Tensor, " terms"]:
        """Return which terms belong to a sample."""
        return self.owners == sample

    def only(self, sample: int) -> ListedSets:
        """Return the sets of a single sample."""
        terms = self.rows_of(sample)
        return ListedSets(self.members[terms], torch.zeros_like(self.owners[terms]), 1)

    def numbers_of(self, sample: int) -> Int[Tensor, " sets"]:
        """Return the numbers of the sets of a sample."""
        return self.rows_of(sample).nonzero().flatten()

    def in_all_samples(self, numbers: Int[Tensor, " sets"]) -> ChosenTerms:
        """Return the sets with these numbers, each of its own sample."""
        return ChosenTerms(numbers, self.owners[numbers])

    def pick(self, values: Shaped[Tensor, " terms"], chosen: ChosenTerms) -> Shaped[Tensor, " chosen"]:
        """Return the numbers of the chosen terms."""
        return values[chosen.numbers]

    def for_terms(self, by_sample: Shaped[Tensor, " samples"]) -> Shaped[Tensor, " terms"]:
        """Return the number of each term's sample."""
        return by_sample[self.owners]

    def largest(self, strength: Float[Tensor, " terms"]) -> Float[Tensor, " samples"]:
        """Return the largest strength of each sample, without that of ∅; 0 if there are no other sets."""
        without_empty = strength * (self.orders > 0)
        return strength.new_zeros(self.samples).scatter_reduce(0, self.owners, without_empty, "amax")

    def strongest(self, strength: Float[Tensor, " terms"], count: int) -> Int[Tensor, " strongest"]:
        """Return the numbers of the strongest sets of a single sample, strongest first, without ∅."""
        ranked = strength.masked_fill(self.orders == 0, -1.0)
        return ranked.topk(min(count, int((ranked >= 0).sum()))).indices

    def sums_by_order(self, strength: Float[Tensor, " terms"]) -> Float[Tensor, "samples orders"]:
        """Sum the strength at each order."""
        sums = strength.new_zeros(self.samples, self.players + 1)
        return sums.index_put_((self.owners, self.orders), strength, accumulate=True)

    def sums_by_player(self, shares: Float[Tensor, " terms"]) -> Float[Tensor, "samples players"]:
        """Sum the shares of the sets that contain each player."""
        return sums_by_player(self.members, shares, self.owners, self.samples)

    def sums_by_size_and_player(self, effects: Float[Tensor, " terms"]) -> SumsBySize:
        """Sum the effects of the sets of each size that contain each player."""
        sizes, places = self.orders.unique(return_inverse=True)
        groups = self.owners * len(sizes) + places
        sums = sums_by_player(self.members, effects, groups, self.samples * len(sizes))
        return SumsBySize(sizes, sums.unflatten(0, (self.samples, len(sizes))))

    def values(
        self, effects: Float[Tensor, " terms"], coalitions: Bool[Tensor, "rows players"] | None = None
    ) -> Float[Tensor, "samples rows"]:
        """Return the values of coalitions, by default of all, as sums of Harsanyi effects."""
        if coalitions is None:
            coalitions = enumerate_coalitions(self.players)
        return values_of_coalitions(self.members, effects, self.owners, self.samples, coalitions)


# The sets of terms in either form.
HeldSets: TypeAlias = AllSets | ListedSets
