"""Experiment on functions with known baseline values: how many of them learning finds.

The paper's table of accuracies on 100 synthetic functions (1,235 values) and on ten functions of Tsang et al. (61).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from tqdm.auto import tqdm

import absentia as ab
from experiments.datasets import functions_file
from experiments.function_families import generate_functions, tsang_functions
from experiments.functions import AnnotatedFunction, read_functions
from experiments.tables import ResultTable

Loss: TypeAlias = Literal["shapley", "marginal", "interactions"]

LOSSES: tuple[Loss, ...] = ("shapley", "marginal", "interactions")
STARTS = (0.0, 0.5, 1.0)
RIGHT_WITHIN = 0.5  # as in the paper
INPUTS = 2**15
ROWS_PER_COMPARISON = 2**17
# Misses are compared on this many samples, with this many rows.
THOROUGH_SAMPLES, THOROUGH_ROWS = 2**12, 2**22
CUBE, ORDERS = 4, 0.5
MEASURED = (
    f"λ is half of the players; interactions are those within drawn groups of {CUBE} players, because the sum over "
    "all of them is ruled by alternating effects of high order where a power of a sum bends a little."
)
PRINTED = {
    "functions": {("shapley", 0.0): 98.06, ("shapley", 0.5): 98.70, ("shapley", 1.0): 98.70,
                  ("marginal", 0.0): 98.06, ("marginal", 0.5): 98.14, ("marginal", 1.0): 98.14},
    "tsang": {("shapley", 0.0): 88.52, ("shapley", 0.5): 91.80, ("shapley", 1.0): 90.16,
              ("marginal", 0.0): 86.89, ("marginal", 0.5): 91.80, ("marginal", 1.0): 90.16},
}  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """One function, one loss, and one start."""

    function: int
    loss: Loss
    start: float


@dataclass(frozen=True)
class Outcome:
    """Which annotated values were found, and the losses at the learned and at the annotated values."""

    trial: Trial
    values: tuple[float, ...]
    right: tuple[bool | None, ...]  # None where there is no annotation
    learned_loss: float
    annotated_loss: float


def binary_inputs(function: AnnotatedFunction, count: int, seed: int) -> Float[Tensor, "rows players"]:
    """Return all binary inputs, or draw ``count`` with a uniform number of ones, which reach rare states.

    Each drawn input is followed by its opposite, so that no variable is high more often than low.
    """
    generator = torch.Generator().manual_seed(seed)
    if 2**function.players <= count:
        ones = ab.enumerate_coalitions(function.players)[torch.randperm(2**function.players, generator=generator)]
    else:
        sizes = torch.randint(0, function.players + 1, (count // 2,), generator=generator)
        drawn = ab.draw_coalitions(function.players, sizes, generator)
        ones = torch.stack([drawn, ~drawn], dim=1).flatten(0, 1)
    low, high = function.inputs
    return torch.where(ones, high, low).double()


def run_trial(function: AnnotatedFunction, trial: Trial, samples: int, steps: int, seed: int) -> Outcome:
    """Learn, and compare with the annotation."""
    torch.set_num_threads(1)
    x = binary_inputs(function, samples, seed)
    low, high = function.inputs
    start = low + trial.start * (high - low)
    learned = ab.learn_baseline(
        function.model, x, loss=trial.loss, start=start, bounds=(low, high), seed=seed,
        options=make_options(trial.loss, ROWS_PER_COMPARISON, steps),
    )  # fmt: skip
    right = tuple(
        None if truth is None else abs(value - truth) < RIGHT_WITHIN
        for value, truth in zip(learned.values.tolist(), function.truth, strict=True)
    )
    values = learned.values.double()
    losses = [0.0, 0.0]
    if False in right:
        unknown = torch.tensor([truth is None for truth in function.truth])
        annotated = torch.where(unknown, values, function.baseline(unknown=0.0))
        losses = [thorough_loss(function, trial.loss, baseline, x) for baseline in (values, annotated)]
    return Outcome(trial, tuple(values.tolist()), right, losses[0], losses[1])


def cube_of(loss: Loss) -> int | None:
    """Return the size of the groups in which a loss is measured, or None."""
    return CUBE if loss == "interactions" else None


def make_options(loss: Loss, rows_per_comparison: int, steps: int) -> ab.LearningOptions:
    """Measure a loss on all samples."""
    return ab.LearningOptions(
        orders=ORDERS,
        cube=cube_of(loss),
        samples="all",
        rows_per_comparison=rows_per_comparison,
        steps=steps,
        polish=True,
    )


def thorough_loss(
    function: AnnotatedFunction, loss: Loss, baseline: Float[Tensor, " players"], x: Float[Tensor, "rows players"]
) -> float:
    """Compute the loss of a baseline with many more coalitions than learning draws; all baselines share them."""
    x = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[:THOROUGH_SAMPLES]]
    options = make_options(loss, THOROUGH_ROWS, steps=0)
    return ab.baseline_loss(function.model, x, absence=ab.Baseline(baseline), loss=loss, options=options, seed=2)


def _work(job: tuple[AnnotatedFunction, Trial, int, int, int]) -> Outcome:
    return run_trial(*job)


def run_trials(
    functions: Sequence[AnnotatedFunction], samples: int, steps: int, seed: int, workers: int | None
) -> list[Outcome]:
    """Run all losses from all starts on all functions, in several processes."""
    jobs = [
        (functions[number], Trial(number, loss, start), samples, steps, seed)
        for loss in LOSSES
        for start in STARTS
        for number in range(len(functions))
    ]
    bar = partial(tqdm, total=len(jobs), desc="learning", disable=None)
    if workers == 1:
        return [_work(job) for job in bar(jobs)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        return list(bar(pool.imap(_work, jobs)))


def tabulate(
    title: str,
    note: str,
    functions: Sequence[AnnotatedFunction],
    outcomes: Sequence[Outcome],
    printed: dict[tuple[str, float], float],
) -> list[ResultTable]:
    """Make the table of accuracies, and the list of misses."""
    accuracy = ResultTable(
        title,
        ("loss", "start", "right", "of", "accuracy", "balanced accuracy", "the paper", "misses with a lower loss"),
        note,
    )
    misses = ResultTable(
        f"{title}: the misses",
        ("loss", "start", "function", "variable", "learned", "annotated", "loss at learned", "loss at annotated"),
        "A miss is explained where the loss at the learned values is lower than at the annotated ones, on up to "
        "4,096 samples and many more coalitions than learning draws.",
    )
    for loss in LOSSES:
        for start in STARTS:
            mine = [one for one in outcomes if one.trial.loss == loss and one.trial.start == start]
            missed = [row for one in mine for row in _misses(functions[one.trial.function], one)]
            misses.rows += missed
            marks = [mark for one in mine for mark in _marks(functions[one.trial.function], one)]
            right = sum(ok for ok, _ in marks)
            lower = sum(float(row[-2]) < float(row[-1]) for row in missed)
            paper = printed.get((loss, start))
            accuracy.add(
                loss,
                f"{start:g}",
                f"{right:,}",
                f"{len(marks):,}",
                f"{right / len(marks):.2%}",
                f"{_balanced(marks):.2%}",
                "–" if paper is None else f"{paper:.2f}%",
                f"{lower} of {len(missed)}",
            )
    return [accuracy, misses]


def _marks(function: AnnotatedFunction, outcome: Outcome) -> list[tuple[bool, float | None]]:
    """Pair each annotated variable's mark with its truth."""
    return [(ok, truth) for ok, truth in zip(outcome.right, function.truth, strict=True) if ok is not None]


