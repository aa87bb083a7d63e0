"""What pictures need of an explanation and of a learned baseline, so that neither has to be imported here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.attributions import Attribution
from absentia.errors import wrong
from absentia.interactions import Interactions
from absentia.players import Players
from absentia.plots.look import check_sample


@runtime_checkable
class Recorded(Protocol):
    """How an explanation was made."""

    @property
    def readout(self) -> str:
        """What the value is."""

    @property
    def absence(self) -> str:
        """What stood in for absent players."""

    @property
    def exact(self) -> bool:
        """Whether all coalitions were evaluated."""

    @property
    def evaluations(self) -> int:
        """How many rows the model evaluated."""

    @property
    def seconds(self) -> float:
        """How long it took."""

    @property
    def seed(self) -> int:
        """What draws came from."""

    @property
    def notes(self) -> Sequence[str]:
        """What to know about it."""


@runtime_checkable
class Explained(Protocol):
    """An explanation: samples, their players, attributions and interactions."""

    @property
    def x(self) -> Shaped[Tensor, "samples *entries"]:
        """The explained samples."""

    @property
    def y(self) -> Int[Tensor, " samples"] | None:
        """Their classes."""

    @property
    def players(self) -> Players:
        """The players among their entries."""

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""

    @property
    def outputs(self) -> Float[Tensor, " samples"]:
        """The values with all players present."""

    @property
    def base_values(self) -> Float[Tensor, " samples"]:
        """The values with all players absent."""

    @property
    def shapley(self) -> Attribution:
        """What shares the difference out."""

    @property
    def order_shapley(self) -> Float[Tensor, "samples orders players"] | None:
        """The same for each order."""

    @property
    def interactions(self) -> Interactions | None:
        """All interactions."""

    @property
    def stand_ins(self) -> Shaped[Tensor, "samples *entries"] | None:
        """What is put in when all players are absent."""

    @property
    def record(self) -> Recorded:
        """How it was made."""


def check_explanation(explanation: Explained, sample: int) -> None:
    """Refuse what is not an explanation, or has no such sample."""
    if not isinstance(explanation, Explained):
        raise wrong("explanation", "be an Explanation, which explain makes", type(explanation).__name__)
    check_sample(sample, len(explanation.outputs))


@runtime_checkable
class LearningRecorded(Protocol):
    """How a baseline was learned."""

    @property
    def loss(self) -> str:
        """The kind of loss."""

    @property
    def undetermined(self) -> Sequence[str]:
        """The players that nothing determines."""


@runtime_checkable
class Learned(Protocol):
    """A learned baseline: its values beside the data's quantiles, and the course of learning."""

    @property
    def values(self) -> Shaped[Tensor, " *shape"]:
        """One value for each entry, with a first axis where each class or sample has its own."""

    @property
    def share(self) -> str:
        """Whether it is one for "all", for each "class" or for each "sample"."""

    @property
    def classes(self) -> Int[Tensor, " owners"] | None:
        """The classes that have one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""

    @property
    def history(self) -> Float[Tensor, "checks 2"]:
        """Evaluations and the least loss so far."""

    @property
    def quantiles(self) -> Float[Tensor, "quantiles *entries"] | None:
        """The data's quantiles, entry by entry: least, 5 %, quarters, 95 %, largest."""

    @property
    def labels(self) -> Int[Tensor, " *entries"] | None:
        """The player of each entry."""

    @property
    def record(self) -> LearningRecorded:
        """How it was learned."""
