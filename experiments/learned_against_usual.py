"""Experiment on ten problems: learned baselines against the usual ones, on samples that no method has seen.

An audit measures how concise, how honest and how noisy each method is. A third party measures how faithful its
attributions are: the players are removed in their order by another method than those that are compared.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

import absentia as ab
from experiments.downloads import cache_folder, written_whole
from experiments.tables import ResultTable
from experiments.ten_problems import PROBLEMS, Problem
from experiments.training import one_thread
from experiments.usual_goals import Figure, Measured, tabulate

SEEDS = (0, 1, 2)
AUDITED = ("strength", "salient", "terms", "evidence", "score", "R")
# How the audit measures evidence; figures by another definition are measured again.
_EVIDENCE = "evidence: invention less leak"


@dataclass(frozen=True)
class Work:
    """The size of each measurement of a problem."""

    audited: int = 500  # held-out samples at most
    evaluations: int | None = None  # of an audit, if not as many as it takes by default
    judged: int = 100  # held-out samples whose players are removed in turn
    coalitions: int = 2048  # evaluations of each sample for Shapley values
    imitated: int = 4000  # training rows that the removers are made from
    epochs: int = 100  # of training the surrogate
    gaussian: bool = True  # whether to remove players by a Gaussian too
    learning: Mapping[str, Any] = field(default_factory=dict)  # options of learning, if not the default ones


# Networks on images take more time for a row than others. A Gaussian of 3,072 entries takes long to condition.
WORK = {
    "tumours": Work(evaluations=2**25),
    "mnist": Work(evaluations=2**20, judged=48, coalitions=1024, imitated=2000, epochs=30),
    "cifar10": Work(
        evaluations=2**17,
        judged=16,
        coalitions=256,
        imitated=2000,
        epochs=20,
        gaussian=False,
        learning={"steps": 40, "rows_per_step": 256},
    ),
}
QUICK: dict[str, Any] = {
    "audited": 150,
    "evaluations": 2**14,
    "judged": 4,
    "coalitions": 512,
    "imitated": 64,
    "epochs": 2,
    "learning": {"samples": 20, "steps": 2, "rows_per_step": 256},
}


def usual_tables(
    problems: Sequence[str] | None = None, seeds: Sequence[int] = SEEDS, quick: bool = False
) -> list[ResultTable]:
    """Measure what is not yet in the cache, and tabulate what is there of all problems with these seeds.

    Every problem is saved with each seed as soon as it is measured: a run that was stopped goes on from there.
    """
    chosen = list(PROBLEMS) if problems is None else list(problems)
    unknown = [name for name in chosen if name not in PROBLEMS]
    if unknown:
        raise ab.AbsentiaError(f"problems must be among {', '.join(PROBLEMS)}. Got {unknown[0]!r} instead.")
    for name in chosen:
        for seed in seeds:
            if read(name, seed, quick) is None:
                began = time.perf_counter()
                with one_thread():  # training too: threads wait for one another on a busy machine
                    problem = PROBLEMS[name](seed)
                save(measure(problem, size_of(name, quick), seed), quick)
                print(f"{name}, seed {seed}: measured in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    there = {
        name: [measured for seed in seeds if (measured := read(name, seed, quick)) is not None] for name in PROBLEMS
    }
    return tabulate({name: of_problem for name, of_problem in there.items() if of_problem})


def size_of(name: str, quick: bool = False) -> Work:
    """Return the size of a problem's measurements."""
    work = WORK.get(name, Work())
    return replace(work, **QUICK) if quick else work


def _file(name: str, seed: int, quick: bool) -> Path:
    folder = "learned_against_usual-quick" if quick else "learned_against_usual"
    return cache_folder() / folder / f"{name}-seed{seed}.json"


def _settings(work: Work) -> str:
    """Describe what decides the figures, so that others are not taken for them."""
    return f"{work}; {ab.LearningOptions(**work.learning)}; {_EVIDENCE}; absentia {ab.__version__}"


