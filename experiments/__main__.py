"""The command line: ``python -m experiments list``, ``NAME``, ``all``, ``report``, ``usual`` and ``train NAME``.

Every experiment sets the paper's figures beside ours, and writes a record to ``experiments/results``. ``report``
makes one page of all records.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console

from absentia import AbsentiaError
from experiments import learned_against_usual, trained_models
from experiments.experiment import (
    RESULTS,
    Experiment,
    Journal,
    Record,
    Run,
    measure,
    measure_parts,
    read_record,
    record_file,
    seed_folder,
)
from experiments.registry import EXPERIMENTS, names
from experiments.report import corrected_tables, judged_claims, summed_up, write_report
from experiments.tables import write_results

WRONG_USE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code: 0, 2 for a wrong use, 130 for Ctrl-C.

    >>> main(["list"])  # doctest: +ELLIPSIS
    table-1  How much signal masking methods leave and add (mnist, cifar10)
    ...
    0
    """
    chosen = make_parser().parse_args(arguments)
    try:
        chosen.command(chosen)
    except (AbsentiaError, OSError) as error:
        if chosen.traceback:
            raise
        print(f"experiments: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print("experiments: interrupted. The same command goes on from what is finished.", file=sys.stderr)
        return INTERRUPTED
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Make a parser with a command for each experiment, and the commands all, report, usual, train and list."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error occurred")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (experiment, parts) in names().items():
        command = _add_run(commands, name, experiment.title, _run_one)
        command.set_defaults(experiment=experiment, parts=parts)
        command.add_argument("--only", type=_words, default=(), help=f"parts: {', '.join(experiment.parts)}")
    _add_run(commands, "all", "run all experiments, and make the report", _run_all)
    command = _add(commands, "report", "make one page of all records", _report)
    command.add_argument("-o", "--output", type=Path, default=RESULTS, help="the folder of the records")
    command = _add(commands, "usual", "compare learned baselines with the usual ones on ten problems", _usual)
    command.add_argument("-o", "--output", type=Path, default=RESULTS, help="the folder for the tables")
    command.add_argument("--seed", type=_not_negative, default=0, help="the first seed")
    command.add_argument("--problems", type=_words, help="measure only these, as in wine,census")
    command.add_argument("--seeds", type=_numbers, help="the seeds, as in 0,1,2; by default three from --seed on")
    command.add_argument("--quick", action="store_true", help="measure everything on a few samples only")
    command = _add(commands, "train", "train a network and measure its accuracy on the test samples", _train)
    command.add_argument("name", help=f"the data set: {', '.join(trained_models.RECIPES)}")
    choices = "; ".join(", ".join(recipes) for recipes in trained_models.RECIPES.values() if len(recipes) > 1)
    command.add_argument("--network", help=f"{choices}; the first is the default")
    command.add_argument("--epochs", type=_positive, help="epochs, if not those of the recipe")
    command.add_argument("--seed", type=_not_negative, default=0, help="the seed of everything that is drawn")
    command.add_argument("-o", "--output", type=Path, help="the file, if not one in the cache")
    commands.add_parser("list", help="list the experiments").set_defaults(command=_list)
    return parser


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    command: Callable[[argparse.Namespace], None],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=about, description=about[0].upper() + about[1:])
    parser.set_defaults(command=command)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _add_run(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    command: Callable[[argparse.Namespace], None],
) -> argparse.ArgumentParser:
    """Add a command with the options of a run."""
    parser = _add(commands, name, about, command)
    parser.add_argument("--seed", type=_not_negative, default=0, help="the seed of everything that is drawn")
    parser.add_argument("--quick", action="store_true", help="run at reduced size")
    parser.add_argument("--workers", type=_positive, help="processes to use; by default one for each core")
    parser.add_argument("--retrain", action="store_true", help="train the networks anew")
    parser.add_argument("-o", "--output", type=Path, help="the folder for the records, if not one for each seed")
    return parser


def _make_run(chosen: argparse.Namespace) -> Run:
    if chosen.output is None:
        chosen.output = seed_folder(RESULTS, chosen.seed)
    if chosen.output.exists() and not chosen.output.is_dir():  # before the experiment, not after it
        raise AbsentiaError(f"output must name a folder. Got the file {chosen.output} instead.")
    network = partial(trained_models.trained, retrain=chosen.retrain, quick=chosen.quick)
    return Run(
        size="quick" if chosen.quick else "full",
        seed=chosen.seed,
        workers=chosen.workers,
        folder=chosen.output,
        network=network,
    )


def _show(experiment: Experiment, record: Record, console: Console) -> None:
    for part in record.parts:
        for table in corrected_tables(experiment, record, part):
            table.show(console)
    for judged in judged_claims(experiment, record):
        verdict = judged.verdict
        about = f"{experiment.name}, {judged.claim.says}: {judged.words}."
        console.print(f"[bold]{about}[/bold] {verdict.ours}. {verdict.reason}")
    summary = summed_up(experiment, record)
    if summary is not None:
        console.print(f"[bold]{experiment.name}:[/bold] {summary.ours}. {summary.reason}")


