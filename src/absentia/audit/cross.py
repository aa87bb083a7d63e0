"""The cross audit: R of every absence against every absence as the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.absence import Absence, BringsModel
from absentia.arrays import Array, Table
from absentia.audit.frames import import_pandas
from absentia.audit.problem import check_absences, make_problem
from absentia.audit.region import Region
from absentia.audit.run import make_removal, measure
from absentia.audit.strengths import progress
from absentia.audit.text import align, with_error
from absentia.errors import wrong
from absentia.inference import Model
from absentia.players import Players
from absentia.readouts import Readout

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class CrossAudit:
    """R of every method against every reference; row by row, the reference: white noise, then each method.

    Where a method is its own reference, it says of itself that nothing is left, and R is no more than minus the
    noise's share: such figures are shown in brackets, and mean nothing.

    >>> import absentia as ab
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> methods = {"zero": ab.Baseline(0.0), "one": ab.Baseline(1.0)}
    >>> found = ab.cross_audit(lambda rows: rows.prod(1), x, None, methods)
    >>> found.references, found.R.shape
    (('noise', 'zero', 'one'), torch.Size([3, 2]))
    """

    methods: tuple[str, ...]
    references: tuple[str, ...]
    R: Float[Tensor, "references methods"]
    errors: Float[Tensor, "references methods"]

    def __repr__(self) -> str:
        rows = [["R of … against …", *self.methods]]
        for row, reference in enumerate(self.references):
            figures = zip(self.R[row].tolist(), self.errors[row].tolist(), strict=True)
            cells = [with_error(value, error) for value, error in figures]
            if row:
                cells[row - 1] = f"({cells[row - 1]})"
            rows.append(["white noise" if row == 0 else reference, *cells])
        return "\n".join(align(rows))

    def to_frame(self) -> DataFrame:
        """Make a pandas DataFrame of R: a row for each reference, a column for each method."""
        pandas = import_pandas()
        index = pandas.Index(self.references, name="reference")
        return pandas.DataFrame(self.R.numpy(), index=index, columns=pandas.Index(self.methods, name="method"))


def cross_audit(
    model: Model,
    x: Table,
    y: int | Sequence[int] | Array | None = None,
    absences: Mapping[str, Absence] | None = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    region: Region | None = None,
    draws: int = 5,
    data: Table | None = None,
    max_players: int = 16,
    seed: int = 0,
) -> CrossAudit:
    """Audit every absence against white noise and against every absence, to see what hangs on the reference.

    It takes what `audit` takes, and as many times as long as there are references.

    >>> import absentia as ab
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> methods = {"zero": ab.Baseline(0.0), "one": ab.Baseline(1.0)}
    >>> bool(ab.cross_audit(lambda rows: rows.prod(1), x, None, methods).R[1, 0] <= 0)
    True
    """
    named = check_absences(absences, y)
    own_models = [name for name, absence in named.items() if isinstance(absence, BringsModel)]
    if own_models:
        raise wrong("absences", "mask the model's input", f"{own_models[0]!r}, which brings a model of its own")
    problem = make_problem(model, x, y, players, readout, region, data, draws, max_players, seed)
    masked = {name: problem.mask(name, fill) for name, fill in problem.bind(named).items()}
    references = ["noise", *named]
    values, errors = [], []
    with progress(len(references) * draws * (2 + len(masked))) as bar:
        for number, name in enumerate(references):
            against = problem.reference("noise" if number == 0 else named[name])
            found = make_removal(tuple(named), *measure(problem, masked, against, bar)).R
            values.append(found.value)
            errors.append(found.error)
    return CrossAudit(tuple(named), tuple(references), torch.stack(values), torch.stack(errors))
