"""The audit: whether absences leak, invent, need many interactions, and leave effects of the players they mask."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, final

import torch
from jaxtyping import Shaped
from torch import Tensor

from absentia.absences import Absence, BringsModel, Fill, StandIns
from absentia.absences.fixed import Categorical
from absentia.absences.protocol import check_shape, describe_absence, for_classes
from absentia.absences.words import usual_absences
from absentia.audit.figures import MaskingCurve, Removal, compare_with_data, game_figures, join_games
from absentia.audit.findings import Audit, AuditRecord, Cost, CrossAudit
from absentia.coalitions import draw_coalitions, moebius_
from absentia.data import Classes, Table, blocks, check_number, check_rows, data_range, seeded, white_noise
from absentia.errors import AbsentiaError, wrong
from absentia.evaluation import Evaluator, Tabulated
from absentia.games import MAX_PLAYERS
from absentia.learning import LearnedBaseline, choose_absence
from absentia.models import (
    BatchRunner,
    OutOfTime,
    TimeLimit,
    affordable_rows,
    evaluation_mode,
    progress,
    quickest_threads,
    spread,
)
from absentia.players import ALWAYS_PRESENT, Players
from absentia.readouts import Features, LogOdds, Readout, Score

Region: TypeAlias = Sequence[str | int]
Absences: TypeAlias = Mapping[str, Absence | str | float] | Sequence[Absence | str | float]
# What absent players of a game are replaced by: the number of a draw, the inputs of present players → a fill.
Reference: TypeAlias = Callable[[int, Tensor], Fill]
Spend: TypeAlias = Callable[[str, int], None]  # books the rows of a method

# The operations that an audit may take by default: up to a minute on two cores; and the rows that it may
# always take.
_OPERATIONS, _FEW_ROWS = 3e11, 2**15
# Work is split into about this many steps, between which it can end. Tables hold at most this many values at a time.
_STEPS, _VALUES_AT_A_TIME = 64, 2**21
# What to do about a time limit in which nothing can be measured.
_NO_TIME = "Or audit fewer absences, or a quicker model."
# A baseline that is learned on the way takes at most this share of the time that is left.
_SHARE_FOR_LEARNING = 0.5
# Masked samples are made for at most this many entries at a time.
_ENTRIES_AT_A_TIME = 2**24
# An effect of order m adds up rounding errors to 2^(m/2) times those of the values; the sum over all effects grows
# by this factor with each player.
_GROWTH = 1 + 2**0.5
# The masking curve is measured on at most this many samples, and at about this many sizes of coalitions.
_MOST_SAMPLES, _MOST_SIZES = 500, 32
# A random absence is audited with at most this many of its draws, and with this many if rows are scarce.
_MOST_DRAWS, _FEW_DRAWS = 32, 8
# The number of players of a drawn game, if there are too many for all their coalitions.
_GAME_PLAYERS = 12
# Scarce rows are saved down to these: sizes below this many samples, then samples, draws, and players of a game.
_MANY_SAMPLES, _FEW_SIZES = 64, 8
_FEWEST_SAMPLES, _FEWEST_DRAWS, _FEWEST_PLAYERS = 16, 2, 4


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
    """Measure whether absences leak or invent, are concise and plausible; and recommend one.

    Three questions are asked of every absence, on the same samples and coalitions:

    1. Does it leak, or invent? Evidence at ∅ is the score of fully masked samples less that of the prior. The score
       is the log-loss of each sample's class, and the prior has the class frequencies; for other readouts it is the
       squared difference to v(N) as a share of its variance. Below 0 masked samples still tell their class: the
       absence leaks. Above 0 it argues for a class: it invents. The masking curve is the score by coalition size.
    2. Is it concise? Σ|U| is the strength of the interactions that explain a sample.
    3. Is it plausible? R = E_x[(Σ|U′| − Σ|U_noise|) / Σ|U|] compares the effects of samples whose ``region`` is
       masked, replaced by noise, or left as it is [ren2023faithful], against a ``reference`` in the place of absent
       players. It is 0 at the level of white noise. The distance to the data is that of masked samples.

    The recommendation is *honest first, then short*. Out are absences that leak, or invent more than there is to
    know: log(classes), or the variance. Of the others those remain whose score over all sizes is not worse than the
    best; of these, those with the least Σ|U|; then with the lowest R; then the closest to the data. A difference
    counts beyond two standard errors, paired over samples, or more by Student's factor if samples or draws are few.
    Nothing is recommended if all are out. A surrogate explains another model: it is a floor, and never recommended.
    Where some entries are always present, evidence below 0 is no leak.

    Parameters
    ----------
    model, x, y, players, readout, class_names
        The model on a batch of samples: see `MaskedModel`. At most 500 samples, drawn at random, are audited.
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
        Columns of categories, as in `learn_baseline`: white noise has their values of random rows of ``data``.
    evaluations : int, optional
        How many rows the model may evaluate in all; by default what a model of its size does in up to a minute on
        two cores. Where all coalitions take more, fewer samples are audited, and then drawn games of fewer players.
    seconds : float, optional
        A limit on the time. What is measured by then, or when Ctrl-C is pressed, is returned.
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
        evaluator = _read_samples(model, x, y, players, readout, class_names, limit)
        run = Auditor(evaluator, absences, region, data, draws, max_players, categorical, seed, evaluations)
        run.against, run.tau = run.reference(reference), tau
    except OutOfTime as error:
        raise limit.too_short(len(x), _NO_TIME) from error
    stopped = run.work(("curve", "games", "removal"), limit)
    masked = [run.masked.get(name) for name in run.methods]
    plausibility, note = compare_with_data(masked, run.data, run.within, run.region, seed)
    run.notes += [note] if note else []
    described = str(reference) if isinstance(reference, str | int | float) else describe_absence(reference)
    described = "white noise" if described == "noise" else described
    threshold = "above 5 % of a sample's largest" if tau is None else f"above {tau:g}"
    record = run.record(reference=described, threshold=threshold, stopped=stopped)
    curve, removal = run.curve(), run.removal()
    games = join_games([found for _, found in run.found["games"]], len(run.methods), run.plan.own.players)
    return Audit(tuple(run.methods), evaluator.names, removal, games, plausibility, record, curve, run.numbers)


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
    evaluator = _read_samples(model, x, y, players, readout, class_names)
    run = Auditor(evaluator, absences, region, data, draws, max_players, categorical, seed)
    names, found = tuple(run.methods), []
    if run.surrogates:
        raise wrong("absences", "mask the model's input", f"{run.surrogates[0]!r}, which brings its own model")
    rows = run.plan.removal.coalitions * run.plan.states
    with progress((1 + len(names)) * rows, "auditing", "row") as bar:
        for reference in ("noise", *run.methods.values()):
            run.against, run.found["removal"] = run.reference(reference), []
            run.take(run.steps("removal"), bar)
            found.append(run.removal().R)
    evaluator.check_still_same()
    values, errors = (torch.stack(parts) for parts in zip(*found, strict=True))
    return CrossAudit(names, ("white noise", *names), values, errors, run.record())


