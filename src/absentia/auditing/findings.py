"""The findings of an audit: figures, verdict, settings and cost; shown, drawn, saved and loaded without the model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.auditing.estimates import Estimate, Mean, estimates
from absentia.auditing.masked_scores import FullyMasked, MaskingCurve
from absentia.auditing.own_games import Companions
from absentia.auditing.plausibility import Plausibility
from absentia.auditing.removal import Removal
from absentia.auditing.verdict import STAGES, Measured, Verdict, judge
from absentia.errors import DataFrame, Figure, require
from absentia.plots.absence_plots import draw_audit
from absentia.storage import Saved, keep_figure
from absentia.text import align, count_of, fold, html_result, percent, with_error, written
from absentia.version import __version__

# The columns that are shown, and their heads.
_SHOWN = ("leak", "invention", "averaging", "score", "length", "distance")
# Rounding errors are reported beyond this share of a strength.
_MUCH_ROUNDING = 0.05
_MOST_WARNINGS = 3
_DECIMALS = 5  # of the figures in the table
_FAR = 2.0  # multiple of the usual distance, beyond which masked samples are far from the data
_NEGLIGIBLE = 1e-3  # leak or invention, which rounding errors may have


@dataclass(frozen=True)
class Cost:
    """What a measurement cost."""

    evaluations: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.evaluations + other.evaluations, self.seconds + other.seconds)


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


@dataclass(frozen=True, eq=False)
class Audit(Saved, kind="audit", format=5):
    """Which absence to use: whether absences leak or invent, and how long an account they need; made by `audit`.

    `recommended` follows the rule of `audit`, honest first, then short; `confidence` is how sure that is. Figures
    that an audit did not reach are NaN.

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
    measured_curve: MaskingCurve | None = None  # the score of masked samples; files of older versions have none
    samples: Int[Tensor, " audited"] | None = None  # numbers of the audited samples; the first were used throughout
    fully_masked: FullyMasked | None = None  # what fully masked samples tell; files of older versions have none

    @cached_property
    def curve(self) -> MaskingCurve:
        """The masking curve, with the score over all sizes."""
        none = torch.zeros(len(self.methods), 0, 1).double()
        return self.measured_curve or MaskingCurve(none, none[0, :, 0], torch.zeros(1, dtype=torch.int64))

    @cached_property
    def _empty(self) -> FullyMasked:
        """What fully masked samples tell; nothing if that was not measured."""
        none = torch.zeros(len(self.methods), 0, 1).double()
        return self.fully_masked or FullyMasked(none, none, none, none[0, :, 0], none[0, :, 0])

    @property
    def region(self) -> tuple[str, ...]:
        """The names of the players that were masked."""
        return self.record.region

    @property
    def leak(self) -> Estimate:
        """What fully masked samples still tell, with its standard error; it may fall below 0 by chance."""
        return estimates(self._empty.leaks)

    @property
    def invention(self) -> Estimate:
        """What the stand-ins assert on their own, with its standard error; it may fall below 0 by chance."""
        return estimates(self._empty.inventions)

    @property
    def evidence(self) -> Estimate:
        """Invention less leak: the score of fully masked samples less that of the prior."""
        return estimates(self._empty.evidence)

    @property
    def score(self) -> Estimate:
        """The score of masked samples over all sizes of coalitions; lower is better."""
        return self.curve.score

    @property
    def length(self) -> Estimate:
        """How many interactions an account needs: the geometric mean over samples."""
        return self.companions.length

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """The paper's R of each method, with its standard error: 0 at the level of white noise; lower is better."""
        return self.removal.R

    @cached_property
    def judgement(self) -> Verdict:
        """The rule applied to the figures, and to resamples of the samples and draws."""
        return judge(self._measured(), self.record.seed)

    def _measured(self) -> Measured:
        """Return what decides."""
        empty, curve = self._empty, self.curve
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
        """The name of the method to use, or None; of methods that are level, the one that wins most often."""
        winner = self.judgement.winner
        return None if winner is None else self.methods[winner]

    @property
    def confidence(self) -> float:
        """In which share of resamples of samples and draws the answer is the same; NaN if nothing was judged."""
        return self.judgement.confidence

    @property
    def level(self) -> tuple[str, ...]:
        """The methods between which this audit can't tell, or the recommended one alone."""
        return tuple(self.methods[number] for number in self.judgement.level)

    @property
    def verdict(self) -> tuple[str, ...]:
        """The recommendation, and then a line for each method, the best first."""
        if self.fully_masked is None:
            return ("No recommendation: leak and invention were not measured. Run the audit again.",)
        if self.fully_masked.reason:
            return (f"No recommendation: {self.fully_masked.reason}.",)
        return (self._recommend(), *(self._describe(number) for number in self.order))

    @property
    def warnings(self) -> tuple[str, ...]:
        """At most three reasons to doubt the figures or the methods, the most important first."""
        return (*self._warn_of_the_measurement(), *self._warn_of_stand_ins())[:_MOST_WARNINGS]

    @property
    def notes_on_R(self) -> tuple[str, ...]:  # noqa: N802 - the metric's name
        """Reasons to doubt the paper's measure, R."""
        return tuple(self._doubt_removal())

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the methods: the one to use, then those that were dropped last, the best score first."""
        scores = self.score.value.nan_to_num(math.inf).tolist()
        stages = self.judgement.stages
        return tuple(sorted(range(len(stages)), key=lambda number: (-STAGES.index(stages[number]), scores[number])))

    def columns(self) -> dict[str, Shaped[Tensor, " methods"]]:
        """Return the figures of each method by name; the error of a figure is named ``…_error``."""
        companions, record = self.companions, self.record
        with_errors = {
            "leak": self.leak,
            "invention": self.invention,
            "evidence": self.evidence,
            "averaging": estimates(self._empty.averaging),
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
            "wins": torch.tensor(self.judgement.shares[:-1], dtype=torch.float64),
            "evaluations": torch.tensor([record.costs[name].evaluations for name in self.methods]),
            "seconds": torch.tensor([record.costs[name].seconds for name in self.methods]),
        }

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each method, a column for each figure and its error."""
        pandas = require("pandas", "tables")
        columns = {name: values.numpy() for name, values in self.columns().items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.methods, name="method"))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw leak, invention and length of each method with their errors, and the masking curve."""
        return keep_figure(lambda: draw_audit(self), path)

    @staticmethod
    def from_old(_tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file of format 1."""
        parts: dict[str, Any] = {"removal": {}, "companions": {}, "plausibility": {}}
        return header | parts | {"record": header["record"] | {"region": header["region"]}}

    def __repr__(self) -> str:
        first, *others = self._sentences()
        lines = [first, *(f"  {sentence}" for sentence in others)]
        lines += ["", *align(self._cells()), "", self._title(), self._legend()]
        return "\n".join(fold(line) for line in lines)

    def _repr_html_(self) -> str:
        first, *notes = self._sentences()
        return html_result(first, {}, self._cells(), notes=[*notes, self._title(), self._legend()])

    def _sentences(self) -> list[str]:
        """Return the verdict, warnings and notes, one sentence each."""
        sentences = [*self.verdict, *(f"Warning: {sentence}" for sentence in self.warnings)]
        if self.record.stopped:
            sentences.append(f"Note: the audit ended early ({self.record.stopped}){self._missing()}.")
        if self._empty.left_out:
            left_out = count_of(self._empty.left_out, "sample")
            sentences.append(f"Note: {left_out} of rare classes are left out of leak and invention.")
        return [*sentences, *(f"Note: {note}" for note in self.record.notes)]

    def _missing(self) -> str:
        """Say which figures an audit that ended early has not measured, if any."""
        measured = {"score": self.score, "length": self.length, "R": self.R}
        missing = [name for name, figure in measured.items() if bool(figure.value.isnan().all())]
        if not missing:
            return ""
        return f"; not measured: {', '.join(missing)}"

    @property
    def shown_columns(self) -> tuple[str, ...]:
        """The columns of the table: averaging only where log-odds are averaged."""
        averaged = bool((self._empty.averaging.nan_to_num().abs() > _NEGLIGIBLE).any())
        return tuple(name for name in _SHOWN if averaged or name != "averaging")

    def _cells(self) -> list[list[str]]:
        """Return the cells of the table, heads first."""
        columns = self.columns()
        unknown = torch.full((len(self.methods),), torch.nan)
        rows = [["", *self.shown_columns]]
        for number in self.order:
            row = [self.methods[number]]
            for name in self.shown_columns:
                error = float(columns.get(f"{name}_error", unknown)[number])
                row.append(with_error(round(float(columns[name][number]), _DECIMALS), round(error, _DECIMALS)))
            rows.append(row)
        return rows

    def _title(self) -> str:
        record, region = self.record, len(self.region)
        masked = f"{region} players" if region == len(self.players) else f"{region} of {len(self.players)} players"
        given = count_of(record.given or record.samples, "sample")
        audited = f"{record.samples:,} of {given}" if record.samples < record.given else given
        return (
            f"Audit of {count_of(len(self.methods), 'absence')} on {audited}: {masked} masked; "
            f"value: {record.readout}. Cost: {record.evaluations:,} evaluations, {record.seconds:.1f} s."
        )

    def _legend(self) -> str:
        prior = written(float(self._empty.prior.nanmean()))
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

    def _recommend(self) -> str:
        """Say which method to use, how sure that is, and what speaks against one of each kind of the others."""
        judgement = self.judgement
        if judgement.winner is None:
            return self._recommend_none()
        winner = judgement.winner
        others = self._telling_others(winner)
        against = "".join(f"{'; ' if place == 0 else ', '}{text}" for place, text in enumerate(others))
        needs = ""
        length = float(self.length.value[winner])
        if not math.isnan(length):
            needs = f" and needs {length:,.0f} interactions"
        if judgement.clear:
            sure = f" (in {percent(judgement.confidence)} of resamples)"
            return f"Use {self.methods[winner]}{sure}: it {self._claims(winner)}{needs}{against}."
        return f"{self._name_level()} {self.methods[winner]} {self._claims(winner)}{needs}{against}."

    def _name_level(self) -> str:
        """Name the methods that are level, and say what would tell them apart."""
        judgement = self.judgement
        shares = [f"{self.methods[number]} {percent(judgement.shares[number])}" for number in judgement.level]
        names = [self.methods[number] for number in judgement.level]
        if judgement.shares[-1] >= 0.1:
            names.append("none")
            shares.append(f"none {percent(judgement.shares[-1])}")
        listed = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
        if judgement.samples_needed:
            then = f"About {judgement.samples_needed} times as many samples would tell them apart."
        else:
            then = f"More samples would not tell them apart: use {'either' if len(names) == 2 else 'any'}."
        return f"Use {listed}: level (of resamples, {', '.join(shares)} win). {then}"

    def _recommend_none(self) -> str:
        stages = self.judgement.stages
        if "" in stages:
            return "No recommendation: the score of masked samples was not measured."
        listed = ", ".join(f"{self.methods[number]} {self._reason(number)}" for number in self.order[:4])
        sure = f" (in {percent(self.confidence)} of resamples)" if self.judgement.judged else ""
        return f"Use none of these{sure}: {listed}. Try a baseline that learn_baseline(model, x, y) finds."

    def _telling_others(self, winner: int) -> list[str]:
        """Return why not the others, the most informative method of each stage, at most three."""
        stages = self.judgement.stages
        level = {winner, *self.judgement.level}
        by_stage = {stages[number]: number for number in reversed(self.order) if number not in level}
        order = ("length", "score", "invents", "leaks")
        chosen = [by_stage[stage] for stage in order if stage in by_stage]
        return [f"{self.methods[number]} {self._reason(number)}" for number in chosen[:3]]

    def leaks(self, number: int) -> bool:
        """Return whether a method leaks beyond its error."""
        return self.curve.all_absent and Mean.of(self._empty.leaks[number]).is_above(_NEGLIGIBLE)

    def invents(self, number: int) -> bool:
        """Return whether a method invents beyond its error."""
        return Mean.of(self._empty.inventions[number]).is_above(_NEGLIGIBLE)

    def _claims(self, number: int, errors: bool = False) -> str:
        """Say in a few words whether a method leaks or invents."""
        leak = f"leaks {self._amount(self.leak, number, errors)}"
        invention = f"invents {self._amount(self.invention, number, errors)}"
        if self.leaks(number) and self.invents(number):
            return f"{leak} and {invention}"
        if self.leaks(number):
            return leak
        if self.invents(number):
            return f"leaks nothing, {invention}" if self.curve.all_absent else invention
        return "neither leaks nor invents" if self.curve.all_absent else "invents nothing"

    def _amount(self, figure: Estimate, number: int, errors: bool) -> str:
        value, error = float(figure.value[number]), float(figure.error[number])
        text = with_error(value, error) if errors else written(value, 2)
        return f"{text} {self.curve.unit}"

    def _reason(self, number: int) -> str:
        """Say in a few words why a method is not the one to use."""
        judgement = self.judgement
        stage, score = judgement.stages[number], written(float(self.score.value[number]))
        if number in judgement.level and not judgement.clear:
            return f"is level, and wins in {percent(judgement.shares[number])} of resamples"
        if stage == "leaks":
            return f"leaks {self._amount(self.leak, number, errors=False)}"
        if stage == "invents":
            return f"invents {self._amount(self.invention, number, errors=False)}"
        if stage == "length":
            return self._price(number)
        return {
            "surrogate": f"explains another model: its score, {score}, is a floor for the others",
            "": "could not be compared",
            "score": f"{self._worse(number)} (score {score})",
            "distance": f"is level, but {self._further(number)}",
            "best": "is the one to use",
        }[stage]

    def _worse(self, number: int) -> str:
        """Say that a method predicts worse, on all samples or in resamples of them alone."""
        if float(self.score.value[number]) > float(self.score.value[self.order[0]]):
            return "predicts worse"
        return "predicts worse in most resamples"

    def _further(self, number: int) -> str:
        """Say what a level method lacks: it is further from the data, or else predicts a little worse."""
        winner = self.order[0]
        if self.plausibility.beyond[number] > self.plausibility.beyond[winner]:
            return "further from the data"
        return "no closer to the data, and predicts no better"

    def _price(self, number: int) -> str:
        """Say what a method with a longer account has for it, and how much longer it is."""
        winner = self.order[0]
        longer = float(self.length.value[number] / self.length.value[winner])
        needs = f"needs {written(longer, 3 if longer < 10 else 2)} times the interactions"
        gain = 1 - float(self.score.value[number] / self.score.value[winner])
        if round(100 * gain) >= 1:
            return f"predicts {percent(gain)} better but {needs}"
        return needs

    def _describe(self, number: int) -> str:
        """Describe one method in a line."""
        name, stage = self.methods[number], self.judgement.stages[number]
        if stage == "surrogate":
            return f"{name} {self._reason(number)}."
        claims = self._claims(number, errors=True)
        if stage == "leaks":
            return f"{name} {claims}: masked samples still tell what they were."
        if stage == "invents":
            return f"{name} {claims}, more than there is to know ({written(self.curve.limit, 2)})."
        return f"{name} {claims}; it {self._reason(number)}."

    def _warn_of_the_measurement(self) -> Iterator[str]:
        empty = self._empty
        if len(empty.prior) == 1:
            yield "One sample has no standard error: pass more samples to get errors."
        better = Mean.of((empty.prior - empty.whole)[:, None])
        of_classes = self.curve.unit == "nats"
        if of_classes and len(empty.prior) > 1 and not empty.reason and not better.is_above():
            yield "The model predicts no better than the class frequencies, so leak and invention say little."

    def _doubt_removal(self) -> Iterator[str]:
        removal = self.removal
        samples, kept = len(removal.original), int(removal.kept.sum())
        played = describe_games(samples, self.record.samples, self.record.game_players, len(self.region))
        if played and self.record.game_players:
            yield f"R is measured {played}."
        share = float((removal.rounding / removal.original.mean(1))[removal.kept].quantile(0.5)) if kept else 0.0
        if share > _MUCH_ROUNDING:
            yield f"Rounding errors can make up {percent(share)} of the effects: run the model in double precision."
        if kept < samples:
            yield f"{samples - kept} of {samples} samples are left out of R: the model ignores their region."
        if kept and not removal.noise_is_weaker:
            share = 100 * (1 - float(removal.unmasked.value))
            yield f"White noise has {share:,.0f} % of the effects of the samples themselves: R says little."

    def _warn_of_stand_ins(self) -> Iterator[str]:
        """Warn of stand-ins unlike the data, those of the recommended method first."""
        for number in self.order:
            name, ratio = self.methods[number], float(self.plausibility.distance[number])
            if ratio > _FAR:
                yield f"{name} makes samples that lie {ratio:.2g} times as far from the data as its own rows do."
            beyond = self.plausibility.outside[number].tolist()
            outside = [player for player, out in zip(self.region, beyond, strict=True) if out]
            if outside:
                shown = ", ".join(outside[:4]) + (f" and {len(outside) - 4} more" if len(outside) > 4 else "")
                yield f"{name} uses values outside the data's range for {shown}."


