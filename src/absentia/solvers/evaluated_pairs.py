"""The evaluation of drawn pairs of coalitions, in turns, so that an interruption keeps what is known by then."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.coalitions import Coalitions
from absentia.games import Game
from absentia.runtime.progress import moves_on, progress
from absentia.solvers.grouped_draws import check_full, check_still_same, games_by_draws, values_by_draws
from absentia.solvers.paired_draws import PairedValues, Stratum, draw_strata

# Many pairs are evaluated in this many turns, so that an interruption keeps those that are done.
_TURNS = 16
# Turns have at least this many pairs, so that quick models hardly take longer.
_FEWEST_IN_A_TURN = 64


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


class _Turn(NamedTuple):
    """The places of some pairs among those that are asked for, and their values: the complements come second."""

    places: Int[Tensor, " pairs"]
    values: Float[Tensor, "samples groups twice_pairs"]


def _ask_pairs(game: Game, asked: Coalitions) -> _Answers:
    """Evaluate pairs of coalitions, in several turns if they are many."""
    parts, shares = games_by_draws(game)
    first, *others = _turns_of(len(asked))
    with progress(len(asked), "evaluating coalitions", "pair") as bar:
        with moves_on(bar, len(first) / len(parts)):
            values = values_by_draws(parts, torch.cat([_ends(asked), _with_complements(asked[first])]))
        check_full(game, values)
        done = [_Turn(first, values[:, :, 2:])]
        for places in others:
            bar.update(sum(len(turn.places) for turn in done) - bar.n)
            try:
                with moves_on(bar, len(places) / len(parts)):
                    of_pairs = values_by_draws(parts, _with_complements(asked[places]))
            except KeyboardInterrupt:
                break
            done.append(_Turn(places, of_pairs))
    check_still_same(game)
    return _in_order(done, shares, values[:, :, :2], len(asked))


def _turns_of(pairs: int) -> list[Int[Tensor, " places"]]:
    """Return the places of the pairs of each turn, which are spread over all sizes."""
    count = min(_TURNS, max(1, pairs // _FEWEST_IN_A_TURN))
    return [torch.arange(first, pairs, count) for first in range(count)]


def _with_complements(
    coalitions: Bool[Tensor, "pairs players"],
) -> Bool[Tensor, "twice_pairs players"]:
    """Return coalitions, and then their complements."""
    return torch.cat([coalitions, ~coalitions])


def _in_order(
    done: list[_Turn], shares: Float[Tensor, " groups"], ends: Float[Tensor, "samples groups 2"], asked: int
) -> _Answers:
    """Put the values of the turns into the order in which the pairs were asked for."""
    known = torch.cat([turn.places for turn in done])
    halves = [turn.values.chunk(2, dim=2) for turn in done]
    drawn = torch.cat([of_drawn for of_drawn, _ in halves], dim=2)
    complements = torch.cat([of_complements for _, of_complements in halves], dim=2)
    order = known.argsort()
    is_known = torch.zeros(asked, dtype=torch.bool)
    is_known[known] = True
    return _Answers(shares, ends, drawn[:, :, order], complements[:, :, order], is_known)


def _ends(asked: Coalitions) -> Bool[Tensor, "two players"]:
    """Return the coalitions of nobody and of all players."""
    players = asked.shape[1]
    return torch.stack([torch.zeros(players), torch.ones(players)]).bool()


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
