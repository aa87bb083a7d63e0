"""The conditional distribution of a Gaussian as an absence: in closed form, from a shrunk covariance.

With present entries P and absent ones A, the conditional mean of the residual r = x − μ is Σ_AP Σ_PP⁻¹ r_P, or by the
precision Λ = Σ⁻¹ the same as −Λ_AA⁻¹ Λ_AP r_P: the smaller of the two systems is solved. A draw from the conditional
distribution needs no more than that, by Matheron's rule [wilson2021pathwise]: z ~ N(μ, Σ), then z_A + Σ_AP Σ_PP⁻¹
(x_P − z_P). So the same z serve all coalitions and all samples, and the mean is the case z = μ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absence.checks import check_draws, check_floating, check_rows, check_shape
from absentia.absence.covariance import correlations, shrink
from absentia.absence.protocols import Fill
from absentia.arrays import Table
from absentia.errors import wrong

_DRAWS = 10
# A variance that the other entries leave open by less than this is lost in rounding errors.
_LEAST_PIVOT = 1e-10
# The systems of so many coalitions are solved at once that their numbers take this much memory: 64 MiB.
_NUMBERS_AT_A_TIME = 2**23


@dataclass(frozen=True, eq=False, init=False)
class GaussianConditional:
    """The values that a Gaussian with the data's mean and covariance expects, or draws, given the present entries.

    The covariance of the standardised data is shrunk towards a multiple of the identity by ``shrinkage``, from 0 to
    1; by default the one that Ledoit and Wolf derive [ledoit2004covariance]. ``draws`` are random values from the
    conditional distribution, by ``seed``; with ``sample=False`` its mean stands in alone.

    >>> data = torch.tensor([[-1.0, -2.0], [1.0, 2.0], [0.5, -1.0], [-0.5, 1.0]])
    >>> absence = GaussianConditional(data, sample=False, shrinkage=0.0)
    >>> absence
    GaussianConditional(of 4 rows, shrinkage 0, the mean)
    >>> present = torch.tensor([[[True, False]]])
    >>> absence.bind(torch.tensor([[1.0, 9.0]]))(slice(None), present).squeeze()  # the slope is Σ₁₂/Σ₁₁ = 3/2.5
    tensor([1.0000, 1.2000])
    """

    mean: Float[Tensor, " entries"]
    scale: Float[Tensor, " entries"]  # standard deviations; 0 where an entry never changes
    covariance: Float[Tensor, "entries entries"]  # of standardised entries, shrunk
    precision: Float[Tensor, "entries entries"]
    centres: Float[Tensor, "draws entries"]  # z, standardised; 0 for the mean
    shape: tuple[int, ...]
    rows: int
    shrinkage: float
    sample: bool
    seed: int

    def __init__(
        self,
        data: Table,
        *,
        draws: int | None = None,
        sample: bool = True,
        shrinkage: float | None = None,
        seed: int = 0,
    ) -> None:
        rows = check_rows(data, least=2)
        if shrinkage is not None and not 0 <= shrinkage <= 1:
            raise wrong("shrinkage", "lie between 0 and 1", shrinkage)
        if not sample and draws not in (None, 1):
            raise wrong("draws", "be left out for the conditional mean", draws, "Say sample=True for draws.")
        draws = draws if draws is not None else _DRAWS if sample else 1
        check_draws(draws)
        mean, scale, covariance, intensity = correlations(rows.flatten(1))
        shrinkage = intensity if shrinkage is None else float(shrinkage)
        covariance = shrink(covariance, shrinkage)
        # An entry that never changes has no correlation and a scale of 0: any variance will do but 0.
        covariance.diagonal()[scale == 0] = 1.0
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if bool(failed) or float(factor.diagonal().square().min()) < _LEAST_PIVOT:
            then = "Leave it out for one that fits the data."
            raise wrong("shrinkage", "be large enough for a covariance with an inverse", f"{shrinkage:g}", then)
        centres = torch.zeros(draws, len(mean), dtype=torch.float64)
        if sample:
            generator = torch.Generator().manual_seed(seed)
            centres = torch.randn(centres.shape, generator=generator, dtype=torch.float64) @ factor.T.cpu()
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "precision", torch.cholesky_inverse(factor))
        object.__setattr__(self, "centres", centres.to(mean.device))
        object.__setattr__(self, "shape", tuple(rows.shape[1:]))
        object.__setattr__(self, "rows", len(rows))
        object.__setattr__(self, "shrinkage", shrinkage)
        object.__setattr__(self, "sample", sample)
        object.__setattr__(self, "seed", seed)

    def __repr__(self) -> str:
        what = f"{len(self.centres)} draws, seed {self.seed}" if self.sample else "the mean"
        return f"GaussianConditional(of {self.rows} rows, shrinkage {self.shrinkage:.3g}, {what})"

    def bind(self, x: Shaped[Tensor, "samples *entries"]) -> Fill:
        """Compute the samples' residuals from the mean or from each draw."""
        check_shape("data", self.shape, x)
        check_floating("GaussianConditional", x, "Use NearestNeighbours or Marginal for tokens.")
        mean, scale, centres = (tensor.to(x.device) for tensor in (self.mean, self.scale, self.centres))
        standardised = (x.flatten(1).double() - mean) / torch.where(scale > 0, scale, 1.0)
        residuals = standardised[:, None] - centres
        offsets = mean + scale * centres
        return GaussianFill(x, residuals, offsets, scale, self.covariance.to(x.device), self.precision.to(x.device))


