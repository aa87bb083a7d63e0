"""What both models of the demonstration have in common: data that come with scikit-learn, split; and training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from tqdm.auto import tqdm

from absentia.optional import require
from absentia.players import Players


@dataclass(frozen=True, eq=False)
class Task:
    """Rows for training and for testing, and their players."""

    x: Float[Tensor, "rows *entries"]
    y: Int[Tensor, " rows"]
    x_test: Float[Tensor, "test_rows *entries"]
    y_test: Int[Tensor, " test_rows"]
    players: Players
    class_names: tuple[str, ...]

    @classmethod
    def split(
        cls,
        x: Float[Tensor, "all *entries"],
        y: Int[Tensor, " all"],
        players: Players,
        class_names: tuple[str, ...],
        seed: int,
        *,
        standardise: bool = False,
    ) -> Task:
        """Keep four fifths for training, drawn by seed; standardise by what they show."""
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
        x, y = x[order], y[order]
        rows = round(0.8 * len(x))
        if standardise:
            x = (x - x[:rows].mean(0)) / x[:rows].std(0)
        return cls(x[:rows], y[:rows], x[rows:], y[rows:], players, class_names)


def sklearn_data(loader: str) -> Any:
    """Load a data set that comes with scikit-learn."""
    return getattr(require("sklearn.datasets", "demo"), loader)()


def train(model: nn.Module, task: Task, epochs: int, batch: int, rate: float, seed: int) -> nn.Module:
    """Train by Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=0.003)
    generator = torch.Generator().manual_seed(seed)
    with tqdm(range(epochs), desc="training the model", disable=None, leave=False) as bar:
        for _ in bar:
            for rows in torch.randperm(len(task.x), generator=generator).split(batch):
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(task.x[rows]), task.y[rows])
                loss.backward()
                optimiser.step()
            bar.set_postfix(loss=f"{loss.item():.4f}")
    return model.eval()


def accuracy(model: nn.Module, task: Task) -> float:
    """Tell the share of test rows that the model gets right."""
    with torch.no_grad():
        return float((model(task.x_test).argmax(1) == task.y_test).double().mean())
