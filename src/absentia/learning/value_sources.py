"""Where the default loss takes its values from: the model on masked inputs, or the leaves of its trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.coalitions import moebius
from absentia.evaluation import Evaluator
from absentia.learning.processes import shared_values
from absentia.learning.space import Baselines


@runtime_checkable
class ValueSource(Protocol):
    """Values of coalitions of any inputs, whose absent players are replaced by other inputs.

    Inputs are encoded once, in whatever way the source works with them.
    """

    @property
    def sums_are_exact(self) -> bool:
        """Whether Σ|U(S)| is that of all sets at any number of players, without tables of values."""

    @property
    def table_rows(self) -> int:
        """About how many rows of a model take as long as an exact Σ|U(S)|."""

    @property
    def tree_count(self) -> int:
        """The number of trees whose leaves give the values; 0 if the model is run."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the record of learning."""

    def encode(self, inputs: Shaped[Tensor, "rows *entries"]) -> Shaped[Tensor, "rows *codes"]:
        """Return inputs in the form that the other methods take."""

    def stand_ins(self, baseline: Baselines, owners: Int[Tensor, " rows"]) -> Shaped[Tensor, "rows *codes"]:
        """Return the baseline of each owner, encoded."""

    def values(
        self,
        present: Shaped[Tensor, "rows *codes"],
        absent: Shaped[Tensor, "rows *codes"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
        samples: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows coalitions *features"]:
        """Return the values of coalitions, read out as those of samples."""

    def strength(
        self,
        present: Shaped[Tensor, "rows *codes"],
        absent: Shaped[Tensor, "rows *codes"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
        samples: Int[Tensor, " rows"],
    ) -> Float[Tensor, " rows"]:
        """Return Σ|U(S)| over all S ≠ ∅ of tables, or over all sets if sums are exact."""


@dataclass
class EvaluatedValues:
    """Values from the model, which is run on masked inputs; inputs need no code."""

    evaluator: Evaluator
    recompute: bool = False  # whether activations are computed again for a gradient
    sums_are_exact: bool = False
    table_rows: int = 0
    tree_count: int = 0
    notes: tuple[str, ...] = ()  # such as why a model of trees is run

    def encode(self, inputs: Shaped[Tensor, "rows *entries"]) -> Shaped[Tensor, "rows *entries"]:
        """Return the inputs as they are."""
        return inputs

    def stand_ins(self, baseline: Baselines, owners: Int[Tensor, " rows"]) -> Shaped[Tensor, "rows *entries"]:
        """Return the baseline of each owner, converted last so that the gradient is summed in double precision."""
        return baseline[owners].unflatten(1, self.evaluator.players.shape).to(self.evaluator.x)

    def values(
        self,
        present: Shaped[Tensor, "rows *entries"],
        absent: Shaped[Tensor, "rows *entries"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
        samples: Int[Tensor, " rows"],
    ) -> Float[Tensor, "rows coalitions *features"]:
        """Run the model on masked inputs."""
        gradient = present.requires_grad or absent.requires_grad
        fill = StandIns(present, absent[:, None])
        options = {"gradient": gradient, "recompute": gradient and self.recompute}
        return shared_values(self.evaluator, fill, coalitions, samples, **options).double().cpu()

    def strength(
        self,
        present: Shaped[Tensor, "rows *entries"],
        absent: Shaped[Tensor, "rows *entries"],
        coalitions: Bool[Tensor, "*rows coalitions players"],
        samples: Int[Tensor, " rows"],
    ) -> Float[Tensor, " rows"]:
        """Sum |U(S)| over the tables of the coalitions' values."""
        return strength_of_tables(self.values(present, absent, coalitions, samples))


def strength_of_tables(values: Float[Tensor, "samples coalitions *features"]) -> Float[Tensor, " samples"]:
    """Sum |U(S)| over all S ≠ ∅, and over the features if values have several."""
    tables = values.reshape(*values.shape[:2], -1).transpose(1, 2).contiguous()
    return moebius(tables)[..., 1:].abs().sum((1, 2))
