"""The kernels of a sample's game, fitted to drawn coalitions: those of both parts together.

A player that interacts with others does so in the odd and in the even part. So both parts have the same weights of
players, which twice as many values tell.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.cube.kernels import LEAST_NOISE, CubeKernel, Part, Signs, part_of, signs_of
from absentia.cube.likelihood import STAGES, PartValues, Stage, fit_kernels, weights_by_slope
from absentia.cube.posterior import scale_of
from absentia.data import seeded
from absentia.errors import wrong
from absentia.solvers.paired_draws import PairedValues

# If a linear fit leaves less than this share of the odd part, it is linear.
_LINEAR_SHARE = 1e-9
# An even part whose values differ by no more than this share of the largest is constant.
_CONSTANT_SHARE = 1e-9
# The weight of each player in a part that is linear or constant, where it does not matter.
_FREE_WEIGHT = 0.02
# Fitted kernels depend on the coalitions that they see, which are drawn by this.
_FIT_DRAW = "coalitions of the fit"


def kernels_of_parts(
    signs: Signs,
    values: Mapping[Part, Float[Tensor, " coalitions"]],
    free: Collection[Part],
    seed: int,
    stages: tuple[Stage, ...] = STAGES,
) -> dict[Part, CubeKernel]:
    """Fit the kernels of both parts together. Those of ``free`` parts, which need no fit, say that nothing varies."""
    parts = [PartValues(part, values[part] / scale_of(values[part])) for part in Part if part not in free]
    kernels = {part: free_kernel(part, signs) for part in free}
    if parts:
        start = weights_by_slope(signs, values[Part.ODD])
        for kernel in fit_kernels(signs, parts, start, seeded(seed, _FIT_DRAW), stages):
            kernels[kernel.part] = kernel
    return kernels


def kernel_of_odd_part(
    signs: Signs,
    odd: Float[Tensor, " coalitions"],
    even: Float[Tensor, " coalitions"],
    seed: int,
    stages: tuple[Stage, ...] = STAGES,
) -> CubeKernel:
    """Fit the kernel of an odd part that is not linear; the even part helps to tell the weights of players."""
    check_small(even)
    values = {Part.ODD: odd, Part.EVEN: even}
    free = [Part.EVEN] if is_free(Part.EVEN, signs, even) else []
    return kernels_of_parts(signs, values, free, seed, stages)[Part.ODD]


def is_free(part: Part, signs: Signs, values: Float[Tensor, " coalitions"]) -> bool:
    """Return whether a part is what a process leaves free: linear if it is odd, constant if it is even."""
    if part is Part.ODD:
        return _is_linear(signs, values)
    return float((values - values[0]).abs().max()) <= _CONSTANT_SHARE * float(values.abs().max())


def _is_linear(signs: Signs, values: Float[Tensor, " coalitions"]) -> bool:
    """Return whether a linear function of the signs gives all values; never for as few coalitions as players."""
    if len(signs) <= signs.shape[1]:
        return bool((values == 0).all())
    slopes = torch.linalg.lstsq(signs, values[:, None], driver="gelsd").solution
    residual = values - (signs @ slopes)[:, 0]
    return float(residual.abs().max()) <= _LINEAR_SHARE * float(values.abs().max())


def free_kernel(part: Part, signs: Signs) -> CubeKernel:
    """Return the kernel of a part that is linear or constant: hardly anything varies beside."""
    weights = torch.full((signs.shape[1],), _FREE_WEIGHT).to(signs)
    return CubeKernel(part, weights, amplitude=LEAST_NOISE, noise=LEAST_NOISE)


def signs_with_full(values: PairedValues) -> Signs:
    """Return the signs of all players together, and of the drawn coalition of each pair."""
    coalitions = values.coalitions
    everyone = torch.ones(1, coalitions.shape[1], dtype=torch.bool)
    return signs_of(torch.cat([everyone, coalitions]))


def part_with_full(part: Part, values: PairedValues) -> Float[Tensor, "samples groups coalitions"]:
    """Return one part of the values of the same coalitions, by sample and group of draws."""
    empty = values.ends_by_group[:, :, :1]
    full = values.ends_by_group[:, :, 1:]
    first = torch.cat([full, values.drawn_by_group], dim=2)
    second = torch.cat([empty, values.complements_by_group], dim=2)
    return part_of(part, first, second)


def check_small(values: Float[Tensor, " coalitions"]) -> None:
    """Raise an error for values that are too large to be squared."""
    if not math.isfinite(float(values.square().sum())):
        largest = float(values.abs().max())
        raise wrong("values of the game", "be small enough for sums over coalitions", f"{largest:.3g}")
