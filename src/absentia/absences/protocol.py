"""What an absence is: bound to samples once, it gives a fill, a function from presence to masked inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from absentia.data import Classes, blocks
from absentia.errors import wrong
from absentia.models import Model
from absentia.players import Players

_LONGEST_DESCRIPTION = 200
# Masked inputs are made for at most this many numbers at a time.
_NUMBERS_PER_BLOCK = 2**24


@runtime_checkable
class Fill(Protocol):
    """An absence bound to samples: presence → masked inputs."""

    @property
    def draws(self) -> int:
        """The number of masked inputs for one coalition; a game averages over them."""

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Mask these samples: present entries keep the sample's values, absent ones get stand-ins."""

    def select(self, samples: Tensor | slice | None = None, draws: Sequence[int] | None = None) -> Fill:
        """Return the fill of some of the samples and some of the draws; None keeps all."""


@runtime_checkable
class Absence(Protocol):
    """A masking method: anything that can be bound to samples.

    Examples
    --------
    >>> from absentia.absences import StandIns
    >>> class Negative:
    ...     def bind(self, x):
    ...         return StandIns(x, -x[:, None])
    >>> isinstance(Negative(), Absence)
    True
    """

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Prepare for these samples; raise an error for samples that the method does not fit."""


@runtime_checkable
class BringsModel(Protocol):
    """An absence whose masked inputs only its own model understands, such as a surrogate.

    >>> class Silence:
    ...     def instead_of(self, model):
    ...         return lambda rows: model(rows.nan_to_num())
    >>> isinstance(Silence(), BringsModel)
    True
    """

    def instead_of(self, model: Model) -> Model:
        """Return the model that takes this model's place in the game; the readout then applies to its output."""


@runtime_checkable
class ClassWise(Protocol):
    """An absence that may have one baseline for each class."""

    @property
    def needs_classes(self) -> bool:
        """Whether it has one baseline for each class, so that samples need theirs."""

    def of(self, y: Int[Tensor, " samples"]) -> Absence:
        """Return the absence for samples of these classes."""


@dataclass(frozen=True, eq=False)
class StandIns:
    """The fill of every absence whose stand-ins do not depend on which players are present.

    >>> fill = StandIns(torch.tensor([[1.0, 2.0]]), torch.zeros(1, 1, 2))
    >>> fill(slice(None), torch.tensor([[[True, False]]])).tolist()
    [[[[1.0, 0.0]]]]
    """

    x: Shaped[Tensor, "samples *entries"]
    values: Shaped[Tensor, "#samples draws *entries"]

    @property
    def draws(self) -> int:
        """The number of stand-ins for each sample."""
        return int(self.values.shape[1])

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Choose between sample and stand-in, entry by entry."""
        present = self.x[samples, None, None]
        absent = self.values if len(self.values) == 1 else self.values[samples]
        return torch.where(presence.unsqueeze(2), present, absent.unsqueeze(1))

    def select(self, samples: Tensor | slice | None = None, draws: Sequence[int] | None = None) -> StandIns:
        """Return the stand-ins of some samples and draws."""
        chosen = slice(None) if samples is None else samples
        values = self.values if len(self.values) == 1 else self.values[chosen]
        return StandIns(self.x[chosen], values if draws is None else values[:, list(draws)])


def check_absence(argument: str, absence: object) -> Absence:
    """Raise an error for what is no absence; the class of an absence is none."""
    if isinstance(absence, type):
        raise wrong(argument, "be an absence such as Baseline(0.0)", f"the class {absence.__name__}", "Call it.")
    if not isinstance(absence, Absence):
        raise wrong(argument, "be an absence such as Baseline(0.0), a number or a word", type(absence).__name__)
    return absence


def for_classes(absence: Absence, y: Classes) -> Absence:
    """Return the absence for samples of classes ``y``, where it has one baseline for each class."""
    if not isinstance(absence, ClassWise) or not absence.needs_classes:
        return absence
    if y is None:
        raise wrong("y", "be given for an absence with one baseline for each class", "none")
    return absence.of(y)


def describe_absence(absence: Absence) -> str:
    """Return a description of an absence in one line: the first line of its repr, or its class.

    >>> import absentia as ab
    >>> describe_absence(ab.Baseline(0.0))
    'Baseline(0)'
    """
    if type(absence).__repr__ is object.__repr__:
        return type(absence).__name__
    return repr(absence).splitlines()[0][:_LONGEST_DESCRIPTION]


def empty_inputs(
    fill: Fill, samples: int, players: Players, device: torch.device
) -> Shaped[Tensor, "samples *entries"]:
    """Return each sample with all players absent, averaged over the draws; of tokens, the most frequent one.

    >>> import absentia as ab
    >>> fill = ab.Marginal(torch.tensor([[0.0, 5.0], [1.0, 7.0]])).bind(torch.tensor([[9.0, 9.0]]))
    >>> empty_inputs(fill, 1, Players.groups({"first": [0]}, 2), torch.device("cpu"))
    tensor([[0.5000, 9.0000]])
    """
    nobody = players.presence(torch.zeros(1, 1, len(players), dtype=torch.bool, device=device))
    at_once = max(1, _NUMBERS_PER_BLOCK // (fill.draws * nobody[0, 0].numel()))
    parts = []
    for some in blocks(samples, at_once):
        drawn = fill(some, nobody)[:, 0].detach()
        if drawn.shape[1] == 1:
            parts.append(drawn[:, 0])
        else:
            parts.append(drawn.mean(1) if drawn.is_floating_point() else drawn.mode(1).values)
    return torch.cat(parts).cpu()


def check_shape(name: str, shape: torch.Size | tuple[int, ...], x: Tensor) -> None:
    """Raise an error for samples whose shape is not that of the rows that an absence was made from."""
    if tuple(shape) != tuple(x.shape[1:]):
        must = f"have rows of the shape of one sample, {tuple(x.shape[1:])}"
        raise wrong(name, must, f"rows of shape {tuple(shape)}")


def check_whole(name: str, values: Tensor, x: Tensor) -> None:
    """Raise an error for stand-ins that integer samples, such as tokens, cannot hold."""
    if x.is_floating_point() or not values.is_floating_point():
        return
    broken = values[values != values.round()]
    if len(broken):
        raise wrong(name, "hold whole numbers for integer inputs", f"{broken[0].item():g}")


def check_floating(method: str, x: Tensor, then: str = "") -> None:
    """Raise an error for integer samples, such as tokens, with a method that calculates with their values."""
    if not x.is_floating_point():
        raise wrong("x", f"be in floating point for {method}", f"{x.dtype}", then)


def check_draws(draws: int) -> None:
    """Raise an error for a number of draws below one."""
    if draws < 1:
        raise wrong("draws", "be at least 1", draws)
