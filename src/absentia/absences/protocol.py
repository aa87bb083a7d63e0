"""The protocol of absences: binding one to samples gives a fill, a function from presence to masked inputs.

New masking methods implement only the protocols `Absence` and `Fill`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from absentia.data import Classes, Rows, blocks, has_gaps
from absentia.errors import wrong
from absentia.models.model import Model
from absentia.players import Players

Samples: TypeAlias = Shaped[Tensor, "samples *entries"]
Presence: TypeAlias = Bool[Tensor, "#samples coalitions *entries"]
MaskedInputs: TypeAlias = Shaped[Tensor, "samples coalitions draws *entries"]

# Masked inputs are made for at most this many numbers at a time.
_NUMBERS_PER_BLOCK = 2**24
# The maximum length of the description of an absence.
_LONGEST_DESCRIPTION = 200


@runtime_checkable
class Fill(Protocol):
    """An absence bound to samples: presence → masked inputs."""

    @property
    def draws(self) -> int:
        """The number of masked inputs for one coalition, over which a game averages."""

    def __call__(self, samples: slice, presence: Presence) -> MaskedInputs:
        """Mask these samples: present entries keep the sample's values, and absent ones get stand-ins."""

    def select(self, samples: Tensor | slice | None = None, draws: Sequence[int] | None = None) -> Fill:
        """Return the fill of the chosen samples and draws; None keeps all."""


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

    def bind(self, x: Samples) -> Fill:
        """Return a fill for these samples, or raise an error if the method cannot mask them."""


@runtime_checkable
class BringsModel(Protocol):
    """An absence whose masked inputs only its own model understands, such as a surrogate."""

    def instead_of(self, model: Model) -> Model:
        """Return the model that replaces this model in the game; the readout applies to its output."""


@runtime_checkable
class HoldsFrame(Protocol):
    """An absence that may hold a DataFrame with categories, to be encoded in the same way as the samples."""

    @property
    def frame(self) -> Any:
        """The DataFrame; None if the absence holds numbers."""

    def of_numbers(self, rows: Rows) -> Absence:
        """Return the absence with these rows, the encoded DataFrame, instead."""


@runtime_checkable
class KnowsCategories(Protocol):
    """An absence that knows categories by name, such as a learned baseline."""

    def coded_for(self, names: Mapping[int, Sequence[str]]) -> Absence:
        """Return the absence for a table whose entries code categories by their place among these names."""


@dataclass(frozen=True, eq=False)
class StandIns:
    """The fill of every absence whose stand-ins do not depend on which players are present."""

    x: Samples
    values: Shaped[Tensor, "#samples draws *entries"]

    @property
    def draws(self) -> int:
        """The number of stand-ins for each sample."""
        return int(self.values.shape[1])

    def __call__(self, samples: slice, presence: Presence) -> MaskedInputs:
        """Choose between sample and stand-in, entry by entry."""
        chosen = self.select(samples)
        return torch.where(presence.unsqueeze(2), chosen.x[:, None, None], chosen.values.unsqueeze(1))

    def select(self, samples: Tensor | slice | None = None, draws: Sequence[int] | None = None) -> StandIns:
        """Return the stand-ins of the chosen samples and draws."""
        x = self.x
        values = self.values
        if samples is not None:
            x = x[samples]
            if len(values) > 1:  # a single row serves all samples
                values = values[samples]
        if draws is not None:
            values = values[:, list(draws)]
        return StandIns(x, values)


@dataclass(frozen=True, eq=False)
class ConditionalFill:
    """The fill of every absence whose stand-ins depend on the present entries."""

    x: Samples
    numbers: tuple[int, ...]  # of the draws
    stand_ins: Callable[[Tensor, Tensor, list[int]], Tensor]  # samples, presence, numbers of draws → stand-ins

    @property
    def draws(self) -> int:
        """The number of stand-ins for each coalition of a sample."""
        return len(self.numbers)

    def __call__(self, samples: slice, presence: Presence) -> MaskedInputs:
        """Compute the stand-ins of each coalition, and keep the present entries."""
        x = self.x[samples]
        values = self.stand_ins(x, presence, list(self.numbers))
        return torch.where(presence.unsqueeze(2), x[:, None, None], values)

    def select(self, samples: Tensor | slice | None = None, draws: Sequence[int] | None = None) -> ConditionalFill:
        """Return the fill of the chosen samples and draws."""
        x = self.x if samples is None else self.x[samples]
        numbers = self.numbers if draws is None else tuple(self.numbers[draw] for draw in draws)
        return ConditionalFill(x, numbers, self.stand_ins)


