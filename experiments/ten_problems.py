"""Ten problems to compare absences on: a trained model, rows to learn from, held-out rows, and players.

Five models are small and trained here, by the seed that also splits the data. The others are those of the other
experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

import absentia as ab
from experiments.datasets import LOADERS, ImageData, TabularData
from experiments.networks import drawn_by
from experiments.tabular_baselines import raw_zero
from experiments.trained_models import Header, load, model_file, trained
from experiments.training import accuracy
from experiments.tree_baselines import train_trees

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]

# Images to learn from; the statistics of more would hardly differ.
IMAGES = 10_000
# The recipe of ResNet-20 takes hours without a GPU. `python -m experiments train cifar10 --epochs 4` will do.
BRIEF_EPOCHS = 4
# Measurements of a tumour's cells, by the quality that they describe.
QUALITIES = {
    "size": ("radius", "perimeter", "area"),
    "texture": ("texture",),
    "smoothness": ("smoothness",),
    "concavity": ("compactness", "concavity", "concave points"),
    "form": ("symmetry", "fractal dimension"),
}
STATISTICS = {"mean": "mean {}", "error": "{} error", "worst": "worst {}"}


@dataclass(frozen=True, eq=False)
class Problem:
    """A trained model, training rows, held-out rows in random order, and the players."""

    name: str
    about: str  # the model, in words
    model: Any
    x: Float[Tensor, "rows *entries"]
    y: Int64[Tensor, " rows"] | None  # None for a regression
    x_test: Float[Tensor, "held_out *entries"]
    y_test: Int64[Tensor, " held_out"] | None
    players: ab.Players
    zero: ab.Baseline  # the 0 of the columns or pixels as published
    categorical: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a table or of images, split by the seed; tables are standardised by their training rows."""

    x: Float[Tensor, "rows *entries"]
    y: Float[Tensor, " rows"]
    x_test: Float[Tensor, "held_out *entries"]
    y_test: Float[Tensor, " held_out"]
    zero: ab.Baseline


def _sklearn(name: str, **options: Any) -> Any:
    """Load a data set that scikit-learn brings along."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ab.AbsentiaError("scikit-learn must be installed. Run pip install 'absentia[experiments]'.") from error
    return getattr(datasets, f"load_{name}")(**options)


def _split(x: Any, y: Any, share: float, seed: int) -> Split:
    """Draw training rows, standardise tables, and keep images as they are."""
    rows = torch.as_tensor(x).float()
    targets = torch.as_tensor(y).float()
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    training = order[: int(share * len(rows))]
    rest = order[int(share * len(rows)) :]
    zero = ab.Baseline(0.0)
    if rows.ndim == 2:
        mean = rows[training].mean(0)
        std = rows[training].std(0)
        rows = (rows - mean) / std
        zero = ab.Baseline(-mean / std)
    return Split(rows[training], targets[training], rows[rest], targets[rest], zero)


def _fit(
    layers: Callable[[], nn.Module],
    x: Tensor,
    y: Tensor,
    seed: int,
    *,
    epochs: int,
    batch: int,
    rate: float,
    decay: float = 0.0,
    loss: Loss = nn.functional.cross_entropy,
) -> nn.Module:
    """Train a small network by AdamW with a constant rate."""
    with drawn_by(seed):
        network = layers()
        optimiser = torch.optim.AdamW(network.parameters(), rate, weight_decay=decay)
        for _ in range(epochs):
            for batch_rows in torch.randperm(len(x)).split(batch):
                optimiser.zero_grad()
                loss(network(x[batch_rows]), y[batch_rows]).backward()
                optimiser.step()
    return network.eval().requires_grad_(False)


def _mlp(widths: Sequence[int], activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    layers: list[nn.Module] = []
    for number, width in enumerate(widths[1:]):
        layers += [nn.Linear(widths[number], width), activation()]
    return nn.Sequential(*layers[:-1])


def _cnn() -> nn.Module:
    """Build a small network for images of 8 × 8 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def _classified(
    name: str, kind: str, split: Split, players: ab.Players, layers: Callable[[], nn.Module], seed: int, **recipe: Any
) -> Problem:
    """Train a classifier, and make its problem."""
    y = split.y.long()
    y_test = split.y_test.long()
    model = _fit(layers, split.x, y, seed, **recipe)
    about = f"{kind}, accuracy {accuracy(model, split.x_test, y_test):.1%}"
    return Problem(name, about, model, split.x, y, split.x_test, y_test, players, split.zero)


def wine(seed: int) -> Problem:
    """Predict which of three cultivars a wine is from, by 13 measurements."""
    bunch = _sklearn("wine")
    split = _split(bunch.data, bunch.target, 0.7, seed)
    players = ab.Players.features(list(bunch.feature_names))
    layers = partial(_mlp, (13, 40, 40, 3))
    kind = "MLP 13-40-40-3"
    return _classified("wine", kind, split, players, layers, seed, epochs=150, batch=120, rate=5e-3)


