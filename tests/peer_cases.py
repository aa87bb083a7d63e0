"""Players, absences and a model that the tests against shap, captum, shapiq and scikit-learn share."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import absentia as ab

CAPTUM_PRECISION = 2e-5  # captum sums in float32, whatever the dtype of the inputs and the model

CASES = {
    "features": ab.Players.features(["a", "b", "c", "d"]),
    "groups": ab.Players.groups({"a": [0, 3], "b": [1], "c": [4, 2]}, features=5),
    "groups and always present": ab.Players.groups({"a": [0, 3], "b": [4]}, features=5),
    "image": ab.Players.grid((2, 4, 4), cells=(2, 2)),
    "image with always present": ab.Players.grid((1, 4, 4), cells=(2, 2), only=[(0, 1), (1, 0), (1, 1)]),
}


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def network(shape: tuple[int, ...]) -> nn.Module:
    """Make a model with one output and interactions of every order, for samples of any shape."""
    entries = math.prod(shape)
    model = nn.Sequential(nn.Flatten(), nn.Linear(entries, 12), nn.Tanh(), nn.Linear(12, 1), nn.Flatten(0)).double()
    generator = torch.Generator().manual_seed(7)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8, generator=generator)
    return model.requires_grad_(False)


def as_numpy(model: Callable[[Tensor], Tensor]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: model(torch.as_tensor(rows)).detach().numpy()


@dataclass(frozen=True, eq=False)
class DependentFill:
    x: Tensor
    numbers: Tensor
    draws: int = 1

    def __call__(self, samples: slice, presence: Tensor) -> Tensor:
        share = presence.flatten(2).double().mean(2).unflatten(1, (-1, *[1] * (self.x.ndim - 1)))
        number = self.numbers[samples].view(-1, *[1] * self.x.ndim)
        return torch.where(presence, self.x[samples, None], share + number).unsqueeze(2)

    def select(self, samples: Tensor | slice | None = None, draws: Sequence[int] | None = None) -> DependentFill:
        chosen = slice(None) if samples is None else samples
        return DependentFill(self.x[chosen], self.numbers[chosen])


class Dependent:
    """An absence whose stand-ins depend on the present players and on the number of the sample in the batch."""

    def bind(self, x: Tensor) -> DependentFill:
        return DependentFill(x, torch.arange(len(x)))


class BringsOwn(Dependent):
    """An absence that runs a model of its own."""

    def instead_of(self, model: object) -> object:
        return model


def absences(x: Tensor) -> dict[str, ab.Absence]:
    entries = x.shape[1:]
    return {
        "baseline": ab.Baseline(normal(*entries, seed=2)),
        "own": ab.OwnBaselines(normal(*x.shape, seed=3)),
        "marginal": ab.Marginal(normal(5, *entries, seed=4)),
        "dependent": Dependent(),
    }


def brute_force(value: Callable[[tuple[int, ...]], float], n: int) -> list[float]:
    """Average the marginal benefit of each player over all orders of the players."""
    orders = list(itertools.permutations(range(n)))
    total = [0.0] * n
    for order in orders:
        for place, player in enumerate(order):
            total[player] += value(order[: place + 1]) - value(order[:place])
    return [sum_ / len(orders) for sum_ in total]


def assert_same(ours: Tensor, theirs: object, within: float = 1e-11) -> None:
    torch.testing.assert_close(ours, torch.as_tensor(theirs, dtype=torch.float64), rtol=within, atol=within)
    assert ours.abs().min() > 100 * within, "values near 0 agree whatever was computed"


def assert_asks_for(package: str, extra: str, monkeypatch: pytest.MonkeyPatch, use: Callable[[], object]) -> None:
    """Check that a use without its package raises an error that names what to install."""

    def refuse(name: str, *arguments: object) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("importlib.import_module", refuse)
    with pytest.raises(ab.AbsentiaError, match=rf"{package}.*install.*{re.escape(f'absentia[{extra}]')}"):
        use()