def check_absence(absence: Any) -> Absence:
    """Raise an error unless the value is an absence instance."""
    if isinstance(absence, type):
        raise wrong("absence", "be an absence such as Baseline(0.0)", f"the class {absence.__name__}", "Call it.")
    if not hasattr(absence, "bind"):  # quicker than isinstance with the protocol
        raise wrong("absence", "be an absence such as Baseline(0.0), a number or a word", type(absence).__name__)
    return absence


def for_classes(absence: Any, y: Classes, names: Sequence[str] = ()) -> Absence:
    """Return the absence for classes ``y`` if it ``needs_classes``.

    Raise an error if it was learned for the same players in another order.
    """
    learned_names = getattr(absence, "names", ())
    if isinstance(learned_names, tuple):
        same_players = sorted(learned_names) == sorted(names)
        if same_players and learned_names != tuple(names):
            then = "Put the columns into the order of those that it was learned on."
            raise wrong("absence", "have values for the players in their order", ", ".join(learned_names[:8]), then)
    if not getattr(absence, "needs_classes", False):
        return absence
    if y is None:
        raise wrong("y", "be given for an absence with one baseline for each class", "none")
    return absence.of(y)


def describe_absence(absence: Absence) -> str:
    """Describe an absence in one line: by its own description, the first line of its repr, or its class."""
    description = getattr(absence, "description", None)
    if not isinstance(description, str) or not description:
        if type(absence).__repr__ is object.__repr__:
            return type(absence).__name__
        description = repr(absence)
    return description.splitlines()[0][:_LONGEST_DESCRIPTION]


def empty_inputs(fill: Fill, samples: int, players: Players, device: torch.device) -> Samples:
    """Return each sample with all players absent: the mean over the draws, or the most frequent draw for tokens."""
    nobody = players.presence(torch.zeros(1, 1, len(players), dtype=torch.bool, device=device))
    samples_at_once = max(1, _NUMBERS_PER_BLOCK // (fill.draws * nobody[0, 0].numel()))
    averages = []
    for block in blocks(samples, samples_at_once):
        masked = fill(block, nobody)[:, 0].detach()
        if masked.is_floating_point():
            averages.append(masked.nanmean(1))
        else:
            averages.append(masked.mode(1).values)
    return torch.cat(averages).cpu()


def check_shape(name: str, shape: Sequence[int], x: Tensor, method: str = "") -> None:
    """Raise an error for samples of another shape, and for integer samples if ``method`` is given."""
    if tuple(shape) != tuple(x.shape[1:]):
        must = f"have rows of the shape of one sample, {tuple(x.shape[1:])}"
        raise wrong(name, must, f"rows of shape {tuple(shape)}")
    if method:
        check_floating(method, x)


def check_whole(name: str, values: Tensor, x: Tensor) -> None:
    """Raise an error for stand-ins that integer samples, such as tokens, cannot hold."""
    if x.is_floating_point():
        return
    changed = values[values.to(x.dtype).to(values.dtype) != values]
    if len(changed) == 0:
        return
    example = changed[0].item()
    if float(example).is_integer():
        raise wrong(name, f"hold numbers that {x.dtype} can represent", f"{example:g}")
    raise wrong(name, "hold whole numbers for integer inputs", f"{example:g}")


def check_known(name: str, rows: Tensor, method: str) -> None:
    """Raise an error for missing values if a method takes none."""
    if has_gaps(rows):
        row, entry = rows.flatten(1).isnan().nonzero()[0].tolist()
        then = "Use mean, median, marginal or neighbours, or fill in missing values."
        raise wrong(name, f"have no missing values for {method}", f"NaN in row {row}, entry {entry}", then)


def check_floating(method: str, x: Tensor) -> None:
    """Raise an error for integer samples, such as tokens."""
    if not x.is_floating_point():
        then = "Embed tokens first, or use NearestNeighbours or Marginal."
        raise wrong("x", f"be in floating point for {method}", f"{x.dtype}", then)
