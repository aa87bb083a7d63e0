"""The state of a gradient descent with Adam, which is saved and resumed as a whole."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.optim.adam import adam

from absentia.data import count_blocks
from absentia.learning.space import Baselines, Points, Space

# Adam's settings: the decay rates of the means of slopes and of their squares, and the smallest divisor.
_MEAN_DECAY = 0.9
_SQUARE_DECAY = 0.99
_EPSILON = 1e-12

# The size of the last step, as a share of the first.
_LAST_RATE = 0.02

# The mean over the last steps covers one in this many of all steps.
_STEPS_PER_AVERAGED = 4


@dataclass
class Descent:
    """A point within [0, 1], the means of its slopes and of their squares, and the number of steps so far."""

    point: Points
    mean: Points
    square: Points
    step: int

    @classmethod
    def start_at(cls, point: Points) -> Descent:
        """Return a descent that has taken no step."""
        return cls(point, torch.zeros_like(point), torch.zeros_like(point), 0)

    def advance(self, slope: Points, size: float) -> None:
        """Take a step of Adam, and stay within [0, 1]."""
        # The function behind torch.optim.Adam: the class imports torch's compiler, which takes two seconds.
        adam(
            [self.point],
            [slope],
            [self.mean],
            [self.square],
            [],
            [torch.tensor(float(self.step))],
            foreach=False,
            amsgrad=False,
            beta1=_MEAN_DECAY,
            beta2=_SQUARE_DECAY,
            lr=size,
            weight_decay=0.0,
            eps=_EPSILON,
            maximize=False,
        )
        self.point.clamp_(0, 1)
        self.step += 1


@dataclass
class AveragedDescent:
    """A descent whose last points are averaged, without comparisons along the way."""

    stage: str
    descent: Descent
    recent: deque[Tensor] = field(default_factory=deque)  # the last points

    def note_point(self, planned: int) -> None:
        """Remember the current point, but no more points than will be averaged at the end."""
        self.recent.append(self.descent.point.clone())
        while len(self.recent) > count_blocks(planned, _STEPS_PER_AVERAGED):
            self.recent.popleft()

    def baseline(self, space: Space, start: Baselines) -> Baselines:
        """Return the mean over the last quarter of the steps, or the start if there were none."""
        if not self.recent:
            return start
        count = max(1, self.descent.step // _STEPS_PER_AVERAGED)
        last = list(self.recent)[-count:]
        return space.place(torch.stack(last).mean(0), start)


@dataclass
class ComparedDescent:
    """A descent whose points are compared every few steps, and whose result is the best one."""

    stage: str
    descent: Descent
    best: Baselines
    stalled: int = 0  # comparisons since the last gain


def step_size(rate: float, step: int, steps: int) -> float:
    """Return the size of a step, which falls along a cosine."""
    falling = 0.5 * (1 + math.cos(math.pi * step / steps))
    return rate * (_LAST_RATE + (1 - _LAST_RATE) * falling)


def stream_of(stage: str) -> int:
    """Return the stream of random numbers of a stage, which is always the same for a given name."""
    digest = hashlib.blake2b(stage.encode(), digest_size=4).digest()
    return 1 + int.from_bytes(digest, "big")
