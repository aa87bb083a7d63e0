"""Experiments: what the paper claims, the parts that measure it, their records, and the verdict.

An experiment has one or more parts, such as one for each data set. A part is a function of a `Run`, which knows the
size and the seed, hands out data and networks, and keeps what is finished of long work. Each part is saved as soon as
it is measured, so that a run that was stopped goes on from there.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import joblib
import torch
from torch import nn
from tqdm.auto import tqdm

from absentia import AbsentiaError, __version__
from experiments.datasets import LOADERS
from experiments.downloads import cache_folder, written_whole
from experiments.tables import ResultTable, plus_minus
from experiments.trained_models import trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Size: TypeAlias = Literal["full", "quick", "tiny"]  # tiny is for tests
Word: TypeAlias = Literal[
    "as stated", "in one reading", "by another method", "no", "untestable", "no claim", "not measured"
]
Job = TypeVar("Job")

# What the verdicts on the paper's claims mean, in the order of the report.
MEANINGS: Mapping[Word, str] = {
    "as stated": "the claim holds in the paper's own setting",
    "in one reading": "it holds in a setting that we chose, where the paper is silent or contradicts itself",
    "by another method": "what it claims is found, but by another loss or search than the paper's",
    "no": "it does not hold",
    "untestable": "what it needs is not available",
}
RESULTS = Path(__file__).parent / "results"
_DOTS_PER_INCH = 80


_KNOWN = {"before": "before the result", "after a trial": "after a trial", "after": "after the result"}
# The word of the table of all claims.
_KNOWN_SHORT = {"before": "before", "after a trial": "trial", "after": "after"}


@dataclass(frozen=True)
class Rule:
    """How a verdict on a claim is found: what it asks, the day on which it was fixed, and what was known then.

    >>> print(Rule("The ratio is at least 2.", "2026-11-18", "after"))
    The ratio is at least 2. Fixed on 2026-11-18, after the result.
    >>> print(Rule("The ratio is at least 2.", "2026-11-18", "after", earlier="An earlier rule asked for 3."))
    The ratio is at least 2. Fixed on 2026-11-18, after the result. An earlier rule asked for 3.
    """

    asks: str
    fixed: str  # the day, as 2026-11-18
    known: Literal["before", "after a trial", "after"]  # whether the result was known
    earlier: str = ""  # the rule that it replaced, and why
    of: str = ""  # what was not yet measured, if another part of what the rule judges was

    def __post_init__(self) -> None:
        date.fromisoformat(self.fixed)
        for sentence in (self.asks, self.earlier):
            if sentence and not sentence.endswith("."):
                raise AbsentiaError(f"A rule is told in sentences. Got {sentence!r} instead.")

    @property
    def was_changed(self) -> bool:
        """Whether it replaced another rule."""
        return bool(self.earlier)

    @property
    def when(self) -> str:
        """The day, and what was known on it, in words."""
        of = f" of {self.of}" if self.of else ""
        changed = ", changed" if self.was_changed else ""
        return f"{self.fixed}, {_KNOWN[self.known]}{of}{changed}"

    @property
    def when_in_short(self) -> str:
        """The month and day, and a word for what was known, for the table of all claims."""
        changed = ", changed" if self.was_changed else ""
        return f"{self.fixed[5:]} {_KNOWN_SHORT[self.known]}{changed}"

    def __str__(self) -> str:
        of = f" of {self.of}" if self.of else ""
        fixed = f"Fixed on {self.fixed}, {_KNOWN[self.known]}{of}."
        return " ".join(part for part in (self.asks, fixed, self.earlier) if part)


Figures: TypeAlias = Mapping[str, Mapping[str, float]]  # of each part that was measured


@dataclass(frozen=True)
class Correction:
    """An untrue or incomplete statement in the record of a part, and what the report prints instead.

    Records stay as they were measured. Remove a correction when its part is measured again.
    """

    part: str
    said: str
    now: str


@dataclass(frozen=True)
class Quantity:
    """A figure of a claim: its value, its standard error if there is one, and how it is written.

    >>> print(Quantity("R {}", 0.2, 0.0312, ".2f"))
    R 0.20 ± 0.03
    """

    words: str  # with {} for the figure
    value: float
    error: float | None = None
    form: str = ".2f"

    def __str__(self) -> str:
        return self.words.format(plus_minus(self.value, self.error, self.form))


@dataclass(frozen=True)
class Line:
    """A claim in the table of all claims: a few words, what the paper prints, and one figure of ours."""

    says: str
    printed: str
    ours: Callable[[Figures], Sequence[Quantity]]
    parts: tuple[str, ...]  # whose figures are read
    exact: bool = False  # nothing is drawn, so that there are no seeds


@dataclass(frozen=True)
class Verdict:
    """How far the claim holds, our figures in short, and the reason in one line.

    ``which`` names the reading, or the other method.
    """

    word: Word
    ours: str
    reason: str
    which: str = ""
    which_in_short: str = ""  # for the table of all claims

    @property
    def words(self) -> str:
        """The word, with the reading or the method if there is one.

        >>> Verdict("in one reading", "3 : 1", "It is so.", "zero as absence").words
        'in one reading (zero as absence)'
        """
        return f"{self.word} ({self.which})" if self.which else self.word


@dataclass(frozen=True)
class Claim:
    """What the paper claims, where, what it prints, and the rule by which a verdict is found from the figures.

    ``judge`` gets the figures of the parts that were measured; those of other parts are missing.
    """

    says: str
    place: str
    printed: str
    rule: Rule
    judge: Callable[[Figures], Verdict]
    parts: tuple[str, ...] = ()  # the parts that it is judged by; none are all
    line: Line | None = None  # in the table of all claims; without it, the words above


@dataclass(frozen=True)
class Found:
    """What a part measured: figures that the verdict is computed from, tables, and names of pictures."""

    figures: Mapping[str, float]
    tables: tuple[ResultTable, ...] = ()
    pictures: tuple[str, ...] = ()


class NotToBeHadError(AbsentiaError):
    """A part cannot be measured here; the message is the reason."""


@dataclass(frozen=True, eq=False)
class Run:
    """The size and seed of a run, where its data and networks come from, and what of it is already finished."""

    experiment: str = "trial"
    part: str = "all"
    size: Size = "full"
    seed: int = 0
    workers: int | None = 1
    folder: Path = RESULTS  # for pictures
    data: Callable[[str], Any] = lambda name: LOADERS[name]()
    network: Callable[..., nn.Module] = trained

    def pick(self, **of_size: Job) -> Job:
        """Return what belongs to the size of the run; a quick one stands in for a tiny one that is not given.

        >>> Run(size="quick").pick(full=100, quick=5), Run(size="tiny").pick(full=100, quick=5)
        (5, 5)
        """
        return of_size.get(self.size, of_size["quick"])

    def each(self, work: Callable[[Job], Any], jobs: Mapping[str, Job]) -> dict[str, Any]:
        """Do all jobs, and return what JSON keeps of their results; what was finished before is not done again.

        Progress is shown with the time left. Results are written line by line as they come.
        """
        path = self.unfinished
        print_of_code = _fingerprint(work)
        done = _read_lines(path, print_of_code)
        path.parent.mkdir(parents=True, exist_ok=True)
        left = [(key, job) for key, job in jobs.items() if key not in done]
        label = f"{self.experiment}, {self.part}"
        bar = tqdm(total=len(jobs), initial=len(jobs) - len(left), desc=label, disable=None, leave=False)
        with path.open("a", encoding="utf-8") as file, bar:
            for key, result in self._results(work, left):
                file.write(json.dumps([print_of_code, key, result]) + "\n")
                file.flush()
                done[key] = json.loads(json.dumps(result))
                bar.update()
        return {key: done[key] for key in jobs}

    @property
    def unfinished(self) -> Path:
        """The file that keeps finished jobs until the whole part is saved."""
        return cache_folder() / "runs" / f"{self.experiment}-{self.part}-{self.size}-seed{self.seed}.jsonl"

    def _results(self, work: Callable[[Job], Any], jobs: list[tuple[str, Job]]) -> Iterator[tuple[str, Any]]:
        if self.workers == 1 or len(jobs) < 2:
            return ((key, work(job)) for key, job in jobs)
        # Where an active `joblib.parallel_config` says, or else in processes of this machine.
        spread = _workers(self.workers)
        return iter(spread(joblib.delayed(_keyed)(work, *job) for job in jobs))

    def picture(self, name: str, figure: Figure) -> str:
        """Write a figure beside the records, and return the name of its file."""
        quick = "" if self.size == "full" else f"-{self.size}"
        file = f"{self.experiment}-{name}{quick}.png"
        self.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.folder / file, dpi=_DOTS_PER_INCH, metadata={"Software": None})
        return file


@dataclass(frozen=True)
class Experiment:
    """One experiment: its settings, its parts, its claims, and what their verdicts do not say.

    ``beyond`` sums up the figures of an experiment that goes beyond the paper and has no claims.
    """

    name: str  # by its place in the paper
    title: str
    settings: str  # the paper's where it states them, ours where it does not
    parts: Mapping[str, Callable[[Run], Found]]
    claims: tuple[Claim, ...] = ()
    beyond: Callable[[Figures], Verdict] | None = None
    caveats: tuple[str, ...] = ()  # five lines at most
    shown: tuple[str, ...] = ()  # the beginnings of titles of tables that its page does not fold
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # other names, and the parts that they run
    many_jobs: tuple[str, ...] = ()  # parts whose jobs keep several processes busy
    not_again: tuple[str, ...] = ()  # what was not measured, or not again after a change, and why
    corrections: tuple[Correction, ...] = ()  # of statements in the present records


@dataclass(frozen=True)
class Part:
    """The record of a part: what was found, or why nothing was, and how it was measured."""

    found: Found | None
    missing: str
    size: Size
    seed: int
    seconds: float  # 0 where an earlier version did not keep it
    versions: str


@dataclass(frozen=True)
class Record:
    """The parts of an experiment that were measured, each at its own size."""

    experiment: str
    parts: Mapping[str, Part]

    def figures(self) -> dict[str, Mapping[str, float]]:
        """Return the figures of the parts that have any."""
        return {name: part.found.figures for name, part in self.parts.items() if part.found is not None}


class Journal:
    """The parts that a command has finished, kept until it ends, so that the same command goes on after a kill.

    A journal of other code is ignored.
    """

    def __init__(self, command: str) -> None:
        name = hashlib.sha256(command.encode()).hexdigest()[:16]
        self.path = cache_folder() / "runs" / f"journal-{name}.txt"
        self.code = _fingerprint_of_all()
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        self.finished = set(lines[1:]) if lines[:1] == [self.code] else set()

    def add(self, part: str) -> None:
        """Note a part that is finished and saved."""
        self.finished.add(part)
        with written_whole(self.path) as unfinished:
            unfinished.write_text("\n".join([self.code, *sorted(self.finished)]), encoding="utf-8")

    def close(self) -> None:
        """Forget the journal: the command has ended."""
        self.path.unlink(missing_ok=True)


def measure(experiment: Experiment, run: Run, only: tuple[str, ...] = (), journal: Journal | None = None) -> Record:
    """Measure some or all parts of an experiment, save each as soon as it is there, and return the whole record."""
    unknown = [part for part in only if part not in experiment.parts]
    if unknown:
        must = f"parts of {experiment.name} must be among {', '.join(experiment.parts)}"
        raise AbsentiaError(f"{must}. Got {unknown[0]!r} instead.")
    for _, _, error in measure_parts([(experiment, part) for part in only or experiment.parts], run, journal):
        if error is not None:
            raise error
    return read_record(run.folder, experiment.name, run.size)


def measure_parts(
    parts: Sequence[tuple[Experiment, str]], run: Run, journal: Journal | None = None
) -> Iterator[tuple[Experiment, str, AbsentiaError | None]]:
    """Measure parts of experiments, save each as soon as it is there, and yield it, or the error that it ended with.

    Processes take one part each, with one thread; parts with many jobs follow, whose jobs are spread in the same way.
    Parts that the journal knows are taken from the saved record.
    """
    finished = journal.finished if journal is not None else ()
    left = [(experiment, part) for experiment, part in parts if f"{experiment.name} {part}" not in finished]
    many = [(experiment, part) for experiment, part in left if part in experiment.many_jobs]
    whole = [one for one in left if one not in many]
    with tqdm(total=len(left), desc="parts", disable=None, leave=False) as bar:
        for experiment, name, result in chain(_side_by_side(whole, run), _in_turn(many, run)):
            error = result if isinstance(result, AbsentiaError) else None
            if isinstance(result, Part):
                save_record(run.folder, experiment.name, run.size, {name: result})
                replace(run, experiment=experiment.name, part=name).unfinished.unlink(missing_ok=True)
                if journal is not None:
                    journal.add(f"{experiment.name} {name}")
            bar.update()
            yield experiment, name, error


def _workers(count: int | None) -> joblib.Parallel:
    """Return workers that hand back results as they are done, or all at the end if the backend cannot."""
    one_by_one = joblib.parallel.get_active_backend()[0].supports_return_generator
    return_as = "generator_unordered" if one_by_one else "list"
    return joblib.Parallel(count or -1, return_as=return_as, batch_size=1)


def _side_by_side(parts: Sequence[tuple[Experiment, str]], run: Run) -> Iterator[tuple[Experiment, str, Any]]:
    """Measure parts in processes, one for each worker; here, if there is one worker or one part."""
    if run.workers == 1 or len(parts) < 2:
        yield from _in_turn(parts, run)
        return
    spread = _workers(run.workers)
    alone = replace(run, workers=1)
    for place, result in spread(
        joblib.delayed(_measure_aside)(place, *one, alone) for place, one in enumerate(parts)
    ):
        yield (*parts[place], result)


def _in_turn(parts: Sequence[tuple[Experiment, str]], run: Run) -> Iterator[tuple[Experiment, str, Any]]:
    for experiment, name in parts:
        yield experiment, name, _measure_part(experiment, name, run)


def _measure_aside(place: int, experiment: Experiment, name: str, run: Run) -> tuple[int, Part | AbsentiaError]:
    """Measure a part in a process of its own, which shows no bars: several would write over each other."""
    torch.set_num_threads(1)
    with redirect_stderr(io.StringIO()):
        return place, _measure_part(experiment, name, run)


def _measure_part(experiment: Experiment, name: str, run: Run) -> Part | AbsentiaError:
    """Measure a part; return the error of a user's kind that it ended with."""
    began = time.perf_counter()
    result = None
    missing = ""
    try:
        result = experiment.parts[name](replace(run, experiment=experiment.name, part=name))
    except NotToBeHadError as error:
        missing = str(error)
    except AbsentiaError as error:
        return error
    versions = f"absentia {__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    return Part(result, missing, run.size, run.seed, round(time.perf_counter() - began, 1), versions)


