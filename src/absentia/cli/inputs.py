"""The options that learn, explain and audit share: the model, the data, the players, and what is explained."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer
from jaxtyping import Int
from torch import Tensor

from absentia.cli.output import tell
from absentia.inference import Model
from absentia.loading import (
    Samples,
    as_model,
    load_model,
    load_players,
    load_readout,
    make_samples,
    read_data,
    saved_coding,
    takes_tokens,
)
from absentia.loading.players import parse_size
from absentia.loading.targets import find_class
from absentia.players import Players
from absentia.readouts import Readout

_MODEL, _DATA, _GAME = "The model", "The data", "What is explained"
_READOUTS = ["log-odds", "logit", "probability", "output"]
MODEL_HELP = (
    "package.module:object (a network, a fitted estimator, a function of rows, or a function that makes one), or a "
    "file: .onnx, .skops; with --trust also TorchScript .pt, torch.export .pt2, .pkl, .joblib."
)
DATA_HELP = "CSV, Parquet, npz (arrays x and y, or file.npz:key), npy, or a folder of images, one subfolder a class."


def _option(*names: str, panel: str, help: str, **rest: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **rest)


@dataclass(frozen=True)
class Inputs:
    """A user's words for a model, data and players, as the options give them."""

    model: Annotated[str, _option("--model", "-m", panel=_MODEL, help=MODEL_HELP, metavar="MODEL")]
    data: Annotated[str, _option("--data", "-d", panel=_DATA, help=DATA_HELP, metavar="FILE")]
    weights: Annotated[
        str | None,
        _option(
            "--weights",
            "-w",
            panel=_MODEL,
            help="The network's weights: safetensors, or a state_dict.",
            metavar="FILE",
        ),
    ] = None
    probabilities: Annotated[
        bool, _option("--probabilities", panel=_MODEL, help="The model returns probabilities, not logits.")
    ] = False
    device: Annotated[
        str | None, _option("--device", panel=_MODEL, help="Where a network runs: cpu, cuda, cuda:1, mps.")
    ] = None
    trust: Annotated[
        bool, _option("--trust", panel=_MODEL, help="Read files that could run code: you know where they come from.")
    ] = False
    target: Annotated[
        str | None, _option("--target", "-t", panel=_DATA, help="The column, or the array, of the classes.")
    ] = None
    classes: Annotated[
        str | None,
        _option("--classes", panel=_DATA, help="Names of classes in the order of the model's outputs: no,yes."),
    ] = None
    drop: Annotated[
        list[str] | None, _option("--drop", panel=_DATA, help="A column that is no input of the model. Repeatable.")
    ] = None
    background: Annotated[
        str | None,
        _option(
            "--background", "-b", panel=_DATA, help="Data that absences are made from, if not --data.", metavar="FILE"
        ),
    ] = None
    rows: Annotated[
        int | None,
        _option("--rows", panel=_DATA, help="Read only the first rows; of a folder, of each class in turn."),
    ] = None
    size: Annotated[
        str | None, _option("--size", panel=_DATA, help="The height and width to bring images to: 224x224.")
    ] = None
    channels: Annotated[
        int | None,
        _option("--channels", panel=_DATA, help="1 for grey images, 3 for colours; as they are, left out."),
    ] = None
    players: Annotated[
        str | None,
        _option(
            "--players",
            "-p",
            panel=_GAME,
            help="features (a table's columns, the default), grid:7x7, tokens, a map of labels (.npy, .npz, .csv, "
            ".png), or groups of columns (.json: names to columns).",
        ),
    ] = None
    readout: Annotated[
        str | None,
        _option(
            "--readout",
            panel=_GAME,
            help="log-odds (the default for classes), logit, probability, output[:NUMBER].",
            autocompletion=lambda: _READOUTS,
        ),
    ] = None
    one_class: Annotated[
        str | None, _option("--class", panel=_GAME, help="Explain this class in all samples, not each sample's own.")
    ] = None
    seed: Annotated[int, _option("--seed", panel=_GAME, help="Fixes every draw.", min=0)] = 0


@dataclass(frozen=True, eq=False)
class Problem:
    """What the options stand for: a model that runs on the samples, and the players."""

    inputs: Inputs
    model: Model
    samples: Samples
    players: Players
    notes: tuple[str, ...]

    def tell_notes(self) -> None:
        """Say what is to be known of the model and the data, once all that was asked for is known to make sense."""
        for note in self.notes:
            tell(note)

    def readout(self, chosen: Int[Tensor, " samples"]) -> Readout | None:
        """Make the readout for some of the samples; None leaves it to the library."""
        one = self.inputs.one_class
        y: int | Tensor | None = self.classes(chosen) if one is None else find_class(one, self.samples.classes)
        return load_readout(self.inputs.readout, y)

    def classes(self, chosen: Int[Tensor, " samples"]) -> Int[Tensor, " samples"] | None:
        """Give the classes of some of the samples, where there are any."""
        return None if self.samples.y is None else self.samples.y[chosen]


def prepare(inputs: Inputs, absences: Sequence[str] = (), *, noise: bool = False) -> Problem:
    """Load what the options name; tables are coded as those of saved absences were.

    With ``noise`` the model is to see white noise, in columns of categories too.
    """
    loaded = load_model(inputs.model, inputs.weights, trust=inputs.trust, device=inputs.device)
    options: dict[str, Any] = {
        "drop": tuple(inputs.drop or ()),
        "size": None if inputs.size is None else parse_size("size", inputs.size),
        "channels": inputs.channels,
    }
    data = read_data(inputs.data, inputs.target, rows=inputs.rows, **options)
    background = None
    if inputs.background is not None:
        there = inputs.background
        background = read_data(there, inputs.target, argument="background", needs_target=False, **options)
    names = None if inputs.classes is None else [name.strip() for name in inputs.classes.split(",")]
    samples = make_samples(data, loaded, background, classes=names, known=saved_coding(absences))
    model = as_model(loaded, samples.x, samples.table, probabilities=inputs.probabilities, nearest=noise)
    players = load_players(inputs.players, samples, takes_tokens(model, samples.x))
    notes = [loaded.note, *samples.notes]
    if noise and samples.table is not None:
        notes.append("White noise in a column of categories is the category nearest to it.")
    return Problem(inputs, model, samples, players, tuple(note for note in notes if note))


def takes_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, whose first argument is `Inputs`, the shared options before its own."""
    names = [field.name for field in fields(Inputs)]
    hints = get_type_hints(Inputs, include_extras=True)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        inputs = Inputs(**{name: given.pop(name) for name in names})
        command(inputs, **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(
            field.name,
            keyword,
            default=inspect.Parameter.empty if field.name in ("model", "data") else field.default,
            annotation=hints[field.name],
        )
        for field in fields(Inputs)
    ]
    own_hints = get_type_hints(command, include_extras=True)
    own = [
        one.replace(kind=keyword, annotation=own_hints[one.name])
        for one in list(inspect.signature(command).parameters.values())[1:]
    ]
    # typer reads the options off the signature and the annotations.
    run.__signature__ = inspect.Signature(shared + own)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shared + own}
    del run.__wrapped__  # whose signature would be read instead
    return run
