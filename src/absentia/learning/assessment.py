"""Baselines with their measured losses."""

from __future__ import annotations

from typing import NamedTuple

import torch

from absentia.learning.space import Baselines, Owners


class Assessment(NamedTuple):
    """Baselines with their penalties, and with their losses, which also include the terms that break ties."""

    baseline: Baselines
    penalties: Owners
    losses: Owners

    def or_better(self, other: Assessment | None) -> Assessment:
        """For each owner, return the other baseline unless this one is better."""
        if other is None:
            return self
        better = self.losses < other.losses
        return Assessment(
            torch.where(better[:, None], self.baseline, other.baseline),
            torch.where(better, self.penalties, other.penalties),
            torch.where(better, self.losses, other.losses),
        )