@dataclass(frozen=True, eq=False)
class GaussianFill:
    """Samples whose absent entries a Gaussian fills in, given the present ones."""

    x: Float[Tensor, "samples *entries"]
    residuals: Float[Tensor, "samples draws flat"]
    offsets: Float[Tensor, "draws flat"]  # z, in the data's units
    scale: Float[Tensor, " flat"]
    covariance: Float[Tensor, "flat flat"]
    precision: Float[Tensor, "flat flat"]

    @property
    def draws(self) -> int:
        """How many draws from the conditional distribution, or one for its mean."""
        return len(self.offsets)

    def __call__(
        self, samples: slice, presence: Bool[Tensor, "#samples coalitions *entries"]
    ) -> Shaped[Tensor, "samples coalitions draws *entries"]:
        """Solve for the absent entries of each coalition, or of each sample's coalition."""
        x, residuals = self.x[samples], self.residuals[samples]
        rows = presence.flatten(2)
        if len(rows) == 1:  # one system for all samples
            found = self._complete(rows[0], residuals.flatten(0, 1)[None].expand(rows.shape[1], -1, -1))
            found = found.unflatten(1, residuals.shape[:2]).transpose(0, 1)
        else:
            own = residuals[:, None].expand(-1, rows.shape[1], -1, -1)
            found = self._complete(rows.flatten(0, 1), own.flatten(0, 1)).unflatten(0, rows.shape[:2])
        stand_ins = (self.offsets + self.scale * found).to(x.dtype).unflatten(-1, x.shape[1:])
        return torch.where(presence.unsqueeze(2), x[:, None, None], stand_ins)

    def _complete(self, rows: Tensor, residuals: Tensor) -> Float[Tensor, "coalitions vectors flat"]:
        """Predict the absent part of each coalition's residuals (coalitions, vectors, entries) from the present."""
        found = torch.empty(residuals.shape, dtype=residuals.dtype, device=residuals.device)
        few_present = 2 * rows.sum(1) <= rows.shape[1]
        for some in _alike(rows, few_present, residuals.shape[1]):
            known = residuals[some] * rows[some, None]
            found[some] = _solve(self.covariance, rows[some], known) @ self.covariance
        for some in _alike(~rows, ~few_present, residuals.shape[1]):
            known = residuals[some] * rows[some, None]
            found[some] = -_solve(self.precision, ~rows[some], known @ self.precision)
        return found


def _alike(chosen: Tensor, which: Tensor, vectors: int) -> Iterator[Int[Tensor, " coalitions"]]:
    """Go through some of the coalitions by the size of their systems, largest first, as many as memory allows."""
    numbers = which.nonzero().flatten()
    sizes, order = chosen[numbers].sum(1).sort(descending=True, stable=True)
    start = 0
    while start < len(order):
        numbers_each = 2 * int(sizes[start]) ** 2 + 4 * vectors * chosen.shape[1]
        stop = start + max(1, _NUMBERS_AT_A_TIME // numbers_each)
        yield numbers[order[start:stop]]
        start = stop


def _solve(
    matrix: Float[Tensor, "flat flat"],
    chosen: Bool[Tensor, "coalitions flat"],
    right: Float[Tensor, "coalitions vectors flat"],
) -> Float[Tensor, "coalitions vectors flat"]:
    """Solve M_CC w = r_C for the chosen entries C of each coalition; w is 0 elsewhere."""
    size = int(chosen.sum(1).max())
    if size == 0:
        return torch.zeros_like(right)
    row, column = chosen.nonzero(as_tuple=True)
    place = (chosen.cumsum(1) - 1)[row, column]
    # Smaller systems are padded by rows of the identity, whose right-hand sides are 0.
    index = torch.zeros(len(chosen), size, dtype=torch.int64, device=chosen.device)
    index[row, place] = column
    used = torch.zeros_like(index, dtype=torch.bool)
    used[row, place] = True
    systems = matrix[index[:, :, None], index[:, None, :]] * (used[:, :, None] & used[:, None, :])
    systems.diagonal(dim1=1, dim2=2).add_(~used)
    wide = index[:, None].expand(-1, right.shape[1], -1)
    known = (right.gather(2, wide) * used[:, None]).transpose(1, 2)
    solved = torch.cholesky_solve(known, torch.linalg.cholesky(systems)).transpose(1, 2)
    return torch.zeros_like(right).scatter_add_(2, wide, solved)
