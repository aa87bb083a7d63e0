"""Forward selection of features by orthogonal least squares: the feature that explains most is added each time."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

# A feature of which less than this share is left after those that were chosen adds nothing.
_LEAST_LEFT = 1e-6
# Selection ends if the residuals are this share of the values.
_LEAST_RESIDUAL = 1e-14
# A share of the features' mean square that is added to each, against rounding errors.
_RIDGE = 1e-10


class Path(NamedTuple):
    """Features in the order in which they were chosen."""

    chosen: Int[Tensor, " steps"]
    residual_squares: Float[Tensor, " steps"]  # the sum of squares that is left after each step


class LeastSquares(NamedTuple):
    """A linear fit: coefficients, and the inverse of the features' products."""

    coefficients: Float[Tensor, " features"]
    inverse: Float[Tensor, "features features"]


def forward_path(features: Float[Tensor, "rows features"], values: Float[Tensor, " rows"], most: int) -> Path:
    """Choose features one by one, the first of all at first, until nothing is left to explain."""
    products = (features.T @ features).double()
    moments = features.double().T @ values
    total = float(values @ values)
    count = features.shape[1]
    most = min(most, count)
    factor = products.new_zeros(count, most)  # of the products, for the chosen features
    left = products.diagonal().clone()  # of each feature's square, without what the chosen ones explain
    least = _LEAST_LEFT * left
    is_open = torch.ones(count, dtype=torch.bool)
    chosen: list[int] = []
    residual_squares: list[float] = []
    residual = total
    for step in range(most):
        gains = torch.where(is_open & (left > least), moments.square() / left.clamp_min(1e-300), 0.0)
        best = int(gains.argmax()) if step > 0 else 0
        if step > 0 and float(gains[best]) <= _LEAST_RESIDUAL * total:
            break
        column = (products[:, best] - factor[:, :step] @ factor[best, :step]) / left[best].sqrt()
        along = moments[best] / left[best].sqrt()
        factor[:, step] = column
        moments = moments - column * along
        left = left - column.square()
        is_open[best] = False
        residual = max(0.0, residual - float(along) ** 2)
        chosen.append(best)
        residual_squares.append(residual)
    return Path(torch.tensor(chosen, dtype=torch.long), torch.tensor(residual_squares, dtype=torch.float64))


def least_squares(features: Float[Tensor, "rows features"], values: Float[Tensor, " rows"]) -> LeastSquares:
    """Fit values by features, with a ridge against rounding errors."""
    products = (features.T @ features).double()
    products.diagonal().add_(_RIDGE * products.diagonal().mean())
    inverse = torch.linalg.inv(products)
    return LeastSquares(inverse @ (features.double().T @ values), inverse)
