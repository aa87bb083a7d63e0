"""Features of coalitions: what the effect of a set of players is multiplied with, in either basis."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Bool, Float
from torch import Tensor

from absentia.coalitions import Coalitions

# A set that is within fewer coalitions than this, or this share of them, cannot be distinguished from noise.
_LEAST_WITHIN = 8
_LEAST_SHARE_WITHIN = 0.01


class Basis(enum.Enum):
    """What an effect means."""

    HARSANYI = "Harsanyi"  # it is added to the coalitions that contain the set
    WALSH = "Walsh"  # it is added if an even number of the set's players is absent, and subtracted otherwise


@dataclass(frozen=True, eq=False)
class Rows:
    """Coalitions whose features are asked for often, in the numbers that they are computed from.

    All are in single precision, in which sums of whole numbers are exact.
    """

    coalitions: Coalitions
    basis: Basis

    @cached_property
    def absent(self) -> Float[Tensor, "coalitions players"]:
        """1 for absent players, otherwise 0."""
        return (~self.coalitions).float()

    @cached_property
    def of_players(self) -> Float[Tensor, "coalitions players"]:
        """The feature of each player."""
        if self.basis is Basis.HARSANYI:
            return self.coalitions.float()
        return 1 - 2 * self.absent

    def features_of(self, sets: Bool[Tensor, "terms players"]) -> Float[Tensor, "coalitions terms"]:
        """Return 1 for each set within a coalition, otherwise 0; in the Walsh basis 1 or −1."""
        members = sets.any(0).nonzero()[:, 0]  # other players need not be looked at
        absent = self.absent[:, members] @ sets[:, members].float().T  # how many players of each set are absent
        if self.basis is Basis.HARSANYI:
            return (absent == 0).float()
        return 1 - 2 * (absent % 2)

    def extension_scores(
        self, base: Bool[Tensor, "base players"], residuals: Float[Tensor, " coalitions"]
    ) -> Float[Tensor, "base players"]:
        """Return how strongly residuals depend on each set extended by each player; 0 for players of the set."""
        base_features = self.features_of(base)
        scores = ((base_features * residuals[:, None].float()).T @ self.of_players).double().abs()
        rows = len(self.coalitions)
        if self.basis is Basis.HARSANYI:
            within = (base_features.T @ self.of_players).double()
            deviations = (within * (1 - within / rows)).clamp_min(1e-9).sqrt()
            scores = scores / deviations
            scores[within < max(_LEAST_WITHIN, _LEAST_SHARE_WITHIN * rows)] = 0.0
        else:
            scores = scores / rows**0.5
        scores[base] = 0.0
        return scores


def features_of(
    sets: Bool[Tensor, "terms players"], coalitions: Coalitions, basis: Basis
) -> Float[Tensor, "coalitions terms"]:
    """Return the features of coalitions that are asked for once.

    Examples
    --------
    >>> sets = torch.tensor([[False, False], [True, True]])
    >>> features_of(sets, torch.tensor([[True, True], [True, False]]), Basis.WALSH)
    tensor([[ 1.,  1.],
            [ 1., -1.]])
    """
    return Rows(coalitions, basis).features_of(sets)


def extension_scores(
    base: Bool[Tensor, "base players"],
    residuals: Float[Tensor, " coalitions"],
    coalitions: Coalitions,
    basis: Basis,
) -> Float[Tensor, "base players"]:
    """Return how strongly residuals depend on each set extended by each player; 0 for players of the set."""
    return Rows(coalitions, basis).extension_scores(base, residuals)