def _read_samples(
    model: Any, x: Table, y: Classes, players: Any, readout: Any, class_names: Any, limit: TimeLimit | None = None
) -> Evaluator:
    """Return the evaluator; raise an error for absences in the place of classes."""
    if isinstance(y[0] if isinstance(y, list | tuple) and y else y, Mapping | Absence):
        raise AbsentiaError("Absences were passed in the place of y, the classes. Write audit(model, x, absences=…).")
    return Evaluator(model, x, players, readout, y=y, class_names=class_names, limit=limit)


@dataclass(frozen=True)
class Games:
    """Games of which all coalitions are evaluated: how many samples, draws for each, and players."""

    samples: int
    draws: int
    players: int

    @property
    def coalitions(self) -> int:
        """The number of coalitions of all games."""
        return self.samples * self.draws << self.players

    def within(self, coalitions: float) -> Games:
        """Return smaller games with at most this many coalitions, if they can be so small."""
        samples = min(self.samples, max(_FEWEST_SAMPLES, int(coalitions / (self.draws << self.players))))
        draws = min(self.draws, max(_FEWEST_DRAWS, int(coalitions / (samples << self.players))))
        fitting = math.floor(math.log2(max(1.0, coalitions / (samples * draws))))
        return Games(samples, draws, min(self.players, max(_FEWEST_PLAYERS, fitting)))


