"""The inputs that an audit compares, and the fills that put one input's players in another's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from absentia.absence import Absence, Fill, StandIns
from absentia.audit.white_noise import DataRange, stream, white_noise
from absentia.inference import blocks

# A state of the samples, such as masked by a method: the number of a draw → inputs (samples, …).
State: TypeAlias = Callable[[int], Tensor]
# What the transform masks with: the number of a draw → the inputs of players that are present → a fill.
Reference: TypeAlias = Callable[[int], Callable[[Tensor], Fill]]

# Masked samples are made for so many entries at a time.
_ENTRIES_AT_A_TIME = 2**24


@dataclass(frozen=True, eq=False)
class Prepared:
    """An absence that has been bound already: it hands over its fill, whose inputs may differ from the samples.

    So a game can be played between any two inputs, with the readout of the samples that they were made from.
    """

    fill: Fill

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Hand over the fill."""
        return self.fill


@dataclass(frozen=True, eq=False)
class PartOfFill:
    """Some consecutive samples of a fill, and some of its draws."""

    fill: Fill
    first: int
    numbers: tuple[int, ...]

    @property
    def draws(self) -> int:
        """How many draws are kept."""
        return len(self.numbers)

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Mask these samples, and keep the chosen draws."""
        shifted = slice(self.first + samples.start, self.first + samples.stop)
        return self.fill(shifted, presence)[:, :, list(self.numbers)]


def part_of(fill: Fill, samples: slice, numbers: Sequence[int] | None = None) -> Fill:
    """Take some consecutive samples of a fill, and some of its draws (all for None)."""
    chosen = tuple(range(fill.draws)) if numbers is None else tuple(numbers)
    if not isinstance(fill, StandIns):
        return PartOfFill(fill, samples.start, chosen)
    values = fill.values if len(fill.values) == 1 else fill.values[samples]
    # All draws in their order are a view; only a choice is copied.
    return StandIns(fill.x[samples], values if chosen == tuple(range(fill.draws)) else values[:, list(chosen)])


def pick_draws(available: int, wanted: int, seed: int) -> list[int]:
    """Choose draws of an absence: all where there are no more than wanted, else so many at random.

    >>> pick_draws(2, 5, seed=0)
    [0, 1]
    """
    if available <= wanted:
        return list(range(available))
    picked: list[int] = torch.randperm(available, generator=stream(seed, "draws"))[:wanted].sort().values.tolist()
    return picked


def mask_samples(
    fill: Fill, samples: int, presence: Bool[Tensor, " *entries"], numbers: Sequence[int]
) -> Shaped[Tensor, "samples draws *entries"]:
    """Mask every sample in one and the same way: the entries that ``presence`` leaves out get stand-ins."""
    step = max(1, _ENTRIES_AT_A_TIME // (presence.numel() * max(1, fill.draws)))
    parts = [
        part_of(fill, few, numbers)(slice(0, few.stop - few.start), presence[None, None])[:, 0]
        for few in blocks(samples, step)
    ]
    return torch.cat(parts)


def noise_state(
    x: Shaped[Tensor, "samples *entries"], presence: Bool[Tensor, " *entries"], within: DataRange, seed: int
) -> State:
    """Put white noise in the place of the entries that ``presence`` leaves out, anew for every draw."""
    return lambda draw: torch.where(presence, x, white_noise(within, x, stream(seed, "replacement", draw)))


def noise_reference(x: Shaped[Tensor, "samples *entries"], within: DataRange, seed: int) -> Reference:
    """Mask with white noise that each sample has of its own, anew for every draw."""

    def of_draw(draw: int) -> Callable[[Tensor], Fill]:
        noise = white_noise(within, x, stream(seed, "reference", draw))
        return lambda present: StandIns(present, noise[:, None])

    return of_draw


def absence_reference(absence: Absence, x: Shaped[Tensor, "samples *entries"], draws: int, seed: int) -> Reference:
    """Mask with an absence, one of its draws after the other.

    Stand-ins that do not depend on the coalition are those of the original sample, whatever inputs are compared: the
    sample, its masked states and its noise are all measured from the same point. Others answer to what is present,
    and so are bound to the inputs that are compared.
    """
    fill = absence.bind(x)
    numbers = pick_draws(fill.draws, draws, seed)

    def of_draw(draw: int) -> Callable[[Tensor], Fill]:
        number = numbers[draw % len(numbers)]
        if isinstance(fill, StandIns):
            stand_ins = fill.values[:, number, None]
            return lambda present: StandIns(present, stand_ins)
        return lambda present: part_of(absence.bind(present), slice(0, len(present)), [number])

    return of_draw