def record_file(folder: Path, experiment: str, size: Size) -> Path:
    """Return the file of a record; sizes other than the full one have files of their own."""
    if size == "full":
        return folder / f"{experiment}.json"
    return folder / f"{experiment}-{size}.json"


def save_record(folder: Path, experiment: str, size: Size, parts: Mapping[str, Part]) -> None:
    """Write parts to an experiment's record, beside those that are there."""
    together = {**read_record(folder, experiment, size).parts, **parts}
    content = {"experiment": experiment, "parts": {name: asdict(part) for name, part in together.items()}}
    with written_whole(record_file(folder, experiment, size)) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_record(folder: Path, experiment: str, size: Size) -> Record:
    """Read the record of an experiment; it has no parts if there is none."""
    path = record_file(folder, experiment, size)
    if not path.is_file():
        return Record(experiment, {})
    content = json.loads(path.read_text(encoding="utf-8"))
    return Record(experiment, {name: _read_part(part) for name, part in content["parts"].items()})


def best_record(folder: Path, experiment: str) -> Record:
    """Read each part at full size where it was measured so, and at the quick size otherwise."""
    quick = read_record(folder, experiment, "quick").parts
    full = read_record(folder, experiment, "full").parts
    return Record(experiment, {**quick, **full})


def seed_folder(folder: Path, seed: int) -> Path:
    """Return the folder of the records of a seed: those of seed 0 are in the folder itself.

    >>> seed_folder(Path("results"), 0).name, seed_folder(Path("results"), 2).name
    ('results', 'seed-2')
    """
    return folder if seed == 0 else folder / f"seed-{seed}"