def describe_games(samples: int, of_samples: int, players: int, of_players: int) -> str:
    """Say on which part of the samples, and in games of which part of the players, a figure is measured."""
    parts = []
    if samples < of_samples:
        parts.append(f"on {samples} of the samples")
    if players < of_players:
        parts.append(f"in games of {players} of the {of_players} players, drawn for each sample")
    return " and ".join(parts)


@dataclass(frozen=True, eq=False)
class CrossAudit(Saved, kind="cross audit", format=4):
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

    methods: tuple[str, ...]
    references: tuple[str, ...]
    R: Float[Tensor, "references methods"]
    errors: Float[Tensor, "references methods"]
    record: AuditRecord

    def __repr__(self) -> str:
        return "\n".join([self._title(), *align(self._cells()), *(f"Note: {note}" for note in self.record.notes)])

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
            if row:
                cells[row - 1] = f"({cells[row - 1]})"
            rows.append([reference, *cells])
        return rows

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame of R: a row for each reference, a column for each method."""
        pandas = require("pandas", "tables")
        rows, columns = pandas.Index(self.references, name="reference"), pandas.Index(self.methods, name="method")
        return pandas.DataFrame(self.R.numpy(), index=rows, columns=columns)

    @staticmethod
    def from_old(_tensors: dict[str, Tensor], header: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a file of format 1, which had only the cost of all methods."""
        record = {"costs": {}, "shared_cost": header["record"]} | header["record"]
        return header | {"references": ["white noise", *header["references"][1:]], "record": record}
