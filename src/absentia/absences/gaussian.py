"""The conditional distribution of a Gaussian as an absence: in closed form, from a shrunk covariance.

With present entries P and absent ones A, the conditional mean of the residual r = x − μ is Σ_AP Σ_PP⁻¹ r_P, which
with the precision Λ = Σ⁻¹ is −Λ_AA⁻¹ Λ_AP r_P: the smaller of the two systems is solved. By Matheron's rule
[wilson2021pathwise] a draw from the conditional distribution needs no more: with z ~ N(μ, Σ) it is
z_A + Σ_AP Σ_PP⁻¹ (x_P − z_P). So the same z serve all coalitions and all samples, and the mean is the case z = μ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, InitVar, dataclass, field

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import ConditionalFill, Fill, Samples, check_draws, check_floating, check_shape
from absentia.data import Table, check_rows, mean_and_deviation, seeded
from absentia.errors import wrong

# A variance that the other entries leave open by less than this is lost in rounding errors.
_LEAST_PIVOT = 1e-10
# Columns that are copies of each other leave a covariance without an inverse, whatever the number of rows.
_LEAST_SHRINKAGE = 1e-6
# The systems of as many coalitions are solved at once as take 64 MiB.
_NUMBERS_AT_A_TIME = 2**23
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True, eq=False)
class GaussianConditional:
    """Values that a Gaussian with the data's mean and covariance draws, or expects, given the present entries.

    Parameters
    ----------
    data : array of shape (rows, …)
        The rows that the mean and the covariance are taken from.
    draws : int, optional
        The number of draws from the conditional distribution, 10 by default; a game averages over them.
    sample : bool, default True
        Whether to draw. With False the conditional mean is the only stand-in.
    shrinkage : float, optional
        By how much to shrink the covariance of the standardised data towards a multiple of the identity, from 0 to
        1. By default the amount that Ledoit and Wolf derive [ledoit2004covariance].
    seed : int, default 0
        The seed of the draws.

    Examples
    --------
    >>> data = torch.tensor([[-1.0, -2.0], [1.0, 2.0], [0.5, -1.0], [-0.5, 1.0]])
    >>> absence = GaussianConditional(data, sample=False, shrinkage=0.0)
    >>> absence
    GaussianConditional(of 4 rows, shrinkage 0, the mean)
    >>> present = torch.tensor([[[True, False]]])
    >>> absence.bind(torch.tensor([[1.0, 9.0]]))(slice(None), present).squeeze()  # the slope is Σ₁₂/Σ₁₁ = 3/2.5
    tensor([1.0000, 1.2000])
    """

    data: InitVar[Table]
    _: KW_ONLY
    draws: int | None = None
    sample: bool = True
    shrinkage: float | None = None
    seed: int = 0
    rows: int = field(init=False)
    shape: tuple[int, ...] = field(init=False)
    mean: Float[Tensor, " entries"] = field(init=False)
    scale: Float[Tensor, " entries"] = field(init=False)  # standard deviations; 0 where an entry never changes
    covariance: Float[Tensor, "entries entries"] = field(init=False)  # of standardised entries, shrunk
    precision: Float[Tensor, "entries entries"] = field(init=False)
    centres: Float[Tensor, "draws entries"] = field(init=False)  # z, standardised; 0 for the mean

    def __post_init__(self, data: Table) -> None:
        rows = check_rows(data, least=2)
        if self.shrinkage is not None and not 0 <= self.shrinkage <= 1:
            raise wrong("shrinkage", "lie between 0 and 1", self.shrinkage)
        if not self.sample and self.draws not in (None, 1):
            raise wrong("draws", "be left out for the conditional mean", self.draws, "Use sample=True for draws.")
        draws = self.draws if self.draws is not None else 10 if self.sample else 1
        check_draws(draws)
        mean, scale, covariance, intensity = _correlations(rows.flatten(1))
        shrinkage = intensity if self.shrinkage is None else float(self.shrinkage)
        average = covariance.trace() / len(covariance)
        covariance = (1 - shrinkage) * covariance + shrinkage * average * torch.eye(len(covariance)).to(covariance)
        # An entry that never changes has no correlation and a scale of 0: any variance but 0 will do.
        covariance.diagonal()[scale == 0] = 1.0
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if bool(failed) or float(factor.diagonal().square().min()) < _LEAST_PIVOT:
            then = "Leave it out for one that fits the data."
            raise wrong("shrinkage", "be large enough for a covariance with an inverse", f"{shrinkage:g}", then)
        centres = torch.zeros(draws, len(mean), dtype=torch.float64)
        if self.sample:
            centres = torch.randn(centres.shape, generator=seeded(self.seed), dtype=torch.float64) @ factor.T.cpu()
        vars(self).update(draws=draws, shrinkage=shrinkage, rows=len(rows), shape=tuple(rows.shape[1:]))
        vars(self).update(mean=mean, scale=scale, covariance=covariance, precision=torch.cholesky_inverse(factor))
        vars(self).update(centres=centres.to(mean.device))

    def __repr__(self) -> str:
        what = f"{len(self.centres)} draws, seed {self.seed}" if self.sample else "the mean"
        return f"GaussianConditional(of {self.rows} rows, shrinkage {self.shrinkage:.3g}, {what})"

    def bind(self, x: Samples) -> Fill:
        """Put the distribution beside the samples."""
        check_shape("data", self.shape, x)
        check_floating("GaussianConditional", x, "Use NearestNeighbours or Marginal for tokens.")
        return ConditionalFill(x, tuple(range(len(self.centres))), self._stand_ins)

    def _stand_ins(self, x: Tensor, presence: Tensor, draws: list[int]) -> Tensor:
        """Solve for the absent entries of each coalition, or of each sample's coalition."""
        mean, scale, centres = (tensor.to(x.device) for tensor in (self.mean, self.scale, self.centres[draws]))
        matrices = (self.covariance.to(x.device), self.precision.to(x.device))
        standardised = (x.flatten(1).double() - mean) / torch.where(scale > 0, scale, 1.0)
        residuals, rows = standardised[:, None] - centres, presence.flatten(2)
        if len(rows) == 1:  # one system for all samples
            found = _complete(matrices, rows[0], residuals.flatten(0, 1)[None].expand(rows.shape[1], -1, -1))
            found = found.unflatten(1, residuals.shape[:2]).transpose(0, 1)
        else:
            own = residuals[:, None].expand(-1, rows.shape[1], -1, -1)
            found = _complete(matrices, rows.flatten(0, 1), own.flatten(0, 1)).unflatten(0, rows.shape[:2])
        return (mean + scale * centres + scale * found).to(x.dtype).unflatten(-1, x.shape[1:])


