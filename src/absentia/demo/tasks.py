"""The two models of the demonstration, and the data that they are trained on, which come with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from absentia.data import seeded
from absentia.errors import require
from absentia.models import progress
from absentia.players import Players

# The thirty measurements of a tumour's cell nuclei are ten quantities, each as mean, error and worst. Five groups of
# quantities that measure nearly the same thing, times three, make fifteen players.
_QUANTITIES = {
    "size": ("radius", "perimeter", "area"),
    "texture": ("texture",),
    "smoothness": ("smoothness",),
    "concavity": ("compactness", "concavity", "concave points"),
    "form": ("symmetry", "fractal dimension"),
}
_STATISTICS = {"mean": "mean {}", "error": "{} error", "worst": "worst {}"}


@dataclass(frozen=True, eq=False)
class Task:
    """Rows for training and for testing, and their players."""

    x: Float[Tensor, "rows *entries"]
    y: Int[Tensor, " rows"]
    x_test: Float[Tensor, "test_rows *entries"]
    y_test: Int[Tensor, " test_rows"]
    players: Players


def tumours(seed: int) -> Task:
    """Load the breast-cancer data, standardise them, and group their features into fifteen players."""
    data = require("sklearn.datasets", "demo").load_breast_cancer()
    groups = {
        f"{quantity} ({statistic})": [pattern.format(member) for member in members]
        for quantity, members in _QUANTITIES.items()
        for statistic, pattern in _STATISTICS.items()
    }
    task = _split(data.data, data, Players.groups(groups, list(data.feature_names)), seed)
    mean, deviation = task.x.mean(0), task.x.std(0)
    return replace(task, x=(task.x - mean) / deviation, x_test=(task.x_test - mean) / deviation)


def digits(seed: int) -> Task:
    """Load the handwritten digits, pixels from 0 to 1, and cut them into twelve cells."""
    data = require("sklearn.datasets", "demo").load_digits()
    return _split(data.images[:, None] / 16, data, Players.grid((1, 8, 8), (4, 3)), seed)


def _split(x: np.ndarray, data: Any, players: Players, seed: int) -> Task:
    """Draw four fifths of the rows for training."""
    order = torch.randperm(len(x), generator=seeded(seed))
    rows, y = torch.from_numpy(x).float()[order], torch.from_numpy(data.target).long()[order]
    cut = round(0.8 * len(rows))
    return Task(rows[:cut], y[:cut], rows[cut:], y[cut:], players)


def tumour_model(task: Task, seed: int, epochs: int = 200) -> nn.Module:
    """Train a small MLP, 30–32–32–2, on all rows at once."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(30, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 2))
    return _train(model, task, epochs, batch=len(task.x), rate=0.005, seed=seed)


def digit_model(task: Task, seed: int, epochs: int = 15) -> nn.Module:
    """Train two convolutions and a linear layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = (nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        second = (nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        model = nn.Sequential(*first, *second, nn.Linear(16 * 4 * 4, 10))
    return _train(model, task, epochs, batch=32, rate=0.003, seed=seed)


def _train(model: nn.Module, task: Task, epochs: int, *, batch: int, rate: float, seed: int) -> nn.Module:
    """Train with Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=0.003)
    generator = seeded(seed)
    with progress(epochs, "training the model", "epoch") as bar:
        for _ in range(epochs):
            for rows in torch.randperm(len(task.x), generator=generator).split(batch):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(task.x[rows]), task.y[rows]).backward()
                optimiser.step()
            bar.update()
    return model.eval()


def accuracy(model: nn.Module, task: Task) -> float:
    """Return the share of test rows that the model predicts correctly."""
    with torch.no_grad():
        return float((model(task.x_test).argmax(1) == task.y_test).double().mean())


def closest_call(model: nn.Module, task: Task) -> int:
    """Return the number of the test sample of class 0 that the model is least sure of."""
    with torch.no_grad():
        best, second = model(task.x_test).topk(2).values.unbind(1)
    return int(torch.where(task.y_test == 0, best - second, torch.inf).argmin())