def tumours(seed: int) -> Problem:
    """Predict whether a tumour is benign, by 30 measurements: five qualities of cells, three statistics of each."""
    bunch = _sklearn("breast_cancer")
    groups = {
        f"{quality}, {statistic}": [words.format(measured) for measured in QUALITIES[quality]]
        for quality in QUALITIES
        for statistic, words in STATISTICS.items()
    }
    split = _split(bunch.data, bunch.target, 0.75, seed)
    players = ab.Players.groups(groups, list(bunch.feature_names))
    layers = partial(_mlp, (30, 32, 32, 2), nn.GELU)
    kind = "MLP 30-32-32-2"
    return _classified("tumours", kind, split, players, layers, seed, epochs=200, batch=1000, rate=5e-3)


def digits(seed: int, cells: tuple[int, int], name: str) -> Problem:
    """Predict which digit an image of 8 × 8 pixels shows."""
    bunch = _sklearn("digits")
    split = _split(bunch.images[:, None] / 16, bunch.target, 0.75, seed)
    players = ab.Players.grid((1, 8, 8), cells)
    return _classified(name, "CNN of two layers", split, players, _cnn, seed, epochs=15, batch=32, rate=3e-3)


def diabetes(seed: int) -> Problem:
    """Predict how far diabetes progresses within a year, by ten measurements; in standard deviations."""
    bunch = _sklearn("diabetes", scaled=False)
    split = _split(bunch.data, bunch.target, 0.75, seed)
    players = ab.Players.features(list(bunch.feature_names))
    mean = split.y.mean()
    std = split.y.std()
    y = (split.y - mean) / std
    y_test = (split.y_test - mean) / std

    def loss(output: Tensor, wanted: Tensor) -> Tensor:
        return (output[:, 0] - wanted).square().mean()

    layers = partial(_mlp, (10, 32, 32, 1))
    model = _fit(layers, split.x, y, seed, epochs=60, batch=64, rate=3e-3, decay=0.1, loss=loss)
    r2 = 1 - float(loss(model(split.x_test), y_test) / y_test.var(correction=0))
    about = f"MLP 10-32-32-1, a regression, R² {r2:.2f}"
    return Problem("diabetes", about, model, split.x, None, split.x_test, None, players, split.zero)


def table(seed: int, name: str) -> Problem:
    """Return the network of the census or the credit data, trained by the seed."""
    data = LOADERS[name]()
    model = trained(name, seed)
    about = f"MLP {data.x_train.shape[1]}-100-100-2, accuracy {accuracy(model, data.x_test, data.y_test):.1%}"
    return _of_table(data, name, about, model.requires_grad_(False), seed)


def trees(seed: int) -> Problem:
    """Train boosted trees on the census data, which have no gradient."""
    data = LOADERS["census"]()
    predict, score = train_trees(data, seed, iterations=100)
    model = ab.from_numpy(predict, probabilities=True)
    about = f"100 boosted trees, accuracy {score:.1%}"
    return _of_table(data, "trees", about, model, seed, data.categorical)


def _of_table(
    data: TabularData, name: str, about: str, model: Any, seed: int, categorical: tuple[int, ...] = ()
) -> Problem:
    players = ab.Players.features(data.feature_names)
    zero = ab.Baseline(raw_zero(data))
    x_test, y_test = _shuffled(data.x_test, data.y_test, seed)
    return Problem(name, about, model, data.x_train, data.y_train, x_test, y_test, players, zero, categorical)


def photographs(seed: int, name: str) -> Problem:
    """Return the network of the MNIST or the CIFAR-10 images in 16 cells; the seed draws the images only."""
    data: ImageData = LOADERS[name]()
    model, header = _network_of_images(name)
    if name == "cifar10":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # the same values sooner
    x, y = _shuffled(data.x_train, data.y_train, seed, IMAGES)
    x_test, y_test = _shuffled(data.x_test, data.y_test, seed)
    epochs = header.recipe.partition("epochs=")[2].partition(",")[0]
    about = f"{header.architecture} of {epochs} epochs, seed 0 for all seeds, accuracy {header.test_accuracy:.1%}"
    shape = (int(x.shape[1]), int(x.shape[2]), int(x.shape[3]))
    return Problem(name, about, model, x, y, x_test, y_test, ab.Players.grid(shape, (4, 4)), ab.Baseline(0.0))


def _network_of_images(name: str) -> tuple[nn.Module, Header]:
    """Load the network of the recipe, or one of fewer epochs if it was trained instead; else train the first."""
    path = model_file(name, epochs=BRIEF_EPOCHS)
    if model_file(name).is_file() or not path.is_file():
        trained(name)
        path = model_file(name)
    model, header = load(path)
    return model.requires_grad_(False), header


def _shuffled(x: Tensor, y: Tensor, seed: int, most: int | None = None) -> tuple[Tensor, Tensor]:
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:most]
    return x[order], y[order]


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "wine": wine,
    "tumours": tumours,
    "digits12": partial(digits, cells=(4, 3), name="digits12"),
    "digits64": partial(digits, cells=(8, 8), name="digits64"),
    "diabetes": diabetes,
    "census": partial(table, name="census"),
    "credit": partial(table, name="credit"),
    "mnist": partial(photographs, name="mnist"),
    "cifar10": partial(photographs, name="cifar10"),
    "trees": trees,
}
