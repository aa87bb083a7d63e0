"""Variances of few repeats, moderated by those of other players."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

# With few repeats, the deviations of a player count together with this many of the others'.
_SHARED_DEGREES = 3


def moderated(
    variances: Float[Tensor, "*numbers"], typical: Float[Tensor, "*#numbers"], repeats: int
) -> Float[Tensor, "*numbers"]:
    """Return variances between few repeats, moderated by what is typical of the other players.

    A variance from two repeats is often far too small, and so is that of a player whose rare large effects were not
    drawn. As it is still estimated, it is stated larger, as that of Student's distribution is.

    Examples
    --------
    >>> moderated(torch.tensor([0.0, 6.0]), torch.tensor(3.0), repeats=3)
    tensor([3., 7.])
    """
    own = repeats - 1
    degrees = own + _SHARED_DEGREES
    mixed = (own * variances + _SHARED_DEGREES * typical) / degrees
    return mixed * degrees / (degrees - 2)
