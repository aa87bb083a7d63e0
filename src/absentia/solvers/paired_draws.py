"""Drawn coalitions of all sizes, each with its complement, and their values.

All sizes are drawn equally often, which are the leverage scores of the regression that Shapley values solve
[musco2025leverage]. Coalitions are drawn without replacement and stratified by size, and sizes that the budget can
cover are enumerated. Draws can be extended: coalitions that are there already are not drawn again.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from absentia.coalitions import Coalitions, draw_coalitions
from absentia.evaluation import check_finite
from absentia.games import Game, MaskedModel, ask, draws_of
from absentia.runtime.progress import moves_on, progress

# Estimates need at least this many coalitions for each player.
MIN_COALITIONS_PER_PLAYER = 4
# Values of a random absence are kept for about this many groups of its draws, from which the error of draws follows.
MOST_GROUPS = 10
# Long work is done in this many turns, so that an interruption keeps those that are done.
_TURNS = 16
# Turns have at least this many pairs.
_FEWEST_IN_A_TURN = 8
# Work is long if it takes more than this, in seconds.
_LONG = 2.0
# Numbers that differ by less than this are the same up to rounding errors.
_ROUNDING = 1e-9
# Sums over values that are below this share of the largest one are rounding errors.
_ROUNDING_OF_SUMS = 1e-12


class Stratum(NamedTuple):
    """Drawn coalitions of one size, which with their complements represent all such pairs."""

    drawn: Coalitions
    total: int

    @property
    def is_enumerated(self) -> bool:
        """Whether all pairs are drawn."""
        return len(self.drawn) == self.total

    @property
    def size(self) -> int:
        """The number of players in each coalition."""
        return int(self.drawn[0].sum())

    @property
    def kernel(self) -> float:
        """The weight of all pairs together in the regression: their number / (C(n, s) s (n − s))."""
        players = self.drawn.shape[1]
        return self.total / (math.comb(players, self.size) * self.size * (players - self.size))


def draw_strata(
    players: int, pairs: int, generator: torch.Generator, earlier: tuple[Stratum, ...] = ()
) -> tuple[Stratum, ...]:
    """Distribute pairs over the sizes 1 … n/2, and draw them without replacement, in addition to earlier ones.

    ``pairs`` counts the earlier ones.
    """
    counts = _pairs_by_size(players, pairs, generator)
    earlier_draws = {stratum.size: stratum.drawn for stratum in earlier}
    strata = []
    for size, (count, total) in enumerate(counts, start=1):
        drawn = earlier_draws.get(size, torch.zeros(0, players, dtype=torch.bool))
        if max(count, len(drawn)):
            strata.append(Stratum(_draw_more(drawn, size, count, total, generator), total))
    return tuple(strata)


def _pairs_by_size(players: int, pairs: int, generator: torch.Generator) -> list[tuple[int, int]]:
    """Return how many pairs to draw of each size 1 … n/2, and how many there are."""
    totals = []
    leverages = []
    for size in range(1, players // 2 + 1):
        in_the_middle = 2 * size == players
        # Sizes s and n − s share a stratum, so the middle size of an even n has half the leverage of the others.
        totals.append(math.comb(players, size) // (2 if in_the_middle else 1))
        leverages.append(0.5 if in_the_middle else 1.0)
    most = torch.tensor([min(total, pairs) for total in totals]).double()
    shares = share_out(min(pairs, sum(totals)), torch.tensor(leverages).double(), most)
    # Systematic rounding: whole numbers that add up, each within one of its share.
    reached = shares.cumsum(0) + torch.rand(1, generator=generator)
    counts = torch.cat([torch.zeros(1), (reached + _ROUNDING).floor()]).diff().long().tolist()
    return list(zip(counts, totals, strict=True))


def share_out(count: int, weights: Float[Tensor, " parts"], most: Float[Tensor, " parts"]) -> Float[Tensor, " parts"]:
    """Distribute a number in proportion to weights; what exceeds a part's maximum goes to the others."""
    shares = torch.minimum(weights * count / weights.sum(), most)
    for _ in range(50):
        free = shares < most
        lacking = count - float(shares.sum())
        if lacking < _ROUNDING or not bool(free.any()):
            break
        shares[free] = torch.minimum(shares[free] * (1 + lacking / float(shares[free].sum())), most[free])
    return shares


