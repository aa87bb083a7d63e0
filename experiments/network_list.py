"""The networks of the experiments: how long they were trained, and how accurate they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.trained_models import COMMITTED, RECIPES, load, model_file

# The experiments that read each network, by data set and name.
USED_IN = {
    ("census", "mlp"): "fig-2, fig-3, fig-5, fig-8, cost, audits",
    ("credit", "mlp"): "fig-3, fig-8, cost, audits",
    ("mnist", "lenet"): "table-1, table-8, fig-3, fig-4, fig-5, fig-7, cost",
    ("mnist", "alexnet"): "table-8",
    ("mnist", "resnet32"): "fig-5",
    ("mnist", "vgg16"): "fig-5",
    ("cifar10", "resnet20"): "table-1, table-8, fig-3, fig-7, cost",
    ("cifar10", "resnet32"): "fig-5, beyond the paper",
    ("cifar10", "vgg16"): "fig-5, beyond the paper",
    ("sst2", "cnn"): "fig-5",
    ("sst2", "lstm"): "fig-5",
}


@dataclass(frozen=True)
class Listed:
    """A network, the epochs of its recipe, and its accuracy on the test samples, if it comes along."""

    data_set: str
    network: str
    epochs: int
    stops_early: bool
    accuracy: float | None
    used_in: str

    def cells(self) -> list[str]:
        """Return the row of the table of networks."""
        epochs = f"at most {self.epochs}" if self.stops_early else f"{self.epochs}"
        accuracy = "does not come along" if self.accuracy is None else f"{self.accuracy:.2%}"
        return [self.data_set, self.network, epochs, accuracy, self.used_in]


def networks() -> Iterator[Listed]:
    """Yield the networks that experiments read, with the accuracies of those that come along.

    >>> next(networks()).cells()[:3]
    ['census', 'mlp', 'at most 60']
    """
    for (data_set, network), used_in in USED_IN.items():
        recipe = RECIPES[data_set][network]
        path = COMMITTED / model_file(data_set, 0, network).name
        accuracy = load(path)[1].test_accuracy if path.is_file() else None
        yield Listed(data_set, network, recipe.epochs, recipe.patience is not None, accuracy, used_in)
