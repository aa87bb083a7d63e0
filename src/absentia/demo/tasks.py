"""The network of the demonstration, and the digits that it is trained on, which come with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from absentia.data import seeded
from absentia.errors import require
from absentia.models import progress
from absentia.players import Players

_PARTS = (
    "top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Task:
    """Images for training and for testing, and their parts, the players."""

    x: Float[Tensor, "rows 1 8 8"]
    y: Int[Tensor, " rows"]
    x_test: Float[Tensor, "test_rows 1 8 8"]
    y_test: Int[Tensor, " test_rows"]
    players: Players


def digits(seed: int) -> Task:
    """Load the handwritten digits, pixels from 0 to 1, in nine parts, and draw four fifths of them for training."""
    data = require("sklearn.datasets", "demo").load_digits()
    order = torch.randperm(len(data.images), generator=seeded(seed))
    x, y = torch.from_numpy(data.images[:, None] / 16).float()[order], torch.from_numpy(data.target).long()[order]
    cut = round(0.8 * len(x))
    players = replace(Players.grid((1, 8, 8), (3, 3)), names=_PARTS)
    return Task(x[:cut], y[:cut], x[cut:], y[cut:], players)


def digit_model(task: Task, seed: int, epochs: int = 15) -> nn.Module:
    """Train two convolutions and a linear layer with Adam."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = (nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        second = (nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        model = nn.Sequential(*first, *second, nn.Linear(16 * 4 * 4, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=0.003)
    generator = seeded(seed)
    with progress(epochs, "training the model", "epoch") as bar:
        for _ in range(epochs):
            for rows in torch.randperm(len(task.x), generator=generator).split(32):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(task.x[rows]), task.y[rows]).backward()
                optimiser.step()
            bar.update()
    return model.eval()