def _draw_more(
    drawn: Bool[Tensor, "known players"], size: int, count: int, total: int, generator: torch.Generator
) -> Coalitions:
    """Draw coalitions of one size until there are ``count``; for the middle size, only those that contain player 0.

    Coalitions that are drawn already come first.
    """
    players = drawn.shape[1]
    if len(drawn) >= count:
        return drawn
    if total <= 4 * count:
        members = torch.tensor(list(itertools.islice(itertools.combinations(range(players), size), total)))
        every = torch.zeros(total, players, dtype=torch.bool).scatter(1, members, True)
        shuffled = every[torch.randperm(total, generator=generator)]
        return _distinct(torch.cat([drawn, shuffled]))[:count]
    while len(drawn) < count:
        more = draw_coalitions(players, torch.full((count - len(drawn) + 1,), size), generator)
        if 2 * size == players:
            more = more ^ ~more[:, :1]
        drawn = _distinct(torch.cat([drawn, more]))
    return drawn[:count]


def _distinct(coalitions: Coalitions) -> Bool[Tensor, "distinct players"]:
    """Drop repeated rows. The others keep their order, because sorting them would bias the cut."""
    _, first = np.unique(np.packbits(coalitions.numpy(), axis=1), axis=0, return_index=True)
    return coalitions[np.sort(first)]


@dataclass(frozen=True, eq=False)
class PairedValues:
    """The values of ∅, of all players together, of drawn coalitions, and of their complements.

    With a random absence, the second axis holds values by groups of its draws.
    """

    strata: tuple[Stratum, ...]
    shares: Float[Tensor, " groups"]  # of the draws in each group; they add up to 1
    ends_by_group: Float[Tensor, "samples groups 2"]
    drawn_by_group: Float[Tensor, "samples groups pairs"]
    complements_by_group: Float[Tensor, "samples groups pairs"]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.ends_by_group)

    @property
    def pairs(self) -> int:
        """The number of drawn pairs."""
        return self.drawn_by_group.shape[2]

    @property
    def coalitions_per_sample(self) -> int:
        """How many coalitions were evaluated for each sample."""
        return 2 + 2 * self.pairs

    @property
    def undrawn_share(self) -> float:
        """The share of all pairs that were not drawn."""
        all_pairs = 2 ** (self.coalitions.shape[1] - 1) - 1  # without ∅ and all players together
        return 1 - self.pairs / all_pairs

    @property
    def is_complete(self) -> bool:
        """Whether all coalitions are there."""
        return self.undrawn_share == 0

    @cached_property
    def coalitions(self) -> Coalitions:
        """One coalition of each pair."""
        return torch.cat([stratum.drawn for stratum in self.strata])

    @property
    def empty(self) -> Float[Tensor, " samples"]:
        """The values of ∅."""
        return self._mean(self.ends_by_group)[:, 0]

    @property
    def full(self) -> Float[Tensor, " samples"]:
        """The values of all players together."""
        return self._mean(self.ends_by_group)[:, 1]

    @property
    def drawn(self) -> Float[Tensor, "samples pairs"]:
        """The values of the drawn coalitions."""
        return self._mean(self.drawn_by_group)

    @property
    def complements(self) -> Float[Tensor, "samples pairs"]:
        """The values of their complements."""
        return self._mean(self.complements_by_group)

    @property
    def has_groups(self) -> bool:
        """Whether values are known for several groups of draws."""
        return len(self.shares) > 1

    @property
    def rounding(self) -> Float[Tensor, " samples"]:
        """The size of sums over the values of each sample that are no more than rounding errors."""
        largest = torch.stack([self.ends_by_group.abs().amax((1, 2)), self.drawn.abs().amax(1)]).amax(0)
        return _ROUNDING_OF_SUMS * largest.maximum(self.complements.abs().amax(1))

    def of_samples(self, samples: list[int]) -> PairedValues:
        """Return the values of some samples."""
        return PairedValues(
            self.strata,
            self.shares,
            self.ends_by_group[samples],
            self.drawn_by_group[samples],
            self.complements_by_group[samples],
        )

    def of_group(self, group: int) -> PairedValues:
        """Return the values of one group of draws."""
        own = slice(group, group + 1)
        return PairedValues(
            self.strata,
            torch.ones(1, dtype=torch.float64),
            self.ends_by_group[:, own],
            self.drawn_by_group[:, own],
            self.complements_by_group[:, own],
        )

    def _mean(self, by_group: Float[Tensor, "samples groups values"]) -> Float[Tensor, "samples values"]:
        """Average over all draws."""
        if not self.has_groups:
            return by_group[:, 0]
        return torch.einsum("sgv,g->sv", by_group, self.shares)


def error_of_draws(
    by_group: Float[Tensor, "groups *numbers"], shares: Float[Tensor, " groups"]
) -> Float[Tensor, " *numbers"]:
    """Return the standard error of a mean over groups of independent draws, from how groups differ."""
    weights = shares.view(-1, *[1] * (by_group.ndim - 1)).to(by_group)
    mean = (weights * by_group).sum(0)
    count = len(by_group)
    squares = (weights.square() * (by_group - mean).square()).sum(0)
    return (squares * count / max(1, count - 1)).sqrt()