def save(measured: Measured, quick: bool) -> None:
    """Write what was measured to the cache."""
    with written_whole(_file(measured.problem, measured.seed, quick)) as unfinished:
        unfinished.write_text(json.dumps(asdict(measured), indent=1, ensure_ascii=False), encoding="utf-8")


def read(name: str, seed: int, quick: bool) -> Measured | None:
    """Read what was measured with the same settings; None if nothing was."""
    path = _file(name, seed, quick)
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    if content["settings"] != _settings(size_of(name, quick)):
        return None
    return Measured(**content)


def measure(problem: Problem, work: Work, seed: int) -> Measured:
    """Learn a baseline, audit it beside the usual ones, and let third parties judge their attributions."""
    with one_thread():
        began = time.perf_counter()
        began_cpu = time.process_time()
        learned = ab.learn_baseline(
            problem.model,
            problem.x,
            problem.y,
            players=problem.players,
            categorical=problem.categorical,
            seed=seed,
            options=ab.LearningOptions(**work.learning),
        )
        seconds = time.perf_counter() - began
        cpu_seconds = time.process_time() - began_cpu
        methods = {**usual_methods(problem), "learned": learned}
        audit = ab.audit(
            problem.model,
            problem.x_test[: work.audited],
            _first(problem.y_test, work.audited),
            methods,
            players=problem.players,
            data=problem.x,
            evaluations=work.evaluations,
            seed=seed,
        )
        gaps = judge(problem, methods, work, seed)
    figures = audited_figures(audit)
    for name in methods:
        figures[name] |= {key: _mean(gap[name]) for key, gap in gaps.items()}
    return Measured(
        problem.name,
        seed,
        _settings(work),
        problem.about,
        describe(audit, work),
        audit.curve.unit,
        figures,
        {name: compare(audit, name) for name in methods if name != "learned"},
        seconds,
        cpu_seconds,
        learned.record.chosen,
        audit.recommended,
    )


def describe(audit: ab.Audit, work: Work) -> str:
    """Describe how many samples each figure is from, and how many players a game has."""
    parts = {
        "evidence": evidence_of_samples(audit)[0],
        "score": audit.curve.prior,
        "Σ|U|": audit.companions.empty[0],
        "R": audit.removal.original,
    }
    samples = ", ".join(f"{len(samples)} for {name}" for name, samples in parts.items())
    players = audit.companions.by_order.shape[-1] - 1
    games = "" if players == len(audit.players) else f"; Σ|U| in drawn games of {players} players"
    return f"{samples}, {work.judged} at most for the gaps{games}"


def usual_methods(problem: Problem) -> dict[str, ab.Absence]:
    """Make the methods that learning is compared with."""
    methods: dict[str, ab.Absence] = {
        "zero": problem.zero,
        "mean": ab.Baseline.mean(problem.x),
        "median": ab.Baseline.median(problem.x),
    }
    if problem.players.is_image:
        methods["blur"] = ab.Blur(max(1.0, problem.x.shape[-1] / 20))
    return methods


def audited_figures(audit: ab.Audit) -> dict[str, dict[str, Figure]]:
    """Return the figures of each method, with their errors."""
    columns = {name: values.tolist() for name, values in audit.columns().items()}
    return {
        method: {name: [columns[name][number], columns[f"{name}_error"][number]] for name in AUDITED}
        for number, method in enumerate(audit.methods)
    }


