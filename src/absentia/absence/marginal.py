"""Rows of a background as an absence: the marginal distribution."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.absence.checks import check_rows, check_shape, check_whole
from absentia.absence.protocols import Fill
from absentia.absence.stand_ins import StandIns
from absentia.arrays import Table
from absentia.errors import wrong


@dataclass(frozen=True, eq=False)
class Marginal:
    """Rows of a background: the game's value is the average over all of them, or over ``draws`` of them.

    With ``draws`` the same rows, drawn without replacement by ``seed``, serve every sample and every coalition.

    >>> Marginal(torch.zeros(500, 4), draws=50)
    Marginal(50 of 500 rows)
    """

    background: Tensor
    draws: int | None
    seed: int

    def __init__(self, background: Table, draws: int | None = None, seed: int = 0) -> None:
        rows = check_rows(background)
        if draws is not None and not 1 <= draws <= len(rows):
            raise wrong("draws", f"lie between 1 and the background's {len(rows)} rows", draws)
        object.__setattr__(self, "background", rows)
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "seed", seed)

    def __repr__(self) -> str:
        rows = len(self.background)
        return f"Marginal({rows if self.draws is None else self.draws} of {rows} rows)"

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Draw the rows."""
        check_shape("background", self.background.shape[1:], x)
        check_whole("background", self.background, x)
        rows = self.background
        if self.draws is not None:
            generator = torch.Generator().manual_seed(self.seed)
            rows = rows[torch.randperm(len(rows), generator=generator)[: self.draws].to(rows.device)]
        return StandIns(x, rows.to(x)[None])
