"""The commands: each calls the library, and saves and prints the result; and how a command ends."""

import errno
import importlib.metadata
import importlib.util
import math
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
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
from absentia.cli.file_checks import check_file, describe, reading
from absentia.cli.inputs import MOST_SEED, Inputs, takes_inputs
from absentia.cli.model_files import devices
from absentia.cli.output import AsJson, Output, finish, note, show, working
from absentia.cli.problem import prepare
from absentia.errors import AbsentiaError, wrong
from absentia.learning.learned import Share
from absentia.learning.learner import AnyLoss
from absentia.learning.processes import joined_processes
from absentia.plots.drawable import players_and_inputs
from absentia.storage import read_tensors

WRONG_USE, INTERRUPTED = 2, 130  # exit codes
# The base class of typer's usage errors, which moves between modules from version to version.
_UsageError: Any = typer.BadParameter.__bases__[0]
AUDIT_SECONDS = 120.0  # after which an audit ends, unless another limit is given
ABSENCE_HELP = (
    "What stands in for absent players: zero, mean, median, mode, a number, blur[:sigma], marginal[:rows], "
    "noise[:draws], gaussian[:draws], neighbours[:rows], or a saved file. name=… gives it a name."
)
# The modules of each extra of pip install 'absentia[…]'.
EXTRAS: dict[str, tuple[str, ...]] = {
    "plot": ("matplotlib",), "tables": ("pandas",), "parquet": ("pandas", "pyarrow"), "images": ("PIL",),
    "onnx": ("onnxruntime",), "skops": ("skops",), "sklearn": ("sklearn", "pandas"), "shap": ("shap",),
    "captum": ("captum",), "shapiq": ("shapiq",), "transformers": ("transformers",),
    "demo": ("matplotlib", "sklearn"), "scale": ("joblib", "cloudpickle"), "dask": ("distributed",),
}  # fmt: skip
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
    rows_per_comparison: Annotated[int, Option(help="Rows to compare two baselines by the paper's losses.")] = 2**18,
    steps: Annotated[int | None, Option(help="Steps of gradient descent; 0 without a gradient.", min=0)] = None,
    polish: Annotated[bool, Option(help="Then try other values of one entry at a time.")] = False,
    seconds: Annotated[float | None, Option(help="Stop after this time with the best values so far.")] = None,
    checkpoint: Annotated[Path | None, Option(help="File to keep the search in, and to resume it from.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the baseline values that leave the least signal of absent players behind.

    Example: absentia learn -m mymodule:build -w w.safetensors -d train.csv -t class -o base.absentia
    """
    problem = prepare(inputs)
    data = problem.samples
    must = "be a number, or a share of the players as in 0.5"
    options = ab.LearningOptions(
        evidence, noise, polish, steps, rows_per_step=rows_per_step, samples=samples, checkpoint=checkpoint,
        orders=None if orders is None else _number("orders", must, orders),
        cube=cube, rows_per_comparison=rows_per_comparison,
    )  # fmt: skip
    settings = problem.settings(loss=loss, share=share, options=options, bounds=_bounds(bounds), seconds=seconds)
    settings["start"] = [_start(word) for word in start or ()] or "best"
    tokens = problem.players.integer and not data.x.is_floating_point()
    if tokens and not problem.players.categorical:  # all tokens are categories
        settings["categorical"] = range(len(problem.players))
    work = f"Learning a baseline for {len(problem.players)} players"
    with joined_processes() as first, working(work, problem.notes):
        learned = ab.learn_baseline(problem.model, data.x, data.y, **settings)
    if not first:  # of the processes of torchrun, which all have the same result
        return
    payload = _payload("learn", learned, "outcome names share classes values loss record")
    finish(learned, payload, as_json, output, **data.coding)
    if learned.record.stopped.startswith("interrupted"):
        raise typer.Exit(INTERRUPTED)


def _number(option: str, must: str, word: str, words: tuple[str, ...] = ()) -> Any:
    """Read a number, or one of some words."""
    with suppress(ValueError):
        number = word if word in words else int(word) if word.isdecimal() else float(word)
        if isinstance(number, str) or math.isfinite(number):
            return number
    raise wrong(option, must, repr(word))


def _start(word: str) -> Any:
    if Path(word).is_file():
        return ab.LearnedBaseline.load(word).values
    return _number("start", "be zero, mean, median, a number or a saved baseline", word, ("zero", "mean", "median"))


def _bounds(word: str) -> Any:
    must = "be range, a number of standard deviations, or two numbers LOW,HIGH"
    low, comma, high = word.partition(",")
    if comma:
        return _number("bounds", must, low), _number("bounds", must, high)
    return _number("bounds", must, word, ("range",))


@takes_inputs
def explain(
    inputs: Inputs,
    absence: Annotated[str, _absence],
    sample: Annotated[list[int] | None, _sample] = None,
    samples: Annotated[int | None, Option(help="Draw this many samples.", min=1)] = None,
    evaluations: Annotated[int | None, Option(help="Rows to evaluate for each sample, not all.", min=1)] = None,
    batch_size: Annotated[int | None, Option(help="Rows in one batch of the model.", min=1)] = None,
    output: Annotated[Path | None, _output] = None,
    as_json: AsJson = False,
) -> None:
    """Explain the model's output on samples by Shapley values and interactions. The default is the first sample.

    Example: absentia explain -m mymodule:build -w w.safetensors -d test.csv -t class -a base.absentia --sample 3
    """
    if sample and samples is not None:
        raise wrong("samples", "be left out if samples are named with --sample", samples)
    problem = prepare(inputs, [absence], sample or ([0] if samples is None else ()), samples)
    rows, x = problem.chosen.tolist(), problem.samples.x
    (method,) = load_absences([absence], problem).values()
    settings = problem.settings(absence=method, evaluations=evaluations, batch_size=batch_size)
    with working(f"Explaining {len(rows)} of {len(x):,} samples, {len(problem.players)} players", problem.notes):
        found = ab.explain(problem.model, x[problem.chosen], problem.y, **settings)
    own = problem.samples.names
    names = tuple(f"{row} ({own[row]})" if len(own) else str(row) for row in rows)
    found = replace(found, record=replace(found.record, rows=names))
    listed = [{"sample": row} | _describe_sample(found, place) for place, row in enumerate(rows)]
    shown = [_sample_text(found, place) for place in range(min(12, len(rows)))] + ["…"] * (len(rows) > 12)
    note(f"Samples of {inputs.data}: {'; '.join(shown)}.")
    payload = {"command": "explain", "players": found.names, "samples": listed, "record": found.record}
    finish(found, payload, as_json, output)


def _describe_sample(found: ab.Explanation, place: int) -> dict[str, Any]:
    top = [] if found.interactions is None else found.interactions.top(10, sample=place)
    return {
        "name": found.sample_name(place),
        "inputs": dict(zip(found.names, found.players.named_values(found.x[[place]])[0], strict=True)),
        "class": None if found.y is None else int(found.y[place]),
        "output": found.outputs[place],
        "base_value": found.base_values[place],
        "efficiency_gap": found.efficiency_gap[place],
        "shapley": dict(zip(found.names, found.shapley.values[place].tolist(), strict=True)),
        "errors": dict(zip(found.names, found.shapley.errors[place].tolist(), strict=True)),
        "strongest_interactions": [{"players": one.players, "effect": one.effect} for one in top],
    }


def _sample_text(found: ab.Explanation, place: int, most: int = 8) -> str:
    """Name a sample, its class, and the inputs of a table with the largest Shapley values."""
    names, single = players_and_inputs(found, place), found.players.single.tolist()
    shown = [names[player] for player, _ in found.shapley.ranked(place)[:most] if single[player]]
    return found.sample_name(place) + (f" ({', '.join(shown)})" if shown else "")


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
    """Recommend an absence: measure whether absences leak or invent, and how long an account they need.

    Example: absentia audit -m mymodule:build -w w.safetensors -d train.csv -t class -a mean -a base.absentia
    """
    more: dict[str, Any] = {"tau": tau, "evaluations": evaluations, "seconds": seconds}
    for option, value in more.items() if cross else ():
        if value is not None:
            raise wrong(option, "be left out with --cross", value)
    more["seconds"] = AUDIT_SECONDS if seconds is None else seconds
    problem = prepare(inputs, absence or (), sample or (), samples)
    data, chosen = problem.samples, problem.chosen
    methods = load_absences(absence, problem) if absence else usual_absences(problem)
    settings = problem.settings(region=region, draws=draws, max_players=max_players, data=data.background)
    arguments: tuple[Any, ...] = (problem.model, data.x[chosen], problem.y, methods)
    limit, count = "" if cross else f", at most {more['seconds']:g} s", len(methods) if absence else "the usual"
    work = f"Auditing {count} absences on {len(chosen)} samples, {len(problem.players)} players{limit}"
    with working(work, problem.notes):
        result = ab.cross_audit(*arguments, **settings) if cross else ab.audit(*arguments, **settings | more)
    if isinstance(result, ab.CrossAudit):
        payload = _payload("audit", result, "methods references R errors record")
    else:
        payload = _audit_payload(result)
    finish(result, payload | {"samples": chosen}, as_json, output)
    if result.record.stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)


def _audit_payload(result: ab.Audit) -> dict[str, Any]:
    """Return an audit for JSON: the answer, how sure it is, and all figures of each method with their errors."""
    payload = _payload(
        "audit", result, "recommended confidence level verdict warnings notes_on_R players region record"
    )
    payload["none_wins"] = result.judgement.shares[-1]
    payload["samples_needed"] = result.judgement.samples_needed
    columns = {name: values.tolist() for name, values in result.columns().items()}
    payload["methods"] = {}
    for number, method in enumerate(result.methods):
        payload["methods"][method] = {name: values[number] for name, values in columns.items()}
    return payload


def _payload(command: str, result: object, fields: str) -> dict[str, Any]:
    """Return fields of a result for JSON."""
    return {"command": command} | {name: getattr(result, name) for name in fields.split()}


def report(
    files: Annotated[list[Path], typer.Argument(help="Saved explanations, audits and baselines, in this order.")],
    output: Annotated[Path, Output(help="HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, Option(help="Title of the page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write saved results to one HTML file that opens in any browser.

    Example: absentia report one.absentia audit.absentia base.absentia -o report.html
    """
    if output.resolve() in [path.resolve() for path in files]:
        raise wrong("output", "be another file than the results", output)
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
        payload, text = _installation() if file is None else _contents(check_file("file", file))
    show({"command": "info"} | payload, text, as_json)


def _installation() -> tuple[dict[str, Any], str]:
    """Return what is installed here, for JSON and as text."""
    found = {extra: all(importlib.util.find_spec(name) for name in names) for extra, names in EXTRAS.items()}
    facts = {
        "absentia": ab.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": importlib.metadata.version("numpy"),
        "devices": [f"{device} ({name})" if name else device for device, name in devices().items()],
        "threads": torch.get_num_threads(),
        "extras": [extra for extra, there in found.items() if there],
    }
    missing = {extra: f"pip install 'absentia[{extra}]'" for extra, there in found.items() if not there}
    rows = [*facts.items(), *(("missing", f"{extra}: {how}") for extra, how in missing.items())]
    lines = [f"{name:<10}{', '.join(value) if isinstance(value, list) else value}" for name, value in rows]
    return facts | {"missing": missing}, "\n".join(lines)


def _contents(path: Path) -> tuple[dict[str, Any], str]:
    """Return the header of a saved file and the shapes of its tensors for JSON, and the result as text."""
    tensors, header = read_tensors(path)
    if "fingerprint" in header:
        text = f"A search for a baseline in progress, {header['evaluations']:,} evaluations so far"
    else:
        own = header.get("own_network", header.get("fields", {}).get("network", {}).get("own"))
        text = "A surrogate with a network of the user" if own else repr(ab.load(path))
    if "coding" in header:
        text += f"\nColumns: {', '.join(header['coding']['columns'])}"
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    text += "\nTensors: " + ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    return {"file": path, "header": header, "tensors": shapes}, text


for command in (demo, learn, explain, audit, report, info):
    app.command()(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 on success, 2 with one sentence on wrong use, 130 on Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=words or ["--help"], prog_name="absentia", standalone_mode=False)
    except Exception as error:
        if "--traceback" in words:
            raise
        if isinstance(error, OSError) and error.errno == errno.EPIPE:  # the reader of a pipe has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        typer.echo(f"absentia: {_sentence(error)}", err=True)
        sys.exit(WRONG_USE)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        typer.echo("absentia: interrupted.", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _sentence(error: Exception) -> str:
    """Put an error into one line."""
    if isinstance(error, AbsentiaError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'A file or the output'} can't be used: {error.strerror or error}."
    if not isinstance(error, _UsageError):
        return f"{describe(error)}. The model or a file may be at fault: absentia --traceback … shows where."
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "absentia"
    message = " ".join(str(error.format_message()).split())
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} Try {where} --help."
