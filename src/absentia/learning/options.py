"""The options of learning, and the schedules that provide their defaults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from absentia.arguments import checked
from absentia.data import Array
from absentia.errors import wrong
from absentia.learning.pace import LearningStep
from absentia.storage import check_folder

AnyLoss: TypeAlias = Literal["faithful", "interactions", "shapley", "marginal"]

# The minimum number of rows of a comparison.
FEWEST_ROWS = 2**8

# The minimum number of rows per step of the default loss.
_FEWEST_ROWS_PER_STEP = 16


@dataclass(frozen=True)
class Schedule:
    """The defaults for learning a baseline."""

    samples: int  # to learn from
    steps: int  # along the gradient
    rate: float  # the first step size, as a share of the bounds


FAITHFUL = Schedule(samples=1024, steps=120, rate=0.03)
PAPER = Schedule(samples=256, steps=60, rate=0.1)


def schedule_of(loss: str) -> Schedule:
    """Return the schedule of a loss."""
    if loss == "faithful":
        return FAITHFUL
    return PAPER


@checked
@dataclass(frozen=True, eq=False)
class LearningOptions:
    """Advanced options of `learn_baseline`.

    Parameters
    ----------
    evidence, noise : float, default 4.0 and 0.6
        The weights of honest predictions and of white noise in the loss "faithful". Concision, the strength of the
        interactions, has a weight of 1.
    polish : bool, default False
        Whether to try other values of one coordinate at a time after the gradient steps, which takes far more
        evaluations. Categories and models without a gradient are always searched in this way.
    steps, rate : int and float, optional
        The number of gradient steps, and the first step size as a share of the bounds. The default is 120 and 0.03,
        or 60 and 0.1 for the paper's losses.
    rows_per_step : int, optional
        The number of rows that the model evaluates in a step of the loss "faithful". The default is between 512 and
        16,384, depending on the size of the model.
    samples : int or "all", optional
        The number of samples to learn from, drawn at random. The default is 1,024, or 256 for the paper's losses.
    callback : callable, optional
        Called after each step with an object that has ``step``, ``steps``, ``loss``, ``seconds`` and
        ``seconds_left``. It may return True to end learning with the values so far.
    checkpoint : str or Path, optional
        A file to save progress to. If it exists, learning resumes from it. Baselines for each class or sample are
        learned in parts, and each part has its own file: ``path``, ``path.1`` and so on.
    tie, held : array, optional
        Labels with the shape of one sample. Entries with the same ``tie`` share a value. Entries marked by ``held``
        keep their start value.
    gradient : bool, optional
        Whether the model has a gradient. The default is to detect it.
    orders : float or int, optional
        The highest order λ of the paper's losses, as a share of the players or as a number. Orders from 0 to λ are
        penalised. The default is half of the players for "shapley" and "marginal", as in the paper, and all of them
        for "interactions".
    ties : bool, optional
        Whether two more terms, with a weight of 1 %, decide between values that the penalty up to order λ cannot
        distinguish: marginal benefits of all orders, and the detours through the coalitions without one player. The
        default is True for "interactions", and False for "shapley" and "marginal", which are then the paper's.
    restart : bool, optional
        Whether to search again from the mean, the median or the middle of the bounds, whichever has the lowest loss,
        if its loss is lower than where the starts ended. The default is as for ``ties``.
    cube : int, optional
        Measure "interactions" within drawn groups of this many players. This suits outputs that are slightly
        nonlinear everywhere. By default all interactions of a sample are measured, or those within groups of 6 if
        there are many players.
    rows_per_comparison : int, default 262,144
        The number of rows that the model evaluates to compare two baselines with one of the paper's losses. A
        gradient step takes a quarter of them.
    profiles : bool, default True
        Whether to measure along each player's values how well the loss determines them. It takes about 12 % of the
        evaluations of the search.

    Examples
    --------
    >>> LearningOptions(steps=10, noise=0.0).evidence
    4.0
    """

    evidence: float = 4.0
    noise: float = 0.6
    polish: bool = False
    steps: int | None = None
    rate: float | None = None
    rows_per_step: int | None = None
    samples: int | Literal["all"] | None = None
    callback: Callable[[LearningStep], Any] | None = None
    checkpoint: str | Path | None = None
    tie: Array | None = None
    held: Array | None = None
    gradient: bool | None = None
    orders: float | None = None
    ties: bool | None = None
    restart: bool | None = None
    cube: int | None = None
    rows_per_comparison: int = 2**18
    profiles: bool = True

    def decides_ties(self, loss: str) -> bool:
        """Return whether ties are decided in a search by one of the paper's losses."""
        if self.ties is not None:
            return self.ties
        return loss == "interactions"

    def restarts(self, loss: str) -> bool:
        """Return whether a search by one of the paper's losses may start again from a usual baseline."""
        if self.restart is not None:
            return self.restart
        return loss == "interactions"

    def __post_init__(self) -> None:
        if self.samples != "all":
            _check_least("samples", self.samples, 1)
        _check_least("rows_per_comparison", self.rows_per_comparison, FEWEST_ROWS)
        _check_least("rows_per_step", self.rows_per_step, _FEWEST_ROWS_PER_STEP)
        _check_least("steps", self.steps, 0)
        _check_least("evidence", self.evidence, 0)
        _check_least("noise", self.noise, 0)
        if self.checkpoint is not None:
            check_folder("checkpoint", self.checkpoint)


def _check_least(name: str, number: float | None, least: int) -> None:
    """Raise an error for a number that is too small or not finite; None passes."""
    if number is not None and not least <= number < math.inf:
        raise wrong(name, f"be at least {least}, and finite", number)
    if number is not None and number >= 2**63:
        raise wrong(name, "lie within ±2^63", number)
