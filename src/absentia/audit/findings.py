"""The findings of an audit: figures, verdict, settings and cost; shown, drawn, saved and loaded without the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from absentia.audit.figures import Companions, Estimate, MaskingCurve, Plausibility, Removal, estimate, is_above
from absentia.errors import DataFrame, Figure, require
from absentia.plots.absence_plots import draw_audit
from absentia.results import Saved, align, count_of, fold, html_result, keep_figure, with_error, written
from absentia.version import __version__

# The columns that are shown.
_SHOWN = ("evidence", "score", "strength", "salient", "terms", "R", "distance")
# Rounding errors are reported beyond this share of a strength.
_MUCH_ROUNDING = 0.05
_MOST_WARNINGS = 3
_FAR = 2.0  # multiple of the usual distance, beyond which masked samples are far from the data
_NEGLIGIBLE = 1e-3  # evidence, which rounding errors may have
# At which stage a method is dropped, from first to last; "best" is the one to use, "" one that could not be compared.
_STAGES = ("surrogate", "leaks", "invents", "", "score", "strength", "R", "distance", "best")


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
class Audit(Saved, kind="audit", format=4):
    """Which absence to use: whether absences leak, invent, are concise and plausible; made by `audit`.

    `recommended` follows the rule of `audit`, honest first, then short. Figures that an audit did not reach are NaN.

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
    measured_curve: MaskingCurve | None = None  # what masked samples tell; files of older versions have none
    samples: Int[Tensor, " audited"] | None = None  # numbers of the audited samples; the first were used throughout

    @property
    def curve(self) -> MaskingCurve:
        """The masking curve, with the evidence at ∅ and the score over all sizes."""
        none = torch.zeros(len(self.methods), 0, 1).double()
        return self.measured_curve or MaskingCurve(none, none[0, :, 0], torch.zeros(1, dtype=torch.int64))

    @property
    def region(self) -> tuple[str, ...]:
        """The names of the players that were masked."""
        return self.record.region

    @property
    def R(self) -> Estimate:  # noqa: N802 - the metric's name
        """R of each method, with its standard error: 0 at the level of white noise; lower is better."""
        return self.removal.R

    @property
    def recommended(self) -> str | None:
        """The name of the method to use, or None."""
        return self.methods[self._stages.index("best")] if "best" in self._stages else None

    @property
    def verdict(self) -> tuple[str, ...]:
        """The recommendation, and then a line for each method, the best first."""
        if not len(self.curve.prior):
            return ("Use none by this audit: it did not measure whether methods leak or invent.",)
        return (self._recommend(), *(self._describe(number) for number in self.order))

    @property
    def warnings(self) -> tuple[str, ...]:
        """At most three reasons to doubt the figures or the methods, the most important first."""
        return (*self._warn_of_the_measurement(), *self._warn_of_stand_ins())[:_MOST_WARNINGS]

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the methods: the one to use, then those that were dropped last, the best score first."""
        figures = (self.curve.score if len(self.curve.prior) else self.removal.R).value.nan_to_num(math.inf).tolist()
        places = [(-_STAGES.index(stage), figure) for stage, figure in zip(self._stages, figures, strict=True)]
        return tuple(sorted(range(len(places)), key=places.__getitem__))

    def columns(self) -> dict[str, Shaped[Tensor, " methods"]]:
        """Return the figures of each method by name; the error of a figure is named ``…_error``."""
        removal, companions, record = self.removal, self.companions, self.record
        estimates = {
            "R": removal.R, "evidence": self.curve.evidence, "score": self.curve.score, "removed": removal.removed,
            "strength": estimate(companions.strengths), "salient": estimate(companions.salient),
            "terms": estimate(companions.terms), "low_orders": companions.low_orders,
            "empty_value": estimate(companions.empty),
        }  # fmt: skip
        columns: dict[str, Tensor] = {}
        for name, found in estimates.items():
            columns |= {name: found.value, f"{name}_error": found.error}
        return columns | {
            "agreement": companions.agreement().clone().fill_diagonal_(torch.nan).nanmean(1),
            "distance": self.plausibility.distance,
            "players_outside": self.plausibility.outside.sum(1),
            "evaluations": torch.tensor([record.costs[name].evaluations for name in self.methods]),
            "seconds": torch.tensor([record.costs[name].seconds for name in self.methods]),
        }

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a row for each method, a column for each figure and its error."""
        pandas = require("pandas", "tables")
        columns = {name: values.numpy() for name, values in self.columns().items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.methods, name="method"))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw evidence, Σ|U| and R of each method with their errors, and the masking curve; write it to a path."""
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
        warnings = [f"Warning: {sentence}" for sentence in self.warnings]
        early = [f"Note: the audit ended early ({self.record.stopped})."] * bool(self.record.stopped)
        return [*self.verdict, *warnings, *early, *(f"Note: {note}" for note in self.record.notes)]

    def _cells(self) -> list[list[str]]:
        """Return the cells of the table, heads first."""
        columns, unknown = self.columns(), torch.full((len(self.methods),), torch.nan)
        heads = ["", *("Σ|U|" if name == "strength" else name for name in _SHOWN)]
        pairs = [(columns[name].tolist(), columns.get(f"{name}_error", unknown).tolist()) for name in _SHOWN]
        figures = [[with_error(values[number], errors[number]) for values, errors in pairs] for number in self.order]
        return [heads, *([self.methods[number], *row] for number, row in zip(self.order, figures, strict=True))]

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
            f"absence's own game, number of those {self.record.threshold}, and of those that rebuild all values to 5 "
            f"%, which it needs. R: 0 at the level of white noise, {written(float(self.removal.unmasked.value))} for "
            "unmasked samples. Distance of masked samples to the data: 1 for its own rows."
        )

    @cached_property
    def _stages(self) -> tuple[str, ...]:
        """At which stage each method is dropped: see `audit`. A figure that was not measured decides nothing."""
        curve, stages = self.curve, [""] * len(self.methods)

        def drop(stage: str, out: Callable[[int], bool]) -> None:
            for number in left():
                stages[number] = stage if out(number) else ""

        def left() -> list[int]:
            return [number for number, stage in enumerate(stages) if not stage]

        def keep_lowest(stage: str, values: Tensor) -> None:
            known = [number for number in left() if not math.isnan(float(values[number].mean()))]
            if known:
                best = min(known, key=lambda number: float(values[number].mean()))
                drop(stage, lambda number: is_above(values[number] - values[best]))

        drop("surrogate", lambda number: self.methods[number] in self.record.surrogates)
        drop("leaks", lambda number: curve.all_absent and is_above(-curve.beyond_prior[number] - _NEGLIGIBLE))
        drop("invents", lambda number: is_above(curve.beyond_prior[number] - curve.limit))
        if left() and not curve.score.value.isnan().any():
            keep_lowest("score", curve.means)
            keep_lowest("strength", self.companions.strengths)
            keep_lowest("R", self.removal.ratios)
            distance, score = self.plausibility.distance.nan_to_num(math.inf).tolist(), curve.score.value.tolist()
            stages[min(left(), key=lambda number: (distance[number], score[number]))] = "best"
            drop("distance", lambda number: True)
        return tuple(stages)

    def _recommend(self) -> str:
        first, stages = self.order[0], self._stages
        if "best" not in stages:
            if "" in stages:
                return "Use none by this audit: v(N) does not vary, so that there is nothing to predict."
            listed = ", ".join(f"{self.methods[number]} {self._reason(number)}" for number in self.order[:4])
            return f"Use none of these: {listed}. Try a baseline that learn_baseline(model, x, y) finds."
        terms = float(self.companions.terms[first].mean())
        invents = "leaks nothing, " * self._invents(first) + self._evidence(first)
        needs = "" if math.isnan(terms) else f" and needs {terms:,.0f} interactions"
        # One method for each stage says most.
        others = {stages[number]: number for number in reversed(self.order[1:])}
        shown = [others[stage] for stage in ("strength", "score", "invents", "leaks") if stage in others][:3]
        text = ", ".join(f"{self.methods[number]} {self._reason(number)}" for number in shown)
        return f"Use {self.methods[first]}: it {invents}{needs}{'; ' * bool(text)}{text}."

    def _evidence(self, number: int, errors: bool = False) -> str:
        value, error = (float(part[number]) for part in self.curve.evidence)
        amount = f"{with_error(abs(value), error) if errors else written(abs(value), 2)} {self.curve.unit}"
        if self._stages[number] == "leaks":
            return f"leaks {amount}"
        return f"invents {amount}" if self._invents(number) else "neither leaks nor invents"

    def _invents(self, number: int) -> bool:
        return is_above(self.curve.beyond_prior[number] - _NEGLIGIBLE)

    def _reason(self, number: int) -> str:
        """Say in a few words why a method is not the one to use."""
        stage, score = self._stages[number], written(float(self.curve.score.value[number]))
        strengths = self.companions.strengths.mean((1, 2))
        more = float(strengths[number] / strengths[self.order[0]])
        if stage in ("leaks", "invents"):
            return self._evidence(number)
        return {
            "surrogate": f"explains another model: its score, {score}, is a floor for the others",
            "": "could not be compared",
            "score": f"predicts worse (score {score})",
            "strength": f"has {written(more, 3 if more < 1.5 else 2)} times the Σ|U|",
            "R": f"has a higher R ({written(float(self.R.value[number]), 2)})",
            "distance": "is as good, but not closer to the data",
            "best": "is the one to use",
        }[stage]

    def _describe(self, number: int) -> str:
        """Describe one method in a line."""
        name, stage, limit = self.methods[number], self._stages[number], written(self.curve.limit, 2)
        if stage == "surrogate":
            return f"{name} {self._reason(number)}."
        why = {
            "leaks": ": masked samples still tell what they were",
            "invents": f", more than there is to know ({limit})",
        }
        return f"{name} {self._evidence(number, errors=True)}{why.get(stage, f'; it {self._reason(number)}')}."

    def _warn_of_the_measurement(self) -> Iterator[str]:
        curve, removal = self.curve, self.removal
        if len(curve.prior) == 1:
            yield "One sample has no standard error: pass more samples to get errors."
        own = [name not in self.record.surrogates for name in self.methods]
        full = curve.scores[own][:1, :, -1].flatten()  # the model's own; none if there are only surrogates
        if len(full) > 1 and not is_above((curve.prior - full)[:, None]):
            yield "The model predicts no better than the class frequencies, so evidence says little."
        samples, kept = len(removal.original), int(removal.kept.sum())
        share = float((removal.rounding / removal.original.mean(1))[removal.kept].quantile(0.5)) if kept else 0.0
        if share > _MUCH_ROUNDING:
            yield f"Rounding errors can make up {share:.0%} of the effects: run the model in double precision."
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
