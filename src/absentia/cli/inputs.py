"""The options that learn, explain and audit share."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from absentia.cli.pools import workers
from absentia.cli.readout_words import OF_A_CLASS
from absentia.cli.saved_words import split_name
from absentia.errors import wrong

_model = partial(typer.Option, rich_help_panel="The model")
_data = partial(typer.Option, rich_help_panel="The data")
_game = partial(typer.Option, rich_help_panel="What is explained")
_work = partial(typer.Option, rich_help_panel="More than one process")
MODEL_HELP = (
    "package.module:object (a network, a fitted estimator, a function of rows, or a function that makes one), or a "
    "file: .onnx, .skops; with --trust also TorchScript .pt, torch.export .pt2, .pkl, .joblib."
)
DATA_HELP = "CSV, Parquet, npz (x and y, or file.npz:key), npy, or a folder of images with a subfolder per class."
CATEGORICAL_HELP = "Column of categories, or several that code one: a,b,c. Repeatable. Text needs none."
PLAYERS_HELP = (
    "features (the default for tables), grid:4x4 (the default for images), tokens, a map of labels (.npy, .npz, "
    ".csv, .png), or groups of columns (.json: names to columns)."
)
READOUT_HELP = "log-odds (the default for classes), logit, score, probability, output[:NUMBER], features:LAYER."
MOST_SEED = 2**63 - 1  # the largest seed that torch takes
Word = str | None


@dataclass(frozen=True)
class Inputs:
    """The shared options as the user gave them."""

    model: Annotated[str, _model("--model", "-m", help=MODEL_HELP, metavar="MODEL")]
    data: Annotated[str, _data("--data", "-d", help=DATA_HELP, metavar="FILE")]
    weights: Annotated[Word, _model("--weights", "-w", help="Safetensors file or state_dict of a network.")] = None
    probabilities: Annotated[bool, _model("--probabilities", help="The model returns probabilities.")] = False
    untrained: Annotated[bool, _model("--untrained", help="Take a network whose weights are random.")] = False
    device: Annotated[Word, _model(help="Device of a network: cpu, cuda, cuda:1, mps.")] = None
    trust: Annotated[bool, _model("--trust", help="Read files that can run code. You trust their source.")] = False
    target: Annotated[Word, _data("--target", "-t", help="Column or array that holds the classes.")] = None
    classes: Annotated[Word, _data(help="Class names in the order of the model's outputs: no,yes.")] = None
    index: Annotated[Word, _data(help="Column that names the rows; the model does not take it.")] = None
    drop: Annotated[list[str] | None, _data(help="Column that the model does not take. Repeatable.")] = None
    categorical: Annotated[list[str] | None, _data(help=CATEGORICAL_HELP)] = None
    background: Annotated[Word, _data("--background", "-b", help="Data to make absences from, if not --data.")] = None
    rows: Annotated[int | None, _data(min=1, help="Read this many rows; of a folder, of each class in turn.")] = None
    size: Annotated[Word, _data(help="Resize images to this height and width: 224x224.")] = None
    channels: Annotated[int | None, _data(help="Convert images: 1 for grey, 3 for colours.")] = None
    players: Annotated[Word, _game("--players", "-p", help=PLAYERS_HELP)] = None
    readout: Annotated[Word, _game(help=READOUT_HELP, autocompletion=lambda: [*OF_A_CLASS, "output"])] = None
    one_class: Annotated[Word, _game("--class", help="Explain this class, not that of each sample.")] = None
    seed: Annotated[int, _game(help="Seed of all random draws.", min=0, max=MOST_SEED)] = 0
    jobs: Annotated[int, _work(min=1, help="Processes to spread samples over.")] = 1
    dask: Annotated[Word, _work(help="Dask cluster to spread samples over: tcp://host:8786.")] = None


def takes_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command whose first parameter is `Inputs`."""
    shared = list(inspect.signature(Inputs).parameters.values())
    own_options = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    def run(**values: Any) -> None:
        inputs = Inputs(**{option.name: values.pop(option.name) for option in shared})
        _check_output(inputs, values)
        with workers(inputs.jobs, inputs.dask):
            command(inputs, **values)

    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in (*shared, *own_options)]
    # typer reads the options from the signature and the annotations.
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    return run


def _check_output(inputs: Inputs, own_options: dict[str, Any]) -> None:
    """Refuse to write the result over a file that the command reads."""
    output = own_options["output"]
    absences = own_options.get("absence") or []
    if isinstance(absences, str):
        absences = [absences]
    files: list[Any] = [split_name(word)[1] for word in absences]
    files += [inputs.data, inputs.model, inputs.weights, inputs.background, inputs.players]
    files += [own_options.get("checkpoint"), *(own_options.get("start") or [])]
    if output is not None and output.resolve() in [Path(file).resolve() for file in files if file]:
        raise wrong("output", "be a different file from those that are read", output)
