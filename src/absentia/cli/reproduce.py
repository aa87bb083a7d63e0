"""absentia reproduce: an experiment of the paper, with our number beside the paper's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from absentia.cli.options import AsJson, Seed
from absentia.cli.output import announced, print_json
from absentia.errors import wrong


def reproduce(
    experiment: Annotated[
        str, typer.Argument(help="functions, tsang, shapley, census, credit, audits, mnist or cifar10.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for tables.", file_okay=False)] = Path(
        "reproduction"
    ),
    seed: Seed = 0,
    workers: Annotated[int | None, typer.Option(help="Processes to use; all cores if left out.", min=1)] = None,
    count: Annotated[int | None, typer.Option(help="Only so many functions.", min=1)] = None,
    generated: Annotated[bool, typer.Option("--generated", help="Generated functions, not the released.")] = False,
    epochs: Annotated[
        int | None,
        typer.Option(help="Epochs of the published schedule, of the paper's 1,000 (census 10, credit 4).", min=1),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment of the paper, and write its table with our number beside the paper's.

    Example: absentia reproduce tsang
    """
    from absentia.papers import reproduce as reproduction

    if experiment not in reproduction.EXPERIMENTS:
        raise wrong("experiment", f"be one of {', '.join(reproduction.EXPERIMENTS)}", repr(experiment))
    options = reproduction.Options(seed, workers, count, generated, epochs)
    with announced(f"Reproducing {experiment}"):
        path = reproduction.run(experiment, output, options, Console(stderr=as_json))
    if as_json:
        written = json.loads(path.with_suffix(".json").read_text())
        print_json({"command": "reproduce", "experiment": experiment, "file": path, "tables": written["tables"]})
