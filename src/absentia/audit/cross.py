"""The cross audit: R of every absence against every absence as the reference."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.absence import Absence, BringsModel
from absentia.arrays import Array, Table
from absentia.audit.problem import check_absences, describe_games, make_problem
from absentia.audit.region import Region
from absentia.audit.run import make_removal, measure
from absentia.audit.strengths import Cost, progress
from absentia.audit.text import align, with_error
from absentia.errors import wrong
from absentia.inference import Model
from absentia.notebook import html_result, html_table
from absentia.optional import require
from absentia.players import Players
from absentia.readouts import Readout
from absentia.saving import check_kind, read_tensors, write_tensors
from absentia.version import __version__
from absentia.wording import count_of

if TYPE_CHECKING:
    from pandas import DataFrame

KIND, FORMAT = "cross audit", 1


@dataclass(frozen=True)
class CrossAuditRecord:
    """How a cross audit was made, and what it took."""

    readout: str
    samples: int
    draws: int
    exact: bool  # whether all of the region's coalitions were evaluated, or those of drawn games
    region: tuple[str, ...]
    seed: int
    evaluations: int
    seconds: float
    notes: tuple[str, ...]
    torch_version: str = str(torch.__version__)
    version: str = __version__


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
    record: CrossAuditRecord

    def __repr__(self) -> str:
        return "\n".join([self._title(), *align(self._cells()), *(f"Note: {note}" for note in self.record.notes)])

    def _repr_html_(self) -> str:
        heads, *rows = self._cells()
        return html_result(self._title(), {}, html_table(heads, rows), notes=self.record.notes)

    def _title(self) -> str:
        record = self.record
        return (
            f"Cross audit of {len(self.methods)} absences on {count_of(record.samples, 'sample')}: "
            f"{count_of(len(record.region), 'player')} masked, {count_of(record.draws, 'draw')}; value: "
            f"{record.readout}; {record.evaluations:,} evaluations, {record.seconds:.1f} s"
        )

    def _cells(self) -> list[list[str]]:
        rows = [["R of … against …", *self.methods]]
        for row, reference in enumerate(self.references):
            figures = zip(self.R[row].tolist(), self.errors[row].tolist(), strict=True)
            cells = [with_error(value, error) for value, error in figures]
            if row:
                cells[row - 1] = f"({cells[row - 1]})"
            rows.append(["white noise" if row == 0 else reference, *cells])
        return rows

    def to_frame(self) -> DataFrame:
        """Make a pandas DataFrame of R: a row for each reference, a column for each method."""
        pandas = require("pandas", "tables")
        index = pandas.Index(self.references, name="reference")
        return pandas.DataFrame(self.R.numpy(), index=index, columns=pandas.Index(self.methods, name="method"))

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, no pickle; all of it or nothing."""
        header = {
            "kind": KIND,
            "format": FORMAT,
            "methods": list(self.methods),
            "references": list(self.references),
            "record": asdict(self.record),
        }
        write_tensors(Path(path), {"R": self.R.contiguous(), "errors": self.errors.contiguous()}, header)

    @classmethod
    def load(cls, path: str | Path) -> CrossAudit:
        """Read what `save` wrote."""
        tensors, header = read_tensors(Path(path))
        check_kind(Path(path), header, KIND, FORMAT)
        settings: dict[str, Any] = header["record"]
        settings |= {key: tuple(settings[key]) for key in ("region", "notes")}
        methods, references = tuple(header["methods"]), tuple(header["references"])
        return cls(methods, references, tensors["R"], tensors["errors"], CrossAuditRecord(**settings))


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
    began = time.perf_counter()
    named = check_absences(absences, y)
    own_models = [name for name, absence in named.items() if isinstance(absence, BringsModel)]
    if own_models:
        raise wrong("absences", "mask the model's input", f"{own_models[0]!r}, which brings a model of its own")
    problem = make_problem(model, x, y, players, readout, region, data, draws, max_players, seed)
    masked = {name: problem.mask(name, fill) for name, fill in problem.bind(named).items()}
    references = ["noise", *named]
    values, errors, cost = [], [], Cost()
    with progress(len(references) * draws * (2 + len(masked))) as bar:
        for number, name in enumerate(references):
            against = problem.reference("noise" if number == 0 else named[name])
            shared, own = measure(problem, masked, against, bar)
            cost = sum((one.cost for one in [*shared, *own.values()]), cost)
            found = make_removal(tuple(named), shared, own).R
            values.append(found.value)
            errors.append(found.error)
    record = CrossAuditRecord(
        readout=problem.game.readout_note,
        samples=problem.game.samples,
        draws=draws,
        exact=problem.exact,
        region=problem.region.names,
        seed=seed,
        evaluations=cost.evaluations,
        seconds=time.perf_counter() - began,
        notes=tuple(describe_games(problem)),
    )
    return CrossAudit(tuple(named), tuple(references), torch.stack(values), torch.stack(errors), record)
