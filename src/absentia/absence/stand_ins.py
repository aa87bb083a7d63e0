"""The fill of every absence whose stand-ins do not depend on which players are present."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor


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
        """How many stand-ins there are for each sample."""
        return int(self.values.shape[1])

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Choose between sample and stand-in, entry by entry."""
        present = self.x[samples, None, None]
        absent = self.values if len(self.values) == 1 else self.values[samples]
        return torch.where(presence.unsqueeze(2), present, absent.unsqueeze(1))
