"""The commands, each of which calls the library, and saves and prints the result."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from typer import Option

import absentia as ab
from absentia import demo as demonstration
from absentia.absences.words import WORDS
from absentia.cli.absence_words import load_absences, usual_absences
from absentia.cli.file_checks import check_file, reading
from absentia.cli.inputs import MOST_SEED, Inputs, takes_inputs
from absentia.cli.installation import describe_installation
from absentia.cli.number_words import read_bounds, read_number, read_start
from absentia.cli.output import AsJson, Output, finish, note, show, working
from absentia.cli.payloads import audit_payload, explanation_payload, learned_payload, sample_text
from absentia.cli.problem import prepare
from absentia.cli.saved_contents import describe_file
from absentia.errors import wrong
from absentia.learning.learned import Share
from absentia.learning.options import AnyLoss
from absentia.learning.processes import joined_processes

INTERRUPTED = 130  # the exit code after Ctrl-C
AUDIT_SECONDS = 120.0  # the default time limit of an audit
_MOST_SAMPLES_SHOWN = 12
ABSENCE_HELP = (
    "What stands in for absent players: zero, mean, median, mode, missing, a number, blur[:sigma], "
    "marginal[:rows], noise[:draws], gaussian[:draws], neighbours[:rows], or a saved file. name=… gives it a name."
)
_absence = Option("--absence", "-a", help=ABSENCE_HELP, autocompletion=lambda: list(WORDS))
_sample = Option("--sample", "-s", help="Row of a sample in the data, from 0. Repeatable.")
_output = Output(help="File to save the result to.")
app = typer.Typer(
    help="Find out what absence means to your model: learn it, audit it, explain with it.",
    epilog="Example: absentia demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"absentia {ab.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool | None, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = None,
    traceback: Annotated[bool, Option("--traceback", help="Show the full traceback of an error.")] = False,
) -> None:
    """Read the options that come before the command."""


def exit_if_interrupted(interrupted: bool) -> None:
    """End a command with the exit code of Ctrl-C if it ended the work, after the result is saved and printed."""
    if interrupted:
        raise typer.Exit(INTERRUPTED)


@takes_inputs
def learn(
    inputs: Inputs,
    output: Annotated[Path | None, _output] = None,
    loss: Annotated[AnyLoss, Option(help="What to minimise; the last three are the paper's.")] = "faithful",
    orders: Annotated[str | None, Option(help="Highest order to penalise: a number, or a share as in 0.5.")] = None,
    cube: Annotated[int | None, Option(help="Measure interactions in drawn groups of this many players.")] = None,
    start: Annotated[list[str] | None, Option(help="zero, mean, median, a number or a file. Repeatable.")] = None,
    bounds: Annotated[str, Option(help="range, a number of standard deviations, or LOW,HIGH.")] = "range",
    share: Annotated[Share, Option(help="Learn one baseline for all samples, or for each class or sample.")] = "all",
    evidence: Annotated[float, Option(help="Weight of masked predictions.", min=0)] = ab.LearningOptions.evidence,
    noise: Annotated[float, Option(help="Weight of white noise.", min=0)] = ab.LearningOptions.noise,
    samples: Annotated[int | None, Option(help="Number of samples to learn from.", min=1)] = None,
    rows_per_step: Annotated[int | None, Option(help="Rows to evaluate in a step of the loss faithful.")] = None,
    rows_per_comparison: Annotated[int, Option(help="Rows to compare two baselines by the paper's losses.")] = (
        ab.LearningOptions.rows_per_comparison
    ),
    steps: Annotated[int | None, Option(help="Steps of gradient descent; 0 without a gradient.", min=0)] = None,
    polish: Annotated[bool, Option(help="Then try other values of one entry at a time.")] = False,
    seconds: Annotated[float | None, Option(help="Stop after this time with the best values so far.")] = None,
    checkpoint: Annotated[Path | None, Option(help="File to keep the search in, and to resume it from.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the baseline values that represent absence best.

    Example: absentia learn -m mymodule:build -w w.safetensors -d train.csv -t class -o base.absentia
    """
    problem = prepare(inputs)
    data = problem.samples
    highest_order = None
    if orders is not None:
        highest_order = read_number("orders", "be a number, or a share of the players as in 0.5", orders)
    learning_options = ab.LearningOptions(
        evidence=evidence,
        noise=noise,
        polish=polish,
        steps=steps,
        rows_per_step=rows_per_step,
        samples=samples,
        checkpoint=checkpoint,
        orders=highest_order,
        cube=cube,
        rows_per_comparison=rows_per_comparison,
    )
    settings = problem.settings(
        loss=loss, share=share, options=learning_options, bounds=read_bounds(bounds), seconds=seconds, start="best"
    )
    if start:
        settings["start"] = [read_start(word) for word in start]
    are_tokens = problem.players.integer and not data.x.is_floating_point()
    if are_tokens and not problem.players.categorical:
        # Every token is a category: each player of a sequence is one token, so they have the same numbers.
        settings["categorical"] = range(len(problem.players))
    work = f"Learning a baseline for {len(problem.players)} players"
    with joined_processes() as is_first, working(work, problem.notes):
        learned = ab.learn_baseline(problem.model, data.x, data.y, **settings)
    if not is_first:  # all processes of torchrun have the same result
        return
    finish(learned, learned_payload(learned), as_json, output, **data.coding)
    exit_if_interrupted(learned.record.end.is_interruption)


