"""The two ways downhill: steps along the gradient, and a search over candidate values, one coordinate at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from absentia.learning.space import Space

# Baseline (owners, entries) → its losses (owners,) on ever more samples; the last are on all of them.
Looks: TypeAlias = Callable[[Tensor], Iterable[Tensor]]
Gradient: TypeAlias = Callable[[Tensor, int], tuple[Tensor, Tensor]]  # baseline, step → losses, gradient

DECAY_MEAN, DECAY_SQUARE = 0.9, 0.99
# Candidates that are so many times worse on a part of the samples, the first and the second, are not tried on more.
# Close ones differ little, and in the same way on all samples.
HOPELESS, HOPELESS_CLOSE = (1.25, 1.1, torch.inf), (1.01, 1.0, torch.inf)
# Candidates whose loss is within this share of the best are close calls, so many of them at most.
CLOSE_CALL, MOST_CALLS = 0.02, 64


@dataclass
class Descent:
    """Adam within the box, on points in [0, 1]: all that is needed to stop and go on again."""

    point: Float[Tensor, "owners parameters"]
    held: Float[Tensor, "owners entries"]
    mean: Float[Tensor, "owners parameters"]
    square: Float[Tensor, "owners parameters"]
    best: Float[Tensor, "owners entries"]  # the best baseline seen at a check
    step: int = 0
    stalled: int = 0  # checks since the last improvement

    @classmethod
    def start(cls, space: Space, baseline: Float[Tensor, "owners entries"]) -> Descent:
        """Begin at a baseline."""
        point = space.point(baseline)
        zero = torch.zeros_like(point)
        return cls(point, baseline.clone(), zero, zero.clone(), baseline.clone())

    def advance(self, space: Space, gradient: Gradient, rate: float) -> None:
        """Take one step."""
        _, by_entry = gradient(self.baseline(space), self.step)
        slope = space.gather(by_entry) * (space.high - space.low)
        self.step += 1
        self.mean = DECAY_MEAN * self.mean + (1 - DECAY_MEAN) * slope
        self.square = DECAY_SQUARE * self.square + (1 - DECAY_SQUARE) * slope**2
        mean = self.mean / (1 - DECAY_MEAN**self.step)
        size = (self.square / (1 - DECAY_SQUARE**self.step)).sqrt()
        self.point = (self.point - rate * mean / (size + 1e-12)).clamp(0, 1)

    def baseline(self, space: Space) -> Float[Tensor, "owners entries"]:
        """Give the baseline reached."""
        return space.place(self.point, self.held)


def cosine(step: int, steps: int, rate: float) -> float:
    """Let the rate fall to nearly nothing over the steps."""
    return rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))


@dataclass(frozen=True)
class Sweep:
    """What a sweep found: the better baseline, its losses, and how much each coordinate matters."""

    baseline: Float[Tensor, "owners entries"]
    losses: Float[Tensor, " owners"]
    leverage: Float[Tensor, " coordinates"]  # spread of the losses over the candidates; parameters, then choices
    improved: bool
    close_calls: Float[Tensor, "calls entries"]  # the nearest candidates of one owner: what they change, else NaN


def sweep(
    space: Space,
    looks: Looks,
    baseline: Float[Tensor, "owners entries"],
    radius: float,
    order: Int[Tensor, " coordinates"],
    *,
    wide: bool,
) -> Sweep:
    """Try, coordinate by coordinate, other values of it, and keep for each owner what lowers its loss.

    The candidates of a parameter are neighbours at ``radius`` (a share of its range) and, in a ``wide`` sweep, the
    ends of its bounds and quantiles of the data; of a choice, all its rows. The first of ``looks`` tell hopeless
    candidates at less cost.
    """
    current = list(looks(baseline))
    before = current[-1]
    leverage = torch.zeros(len(space.low) + len(space.choices)).double()
    limits = HOPELESS if wide else HOPELESS_CLOSE
    calls: list[tuple[float, Tensor]] = []
    for coordinate in order.tolist():
        for candidate, near in _candidates(space, baseline, coordinate, radius, wide):
            found = []
            for seen, known, hopeless in zip(looks(candidate), current, limits, strict=False):
                found.append(seen)
                leverage[coordinate] = torch.maximum(leverage[coordinate], (seen - known).abs().max())
                if bool((seen > hopeless * known).all()):
                    break
            if len(found) == len(current):
                if not near and len(baseline) == 1 and bool(found[-1] <= current[-1] * (1 + CLOSE_CALL)):
                    calls.append((float(found[-1] / current[-1]), _change(space, candidate[0], coordinate)))
                better = found[-1] < current[-1] * (1 - 1e-6)
                baseline = torch.where(better[:, None], candidate, baseline)
                current = [torch.where(better, new, old) for new, old in zip(found, current, strict=True)]
    improved = bool((current[-1] < before * (1 - 1e-3)).any())
    nearest = [change for _, change in sorted(calls, key=lambda call: call[0])[:MOST_CALLS]]
    close_calls = torch.stack(nearest) if nearest else baseline[:0]
    return Sweep(baseline, current[-1], leverage, improved, close_calls)


def _change(space: Space, candidate: Float[Tensor, " entries"], coordinate: int) -> Float[Tensor, " entries"]:
    """Keep the entries of one coordinate, all of them: rows of categories only make sense as a whole."""
    parameters = len(space.low)
    if coordinate < parameters:
        return torch.where(space.parameter == coordinate, candidate, torch.nan)
    entries = space.choices[coordinate - parameters].entries
    return torch.full_like(candidate, torch.nan).index_copy(0, entries, candidate[entries])


def _candidates(
    space: Space, baseline: Tensor, coordinate: int, radius: float, wide: bool
) -> list[tuple[Tensor, bool]]:
    """List the baselines with one coordinate changed, and whether to a value near the present one."""
    if coordinate >= len(space.low):
        choice = space.choices[coordinate - len(space.low)]
        rows = choice.rows if wide else choice.rows[:0]
        return [(baseline.index_copy(1, choice.entries, row.expand(len(baseline), -1)), False) for row in rows]
    low, high = space.low[coordinate], space.high[coordinate]
    if low == high:
        return []
    entries = (space.parameter == coordinate).nonzero().flatten()
    here = baseline[:, entries[0]]
    values = [((here + shift * radius * (high - low)).clamp(low, high), True) for shift in (-1.0, 1.0)]
    if wide:
        fixed = torch.cat([torch.stack([low, high]), space.quantiles[:, coordinate]]).unique()
        values += [(value.expand_as(here), False) for value in fixed]
    return [
        (baseline.index_copy(1, entries, value[:, None].expand(-1, len(entries))), near)
        for value, near in values
        if bool(((value - here).abs() > 1e-9 * (high - low)).any())
    ]
