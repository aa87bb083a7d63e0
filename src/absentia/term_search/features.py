"""Features of coalitions: what the effect of a set of players is multiplied with, in either basis."""

from __future__ import annotations

import enum

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


def features_of(
    sets: Bool[Tensor, "terms players"], coalitions: Coalitions, basis: Basis
) -> Float[Tensor, "coalitions terms"]:
    """Return 1 for each set within a coalition, otherwise 0; in the Walsh basis 1 or −1.

    They are in single precision, in which sums of whole numbers are exact.

    Examples
    --------
    >>> sets = torch.tensor([[False, False], [True, True]])
    >>> features_of(sets, torch.tensor([[True, True], [True, False]]), Basis.WALSH)
    tensor([[ 1.,  1.],
            [ 1., -1.]])
    """
    absent = (~coalitions).float() @ sets.float().T  # how many players of each set are absent
    if basis is Basis.HARSANYI:
        return (absent == 0).float()
    return 1 - 2 * (absent % 2)


def extension_scores(
    base: Bool[Tensor, "base players"],
    residuals: Float[Tensor, " coalitions"],
    coalitions: Coalitions,
    basis: Basis,
) -> Float[Tensor, "base players"]:
    """Return how strongly residuals depend on each set extended by each player; 0 for players of the set."""
    base_features = features_of(base, coalitions, basis)
    players = coalitions.float()
    if basis is Basis.WALSH:
        players = 2 * players - 1
    scores = ((base_features * residuals[:, None].float()).T @ players).double().abs()
    rows = len(coalitions)
    if basis is Basis.HARSANYI:
        within = (base_features.T @ players).double()
        deviations = (within * (1 - within / rows)).clamp_min(1e-9).sqrt()
        scores = scores / deviations
        scores[within < max(_LEAST_WITHIN, _LEAST_SHARE_WITHIN * rows)] = 0.0
    else:
        scores = scores / rows**0.5
    scores[base] = 0.0
    return scores