@takes_inputs
def explain(
    inputs: Inputs,
    absence: Annotated[str, _absence],
    sample: Annotated[list[int] | None, _sample] = None,
    samples: Annotated[int | None, Option(help="Draw this many samples.", min=1)] = None,
    evaluations: Annotated[int | None, Option(help="Rows to evaluate for each sample, not all.", min=1)] = None,
    seconds: Annotated[
        float | None, Option(help="Evaluate what fits this time. Default: about a minute's; inf for no limit.")
    ] = None,
    batch_size: Annotated[int | None, Option(help="Rows in one batch of the model.", min=1)] = None,
    output: Annotated[Path | None, _output] = None,
    as_json: AsJson = False,
) -> None:
    """Explain the model's output on samples by Shapley values and interactions. The default is the first sample.

    Example: absentia explain -m mymodule:build -w w.safetensors -d test.csv -t class -a base.absentia --sample 3
    """
    if sample and samples is not None:
        raise wrong("samples", "be left out if samples are named with --sample", samples)
    numbers = sample or []
    if not numbers and samples is None:
        numbers = [0]
    problem = prepare(inputs, [absence], numbers, samples)
    rows = problem.chosen.tolist()
    x = problem.samples.x
    (method,) = load_absences([absence], problem).values()
    settings = problem.settings(absence=method, evaluations=evaluations, seconds=seconds, batch_size=batch_size)
    with working(f"Explaining {len(rows)} of {len(x):,} samples, {len(problem.players)} players", problem.notes):
        explanation = ab.explain(problem.model, x[problem.chosen], problem.y, **settings)
    row_names = problem.samples.names
    names = tuple(f"{row} ({row_names[row]})" if len(row_names) else str(row) for row in rows)
    explanation = replace(explanation, record=replace(explanation.record, rows=names))
    texts = [sample_text(explanation, place) for place in range(min(_MOST_SAMPLES_SHOWN, len(rows)))]
    if len(rows) > _MOST_SAMPLES_SHOWN:
        texts.append("…")
    note(f"Samples of {inputs.data}: {'; '.join(texts)}.")
    finish(explanation, explanation_payload(explanation, rows), as_json, output)
    exit_if_interrupted(explanation.record.is_interrupted)