class InterruptedDraws(KeyboardInterrupt):
    """Raised if Ctrl-C ends long evaluations, with the values that are known by then."""

    def __init__(self, values: PairedValues) -> None:
        super().__init__()
        self.values = values


def evaluate_pairs(
    game: Game, pairs: int, generator: torch.Generator, earlier: PairedValues | None = None
) -> PairedValues:
    """Draw pairs of coalitions and evaluate them, in addition to earlier ones, which ``pairs`` counts."""
    players = len(game.names)
    earlier_strata = earlier.strata if earlier is not None else ()
    strata = draw_strata(players, pairs, generator, earlier_strata)
    asked = torch.cat([stratum.drawn[len(_drawn_of(earlier_strata, stratum.size)) :] for stratum in strata])
    answers = _ask_pairs(game, asked)
    new = PairedValues(
        strata if answers.is_complete else _known_strata(strata, earlier_strata, answers.is_known),
        answers.shares,
        answers.ends,
        answers.drawn,
        answers.complements,
    )
    values = new if earlier is None else _merged(earlier, new)
    if not answers.is_complete:
        raise InterruptedDraws(values)
    return values


class NotedPairs(NamedTuple):
    """The values of drawn pairs, and a note if an interruption left fewer than were to be drawn."""

    values: PairedValues
    notes: tuple[str, ...] = ()


def evaluate_pairs_or_keep(game: Game, pairs: int, generator: torch.Generator, least: int) -> NotedPairs:
    """Draw pairs and evaluate them; after an interruption, return those that are known if they are enough."""
    try:
        return NotedPairs(evaluate_pairs(game, pairs, generator))
    except InterruptedDraws as interruption:
        if interruption.values.coalitions_per_sample < least:
            raise
        return NotedPairs(interruption.values, (note_on_interruption(interruption.values.coalitions_per_sample),))


def note_on_interruption(coalitions: int) -> str:
    """Say from how many coalitions results follow after an interruption."""
    return f"Interrupted: values are estimated from the {coalitions:,} coalitions that were evaluated by then."


class _Answers(NamedTuple):
    """The values of ∅, of all players together, and of those of the asked pairs that are known, in their order."""

    shares: Float[Tensor, " groups"]
    ends: Float[Tensor, "samples groups 2"]
    drawn: Float[Tensor, "samples groups known"]
    complements: Float[Tensor, "samples groups known"]
    is_known: Bool[Tensor, " asked"]

    @property
    def is_complete(self) -> bool:
        """Whether the values of all pairs are known."""
        return bool(self.is_known.all())


def _ask_pairs(game: Game, asked: Coalitions) -> _Answers:
    """Evaluate pairs of coalitions, in several turns if that takes long."""
    parts, shares = games_by_draws(game)
    turns = _turns_of(game, len(asked))
    if len(turns) == 1:
        values = ask_by_draws(game, parts, torch.cat([_ends(asked), asked, ~asked]))
        by_turn = [values[:, :, 2:]]
    else:
        with progress(len(asked), "evaluating coalitions", "pair") as bar:
            by_turn = list(_ask_in_turns(game, parts, asked, turns, bar))
        values = by_turn[0]
        by_turn[0] = values[:, :, 2:]
    known = torch.cat(turns[: len(by_turn)])
    in_order = known.argsort()
    halves = [values_of_turn.chunk(2, dim=2) for values_of_turn in by_turn]
    drawn = torch.cat([of_drawn for of_drawn, _ in halves], dim=2)
    complements = torch.cat([of_complements for _, of_complements in halves], dim=2)
    is_known = torch.zeros(len(asked), dtype=torch.bool)
    is_known[known] = True
    return _Answers(shares, values[:, :, :2], drawn[:, :, in_order], complements[:, :, in_order], is_known)


def _ends(asked: Coalitions) -> Bool[Tensor, "two players"]:
    """Return the coalitions of nobody and of all players."""
    players = asked.shape[1]
    return torch.stack([torch.zeros(players), torch.ones(players)]).bool()


