"""The audit: whether absences leak, invent, and need many interactions; and how R judges them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, final

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from absentia.absences import Absence, BringsModel, Fill, StandIns
from absentia.absences.protocol import describe_absence, for_classes
from absentia.absences.words import usual_words
from absentia.auditing.audit_record import AuditRecord, Cost
from absentia.auditing.cross_audits import CrossAudit
from absentia.auditing.findings import Audit
from absentia.auditing.jackknife import Drawn, draw_groups, join_methods, pseudo_values
from absentia.auditing.masked_scores import FullyMasked, MaskingCurve
from absentia.auditing.own_games import drawn_game_figures, join_games
from absentia.auditing.plan import Games, MethodRows, Plan
from absentia.auditing.plausibility import compare_with_data
from absentia.auditing.recalibration import Scale
from absentia.auditing.removal import Removal
from absentia.auditing.split import ByClass, ByValue, Split, predict, without_rounding
from absentia.auditing.verdict_text import describe_games
from absentia.coalitions import draw_coalitions, moebius_
from absentia.data import Categorical, Classes, Table, blocks, check_number, data_range, seeded, white_noise
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator, Tabulated
from absentia.games import MAX_PLAYERS
from absentia.learning import LearnedBaseline, absence_for
from absentia.players import ALWAYS_PRESENT, Players
from absentia.readouts import OF_CLASS, EveryClass, Features, LogOdds, Output, Readout
from absentia.runtime.batches import BatchRunner
from absentia.runtime.cost import affordable_rows
from absentia.runtime.limits import OutOfTime, TimeLimit
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.progress import progress
from absentia.runtime.threads import quickest_threads
from absentia.runtime.workers import spread
from absentia.task import Task

Region: TypeAlias = Sequence[str | int]
Absences: TypeAlias = Mapping[str, Absence | str | float] | Sequence[Absence | str | float]
# What absent players of a game are replaced by: the number of a draw, the inputs of present players → a fill.
Reference: TypeAlias = Callable[[int, Tensor], Fill]
Spend: TypeAlias = Callable[[str, int], None]  # books the rows of a method

# The operations that an audit may take by default: up to a minute on two cores.
_OPERATIONS = 3e11
# The rows that it may always take.
_FEW_ROWS = 2**15
# Work is split into about this many steps. One that a time limit cuts off is lost.
_STEPS = 64
# What to do about a time limit in which nothing can be measured.
_NO_TIME = "Or audit fewer absences, or a quicker model."
# Tables hold at most this many values at a time.
_VALUES_AT_A_TIME = 2**21
# Masked samples are made for at most this many entries at a time.
_ENTRIES_AT_A_TIME = 2**24
# An effect of order m adds up rounding errors to 2^(m/2) times those of the values; the sum over all effects grows
# by this factor with each player.
_GROWTH = 1 + 2**0.5
# Values of samples that differ by at most this many units of their type's precision are equal.
_UNITS_APART = 1000
# The log-odds of a class that has no baseline of its own where others have one.
_RULED_OUT = -1e6


def audit(
    model: Any,
    x: Table,
    y: Classes = None,
    absences: Absences | None = None,
    *,
    players: Players | None = None,
    readout: Readout | None = None,
    region: Region | None = None,
    reference: Absence | str | float = "noise",
    draws: int = 5,
    data: Table | None = None,
    tau: float | None = None,
    max_players: int = 16,
    categorical: Categorical = (),
    class_names: Iterable[str] | None = None,
    evaluations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> Audit:
    """Measure whether absences leak, invent, and how long an account they need; and recommend one.

    Every absence is measured on the same samples and coalitions:

    1. *Leak*: what fully masked samples still tell of their class. *Invention*: what the stand-ins assert on their
       own. Both are parts of the log-loss of fully masked samples. Their predictions are recalibrated by a scale and
       class offsets, on samples that the fit did not see. Leak is the score of the class frequencies less that of
       recalibrated predictions, invention the score of predictions as they are less the same. For other readouts the
       score is the squared difference to v(N), as a share of its variance.
    2. *Score*: the same log-loss over coalitions of all sizes (the masking curve).
    3. *Length*: the number of interactions that rebuild all values of a sample's game to 5 %, as a geometric mean.
    4. The distance of masked samples to the data, and the paper's R = E_x[(Σ|U′| − Σ|U_noise|) / Σ|U|], which
       compares the effects of samples whose ``region`` is masked, replaced by noise, or left as it is
       [ren2023faithful], against a ``reference`` in the place of absent players.

    The recommendation is *honest first, then short*. Out are leaks beyond their error and 5 % of the prior's score,
    and inventions beyond their error and all that there is to know: log(classes), or the variance. Of the others
    those are level whose score is within 10 % of the prior's score of the best, but at most a third of what
    predictions on whole samples are better than the prior. Of these the shortest is recommended; lengths within a
    factor of 1.25 are level, and then the closest to the data is, or the best score if several are as close as its
    own rows. All of this is decided by resamples of half of the samples and draws: the absence that wins most often
    is recommended, and ``confidence`` is its share. A surrogate explains another model: it is a floor, and never
    recommended. Where some entries are always present, what they tell is no leak.

    Random absences are measured with the draws that `explain` uses, and errors count that others might be drawn.

    Parameters
    ----------
    model, x, y, players, readout, class_names
        The model on a batch of samples: see `MaskedModel`. At most 500 samples, drawn at random, are audited. Without
        ``y``, the classes are those that the model predicts for whole samples.
    absences : mapping, or sequence of words, numbers or absences, optional
        What to audit, with or without names. The default is the usual absences for this kind of data.
    region : sequence of str or int, optional
        Names or numbers of the players to mask for R; by default all.
    reference : Absence, str or float, default "noise"
        "noise" is white noise in the range of ``data``, drawn anew for each sample and draw.
    draws : int, default 5
        The number of draws of the noise, and at most of each absence that R is measured with.
    data : Tensor, array or DataFrame, optional
        Rows such as those that the model was trained on, for the range of white noise and for absences given by
        words; by default ``x``.
    tau : float, optional
        The size above which an effect is salient; by default 5 % of a sample's largest.
    max_players : int, default 16
        More players than this are audited in games of at most 12 of them, drawn anew for each sample and draw.
    categorical : sequence, optional
        Columns of categories besides those that the players know, as in `learn_baseline`: white noise has their
        values of random rows of ``data``.
    evaluations : int, optional
        How many rows the model may evaluate in all; by default what a model of its size does in up to a minute on
        two cores. Where all coalitions take more, fewer samples are audited, and then drawn games of fewer players.
    seconds : float, optional
        A limit on the time, checked before each batch of the model. What is measured by then, or when Ctrl-C is
        pressed, is returned.
    seed : int, default 0
        The seed of every random draw.

    Examples
    --------
    >>> x = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.audit(lambda rows: (rows - 0.5).prod(1), x, absences={"zero": 0.0, "half": 0.5})
    >>> found.recommended
    'half'
    """
    limit = TimeLimit(seconds)
    check_number("tau", tau, 0)
    try:
        evaluator = _read_samples(model, x, y, players, readout, class_names, categorical, limit)
        run = Auditor(evaluator, absences, region, data, draws, max_players, seed, evaluations)
        run.against = run.reference(reference)
        run.tau = tau
    except OutOfTime as error:
        raise limit.too_short(len(x), _NO_TIME) from error
    stopped = run.work(_KINDS)
    masked_inputs = [run.masked.get(name) for name in run.methods]
    plausibility, note = compare_with_data(masked_inputs, run.data, run.within, run.region, seed)
    if note:
        run.notes.append(note)
    described = str(reference) if isinstance(reference, str | int | float) else describe_absence(reference)
    described = "white noise" if described == "noise" else described
    threshold = "above 5 % of a sample's largest" if tau is None else f"above {tau:g}"
    fully_masked = run.fully_masked()
    curve, removal = run.curve(fully_masked), run.removal()
    games = join_games([found for _, found in run.found["games"]], len(run.methods), run.plan.own.players)
    record = run.record(reference=described, threshold=threshold, stopped=stopped)
    return Audit(
        methods=tuple(run.methods),
        players=evaluator.names,
        removal=removal,
        companions=games,
        plausibility=plausibility,
        record=record,
        measured_curve=curve,
        samples=run.numbers,
        fully_masked=fully_masked,
    )


def cross_audit(
    model: Any, x: Table, y: Classes = None, absences: Absences | None = None, *, players: Players | None = None,
    readout: Readout | None = None, region: Region | None = None, draws: int = 5, data: Table | None = None,
    max_players: int = 16, categorical: Categorical = (), class_names: Iterable[str] | None = None, seed: int = 0,
) -> CrossAudit:  # fmt: skip
    """Measure R of every absence against white noise and against every absence: how R depends on the reference.

    Parameters
    ----------
    model, x, y, absences, players, readout, region, draws, data, max_players, categorical, class_names, seed
        See `audit`. Absences that bring their own model are refused.

    Examples
    --------
    >>> x = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> found = ab.cross_audit(lambda rows: rows.prod(1), x, absences={"zero": 0.0, "one": 1.0})
    >>> bool(found.R[1, 0] <= 0)
    True
    """
    evaluator = _read_samples(model, x, y, players, readout, class_names, categorical)
    run = Auditor(evaluator, absences, region, data, draws, max_players, seed)
    names, found = tuple(run.methods), []
    if run.surrogates:
        raise wrong("absences", "mask the model's input", f"{run.surrogates[0]!r}, which brings its own model")
    rows = run.plan.removal.coalitions * run.plan.states
    with progress((1 + len(names)) * rows, "auditing", "row") as bar:
        references = [method.absence for method in run.methods.values()]
        for reference in ("noise", *references):
            run.against, run.found["removal"] = run.reference(reference), []
            run.take(run.steps("removal"), bar)
            found.append(run.removal().R)
    evaluator.check_still_same()
    values, errors = (torch.stack(parts) for parts in zip(*found, strict=True))
    return CrossAudit(names, ("white noise", *names), values, errors, run.record())


def _read_samples(
    model: Any,
    x: Table,
    y: Classes,
    players: Any,
    readout: Any,
    class_names: Any,
    categorical: Categorical,
    limit: TimeLimit | None = None,
) -> Evaluator:
    """Return the evaluator; raise an error for absences in the place of classes."""
    if isinstance(y[0] if isinstance(y, list | tuple) and y else y, Mapping | Absence):
        raise AbsentiaError("Absences were passed in the place of y, the classes. Write audit(model, x, absences=…).")
    task = Task(
        model, x, y, players=players, readout=readout, class_names=class_names, categorical=categorical, limit=limit
    )
    return Evaluator(task)


# The kinds of steps, in the order in which they are taken.
_KINDS = ("shared", "empty", "curve", "games", "removal")


class Step(NamedTuple):
    """What to measure of a few samples."""

    kind: str  # one of _KINDS
    some: slice
    draw: int


@dataclass(frozen=True, eq=False)
class Method:
    """An absence bound to the audited samples."""

    absence: Absence
    evaluator: Evaluator  # its own if the absence brings a model
    fill: Fill
    of_class: Mapping[int, Fill]  # one for each class that has a baseline of its own

    @property
    def is_surrogate(self) -> bool:
        """Whether the absence brings its own model."""
        return isinstance(self.absence, BringsModel)

    @property
    def shares_stand_ins(self) -> bool:
        """Whether all samples have the same stand-ins."""
        fills = list(self.of_class.values()) or [self.fill]
        return all(isinstance(fill, StandIns) and len(fill.values) == 1 for fill in fills)

    def select(self, samples: Tensor) -> Method:
        """Return the method for some of the samples."""
        of_class = {number: fill.select(samples) for number, fill in self.of_class.items()}
        return Method(self.absence, self.evaluator, self.fill.select(samples), of_class)


class CurveValues(NamedTuple):
    """What a method's masking curve is made of, for some samples: of ∅, drawn coalitions, and all players."""

    values: Float[Tensor, "samples sizes numbers"]
    scores: Float[Tensor, "samples sizes"]
    without: Float[Tensor, "samples groups"]  # the mean score with each group of draws left out