def _correlations(
    rows: Shaped[Tensor, "rows entries"],
) -> tuple[Float[Tensor, " entries"], Float[Tensor, " entries"], Float[Tensor, "entries entries"], float]:
    """Return means, standard deviations, correlations, and the intensity by which to shrink the correlations.

    With S the covariance of n standardised rows x of d entries and m = tr S/d, it is [ledoit2004covariance]

        min(1, (Σ‖x‖⁴/n − ‖S‖²) / n / (‖S‖² − d·m²)).

    An entry that never changes has a standard deviation of 0 and no correlation with any other.
    """
    count, entries = rows.shape
    mean, scale = mean_and_deviation(rows)
    total = torch.zeros(entries, entries, dtype=torch.float64, device=rows.device)
    fourth = torch.zeros((), dtype=torch.float64, device=rows.device)
    for some in rows.split(_ROWS_AT_A_TIME):
        standardised = torch.where(scale > 0, (some.double() - mean) / scale, 0.0)
        total += standardised.T @ standardised
        fourth += standardised.square().sum(1).square().sum()
    covariance = total / count
    strength = covariance.square().sum()
    spread = strength - covariance.trace() ** 2 / entries
    intensity = float((fourth / count - strength) / count / spread) if spread > 0 else 0.0
    return mean, scale, covariance, min(1.0, max(_LEAST_SHRINKAGE, intensity))


def _complete(
    matrices: tuple[Tensor, Tensor], rows: Tensor, residuals: Float[Tensor, "coalitions vectors flat"]
) -> Float[Tensor, "coalitions vectors flat"]:
    """Predict the absent part of each coalition's residuals from the present part."""
    covariance, precision = matrices
    found = torch.empty(residuals.shape, dtype=residuals.dtype, device=residuals.device)
    few_present = 2 * rows.sum(1) <= rows.shape[1]
    for some in _alike(rows, few_present, residuals.shape[1]):
        known = residuals[some] * rows[some, None]
        found[some] = _solve(covariance, rows[some], known) @ covariance
    for some in _alike(~rows, ~few_present, residuals.shape[1]):
        known = residuals[some] * rows[some, None]
        found[some] = -_solve(precision, ~rows[some], known @ precision)
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
    # The chosen entries come first. Smaller systems are padded by rows of the identity, with right-hand sides of 0.
    index = (~chosen).byte().argsort(dim=1, stable=True)[:, :size]
    used = chosen.gather(1, index)
    systems = matrix[index[:, :, None], index[:, None, :]] * (used[:, :, None] & used[:, None, :])
    systems.diagonal(dim1=1, dim2=2).add_(~used)
    wide = index[:, None].expand(-1, right.shape[1], -1)
    known = (right.gather(2, wide) * used[:, None]).transpose(1, 2)
    solved = torch.cholesky_solve(known, torch.linalg.cholesky(systems)).transpose(1, 2)
    return torch.zeros_like(right).scatter_add_(2, wide, solved)
