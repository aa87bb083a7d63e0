"""The result of an audit: figures and a verdict that can be shown, drawn, saved and loaded without the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from absentia.arguments import checked
from absentia.auditing.audit_record import AuditRecord
from absentia.auditing.estimates import Estimate, Mean, estimates
from absentia.auditing.masked_scores import FullyMasked, MaskingCurve
from absentia.auditing.own_games import Companions
from absentia.auditing.plausibility import Plausibility
from absentia.auditing.removal import Removal
from absentia.auditing.verdict import STAGES, Measured, Verdict, judge
from absentia.auditing.verdict_text import (
    describe_method,
    doubts_about_removal,
    doubts_about_stand_ins,
    doubts_about_the_measurement,
    recommend,
)
from absentia.errors import DataFrame, Figure, require
from absentia.plots.absence_plots import draw_audit
from absentia.storage import Saved, keep_figure
from absentia.storage.old_words import upgraded_audit_record
from absentia.text import align, count_of, fold, html_result, with_error, written

# The columns of the table.
_SHOWN = ("leak", "invention", "averaging", "score", "length", "distance")
# The maximum number of warnings.
_MOST_WARNINGS = 3
# The maximum number of decimals of figures in the table.
_DECIMALS = 5
# A leak or invention up to this may come from rounding errors.
_NEGLIGIBLE = 1e-3


@checked
@dataclass(frozen=True, eq=False)
class Audit(Saved, kind="audit", format=6):
    """Which absence to use: whether absences leak or invent, and how long an account they need; made by `audit`.

    `recommended` follows the rule of `audit`, honest first, then short. `confidence` says how sure it is. Figures
    are NaN if the audit ended before it measured them.

    Examples
    --------
    >>> x = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> audit = ab.audit(lambda rows: (rows - 0.5).prod(1), x, absences={"zero": 0.0, "half": 0.5})
    >>> audit.recommended
    'half'
    """

    methods: tuple[str, ...]
    players: tuple[str, ...]
    removal: Removal  # the strengths that R is made of
    companions: Companions  # figures of each absence's own game
    plausibility: Plausibility  # how masked samples compare with the data
    record: AuditRecord
    measured_curve: MaskingCurve | None = None  # the score of masked samples; missing in files of older versions
    samples: Int[Tensor, " audited"] | None = None  # numbers of the audited samples; the first were used throughout
    fully_masked: FullyMasked | None = None  # what fully masked samples tell; missing in files of older versions

    @cached_property
    def curve(self) -> MaskingCurve:
        """The masking curve, with the score over all sizes; it has no samples if it was not measured."""
        if self.measured_curve is not None:
            return self.measured_curve
        no_scores = torch.zeros(len(self.methods), 0, 1).double()
        return MaskingCurve(no_scores, prior=torch.zeros(0).double(), sizes=torch.zeros(1, dtype=torch.int64))

    @cached_property
    def empty(self) -> FullyMasked:
        """Leak and invention of fully masked samples; they have no samples if they were not measured."""
        if self.fully_masked is not None:
            return self.fully_masked
        no_figures = torch.zeros(len(self.methods), 0, 1).double()
        no_scores = torch.zeros(0).double()
        return FullyMasked(no_figures, no_figures, no_figures, prior=no_scores, whole=no_scores)

    @property
    def region(self) -> tuple[str, ...]:
        """The names of the players that were masked."""
        return self.record.region

    @property
    def leak(self) -> Estimate:
        """What fully masked samples still reveal, with its standard error; it may fall below 0 by chance."""
        return estimates(self.empty.leaks)

    @property
    def invention(self) -> Estimate:
        """What the stand-ins claim by themselves, with its standard error; it may fall below 0 by chance."""
        return estimates(self.empty.inventions)

    @property
    def evidence(self) -> Estimate:
        """Invention minus leak: the score of fully masked samples minus that of the prior."""
        return estimates(self.empty.evidence)

    @property
    def score(self) -> Estimate:
        """The score of masked samples over coalitions of all sizes; lower is better."""
        return self.curve.score

    @property
    def length(self) -> Estimate:
        """The number of interactions that an explanation needs, as a geometric mean over samples."""
        return self.companions.length

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """The paper's R of each method, with its standard error: 0 at the level of white noise; lower is better."""
        return self.removal.R

    @cached_property
    def judgement(self) -> Verdict:
        """The outcome of the rule for these figures, and for resamples of the samples and draws."""
        return judge(self._measured(), self.record.seed)

    def _measured(self) -> Measured:
        """Return the measurements that the rule depends on."""
        empty = self.empty
        curve = self.curve
        return Measured(
            leaks=empty.leaks,
            inventions=empty.inventions,
            scores=curve.means,
            lengths=self.companions.lengths,
            distance=self.plausibility.beyond,
            surrogate=tuple(name in self.record.surrogates for name in self.methods),
            prior=float(empty.prior.nanmean()),
            whole=float(empty.whole.nanmean()),
            everything=curve.limit,
            leaks_count=curve.all_absent,
        )

    @property
    def recommended(self) -> str | None:
        """The name of the method to use, or None; among level methods, the one that wins most often."""
        winner = self.judgement.winner
        return None if winner is None else self.methods[winner]

    @property
    def confidence(self) -> float:
        """The share of resamples that give the same answer; NaN if no method could be judged."""
        return self.judgement.confidence

    @property
    def level(self) -> tuple[str, ...]:
        """The methods that this audit cannot tell apart, or only the recommended one."""
        return tuple(self.methods[number] for number in self.judgement.level)

    @property
    def verdict(self) -> tuple[str, ...]:
        """The recommendation, followed by a line for each method, best first."""
        if self.fully_masked is None:
            return ("No recommendation: leak and invention were not measured. Run the audit again.",)
        if self.fully_masked.reason:
            return (f"No recommendation: {self.fully_masked.reason}.",)
        return (recommend(self), *(describe_method(self, number) for number in self.order))

    @property
    def warnings(self) -> tuple[str, ...]:
        """At most three reasons to doubt the figures or the methods, most important first."""
        doubts = (*doubts_about_the_measurement(self), *doubts_about_stand_ins(self))
        return doubts[:_MOST_WARNINGS]

    @property
    def notes_on_R(self) -> tuple[str, ...]:  # noqa: N802 - the metric's name
        """Reasons to doubt the paper's measure, R."""
        return tuple(doubts_about_removal(self))

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the methods: the one to use, then those that were dropped last, the best score first."""
        scores = self.score.value.nan_to_num(math.inf).tolist()
        stages = self.judgement.stages

        def rank(number: int) -> tuple[int, float]:
            return -STAGES.index(stages[number]), scores[number]

        return tuple(sorted(range(len(stages)), key=rank))

    def columns(self) -> dict[str, Shaped[Tensor, " methods"]]:
        """Return the figures of all methods by name; errors have names that end in ``_error``."""
        companions = self.companions
        costs = [self.record.costs[name] for name in self.methods]
        with_errors = {
            "leak": self.leak,
            "invention": self.invention,
            "evidence": self.evidence,
            "averaging": estimates(self.empty.averaging),
            "score": self.score,
            "length": self.length,
            "strength": estimates(companions.strengths),
            "salient": estimates(companions.salient),
            "terms": estimates(companions.terms),
            "low_orders": companions.low_orders,
            "empty_value": estimates(companions.empty),
            "R": self.removal.R,
            "removed": self.removal.removed,
        }
        columns: dict[str, Tensor] = {}
        for name, (value, error) in with_errors.items():
            columns[name] = value
            columns[f"{name}_error"] = error
        return columns | {
            "agreement": companions.agreement().clone().fill_diagonal_(torch.nan).nanmean(1),
            "distance": self.plausibility.distance,
            "players_outside": self.plausibility.outside.sum(1),
            "wins": torch.tensor(self.judgement.shares_of_methods, dtype=torch.float64),
            "evaluations": torch.tensor([cost.evaluations for cost in costs]),
            "seconds": torch.tensor([cost.seconds for cost in costs]),
        }

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each method, and columns for each figure and its error."""
        pandas = require("pandas", "tables")
        columns = {name: values.numpy() for name, values in self.columns().items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.methods, name="method"))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw leak, invention and length of each method with their errors, and the masking curve."""
        return keep_figure(lambda: draw_audit(self), path)

    @staticmethod
    def upgraded(_tensors: dict[str, Tensor], fields: dict[str, Any]) -> dict[str, Any]:
        """Return fields with values in the record; formats before 6 had words."""
        return fields | {"record": upgraded_audit_record(fields["record"])}

    @staticmethod
    def from_old(_tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file of format 1."""
        parts: dict[str, Any] = {"removal": {}, "companions": {}, "plausibility": {}}
        return header | parts | {"record": header["record"] | {"region": header["region"]}}

    def __repr__(self) -> str:
        first, *others = self._sentences()
        sentences = [fold(first), *(fold(f"  {sentence}") for sentence in others)]
        below_table = [fold(self._title()), fold(self._legend())]
        return "\n".join([*sentences, "", *align(self._cells()), "", *below_table])

    def _repr_html_(self) -> str:
        first, *notes = self._sentences()
        return html_result(first, {}, self._cells(), notes=[*notes, self._title(), self._legend()])

    def _sentences(self) -> list[str]:
        """Return the verdict, warnings and notes, one sentence each."""
        sentences = list(self.verdict)
        sentences += [f"Warning: {warning}" for warning in self.warnings]
        if self.record.stopped:
            ended = f"the audit ended early ({self.record.stopped})"
            missing = self._missing()
            if missing:
                ended = f"{ended}; not measured: {', '.join(missing)}"
            sentences.append(f"Note: {ended}.")
        if self.empty.left_out:
            left_out = count_of(self.empty.left_out, "sample")
            sentences.append(f"Note: {left_out} of rare classes are left out of leak and invention.")
        sentences += [f"Note: {note}" for note in self.record.notes]
        return sentences

    def _missing(self) -> list[str]:
        """Return the names of the figures that were not measured because the audit ended early."""
        measured = {"score": self.score, "length": self.length, "R": self.R}
        return [name for name, figure in measured.items() if bool(figure.value.isnan().all())]

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The columns of the table; averaging is shown only if log-odds are averaged."""
        averaged = bool((self.empty.averaging.nan_to_num().abs() > _NEGLIGIBLE).any())
        if averaged:
            return _SHOWN
        return tuple(name for name in _SHOWN if name != "averaging")

    def _cells(self) -> list[list[str]]:
        """Return the cells of the table, headings first."""
        columns = self.columns()
        unknown = torch.full((len(self.methods),), torch.nan)
        rows = [["", *self.shown_columns]]
        for number in self.order:
            row = [self.methods[number]]
            for name in self.shown_columns:
                value = float(columns[name][number])
                error = float(columns.get(f"{name}_error", unknown)[number])
                row.append(with_error(round(value, _DECIMALS), round(error, _DECIMALS)))
            rows.append(row)
        return rows

    def _title(self) -> str:
        """Describe what was audited, and its cost."""
        record = self.record
        masked = f"{len(self.region)} players"
        if len(self.region) < len(self.players):
            masked = f"{len(self.region)} of {len(self.players)} players"
        audited = count_of(record.given or record.samples, "sample")
        if record.samples < record.given:
            audited = f"{record.samples:,} of {audited}"
        return (
            f"Audit of {count_of(len(self.methods), 'absence')} on {audited}: {masked} masked; "
            f"value: {record.readout}. Cost: {record.evaluations:,} evaluations, {record.seconds:.1f} s."
        )

    def _legend(self) -> str:
        """Explain the columns of the table."""
        prior = written(float(self.empty.prior.nanmean()))
        in_units = "in nats" if self.curve.unit == "nats" else "as shares of the variance"
        averaging = ""
        if "averaging" in self.shown_columns:
            averaging = " Averaging: what averaging log-odds over draws adds to the log-loss, which is no invention."
        return (
            "Leak: what fully masked samples still tell. Invention: what stand-ins assert on their own. Both "
            f"{in_units}; the prior scores {prior}.{averaging} Score: of masked samples over all sizes of "
            "coalitions; lower is better. Length: interactions that rebuild all values of a sample to 5 %. Distance "
            "of masked samples to the data: 1 for its own rows."
        )

    def leaks(self, number: int) -> bool:
        """Return whether a method leaks significantly."""
        return self.curve.all_absent and Mean.of(self.empty.leaks[number]).is_above(_NEGLIGIBLE)

    def invents(self, number: int) -> bool:
        """Return whether a method invents significantly."""
        return Mean.of(self.empty.inventions[number]).is_above(_NEGLIGIBLE)
