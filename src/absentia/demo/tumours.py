"""The first model of the demonstration: an MLP that tells malignant from benign tumours, 15 players."""

from __future__ import annotations

import torch
from torch import nn

from absentia.demo.task import Task, sklearn_data, train
from absentia.players import Players

# The thirty measurements of a tumour's cell nuclei are ten quantities, each as mean, error and worst. Five groups of
# quantities that measure nearly the same thing, times three, make fifteen players.
QUANTITIES = {
    "size": ("radius", "perimeter", "area"),
    "texture": ("texture",),
    "smoothness": ("smoothness",),
    "concavity": ("compactness", "concavity", "concave points"),
    "form": ("symmetry", "fractal dimension"),
}
STATISTICS = {"mean": "mean {}", "error": "{} error", "worst": "worst {}"}


def breast_cancer(seed: int) -> Task:
    """Load the breast-cancer data that come with scikit-learn, and group its features into fifteen players."""
    data = sklearn_data("load_breast_cancer")
    x, y = torch.from_numpy(data.data).float(), torch.from_numpy(data.target).long()
    groups = {
        f"{quantity} ({statistic})": [pattern.format(member) for member in members]
        for quantity, members in QUANTITIES.items()
        for statistic, pattern in STATISTICS.items()
    }
    players = Players.groups(groups, list(data.feature_names))
    return Task.split(x, y, players, tuple(str(name) for name in data.target_names), seed, standardise=True)


def tumour_model(task: Task, seed: int, epochs: int = 200) -> nn.Module:
    """Train a small MLP: 30–32–32–2, by Adam on the whole training set."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        features = task.x.shape[1]
        model = nn.Sequential(nn.Linear(features, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 2))
    return train(model, task, epochs, batch=len(task.x), rate=0.005, seed=seed)


def closest_call(model: nn.Module, task: Task) -> int:
    """Choose the malignant test sample that the model is least sure of."""
    with torch.no_grad():
        logits = model(task.x_test)
    margin = torch.where(task.y_test == 0, (logits[:, 0] - logits[:, 1]).abs(), torch.inf)
    return int(margin.argmin())