@dataclass(frozen=True)
class Plan:
    """What an audit evaluates: the masking curve, each method's own games, and the games of R."""

    samples: int  # of the masking curve
    sizes: int  # of coalitions, besides that of all players
    own: Games
    removal: Games
    draws_of: Sequence[int]  # the draws of each method
    states: int  # of a sample that R compares: itself, noise, and each method
    most_draws: int = _MOST_DRAWS  # of a random absence

    @classmethod
    def of(
        cls, samples: int, players: int, region: int, draws: int, most: int, draws_of: Sequence[int], states: int
    ) -> Plan:
        """Plan an audit without a limit, but that of ``most`` players for all coalitions."""
        samples, sizes = min(samples, _MOST_SAMPLES), min(players, _MOST_SIZES)
        own, masked = (size if size <= most else min(_GAME_PLAYERS, most) for size in (players, region))
        return cls(samples, sizes, Games(samples, 1, own), Games(samples, draws, masked), draws_of, states)

    @property
    def draws(self) -> int:
        """The number of draws of all methods together."""
        return sum(min(draws, self.most_draws) for draws in self.draws_of)

    @property
    def curve_rows(self) -> int:
        """The rows of each sample of the masking curve."""
        return 1 + self.sizes * self.draws

    @property
    def rows(self) -> int:
        """The number of rows that the model evaluates."""
        games = self.own.coalitions * self.draws + self.removal.coalitions * self.states
        return self.samples * self.curve_rows + games

    def within(self, rows: int) -> Plan:
        """Return a plan of at most this many rows: a quarter for the curve, the rest in halves; or the least plan."""
        if self.rows <= rows:
            return self
        plan = replace(self, most_draws=_FEW_DRAWS)
        if rows / 4 < min(self.samples, _MANY_SAMPLES) * plan.curve_rows:
            plan = replace(plan, sizes=min(self.sizes, _FEW_SIZES))
        samples = min(self.samples, max(_FEWEST_SAMPLES, int(rows / 4 / plan.curve_rows)))
        left = rows - samples * plan.curve_rows
        own = replace(self.own, samples=samples).within(left / 2 / plan.draws)
        left -= own.coalitions * plan.draws
        removal = replace(self.removal, samples=samples).within(left / self.states)
        return replace(plan, samples=samples, own=own, removal=removal)


class Step(NamedTuple):
    """What to measure of a few samples: the curve, their games, or removal in one draw."""

    kind: str
    some: slice
    draw: int


