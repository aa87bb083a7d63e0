"""The count of the rows that a model sees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RowCount:
    """The rows that a model has seen so far: those of values, and those of trials, checks and timing.

    Rows count when they are handed to the model, because a model that fails has seen them, too. Rows of a network
    whose first layer is computed by a short cut count when its rest runs.
    """

    rows: int = 0

    def add(self, rows: int) -> None:
        """Count rows that are handed to the model."""
        self.rows += rows
