"""The result of a cross audit: how R depends on its reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from absentia.arguments import checked
from absentia.auditing.audit_record import AuditRecord
from absentia.errors import DataFrame, require
from absentia.storage import Saved
from absentia.storage.old_words import upgraded_audit_record
from absentia.text import align, count_of, html_result, with_error


@checked
@dataclass(frozen=True, eq=False)
class CrossAudit(Saved, kind="cross audit", format=5):
    """R of every method against every reference, white noise and then each method; made by `cross_audit`.

    The first reference is white noise, and the others are the methods themselves. A sample that is masked by the
    reference method has no effects, so R is at most minus the share of the noise. These figures do not compare
    methods, and are shown in brackets.

    Examples
    --------
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.cross_audit(lambda rows: rows.prod(1), x, absences={"zero": 0.0, "one": 1.0})
    >>> found.references, found.R.shape
    (('white noise', 'zero', 'one'), torch.Size([3, 2]))
    """

    methods: tuple[str, ...]
    references: tuple[str, ...]
    R: Float[Tensor, "references methods"]
    errors: Float[Tensor, "references methods"]
    record: AuditRecord

    def __repr__(self) -> str:
        notes = [f"Note: {note}" for note in self.record.notes]
        return "\n".join([self._title(), *align(self._cells()), *notes])

    def _repr_html_(self) -> str:
        return html_result(self._title(), {}, self._cells(), notes=self.record.notes)

    def _title(self) -> str:
        record = self.record
        return (
            f"Cross audit of {count_of(len(self.methods), 'absence')} on {count_of(record.samples, 'sample')}: "
            f"{count_of(len(record.region), 'player')} masked, {count_of(record.draws, 'draw')}; value: "
            f"{record.readout}; {record.evaluations:,} evaluations, {record.seconds:.1f} s"
        )

    def _cells(self) -> list[list[str]]:
        rows = [["R of … against …", *self.methods]]
        for row, reference in enumerate(self.references):
            figures = zip(self.R[row].tolist(), self.errors[row].tolist(), strict=True)
            cells = [with_error(value, error) for value, error in figures]
            if row > 0:  # the first reference is white noise, the others are the methods in order
                own_column = row - 1
                cells[own_column] = f"({cells[own_column]})"
            rows.append([reference, *cells])
        return rows

    def to_frame(self) -> DataFrame:
        """Return R as a pandas DataFrame with a row for each reference and a column for each method."""
        pandas = require("pandas", "tables")
        rows = pandas.Index(self.references, name="reference")
        columns = pandas.Index(self.methods, name="method")
        return pandas.DataFrame(self.R.numpy(), index=rows, columns=columns)

    @staticmethod
    def upgraded(_tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Return fields with values in the record; formats before 5 had words."""
        return fields | {"record": upgraded_audit_record(fields["record"])}

    @staticmethod
    def from_old(_tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file in format 1, which has only the total cost of all methods."""
        old_record = header["record"]
        record = {"costs": {}, "shared_cost": old_record} | old_record
        references = ["white noise", *header["references"][1:]]
        return header | {"references": references, "record": record}
