"""The strengths Σ|U(S)| of many inputs against a reference: one pass over draws and states."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from tqdm.auto import tqdm

from absentia.absence import Fill
from absentia.audit.states import Prepared, Reference, State, part_of
from absentia.coalitions import moebius_
from absentia.game import ValueTable
from absentia.inference import blocks
from absentia.masked_model import MaskedModel

# Tables are made for so many values at a time: 16 MiB in double precision.
_VALUES_AT_A_TIME = 2**21
# An effect of order m adds up rounding errors to 2^(m/2) times those of the values; all effects together, to this
# number to the power of n.
_GROWTH = 1 + 2**0.5


@dataclass(frozen=True)
class Cost:
    """What a measurement took.

    >>> Cost(1, 0.5) + Cost(2, 0.25)
    Cost(evaluations=3, seconds=0.75)
    """

    evaluations: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.evaluations + other.evaluations, self.seconds + other.seconds)


@dataclass(frozen=True, eq=False)
class Strengths:
    """What one state of the samples came to, and what that took."""

    values: Float[Tensor, "samples draws"]
    rounding: Float[Tensor, " samples"]
    cost: Cost


def tables(game: MaskedModel, fill: Fill, numbers: Sequence[int] | None = None) -> Iterator[tuple[slice, ValueTable]]:
    """Evaluate all coalitions of the samples with a fill of theirs, some samples at a time."""
    step = max(1, _VALUES_AT_A_TIME >> len(game.players))
    for few in blocks(game.samples, step):
        part = game.part(torch.arange(few.start, few.stop), Prepared(part_of(fill, few, numbers)))
        yield few, part.table()


def measure_strengths(
    games: Sequence[MaskedModel], states: Sequence[State], reference: Reference, draws: int, bar: Any
) -> list[Strengths]:
    """Measure every state in every draw; a draw has a game of its own where there are several."""
    values = torch.zeros(len(states), games[0].samples, draws, dtype=torch.float64)
    rounding = torch.zeros(values.shape[:2], dtype=torch.float64)
    costs = [Cost()] * len(states)
    for draw in range(draws):
        game, against = games[draw % len(games)], reference(draw)
        for number, state in enumerate(states):
            began = time.perf_counter()
            strength, noise, spent = _strength(game, against(state(draw)))
            values[number, :, draw] = strength
            rounding[number] += noise / draws
            costs[number] += Cost(spent, time.perf_counter() - began)
            bar.update()
    return [Strengths(*parts) for parts in zip(values, rounding, costs, strict=True)]


def _strength(game: MaskedModel, fill: Fill) -> tuple[Tensor, Tensor, int]:
    """Add up |U(S)| over S ≠ ∅ for each sample; also tell what rounding can add to it, and the evaluations."""
    strength = torch.zeros(game.samples, dtype=torch.float64)
    rounding = torch.zeros_like(strength)
    evaluations = 0
    for few, table in tables(game, fill):
        effects = moebius_(table.values)
        strength[few] = effects[:, 1:].abs().sum(1).cpu()
        rounding[few] = table.noise.cpu() * _GROWTH ** len(game.players)
        evaluations += table.evaluations
    return strength, rounding, evaluations


def progress(steps: int) -> Any:
    """Show how far an audit has come, on a terminal, where it takes longer than a moment."""
    return tqdm(total=steps, desc="auditing", unit="table", delay=2, disable=None, leave=False)
