"""Models as the commands load them, and the values that they should have."""

import torch

import absentia as ab
from absentia.cli.model_files import load_model
from absentia.cli.trial_runs import fit_model
from own_files import make_network, make_rows

X = torch.from_numpy(make_rows()[0])


def values(model, x=X):
    return ab.value_table(ab.MaskedModel(model, x[:5], absence=ab.Baseline(0.0))).values


def expected():
    return values(make_network())


def load(word, *, probabilities=False, **options):
    return fit_model(load_model(word, **options), X, probabilities=probabilities)[0]