def _misses(function: AnnotatedFunction, outcome: Outcome) -> list[list[str]]:
    """List the variables that were missed, with the loss at the learned and at the annotated values."""
    trial = outcome.trial
    losses = [f"{outcome.learned_loss:.6g}", f"{outcome.annotated_loss:.6g}"]
    return [
        [
            trial.loss,
            f"{trial.start:g}",
            function.name,
            f"x{i + 1}",
            f"{outcome.values[i]:.3f}",
            f"{truth:g}",
            *losses,
        ]
        for i, (ok, truth) in enumerate(zip(outcome.right, function.truth, strict=True))
        if ok is False
    ]


def _balanced(marks: Sequence[tuple[bool, float | None]]) -> float:
    """Average the accuracies of the low and of the high truths."""
    rates = []
    for level in {truth for _, truth in marks}:
        of_level = [ok for ok, truth in marks if truth == level]
        rates.append(sum(of_level) / len(of_level))
    return sum(rates) / len(rates)


def synthetic(count: int | None, seed: int, workers: int | None, generated: bool) -> list[ResultTable]:
    """Run the experiment on the released functions, or on ``count`` generated ones of the same family."""
    functions: Sequence[AnnotatedFunction]
    if generated:
        functions = generate_functions(count or 100, seed)
        source = f"{len(functions)} functions generated by seed {seed}"
    else:
        check_available()
        functions = read_functions(functions_file())[:count]
        source = f"{len(functions)} of the released functions"
    zeros = sum(truth == 0 for f in functions for truth in f.truth)
    total = sum(f.players for f in functions)
    note = (
        f"{source}; the constant 0 alone is right for {zeros / total:.1%}. {INPUTS:,} inputs each at most. {MEASURED}"
    )
    outcomes = run_trials(functions, INPUTS, 30, seed, workers)
    return tabulate("Baseline values of synthetic functions", note, functions, outcomes, PRINTED["functions"])


def tsang(seed: int, workers: int | None) -> list[ResultTable]:
    """Run the experiment on the ten functions of Tsang et al., with all 2¹⁰ inputs."""
    functions = tsang_functions()
    outcomes = run_trials(functions, 1024, 60, seed, workers)
    note = f"61 annotated variables of ten functions; all 1,024 inputs of values 0.001 and 0.999. {MEASURED}"
    return tabulate("Baseline values of the functions of Tsang et al.", note, functions, outcomes, PRINTED["tsang"])


def check_available() -> None:
    """Raise an error that suggests generated functions if the released ones are missing."""
    try:
        functions_file()
    except ab.AbsentiaError as error:
        then = "Or run it on generated functions: python -m experiments functions --generated."
        raise ab.AbsentiaError(f"{error} {then}") from error
