"""The findings of an audit: figures, verdict, settings and cost; shown, drawn, saved and loaded without the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.audit.estimates import Estimate, estimate, spearman
from absentia.audit.evidence import MaskingCurve
from absentia.audit.own_games import Companions
from absentia.audit.removal import Cost, Plausibility, Removal
from absentia.audit.verdict import Verdict
from absentia.data import Array, as_tensor
from absentia.errors import AbsentiaError, require, wrong
from absentia.plots.absence_plots import draw_masking_curve, draw_methods
from absentia.plots.look import new_figure
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
    written,
)
from absentia.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# The columns that are shown.
_SHOWN = ("evidence", "score", "strength", "salient", "terms", "R", "distance")


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
    given: int = 0  # the number of samples that were given, of which `samples` were audited
    surrogates: tuple[str, ...] = ()  # the methods that explain another model
    stopped: str = ""  # why the audit ended early, if it did
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
            key: tuple(value) if isinstance(value, list) else value for key, value in old.items()
        }
        costs = {name: Cost(**cost) for name, cost in known.get("costs", {}).items()}
        shared = known.get("shared_cost") or {name: known.pop(name) for name in ("evaluations", "seconds")}
        return cls(**known | {"costs": costs, "shared_cost": Cost(**shared)})


@dataclass(frozen=True, eq=False)
class Audit:
    """Which absence to use: whether absences leak, invent, are concise and plausible; made by `audit`.

    `recommended` follows the rule of `audit`, honest first, then short. Figures that an audit did not reach are NaN.

    Examples
    --------
    >>> x = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> audit = ab.audit(lambda rows: (rows - 0.5).prod(1), x, absences={"zero": 0.0, "half": 0.5})
    >>> audit.recommended
    'half'
    """

    KIND: ClassVar[str] = "audit"
    FORMAT: ClassVar[int] = 4

    methods: tuple[str, ...]
    players: tuple[str, ...]
    removal: Removal  # the strengths that R is made of
    companions: Companions  # figures of each absence's own game
    plausibility: Plausibility  # how masked samples compare with the data
    record: AuditRecord
    measured_curve: MaskingCurve | None = None  # what masked samples tell; files of older versions have none
    samples: Int[Tensor, " audited"] | None = None  # numbers of the audited samples; the first were used throughout

    @property
    def curve(self) -> MaskingCurve:
        """The masking curve, with the evidence at ∅ and the score over all sizes."""
        return self.measured_curve or MaskingCurve.unknown(len(self.methods))

    @property
    def region(self) -> tuple[str, ...]:
        """The names of the players that were masked."""
        return self.record.region

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """R of each method, with its standard error: 0 at the level of white noise; lower is better."""
        return self.removal.R

    @cached_property
    def _verdict(self) -> Verdict:
        return Verdict(self)

    @property
    def recommended(self) -> str | None:
        """The name of the method to use, or None."""
        stages = self._verdict.stages
        return self.methods[stages.index("best")] if "best" in stages else None

    @property
    def verdict(self) -> tuple[str, ...]:
        """The recommendation, and then a line for each method, the best first."""
        return tuple(self._verdict.sentences())

    @property
    def warnings(self) -> tuple[str, ...]:
        """At most three reasons to doubt the figures or the methods, the most important first."""
        return tuple(self._verdict.warnings())

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the methods, the recommended one first, surrogates last."""
        return self._verdict.order

    def columns(self) -> dict[str, Shaped[Tensor, " methods"]]:
        """Return the figures of each method by name; the error of a figure is named ``…_error``."""
        removal, companions, record = self.removal, self.companions, self.record
        others = self.companions.agreement().clone().fill_diagonal_(torch.nan)
        estimates = {
            "R": removal.R,
            "evidence": self.curve.evidence,
            "score": self.curve.score,
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
        if not self.record.companion_players:
            raise AbsentiaError("This audit is of drawn games, whose players vary. Audit all coalitions to compare.")
        wanted = (self.record.given or self.record.samples, len(self.record.companion_players))
        if tuple(values.shape) != wanted:
            must = f"have a row for each of the {wanted[0]} samples and a column for each of {wanted[1]} players"
            raise wrong("attributions", must, f"shape {tuple(values.shape)}")
        own = self.companions.shapley
        if self.samples is not None:
            values = values[self.samples[: own.shape[1]]]
        both = torch.cat([own, values.to(own)[None, :, None].expand_as(own[:1])])
        return estimate(spearman(both)[..., :-1, -1].mean(1).T[..., None])

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each method, a column for each figure and its error."""
        pandas = require("pandas", "tables")
        columns = {name: values.numpy() for name, values in self.columns().items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.methods, name="method"))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw evidence, Σ|U| and R of each method with their errors, and the masking curve; write it to a path."""
        return keep_figure(self._draw, path)

    def _draw(self) -> Figure:
        order, columns, unmasked = list(self.order), self.columns(), float(self.removal.unmasked.value)
        names, best = [self.methods[number] for number in order], None if self.recommended is None else 0
        figure = new_figure(4, width=4.2, rows=len(names) + 6, ratios=(1, 0.9, 0.9, 1.4), title=self.verdict[0])
        panels: dict[str, tuple[str, str, dict[str, float]]] = {
            "evidence": ("does it leak, or invent?", f"leaks ◂ {self.curve.unit} at ∅ ▸ invents", {"": 0.0}),
            "strength": ("is it concise?", "Σ|U|: strength of its interactions", {}),
            "R": ("does it remove?", "R: effects left or added", {"white noise": 0.0, "unmasked samples": unmasked}),
        }
        *left, right = figure.axes
        for axes, (name, (title, text, marks)) in zip(left, panels.items(), strict=True):
            draw_methods(axes, names, columns[name][order], columns[f"{name}_error"][order], marks, best)
            axes.set(title=title, xlabel=text)
            if name != "evidence":  # the names stand beside the first panel
                axes.set_yticklabels([])
        prior = float(self.curve.prior.mean())
        draw_masking_curve(right, names, self.curve.sizes, self.curve.scores.mean(1)[order], prior, best)
        right.set(title="what do masked samples tell?", xlabel="present players")
        right.set_ylabel(f"score, {self.curve.unit}; lower is better")
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
        first, *others = self._sentences()
        lines = [first, *(f"  {sentence}" for sentence in others)]
        lines += ["", *align(self._cells()), "", self._title(), self._legend()]
        return "\n".join(fold(line) for line in lines)

    def _repr_html_(self) -> str:
        heads, *rows = self._cells()
        first, *notes = self._sentences()
        return html_result(first, {}, html_table(heads, rows), notes=[*notes, self._title(), self._legend()])

    def _sentences(self) -> list[str]:
        warnings = [f"Warning: {sentence}" for sentence in self.warnings]
        early = [f"Note: the audit ended early ({self.record.stopped})."] * bool(self.record.stopped)
        return [*self.verdict, *warnings, *early, *(f"Note: {note}" for note in self.record.notes)]

    def _cells(self) -> list[list[str]]:
        """Return the cells of the table, heads first."""
        columns, unknown = self.columns(), torch.full((len(self.methods),), torch.nan)
        rows = [["", *("Σ|U|" if name == "strength" else name for name in _SHOWN)]]
        for number in self.order:
            rows.append([self.methods[number]])
            for name in _SHOWN:
                pair = columns[name], columns.get(f"{name}_error", unknown)
                rows[-1].append(with_error(*(float(part[number]) for part in pair)).replace("-", "−"))
        return rows

    def _title(self) -> str:
        record, region = self.record, len(self.region)
        whose = f"{region} players" if region == len(self.players) else f"{region} of {len(self.players)} players"
        of = f"{record.samples:,} of " if record.samples < record.given else ""
        count = of + count_of(record.given or record.samples, "sample")
        games = "" if record.exact else f", in drawn games of {record.game_players}"
        return (
            f"Audit of {count_of(len(self.methods), 'absence')} on {count}: {whose} masked{games}; "
            f"value: {record.readout}; reference: {record.reference}, {count_of(record.draws, 'draw')}. "
            f"Cost: {record.evaluations:,} evaluations, {record.seconds:.1f} s."
        )

    def _legend(self) -> str:
        unit, prior = self.curve.unit, written(float(self.curve.prior.mean()))
        return (
            f"Evidence at ∅ in {unit}: below 0 leaks, above 0 invents; the prior scores {prior}. Score: over all "
            "sizes of coalitions; lower is better. Σ|U|, salient and terms: strength of the interactions of each "
            f"absence's own game, number of those {self.record.threshold}, and of those that rebuild all values to "
            f"5 %, which it needs. R: 0 at the level of white noise, {float(self.removal.unmasked.value):.3g} for "
            "unmasked samples. Distance of masked samples to the data: 1 for its own rows."
        )


@dataclass(frozen=True, eq=False)
class CrossAudit:
    """R of every method against every reference, white noise and then each method; made by `cross_audit`.

    Where a method is its own reference, a masked sample has no effects, and R is at most minus the noise's share.
    Such figures are shown in brackets; they do not compare methods.

    Examples
    --------
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.cross_audit(lambda rows: rows.prod(1), x, absences={"zero": 0.0, "one": 1.0})
    >>> found.references, found.R.shape
    (('white noise', 'zero', 'one'), torch.Size([3, 2]))
    """

    KIND: ClassVar[str] = "cross audit"
    FORMAT: ClassVar[int] = 4

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
        rows, columns = pandas.Index(self.references, name="reference"), pandas.Index(self.methods, name="method")
        return pandas.DataFrame(self.R.numpy(), index=rows, columns=columns)

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