@final
class Auditor:
    """One run: the absences bound to the samples, the plan, and what has been measured so far."""

    def __init__(
        self, evaluator: Evaluator, absences: Any, region: Region | None, data: Table, draws: int, max_players: int,
        categorical: Categorical, seed: int, evaluations: int | None = None,
    ) -> None:  # fmt: skip
        check_number("draws", draws, 1)
        check_number("max_players", max_players, 1, MAX_PLAYERS)
        if isinstance(evaluator.readout, Features):
            raise wrong("readout", "give one number for an audit", str(evaluator.readout))
        self.evaluator, self.categorical, self.seed = evaluator, categorical, seed
        self.region = evaluator.players if region is None else evaluator.players.only(region, "region")
        self.data = evaluator.x if data is None else check_rows(data, columns=evaluator.columns).to(evaluator.x)
        check_shape("data", self.data.shape[1:], evaluator.x)
        self.within = data_range(self.data, categorical)
        owned = self.region.labels.to(evaluator.x.device) >= 0
        if not bool(((self.within.high > self.within.low) & owned).any()):
            then = "Pass data=… with rows that show the range of white noise."
            raise wrong("data", "vary in the region's entries", "constants", then)
        self.methods: dict[str, Absence] = {}
        self.bound: dict[str, tuple[Evaluator, Fill]] = {}  # to the samples, and to its own model if it brings one
        for name, given in self._name(absences).items():
            with _naming(f"{name} cannot be audited"):
                self.methods[name] = absence = self._make(given)
                own = evaluator
                if isinstance(absence, BringsModel):
                    model = absence.instead_of(evaluator.model)
                    evaluator.limit.check()
                    own = Evaluator(model, evaluator.x, evaluator.players, evaluator.readout, limit=evaluator.limit)
                self.bound[name] = own, for_classes(absence, evaluator.classes, evaluator.names).bind(own.x)
        self.surrogates = tuple(name for name, one in self.methods.items() if isinstance(one, BringsModel))
        self.plan = self._afford(draws, max_players, evaluations)
        self.costs = dict.fromkeys((*self.methods, ""), Cost())
        self.found: dict[str, list[tuple[Step, Any]]] = {"curve": [], "games": [], "removal": []}  # by finished steps
        self.notes = self._first_notes(data is None)
        self._choose_samples()
        self.sizes = torch.linspace(0, len(evaluator.players), self.plan.sizes + 1).round().long()
        self.against: Reference = self.reference("noise")
        self.tau: float | None = None
        self.rows_per_step = max(self.plan.rows // _STEPS, 4 * evaluator.batch_size)  # fewer if time is short

    def _name(self, absences: Any) -> dict[str, Any]:
        """Return what was given by name: that of a mapping, the word, or the description."""
        if absences is None:
            return dict(usual_absences(self.data, self.evaluator.players, categorical=self.categorical))
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
        own, readout = self.data is self.evaluator.x, self.evaluator.readout
        if own and isinstance(given, str) and given.startswith("neighbours"):
            raise AbsentiaError("Each sample would be its own nearest row. Pass data=… without the audited samples.")
        # A readout of each sample's own class does not fit other rows.
        fits = own or getattr(getattr(readout, "y", None), "ndim", 0) == 0
        settings: dict[str, Any] = {
            "players": self.evaluator.players,
            "categorical": self.categorical,
            "seed": self.seed,
        }
        limit = self.evaluator.limit
        if isinstance(given, str) and given == "learned" and limit.seconds < math.inf:
            limit.check()
            settings["seconds"] = _SHARE_FOR_LEARNING * limit.left
        return choose_absence(given, self.evaluator.model, self.data, readout if fits else None, **settings)

    def _afford(self, draws: int, max_players: int, evaluations: int | None) -> Plan:
        """Plan the work within the rows that were given, or that the model's size allows."""
        draws_of = [fill.draws for _, fill in self.bound.values()]
        sizes, states = (len(self.evaluator.players), len(self.region)), 2 + len(self.methods) - len(self.surrogates)
        whole = Plan.of(self.evaluator.samples, *sizes, draws, max_players, draws_of, states)
        if evaluations is None:
            if whole.rows <= _FEW_ROWS:  # which are not worth counting the operations
                return whole
            self.evaluator.limit.check()
            rows = affordable_rows(self.evaluator.model, self.evaluator.x, _OPERATIONS)
            return whole.within(max(rows, _FEW_ROWS))
        plan = whole.within(evaluations)
        if plan.rows > evaluations:
            raise wrong("evaluations", f"be at least {plan.rows:,} for these absences", evaluations)
        return plan

    def _choose_samples(self) -> None:
        """Keep the samples of the plan, the first of a random order if not all, and mask the region of those of R."""
        plan, total = self.plan, self.evaluator.samples
        self.numbers = torch.arange(total)
        if min(plan.samples, plan.own.samples, plan.removal.samples) < total:
            self.numbers = torch.randperm(total, generator=seeded(self.seed, "samples"))[: plan.samples]
            few = self.numbers.to(self.evaluator.x.device)
            self.bound = {name: (own, fill.select(few)) for name, (own, fill) in self.bound.items()}
        self.x = self.evaluator.x[self.numbers]
        self.presence = self.region.labels.to(self.x.device) == ALWAYS_PRESENT  # with the region masked
        self.masked: dict[str, Tensor] = {}  # the samples, by each method that masks the model's input
        for name, (own, fill) in self.bound.items():
            self.bound[name] = own, self._few_draws(fill, plan.most_draws)
            if fill.draws > plan.most_draws:
                self.notes.append(f"{name} is audited with {plan.most_draws} of its {fill.draws:,} draws.")
            if name in self.surrogates:
                continue
            with _naming(f"{name} cannot be audited"):
                mine = self._few_draws(fill, plan.removal.draws)
                at_once = max(1, _ENTRIES_AT_A_TIME // (self.presence.numel() * mine.draws))
                parts = (mine(some, self.presence[None, None]) for some in blocks(plan.removal.samples, at_once))
                self.masked[name] = torch.cat([part[:, 0] for part in parts])
                if not bool(torch.isfinite(self.masked[name]).all()):
                    raise AbsentiaError("It fills absent entries with NaN or infinity.")

    def _few_draws(self, fill: Fill, most: int) -> Fill:
        """Return a fill with at most ``most`` of its draws, chosen at random."""
        if fill.draws <= most:
            return fill
        chosen = torch.randperm(fill.draws, generator=seeded(self.seed, "draws"))[:most]
        return fill.select(draws=chosen.sort().values.tolist())

    def _first_notes(self, own_data: bool) -> list[str]:
        """Describe on how many samples and in which games figures are measured, if not in all, and the data."""
        plan, notes = self.plan, []
        for what, games, players in (("Σ|U|", plan.own, self.evaluator.players), ("R", plan.removal, self.region)):
            parts = [f"on {games.samples} of the samples"] * (games.samples < plan.samples)
            if games.players < len(players):
                parts.append(f"in games of {games.players} of the {len(players)} players, drawn for each sample")
            if parts:
                notes.append(f"{what} is measured {' and '.join(parts)}. Pass evaluations=… for more.")
        if own_data:
            notes.append("The data's range was taken from the audited samples: pass data=… to use all your data.")
        learned = {name: one for name, one in self.methods.items() if isinstance(one, LearnedBaseline)}
        readout = self.evaluator.readout_note
        return notes + [f"{name}: {note}" for name, one in learned.items() for note in one.notes_on(readout)]

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

    def work(self, kinds: Sequence[str], limit: TimeLimit) -> str:
        """Take the steps of these kinds; return why they ended early, if they did."""
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
                    ended = self.take(self.steps(*kinds), bar, limit)
        except OutOfTime:
            ended = _name_limit(limit)
        except KeyboardInterrupt:
            if not self.found["curve"]:
                raise
            ended = "interrupted"
        if not self.found["curve"]:
            raise limit.too_short(self.plan.curve_rows, _NO_TIME)
        self.evaluator.check_still_same()
        return ended

    def _rows_to_time(self, limit: TimeLimit) -> int:
        """Return how many rows to time the model with; under a limit, as many as take a small share of the time."""
        rows = max(1, min(self.evaluator.batch_size, self.plan.rows // (4 * _STEPS)))
        run = BatchRunner(self.evaluator.model, self.evaluator.batch_size, limit)
        size = limit.rows_of_a_batch(rows)
        while size < rows:
            batch = self.x[torch.arange(size) % len(self.x)]
            with evaluation_mode(self.evaluator.model):
                run(batch.clone())
            larger = limit.rows_of_a_batch(rows)
            if larger <= size:
                return larger
            size = larger
        return rows

    def _shorten_steps(self, timed_rows: int, seconds_per_row: float, limit: TimeLimit) -> None:
        """Make steps small if time is short, because a step that is cut off is lost."""
        affordable = limit.left / (_STEPS * seconds_per_row)
        # A step runs the model for each method: with fewer rows than were timed, it would take longer for each.
        least = timed_rows * (1 + len(self.methods))
        if affordable < self.rows_per_step:
            self.rows_per_step = min(self.rows_per_step, max(least, int(affordable)))

    def take(self, steps: list[Step], bar: Any, limit: TimeLimit | None = None) -> str:
        """Take the steps, here or at workers, and keep what they find; return why they ended early, if they did."""
        for step, measured in zip(steps, spread(self.measure, steps, "auditing"), strict=True):
            if measured is None:
                return _name_limit(limit or self.evaluator.limit)
            found, costs = measured
            self.found[step.kind].append((step, found))
            for name, cost in costs:
                self.costs[name] += cost
                bar.update(cost.evaluations)
        return ""

    def steps(self, *kinds: str) -> list[Step]:
        """Split what is measured into steps of a few samples each, which do not depend on each other."""
        plan, most = self.plan, self.rows_per_step
        own, removal = plan.own, plan.removal
        sizes = {
            "curve": (plan.samples, plan.curve_rows, 0, 1),
            "games": (own.samples, plan.draws << own.players, own.players, 1),
            "removal": (removal.samples, plan.states << removal.players, removal.players, removal.draws),
        }
        return [
            Step(kind, some, draw)
            for kind, (samples, rows, players, draws) in sizes.items() if kind in kinds
            for draw in range(draws)
            for some in blocks(samples, max(1, min(most // rows, _VALUES_AT_A_TIME >> players)))
        ]  # fmt: skip

    def measure(self, step: Step) -> tuple[Any, list[tuple[str, Cost]]] | None:
        """Measure one step; return what it found and the cost of each method (``""`` means shared cost).

        Return None if the time limit cuts it off.
        """
        costs, last = list[tuple[str, Cost]](), time.perf_counter()

        def spend(name: str, rows: int) -> None:
            nonlocal last
            last, began = time.perf_counter(), last
            costs.append((name, Cost(rows, last - began)))

        try:
            found = getattr(self, f"_measure_{step.kind}")(step.some, step.draw, spend)
        except OutOfTime:
            return None
        return found, costs

    def _measure_curve(self, some: slice, _draw: int, spend: Spend) -> Tensor:
        """Evaluate a coalition of each size: v(N), and the values of each method."""
        players, numbers = len(self.evaluator.players), self.numbers[some]
        everybody = torch.ones(1, players, dtype=torch.bool)
        streams = [seeded(self.seed, "curve", number) for number in numbers.tolist()]
        coalitions = torch.stack([draw_coalitions(players, self.sizes[:-1], stream) for stream in streams])
        full = self.evaluator.values(StandIns(self.x[some], self.x[some, None]), everybody, samples=numbers)
        found = [full.expand(-1, len(self.sizes))]
        spend("", len(numbers))
        for name, (own, fill) in self.bound.items():
            mine = fill.select(some)
            values, last = own.values(mine, coalitions, samples=numbers), full
            if name in self.surrogates:
                last = own.values(mine.select(draws=[0]), everybody, samples=numbers)
            found.append(torch.cat([values, last], dim=1))
            spend(name, values.numel() * mine.draws)
        return torch.stack(found).double().cpu()

    def curve(self) -> MaskingCurve:
        """Score what was measured of the masking curve."""
        full, *values = torch.cat([found for _, found in self.found["curve"]], dim=1)
        all_absent = not bool((self.evaluator.players.labels == ALWAYS_PRESENT).any())
        readout = self.evaluator.readout
        if isinstance(readout, LogOdds) and readout.y.ndim:  # of each sample's class
            readout = replace(readout, y=readout.y[self.numbers[: len(full)]])
        return MaskingCurve.of(Score(readout, full[:, 0]), torch.stack(values), self.sizes, all_absent)

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
        games, found = self.plan.own, []
        for name, (own, fill) in self.bound.items():
            table = self._tabulate(own, fill, self.evaluator.players, games, some)
            found.append(game_figures(table, games.players, self.tau))
            spend(name, table.evaluations)
        return {name: torch.stack([one[name] for one in found]) for name in found[0]}

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
        games, described = self.plan.removal, {name: describe_absence(one) for name, one in self.methods.items()}
        costs, shared = {name: self.costs[name] for name in self.methods}, self.costs[""]
        exact = games.players == len(self.region)
        return AuditRecord(
            self.evaluator.readout_note, len(self.numbers), games.draws, exact, self.region.names, self.seed,
            costs, shared, tuple(self.notes), game_players=games.players, absences=described,
            given=self.evaluator.samples, surrogates=self.surrogates, **more,
        )  # fmt: skip


def _name_limit(limit: TimeLimit) -> str:
    """Say that the time limit ended the work."""
    return f"time limit of {limit.seconds:g} s"


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Put what failed before the message of an error."""
    try:
        yield
    except AbsentiaError as error:
        raise AbsentiaError(f"{what}: {error}") from error
