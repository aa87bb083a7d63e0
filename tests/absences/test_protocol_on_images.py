"""On real images, absences that look at what is present guess absent pixels better than those that do not."""

import pytest
import torch
from sklearn.datasets import load_digits

from absentia import Players
from absentia.absences import Baseline, GaussianConditional, Marginal, NearestNeighbours, train_imputer
from absentia.absences.training import random_presence

PLAYERS = Players.grid((1, 8, 8), cells=(4, 4))


def digits():
    images = torch.tensor(load_digits().images / 16).float()[:, None]
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(0))].split([1500, 297])


DATA, HELD_OUT = digits()
PRESENCE = random_presence(PLAYERS, 4 * len(HELD_OUT), torch.Generator().manual_seed(3)).unflatten(0, (297, 4))


def error(absence):
    """The error of absent pixels of images that the absence never saw, in grey from 0 to 1."""
    means = absence.bind(HELD_OUT)(slice(None), PRESENCE).mean(2)
    return float((means - HELD_OUT[:, None])[~PRESENCE].square().mean().sqrt())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "share"),
    [
        (lambda: GaussianConditional(DATA), 0.92),
        (lambda: GaussianConditional(DATA, sample=False), 0.85),
        (lambda: NearestNeighbours(DATA), 0.8),
        (lambda: train_imputer(DATA, players=PLAYERS, epochs=60), 0.88),
    ],
    ids=["Gaussian", "Gaussian mean", "neighbours", "imputer"],
)
def test_absent_pixels_are_guessed_from_present_ones(make, share):
    absence = make()
    for other in (Baseline.mean(DATA), Marginal(DATA, draws=50)):
        assert error(absence) < share * error(other)