def _run_one(chosen: argparse.Namespace) -> None:
    run = _make_run(chosen)
    parts = chosen.only or chosen.parts
    journal = _resume(f"{chosen.experiment.name} {' '.join(parts)}", chosen)
    record = measure(chosen.experiment, run, parts, journal)
    journal.close()
    path = record_file(chosen.output, chosen.experiment.name, run.size)
    console = Console(stderr=chosen.json)
    _show(chosen.experiment, record, console)
    console.print(f"Written to [bold]{path}[/bold]")
    if chosen.json:
        print(path.read_text(encoding="utf-8"))


def _resume(work: str, chosen: argparse.Namespace) -> Journal:
    """Open the journal of a command, and say what it finished before it was stopped."""
    size = "quick" if chosen.quick else "full"
    journal = Journal(f"{work} {size} {chosen.seed} {chosen.retrain} {chosen.output.resolve()}")
    if journal.finished:
        print(f"Going on after {len(journal.finished)} finished parts.", file=sys.stderr)
    return journal


def _run_all(chosen: argparse.Namespace) -> None:
    """Run all experiments in turn; what fails is named at the end, and the others are still run."""
    reported = RESULTS if chosen.output is None else chosen.output
    run = _make_run(chosen)
    console = Console(stderr=chosen.json)
    failed = []
    journal = _resume("all", chosen)
    for experiment, part, error in measure_parts(
        [(one, part) for one in EXPERIMENTS for part in one.parts], run, journal
    ):
        if error is not None:
            failed.append(f"{experiment.name} {part}")
        console.print(f"{experiment.name}, {part}: {'finished' if error is None else error}")
    for experiment in EXPERIMENTS:
        _show(experiment, read_record(chosen.output, experiment.name, run.size), console)
    _write_report(reported, chosen.json)
    journal.close()
    if failed:
        raise AbsentiaError(f"All experiments must run. Got errors in {', '.join(failed)} instead.")


def _report(chosen: argparse.Namespace) -> None:
    _write_report(chosen.output, chosen.json)


def _write_report(folder: Path, as_json: bool) -> None:
    """Write the report of the records in a folder, and say where."""
    path = write_report(EXPERIMENTS, folder)
    if as_json:
        print(json.dumps({"file": str(path)}))
    else:
        print(f"Written to {path}")


def _usual(chosen: argparse.Namespace) -> None:
    seeds = chosen.seeds or tuple(range(chosen.seed, chosen.seed + 3))
    tables = learned_against_usual.usual_tables(chosen.problems, seeds, chosen.quick)
    console = Console(stderr=chosen.json)
    for table in tables:
        table.show(console)
    name = "learned_against_usual"
    words = ["python -m experiments usual"]
    if chosen.quick:
        name += "-quick"
        words.append("--quick")
    if chosen.problems:
        words.append(f"--problems {','.join(chosen.problems)}")
    if chosen.seeds is None:
        words.append(f"--seed {chosen.seed}")
    else:
        words.append(f"--seeds {','.join(map(str, chosen.seeds))}")
    path = write_results(chosen.output, name, " ".join(words), tables)
    console.print(f"Written to [bold]{path}[/bold]")
    if chosen.json:
        print(path.with_suffix(".json").read_text(encoding="utf-8"))


def _train(chosen: argparse.Namespace) -> None:
    result = trained_models.train(
        chosen.name, chosen.seed, network=chosen.network, epochs=chosen.epochs, path=chosen.output
    )
    if chosen.json:
        print(json.dumps({"file": str(result.path), "header": asdict(result.header)}))
        return
    header = result.header
    print(f"{header.architecture} on {header.data_set}: test accuracy {header.test_accuracy:.2%}")
    print(f"Written to {result.path}")


def _list(_chosen: argparse.Namespace) -> None:
    width = max(len(experiment.name) for experiment in EXPERIMENTS)
    for experiment in EXPERIMENTS:
        print(f"{experiment.name:<{width}}  {experiment.title} ({', '.join(experiment.parts)})")


def _words(word: str) -> tuple[str, ...]:
    return tuple(word.split(","))


def _numbers(word: str) -> tuple[int, ...]:
    return tuple(_not_negative(part) for part in word.split(","))


def _not_negative(word: str) -> int:
    return _whole(word, 0)


def _positive(word: str) -> int:
    return _whole(word, 1)


def _whole(word: str, least: int) -> int:
    """Read a whole number."""
    try:
        number = int(word)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number of at least {least}")
    return number


if __name__ == "__main__":
    sys.exit(main())