def judge(
    problem: Problem, methods: Mapping[str, ab.Absence], work: Work, seed: int
) -> dict[str, dict[str, Float[Tensor, " samples"]]]:
    """Measure the deletion gap of each method's Shapley values by each remover."""
    x = problem.x_test[: work.judged]
    y = _first(problem.y_test, work.judged)
    players = problem.players
    order = torch.randperm(len(problem.x), generator=torch.Generator().manual_seed(seed))[: work.imitated]
    removers: dict[str, ab.Absence] = {}
    if work.gaussian:
        removers["gaussian"] = ab.GaussianConditional(problem.x[order], seed=seed)
    removers["surrogate"] = ab.train_surrogate(
        problem.model, problem.x[order], players=players, epochs=work.epochs, seed=seed, progress=False
    )
    readout = None if y is None else ab.Probability(y)
    attributions = {
        name: ab.shapley(
            ab.MaskedModel(problem.model, x, y, absence=method, players=players),
            evaluations=work.coalitions,
            seed=seed,
        ).values
        for name, method in methods.items()
    }
    gaps = {}
    for key, remover in removers.items():
        game = ab.MaskedModel(problem.model, x, absence=remover, players=players, readout=readout)
        gaps[key] = {name: deletion_gap(game, values) for name, values in attributions.items()}
    return gaps


def deletion_gap(
    game: Callable[[Tensor], Tensor], attributions: Float[Tensor, "samples players"]
) -> Float[Tensor, " samples"]:
    """Return how much higher values stay if the least important players are removed first, not the most important.

    It is the mean over 1 … n − 1 removed players.

    >>> game = ab.MaskedModel(lambda rows: rows.sum(1), torch.tensor([[1.0, 2.0, 4.0]]), absence=0.0)
    >>> deletion_gap(game, torch.tensor([[1.0, 2.0, 4.0]]))
    tensor([3.])
    """
    least, most = game(removed_in_turn(attributions)).chunk(2, dim=1)
    return (least - most).mean(1)


def removed_in_turn(attributions: Float[Tensor, "samples players"]) -> Bool[Tensor, "samples coalitions players"]:
    """Return who is present after 1 … n − 1 removals: the least important first, then the most important first.

    >>> removed_in_turn(torch.tensor([[0.5, 0.1]]))
    tensor([[[ True, False],
             [False,  True]]])
    """
    count = attributions.shape[1]
    rank = attributions.argsort(dim=1, descending=True, stable=True).argsort(dim=1)[:, None]  # 0: most important
    removed = torch.arange(1, count)[:, None]
    return torch.cat([rank < count - removed, rank >= removed], dim=1)


def evidence_of_samples(audit: ab.Audit) -> Float[Tensor, "methods samples"]:
    """Return the evidence of each sample, the mean over groups of draws; samples of rare classes are left out."""
    if audit.fully_masked is None:
        raise ab.AbsentiaError("The audit has no fully masked samples. Run it again without a limit of time.")
    evidence = audit.fully_masked.evidence.nanmean(-1)
    is_known = ~evidence.isnan().any(0)
    if not bool(is_known.any()):
        raise ab.AbsentiaError(f"Evidence was not measured: {audit.fully_masked.reason}.")
    return evidence[:, is_known]


def compare(audit: ab.Audit, method: str) -> dict[str, Figure]:
    """Return the learned figures less those of a method, sample by sample; below 0 learned is better."""
    pair = [audit.methods.index(name) for name in ("learned", method)]
    strength, other = audit.companions.strengths[pair].nanmean(-1)  # over groups of draws
    evidence = evidence_of_samples(audit)[pair]
    # With the sign of the mean, so that the means are absolute values.
    learned_evidence, other_evidence = evidence * evidence.mean(1, keepdim=True).sign()
    removal = audit.removal.difference(*pair)
    return {
        "strength": _mean(strength - other),
        "evidence": _mean(learned_evidence - other_evidence),
        "R": [float(removal.value), float(removal.error)],
    }


def _mean(values: Float[Tensor, " samples"]) -> Figure:
    """Return the mean over samples and its standard error."""
    return [float(values.mean()), float(values.std() / len(values) ** 0.5)]


def _first(y: Tensor | None, rows: int) -> Tensor | None:
    return None if y is None else y[:rows]
