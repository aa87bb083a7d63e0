"""What plots read of an explanation and of a learned baseline, as protocols: both are defined below this package."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.attributions import Attribution
from absentia.errors import wrong
from absentia.interactions import Interactions
from absentia.players import Players
from absentia.plots.look import check_count, label
from absentia.results import written


@runtime_checkable
class Explained(Protocol):
    """An explanation: samples, their players, attributions and interactions."""

    @property
    def x(self) -> Shaped[Tensor, "samples *entries"]:
        """Samples."""

    @property
    def y(self) -> Int[Tensor, " samples"] | None:
        """Their classes."""

    @property
    def players(self) -> Players:
        """Players."""

    @property
    def outputs(self) -> Float[Tensor, " samples"]:
        """Values with all players present."""

    @property
    def base_values(self) -> Float[Tensor, " samples"]:
        """Values with all players absent."""

    @property
    def shapley(self) -> Attribution:
        """Shapley values."""

    @property
    def order_shapley(self) -> Float[Tensor, "samples orders players"] | None:
        """Shapley values of each order."""

    @property
    def interactions(self) -> Interactions | None:
        """All interactions; None where Shapley values are sampled."""

    @property
    def stand_ins(self) -> Shaped[Tensor, "samples *entries"] | None:
        """Inputs with all players absent."""

    @property
    def record(self) -> Any:
        """Settings: ``readout`` and ``absence`` in words, and ``class_names``."""


@runtime_checkable
class Learned(Protocol):
    """A learned baseline: values, quantiles of the data, and the history of the loss."""

    @property
    def values(self) -> Shaped[Tensor, " *shape"]:
        """Baseline values, with a first axis where each class or sample has its own."""

    @property
    def share(self) -> str:
        """Who shares a baseline: "all", each "class" or each "sample"."""

    @property
    def class_labels(self) -> tuple[str | int, ...]:
        """Names or numbers of the classes that have a baseline."""

    @property
    def players(self) -> Players | None:
        """Players; None for old files that do not have them."""

    @property
    def history(self) -> Float[Tensor, "checks 2"]:
        """Evaluations and the lowest loss so far."""

    @property
    def quantiles(self) -> Float[Tensor, "quantiles *entries"] | None:
        """Quantiles of the data: minimum, 5 %, quartiles, 95 %, maximum."""

    @property
    def record(self) -> Any:
        """Settings: ``loss``, and the ``undetermined`` players."""


def check_explanation(explanation: Explained, sample: int, **counts: int) -> None:
    """Raise an error for what is no explanation, has no such sample, or for a number to draw below 1."""
    if not isinstance(explanation, Explained):
        raise wrong("explanation", "be an Explanation, which explain returns", type(explanation).__name__)
    check_sample(sample, len(explanation.outputs))
    for name, count in counts.items():
        check_count(name, count)


def check_sample(sample: int, samples: int) -> None:
    """Raise an error for the number of a sample that does not exist."""
    if not 0 <= sample < samples:
        raise wrong("sample", f"lie between 0 and {samples - 1}", sample)


def interactions_of(explanation: Explained) -> Interactions:
    """Return the interactions of an explanation; raise an error if it has none."""
    if explanation.interactions is None:
        then = "Group players until all coalitions can be evaluated, and do not pass evaluations."
        raise wrong("explanation", "be exact for a plot of interactions", "a sampled one", then)
    return explanation.interactions


def sample_name(explanation: Explained, sample: int) -> str:
    """Return the number of a sample, with the name or number of its class if it is known."""
    if explanation.y is None:
        return f"{sample}"
    number, names = int(explanation.y[sample]), explanation.record.class_names
    return f"{sample}, class {names[number] if names else number}"


def player_labels(explanation: Explained, sample: int) -> list[str]:
    """Return the labels of the players, with the value of the entry of those that have only one (tokens aside)."""
    players = explanation.players
    names = [label(name) for name in players.names]
    if players.integer or len(players.shape) > 1:
        return names
    values = players.entry_values(explanation.x[sample : sample + 1])[0].tolist()
    pairs = zip(names, values, strict=True)
    return [name if math.isnan(value) else f"{name} = {written(value, 4)}" for name, value in pairs]


def players_of(learned: Learned) -> Players:
    """Return the players of a learned baseline; for old files that do not have them, one for each entry."""
    if learned.players is not None:
        return learned.players
    shape = learned.values.shape if learned.share == "all" else learned.values.shape[1:]
    each = Players.features(shape.numel())
    return Players(each.labels.reshape(shape), each.names)


def owner_names(learned: Learned) -> list[str]:
    """Return the class or the sample that each baseline belongs to; none if all samples share one."""
    owners = learned.class_labels if learned.share == "class" else range(len(learned.values))
    return [] if learned.share == "all" else [f"{learned.share} {owner}" for owner in owners]
