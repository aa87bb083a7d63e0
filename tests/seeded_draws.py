"""Draws that a seed fixes: generators, and normal rows in single and double precision."""

import torch


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal_rows(*shape, seed=0):
    """Draw standard normal numbers in single precision, as most networks take them."""
    return torch.randn(*shape, generator=generator(seed))


def randn(*shape, seed=0):
    """Draw the numbers of `normal_rows`, in double precision."""
    return normal_rows(*shape, seed=seed).double()
