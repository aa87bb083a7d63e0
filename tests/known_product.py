"""A product whose baseline values are known, and uniform samples of it."""

import torch

DELTA = torch.tensor([0.2, 0.8, 0.5, 0.35]).double()


def uniform(rows=128, players=4, seed=0):
    return torch.rand(rows, players, generator=torch.Generator().manual_seed(seed)).double()


def product(rows):
    """One pattern: absent when any variable is at its δ."""
    return (rows - DELTA).prod(1)
