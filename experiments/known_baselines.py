"""Experiment on functions with known baseline values: how many of them learning finds.

The paper's table of accuracies on 100 synthetic functions (1,235 values) and on ten functions of Tsang et al. (61).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

import absentia as ab
from experiments.datasets import functions_file
from experiments.experiment import (
    Claim,
    Correction,
    Experiment,
    Figures,
    Found,
    Line,
    Quantity,
    Rule,
    Run,
    Verdict,
)
from experiments.function_families import generate_functions, tsang_functions
from experiments.functions import AnnotatedFunction, parse_function, read_functions
from experiments.tables import ResultTable, plus_minus

Loss: TypeAlias = Literal["shapley", "marginal", "interactions"]

# The paper's two losses from its three starts, and the direct loss from the middle one.
PAIRS: tuple[tuple[Loss, float], ...] = (
    *(("shapley", start) for start in (0.0, 0.5, 1.0)),
    *(("marginal", start) for start in (0.0, 0.5, 1.0)),
    ("interactions", 0.5),
)
PAPERS_PAIRS = tuple(pair for pair in PAIRS if pair[0] != "interactions")
# How the search with all additions differs from the paper's.
SEARCH = (
    "small terms decide ties, Adam is followed by sweeps over bounds and quantiles of the data, and the mean, the "
    "median or the middle of the bounds joins the start if it is lower than where that ended, so that the three "
    "starts are not independent trials."
)
RIGHT_WITHIN = 0.5  # as in the paper
INPUTS = 2**15
ROWS_PER_COMPARISON = 2**17
ROUNDING = 0.005  # of the printed accuracies
PLAIN_ROWS = 2**16  # of the plain search, which compares baselines only to keep the best step
MISSES_HEADS = (
    "loss",
    "start",
    "function",
    "variable",
    "learned",
    "annotated",
    "loss at learned",
    "loss at annotated",
)
# Misses are compared on this many samples, with this many rows.
THOROUGH_SAMPLES = 2**12
THOROUGH_ROWS = 2**22
CUBE = 4
ORDERS = 0.5
MEASURED = (
    f"λ is half of the players; interactions are those within drawn groups of {CUBE} players, because the sum over "
    "all of them is ruled by alternating effects of high order where a power of a sum bends a little."
)
PRINTED = {
    "functions": {
        ("shapley", 0.0): 98.06,
        ("shapley", 0.5): 98.70,
        ("shapley", 1.0): 98.70,
        ("marginal", 0.0): 98.06,
        ("marginal", 0.5): 98.14,
        ("marginal", 1.0): 98.14,
    },
    "tsang": {
        ("shapley", 0.0): 88.52,
        ("shapley", 0.5): 91.80,
        ("shapley", 1.0): 90.16,
        ("marginal", 0.0): 86.89,
        ("marginal", 0.5): 91.80,
        ("marginal", 1.0): 90.16,
    },
}
# The paper's examples, and the variables whose printed true value is 1; those of all others are 0.
EXAMPLES: dict[str, set[int]] = {
    "-0.185*a*(b+c)^2.432|-d*e*f*g": set(),
    "-a*b*c|+sigmoid(-5d*e*f*g+2.50)|-h*i": {4, 5, 6, 7},
    "-sigmoid(+4a-4b+4c-6.00)|-d*e*f*g|-h*i*j": {2},
}


@dataclass(frozen=True)
class Additions:
    """What a search does beyond the paper's, which follows the gradient of the loss from one start."""

    ties: bool = False
    restart: bool = False
    sweeps: bool = False


