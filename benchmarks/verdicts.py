"""Measure how reliable the verdicts of audits are, and write the figures to results/verdicts.md.

    python benchmarks/verdicts.py                       # all of it: about 25 minutes on one core
    python benchmarks/verdicts.py coverage time         # some of it; the page keeps the other figures
    python benchmarks/verdicts.py --quick --output DIR  # a smoke test

halves: twelve models are audited on disjoint halves of held-out samples. Do the halves recommend the same absence, as
    often as their confidence says?
planted: one of two absences is better by twice the rule's thresholds. Is it recommended?
coverage: how often do the errors of leak and invention hold, and how often is an absence accused that does neither?
leaks: are planted leaks and inventions found, and told apart?
time: how long does a default audit take?
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import absentia as ab
from absentia.auditing.estimates import Mean
from absentia.auditing.verdict import PRACTICAL_LEAK
from audited_models import MODELS, Audited, Rows, cnn_on_digits, logistic_on_cancer, train
from coverage_of_errors import ROUNDING, TIMES, measure_coverage, settings
from made_up import Blend
from planted import THREE, audit_made_up, blends, claims, contests, towards, true_figures
from result_tables import HERE, Row, Table, describe_machine, options, print_table, to_markdown, verdict

# Halves of held-out samples have at most this many samples, and their audits evaluate at most this many rows.
MOST_HALF = 120
ROWS_OF_HALF = 2**18
# Halves are grouped by their confidence: up to a third, up to what counts as clear, and above.
BINS = ((0.0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 0.9), (0.9, 1.0))
# Planted figures should be found in at least this share of the runs.
FOUND = 0.9
# A default audit should take at most this long.
SECONDS = 60
SHARES_OF_SAMPLE = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SHARES_OF_CLAIM = (0.0, 0.1, 0.2, 0.35, 0.5, 1.0)
# Audits that need only fully masked samples evaluate this many rows.
FEW_ROWS = 2**14
SAMPLES_OF_CONTEST = 100
SAMPLES_OF_PLANTS = 500  # as many as an audit takes at most


@dataclass(frozen=True)
class Effort:
    """How often everything is repeated."""

    models: int  # models audited on halves
    splits: int  # splits into halves
    contests: int
    true_gaps: int  # audits of many samples for each contest
    settings: int  # settings in which coverage is measured
    most_redraws: int
    plants: int
    plants_in_digits: int
    timed: tuple[Callable[[], Audited], ...]


@dataclass(frozen=True)
class Answer:
    """What an audit recommends, and the share of resamples that each absence wins."""

    recommended: str | None
    confidence: float
    clear: bool
    shares: tuple[float, ...]

    @classmethod
    def of(cls, found: ab.Audit) -> Answer:
        """Return the answer of an audit."""
        judgement = found.judgement
        return cls(found.recommended, judgement.confidence, judgement.clear, judgement.shares)


@dataclass(frozen=True)
class Pair:
    """The answers of two halves."""

    one: Answer
    other: Answer

    @property
    def agree(self) -> bool:
        """Whether both halves recommend the same absence."""
        return self.one.recommended == self.other.recommended

    @property
    def contradict(self) -> bool:
        """Whether both answers are clear but differ."""
        return self.one.clear and self.other.clear and not self.agree

    @property
    def predicted(self) -> float:
        """The probability that a resample of one half agrees with a resample of the other."""
        return sum(one * other for one, other in zip(self.one.shares, self.other.shares, strict=True))


def halves(effort: Effort) -> list[Table]:
    """Audit halves of the held-out samples of each model, and the same samples with three seeds."""
    pairs = dict[str, list[Pair]]()
    seeds = dict[str, list[Answer]]()
    for make in MODELS[: effort.models]:
        audited = make()
        pairs[audited.name] = [audit_halves(audited, split) for split in range(effort.splits)]
        first_half, _ = split_samples(audited, split=0)
        seeds[audited.name] = [Answer.of(audited.audit(first_half, seed, ROWS_OF_HALF)) for seed in range(3)]
        print(f"{audited.name}: {sum(pair.agree for pair in pairs[audited.name])} of {effort.splits} agree")
    return [agreement_by_confidence(pairs), agreement_by_model(pairs), agreement_of_seeds(seeds)]


def split_samples(audited: Audited, split: int) -> tuple[Tensor, Tensor]:
    """Return the numbers of two disjoint halves of the held-out samples."""
    count = len(audited.rows.held_out[0])
    order = torch.randperm(count, generator=torch.Generator().manual_seed(split))
    size = min(MOST_HALF, count // 2)
    return order[:size], order[size : 2 * size]


def audit_halves(audited: Audited, split: int) -> Pair:
    """Audit two halves, each with its own draws."""
    one, other = split_samples(audited, split)
    return Pair(
        Answer.of(audited.audit(one, 2 * split, ROWS_OF_HALF)),
        Answer.of(audited.audit(other, 2 * split + 1, ROWS_OF_HALF)),
    )


def agreement_by_confidence(pairs: dict[str, list[Pair]]) -> Table:
    rows: list[Row] = []
    everyone = [pair for some in pairs.values() for pair in some]
    for low, high in BINS:
        inside = [
            (answer, pair)
            for pair in everyone
            for answer in (pair.one, pair.other)
            if low <= answer.confidence < high or answer.confidence == high == 1
        ]
        rows.append(row_of_agreement(f"{low:.0%} – {high:.0%}", inside))
    rows.append(row_of_agreement("all", [(answer, pair) for pair in everyone for answer in (pair.one, pair.other)]))
    contradictions = sum(pair.contradict for pair in everyone)
    clear = sum(pair.one.clear and pair.other.clear for pair in everyone)
    note = (
        f"Each half of {len(everyone)} pairs counts in the row of its own confidence. Predicted by its confidence: "
        "its mean. Predicted by both: how often resamples of the two halves have the same winner. Goal: what is seen "
        "is not below the confidence by more than two binomial errors. Of "
        f"{clear} pairs in which both are clear, {contradictions} contradict each other."
    )
    return Table("Halves of the samples: agreement by confidence", note, rows)


def row_of_agreement(name: str, inside: Sequence[tuple[Answer, Pair]]) -> Row:
    if not inside:
        return {
            "confidence": name,
            "halves": 0,
            "agreement seen": None,
            "predicted by confidence": None,
            "predicted by both": None,
            "verdict": None,
        }
    count = len(inside)
    seen = sum(pair.agree for _, pair in inside) / count
    predicted = sum(answer.confidence for answer, _ in inside) / count
    slack = 2 * math.sqrt(predicted * (1 - predicted) / count)
    return {
        "confidence": name,
        "halves": count,
        "agreement seen": f"{seen:.0%}",
        "predicted by confidence": f"{predicted:.0%}",
        "predicted by both": f"{sum(pair.predicted for _, pair in inside) / count:.0%}",
        "verdict": verdict(seen >= predicted - slack),
    }


def agreement_by_model(pairs: dict[str, list[Pair]]) -> Table:
    rows: list[Row] = [
        {
            "model": name,
            "pairs": len(some),
            "agree": sum(pair.agree for pair in some),
            "contradict": sum(pair.contradict for pair in some),
            "recommended": ", ".join(sorted({str(answer.recommended) for answer in answers_of(some)})),
            "mean confidence": f"{sum(answer.confidence for answer in answers_of(some)) / (2 * len(some)):.0%}",
        }
        for name, some in pairs.items()
    ]
    note = f"Halves have at most {MOST_HALF} samples, and audits evaluate at most {ROWS_OF_HALF:,} rows."
    return Table("Halves of the samples: agreement by model", note, rows)


def answers_of(pairs: Sequence[Pair]) -> list[Answer]:
    return [answer for pair in pairs for answer in (pair.one, pair.other)]


def agreement_of_seeds(seeds: dict[str, list[Answer]]) -> Table:
    rows: list[Row] = []
    for name, answers in seeds.items():
        clear = {answer.recommended for answer in answers if answer.clear}
        rows.append(
            {
                "model": name,
                "recommended (confidence)": ", ".join(f"{one.recommended} ({one.confidence:.0%})" for one in answers),
                "verdict": verdict(len(clear) <= 1),
            }
        )
    note = "Audits of the same samples. Goal: those that are clear recommend the same; the others say level."
    return Table("Seeds 0, 1 and 2", note, rows)


def planted(effort: Effort) -> list[Table]:
    """Audit two absences of which one is better."""
    rows: list[Row] = []
    for contest in contests():
        audits = [contest.audit(SAMPLES_OF_CONTEST, seed) for seed in range(effort.contests)]
        named = sum(found.recommended == "better" for found in audits) / len(audits)
        dropped = sum(found.judgement.stages[1] == contest.stage for found in audits) / len(audits)
        clear = sum(found.judgement.clear for found in audits) / len(audits)
        rows.append(
            {
                "better by": contest.name,
                "true gap / threshold": contest.true_gap(effort.true_gaps),
                "runs": len(audits),
                "recommended": f"{named:.0%}",
                "for this reason": f"{dropped:.0%}",
                "clear": f"{clear:.0%}",
                "goal": f"≥ {FOUND:.0%}",
                "verdict": verdict(named >= FOUND),
            }
        )
    note = (
        "A neutral constant beside an absence that leaks, invents, predicts worse or needs more interactions, by "
        "about twice what the rule ignores. Gaussian classes with their Bayes classifier; "
        f"{SAMPLES_OF_CONTEST} samples are drawn for each run."
    )
    return [Table("Planted winners", note, rows)]


def coverage(effort: Effort) -> list[Table]:
    """Repeat measurements of leak and invention on freshly drawn samples."""
    covered_rows: list[Row] = []
    accused_rows: list[Row] = []
    for setting in settings()[: effort.settings]:
        for one in measure_coverage(setting, effort.most_redraws):
            if one.is_exact:
                continue
            figures: Row = {"samples": one.setting, "stand-ins": one.stand_ins, "figure": one.figure}
            covered_rows.append(
                {
                    **figures,
                    "runs": one.runs,
                    "truth": one.truth,
                    "mean": one.mean,
                    "standard deviation": one.spread,
                    "error given": one.error,
                    "within ± margin": f"{one.covered:.1%}",
                    "verdict": verdict(one.holds),
                }
            )
            if one.is_zero:
                verdict_on_zero = verdict(one.accuses_rarely)
                accused_rows.append({**figures, "accused": f"{one.accused:.1%}", "verdict": verdict_on_zero})
    note = (
        f"Samples and random stand-ins are drawn anew in each run. The truth is the mean over runs with {TIMES} "
        "times the samples, or 0 where it is known to be. Error given: the root of the mean square. "
        "Goal: 95 %, within two binomial errors. Figures that are exactly 0 in each run are left out."
    )
    note_of_accusations = (
        "Figures that are 0: how often they are above 0 beyond their margin. Goal: at most 5 %, within two binomial "
        "errors."
    )
    return [
        Table("Coverage of the errors of leak and invention", note, covered_rows),
        Table("False accusations", note_of_accusations, accused_rows),
    ]


def leaks(effort: Effort) -> list[Table]:
    """Plant leaks and inventions of known size."""
    x, y = THREE.draw(20_000, torch.Generator().manual_seed(10**6))
    made_up = Planting(
        "made-up classes",
        lambda absences: true_figures(THREE, x, y, absences, most_scale=1.0),
        lambda absences, seed: audit_made_up(THREE, absences, SAMPLES_OF_PLANTS, seed, FEW_ROWS),
        effort.plants,
    )
    leak_rows = made_up.rows(blends(x.mean(0), SHARES_OF_SAMPLE), "leak")
    invention_rows = made_up.rows(claims(THREE.neutral, THREE.means[0], SHARES_OF_CLAIM), "invention")
    if effort.plants_in_digits:
        cnn = cnn_on_digits()
        images, classes = cnn.rows.train
        three = images[classes == 3].mean(0)
        digits = plant_in_digits(cnn, effort.plants_in_digits)
        leak_rows += digits.rows(blends(images.mean(0), SHARES_OF_SAMPLE), "leak")
        invention_rows += digits.rows(claims(torch.zeros_like(three), three, SHARES_OF_CLAIM), "invention")
    note_of_leaks = (
        "Shares of the sample in front of the data's mean. Goal: leaks of at least 5 % of the prior's score are "
        f"found in {FOUND:.0%} of runs of {SAMPLES_OF_PLANTS} samples, and a share of 0 % in at most 5 %."
    )
    note_of_inventions = (
        "Constants between a neutral one and the mean of a class; for digits, the mean image of the threes, dimmed. "
        f"Goal: inventions of at least 5 % of the prior's score are found in {FOUND:.0%} of runs."
    )
    return [
        Table("Planted leaks", note_of_leaks, leak_rows),
        Table("Planted inventions", note_of_inventions, invention_rows),
        told_apart(made_up),
    ]


@dataclass(frozen=True, eq=False)
class Planting:
    """The model and samples in which leaks and inventions are planted."""

    name: str
    true_figures: Callable[[dict[str, ab.Absence]], tuple[dict[str, tuple[float, float]], float]]
    audit: Callable[[dict[str, ab.Absence], int], ab.Audit]
    runs: int

    def rows(self, absences: dict[str, ab.Absence], figure: str) -> list[Row]:
        """Return how often a leak or invention is found, from the smallest planted one up."""
        truths, prior = self.true_figures(absences)
        audits = [self.audit(absences, seed) for seed in range(self.runs)]
        rows: list[Row] = []
        for number, name in enumerate(absences):
            truth = truths[name][0] if figure == "leak" else truths[name][1]
            values = [float(getattr(found, figure).value[number]) for found in audits]
            found_in = sum(is_found(found, number, figure) for found in audits) / self.runs
            covered = sum(is_covered(found, number, figure, truth) for found in audits) / self.runs
            matters = truth >= PRACTICAL_LEAK * prior
            is_met: str | None = None
            if matters:
                is_met = verdict(found_in >= FOUND)
            elif truth == 0:
                is_met = verdict(found_in <= 0.05)
            rows.append(
                {
                    "samples": self.name,
                    "share": name,
                    f"true {figure}": truth,
                    "of the prior's score": f"{truth / prior:.1%}",
                    "mean of runs": sum(values) / len(values),
                    "within ± margin": f"{covered:.0%}",
                    "above the row before": share_that_grows(audits, number, figure),
                    "runs": self.runs,
                    "found": f"{found_in:.0%}",
                    "verdict": is_met,
                }
            )
        return rows


def is_found(found: ab.Audit, number: int, figure: str) -> bool:
    if figure == "leak":
        return found.leaks(number)
    return found.invents(number)


def is_covered(found: ab.Audit, number: int, figure: str, truth: float) -> bool:
    """Return whether an audit's leak or invention lies within its margin of the truth."""
    if found.fully_masked is None:
        return False
    values = found.fully_masked.leaks if figure == "leak" else found.fully_masked.inventions
    mean = Mean.of(values[number])
    return abs(mean.value - truth) <= mean.margin + ROUNDING


