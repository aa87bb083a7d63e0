"""The findings of an audit: figures, verdict, settings and cost; shown, drawn, saved and loaded without the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from absentia.audit.estimates import Estimate, estimate, spearman
from absentia.audit.own_games import Companions
from absentia.audit.plausibility import Plausibility
from absentia.audit.removal import Cost, Removal
from absentia.audit.verdict import compare_own_games, judge, ranking, warn
from absentia.data import Array, as_tensor
from absentia.errors import AbsentiaError, require, wrong
from absentia.plots import draw_agreement, draw_order_profiles, draw_removal, new_figure
from absentia.results import (
    align,
    count_of,
    fold,
    html_result,
    html_table,
    keep_figure,
    read_result,
    save_result,
    with_error,
)
from absentia.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# The heads of the columns that are shown.
_HEADS = {
    "R": "R", "removed": "removed %", "strength": "Σ|U|", "salient": "salient", "terms": "terms",
    "low_orders": "low orders %", "empty_value": "v(∅)", "agreement": "agreement",
}  # fmt: skip


@dataclass(frozen=True)
class AuditRecord:
    """How an audit or a cross audit was made, and what it cost."""

    readout: str
    samples: int
    draws: int
    exact: bool  # whether all coalitions of the region were evaluated, rather than those of drawn games
    region: tuple[str, ...]
    seed: int
    costs: dict[str, Cost]  # of each method
    shared_cost: Cost  # of the samples themselves and of noise, which serve all methods
    notes: tuple[str, ...]
    reference: str = ""
    game_players: int = 0  # the number of players of each game that R was measured in
    companion_players: tuple[str, ...] = ()  # the players of each method's own game; none if games were drawn
    threshold: str = ""  # above which size an effect is salient, in words
    absences: dict[str, str] = field(default_factory=dict)  # a description of each method
    torch_version: str = str(torch.__version__)
    version: str = __version__

    @property
    def evaluations(self) -> int:
        """The number of rows that the model evaluated in all."""
        return sum(self.costs.values(), self.shared_cost).evaluations

    @property
    def seconds(self) -> float:
        """The time that they took."""
        return sum(self.costs.values(), self.shared_cost).seconds

    @classmethod
    def from_old(cls, old: dict[str, Any]) -> AuditRecord:
        """Make the record of a file of format 1; that of a cross audit had only the cost of all methods."""
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in old.items()
        }
        costs = {name: Cost(**cost) for name, cost in known.get("costs", {}).items()}
        shared = known.get("shared_cost") or {name: known.pop(name) for name in ("evaluations", "seconds")}
        return cls(**known | {"costs": costs, "shared_cost": Cost(**shared)})


@dataclass(frozen=True, eq=False)
class Audit:
    """Whether absences remove the signal and add none: R, figures of their games, and a verdict; made by `audit`.

    Examples
    --------
    >>> import absentia as ab
    >>> x = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> audit = ab.audit(lambda rows: (rows - 0.5).prod(1), x, absences={"zero": 0.0, "half": 0.5})
    >>> audit.R.value[1] < audit.R.value[0]
    tensor(True)
    """

    KIND: ClassVar[str] = "audit"
    FORMAT: ClassVar[int] = 3

    methods: tuple[str, ...]
    players: tuple[str, ...]
    removal: Removal  # the strengths that R is made of
    companions: Companions  # figures of each absence's own game
    plausibility: Plausibility  # how masked samples compare with the data
    record: AuditRecord

    @property
    def region(self) -> tuple[str, ...]:
        """The names of the players that were masked."""
        return self.record.region

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """R of each method, with its standard error: 0 at the level of white noise; lower is better."""
        return self.removal.R

    @property
    def verdict(self) -> tuple[str, ...]:
        """What each method removes and adds, the best first."""
        own_games = compare_own_games(self.methods, self.removal, self.companions)
        return tuple(judge(self.methods, self.removal) + own_games)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the figures or the methods."""
        return tuple(warn(self.methods, self.region, self.removal, self.plausibility))

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the methods, the best by R first; those without an R come last."""
        ranked = ranking(self.removal)
        return (*ranked, *(number for number in range(len(self.methods)) if number not in ranked))

    def columns(self) -> dict[str, Shaped[Tensor, " methods"]]:
        """Return the figures of each method by name; the error of a figure is named ``…_error``."""
        removal, companions, record = self.removal, self.companions, self.record
        others = self.companions.agreement().clone().fill_diagonal_(torch.nan)
        estimates = {
            "R": removal.R,
            "removed": removal.removed,
            "strength": estimate(companions.strengths),
            "salient": estimate(companions.salient),
            "terms": estimate(companions.terms),
            "low_orders": companions.low_orders,
            "empty_value": estimate(companions.empty),
        }
        columns: dict[str, Tensor] = {}
        for name, found in estimates.items():
            columns |= {name: found.value, f"{name}_error": found.error}
        return columns | {
            "agreement": others.nanmean(1),
            "distance": self.plausibility.distance,
            "players_outside": self.plausibility.outside.sum(1),
            "evaluations": torch.tensor([record.costs[name].evaluations for name in self.methods]),
            "seconds": torch.tensor([record.costs[name].seconds for name in self.methods]),
        }

    def agreement_with(self, attributions: Array) -> Estimate:
        """Return the rank correlation of other attributions, (samples, players), with each method's Shapley values.

        The absence that attributions from elsewhere, such as captum's, agree with best is the one that they imply.
        """
        values = as_tensor("attributions", attributions).detach().cpu()
        if not self.record.exact:
            raise AbsentiaError("This audit is of drawn games, whose players vary. Audit all coalitions to compare.")
        wanted = (self.record.samples, len(self.record.companion_players))
        if tuple(values.shape) != wanted:
            must = f"have a row for each of the {wanted[0]} samples and a column for each of {wanted[1]} players"
            raise wrong("attributions", must, f"shape {tuple(values.shape)}")
        own = self.companions.shapley
        both = torch.cat([own, values.to(own)[None, :, None].expand_as(own[:1])])
        return estimate(spearman(both)[..., :-1, -1].mean(1).T[..., None])

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each method, a column for each figure and its error."""
        pandas = require("pandas", "tables")
        columns = {name: values.numpy() for name, values in self.columns().items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.methods, name="method"))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw R with its errors, the strength by order, and the agreement of attributions; write it to a path."""
        return keep_figure(self._draw, path)

    def _draw(self) -> Figure:
        figure = new_figure(columns=3)
        left, middle, right = figure.axes
        # All three have the same order, so that a method has the same colour.
        order, measured, found = list(self.order), len(ranking(self.removal)), self.removal.R
        names, few = [self.methods[number] for number in order], order[:measured]
        draw_removal(left, names[:measured], found.value[few], found.error[few], float(self.removal.unmasked.value))
        draw_order_profiles(middle, names, self.companions.order_profile().value[order])
        draw_agreement(right, names, self.companions.agreement()[order][:, order])
        title = f"{len(order)} absences on {self.record.samples} samples; value: {self.record.readout}"
        figure.suptitle(title, fontsize=11)
        return figure

    def save(self, path: str | Path) -> None:
        """Save everything to one file."""
        save_result(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Audit:
        """Read a file of `save`."""
        return read_result(cls, path)

    @classmethod
    def from_old(cls, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> Audit:
        """Read a file of format 1."""
        kinds = {"removal": Removal, "companions": Companions, "plausibility": Plausibility}
        parts: dict[str, Any] = {
            part: kind(**{one.name: tensors[f"{part}.{one.name}"] for one in fields(kind)})
            for part, kind in kinds.items()
        }
        record = AuditRecord.from_old(header["record"] | {"region": header["region"]})
        return cls(tuple(header["methods"]), tuple(header["players"]), **parts, record=record)

    def __repr__(self) -> str:
        lines = [self._title(), *(f"  {sentence}" for sentence in self._sentences())]
        lines += ["", *align(self._cells()), "", self._legend()]
        return "\n".join(fold(line) for line in lines)

    def _repr_html_(self) -> str:
        heads, *rows = self._cells()
        notes = [*self._sentences(), self._legend()]
        return html_result(self._title(), {}, html_table(heads, rows), notes=notes)

    def _sentences(self) -> list[str]:
        warnings = [f"Warning: {sentence}" for sentence in self.warnings]
        return [*self.verdict, *warnings, *(f"Note: {note}" for note in self.record.notes)]

    def _cells(self) -> list[list[str]]:
        """Return the cells of the table, heads first."""
        columns, unknown = self.columns(), torch.full((len(self.methods),), torch.nan)
        rows = [["", *_HEADS.values()]]
        for number in self.order:
            rows.append([self.methods[number]])
            for name, head in _HEADS.items():
                pair = columns[name], columns.get(f"{name}_error", unknown)
                rows[-1].append(with_error(*((100 if "%" in head else 1) * float(part[number]) for part in pair)))
        return rows

    def _title(self) -> str:
        record, region = self.record, len(self.region)
        whose = f"{region} players" if region == len(self.players) else f"{region} of {len(self.players)} players"
        count = count_of(record.samples, "sample")
        games = "" if record.exact else f", in {record.draws} drawn games of {record.game_players}"
        return (
            f"Audit of {count_of(len(self.methods), 'absence')} on {count}: {whose} masked{games}; "
            f"value: {record.readout}; reference: {record.reference}, {count_of(record.draws, 'draw')}"
        )

    def _legend(self) -> str:
        unmasked, record = float(self.removal.unmasked.value), self.record
        return (
            f"R: 0 at the level of white noise, {unmasked:.3g} for unmasked samples. Σ|U| to v(∅): of each absence's "
            f"own game. Salient: {record.threshold}. Terms: effects that rebuild all values to 5 %. Low orders: up "
            f"to half the players. Agreement: mean rank correlation with the others' Shapley values. "
            f"Cost: {record.evaluations:,} evaluations, {record.seconds:.1f} s; "
            f"{record.shared_cost.evaluations:,} evaluations serve all methods."
        )


@dataclass(frozen=True, eq=False)
class CrossAudit:
    """R of every method against every reference, white noise and then each method; made by `cross_audit`.

    Where a method is its own reference, a masked sample has no effects, and R is at most minus the noise's share.
    Such figures are shown in brackets; they do not compare methods.

    Examples
    --------
    >>> import absentia as ab
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.cross_audit(lambda rows: rows.prod(1), x, absences={"zero": 0.0, "one": 1.0})
    >>> found.references, found.R.shape
    (('white noise', 'zero', 'one'), torch.Size([3, 2]))
    """

    KIND: ClassVar[str] = "cross audit"
    FORMAT: ClassVar[int] = 3

    methods: tuple[str, ...]
    references: tuple[str, ...]
    R: Float[Tensor, "references methods"]
    errors: Float[Tensor, "references methods"]
    record: AuditRecord

    def __repr__(self) -> str:
        return "\n".join([self._title(), *align(self._cells()), *(f"Note: {note}" for note in self.record.notes)])

    def _repr_html_(self) -> str:
        heads, *rows = self._cells()
        return html_result(self._title(), {}, html_table(heads, rows), notes=self.record.notes)

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
            if row:
                cells[row - 1] = f"({cells[row - 1]})"
            rows.append([reference, *cells])
        return rows

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame of R: a row for each reference, a column for each method."""
        pandas = require("pandas", "tables")
        index = pandas.Index(self.references, name="reference")
        return pandas.DataFrame(self.R.numpy(), index=index, columns=pandas.Index(self.methods, name="method"))

    def save(self, path: str | Path) -> None:
        """Save everything to one file."""
        save_result(self, path)

    @classmethod
    def load(cls, path: str | Path) -> CrossAudit:
        """Read a file of `save`."""
        return read_result(cls, path)

    @classmethod
    def from_old(cls, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> CrossAudit:
        """Read a file of format 1."""
        references = ("white noise", *header["references"][1:])
        record = AuditRecord.from_old(header["record"])
        return cls(tuple(header["methods"]), references, tensors["R"], tensors["errors"], record)
