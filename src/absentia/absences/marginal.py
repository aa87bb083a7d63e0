"""Rows of a background as an absence: the marginal distribution."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from absentia.absences.protocol import Fill, Samples, StandIns, check_shape, check_whole
from absentia.data import Table, check_rows, seeded
from absentia.errors import wrong


@dataclass(frozen=True, eq=False)
class Marginal:
    """Rows of a background, the same for every sample and every coalition: a game averages over them.

    Parameters
    ----------
    background : array of shape (rows, …)
        Rows such as those that the model was trained on.
    draws : int, optional
        The number of rows to draw without replacement. All rows by default.
    seed : int, default 0
        The seed of the draw.

    Examples
    --------
    >>> Marginal(torch.zeros(500, 4), draws=50)
    Marginal(50 of 500 rows)
    """

    background: Table
    draws: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        rows = check_rows(self.background)
        if self.draws is not None and not 1 <= self.draws <= len(rows):
            raise wrong("draws", f"lie between 1 and the background's {len(rows)} rows", self.draws)
        vars(self).update(background=rows)  # a frozen class does not let attributes be set

    def __repr__(self) -> str:
        rows = len(self.background)
        return f"Marginal({rows if self.draws is None else self.draws} of {rows} rows)"

    def bind(self, x: Samples) -> Fill:
        """Draw the rows."""
        rows = self.background
        check_shape("background", rows.shape[1:], x)
        check_whole("background", rows, x)
        if self.draws is not None:
            order = torch.randperm(len(rows), generator=seeded(self.seed))
            rows = rows[order[: self.draws].to(rows.device)]
        return StandIns(x, rows.to(x)[None])
