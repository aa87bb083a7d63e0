"""The networks of the experiments: how long they were trained, and how accurate they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments.experiment import Record
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


# The figures of a record that say how often a network that does not come along is right, and of how many samples.
ACCURACY = "accuracy of the network"
OF_SAMPLES = "samples of the accuracy"
# The experiment and the part whose record has them.
MEASURED_BY = {
    ("mnist", "alexnet"): ("table-8", "mnist-alexnet"),
    ("mnist", "vgg16"): ("fig-5", "mnist-vgg16"),
    ("cifar10", "vgg16"): ("fig-5", "cifar10-vgg16"),
    ("sst2", "cnn"): ("fig-5", "sst2-cnn"),
    ("sst2", "lstm"): ("fig-5", "sst2-lstm"),
}


@dataclass(frozen=True)
class Listed:
    """A network, the epochs of its recipe, and its accuracy on the test samples, if it comes along."""

    data_set: str
    network: str
    epochs: int
    stops_early: bool
    accuracy: float | None
    samples: int | None  # that the accuracy is of, if not of all test samples
    used_in: str

    def cells(self) -> list[str]:
        """Return the row of the table of networks."""
        epochs = f"at most {self.epochs}" if self.stops_early else f"{self.epochs}"
        return [self.data_set, self.network, epochs, self.accuracy_words, self.used_in]

    @property
    def accuracy_words(self) -> str:
        """The accuracy in words."""
        if self.accuracy is None:
            return "not in a record"
        if self.samples is None:
            return f"{self.accuracy:.2%}"
        return f"{self.accuracy:.2%} of {self.samples:,}"


def networks(records: Mapping[str, Record]) -> Iterator[Listed]:
    """Yield the networks that experiments read, with the accuracies of those that come along or are in a record.

    >>> next(networks({})).cells()[:3]
    ['census', 'mlp', 'at most 60']
    """
    for (data_set, network), used_in in USED_IN.items():
        recipe = RECIPES[data_set][network]
        accuracy, samples = _accuracy(data_set, network, records)
        yield Listed(data_set, network, recipe.epochs, recipe.patience is not None, accuracy, samples, used_in)


def _accuracy(data_set: str, network: str, records: Mapping[str, Record]) -> tuple[float | None, int | None]:
    """Return the accuracy of a network, and of how many test samples it is if not of all."""
    path = COMMITTED / model_file(data_set, 0, network).name
    if path.is_file():
        return load(path)[1].test_accuracy, None
    experiment, part = MEASURED_BY.get((data_set, network), ("", ""))
    figures = records[experiment].figures().get(part, {}) if experiment in records else {}
    if ACCURACY not in figures:
        return None, None
    return figures[ACCURACY], int(figures[OF_SAMPLES])
