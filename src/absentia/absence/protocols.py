"""What every absence is: bound to samples once, which gives a fill, a function from presence to masked inputs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Shaped
from torch import Tensor

from absentia.inference import Model


@runtime_checkable
class Fill(Protocol):
    """An absence bound to samples: presence → masked inputs."""

    @property
    def draws(self) -> int:
        """How many masked inputs stand for one coalition; the game averages over them."""

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Mask these samples: present entries keep the sample's values, absent ones get stand-ins."""


@runtime_checkable
class Absence(Protocol):
    """A masking method: anything that can be bound to samples.

    >>> from absentia.absence import StandIns
    >>> class Negative:
    ...     def bind(self, x):
    ...         return StandIns(x, -x[:, None])
    >>> isinstance(Negative(), Absence)
    True
    """

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Prepare for these samples; refuse with a sentence those that the method does not fit."""


@runtime_checkable
class BringsModel(Protocol):
    """An absence whose masked inputs only a model of its own understands, such as a surrogate.

    >>> class Silence:
    ...     def instead_of(self, model):
    ...         return lambda rows: model(rows.nan_to_num())
    >>> isinstance(Silence(), BringsModel)
    True
    """

    def instead_of(self, model: Model) -> Model:
        """Give the model that takes this model's place in the game; the readout then applies to its output."""
