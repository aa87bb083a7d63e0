"""absentia train: a network of the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from absentia.cli.options import AsJson, Seed
from absentia.cli.output import announced, print_json


def train(
    name: Annotated[str, typer.Argument(help="census, credit, mnist, cifar10 or sst2.")],
    network: Annotated[
        str | None, typer.Option(help="lenet, alexnet; resnet20, resnet32, vgg16; cnn, lstm. The first is the usual.")
    ] = None,
    seed: Seed = 0,
    epochs: Annotated[int | None, typer.Option(help="Epochs, if not as many as the recipe has.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file, if not one in the cache.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a network of the paper's experiments, and tell its accuracy on the test samples.

    Example: absentia train mnist --network lenet
    """
    from absentia.papers import models

    with announced(f"Training on {name}"):
        result = models.train(name, seed, network=network, epochs=epochs, path=output)
    header = result.header
    if as_json:
        print_json({"command": "train", "file": result.path, "header": header})
        return
    typer.echo(f"{header.architecture} on {name}: test accuracy {header.test_accuracy:.2%}")
    typer.echo(f"Written to {result.path}")