@final
class Auditor:
    """One run: the absences bound to the samples, the plan, and what has been measured so far."""

    def __init__(
        self,
        evaluator: Evaluator,
        absences: Any,
        region: Region | None,
        data: Table,
        draws: int,
        max_players: int,
        seed: int,
        evaluations: int | None = None,
    ) -> None:
        check_number("draws", draws, 1)
        check_number("max_players", max_players, 1, MAX_PLAYERS)
        if isinstance(evaluator.readout, Features):
            raise wrong("readout", "give one number for an audit", str(evaluator.readout))
        self.evaluator = evaluator
        self.seed = seed
        readout = evaluator.readout
        # Values of each sample's own class are judged beside those of all classes.
        self.every_class: EveryClass | None = None
        self.classes = torch.zeros(evaluator.samples, dtype=torch.int64)
        if isinstance(readout, OF_CLASS) and readout.y.ndim == 1:
            self.every_class = EveryClass(readout)
            self.classes = readout.y.cpu()
        self.in_nats = self.every_class is not None and isinstance(readout, LogOdds)
        self.region = evaluator.players if region is None else evaluator.players.only(region, "region")
        self.data = evaluator.x if data is None else evaluator.task.rows_of(data)
        self.within = data_range(self.data, evaluator.players.categorical)
        self._check_range()
        self.methods = {name: self._bind(name, given) for name, given in self._name(absences).items()}
        self.surrogates = tuple(name for name, method in self.methods.items() if method.is_surrogate)
        self.plan = self._afford(draws, max_players, evaluations)
        self.costs = dict.fromkeys((*self.methods, ""), Cost())
        self.found: dict[str, list[tuple[Step, Any]]] = {kind: [] for kind in _KINDS}  # by finished steps
        self.notes = self._first_notes(data is None)
        self._choose_samples()
        self.sizes = torch.linspace(0, len(evaluator.players), self.plan.sizes + 1).round().long()
        self.against: Reference = self.reference("noise")
        self.tau: float | None = None
        # At most this many rows are evaluated in a step, or those of one sample; fewer if time is short.
        self.rows_per_step = max(self.plan.rows // _STEPS, 4 * evaluator.batch_size)

    def _check_range(self) -> None:
        """Raise an error if no white noise can be drawn."""
        owned = self.region.labels.to(self.evaluator.x.device) >= 0
        if not bool(((self.within.high > self.within.low) & owned).any()):
            then = "Pass data=… with rows that show the range of white noise."
            raise wrong("data", "vary in the region's entries", "constants", then)

    def _bind(self, name: str, given: object) -> Method:
        """Make an absence and bind it to the samples, and to its own model if it brings one."""
        evaluator = self.evaluator
        with _naming(f"{name} cannot be audited"):
            absence = self._make(given)
            own = evaluator
            if isinstance(absence, BringsModel):
                evaluator.limit.check()
                model = absence.instead_of(evaluator.model)
                own = Evaluator(
                    Task(
                        model,
                        evaluator.x,
                        players=evaluator.players,
                        readout=evaluator.readout,
                        limit=evaluator.limit,
                    )
                )
            fill = for_classes(absence, evaluator.classes, evaluator.names).bind(own.x)
            of_class: dict[int, Fill] = {}
            if getattr(absence, "needs_classes", False) and self.every_class is not None:
                for number in self.classes.unique().tolist():
                    one_class = torch.full((evaluator.samples,), number)
                    of_class[number] = _share(for_classes(absence, one_class).bind(own.x))
            return Method(absence, own, fill, of_class)

    def _name(self, absences: Any) -> dict[str, Any]:
        """Return what was given by name: that of a mapping, the word, or the description."""
        if absences is None:
            words = usual_words(self.data, self.evaluator.players)
            if self.data is self.evaluator.x and "neighbours" in words:
                words.remove("neighbours")  # each sample would be its own nearest row
            return {word: word for word in words}
        if isinstance(absences, str) or not isinstance(absences, Mapping | Sequence) or not absences:
            must = "be a mapping such as {'zero': 0.0}, or a list such as ['mean', 'blur']"
            raise wrong("absences", must, repr(absences))
        names = [describe_absence(one) if isinstance(one, Absence) else str(one) for one in absences]
        if len(set(names)) < len(names):
            then = "Pass a mapping from names to absences."
            raise wrong("absences", "have different names", f"{max(names, key=names.count)!r} twice", then)
        return dict(zip(names, absences.values() if isinstance(absences, Mapping) else absences, strict=True))

    def _make(self, given: object) -> Absence:
        """Return an absence as it is, or make the one that a word or a number names from the data."""
        if self.data is self.evaluator.x and isinstance(given, str) and given.startswith("neighbours"):
            raise AbsentiaError("Each sample would be its own nearest row. Pass data=… without the audited samples.")
        return absence_for(self.evaluator.task, given, self.data, self.seed)

    def _afford(self, draws: int, max_players: int, evaluations: int | None) -> Plan:
        """Plan the work within the rows that were given, or that the model's size allows."""
        evaluator = self.evaluator
        rows_of = [
            MethodRows(method.fill.draws, max(1, len(method.of_class)), self._is_evaluated_once(method))
            for method in self.methods.values()
        ]
        states = 2 + len(self.methods) - len(self.surrogates)
        players, region = len(evaluator.players), len(self.region)
        whole = Plan.of(evaluator.samples, players, region, draws, max_players, rows_of, states)
        if evaluations is None:
            if whole.rows <= _FEW_ROWS:
                return whole  # not worth counting the model's operations
            evaluator.limit.check()
            rows = affordable_rows(evaluator.model, evaluator.x, _OPERATIONS)
            return whole.within(max(rows, _FEW_ROWS))
        plan = whole.within(evaluations)
        if plan.rows > evaluations:
            raise wrong("evaluations", f"be at least {plan.rows:,} for these absences", evaluations)
        return plan

    def _is_evaluated_once(self, method: Method) -> bool:
        """Return whether ∅ has one value for all samples, because stand-ins and readout do not depend on them."""
        same_readout = self.every_class is not None or isinstance(self.evaluator.readout, (*OF_CLASS, Output))
        all_absent = not bool((self.evaluator.players.labels == ALWAYS_PRESENT).any())
        return same_readout and all_absent and method.shares_stand_ins

    def _choose_samples(self) -> None:
        """Keep the samples of the plan, the first of a random order if not all, and mask the region of those of R."""
        plan, total = self.plan, self.evaluator.samples
        self.numbers = torch.arange(total)
        if min(plan.empty_samples, plan.samples, plan.own.samples, plan.removal.samples) < total:
            self.numbers = torch.randperm(total, generator=seeded(self.seed, "samples"))[: plan.empty_samples]
            few = self.numbers.to(self.evaluator.x.device)
            self.methods = {name: method.select(few) for name, method in self.methods.items()}
        self.x = self.evaluator.x[self.numbers]
        self.presence = self.region.labels.to(self.x.device) == ALWAYS_PRESENT  # with the region masked
        self.masked: dict[str, Tensor] = {}  # the samples, by each method that masks the model's input
        for name, method in self.methods.items():
            if not method.is_surrogate:
                with _naming(f"{name} cannot be audited"):
                    self.masked[name] = self._mask_region(method)

    def _mask_region(self, method: Method) -> Shaped[Tensor, "samples draws *entries"]:
        """Mask the region of the samples of R by a few draws of a method."""
        fill = self._few_draws(method.fill, self.plan.removal.draws)
        at_once = max(1, _ENTRIES_AT_A_TIME // (self.presence.numel() * fill.draws))
        parts = (fill(some, self.presence[None, None]) for some in blocks(self.plan.removal.samples, at_once))
        masked = torch.cat([part[:, 0] for part in parts])
        if not bool(torch.isfinite(masked).all()):
            raise AbsentiaError("It fills absent entries with NaN or infinity.")
        return masked

    def _few_draws(self, fill: Fill, most: int) -> Fill:
        """Return a fill with at most ``most`` of its draws, chosen at random."""
        if fill.draws <= most:
            return fill
        chosen = torch.randperm(fill.draws, generator=seeded(self.seed, "draws"))[:most]
        return fill.select(draws=chosen.sort().values.tolist())

    def _first_notes(self, own_data: bool) -> list[str]:
        """Describe on how many samples, in which games and with which draws figures are measured, if not with all."""
        plan = self.plan
        notes = []
        played = describe_games(plan.own.samples, plan.empty_samples, plan.own.players, len(self.evaluator.players))
        if played:
            notes.append(f"Length is measured {played}. Pass evaluations=… for more.")
        for name, method in self.methods.items():
            for what, most in (("score", plan.curve_draws), ("length", plan.game_draws)):
                if method.fill.draws > most:
                    drawn = f"{most} of its {method.fill.draws:,} draws"
                    notes.append(f"The {what} of {name} is measured with {drawn}. Pass evaluations=… for more.")
        if self.every_class is not None and self.evaluator.classes is None:
            notes.append("No classes were given: they are those that the model predicts for whole samples.")
        if own_data:
            notes.append("The data's range was taken from the audited samples: pass data=… to use all your data.")
        for name, method in self.methods.items():
            if isinstance(method.absence, LearnedBaseline):
                notes += [f"{name}: {note}" for note in method.absence.notes_on(self.evaluator.readout_note)]
        return notes

    def reference(self, reference: Any) -> Reference:
        """Return what absent players are replaced by: white noise, or an absence, one of its draws after another.

        Stand-ins that do not depend on the coalition are those of the original sample, so that it, its masked states
        and its noise are measured against one point. Other absences are bound to the inputs that are compared.
        """
        if isinstance(reference, str) and reference == "noise":
            return lambda draw, present: StandIns(present, self._noise("reference", draw)[:, None])
        draws = self.plan.removal.draws
        with _naming("The reference cannot be used"):
            absence = for_classes(self._make(reference), self.evaluator.classes)
            if isinstance(absence, BringsModel):
                raise AbsentiaError("It brings its own model and masks no input.")
            some = self.numbers[: self.plan.removal.samples].to(self.x.device)
            fill = self._few_draws(absence.bind(self.evaluator.x).select(some), draws)
        if isinstance(fill, StandIns):
            return lambda draw, present: StandIns(present, fill.values[:, draw % fill.draws, None])
        return lambda draw, present: self._few_draws(absence.bind(present), draws).select(draws=[draw % fill.draws])

    def _noise(self, stream: str, draw: int) -> Shaped[Tensor, "samples *entries"]:
        """Draw white noise for every sample that R is measured on."""
        return white_noise(self.within, self.x[: self.plan.removal.samples], seeded(self.seed, stream, draw))

    def work(self, kinds: Sequence[str]) -> str:
        """Take the steps of these kinds; return why they ended early, if they did."""
        limit = self.evaluator.limit
        ended = ""
        try:
            rows = self._rows_to_time(limit)
            batch = self.x[torch.arange(rows) % len(self.x)]

            def run_once() -> None:
                limit.check()
                with evaluation_mode(self.evaluator.model):
                    self.evaluator.model(batch.clone())

            with quickest_threads(run_once, batch.device, limit):
                began = time.perf_counter()
                run_once()
                seconds_per_row = (time.perf_counter() - began) / rows
                self._shorten_steps(rows, seconds_per_row, limit)
                about = seconds_per_row * self.plan.rows
                with progress(self.plan.rows, f"auditing, about {about:.0f} s", "row") as bar:
                    ended = self.take(self.steps(*kinds), bar)
        except OutOfTime:
            ended = _name_limit(limit)
        except KeyboardInterrupt:
            if not self.found["empty"]:
                raise
            ended = "interrupted"
        if not self.found["empty"]:
            rows_needed = self.plan.empty_rows + self.plan.samples * self.plan.curve_rows
            raise limit.too_short(rows_needed, _NO_TIME)
        self.evaluator.check_still_same()
        return ended

    def _rows_to_time(self, limit: TimeLimit) -> int:
        """Return how many rows to time the model with: under a limit no more than its batches have grown to."""
        most = max(1, min(self.evaluator.batch_size, self.plan.rows // (4 * _STEPS)))
        runner = BatchRunner(self.evaluator.model, most, limit)
        rows = limit.rows_of_a_batch(most)
        while rows < most:
            with evaluation_mode(self.evaluator.model):
                runner(self.x[torch.arange(rows) % len(self.x)])
            larger = limit.rows_of_a_batch(most)
            if larger == rows:
                break
            rows = larger
        return rows

    def _shorten_steps(self, timed_rows: int, seconds_per_row: float, limit: TimeLimit) -> None:
        """Make steps small if time is short, because a step that is cut off is lost."""
        if not limit.is_set:
            return
        affordable = limit.left / (_STEPS * seconds_per_row)
        # A step runs the model for each method. With fewer rows than were timed, a row would take longer.
        least = timed_rows * (1 + len(self.methods))
        self.rows_per_step = min(self.rows_per_step, max(least, int(affordable)))

    def take(self, steps: list[Step], bar: Any) -> str:
        """Take the steps, here or at workers, and keep what they find; return why they ended early, if they did."""
        ended = ""
        for step, measured in zip(steps, spread(self.measure, steps, "auditing"), strict=True):
            if measured is None:
                ended = _name_limit(self.evaluator.limit)
            if measured is None or ended:
                continue  # results are used up to the first that is cut off, and the others end at once
            found, costs = measured
            self.found[step.kind].append((step, found))
            for name, cost in costs:
                self.costs[name] += cost
                bar.update(cost.evaluations)
        return ended

    def steps(self, *kinds: str) -> list[Step]:
        """Split what is measured into steps of a few samples each, which do not depend on each other."""
        plan = self.plan

        def of_samples(kind: str, samples: int, rows: int, players: int = 0, draw: int = 0) -> list[Step]:
            at_once = max(1, min(self.rows_per_step // max(1, rows), _VALUES_AT_A_TIME >> players))
            return [Step(kind, some, draw) for some in blocks(samples, at_once)]

        own, removal = plan.own, plan.removal
        steps = {
            "shared": [Step("shared", slice(0, 1), 0)],
            "empty": of_samples("empty", plan.empty_samples, plan.empty_rows // plan.empty_samples),
            "curve": of_samples("curve", plan.samples, plan.curve_rows),
            "games": of_samples("games", own.samples, plan.game_rows << own.players, own.players),
            "removal": [
                step
                for draw in range(removal.draws)
                for step in of_samples(
                    "removal", removal.samples, plan.states << removal.players, removal.players, draw
                )
            ],
        }
        return [step for kind in kinds for step in steps[kind]]

    def measure(self, step: Step) -> tuple[Any, list[tuple[str, Cost]]] | None:
        """Measure one step; return what it found, and what it cost each method; "" is the cost of all together.

        Return None if the time limit cuts it off.
        """
        costs = list[tuple[str, Cost]]()
        last = time.perf_counter()

        def spend(name: str, rows: int) -> None:
            nonlocal last
            now = time.perf_counter()
            costs.append((name, Cost(rows, now - last)))
            last = now

        measures: dict[str, Callable[[slice, int, Spend], Any]] = {
            "shared": self._measure_shared,
            "empty": self._measure_empty,
            "curve": self._measure_curve,
            "games": self._measure_games,
            "removal": self._measure_removal,
        }
        try:
            self.evaluator.limit.check()
            found = measures[step.kind](step.some, step.draw, spend)
        except OutOfTime:
            return None
        return found, costs

    def _groups(self, method: Method, most: int) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of a method's draws in groups; if there are more than ``most``, of some of them."""
        draws = method.fill.draws
        if draws <= most:
            return draw_groups(draws, self.seed)
        chosen = torch.randperm(draws, generator=seeded(self.seed, "draws"))[:most].tolist()
        return tuple(tuple(chosen[number] for number in group) for group in draw_groups(most, self.seed))

    def _values(
        self, method: Method, draws: Sequence[int], some: slice, coalitions: Bool[Tensor, "*own coalitions players"]
    ) -> Float[Tensor, "samples coalitions numbers"]:
        """Return the values of coalitions, averaged over some draws: the log-odds of every class, or the readout."""
        evaluator, numbers = method.evaluator, self.numbers[some]

        def values_of(fill: Fill) -> Tensor:
            values = evaluator.values(fill.select(some, draws), coalitions, samples=numbers, readout=self.every_class)
            return values.double().cpu().reshape(*values.shape[:2], -1)

        if not method.of_class:
            return values_of(method.fill)
        # With a baseline for each class, the value of a class is that with its own baseline: the label's would tell
        # the label. Classes without a baseline are ruled out.
        by_class = {number: values_of(fill) for number, fill in method.of_class.items()}
        values = torch.full_like(next(iter(by_class.values())), _RULED_OUT if self.in_nats else 0.0)
        for number, own in by_class.items():
            values[..., number] = own[..., number]
        return values

    def _drawn_values(self, method: Method, some: slice, coalitions: Tensor, most: int) -> Drawn:
        """Return the values of coalitions by groups of draws."""
        groups = self._groups(method, most)
        return Drawn.of([self._values(method, group, some, coalitions) for group in groups], groups)

    def _whole_values(self, some: slice) -> Float[Tensor, "samples numbers"]:
        """Return the values of whole samples."""
        numbers = self.numbers[some]
        fill = StandIns(self.x[some], self.x[some, None])
        values = self.evaluator.values(fill, self._everybody, samples=numbers, readout=self.every_class)
        return values.double().cpu().reshape(len(numbers), -1)

    @property
    def _nobody(self) -> Bool[Tensor, "one players"]:
        return torch.zeros(1, len(self.evaluator.players), dtype=torch.bool)

    @property
    def _everybody(self) -> Bool[Tensor, "one players"]:
        return torch.ones(1, len(self.evaluator.players), dtype=torch.bool)

    def _measure_shared(self, some: slice, _draw: int, spend: Spend) -> dict[str, Drawn]:
        """Evaluate ∅ once for each method whose stand-ins all samples share."""
        found = {}
        for name, method in self.methods.items():
            if self._is_evaluated_once(method):
                found[name] = self._drawn_values(method, some, self._nobody, method.fill.draws)
                spend(name, method.fill.draws * max(1, len(method.of_class)))
        return found

    def _measure_empty(self, some: slice, _draw: int, spend: Spend) -> tuple[Tensor, dict[str, Drawn]]:
        """Evaluate whole samples, and ∅ for each method with stand-ins of each sample's own."""
        whole = self._whole_values(some)
        spend("", len(whole))
        found = {}
        for name, method in self.methods.items():
            if not self._is_evaluated_once(method):
                found[name] = self._drawn_values(method, some, self._nobody, method.fill.draws)
                spend(name, len(whole) * method.fill.draws * max(1, len(method.of_class)))
        return whole, found

    def _measure_curve(self, some: slice, _draw: int, spend: Spend) -> list[CurveValues]:
        """Evaluate a coalition of each size by each method."""
        players, numbers = len(self.evaluator.players), self.numbers[some]
        streams = [seeded(self.seed, "curve", number) for number in numbers.tolist()]
        coalitions = torch.stack([draw_coalitions(players, self.sizes[:-1], stream) for stream in streams])
        whole = self._whole_values(some)
        spend("", len(numbers))
        split: Split
        if self.in_nats:
            occurring = self.classes[self.numbers].unique()
            split = ByClass(self.classes[numbers], self.seed, Scale(math.inf), occurring)
        else:
            split = ByValue(whole, self.seed, variance=1.0)
        found = []
        for name, method in self.methods.items():
            drawn = self._drawn_values(method, some, coalitions, self.plan.curve_draws)
            last = whole
            if method.is_surrogate:
                last = self._values(method, [0], some, self._everybody)[:, 0]
            values = torch.cat([drawn.mean, last[:, None]], dim=1)
            scores = split.scores(values.transpose(0, 1)).T
            left_out = [split.scores(part.transpose(0, 1)).sum(0) + scores[:, -1] for part in drawn.without]
            without = torch.stack(left_out, dim=1) if left_out else scores.new_zeros(len(scores), 0)
            found.append(CurveValues(values, scores, without / scores.shape[1]))
            spend(name, drawn.mean[..., 0].numel() * int(drawn.sizes.sum()) * max(1, len(method.of_class)))
        return found

    @cached_property
    def split(self) -> Split:
        """The score of samples by their classes, or by their values; of the samples that were measured."""
        whole = self.whole
        if self.in_nats:
            return ByClass.of_whole_samples(self.classes[self.numbers[: len(whole)]], whole, self.seed)
        rounding = _rounding_of(whole, self.evaluator.task.probe.dtype)
        return ByValue.of_whole_samples(without_rounding(whole, rounding), self.seed)

    @property
    def whole(self) -> Float[Tensor, "samples numbers"]:
        """The values of the whole samples that were measured."""
        return torch.cat([values for _, (values, _) in self.found["empty"]])

    def fully_masked(self) -> FullyMasked | None:
        """Split what was measured of fully masked samples into leak and invention; None if nothing was."""
        if not self.found["empty"]:
            return None
        parts = [found for _, (_, found) in self.found["empty"]]
        once = self.found["shared"][0][1]
        split, whole = self.split, self.whole
        prior = split.prior()
        figures: dict[str, list[Tensor]] = {"leaks": [], "inventions": [], "averaging": []}
        for name, method in self.methods.items():
            if name in once:
                by_group = once[name].by_group.expand(-1, len(whole), -1, -1)
                drawn = Drawn(by_group, once[name].sizes)
            else:
                by_group = torch.cat([found[name].by_group for found in parts], dim=1)
                drawn = Drawn(by_group, parts[0][name].sizes)
            for figure, values in self._split_drawn(method, drawn, prior).items():
                figures[figure].append(values)
        left_out = int((~split.estimable).sum())
        return FullyMasked(
            **{name: join_methods(values) for name, values in figures.items()},
            prior=prior,
            whole=split.estimable_scores(whole[None])[0],
            left_out=0 if left_out == len(whole) else left_out,
            reason=split.why_not_estimable(),
        )

    def _split_drawn(
        self, method: Method, drawn: Drawn, prior: Float[Tensor, " samples"]
    ) -> dict[str, Float[Tensor, "samples groups"]]:
        """Return leak, invention and what averaging adds, as pseudo-values over the draws of ∅."""
        split = self.split
        mean, *without = (values[:, 0] for values in (drawn.mean, *drawn.without))
        rounding = _rounding_of(mean, method.evaluator.task.probe.dtype)
        whole = predict(split, mean, prior, rounding)
        parts = [predict(split, values, prior, rounding) for values in without]
        averaging = torch.zeros(len(mean)).double()
        if method.fill.draws > 1:
            averaging = split.averaging(mean)
        shared = method.shares_stand_ins
        return {
            "leaks": pseudo_values(whole.leak, [part.leak for part in parts], shared),
            "inventions": pseudo_values(whole.invention, [part.invention for part in parts], shared),
            "averaging": pseudo_values(averaging, [split.averaging(values) for values in without], shared),
        }

    def curve(self, fully_masked: FullyMasked | None) -> MaskingCurve | None:
        """Score what was measured of the masking curve, which may be no sample; None without fully masked samples."""
        if fully_masked is None:
            return None
        parts = [found for _, found in self.found["curve"]]
        split = self.split
        all_absent = not bool((self.evaluator.players.labels == ALWAYS_PRESENT).any())
        if not parts:
            unscored = torch.zeros(len(self.methods), 0, len(self.sizes)).double()
            return MaskingCurve(
                scores=unscored,
                prior=fully_masked.prior[:0],
                sizes=self.sizes,
                unit=split.unit,
                limit=split.everything,
                all_absent=all_absent,
            )
        scale = split.variance if isinstance(split, ByValue) else 1.0
        scores, by_draws, inventions = [], [], []
        for number, method in enumerate(self.methods.values()):
            values = torch.cat([part[number].values for part in parts])
            own_scores = torch.cat([part[number].scores for part in parts]) / scale
            without = torch.cat([part[number].without for part in parts]) / scale
            own_split, by_size = split.of(len(values)), values.transpose(0, 1)
            invented = own_split.estimable_scores(by_size) - own_split.recalibrated(by_size)
            scores.append(own_scores)
            by_draws.append(pseudo_values(own_scores.mean(1), without.unbind(1), method.shares_stand_ins))
            inventions.append(invented.nanmean(1))
        return MaskingCurve(
            scores=torch.stack(scores),
            prior=fully_masked.prior[: len(scores[0])],
            sizes=self.sizes,
            unit=split.unit,
            limit=split.everything,
            all_absent=all_absent,
            by_draws=join_methods(by_draws),
            inventions=torch.stack(inventions),
        )

    def _tabulate(
        self, evaluator: Evaluator, fill: Fill, players: Players, games: Games, some: slice, draw: int = 0
    ) -> Tabulated:
        """Evaluate all coalitions of a few samples, or of games of some players, drawn for each sample."""
        if games.players == len(players):
            return evaluator.table(fill.select(some), samples=self.numbers[some], players=players)
        tables = []
        for place in range(some.start, some.stop):
            one, stream = slice(place, place + 1), seeded(self.seed, "game", draw, int(self.numbers[place]))
            drawn = torch.randperm(len(players), generator=stream)[: games.players].sort().values.tolist()
            tables.append(evaluator.table(fill.select(one), samples=self.numbers[one], players=players.only(drawn)))
        return Tabulated.join(tables)

    def _measure_games(self, some: slice, _draw: int, spend: Spend) -> dict[str, Tensor]:
        """Evaluate each method's own games, and return their figures."""
        games = self.plan.own
        figures = []
        for name, method in self.methods.items():
            groups = self._groups(method, self.plan.game_draws)
            tables = [
                self._tabulate(method.evaluator, method.fill.select(draws=group), self.evaluator.players, games, some)
                for group in groups
            ]
            drawn = Drawn.of([table.values.cpu() for table in tables], groups)
            noise = torch.stack([table.noise.cpu() for table in tables]).amax(0)
            figures.append(drawn_game_figures(drawn, noise, self.tau, method.shares_stand_ins))
            spend(name, sum(table.evaluations for table in tables))
        return {name: join_methods([figure[name] for figure in figures]) for name in figures[0]}

    def _measure_removal(self, some: slice, draw: int, spend: Spend) -> tuple[Tensor, Tensor]:
        """Measure the strengths that R is made of, and the rounding errors in those of the samples."""
        games, x = self.plan.removal, self.x[: self.plan.removal.samples]
        noise = torch.where(self.presence, x, self._noise("replacement", draw))
        masked = {name: inputs[:, draw % inputs.shape[1]] for name, inputs in self.masked.items()}
        strengths, rounding = [], torch.zeros(1)
        for name, inputs in (("", x), ("", noise), *masked.items()):
            table = self._tabulate(self.evaluator, self.against(draw, inputs), self.region, games, some, draw)
            strengths.append(moebius_(table.values)[:, 1:].abs().sum(1).cpu())
            if inputs is x:
                rounding = table.noise.cpu() * _GROWTH**games.players / games.draws
            spend(name, table.evaluations)
        return torch.stack(strengths), rounding

    def removal(self) -> Removal:
        """Return the strengths of the finished draws, or of the samples that are finished in the first draw."""
        games = self.plan.removal
        strengths = torch.full((self.plan.states, games.samples, games.draws), math.nan).double()
        rounding = torch.zeros(games.samples).double()
        for step, (some, errors) in self.found["removal"]:
            strengths[:, step.some, step.draw] = some
            rounding[step.some] += errors
        done = ~strengths.isnan().any(0)
        samples, draws = int(done[:, 0].sum()), max(1, int(done.all(0).sum()))
        strengths = strengths[:, :samples, :draws]
        none = torch.full_like(strengths[0], math.nan)  # of methods that mask no input
        found = dict(zip(self.masked, strengths[2:], strict=True))
        masked = torch.stack([found.get(name, none) for name in self.methods])
        removal = Removal(masked, strengths[0], strengths[1], rounding[:samples])
        if samples and not bool(removal.kept.any()):
            raise AbsentiaError(
                "The model does not respond to the region's players: effects are no larger than rounding errors in "
                "all samples. Audit other players, or run the model in double precision."
            )
        return removal

    def record(self, **more: Any) -> AuditRecord:
        """Return the record of the run."""
        games = self.plan.removal
        described = {name: describe_absence(method.absence) for name, method in self.methods.items()}
        costs, shared = {name: self.costs[name] for name in self.methods}, self.costs[""]
        exact = games.players == len(self.region)
        return AuditRecord(
            self.evaluator.readout_note,
            len(self.numbers),
            games.draws,
            exact,
            self.region.names,
            self.seed,
            costs,
            shared,
            tuple(self.notes),
            game_players=games.players,
            absences=described,
            given=self.evaluator.samples,
            surrogates=self.surrogates,
            **more,
        )


def _name_limit(limit: TimeLimit) -> str:
    """Say that the time limit ended the work."""
    return f"time limit of {limit.seconds:g} s"


def _share(fill: Fill) -> Fill:
    """Return stand-ins once if they are the same for all samples."""
    if isinstance(fill, StandIns) and bool((fill.values == fill.values[:1]).all()):
        return StandIns(fill.x, fill.values[:1])
    return fill


def _rounding_of(values: Float[Tensor, "samples numbers"], dtype: torch.dtype) -> float:
    """Return the largest difference between samples' values that rounding may make."""
    sizes = values.abs()
    size = float(sizes[sizes < -_RULED_OUT].max().clamp_min(1)) if bool((sizes < -_RULED_OUT).any()) else 1.0
    return _UNITS_APART * torch.finfo(dtype).eps * size


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Put what failed before the message of an error."""
    try:
        yield
    except AbsentiaError as error:
        raise AbsentiaError(f"{what}: {error}") from error