PLAIN = Additions()
ALL_ADDITIONS = Additions(ties=True, restart=True, sweeps=True)
# The searches of the ablation, by name.
ABLATION = {
    "plain": PLAIN,
    "with ties": Additions(ties=True),
    "with restarts": Additions(restart=True),
    "with sweeps": Additions(sweeps=True),
}


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
        is_one = ab.enumerate_coalitions(function.players)[torch.randperm(2**function.players, generator=generator)]
    else:
        sizes = torch.randint(0, function.players + 1, (count // 2,), generator=generator)
        drawn = ab.draw_coalitions(function.players, sizes, generator)
        is_one = torch.stack([drawn, ~drawn], dim=1).flatten(0, 1)
    low, high = function.inputs
    return torch.where(is_one, high, low).double()


def run_trial(
    function: AnnotatedFunction,
    trial: Trial,
    samples: int,
    steps: int,
    seed: int,
    additions: Additions = ALL_ADDITIONS,
    rows: int = ROWS_PER_COMPARISON,
) -> Outcome:
    """Learn, and compare with the annotation."""
    torch.set_num_threads(1)
    x = binary_inputs(function, samples, seed)
    low, high = function.inputs
    start = low + trial.start * (high - low)
    learned = ab.learn_baseline(
        function.model,
        x,
        loss=trial.loss,
        start=start,
        bounds=(low, high),
        seed=seed,
        options=make_options(trial.loss, rows, steps, additions),
    )
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


def make_options(
    loss: Loss, rows_per_comparison: int, steps: int, additions: Additions = ALL_ADDITIONS
) -> ab.LearningOptions:
    """Measure a loss on all samples."""
    return ab.LearningOptions(
        orders=ORDERS,
        cube=cube_of(loss),
        samples="all",
        rows_per_comparison=rows_per_comparison,
        steps=steps,
        ties=additions.ties,
        restart=additions.restart,
        polish=additions.sweeps,
    )


def thorough_loss(
    function: AnnotatedFunction, loss: Loss, baseline: Float[Tensor, " players"], x: Float[Tensor, "rows players"]
) -> float:
    """Compute the loss of a baseline with many more coalitions than learning draws; all baselines share them."""
    x = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[:THOROUGH_SAMPLES]]
    options = make_options(loss, THOROUGH_ROWS, steps=0)
    return ab.baseline_loss(function.model, x, absence=ab.Baseline(baseline), loss=loss, options=options, seed=2)


@dataclass(frozen=True)
class Job:
    """A trial on a function, and the size of its search."""

    function: AnnotatedFunction
    trial: Trial
    samples: int
    steps: int
    seed: int
    additions: Additions
    rows: int


def _work(job: Job) -> dict[str, Any]:
    outcome = run_trial(job.function, job.trial, job.samples, job.steps, job.seed, job.additions, job.rows)
    return asdict(outcome)


def run_trials(
    functions: Sequence[AnnotatedFunction],
    samples: int,
    steps: int,
    run: Run,
    additions: Additions = ALL_ADDITIONS,
    rows: int = ROWS_PER_COMPARISON,
) -> list[Outcome]:
    """Run all losses from their starts on all functions; Σ|U| only with all additions."""
    pairs = PAIRS if additions == ALL_ADDITIONS else PAPERS_PAIRS
    jobs = {
        f"{number} {loss} {start} {additions}": Job(
            function=functions[number],
            trial=Trial(number, loss, start),
            samples=samples,
            steps=steps,
            seed=run.seed,
            additions=additions,
            rows=rows,
        )
        for loss, start in pairs
        for number in range(len(functions))
    }
    outcomes = run.each(_work, jobs).values()
    return [
        Outcome(
            Trial(**outcome["trial"]),
            tuple(outcome["values"]),
            tuple(outcome["right"]),
            outcome["learned_loss"],
            outcome["annotated_loss"],
        )
        for outcome in outcomes
    ]


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
        MISSES_HEADS,
        "A miss is explained where the loss at the learned values is lower than at the annotated ones, on up to "
        "4,096 samples and many more coalitions than learning draws.",
    )
    for loss, start in PAIRS:
        of_pair = [outcome for outcome in outcomes if outcome.trial.loss == loss and outcome.trial.start == start]
        missed = [row for outcome in of_pair for row in _misses(functions[outcome.trial.function], outcome)]
        misses.rows += missed
        marks = [mark for outcome in of_pair for mark in _marks(functions[outcome.trial.function], outcome)]
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


def released(run: Run) -> Found:
    """Learn the baseline values of the released functions, of the first few at reduced sizes."""
    functions = read_functions(functions_file())[: run.pick(full=100, quick=1, tiny=1)]
    return _synthetic(functions, f"{len(functions)} of the released functions", run, PRINTED["functions"])


def generated(run: Run) -> Found:
    """Learn the baseline values of generated functions of the same family."""
    functions = generate_functions(run.pick(full=10, quick=1, tiny=1), run.seed)
    return _synthetic(functions, f"{len(functions)} functions generated by seed {run.seed}", run, {})


