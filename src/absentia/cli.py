"""The command line: parse, call, print; no maths."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from absentia import demo as demonstration
from absentia.errors import AbsentiaError
from absentia.version import __version__

app = typer.Typer(
    help="Find out what absence means to your model.", no_args_is_help=True, pretty_exceptions_enable=False
)


def _print_version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"absentia {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = None,
) -> None:
    """Take options that come before the command."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for what the demo writes.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Fixes the split, the training and so every number.")] = 0,
) -> None:
    """Train a small model on data that come with scikit-learn, and take one of its predictions apart.

    Example: absentia demo --output demo
    """
    demonstration.run(output, seed)


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help="functions, tsang, shapley, census, credit, mnist or cifar10.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for tables.")] = Path("reproduction"),
    seed: Annotated[int, typer.Option(help="Fixes every draw.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes to use; all cores if left out.")] = None,
    count: Annotated[int | None, typer.Option(help="Only so many functions.")] = None,
    generated: Annotated[bool, typer.Option("--generated", help="Generated functions, not the released.")] = False,
    epochs: Annotated[int, typer.Option(help="Epochs of the published schedule, of the paper's 1,000.")] = 2,
) -> None:
    """Run an experiment of the paper, and write its table with our number beside the paper's.

    Example: absentia reproduce tsang
    """
    from absentia.papers import reproduce as reproduction

    reproduction.run(experiment, output, reproduction.Options(seed, workers, count, generated, epochs))


@app.command()
def train(
    name: Annotated[str, typer.Argument(help="census, credit, mnist, cifar10 or sst2.")],
    network: Annotated[
        str | None, typer.Option(help="lenet, alexnet; resnet20, resnet32, vgg16; cnn, lstm. The first is the usual.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Fixes the first weights and every draw.")] = 0,
    epochs: Annotated[int | None, typer.Option(help="Epochs, if not as many as the recipe has.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file, if not one in the cache.")] = None,
) -> None:
    """Train a network of the paper's experiments, and tell its accuracy on the test samples.

    Example: absentia train mnist --network lenet
    """
    from absentia.papers import models

    result = models.train(name, seed, network=network, epochs=epochs, path=output)
    typer.echo(f"{result.header.architecture} on {name}: test accuracy {result.header.test_accuracy:.2%}")
    typer.echo(f"Written to {result.path}")


def main() -> None:
    """Run the command line; an error that the user can mend is one sentence and exit code 2."""
    try:
        app()
    except AbsentiaError as error:
        typer.echo(f"absentia: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
