"""An absence that draws absent entries from a Gaussian, given the present ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import ConditionalFill, Fill, Samples, check_known, check_shape
from absentia.arguments import checked
from absentia.data import Table, blocks, check_number, mean_and_deviation, read_rows, seeded
from absentia.errors import wrong

_Vectors: TypeAlias = Float[Tensor, "coalitions vectors flat"]
_Chosen: TypeAlias = Bool[Tensor, "coalitions flat"]
_Matrix: TypeAlias = Float[Tensor, "flat flat"]

_DEFAULT_DRAWS = 10
# The covariance of this many entries takes half a gigabyte.
_MOST_ENTRIES = 2**13
# A conditional variance below this is lost in rounding errors.
_LEAST_PIVOT = 1e-10
# Columns that are copies of each other make the covariance singular, whatever the number of rows.
_LEAST_SHRINKAGE = 1e-6
# Systems to solve are held for as many coalitions as take 64 MiB.
_NUMBERS_AT_A_TIME = 2**23
# Rows are converted to double precision this many at a time.
_ROWS_AT_A_TIME = 4096


@checked
@dataclass(frozen=True, eq=False)
class GaussianConditional:
    """Draws from a Gaussian with the mean and covariance of the data, or its mean, given the present entries.

    With present entries P and absent ones A, a draw is z_A + Σ_AP Σ_PP⁻¹ (x_P − z_P), where z ~ N(μ, Σ) is the same
    for all coalitions and samples (Matheron's rule [wilson2021pathwise]). The conditional mean is the case z = μ.

    Parameters
    ----------
    data : array of shape (rows, …)
    draws : int, optional
        The number of draws, over which a game averages. The default is 10.
    sample : bool, default True
        Whether to draw at random. If False, the conditional mean is the only stand-in.
    shrinkage : float, optional
        How far to shrink the covariance of the standardised data towards a multiple of the identity, from 0 to 1. The
        default is the amount derived by Ledoit and Wolf [ledoit2004covariance].
    seed : int, default 0

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
        rows = read_rows(data, least=2)
        check_known("data", rows, "GaussianConditional")
        entries = rows[0].numel()
        if entries > _MOST_ENTRIES:
            then = "Use another absence for large inputs, such as Marginal or train_imputer(data)."
            raise wrong("data", f"have at most {_MOST_ENTRIES:,} entries in a row", f"{entries:,}", then)
        check_number("shrinkage", self.shrinkage, 0, 1)
        draws = self._number_of_draws()
        moments = _correlations(rows.flatten(1))
        shrinkage = moments.shrinkage if self.shrinkage is None else float(self.shrinkage)
        covariance = _shrunk(moments, shrinkage)
        factor = _cholesky_factor(covariance, shrinkage)
        if self.sample:
            noise = torch.randn(draws, entries, generator=seeded(self.seed), dtype=torch.float64)
            centres = (noise @ factor.T.cpu()).to(rows.device)
        else:
            centres = torch.zeros(1, entries, dtype=torch.float64, device=rows.device)
        # A frozen dataclass does not let its own attributes be assigned.
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "shrinkage", shrinkage)
        object.__setattr__(self, "rows", len(rows))
        object.__setattr__(self, "shape", tuple(rows.shape[1:]))
        object.__setattr__(self, "mean", moments.mean)
        object.__setattr__(self, "scale", moments.scale)
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "precision", torch.cholesky_inverse(factor))
        object.__setattr__(self, "centres", centres)

    def _number_of_draws(self) -> int:
        """Return the number of stand-ins for a coalition, or raise an error if it does not fit the other options."""
        if not self.sample:
            if self.draws not in (None, 1):
                raise wrong("draws", "be left out for the conditional mean", self.draws, "Use sample=True for draws.")
            return 1
        if self.draws is None:
            return _DEFAULT_DRAWS
        check_number("draws", self.draws, 1)
        return self.draws

    def __repr__(self) -> str:
        stand_ins = f"{len(self.centres)} draws, seed {self.seed}" if self.sample else "the mean"
        return f"GaussianConditional(of {self.rows} rows, shrinkage {self.shrinkage:.3g}, {stand_ins})"

    def bind(self, x: Samples) -> Fill:
        """Convert the distribution to the dtype and device of the samples."""
        check_shape("data", self.shape, x, "GaussianConditional")
        check_known("x", x, "GaussianConditional")
        return ConditionalFill(x, tuple(range(len(self.centres))), self._stand_ins)

    def _stand_ins(self, x: Tensor, presence: Tensor, draws: list[int]) -> Tensor:
        """Compute the absent entries for coalitions that all samples share, or for each sample's own coalitions."""
        mean = self.mean.to(x.device)
        scale = self.scale.to(x.device)
        centres = self.centres[draws].to(x.device)
        standardised = (x.flatten(1).double() - mean) / torch.where(scale > 0, scale, 1.0)
        residuals = standardised[:, None] - centres
        present = presence.flatten(2)
        owners, coalitions, entries = present.shape  # one owner if all samples share their coalitions
        # A coalition that all samples share is one linear system, with the residuals of all samples and draws.
        vectors = residuals.reshape(owners, 1, -1, entries).expand(-1, coalitions, -1, -1)
        predicted = _predict(
            self.covariance.to(x.device), self.precision.to(x.device), present.flatten(0, 1), vectors.flatten(0, 1)
        )
        by_sample = predicted.view(owners, coalitions, len(x) // owners, len(draws), entries).transpose(1, 2)
        values = mean + scale * centres + scale * by_sample.flatten(0, 1)
        return values.to(x.dtype).unflatten(-1, x.shape[1:])


class _Moments(NamedTuple):
    """Means, standard deviations and correlations of data, and how far to shrink the correlations."""

    mean: Float[Tensor, " entries"]
    scale: Float[Tensor, " entries"]
    correlations: Float[Tensor, "entries entries"]  # 0 for an entry that never changes
    shrinkage: float


def _correlations(rows: Shaped[Tensor, "rows entries"]) -> _Moments:
    """Return the moments of the rows, with the shrinkage of Ledoit and Wolf [ledoit2004covariance]."""
    count, entries = rows.shape
    mean, scale = mean_and_deviation(rows)
    products = torch.zeros(entries, entries, dtype=torch.float64, device=rows.device)
    fourth_moment = torch.zeros((), dtype=torch.float64, device=rows.device)
    for some_rows in rows.split(_ROWS_AT_A_TIME):
        standardised = torch.where(scale > 0, (some_rows.double() - mean) / scale, 0.0)
        products += standardised.T @ standardised
        fourth_moment += standardised.square().sum(1).square().sum()
    correlations = products / count
    strength = correlations.square().sum()
    distance = strength - correlations.trace() ** 2 / entries  # from the nearest multiple of the identity
    shrinkage = 0.0
    if distance > 0:
        shrinkage = float((fourth_moment / count - strength) / count / distance)
    return _Moments(mean, scale, correlations, min(1.0, max(_LEAST_SHRINKAGE, shrinkage)))


def _shrunk(moments: _Moments, shrinkage: float) -> _Matrix:
    """Shrink the correlations towards a multiple of the identity."""
    correlations = moments.correlations
    average = correlations.trace() / len(correlations)
    identity = torch.eye(len(correlations)).to(correlations)
    covariance = (1 - shrinkage) * correlations + shrinkage * average * identity
    # An entry that never changes has no correlation and a scale of 0: any variance but 0 will do.
    covariance.diagonal()[moments.scale == 0] = 1.0
    return covariance


def _cholesky_factor(covariance: _Matrix, shrinkage: float) -> _Matrix:
    """Factorise the covariance, or raise an error if the shrinkage leaves it singular."""
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if bool(failed) or float(factor.diagonal().square().min()) < _LEAST_PIVOT:
        then = "Leave it out for one that fits the data."
        raise wrong("shrinkage", "be large enough for a covariance with an inverse", f"{shrinkage:g}", then)
    return factor


def _predict(covariance: _Matrix, precision: _Matrix, present: _Chosen, residuals: _Vectors) -> _Vectors:
    """Predict Σ_AP Σ_PP⁻¹ r_P for each coalition. With Λ = Σ⁻¹ this is −Λ_AA⁻¹ Λ_AP r_P."""
    predicted = torch.empty(residuals.shape, dtype=residuals.dtype, device=residuals.device)
    few_present = 2 * present.sum(1) <= present.shape[1]  # the smaller of the two systems is solved
    vectors = residuals.shape[1]
    for block in _blocks_by_size(present, few_present, vectors):
        known = residuals[block] * present[block, None]
        predicted[block] = _solve(covariance, present[block], known) @ covariance
    absent = ~present
    for block in _blocks_by_size(absent, ~few_present, vectors):
        known = residuals[block] * present[block, None]
        predicted[block] = -_solve(precision, absent[block], known @ precision)
    return predicted


def _blocks_by_size(
    chosen: _Chosen, selected: Bool[Tensor, " coalitions"], vectors: int
) -> Iterator[Int[Tensor, " block"]]:
    """Yield the selected coalitions by the size of their systems, largest first, as many at once as memory allows."""
    entries = chosen.shape[1]
    numbers = selected.nonzero().flatten()
    by_size = chosen[numbers].sum(1).argsort(descending=True, stable=True)
    numbers_per_system = entries**2 // 2 + 4 * vectors * entries  # systems have at most half of the entries
    for block in blocks(len(numbers), max(1, _NUMBERS_AT_A_TIME // numbers_per_system)):
        yield numbers[by_size[block]]


def _solve(matrix: _Matrix, chosen: _Chosen, right: _Vectors) -> _Vectors:
    """Solve M_CC w = r_C for the chosen entries C of each coalition; w is 0 elsewhere.

    Coalitions choose different numbers of entries, but all systems are solved at once. So smaller systems are padded
    to the largest size by rows of the identity, with right-hand sides of 0. If one coalition chooses the entries 0
    and 2 of 3, and another only entry 1, their systems are

        M₀₀ M₀₂ | r₀        M₁₁  0 | r₁
        M₂₀ M₂₂ | r₂         0   1 | 0
    """
    largest = int(chosen.sum(1).max())
    chosen_first = (~chosen).byte().argsort(dim=1, stable=True)  # (coalitions, flat)
    places = chosen_first[:, :largest]  # (coalitions, largest): the entry of each row of a system
    is_real = chosen.gather(1, places)  # (coalitions, largest): False for rows of padding
    both_real = is_real[:, :, None] & is_real[:, None, :]  # (coalitions, largest, largest)
    systems = matrix[places[:, :, None], places[:, None, :]] * both_real
    systems.diagonal(dim1=1, dim2=2).add_(~is_real)
    places_of_vectors = places[:, None].expand(-1, right.shape[1], -1)  # (coalitions, vectors, largest)
    known = right.gather(2, places_of_vectors) * is_real[:, None]  # (coalitions, vectors, largest)
    solved = torch.cholesky_solve(known.transpose(1, 2), torch.linalg.cholesky(systems)).transpose(1, 2)
    return torch.zeros_like(right).scatter_add_(2, places_of_vectors, solved)