def other_seeds(folder: Path, experiment: str) -> dict[int, Record]:
    """Read the records of an experiment with other seeds than 0, at full size."""
    records = {}
    for path in sorted(folder.glob("seed-*")):
        record = read_record(path, experiment, "full")
        if record.parts:
            records[int(path.name.removeprefix("seed-"))] = record
    return records


def _read_part(content: dict[str, Any]) -> Part:
    result = content.pop("found")
    if result is None:
        return Part(None, **content)
    tables = tuple(ResultTable(**table) for table in result["tables"])
    return Part(Found(result["figures"], tables, tuple(result["pictures"])), **content)


def _keyed(work: Callable[[Job], Any], key: str, job: Job) -> tuple[str, Any]:
    torch.set_num_threads(1)
    return key, work(job)


def _fingerprint(work: Callable[..., Any]) -> str:
    """Describe the code of a job, so that results of other code are not taken for its own."""
    inner: Any = work.func if isinstance(work, partial) else work
    settings = repr((work.args, work.keywords)) if isinstance(work, partial) else ""
    source = getattr(sys.modules.get(inner.__module__), "__file__", None)
    code = Path(source).read_bytes() if source else b""
    return hashlib.sha256(code + f"{inner.__qualname__} {settings} {__version__}".encode()).hexdigest()[:16]


def _fingerprint_of_all() -> str:
    """Describe the code of all experiments and the version of the library."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _read_lines(path: Path, print_of_code: str) -> dict[str, Any]:
    """Read finished jobs of the same code; a last line that was cut off counts as not finished."""
    done = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            code, key, result = json.loads(line)
        except ValueError:
            continue
        if code == print_of_code:
            done[key] = result
    return done