def share_that_grows(audits: Sequence[ab.Audit], number: int, figure: str) -> str | None:
    """Return in how many audits a figure exceeds that of the previous absence; None for the first."""
    if number == 0:
        return None
    values = [getattr(found, figure).value for found in audits]
    return f"{sum(bool(value[number] > value[number - 1]) for value in values) / len(audits):.0%}"


def plant_in_digits(cnn: Audited, runs: int) -> Planting:
    """Return the setting for a network that reads digits; the truth comes from all held-out images."""
    images, classes = cnn.rows.held_out

    def audit_some(absences: dict[str, ab.Absence], seed: int) -> ab.Audit:
        chosen = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))[:SAMPLES_OF_PLANTS]
        return ab.audit(
            cnn.model,
            images[chosen],
            classes[chosen],
            absences,
            players=cnn.players,
            data=cnn.rows.train[0],
            draws=1,
            evaluations=2 * FEW_ROWS,
            seed=seed,
        )

    return Planting("digits", lambda absences: true_figures(cnn.model, images, classes, absences), audit_some, runs)


def told_apart(made_up: Planting) -> Table:
    """Plant a leak, an invention, both, or neither."""
    absences: dict[str, ab.Absence] = {
        "neither": ab.Baseline(THREE.neutral),
        "leak alone": Blend(0.2, THREE.neutral),
        "invention alone": ab.Baseline(towards(THREE, 0.7)),
        "both": Blend(0.2, towards(THREE, 1.0)),
    }
    truths, _ = made_up.true_figures(absences)
    audits = [made_up.audit(absences, seed) for seed in range(made_up.runs)]
    rows: list[Row] = []
    for number, name in enumerate(absences):
        leak = sum(found.leaks(number) for found in audits) / made_up.runs
        invention = sum(found.invents(number) for found in audits) / made_up.runs
        right_leak = leak >= FOUND if name in ("leak alone", "both") else leak <= 0.05
        right_invention = invention >= FOUND if name in ("invention alone", "both") else invention <= 0.05
        rows.append(
            {
                "planted": name,
                "true leak": truths[name][0],
                "true invention": truths[name][1],
                "runs": made_up.runs,
                "leak found": f"{leak:.0%}",
                "invention found": f"{invention:.0%}",
                "verdict": verdict(right_leak and right_invention),
            }
        )
    note = f"Goal: what was planted is found in {FOUND:.0%} of runs, and what was not in at most 5 %."
    return Table("Leak and invention told apart", note, rows)


