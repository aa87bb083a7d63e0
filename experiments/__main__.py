"""The command line: ``python -m experiments list``, ``NAME``, ``all`` and ``train NAME``.

Every experiment prints tables with the paper's figures beside ours, and writes them to ``experiments/results``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from absentia import AbsentiaError
from experiments import (
    known_baselines,
    known_shapley,
    learned_against_usual,
    masking_methods,
    tabular_audits,
    tabular_baselines,
    trained_models,
    tree_baselines,
)
from experiments.tables import ResultTable, write_results

RESULTS = Path(__file__).parent / "results"
WRONG_USE, INTERRUPTED = 2, 130


@dataclass(frozen=True)
class Options:
    """The options of an experiment; each experiment uses those that its `Experiment` names."""

    seed: int = 0
    workers: int | None = None
    count: int | None = None
    generated: bool = False
    epochs: int | None = None
    problems: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    quick: bool = False

    def words(self) -> str:
        """Write the options that change the results as on the command line.

        >>> Options(seed=1, workers=2, count=20, generated=True).words()
        '--generated --count 20 --seed 1'
        """
        words = ["--generated"] * self.generated
        words += [] if self.count is None else [f"--count {self.count}"]
        words += [] if self.epochs is None else [f"--epochs {self.epochs}"]
        words += ["--quick"] * self.quick
        words += [] if self.problems is None else [f"--problems {','.join(self.problems)}"]
        seeds = f"--seed {self.seed}" if self.seeds is None else f"--seeds {','.join(map(str, self.seeds))}"
        return " ".join([*words, seeds])


@dataclass(frozen=True)
class Experiment:
    """What an experiment shows, how it is run, and which options it has besides the seed."""

    about: str
    run: Callable[[Options], list[ResultTable]]
    options: tuple[str, ...] = ()
    file: str = ""  # the name of its results, if not its own


EXPERIMENTS: dict[str, Experiment] = {
    "functions": Experiment(
        "baseline values of 100 synthetic functions: how many does learning find?",
        lambda o: known_baselines.synthetic(o.count, o.seed, o.workers, o.generated),
        ("workers", "count", "generated"),
    ),
    "tsang": Experiment(
        "baseline values of ten functions of Tsang et al.: how many does learning find?",
        lambda o: known_baselines.tsang(o.seed, o.workers),
        ("workers",),
    ),
    "shapley": Experiment(
        "sums of products with known Shapley values, and the paper's worked examples",
        lambda o: [
            *known_shapley.addition_multiplication_table(o.count, o.seed, o.workers),
            *known_shapley.worked_tables(),
        ],
        ("workers", "count"),
    ),
    "census": Experiment(
        "the signal that baselines leave of a network and of boosted trees on the census data",
        lambda o: [
            *tabular_baselines.tabular_table("census", o.seed, o.epochs),
            *tabular_baselines.starts_table("census", o.seed),
            *tree_baselines.trees_table(o.seed),
        ],
        ("epochs",),
    ),
    "credit": Experiment(
        "the signal that baselines leave of a network on the credit data",
        lambda o: [
            *tabular_baselines.tabular_table("credit", o.seed, o.epochs),
            *tabular_baselines.starts_table("credit", o.seed),
        ],
        ("epochs",),
    ),
    "audits": Experiment(
        "the signal that masking methods remove and add on the census and credit data",
        lambda o: tabular_audits.audit_tables(o.seed),
    ),
    "mnist": Experiment(
        "the signal that masking methods remove and add on images of digits",
        lambda o: masking_methods.masking_tables("mnist", o.seed),
    ),
    "cifar10": Experiment(
        "the signal that masking methods remove and add on photographs",
        lambda o: masking_methods.masking_tables("cifar10", o.seed),
    ),
    "usual": Experiment(
        "learned baselines against the usual ones on ten problems, and by the judgement of others",
        lambda o: learned_against_usual.usual_tables(o.problems, o.seeds or range(o.seed, o.seed + 3), o.quick),
        ("problems", "seeds", "quick"),
        file="learned_against_usual",
    ),
}


def run(name: str, folder: Path, options: Options, console: Console) -> Path:
    """Run an experiment, print its tables, write them to a folder, and return the path of the Markdown."""
    if folder.exists() and not folder.is_dir():  # before the experiment, not after it
        raise AbsentiaError(f"output must name a folder. Got the file {folder} instead.")
    tables = EXPERIMENTS[name].run(options)
    for table in tables:
        table.show(console)
    stem = (EXPERIMENTS[name].file or name) + "-generated" * options.generated + "-quick" * options.quick
    path = write_results(folder, stem, f"python -m experiments {name} {options.words()}", tables)
    console.print(f"Written to [bold]{path}[/bold]")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code: 0, 2 for a wrong use, 130 for Ctrl-C.

    >>> main(["list"])  # doctest: +ELLIPSIS
    functions  baseline values of 100 synthetic functions: how many does learning find?
    tsang      ...
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
        print("experiments: interrupted.", file=sys.stderr)
        return INTERRUPTED
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Make a parser with a command for each experiment, and the commands all, train and list."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error occurred")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, experiment in EXPERIMENTS.items():
        command = _add(commands, name, experiment.about, _run_one)
        command.set_defaults(experiment=name)
        command.add_argument("-o", "--output", type=Path, default=RESULTS, help="the folder for the tables")
        for option in experiment.options:
            if option in ("generated", "quick"):
                command.add_argument(f"--{option}", action="store_true", help=_HELP[option])
            else:
                command.add_argument(f"--{option}", type=_READ.get(option, _positive), help=_HELP[option])
    command = _add(commands, "all", "run all experiments, which takes hours", _run_all)
    command.add_argument("-o", "--output", type=Path, default=RESULTS, help="the folder for the tables")
    command = _add(commands, "train", "train a network and measure its accuracy on the test samples", _train)
    command.add_argument("name", help=f"the data set: {', '.join(trained_models.RECIPES)}")
    choices = "; ".join(", ".join(recipes) for recipes in trained_models.RECIPES.values() if len(recipes) > 1)
    command.add_argument("--network", help=f"{choices}; the first is the default")
    command.add_argument("--epochs", type=_positive, help="epochs, if not those of the recipe")
    command.add_argument("-o", "--output", type=Path, help="the file, if not one in the cache")
    listing = commands.add_parser("list", help="list the experiments")
    listing.set_defaults(command=_list)
    return parser


_HELP = {
    "workers": "processes to use; by default one for each core",
    "count": "use only this many functions",
    "epochs": "epochs of the published schedule (the paper's 1,000; here census 10, credit 4)",
    "generated": "generate functions like the released ones",
    "problems": "measure only these problems, as in wine,census; others are shown if they were measured before",
    "seeds": "the seeds, as in 0,1,2; by default three from --seed on",
    "quick": "measure everything on a few samples only, to try the command",
}


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    command: Callable[[argparse.Namespace], None],
) -> argparse.ArgumentParser:
    """Add a command with the options that all have but list."""
    parser = commands.add_parser(name, help=about, description=about[0].upper() + about[1:])
    parser.set_defaults(command=command)
    parser.add_argument("--seed", type=_not_negative, default=0, help="the seed of everything that is drawn")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _run_one(chosen: argparse.Namespace) -> None:
    names = EXPERIMENTS[chosen.experiment].options
    options = Options(chosen.seed, **{name: getattr(chosen, name) for name in names})
    path = run(chosen.experiment, chosen.output, options, Console(stderr=chosen.json))
    if chosen.json:
        print(path.with_suffix(".json").read_text(encoding="utf-8"))


def _run_all(chosen: argparse.Namespace) -> None:
    paths = [
        run(name, chosen.output, Options(chosen.seed), Console(stderr=chosen.json)).with_suffix(".json")
        for name in EXPERIMENTS
    ]
    if chosen.json:
        print(json.dumps([json.loads(path.read_text(encoding="utf-8")) for path in paths], ensure_ascii=False))


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
    for name, experiment in EXPERIMENTS.items():
        print(f"{name:<11}{experiment.about}")


def _numbers(word: str) -> tuple[int, ...]:
    return tuple(_not_negative(part) for part in word.split(","))


def _names(word: str) -> tuple[str, ...]:
    return tuple(word.split(","))


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


_READ: dict[str, Callable[[str], Any]] = {"problems": _names, "seeds": _numbers}

if __name__ == "__main__":
    sys.exit(main())