@takes_inputs
def audit(
    inputs: Inputs,
    absence: Annotated[list[str] | None, _absence] = None,
    sample: Annotated[list[int] | None, _sample] = None,
    samples: Annotated[int, Option(help="Draw this many samples, unless some are named.", min=1)] = 200,
    region: Annotated[list[str] | None, Option(help="Player to mask. Repeatable. Default: all.")] = None,
    draws: Annotated[int, Option(help="Draws of the white noise.", min=1)] = 5,
    tau: Annotated[float | None, Option(help="Effects beyond this are salient.", min=0)] = None,
    max_players: Annotated[int, Option(help="Most players for all coalitions.", min=1)] = 16,
    evaluations: Annotated[
        int | None, Option(help="Rows to evaluate in all. Default: about a minute's.", min=1)
    ] = None,
    seconds: Annotated[
        float | None, Option(help="Stop after this time, and keep what is measured. Default: 120; inf for no limit.")
    ] = None,
    cross: Annotated[bool, Option("--cross", help="Measure R of every absence against every absence.")] = False,
    output: Annotated[Path | None, _output] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend an absence: measure how much absences leak and invent, and how many interactions they need.

    Example: absentia audit -m mymodule:build -w w.safetensors -d train.csv -t class -a mean -a base.absentia
    """
    for option, value in {"tau": tau, "evaluations": evaluations, "seconds": seconds}.items():
        if cross and value is not None:
            raise wrong(option, "be left out with --cross", value)
    limit = AUDIT_SECONDS if seconds is None else seconds
    problem = prepare(inputs, absence or (), sample or (), samples)
    data = problem.samples
    chosen = problem.chosen
    methods = load_absences(absence, problem) if absence else usual_absences(problem)
    settings = problem.settings(region=region, draws=draws, max_players=max_players, data=data.background)
    arguments: tuple[Any, ...] = (problem.model, data.x[chosen], problem.y, methods)
    count = len(methods) if absence else "the usual"
    work = f"Auditing {count} absences on {len(chosen)} samples, {len(problem.players)} players"
    result: ab.Audit | ab.CrossAudit
    if cross:
        with working(work, problem.notes):
            result = ab.cross_audit(*arguments, **settings)
    else:
        settings |= {"tau": tau, "evaluations": evaluations, "seconds": limit}
        with working(f"{work}, at most {limit:g} s", problem.notes):
            result = ab.audit(*arguments, **settings)
    finish(result, audit_payload(result) | {"samples": chosen}, as_json, output)
    exit_if_interrupted(result.record.is_interrupted)


def report(
    files: Annotated[
        list[Path], typer.Argument(help="Saved explanations, terms, audits and baselines, in this order.")
    ],
    output: Annotated[Path, Output(help="HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, Option(help="Title of the page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write saved results to one HTML file that opens in any browser.

    Example: absentia report one.absentia audit.absentia base.absentia -o report.html
    """
    if output.resolve() in [path.resolve() for path in files]:
        raise wrong("output", "be a different file from the results", output)
    results: dict[str, Any] = {}
    for path in files:
        name = path.stem if path.stem not in results else str(path)
        if name in results:
            raise wrong("files", "be named once", path)
        results[name] = ab.load(path)
    with working(f"Writing {output}"):
        ab.write_report(results, output, title=title)
    kinds = {name: type(result).__name__ for name, result in results.items()}
    text = f"Written to {output}: {', '.join(f'{name} ({kind})' for name, kind in kinds.items())}."
    show({"command": "report", "file": output, "results": kinds}, text, as_json)


def demo(
    output: Annotated[Path, Option("--output", "-o", help="Folder to write to.", file_okay=False)] = Path("demo"),
    seed: Annotated[int, Option(help="Seed of all random draws.", min=0, max=MOST_SEED)] = 0,
) -> None:
    """Train a small network on the digits of scikit-learn, audit absences, and explain a digit by the best one.

    Example: absentia demo --output demo
    """
    torch.set_num_threads(1)  # the networks are so small that more threads are slower
    demonstration.run(output, seed)


def info(
    file: Annotated[Path | None, typer.Argument(help="A file that absentia saved.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show versions, devices and extras, or the contents of a file that absentia saved.

    Example: absentia info base.absentia
    """
    with reading("file", "hold a whole result", file or ""):
        payload, text = describe_installation() if file is None else describe_file(check_file("file", file))
    show({"command": "info"} | payload, text, as_json)


for command in (demo, learn, explain, audit, report, info):
    app.command()(command)