def made_up_images() -> Audited:
    """Return a convolutional network like LeNet for 28 × 28 images of bright bars in one of four places."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(4, (1200,), generator=generator)
    x = 0.4 * torch.rand(1200, 1, 28, 28, generator=generator)
    for image, place in zip(x, y.tolist(), strict=True):
        image[0, 4 + 6 * place : 7 + 6 * place, 4:24] += 0.4 * torch.rand(3, 20, generator=generator)
    torch.manual_seed(0)
    layers = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 4)),
    )
    rows = Rows(x, y, training=600)
    return Audited(
        "LeNet, made-up 28 × 28 images", train(layers, rows, 1e-3, 4), rows, ab.Players.grid((1, 28, 28), (4, 4))
    )


def measure_time(effort: Effort) -> list[Table]:
    """Time default audits."""
    torch.set_num_threads(2)
    rows: list[Row] = []
    for make in effort.timed:
        audited = make()
        everyone = torch.arange(len(audited.rows.held_out[0]))
        began = time.perf_counter()
        found = audited.audit(everyone, seed=0, evaluations=None)
        answer = Answer.of(found)
        seconds = time.perf_counter() - began
        rows.append(
            {
                "model": audited.name,
                "players": len(found.players),
                "samples": found.record.samples,
                "rows evaluated": f"{found.record.evaluations:,}",
                "seconds": seconds,
                "of these measuring": found.record.seconds,
                "recommended": f"{answer.recommended} ({answer.confidence:.0%})",
                "goal": f"< {SECONDS} s",
                "verdict": verdict(seconds < SECONDS),
            }
        )
    torch.set_num_threads(1)
    note = (
        "The default absences with data=…, two threads. Beyond measuring: fits that split the scores, and resamples."
    )
    return [Table("Time of a default audit", note, rows)]


FULL = Effort(
    models=12,
    splits=4,
    contests=30,
    true_gaps=4,
    settings=3,
    most_redraws=400,
    plants=30,
    plants_in_digits=10,
    timed=(cnn_on_digits, made_up_images),
)
QUICK = Effort(
    models=1,
    splits=1,
    contests=1,
    true_gaps=1,
    settings=1,
    most_redraws=2,
    plants=1,
    plants_in_digits=0,
    timed=(logistic_on_cancer,),
)

MEASURES: dict[str, Callable[[Effort], list[Table]]] = {
    "halves": halves,
    "planted": planted,
    "coverage": coverage,
    "leaks": leaks,
    "time": measure_time,
}


def read_record(path: Path) -> dict[str, Any]:
    """Return the earlier measurements."""
    if not path.exists():
        return {}
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    effort = QUICK if arguments.quick else FULL
    folder: Path = arguments.output or HERE / "results"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "verdicts.json"
    record = read_record(kept)
    for name in arguments.names or MEASURES:
        machine = describe_machine()
        began = time.perf_counter()
        tables = MEASURES[name](effort)
        machine["time"] = f"{(time.perf_counter() - began) / 60:.1f} min"
        for table in tables:
            print_table(table)
        record = read_record(kept)  # read again, because other parts may run at the same time
        record[name] = {"machine": machine, "tables": [asdict(table) for table in tables]}
        kept.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    measured = [name for name in MEASURES if name in record]
    tables = [Table(**table) for name in measured for table in record[name]["tables"]]
    machine = record[measured[0]]["machine"]
    machine["time"] = ", ".join(f"{name} {record[name]['machine']['time']}" for name in measured)
    page = to_markdown("Verdicts of audits", "python benchmarks/verdicts.py", machine, tables)
    (folder / "verdicts.md").write_text(page)


if __name__ == "__main__":
    parser = options(__doc__, "a smoke test of half a minute")
    parser.add_argument("names", nargs="*", choices=[[], *MEASURES], metavar="NAME", help=f"of {', '.join(MEASURES)}")
    chosen = parser.parse_args()
    if chosen.quick and chosen.output is None:
        parser.error("--quick needs --output")
    main(chosen)
