"""The second model of the demonstration: a small convolutional network that reads digits, 12 players."""

from __future__ import annotations

import torch
from torch import nn

from absentia.demo.task import Task, sklearn_data, train
from absentia.players import Players

SHAPE, CELLS = (1, 8, 8), (4, 3)


def digits(seed: int) -> Task:
    """Load the handwritten digits that come with scikit-learn, pixels from 0 to 1, and cut them into twelve cells."""
    data = sklearn_data("load_digits")
    x, y = torch.from_numpy(data.images).float()[:, None] / 16, torch.from_numpy(data.target).long()
    return Task.split(x, y, Players.grid(SHAPE, CELLS), tuple(str(digit) for digit in range(10)), seed)


def digit_model(task: Task, seed: int, epochs: int = 15) -> nn.Module:
    """Train two convolutions and a linear layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten()),
            nn.Linear(16 * 4 * 4, 10),
        )
    return train(model, task, epochs, batch=32, rate=0.003, seed=seed)
