"""Absences whose stand-ins depend on the present entries: draws from a Gaussian, and the nearest rows of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from absentia.absences.protocol import ConditionalFill, Fill, Samples, check_shape, check_whole
from absentia.data import Table, blocks, check_number, check_rows, mean_and_deviation, seeded
from absentia.errors import wrong

_Vectors: TypeAlias = Float[Tensor, "coalitions vectors flat"]

# A variance that the other entries leave open by less than this is lost in rounding errors.
_LEAST_PIVOT = 1e-10
# Columns that are copies of each other leave a covariance without an inverse, whatever the number of rows.
_LEAST_SHRINKAGE = 1e-6
_MOST_ENTRIES = 2**13  # their covariance takes half a gigabyte
# Systems to solve, or distances from all rows, are held for as many coalitions as take 64 MiB.
_NUMBERS_AT_A_TIME = 2**23
# Differences from the rows go through several steps, which find them in cache: 1 MiB.
_NUMBERS_IN_CACHE = 2**17
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True, eq=False)
class GaussianConditional:
    """Values that a Gaussian with the data's mean and covariance draws, or expects, given the present entries.

    With present entries P and absent ones A, a draw is z_A + Σ_AP Σ_PP⁻¹ (x_P − z_P), where z ~ N(μ, Σ) is the same
    for all coalitions and samples (Matheron's rule [wilson2021pathwise]). The conditional mean is the case z = μ.

    Parameters
    ----------
    data : array of shape (rows, …)
    draws : int, optional
        The number of draws, 10 by default; a game averages over them.
    sample : bool, default True
        Whether to draw. With False the conditional mean is the only stand-in.
    shrinkage : float, optional
        By how much to shrink the covariance of the standardised data towards a multiple of the identity, from 0 to
        1. By default the amount that Ledoit and Wolf derive [ledoit2004covariance].
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
        rows = check_rows(data, least=2)
        if rows[0].numel() > _MOST_ENTRIES:
            then = "Use another absence for large inputs, such as Marginal or train_imputer(data)."
            raise wrong("data", f"have at most {_MOST_ENTRIES:,} entries in a row", f"{rows[0].numel():,}", then)
        check_number("shrinkage", self.shrinkage, 0, 1)
        if not self.sample and self.draws not in (None, 1):
            raise wrong("draws", "be left out for the conditional mean", self.draws, "Use sample=True for draws.")
        draws = self.draws if self.draws is not None else 10 if self.sample else 1
        check_number("draws", draws, 1)
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
        noise = torch.randn(draws, len(mean), generator=seeded(self.seed), dtype=torch.float64)
        vars(self).update(draws=draws, shrinkage=shrinkage, rows=len(rows), shape=tuple(rows.shape[1:]), mean=mean)
        vars(self).update(scale=scale, covariance=covariance, precision=torch.cholesky_inverse(factor))
        vars(self).update(centres=(self.sample * noise @ factor.T.cpu()).to(mean.device))

    def __repr__(self) -> str:
        what = f"{len(self.centres)} draws, seed {self.seed}" if self.sample else "the mean"
        return f"GaussianConditional(of {self.rows} rows, shrinkage {self.shrinkage:.3g}, {what})"

    def bind(self, x: Samples) -> Fill:
        """Put the distribution beside the samples."""
        check_shape("data", self.shape, x, "GaussianConditional")
        return ConditionalFill(x, tuple(range(len(self.centres))), self._stand_ins)

    def _stand_ins(self, x: Tensor, presence: Tensor, draws: list[int]) -> Tensor:
        """Solve for the absent entries of each coalition, or of each sample's coalition."""
        tensors = (self.mean, self.scale, self.centres[draws], self.covariance, self.precision)
        mean, scale, centres, *matrices = (tensor.to(x.device) for tensor in tensors)
        standardised = (x.flatten(1).double() - mean) / torch.where(scale > 0, scale, 1.0)
        residuals, rows = standardised[:, None] - centres, presence.flatten(2)
        # A coalition of all samples is one system with the residuals of all.
        vectors = residuals.reshape(len(rows), 1, -1, rows.shape[2]).expand(-1, rows.shape[1], -1, -1)
        found = _complete(matrices, rows.flatten(0, 1), vectors.flatten(0, 1))
        found = found.unflatten(1, (-1, len(draws))).unflatten(0, rows.shape[:2]).transpose(1, 2).flatten(0, 1)
        return (mean + scale * centres + scale * found).to(x.dtype).unflatten(-1, x.shape[1:])


def _correlations(rows: Shaped[Tensor, "rows entries"]) -> tuple[Tensor, Tensor, Tensor, float]:
    """Return means, standard deviations, correlations, and by how much to shrink these [ledoit2004covariance]."""
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


def _complete(matrices: Sequence[Tensor], rows: Tensor, residuals: _Vectors) -> _Vectors:
    """Predict Σ_AP Σ_PP⁻¹ r_P of each coalition, or with Λ = Σ⁻¹ −Λ_AA⁻¹ Λ_AP r_P, which is the same."""
    covariance, precision = matrices
    found = torch.empty(residuals.shape, dtype=residuals.dtype, device=residuals.device)
    few_present = 2 * rows.sum(1) <= rows.shape[1]  # the smaller of the two systems is solved
    for some in _alike(rows, few_present, residuals.shape[1]):
        found[some] = _solve(covariance, rows[some], residuals[some] * rows[some, None]) @ covariance
    for some in _alike(~rows, ~few_present, residuals.shape[1]):
        found[some] = -_solve(precision, ~rows[some], (residuals[some] * rows[some, None]) @ precision)
    return found


def _alike(chosen: Tensor, which: Tensor, vectors: int) -> Iterator[Int[Tensor, " coalitions"]]:
    """Go through some of the coalitions by the size of their systems, as many at once as memory allows."""
    numbers, entries = which.nonzero().flatten(), chosen.shape[1]
    order = chosen[numbers].sum(1).argsort(descending=True, stable=True)
    numbers_each = entries**2 // 2 + 4 * vectors * entries  # systems have at most half of the entries
    return (numbers[order[some]] for some in blocks(len(order), max(1, _NUMBERS_AT_A_TIME // numbers_each)))


def _solve(matrix: Float[Tensor, "flat flat"], chosen: Bool[Tensor, "coalitions flat"], right: _Vectors) -> _Vectors:
    """Solve M_CC w = r_C for the chosen entries C of each coalition; w is 0 elsewhere."""
    # The chosen entries come first. Smaller systems are padded by rows of the identity, with right-hand sides of 0.
    index = (~chosen).byte().argsort(dim=1, stable=True)[:, : int(chosen.sum(1).max())]
    used = chosen.gather(1, index)
    systems = matrix[index[:, :, None], index[:, None, :]] * (used[:, :, None] & used[:, None, :])
    systems.diagonal(dim1=1, dim2=2).add_(~used)
    wide = index[:, None].expand(-1, right.shape[1], -1)
    known = (right.gather(2, wide) * used[:, None]).transpose(1, 2)
    solved = torch.cholesky_solve(known, torch.linalg.cholesky(systems)).transpose(1, 2)
    return torch.zeros_like(right).scatter_add_(2, wide, solved)


@dataclass(frozen=True, eq=False)
class NearestNeighbours:
    """The rows of the data that are nearest to the sample in its present entries.

    The distance is the sum of squared differences over the present entries; for tokens, the number of present places
    with another token. Rows at equal distances, as all are when nothing is present, come in a random order. A sample
    that is itself among the data is its own nearest row, and nothing of it is removed: leave it out of the data.

    Parameters
    ----------
    data : array of shape (rows, …)
    neighbours : int, default 10
        The number of nearest rows; a game averages over them.
    standardise : bool, default True
        Whether differences are in units of the entry's standard deviation (for images, the channel's).
    seed : int, default 0

    Examples
    --------
    >>> data = torch.tensor([[0.0, 1.0], [1.0, 2.0], [5.0, 3.0]])
    >>> absence = NearestNeighbours(data, neighbours=2)
    >>> absence
    NearestNeighbours(2 of 3 rows, standardised)
    >>> absence.bind(torch.tensor([[4.0, 9.0]]))(slice(None), torch.tensor([[[True, False]]])).tolist()
    [[[[4.0, 3.0], [4.0, 2.0]]]]
    """

    data: InitVar[Table]
    _: KW_ONLY
    neighbours: int = 10
    standardise: bool = True
    seed: int = 0
    rows: Shaped[Tensor, "rows *entries"] = field(init=False)  # those at equal distances are taken in this order
    weight: Tensor = field(init=False)  # broadcasts over entries; 0 where an entry never changes

    def __post_init__(self, data: Table) -> None:
        rows = check_rows(data)
        check_number("neighbours", self.neighbours, 1, len(rows))
        order = torch.randperm(len(rows), generator=seeded(self.seed)).to(rows.device)
        _, deviation = mean_and_deviation(rows)
        weight = torch.where(deviation > 0, 1 / deviation, 0.0) if self.standardise else torch.ones_like(deviation)
        vars(self).update(rows=rows[order], weight=weight)

    def __repr__(self) -> str:
        units = "standardised" if self.standardise else "as they are"
        return f"NearestNeighbours({self.neighbours} of {len(self.rows)} rows, {units})"

    def bind(self, x: Samples) -> Fill:
        """Put the data beside the samples."""
        check_shape("data", self.rows.shape[1:], x)
        check_whole("data", self.rows, x)
        rows, weight, order = self.rows.to(x), self.weight.to(x), torch.arange(len(self.rows), device=x.device)

        def nearest_rows(x: Tensor, presence: Tensor, ranks: list[int]) -> Tensor:
            flat = presence.flatten(2)
            out = x.new_empty(len(x), flat.shape[1], len(ranks), *x.shape[1:])
            # Entries present in the same coalitions, as a player's are, form a group, so that products are few.
            groups = [some.unique(dim=1, return_inverse=True) for some in flat]
            for number, sample in enumerate(x):
                merged, group = groups[number if len(groups) > 1 else 0]
                apart = _differences(rows, weight, sample, group)
                for some in blocks(len(merged), max(1, _NUMBERS_AT_A_TIME // len(rows))):
                    # The last bits of a product depend on its shape; in single precision equal distances are equal.
                    distances = (merged[some].double() @ apart).float()
                    # The bits of positive numbers have their order. Of rows at equal distances, the first are taken.
                    keys = (distances.view(torch.int32).long() << 32) + order
                    out[number, some] = rows[keys.topk(max(ranks) + 1, dim=1, largest=False).indices[:, ranks]]
            return out

        return ConditionalFill(x, tuple(range(self.neighbours)), nearest_rows)


def _differences(rows: Tensor, weight: Tensor, sample: Tensor, group: Tensor) -> Float[Tensor, "groups rows"]:
    """Return the squared differences of one sample from all rows, summed over each group of entries."""
    member = torch.nn.functional.one_hot(group).double()
    parts = []
    for some in rows.split(max(1, _NUMBERS_IN_CACHE // sample.numel())):
        apart = (some - sample).mul_(weight) if sample.is_floating_point() else some != sample
        parts.append(apart.flatten(1).double().square_() @ member)  # squares may be too large for single precision
    return torch.cat(parts).T