def _synthetic(
    functions: Sequence[AnnotatedFunction], source: str, run: Run, printed: dict[tuple[str, float], float]
) -> Found:
    """Learn the baseline values of synthetic functions, and set printed accuracies beside ours."""
    zeros = sum(truth == 0 for f in functions for truth in f.truth)
    total = sum(f.players for f in functions)
    inputs = run.pick(full=INPUTS, quick=INPUTS // 8, tiny=256)
    note = (
        f"{source}; the constant 0 alone is right for {zeros / total:.1%}. {inputs:,} inputs each at most. {MEASURED}"
    )
    outcomes = run_trials(functions, inputs, run.pick(full=30, quick=10, tiny=3), run)
    title = f"Baseline values of synthetic functions, {source.partition(' by ')[0]}"
    return found_of(tabulate(title, note, functions, outcomes, printed))


def tsang(run: Run) -> Found:
    """Learn the baseline values of the ten functions of Tsang et al., from all 2¹⁰ inputs."""
    functions = tsang_functions()[: run.pick(full=10, quick=1, tiny=1)]
    outcomes = run_trials(functions, 1024, run.pick(full=60, quick=15, tiny=3), run)
    annotated = sum(truth is not None for function in functions for truth in function.truth)
    note = (
        f"{annotated} annotated variables of {len(functions)} functions; all 1,024 inputs of values 0.001 and 0.999. "
        f"{MEASURED}"
    )
    title = "Baseline values of the functions of Tsang et al."
    return found_of(tabulate(title, note, functions, outcomes, PRINTED["tsang"]))


def plain_tsang(run: Run) -> Found:
    """Learn the values of Tsang's functions by the paper's losses alone, and with one addition at a time."""
    functions = tsang_functions()[: run.pick(full=10, quick=1, tiny=1)]
    return _ablation("the functions of Tsang et al.", functions, 1024, run, ABLATION, PRINTED["tsang"])


def plain_released(run: Run) -> Found:
    """Learn the values of the released functions by the paper's losses alone."""
    functions = read_functions(functions_file())[: run.pick(full=100, quick=1, tiny=1)]
    inputs = run.pick(full=INPUTS, quick=INPUTS // 8, tiny=256)
    return _ablation(
        "the released functions",
        functions,
        inputs,
        run,
        {"plain": PLAIN},
        PRINTED["functions"],
    )


def _ablation(
    source: str,
    functions: Sequence[AnnotatedFunction],
    inputs: int,
    run: Run,
    searches: Mapping[str, Additions],
    printed: Mapping[tuple[str, float], float],
) -> Found:
    """Tabulate the accuracies of several searches beside the printed ones, with the misses of the plain one."""
    rows = run.pick(full=PLAIN_ROWS, quick=PLAIN_ROWS // 4, tiny=2**9)
    steps = run.pick(full=60, quick=15, tiny=3)
    by_search = {
        name: run_trials(functions, inputs, steps, run, additions, rows) for name, additions in searches.items()
    }
    note = (
        f"Variables that were found, of {len(functions)} functions. Plain: the loss of Eq. 7 alone, orders 0 … λ, "
        f"λ half of the players, {steps} steps of Adam and a third as many smaller ones, from the start alone. With "
        "ties: two small terms beside the loss. With restarts: a second search from the best of mean, median and the "
        "middle of the bounds. With sweeps: other values of one variable at a time after the steps."
    )
    table = ResultTable(
        f"The paper's losses without additions: {source}", ("loss", "start", *searches, "of", "the paper"), note
    )
    figures: dict[str, float] = {}
    for loss, start in PAPERS_PAIRS:
        cells = []
        of = 0
        for name, outcomes in by_search.items():
            of_pair = [outcome for outcome in outcomes if outcome.trial.loss == loss and outcome.trial.start == start]
            marks = [ok for outcome in of_pair for ok, _ in _marks(functions[outcome.trial.function], outcome)]
            of = len(marks)
            accuracy = sum(marks) / of
            figures[f"{name}: {loss} from {start:g}"] = 100 * accuracy
            cells.append(f"{accuracy:.2%}")
        table.add(loss, f"{start:g}", *cells, f"{of:,}", f"{printed[(loss, start)]:.2f}%")
    missed = ResultTable(
        f"The misses of the plain search: {source}",
        MISSES_HEADS,
        "A miss is explained where the loss at the learned values is lower than at the annotated ones.",
    )
    missed.rows = [
        row for outcome in by_search["plain"] for row in _misses(functions[outcome.trial.function], outcome)
    ]
    figures["misses"] = len(missed.rows)
    figures["misses with a lower loss"] = sum(float(row[-2]) < float(row[-1]) for row in missed.rows)
    figures["variables"] = of
    return Found(figures, (table, missed))


def found_of(tables: Sequence[ResultTable]) -> Found:
    """Take the accuracies, in per cent, from the first of both tables."""
    figures = {f"{row[0]} from {row[1]}": float(row[4].rstrip("%")) for row in tables[0].rows}
    lower = [row[-1].split(" of ") for row in tables[0].rows]
    figures["misses"] = sum(float(missed) for _, missed in lower)
    figures["misses with a lower loss"] = sum(float(count) for count, _ in lower)
    return Found(figures, tuple(tables))


def printed(run: Run) -> Found:
    """Compare the true baseline values by the rule with those that the paper prints for its examples."""
    note = (
        "The rule is the paper's own: a pattern is active in its rarest state, and the true value of a variable is "
        "the opposite of its value there. The second example prints 1 for the variables of "
        "sigmoid(−5x4x5x6x7 + 2.5). That sigmoid is below one half in one state only, all of them 1, so that the "
        "rule gives 0, as the appendix prints for sigmoid(−3x1x2x3 + 1.5)."
    )
    heads = ("function", "1 by the rule", "1 as printed", "variables that agree")
    table = ResultTable("True baseline values of the paper's examples", heads, note)
    agree = total = 0
    for line, printed_ones in EXAMPLES.items():
        truth = parse_function(line).truth
        by_rule = {number for number, value in enumerate(truth, start=1) if value == 1}
        same = len(truth) - len(by_rule ^ printed_ones)
        agree += same
        total += len(truth)
        listed = (
            ", ".join(f"x{number}" for number in sorted(numbers)) or "none" for numbers in (by_rule, printed_ones)
        )
        table.add(line, *listed, f"{same} of {len(truth)}")
    return Found({"agree": agree, "variables": total}, (table,))


def judge_part(part: str, figures: Figures) -> Verdict:
    """Compare each accuracy by the plain losses with the printed one, and by the search with all additions."""
    plain = figures.get(f"{part}-plain")
    full = figures.get(part)
    lines = []
    fails = 0
    if plain is not None:
        ours = {pair: plain[f"plain: {pair[0]} from {pair[1]:g}"] for pair in PAPERS_PAIRS}
        fails = sum(ours[pair] < PRINTED[part][pair] - ROUNDING for pair in PAPERS_PAIRS)
        least = min(ours.values())
        most = max(ours.values())
        share = least / 100
        error = 100 * (share * (1 - share) / plain["variables"]) ** 0.5
        lines.append(f"plain {plus_minus(least, error, '.2f')} to {most:.2f} % (binomial error over the variables)")
    if full is not None:
        lines.append(
            f"with additions {min(full[f'{loss} from {start:g}'] for loss, start in PAPERS_PAIRS):.2f} % at least"
        )
    if not lines:
        return Verdict("not measured", "–", "The functions were not learned.")
    ours_text = "; ".join(lines)
    if plain is not None and not fails:
        reason = "All six accuracies by the losses of Eq. 7 alone are at least the printed ones."
        return Verdict("as stated", ours_text, reason)
    told = "" if plain is None else f" By the losses alone, {fails} of 6 accuracies are below the printed ones."
    if full is not None:
        behind = sum(
            full[f"{loss} from {start:g}"] < PRINTED[part][loss, start] - ROUNDING for loss, start in PAPERS_PAIRS
        )
        if not behind:
            reason = f"All six accuracies are at least the paper's, but by another search: {SEARCH}{told}"
            return Verdict("by another method", ours_text, reason, "a search with three additions", "three additions")
        return Verdict("no", ours_text, f"With all additions, {behind} of 6 accuracies are below the paper's.{told}")
    return Verdict("no", ours_text, told.strip())


def _least(part: str, figures: Figures) -> list[Quantity]:
    """Return the least of the six accuracies by the plain losses, with its binomial error over the variables."""
    plain = figures[f"{part}-plain"]
    least = min(plain[f"plain: {loss} from {start:g}"] for loss, start in PAPERS_PAIRS)
    share = least / 100
    return [Quantity("{} %", least, 100 * (share * (1 - share) / plain["variables"]) ** 0.5, ".1f")]


def _following(figures: Figures) -> list[Quantity]:
    """Return how many printed values follow the paper's rule."""
    measured = figures["printed"]
    return [Quantity(f"{{}} of {measured['variables']:.0f}", measured["agree"], form=".0f")]


def judge_printed(figures: Figures) -> Verdict:
    """Ask whether the true values that the paper prints for examples follow from its rule."""
    if "printed" not in figures:
        return Verdict("not measured", "–", "")
    agree = figures["printed"]["agree"]
    variables = figures["printed"]["variables"]
    ours = f"{agree:.0f} of {variables:.0f} follow its rule"
    if agree == variables:
        return Verdict("as stated", ours, "All printed values follow the rule.")
    reason = "One example prints 1 where the rule, and the appendix for the same pattern, give 0."
    return Verdict("no", ours, reason)


_RULE = (
    "As stated: each of the six accuracies by the losses of Eq. 7 alone (orders 0 … λ, the gradient from the start, "
    "no ties, restarts or sweeps) is at least the printed one; by another method: with all three additions it is."
)
_EARLIER = "An earlier rule judged the search with all additions, and called it the paper's."


EXPERIMENT = Experiment(
    name="table-4",
    title="Baseline values of functions with known ones",
    claims=(
        Claim(
            "learned values of 100 synthetic functions are right",
            "Table 4",
            "98.06–98.70 % (of the released functions' 1,235 variables by our count, which the paper does not print)",
            Rule(_RULE, "2026-11-18", "before", _EARLIER, of="the plain losses on these functions"),
            partial(judge_part, "functions"),
            ("functions-plain", "functions"),
            Line(
                "100 synthetic functions learned (Table 4)",
                "98.06 %",
                partial(_least, "functions"),
                ("functions-plain",),
            ),
        ),
        Claim(
            "learned values of ten functions of Tsang et al. are right",
            "Table 4",
            "86.89–91.80 % (of the 61 variables, of 92, that the paper says to be determined)",
            Rule(_RULE, "2026-11-18", "after a trial", _EARLIER),
            partial(judge_part, "tsang"),
            ("tsang-plain", "tsang"),
            Line("ten functions of Tsang learned (Table 4)", "86.89 %", partial(_least, "tsang"), ("tsang-plain",)),
        ),
        Claim(
            "the true values of examples follow from their patterns",
            "Table 3",
            "26 values",
            Rule("As stated: all printed values follow the paper's rule.", "2026-11-18", "after"),
            judge_printed,
            ("printed",),
            Line("printed truths follow the rule (Table 3)", "26", _following, ("printed",), exact=True),
        ),
    ),
    settings=(
        "The paper's: two losses, three starts, λ = 0.5 n, right within 0.5. Ours, where it is silent: all binary "
        "inputs or a draw with a uniform number of ones, and the direct loss Σ|U| from one start beside its two, "
        "which has no part in the verdict. It is taken within groups of four players, because the sum over all of "
        "them missed values of such functions. Adam takes the place of gradient descent. In the parts functions, "
        f"tsang and generated, the search has additions: {SEARCH}"
    ),
    caveats=(
        "The constant 0 alone is right for most of the released functions' values: see the notes of the tables.",
        "The paper takes gradient descent and names neither its rate nor its steps; here it is Adam, 60 steps.",
        "The rows with additions are from before the change to the orders 0 … λ: theirs end below λ.",
        "Errors are binomial, over the variables of all functions; the functions are given, not drawn.",
    ),
    not_again=(
        "The rows with additions took 48 (functions), 10 (tsang) and 5 minutes (generated), and were not measured "
        "again after the change to the orders 0 … λ.",
    ),
    parts={
        "printed": printed,
        "functions-plain": plain_released,
        "tsang-plain": plain_tsang,
        "functions": released,
        "tsang": tsang,
        "generated": generated,
    },
    many_jobs=("functions", "tsang", "generated"),
    shown=("The paper's losses without additions",),
    aliases={"table-3": ("printed",), "functions": ("functions",), "tsang": ("tsang",)},
    corrections=(
        Correction(
            "generated",
            "10 functions generated by seed 0;",
            "10 functions generated by seed 0, which are not the paper's: the column of the paper is that of the "
            "released ones;",
        ),
    ),
)