def _turns_of(game: Game, pairs: int) -> list[Tensor]:
    """Return the places of the pairs of each turn, which are spread over all sizes; one turn for short work."""
    is_short = False
    if isinstance(game, MaskedModel):
        task = game.task
        seconds_per_row = min(task.probe.seconds_per_row, task.limit.seconds_per_row)
        is_short = 2 * pairs * game.samples * game.draws * seconds_per_row < _LONG
    count = 1 if is_short else min(_TURNS, max(1, pairs // _FEWEST_IN_A_TURN))
    return [torch.arange(first, pairs, count) for first in range(count)]


def _ask_in_turns(
    game: Game, parts: list[Game], asked: Coalitions, turns: list[Tensor], bar: Any
) -> Iterator[Float[Tensor, "samples groups values"]]:
    """Return the values of each turn, those of ∅ and all players first; an interruption keeps those that are known.

    If the first turn is quick, all others are joined.
    """
    began = time.perf_counter()
    with moves_on(bar, len(turns[0]) / len(parts)):
        first = asked[turns[0]]
        yield ask_by_draws(game, parts, torch.cat([_ends(asked), first, ~first]))
    if time.perf_counter() - began < _LONG / len(turns):
        turns[1:] = [torch.cat(turns[1:])]
    done = len(turns[0])
    for turn in turns[1:]:
        bar.update(done - bar.n)
        try:
            with moves_on(bar, len(turn) / len(parts)):
                values = ask_by_draws(game, parts, torch.cat([asked[turn], ~asked[turn]]), has_ends=False)
        except KeyboardInterrupt:
            return
        yield values
        done += len(turn)
    bar.update(done - bar.n)


def _known_strata(
    strata: tuple[Stratum, ...], earlier: tuple[Stratum, ...], is_known: Bool[Tensor, " asked"]
) -> tuple[Stratum, ...]:
    """Return the strata without those new coalitions whose values are not known."""
    known = []
    first = 0
    for stratum in strata:
        old = len(_drawn_of(earlier, stratum.size))
        added = stratum.drawn[old:]
        kept = torch.cat([stratum.drawn[:old], added[is_known[first : first + len(added)]]])
        first += len(added)
        if len(kept):
            known.append(Stratum(kept, stratum.total))
    return tuple(known)


def _drawn_of(strata: tuple[Stratum, ...], size: int) -> Coalitions:
    """Return the coalitions of one size."""
    for stratum in strata:
        if stratum.size == size:
            return stratum.drawn
    return torch.zeros(0, 0, dtype=torch.bool)


def _merged(earlier: PairedValues, new: PairedValues) -> PairedValues:
    """Put values into the order of the strata, in which earlier coalitions of a size come before later ones."""
    places = []
    next_new = earlier.pairs
    next_earlier = 0
    for stratum in new.strata:
        old = len(_drawn_of(earlier.strata, stratum.size))
        added = len(stratum.drawn) - old
        places.append(torch.arange(next_earlier, next_earlier + old))
        places.append(torch.arange(next_new, next_new + added))
        next_earlier += old
        next_new += added
    order = torch.cat(places)
    return PairedValues(
        new.strata,
        new.shares,
        new.ends_by_group,
        torch.cat([earlier.drawn_by_group, new.drawn_by_group], dim=2)[:, :, order],
        torch.cat([earlier.complements_by_group, new.complements_by_group], dim=2)[:, :, order],
    )


def games_by_draws(game: Game) -> tuple[list[Game], Float[Tensor, " groups"]]:
    """Return the game of each group of draws of a random absence, and each group's share; otherwise the game."""
    count = games_asked(game)
    if count == 1 or not isinstance(game, MaskedModel):
        return [game], torch.ones(1, dtype=torch.float64)
    draws = draws_of(game)
    groups = [list(range(first, draws, count)) for first in range(count)]
    shares = torch.tensor([len(group) / draws for group in groups], dtype=torch.float64)
    return [game.of_draws(group) for group in groups], shares


def games_asked(game: Game) -> int:
    """Return how many games `games_by_draws` returns: how often coalitions are evaluated one after the other."""
    draws = draws_of(game)
    if draws == 1 or not isinstance(game, MaskedModel) or not game.can_select_draws:
        return 1
    return min(draws, MOST_GROUPS)


def ask_by_draws(
    game: Game, parts: list[Game], asked: Coalitions, *, has_ends: bool = True
) -> Float[Tensor, "samples groups asked"]:
    """Return the values of coalitions by groups of draws; raise an error for values that are not finite.

    ``has_ends`` says that the second coalition is that of all players, whose value is known.
    """
    by_group = []
    for part in parts:
        values = ask(part, asked).double().cpu()
        check_finite(values, torch.arange(len(values)), asked.expand(len(values), -1, -1), "values of the game")
        by_group.append(values)
    if isinstance(game, MaskedModel):
        if has_ends and len(parts) == 1:
            game.evaluator.check_full(by_group[0][-1, 1], by_group[0])
        game.evaluator.check_still_same()
    return torch.stack(by_group, dim=1)
